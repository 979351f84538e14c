//! Text that arrives in pieces: `EncodeStream`, `DecodeStream`, `Session`.

use std::sync::Arc;

use bytepair::Tokenizer;
use bytepair::tokenizer::decode_stream::DecodeStream;
use bytepair::tokenizer::session::{Change, EncodeStream, Session};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::interrupt::{MIN_DETACHED_CHARS, detached};
use crate::text::{string, text as text_of};
use crate::tokenizer::PyTokenizer;
use crate::{arguments, errors};

/// Encodes text that arrives in pieces; the concatenated ids equal those of the whole text. One thread
/// may use it at a time.
#[pyclass(name = "EncodeStream", module = "bytepair._core")]
pub(crate) struct PyEncodeStream {
    tokenizer: Py<PyTokenizer>,
    stream: EncodeStream,
}

#[pymethods]
impl PyEncodeStream {
    #[new]
    #[pyo3(signature = (tokenizer, *, special=None))]
    fn new(tokenizer: Py<PyTokenizer>, special: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let core = &tokenizer.get().core;
        let (special, _, _) = arguments::options(core, special, None, None)?;
        let stream = errors::checked(EncodeStream::new(core, &special))?;
        Ok(Self { tokenizer, stream })
    }

    /// Take a piece of text and return the ids that are now final.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        piece: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let piece = text_of(arguments::string(piece)?)?;
        let ids = errors::checked(detached(py, || self.stream.push(&piece)))?;
        self.tokenizer.get().ints.list(py, &ids)
    }

    /// End the text and return the remaining ids; the stream can be used again.
    fn flush<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ids = errors::checked(detached(py, || self.stream.flush()))?;
        self.tokenizer.get().ints.list(py, &ids)
    }
}

/// Decodes ids one by one, as a model generates them. Created by `Tokenizer.decode_stream`.
///
/// A stream takes a few dozen bytes, so thousands may be open at once. One thread at a time may use
/// it.
///
/// Example:
///     >>> import bytepair
///     >>> tok = bytepair.train(["hello hello"], 269)
///     >>> stream = tok.decode_stream()
///     >>> [stream.push(i) for i in [259, 0xC3, 0xA9, 0xE2]], stream.flush()
///     (['hello', '', 'é', ''], '\ufffd')
#[pyclass(name = "DecodeStream", module = "bytepair._core")]
pub(crate) struct PyDecodeStream {
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) stream: DecodeStream,
}

#[pymethods]
impl PyDecodeStream {
    /// Take one id and return the text that is now complete, which may be empty.
    ///
    /// Never returns part of a character; bytes that cannot become a character become U+FFFD, as in
    /// `decode(..., errors="replace")`.
    ///
    /// Args:
    ///     id: the id.
    ///
    /// Raises:
    ///     UnknownIdError: if the id is not in the vocabulary; the stream does not change.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> stream = bytepair.train(["hello hello"], 269).decode_stream()
    ///     >>> stream.push(259)
    ///     'hello'
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        let id = arguments::id(&self.tokenizer, id)?;
        Ok(PyString::new(py, &errors::checked(self.stream.push(id))?))
    }

    /// End the stream: returns U+FFFD if the last character is incomplete, else nothing. Where the
    /// decoder works on names, as for CLIP, the text of a run of bytes may come only now.
    ///
    /// Raises an error if a step of the decoder fails on what is left, as `decode` does.
    ///
    /// The results of all calls of `push` and `flush`, concatenated, equal `decode` of all ids. The
    /// stream can be used again.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> stream = bytepair.train(["hello hello"], 269).decode_stream()
    ///     >>> stream.push(0xE2), stream.flush(), stream.flush()
    ///     ('', '\ufffd', '')
    fn flush(&mut self) -> PyResult<String> {
        errors::checked(self.stream.flush())
    }

    /// The stop string that ended the text, or None; until the first id after `flush`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> stream = bytepair.train(["hello hello"], 269).decode_stream(stop="!")
    ///     >>> stream.push(259), stream.push(33), stream.push(259), stream.stopped
    ///     ('hello', '', '', '!')
    #[getter]
    fn stopped(&self) -> Option<&str> {
        self.stream.stopped().map(|(_, string)| string)
    }
}

/// The session of the core, with the tokenizer whose integers it shares. One thread may use it at a time.
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
        let change = if text.len() < MIN_DETACHED_CHARS { append() } else { detached(py, append) };
        let Change { removed, ids } = errors::checked(change)?;
        Ok((removed, self.tokenizer.get().ints.list(py, &ids)?))
    }

    /// A copy of the session, which grows independently.
    fn fork(&self, py: Python<'_>) -> Self {
        Self { tokenizer: self.tokenizer.clone_ref(py), session: self.session.clone() }
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
