//! `View`: what the page of `explore` shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytepair_view::{Answer, CHANGES, PageModule, READS, View, ViewError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyFrozenSet, PyString};

use crate::errors::{ArgumentError, ConversationError};
use crate::tokenizer::PyTokenizer;
use crate::{arguments, errors};

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
        tokenizer: &PyTokenizer,
        own: Vec<String>,
    ) -> PyResult<usize> {
        let valid = utf8("name", name)?.to_owned();
        let core = Arc::clone(&tokenizer.core);
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
        let text = utf8("text", text)?;
        let module = module.as_ref().map(|(wasm, worker)| PageModule { wasm, worker });
        py.detach(|| self.0.to_html(&files, text, special, module)).map_err(|error| python(&error))
    }
}

/// A text of the page, which is in UTF-8; file names that are not valid become surrogates in Python.
fn utf8<'a>(argument: &str, text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    let allowed = "text without half of a surrogate pair, since a page is UTF-8";
    text.to_str().map_err(|_| arguments::refused(argument, text, allowed))
}

/// The exception for an error, with the same message.
fn python(error: &ViewError) -> PyErr {
    match error {
        ViewError::Core(error) => errors::python(error),
        ViewError::Question(reason) => ArgumentError::new_err(reason.clone()),
        ViewError::Conversation(reason) => ConversationError::new_err(reason.clone()),
    }
}
