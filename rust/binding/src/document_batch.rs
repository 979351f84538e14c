//! `DocumentBatch`: documents of a file as arrays, and what was skipped among them.

use bytepair::corpus::Documents;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors;
use crate::skipped_rows::PySkippedRows;

/// Consecutive documents of a file.
#[pyclass(frozen, get_all, name = "DocumentBatch", module = "bytepair._core")]
pub(crate) struct PyDocumentBatch {
    /// The index of their block or row group.
    unit: u64,
    /// The row of the first document in the file.
    first_row: u64,
    /// Their concatenated bytes (uint8).
    data: Py<PyArray1<u8>>,
    /// The start of each document in `data`, and the end of the last (int64).
    offsets: Py<PyArray1<i64>>,
    /// What was skipped among them, in order.
    skipped: Vec<Py<PySkippedRows>>,
}

impl PyDocumentBatch {
    pub(crate) fn new(py: Python<'_>, documents: Documents) -> PyResult<Self> {
        let offsets = errors::checked(documents.offsets())?.into_pyarray(py).unbind();
        let skipped = documents.skipped.into_iter();
        let skipped = skipped.map(|skip| Py::new(py, PySkippedRows::from(skip)));
        let skipped = skipped.collect::<PyResult<_>>()?;
        let data = documents.bytes.into_pyarray(py).unbind();
        let (unit, first_row) = (documents.unit, documents.first_row);
        Ok(Self { unit, first_row, data, offsets, skipped })
    }
}
