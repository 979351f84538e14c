//! A tokenizer with the same values as another, and another origin or cache.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use crate::model::Model;
use crate::tokenizer::Tokenizer;

/// With other notes.
#[pyfunction]
pub(crate) fn with_notes(tokenizer: &Tokenizer, notes: BTreeMap<String, String>) -> Model {
    Model::of(tokenizer.core().clone().with_notes(notes))
}

/// With a cache of repeated text of at most so many bytes; 0 switches it off.
#[pyfunction]
pub(crate) fn with_repeats(py: Python<'_>, tokenizer: &Tokenizer, bytes: usize) -> PyResult<Model> {
    Model::new(py.detach(|| tokenizer.core().clone().with_repeats(bytes)))
}
