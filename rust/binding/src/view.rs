//! `View`: what the page of `explore` shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytepair_view::{Answer, CHANGES, PageModule, READS, View, ViewError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyFrozenSet, PyString};

use crate::errors;
use crate::errors::{ArgumentError, ConversationError};
use crate::tokenizer::PyTokenizer;

/// Some tokenizers, and the answers to questions about them.
#[pyclass(frozen, name = "View", module = "bytepair._core")]
pub(crate) struct PyView(View);

#[pymethods]
impl PyView {
    /// A view without tokenizers, of some material: texts and chat templates, as JSON.
    #[new]
    fn new(material: &str) -> PyResult<Self> {
        View::new(material).map(Self).map_err(|error| python(&error))
    }

    /// The questions that change nothing.
    #[classattr]
    fn reads(py: Python<'_>) -> PyResult<Bound<'_, PyFrozenSet>> {
        PyFrozenSet::new(py, READS)
    }

    /// The questions that add or remove a tokenizer.
    #[classattr]
    fn changes(py: Python<'_>) -> PyResult<Bound<'_, PyFrozenSet>> {
        PyFrozenSet::new(py, CHANGES)
    }

    /// Add a tokenizer and the names of its own chat templates; returns its number.
    fn add(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyString>,
        tokenizer: &Bound<'_, PyTokenizer>,
        own: Vec<String>,
    ) -> PyResult<usize> {
        let valid = name.to_str().map_err(|_| not_utf8(name))?.to_owned();
        let core = Arc::clone(&tokenizer.get().core);
        py.detach(|| self.0.add(valid, core, own)).map_err(|error| python(&error))
    }

    /// The answer to a question in JSON, with a body: JSON as a string, or bytes.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        question: &str,
        body: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        match py.detach(|| self.0.ask(question, body)).map_err(|error| python(&error))? {
            Answer::Json(text) => Ok(PyString::new(py, &text).into_any()),
            Answer::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        }
    }

    /// The page as one file, of the files of the page: for one text, or with all views if the
    /// module for browsers and the script of its thread are passed.
    #[pyo3(signature = (files, text, *, special, module=None))]
    fn to_html(
        &self,
        py: Python<'_>,
        files: BTreeMap<String, String>,
        text: &Bound<'_, PyString>,
        special: bool,
        module: Option<(PyBackedBytes, PyBackedBytes)>,
    ) -> PyResult<String> {
        let text = text.to_str().map_err(|error| half_a_pair(py, &error))?;
        let module = module.as_ref().map(|(wasm, worker)| PageModule { wasm, worker });
        py.detach(|| self.0.to_html(&files, text, special, module)).map_err(|error| python(&error))
    }
}

/// A text that no page in UTF-8 can hold.
fn half_a_pair(py: Python<'_>, error: &PyErr) -> PyErr {
    let place =
        error.value(py).getattr("start").map_or_else(|_| String::new(), |at| at.to_string());
    ArgumentError::new_err(format!(
        "the text has half of a surrogate pair at character {place}, which no page in UTF-8 can \
         hold; replace it"
    ))
}

/// A name that is no text: the names of files are bytes on some systems.
fn not_utf8(name: &Bound<'_, PyString>) -> PyErr {
    let name = name.repr().map_or_else(|_| String::new(), |repr| repr.to_string());
    ArgumentError::new_err(format!(
        "the name {name} of a tokenizer is not valid UTF-8, so no page can show it; rename the \
         file or folder"
    ))
}

/// The exception for an error, with the same message.
fn python(error: &ViewError) -> PyErr {
    match error {
        ViewError::Core(error) => errors::python(error),
        ViewError::Question(reason) => ArgumentError::new_err(reason.clone()),
        ViewError::Conversation(reason) => ConversationError::new_err(reason.clone()),
    }
}
