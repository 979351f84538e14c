//! Resolves the names of split patterns, and says how long their matches may be.

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

/// The fewest and the most characters that a match of a regular expression may have; `None` for any
/// number.
#[pyfunction]
pub(crate) fn match_lengths(regex: &str) -> (usize, Option<usize>) {
    let (fewest, most) = bytepair::pretokenize::match_lengths(regex);
    (fewest, Some(most).filter(|&most| most < usize::MAX))
}
