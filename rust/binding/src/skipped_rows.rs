//! `SkippedRows`: documents that were left out of a file, and why.

use bytepair::corpus::SkippedRows;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors;

/// A range of skipped documents of a file.
#[pyclass(frozen, name = "SkippedRows", module = "bytepair._core")]
pub(crate) struct PySkippedRows(SkippedRows);

#[pymethods]
impl PySkippedRows {
    /// The index of the file.
    #[getter]
    fn file(&self) -> usize {
        self.0.file
    }

    /// The first skipped row of the file.
    #[getter]
    fn row(&self) -> u64 {
        self.0.row
    }

    /// The number of skipped rows; 0 if it is unknown: the rest of the file, which is damaged.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows
    }

    /// Why they were skipped.
    #[getter]
    fn reason(&self) -> &str {
        self.0.reason.text()
    }

    /// What to do about it, as tuples that `bytepair.errors` reads.
    #[getter]
    fn ways_out<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.0.reason.ways_out().iter().map(|one| errors::way_out(py, one)).collect()
    }
}

impl From<SkippedRows> for PySkippedRows {
    fn from(skipped: SkippedRows) -> Self {
        Self(skipped)
    }
}
