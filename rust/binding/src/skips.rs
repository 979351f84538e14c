//! `Skips`: how many documents were skipped, and the first of them.

use pyo3::prelude::*;

use crate::skipped_rows::PySkippedRows;

/// Documents that were skipped.
#[pyclass(frozen, get_all, name = "Skips", module = "bytepair._core")]
pub(crate) struct PySkips {
    /// The number of skipped documents.
    pub(crate) documents: u64,
    /// The first of them.
    pub(crate) first: Vec<Py<PySkippedRows>>,
}
