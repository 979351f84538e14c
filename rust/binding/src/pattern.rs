//! Resolves the names of split patterns.

use bytepair::Pattern;
use pyo3::prelude::*;

use crate::errors;

/// The regular expression of a named pattern, or the given expression itself; anything else is
/// refused.
#[pyfunction]
pub(crate) fn pattern(name_or_regex: &str) -> PyResult<String> {
    let pattern = errors::checked(Pattern::new(name_or_regex))?;
    Ok(pattern.regex().to_owned())
}
