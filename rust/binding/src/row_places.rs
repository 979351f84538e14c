//! `RowPlaces`: where documents stand in rows.

use numpy::PyArray1;
use pyo3::prelude::*;

/// The places of whole documents in rows.
#[pyclass(frozen, get_all, name = "RowPlaces", module = "bytepair._core")]
pub(crate) struct PyRowPlaces {
    /// The row of each document.
    pub(crate) rows: Py<PyArray1<i64>>,
    /// Its first column in that row.
    pub(crate) columns: Py<PyArray1<i64>>,
}
