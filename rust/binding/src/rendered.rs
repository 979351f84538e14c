//! `Rendered`: the ids and the masks of conversations.

use numpy::PyArray1;
use pyo3::prelude::*;

/// Rendered conversations.
#[pyclass(frozen, get_all, name = "Rendered", module = "bytepair._core")]
pub(crate) struct PyRendered {
    /// The ids of all conversations.
    pub(crate) ids: Py<PyArray1<u32>>,
    /// 1 for each id that is trained on.
    pub(crate) mask: Py<PyArray1<u8>>,
    /// The start of each conversation, and the end of the last.
    pub(crate) offsets: Py<PyArray1<i64>>,
}
