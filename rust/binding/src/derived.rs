//! Copies of a tokenizer with other notes or another cache limit.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use crate::model::{PyModel, names};
use crate::tokenizer::PyTokenizer;

/// A copy with other notes.
#[pyfunction]
pub(crate) fn with_notes(tokenizer: &PyTokenizer, notes: BTreeMap<String, String>) -> PyModel {
    PyModel::of(tokenizer.core().clone().with_notes(notes))
}

/// A copy with other special tokens; ordinary tokens, merges and their counts stay.
#[pyfunction]
pub(crate) fn with_special_tokens(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    special_tokens: &Bound<'_, PyAny>,
) -> PyResult<PyModel> {
    let special = names(special_tokens)?;
    PyModel::new(py.detach(|| tokenizer.core().with_special_tokens(special)))
}

/// A copy whose cache of repeated text holds at most `bytes`; 0 switches it off.
#[pyfunction]
pub(crate) fn with_repeats(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    bytes: usize,
) -> PyResult<PyModel> {
    PyModel::new(py.detach(|| tokenizer.core().clone().with_repeats(bytes)))
}
