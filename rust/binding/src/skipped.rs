//! `Skipped`: documents that were left out of a file, and why.

use bytepair::corpus::Skipped;
use pyo3::prelude::*;

/// A range of skipped documents of a file.
#[pyclass(frozen, get_all, name = "Skipped", module = "bytepair._core")]
pub(crate) struct PySkipped {
    /// The index of the file.
    file: usize,
    /// The first skipped row of the file.
    row: u64,
    /// The number of skipped rows; 0 if it is unknown: the rest of the file, which is damaged.
    rows: u64,
    /// Why they were skipped.
    reason: String,
}

impl From<Skipped> for PySkipped {
    fn from(Skipped { file, row, rows, reason }: Skipped) -> Self {
        Self { file, row, rows, reason }
    }
}
