//! Copies of a tokenizer with other notes, special tokens or cache; the roles of its special tokens.

use std::collections::BTreeMap;

use bytepair::Role;
use bytepair::roles::by_names;
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

/// A copy that leaves out what no token covers, or that fails on it.
#[pyfunction]
pub(crate) fn with_uncovered_dropped(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    drops: bool,
) -> PyResult<PyModel> {
    PyModel::new(py.detach(|| tokenizer.core().with_uncovered_dropped(drops)))
}

/// Names of roles, each with the name of its special token.
type Roles = Vec<(&'static str, String)>;

/// The roles of the special tokens of a tokenizer, by its notes and their names.
#[pyfunction]
pub(crate) fn roles(tokenizer: &PyTokenizer) -> Roles {
    let named = |role: Role| Some((role.name(), tokenizer.core().role(role)?.0.to_owned()));
    Role::ALL.into_iter().filter_map(named).collect()
}

/// The roles that special tokens have by their names alone.
#[pyfunction]
pub(crate) fn usual_roles(special: Vec<String>) -> Roles {
    let names: Vec<&str> = special.iter().map(String::as_str).collect();
    by_names(&names).into_iter().map(|(role, name)| (role.name(), name.to_owned())).collect()
}
