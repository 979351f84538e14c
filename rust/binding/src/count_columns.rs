//! `CountColumns`: counts as arrays.

use numpy::PyArray1;
use pyo3::prelude::*;

/// The columns of a table of counts.
#[pyclass(frozen, get_all, name = "CountColumns", module = "bytepair._core")]
pub(crate) struct PyCountColumns {
    /// The bytes of all pretokens.
    pub(crate) data: Py<PyArray1<u8>>,
    /// The start of each pretoken, and the end of the last.
    pub(crate) offsets: Py<PyArray1<i64>>,
    /// The count of each pretoken.
    pub(crate) counts: Py<PyArray1<u64>>,
}
