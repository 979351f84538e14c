//! Encodes into numpy arrays without a copy.

use std::ops::Range;

use bytepair::encode::Id;
use bytepair::{EncodeOptions, Text, Tokenizer};
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors;

/// Ids of 16 or 32 bits; the start of each text in them, then the end of the last text.
pub(crate) type NumpyArrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyArray1<i64>>);

/// Do the same with ids of 16 bits, if all of the vocabulary fit them, or of 32.
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

/// Encode texts into one array.
pub(crate) fn encode<'py>(
    py: Python<'py>,
    tokenizer: &Tokenizer,
    texts: &[Text<'_>],
    options: &EncodeOptions,
    threads: usize,
) -> PyResult<NumpyArrays<'py>> {
    with_width!(tokenizer, Id => {
        into_numpy(py, py.detach(|| tokenizer.encode_arrays::<Id>(texts, options, threads)))
    })
}

pub(crate) fn into_numpy<T: Id + Element>(
    py: Python<'_>,
    arrays: bytepair::Result<bytepair::batch::arrays::Arrays<T>>,
) -> PyResult<NumpyArrays<'_>> {
    let arrays = errors::checked(arrays)?;
    Ok((arrays.ids.into_pyarray(py).into_any(), arrays.offsets.into_pyarray(py)))
}

/// The range between two offsets of the core, which are never negative.
pub(crate) fn range(start: i64, end: i64) -> Range<usize> {
    let place = |offset| usize::try_from(offset).unwrap_or(0);
    place(start)..place(end)
}
