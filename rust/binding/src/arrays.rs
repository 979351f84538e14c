//! Arrays of ids, handed to numpy without a copy; out of `str`, Arrow columns and files.

use std::ops::Range;
use std::path::PathBuf;

use bytepair::arrays::Id;
use bytepair::documents::FileOptions;
use bytepair::encode::EncodeOptions;
use bytepair::{Text, Tokenizer};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::{arguments, errors};

/// Ids of 16 or 32 bits, and where those of each text begin, with the end of the last.
pub(crate) type Arrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyArray1<i64>>);

/// Encode texts into one array.
pub(crate) fn encode<'py>(
    py: Python<'py>,
    tokenizer: &Tokenizer,
    texts: &[Text<'_>],
    options: &EncodeOptions,
    threads: usize,
) -> PyResult<Arrays<'py>> {
    if tokenizer.fits_u16() {
        encode_as::<u16>(py, tokenizer, texts, options, threads)
    } else {
        encode_as::<u32>(py, tokenizer, texts, options, threads)
    }
}

fn encode_as<'py, T: Id + Element>(
    py: Python<'py>,
    tokenizer: &Tokenizer,
    texts: &[Text<'_>],
    options: &EncodeOptions,
    threads: usize,
) -> PyResult<Arrays<'py>> {
    into_numpy(py, py.detach(|| tokenizer.encode_arrays::<T>(texts, options, threads)))
}

fn into_numpy<T: Id + Element>(
    py: Python<'_>,
    arrays: bytepair::Result<bytepair::arrays::Arrays<T>>,
) -> PyResult<Arrays<'_>> {
    let arrays = arrays.map_err(|e| errors::python(&e))?;
    Ok((arrays.ids.into_pyarray(py).into_any(), arrays.offsets.into_pyarray(py)))
}

/// The places between two offsets, which the core made.
pub(crate) fn range(start: i64, end: i64) -> Range<usize> {
    let place = |offset| usize::try_from(offset).unwrap_or(0);
    place(start)..place(end)
}

/// Encode the texts of an Arrow string column: its bytes and its offsets.
#[pyfunction]
#[pyo3(signature = (tokenizer, data, offsets, *, special=None, prepend=None, append=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn encode_utf8<'py>(
    py: Python<'py>,
    tokenizer: &Bound<'py, crate::tokenizer::Tokenizer>,
    data: PyReadonlyArray1<'py, u8>,
    offsets: &Bound<'py, PyAny>,
    special: Option<&Bound<'py, PyAny>>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Arrays<'py>> {
    let options = tokenizer.get().options(special, prepend, append)?;
    let tokenizer = tokenizer.get().core();
    let (data, offsets) = (data.as_slice()?, arguments::offsets(offsets)?);
    let outside = || PyValueError::new_err("the offsets of the texts lie outside their data");
    let texts = offsets.windows(2).map(|pair| data.get(pair[0]..pair[1]).map(Text::Bytes));
    let texts = texts.collect::<Option<Vec<_>>>().ok_or_else(outside)?;
    let threads = arguments::threads_for(threads, &texts)?;
    encode(py, tokenizer, &texts, &options, threads)
}

/// Encode the documents of a text file.
#[pyfunction]
#[pyo3(signature = (tokenizer, path, *, separator, lossy, special=None, prepend=None, append=None,
                    threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn encode_file<'py>(
    py: Python<'py>,
    tokenizer: &Bound<'py, crate::tokenizer::Tokenizer>,
    path: PathBuf,
    separator: Vec<u8>,
    lossy: bool,
    special: Option<&Bound<'py, PyAny>>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Arrays<'py>> {
    let options = tokenizer.get().options(special, prepend, append)?;
    let tokenizer = tokenizer.get().core();
    let threads = arguments::threads(threads)?;
    let file = FileOptions { separator, lossy };
    if tokenizer.fits_u16() {
        let arrays = py.detach(|| tokenizer.encode_file::<u16>(&path, &file, &options, threads));
        into_numpy(py, arrays)
    } else {
        let arrays = py.detach(|| tokenizer.encode_file::<u32>(&path, &file, &options, threads));
        into_numpy(py, arrays)
    }
}
