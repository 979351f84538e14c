//! `RowRange`: consecutive rows of a parquet file.

use pyo3::prelude::*;

/// Consecutive rows of a parquet file.
#[pyclass(frozen, get_all, name = "RowRange", module = "bytepair._core")]
pub(crate) struct PyRowRange {
    /// The index of the file.
    pub(crate) file: usize,
    /// The first row.
    pub(crate) row: usize,
    /// The number of rows.
    pub(crate) rows: usize,
}
