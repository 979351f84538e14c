//! Resolves the names of split patterns.

use bytepair::Pattern;
use pyo3::prelude::*;

use crate::errors;

/// The regular expression of a named pattern, or the given expression itself; anything else is
/// refused.
#[pyfunction]
pub(crate) fn pattern(name_or_regex: &str) -> PyResult<String> {
    let pattern = Pattern::new(name_or_regex).map_err(|error| errors::python(&error))?;
    Ok(pattern.regex().to_owned())
}
