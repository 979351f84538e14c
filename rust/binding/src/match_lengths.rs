//! `MatchLengths`: how long the matches of a regular expression can be.

use pyo3::prelude::*;

/// The numbers of characters that a match of a regular expression may have.
#[pyclass(frozen, get_all, name = "MatchLengths", module = "bytepair._core")]
pub(crate) struct PyMatchLengths {
    /// The smallest.
    pub(crate) fewest: usize,
    /// The largest; None if there is none.
    pub(crate) most: Option<usize>,
}

/// How long the matches of a regular expression can be.
#[pyfunction]
pub(crate) fn match_lengths(regex: &str) -> PyMatchLengths {
    let (fewest, most) = bytepair::pretokenize::match_lengths(regex);
    PyMatchLengths { fewest, most: Some(most).filter(|&most| most < usize::MAX) }
}
