//! `Rivals`: pairs that would have been merged before the pairs of a list.

use numpy::PyArray1;
use pyo3::prelude::*;

/// Pairs whose weighted count exceeds that of the merged pair.
#[pyclass(frozen, get_all, name = "Rivals", module = "bytepair._core")]
pub(crate) struct PyRivals {
    /// The step of each.
    pub(crate) steps: Py<PyArray1<u32>>,
    /// The index of each.
    pub(crate) pairs: Py<PyArray1<u32>>,
    /// The counts of each in all texts, concatenated.
    pub(crate) counts: Py<PyArray1<u64>>,
}
