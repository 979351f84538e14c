//! `RowPlan`: which pieces of documents fill the rows.

use numpy::PyArray1;
use pyo3::prelude::*;

/// Documents packed into full rows.
#[pyclass(frozen, get_all, name = "RowPlan", module = "bytepair._core")]
pub(crate) struct PyRowPlan {
    /// The document of each piece.
    pub(crate) documents: Py<PyArray1<usize>>,
    /// The number of its ids in the piece.
    pub(crate) takes: Py<PyArray1<usize>>,
    /// The end of each row in the pieces.
    pub(crate) ends: Py<PyArray1<usize>>,
}
