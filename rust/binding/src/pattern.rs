//! Resolves the names of split patterns, and computes how long their matches can be.

use bytepair::Pattern;
use pyo3::prelude::*;

use crate::errors;

/// The regular expression of a named pattern, or the given expression itself if it is valid.
#[pyfunction]
pub(crate) fn pattern(name_or_regex: &str) -> PyResult<String> {
    let pattern = errors::checked(Pattern::new(name_or_regex))?;
    Ok(pattern.regex().to_owned())
}

/// The smallest and the largest number of characters of a match of a regular expression; `None` if
/// there is no maximum.
#[pyfunction]
pub(crate) fn match_lengths(regex: &str) -> (usize, Option<usize>) {
    let (fewest, most) = bytepair::pretokenize::match_lengths(regex);
    (fewest, Some(most).filter(|&most| most < usize::MAX))
}
