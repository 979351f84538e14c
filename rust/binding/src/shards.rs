//! `best_fit` and `gather` plan and copy the rows of a training run; `crc32` is a checksum.

use bytepair::shards::SourceRange;
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

type RowArrays<'py> =
    (Bound<'py, PyArray1<usize>>, Bound<'py, PyArray1<usize>>, Bound<'py, PyArray1<usize>>);

/// The CRC-32 of an array, continuing from `start`, the CRC-32 of the preceding bytes.
#[pyfunction]
#[pyo3(signature = (bytes, start=0))]
pub(crate) fn crc32(py: Python<'_>, bytes: PyReadonlyArray1<'_, u8>, start: u32) -> PyResult<u32> {
    let bytes = bytes.as_slice()?;
    Ok(py.detach(|| bytepair::shards::crc32(bytes, start)))
}

/// Best-fit packing into full rows: the document of each piece, its number of ids, the end of each
/// row.
#[pyfunction]
pub(crate) fn best_fit<'py>(
    py: Python<'py>,
    lengths: PyReadonlyArray1<'py, usize>,
    width: usize,
    buffer: usize,
) -> PyResult<RowArrays<'py>> {
    let lengths = lengths.as_slice()?;
    let rows = errors::checked(py.detach(|| bytepair::shards::best_fit(lengths, width, buffer)))?;
    let [documents, takes, ends] =
        [rows.documents, rows.takes, rows.ends].map(|numbers| numbers.into_pyarray(py));
    Ok((documents, takes, ends))
}

/// Copy ranges of ids, one after the other, until `out` is full.
#[pyfunction]
pub(crate) fn gather<'py>(
    py: Python<'py>,
    sources: Vec<Bound<'py, PyAny>>,
    which: PyReadonlyArray1<'py, usize>,
    starts: PyReadonlyArray1<'py, usize>,
    lengths: PyReadonlyArray1<'py, usize>,
    out: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let (which, starts, lengths) = (which.as_slice()?, starts.as_slice()?, lengths.as_slice()?);
    let pieces = which.iter().zip(starts).zip(lengths);
    let pieces = errors::collect(
        pieces.map(|((&source, &start), &length)| Ok(SourceRange { source, start, length })),
    )?;
    match out.extract::<PyReadwriteArray1<'py, u16>>() {
        Ok(out) => copy(py, &sources, &pieces, out),
        Err(_) => copy(py, &sources, &pieces, out.extract::<PyReadwriteArray1<'py, u32>>()?),
    }
}

fn copy<'py, T: Element + Copy + Sync + Send>(
    py: Python<'py>,
    sources: &[Bound<'py, PyAny>],
    pieces: &[SourceRange],
    mut out: PyReadwriteArray1<'py, T>,
) -> PyResult<()> {
    let array = |ids: &Bound<'py, PyAny>| ids.extract::<PyReadonlyArray1<'py, T>>();
    let arrays = errors::collect(sources.iter().map(array))?;
    let slices = errors::collect(arrays.iter().map(|ids| Ok(ids.as_slice()?)))?;
    let out = out.as_slice_mut()?;
    py.detach(|| bytepair::shards::gather(&slices, pieces, out)).ok_or_else(|| {
        PyValueError::new_err("the pieces exceed their source arrays, or do not fill `out` exactly")
    })
}
