//! `ParityTraining`: the result of parity-aware training.

use pyo3::prelude::*;

use crate::model::PyModel;

/// A vocabulary that was learnt from groups of texts.
#[pyclass(frozen, get_all, name = "ParityTraining", module = "bytepair._core")]
pub(crate) struct PyParityTraining {
    /// The vocabulary.
    pub(crate) model: Py<PyModel>,
    /// The index of the group for which each merge was chosen that was not chosen globally.
    pub(crate) groups: Vec<usize>,
}
