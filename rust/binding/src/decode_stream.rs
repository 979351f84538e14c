//! `DecodeStream`: decodes ids that arrive one by one.

use std::sync::Arc;

use bytepair::Tokenizer;
use bytepair::tokenizer::decode_stream::DecodeStream;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::{arguments, errors};

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
    tokenizer: Arc<Tokenizer>,
    stream: DecodeStream,
}

impl PyDecodeStream {
    pub(crate) fn new(tokenizer: &Arc<Tokenizer>, skipped: Arc<[u32]>) -> Self {
        let stream = DecodeStream::new(tokenizer).skipping(skipped);
        Self { tokenizer: Arc::clone(tokenizer), stream }
    }
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
        let mut text = String::new();
        errors::checked(self.stream.push(id, &mut text))?;
        Ok(PyString::new(py, &text))
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
        let mut text = String::new();
        errors::checked(self.stream.flush(&mut text))?;
        Ok(text)
    }
}
