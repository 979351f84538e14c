//! The methods of `Tokenizer` that decode ids to text or bytes.
//!
//! Special tokens that are to be skipped are removed before the bytes of the others are joined, so
//! that the characters around a skipped token come together.

use std::ops::Range;
use std::sync::Arc;

use bytepair::parallel;
use bytepair::tokenizer::decode_stream::{DecodeStream, Stops};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::ids::{Ids, Slice};
use crate::streams::PyDecodeStream;
use crate::text::decoded;
use crate::tokenizer::PyTokenizer;
use crate::{arguments, errors};

#[pymethods]
impl PyTokenizer {
    /// Decode ids into text.
    ///
    /// Args:
    ///     ids: a list or any iterable of int; or a numpy array, or anything that converts to one
    ///         (Arrow arrays, tensors).
    ///     errors: the treatment of invalid UTF-8: "replace" by U+FFFD, "strict" raises, or
    ///         any other of Python's error handlers.
    ///     skip_special_tokens: whether to leave out special tokens; added tokens that control
    ///         nothing, such as runs of spaces, stay.
    ///
    /// Returns:
    ///     The concatenated text of the tokens; special tokens as their names.
    ///
    /// Raises:
    ///     UnknownIdError: if an id is not in the vocabulary.
    ///     UnicodeDecodeError: if the bytes are not UTF-8 and `errors` is "strict".
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.decode([259, 33, 0xFF]), tok.decode([260, 259], skip_special_tokens=True)
    ///     ('hello!\ufffd', 'hello')
    #[pyo3(signature = (ids, *, errors=None, skip_special_tokens=None),
           text_signature = "($self, ids, *, errors='replace', skip_special_tokens=False)")]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        errors: Option<&Bound<'py, PyAny>>,
        skip_special_tokens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (handler, skipped) = (arguments::handler(errors)?, self.skipped(skip_special_tokens)?);
        let ids = Ids::new(&self.core, ids)?;
        let slice = ids.slice()?;
        let bytes = py.detach(|| slice.decode(&self.core, &skipped));
        decoded(py, &errors::checked(bytes)?, &handler)
    }

    /// Decode ids into the concatenated bytes of their tokens, without loss.
    ///
    /// Args:
    ///     ids: a list or any iterable of int; or a numpy array, or anything that converts to one
    ///         (Arrow arrays, tensors).
    ///
    /// Raises:
    ///     UnknownIdError: if an id is not in the vocabulary.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.decode_bytes([259, 33, 0xFF])
    ///     b'hello!\xff'
    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = Ids::new(&self.core, ids)?;
        let slice = ids.slice()?;
        slice.decode_to_python(py, &self.core)
    }

    /// Decode many lists of ids, each into text.
    ///
    /// Args:
    ///     batch: an iterable of ids as in `decode`.
    ///     errors: as in `decode`.
    ///     skip_special_tokens: as in `decode`.
    ///     threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all.
    ///
    /// Raises:
    ///     UnknownIdError: as in `decode`.
    ///     UnicodeDecodeError: as in `decode`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.decode_batch([[259, 33], []])
    ///     ['hello!', '']
    #[pyo3(signature = (batch, *, errors=None, skip_special_tokens=None, threads=None, **others),
           text_signature = "($self, batch, *, errors='replace', skip_special_tokens=False, threads=None)")]
    fn decode_batch<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
        errors: Option<&Bound<'py, PyAny>>,
        skip_special_tokens: Option<&Bound<'py, PyAny>>,
        threads: Option<arguments::ThreadCount>,
        others: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        arguments::no_others("decode_batch", others)?;
        let (handler, skipped) = (arguments::handler(errors)?, self.skipped(skip_special_tokens)?);
        let threads = arguments::threads(threads);
        let held = arguments::lists(batch)?.map(|ids| Ids::new(&self.core, &ids?));
        let held = errors::collect(held)?;
        let slices = errors::collect(held.iter().map(Ids::slice))?;
        let weight = |slice: &Slice<'_>| 4 * slice.len();
        let threads = parallel::worth(threads, slices.iter().map(weight).sum());
        let decode = |range: Range<usize>| {
            slices[range].iter().map(|slice| slice.decode(&self.core, &skipped)).collect::<Vec<_>>()
        };
        let shares = parallel::shares(&slices, threads, weight).into_iter();
        let texts = py.detach(|| parallel::run(shares.map(|range| || decode(range))));
        let texts = texts.into_iter().flatten();
        let texts = texts.map(|bytes| decoded(py, &errors::checked(bytes)?, &handler));
        errors::list(py, errors::collect(texts)?)
    }

    /// Start a stream that decodes ids one by one and never returns part of a character.
    ///
    /// Args:
    ///     skip_special_tokens: as in `decode`.
    ///     stop: a string or several; the text ends where the first of them is complete (the longest,
    ///         if several are). What may be the beginning of one is held back. The name of a special
    ///         token also stops at its id.
    ///     keep_stop: whether the text keeps the string that ends it.
    ///
    /// Returns:
    ///     An object with `push(id) -> str` and `flush() -> str`; the concatenated results equal
    ///     `decode` of all ids, up to the stop string, which is then the value of `stopped`.
    ///
    /// Raises:
    ///     ArgumentError: if a stop string is empty.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> stream = tok.decode_stream()
    ///     >>> [stream.push(i) for i in [259, 0xC3, 0xA9, 0xE2]], stream.flush()
    ///     (['hello', '', 'é', ''], '\ufffd')
    ///     >>> stream = tok.decode_stream(stop=["!?"])
    ///     >>> [stream.push(i) for i in [259, 33, 33, 63, 259]], stream.stopped
    ///     (['hello', '', '!', '', ''], '!?')
    #[pyo3(signature = (*, skip_special_tokens=None, stop=None, keep_stop=None),
           text_signature = "($self, *, skip_special_tokens=False, stop=None, keep_stop=False)")]
    fn decode_stream(
        &self,
        skip_special_tokens: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        keep_stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyDecodeStream> {
        let skipped = self.skipped(skip_special_tokens)?;
        let keep = arguments::flag("keep_stop", keep_stop, false)?;
        let wrong = |error| errors::about_argument("stop", &format!("is wrong: {error}"));
        let stops = Stops::new(&self.core, &arguments::stops(stop)?, keep).map_err(wrong)?;
        let stream = DecodeStream::new(&self.core).skipping(skipped).stopping(Arc::new(stops));
        Ok(PyDecodeStream { tokenizer: Arc::clone(&self.core), stream })
    }
}

impl PyTokenizer {
    /// The ids that are left out, in order; none unless the argument is true.
    fn skipped(&self, skip_special_tokens: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<[u32]>> {
        if !arguments::flag("skip_special_tokens", skip_special_tokens, false)? {
            return Ok(Arc::default());
        }
        Ok(Arc::clone(self.skippable.get_or_init(|| self.core.control_ids().into())))
    }
}
