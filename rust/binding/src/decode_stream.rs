//! `DecodeStream`: text out of ids that arrive one by one.

use std::sync::Arc;

use bytepair::Tokenizer;
use bytepair::decode::TextStream;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::{arguments, errors};

/// Text out of ids that arrive one by one, as a model makes them; `Tokenizer.decode_stream` makes
/// it.
///
/// A few dozen bytes each, so thousands may be open at once. One stream is for one thread at a
/// time.
///
/// Example:
///     >>> import bytepair
///     >>> tok = bytepair.train(["hello hello"], 269)
///     >>> stream = tok.decode_stream()
///     >>> [stream.push(i) for i in [259, 0xC3, 0xA9, 0xE2]], stream.flush()
///     (['hello', '', 'é', ''], '\ufffd')
#[pyclass(module = "bytepair._core")]
pub(crate) struct DecodeStream {
    tokenizer: Arc<Tokenizer>,
    stream: TextStream,
}

impl DecodeStream {
    pub(crate) fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        Self { tokenizer: Arc::clone(tokenizer), stream: TextStream::default() }
    }
}

#[pymethods]
impl DecodeStream {
    /// Take one id and return the text that is now certain, which may be empty.
    ///
    /// Never half a character; what can be no character becomes U+FFFD, as in
    /// `decode(..., errors="replace")`.
    ///
    /// Args:
    ///     id: the id.
    ///
    /// Raises:
    ///     UnknownIdError: if the id stands for no token; the stream is as before.
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
        let token = self.tokenizer.token_bytes(id).map_err(|e| errors::python(&e))?;
        let mut text = String::new();
        self.stream.push(token, &mut text);
        Ok(PyString::new(py, &text))
    }

    /// Say that there are no more ids: U+FFFD if a character has only begun, else nothing.
    ///
    /// All that `push` and `flush` returned, end to end, is what `decode` makes of all ids. The
    /// stream can be used again, as if new.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> stream = bytepair.train(["hello hello"], 269).decode_stream()
    ///     >>> stream.push(0xE2), stream.flush(), stream.flush()
    ///     ('', '\ufffd', '')
    fn flush(&mut self) -> String {
        let mut text = String::new();
        self.stream.flush(&mut text);
        text
    }
}
