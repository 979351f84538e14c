//! The roles of special tokens.

use bytepair::Role;
use bytepair::roles::by_names;
use pyo3::prelude::*;

use crate::tokenizer::PyTokenizer;

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
