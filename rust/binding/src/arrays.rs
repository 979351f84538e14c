//! Encodes into numpy arrays without a copy, and into lists.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use bytepair::bulk::arrays::Arrays;
use bytepair::encode::Id;
use bytepair::{EncodeOptions, Text, Tokenizer, memory, parallel};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, get_array_module};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use crate::errors;
use crate::interrupt;
use crate::ints::Ints;

/// Evaluate an expression with `$id` = `u16` if all ids of the vocabulary fit in 16 bits, or else
/// with `$id` = `u32`.
macro_rules! with_width {
    ($tokenizer:expr, $id:ident => $action:expr) => {
        if $tokenizer.fits_u16() {
            type $id = u16;
            $action
        } else {
            type $id = u32;
            $action
        }
    };
}

pub(crate) use with_width;

/// Load numpy and its C interface. All functions that take or return arrays begin with this.
///
/// The numpy crate does this on first use too, but panics if it fails. What it runs in Python, the
/// import and the question for numpy's version, may be ended by Ctrl-C; here it is the error that
/// Python raised. The rest runs nothing in Python, so no signal is handled meanwhile.
pub(crate) fn ready(py: Python<'_>) -> PyResult<()> {
    static READY: PyOnceLock<()> = PyOnceLock::new();
    READY
        .get_or_try_init(py, || {
            get_array_module(py)?;
            drop(PyArray1::<u8>::zeros(py, 0, false));
            Ok(())
        })
        .copied()
}

/// An array that a function takes. (The numpy crate's own type asks for numpy's version when it
/// looks at the first argument, and panics if Ctrl-C ends that.)
pub(crate) struct ArrayArgument<'py, T: Element>(PyReadonlyArray1<'py, T>);

impl<'a, 'py, T: Element + 'a> FromPyObject<'a, 'py> for ArrayArgument<'py, T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        ready(value.py())?;
        value.extract().map(Self)
    }
}

impl<'py, T: Element> Deref for ArrayArgument<'py, T> {
    type Target = PyReadonlyArray1<'py, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The bytes of an array. An array that its owner may change is copied, since another thread might
/// write to it while the text is read.
pub(crate) fn stable<'a>(array: &'a PyReadonlyArray1<'_, u8>) -> PyResult<Cow<'a, [u8]>> {
    let bytes = array.as_slice()?;
    let is_writeable = array.getattr("flags")?.getattr("writeable")?.is_truthy()?;
    Ok(if is_writeable {
        Cow::Owned(errors::checked(memory::copy(bytes))?)
    } else {
        Cow::Borrowed(bytes)
    })
}

/// Encode texts into an `IdArrays` of Python.
pub(crate) fn encode<'py>(
    py: Python<'py>,
    tokenizer: &Tokenizer,
    texts: &[Text<'_>],
    options: &EncodeOptions,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    ready(py)?;
    with_width!(tokenizer, Id => {
        let encode = || tokenizer.encode_arrays::<Id>(texts, options, threads);
        id_arrays(py, interrupt::detached(py, encode))
    })
}

/// Ids and offsets as an `IdArrays` of Python.
pub(crate) fn id_arrays<T: Id + Element>(
    py: Python<'_>,
    arrays: bytepair::Result<Arrays<T>>,
) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let Arrays { ids, offsets } = errors::checked(arrays)?;
    let arrays = (ids.into_pyarray(py), offsets.into_pyarray(py));
    CLASS.import(py, "bytepair.tokenizer.results", "IdArrays")?.call1(arrays)
}

/// The range between two offsets of the core, which are never negative.
pub(crate) fn range(start: i64, end: i64) -> Range<usize> {
    let index = |offset| usize::try_from(offset).unwrap_or(0);
    index(start)..index(end)
}

/// Convert a size or an index in memory, which is always below 2⁶³.
pub(crate) fn integer(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Lists are created for chunks of texts of about this many characters.
const CHUNK_CHARS: usize = 1 << 17;

/// A list of ids for each text. Threads encode chunks of texts; this thread creates the lists.
pub(crate) fn lists(
    core: &Tokenizer,
    ints: &Ints,
    texts: &[Text<'_>],
    options: &EncodeOptions,
    threads: usize,
) -> PyResult<Vec<Py<PyList>>> {
    let total: usize = texts.iter().map(Text::len).sum();
    core.expect(total);
    let chunks = parallel::shares(texts, 1 + total / CHUNK_CHARS, |text| text.len() + 1);
    let encode =
        |(): &mut (), range: Range<usize>| core.encode_arrays::<u32>(&texts[range], options, 1);
    let mut lists = errors::checked(memory::with_capacity(texts.len()))?;
    let mut sink = |arrays: Option<bytepair::Result<Arrays<u32>>>| {
        let arrays = arrays.map(errors::checked).transpose()?;
        Python::attach(|py| {
            py.check_signals()?;
            let Some(arrays) = arrays else { return Ok(()) };
            for pair in arrays.offsets.windows(2) {
                let ids = &arrays.ids[range(pair[0], pair[1])];
                lists.push(ints.list(py, ids)?.unbind());
            }
            PyResult::Ok(())
        })
    };
    let threads = parallel::worth(threads, total);
    if threads == 1 {
        let polled = |range| interrupt::polled(|| encode(&mut (), range));
        chunks.into_iter().try_for_each(|range| sink(Some(polled(range))))?;
    } else {
        let weight = |range: &Range<usize>| texts[range.clone()].iter().map(Text::len).sum();
        parallel::ordered(chunks, threads, 4 * threads * CHUNK_CHARS, weight, || (), encode, sink)?;
    }
    Ok(lists)
}
