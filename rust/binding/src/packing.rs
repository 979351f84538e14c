//! `plan_rows` and `pack` place documents in rows; `gather` copies their ids; `crc32`
//! is the checksum of shards.

use bytepair::rows::{self, SourceRange};
use numpy::{Element, IntoPyArray, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::row_places::PyRowPlaces;
use crate::row_plan::PyRowPlan;
use crate::{arrays, errors};

/// Pack documents of known lengths into full rows: the document of each piece, its number of ids,
/// the end of each row.
#[pyfunction]
pub(crate) fn plan_rows(
    py: Python<'_>,
    lengths: arrays::ArrayArgument<'_, usize>,
    width: usize,
    buffer: usize,
) -> PyResult<PyRowPlan> {
    let lengths = lengths.as_slice()?;
    let plan = errors::checked(py.detach(|| rows::plan_rows(lengths, width, buffer)))?;
    let [documents, takes, ends] =
        [plan.documents, plan.takes, plan.ends].map(|numbers| numbers.into_pyarray(py).unbind());
    Ok(PyRowPlan { documents, takes, ends })
}

/// Place whole documents in rows: the row of each, and its first column in that row.
#[pyfunction]
pub(crate) fn pack(
    py: Python<'_>,
    lengths: arrays::ArrayArgument<'_, i64>,
    width: usize,
) -> PyResult<PyRowPlaces> {
    let lengths = lengths.as_array();
    let lengths = lengths.iter().map(|&length| Ok(usize::try_from(length)?));
    let lengths: Vec<usize> = errors::collect(lengths)?;
    let places = errors::checked(py.detach(|| rows::place_whole(&lengths, width)))?;
    let of_rows = errors::collect(places.iter().map(|&(row, _)| Ok(arrays::integer(row))))?;
    let columns = errors::collect(places.iter().map(|&(_, column)| Ok(arrays::integer(column))))?;
    let [rows, columns] = [of_rows, columns].map(|numbers| numbers.into_pyarray(py).unbind());
    Ok(PyRowPlaces { rows, columns })
}

/// The CRC-32 of an array, continuing from `start`, the CRC-32 of the preceding bytes.
#[pyfunction]
#[pyo3(signature = (bytes, start=0))]
pub(crate) fn crc32(
    py: Python<'_>,
    bytes: arrays::ArrayArgument<'_, u8>,
    start: u32,
) -> PyResult<u32> {
    let bytes = bytes.as_slice()?;
    Ok(py.detach(|| bytepair::crc32(bytes, start)))
}

/// Copy ranges of ids, one after the other, until `out` is full.
#[pyfunction]
pub(crate) fn gather<'py>(
    py: Python<'py>,
    sources: Vec<Bound<'py, PyAny>>,
    which: arrays::ArrayArgument<'py, usize>,
    starts: arrays::ArrayArgument<'py, usize>,
    lengths: arrays::ArrayArgument<'py, usize>,
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
    py.detach(|| bytepair::rows::gather(&slices, pieces, out)).ok_or_else(|| {
        PyValueError::new_err("the pieces exceed their source arrays, or do not fill `out` exactly")
    })
}
