//! The names of split patterns: what a user asks for, as the regular expression that is kept.

use bytepair::Pattern;
use pyo3::prelude::*;

use crate::errors;

/// The regular expression of a name, or that expression itself; text that is neither is refused.
#[pyfunction]
pub(crate) fn pattern(name_or_regex: &str) -> PyResult<String> {
    let pattern = Pattern::new(name_or_regex).map_err(|error| errors::python(&error))?;
    Ok(pattern.regex().to_owned())
}
