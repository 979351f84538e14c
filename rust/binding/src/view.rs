//! `View`: what the page of `explore` shows.

use std::sync::Arc;

use bytepair_view::{Answer, View, ViewError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{self, ArgumentError, ConversationError};
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

    /// Add a tokenizer; returns its number.
    fn add(
        &self,
        py: Python<'_>,
        name: String,
        tokenizer: &Bound<'_, PyTokenizer>,
    ) -> PyResult<usize> {
        let core = Arc::clone(&tokenizer.get().core);
        py.detach(|| self.0.add(name, core)).map_err(|error| python(&error))
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
}

/// The exception for an error, with the same message.
fn python(error: &ViewError) -> PyErr {
    match error {
        ViewError::Core(error) => errors::python(error),
        ViewError::Question(reason) => ArgumentError::new_err(reason.clone()),
        ViewError::Conversation(reason) => ConversationError::new_err(reason.clone()),
    }
}
