//! `Session`: a text that grows, and its ids.

use std::sync::Arc;

use bytepair::tokenizer::session::{Change, Session};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::interrupt::MIN_DETACHED_CHARS;
use crate::text::{string, text as text_of};
use crate::tokenizer::PyTokenizer;
use crate::{arguments, errors};

/// The session of the core, with the tokenizer whose integers it shares.
#[pyclass(name = "Session", module = "bytepair._core")]
pub(crate) struct PySession {
    tokenizer: Py<PyTokenizer>,
    session: Session,
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (tokenizer, *, special=None, prepend=None))]
    fn new(
        py: Python<'_>,
        tokenizer: Py<PyTokenizer>,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let core = Arc::clone(&tokenizer.get().core);
        let (special, prepend, _) = arguments::options(&core, special, prepend, None)?;
        let session = errors::checked(py.detach(|| Session::new(&core, &special, prepend)))?;
        Ok(Self { tokenizer, session })
    }

    /// Append to the text; returns how many of the last ids are removed, and the ids that replace
    /// them.
    fn append<'py>(
        &mut self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let text = text_of(arguments::string(text)?)?;
        let session = &mut self.session;
        let mut append = || session.append(&text);
        let change = if text.len() < MIN_DETACHED_CHARS { append() } else { py.detach(append) };
        let Change { removed, ids } = errors::checked(change)?;
        Ok((removed, self.tokenizer.get().ints.list(py, &ids)?))
    }

    /// A copy of the session, which grows independently.
    fn fork(&self, py: Python<'_>) -> Self {
        Self { tokenizer: self.tokenizer.clone_ref(py), session: self.session.fork() }
    }

    fn __len__(&self) -> usize {
        self.session.len()
    }

    /// The number of ids at the start that no continuation of the text can change.
    #[getter]
    fn stable(&self) -> usize {
        self.session.stable()
    }

    /// All ids.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.tokenizer.get().ints.list(py, &errors::checked(self.session.ids())?)
    }

    /// The text of the ids after the stable ones.
    #[getter]
    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        string(py, self.session.rest())
    }
}
