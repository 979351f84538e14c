//! `RowPiece`: the ids of a document in a row.

use pyo3::prelude::*;

/// The first ids of a document in a row.
#[pyclass(frozen, get_all, name = "RowPiece", module = "bytepair._core")]
pub(crate) struct PyRowPiece {
    /// The number of the document.
    pub(crate) document: usize,
    /// The number of its ids in the row.
    pub(crate) length: usize,
}
