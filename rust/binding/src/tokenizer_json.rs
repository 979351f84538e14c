//! `tokenizer.json`, rank files, and what belongs to them: the core reads and writes them.

use bytepair::formats::ranks::{self, RankFile};
use bytepair::formats::{self, tokenizer_json as file};
use bytepair::memory;
use bytepair::rules::pre_tokenizer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::tokenizer::PyTokenizer;

/// The text of a `tokenizer.json`.
#[pyfunction]
pub(crate) fn tokenizer_json(py: Python<'_>, tokenizer: &PyTokenizer) -> PyResult<String> {
    let text = errors::checked(py.detach(|| file::write(&tokenizer.core.parts()?)))?;
    errors::checked(memory::check(text.len()))?;
    Ok(text)
}

/// What a `tokenizer.json` cannot hold of a tokenizer.
#[pyfunction]
pub(crate) fn tokenizer_json_losses(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
) -> PyResult<Vec<String>> {
    errors::checked(py.detach(|| Ok(file::losses(&tokenizer.core.parts()?))))
}

/// Whether the beginning of a file looks like that of a rank file.
#[pyfunction]
pub(crate) fn is_rank_file(head: &[u8]) -> bool {
    RankFile::is_one(head)
}

/// Why the beginning of a file cannot be that of a tokenizer, and what to do; or None if it may be
/// one.
#[pyfunction]
pub(crate) fn mistaken(head: &[u8]) -> Option<(String, &'static str)> {
    formats::mistaken(head).map(|reason| (reason.text().to_owned(), reason.hint().python))
}

/// Whether the merges of a tokenizer are proved to give the ids of the rule of ranks.
#[pyfunction]
pub(crate) fn is_rule_of_ranks(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    ignore_merges: bool,
) -> PyResult<bool> {
    let core = &tokenizer.core;
    errors::checked(
        py.detach(|| ranks::is_rule_of_ranks(core.vocabulary(), core.merges(), ignore_merges)),
    )
}

/// The pattern that changes no id of a tokenizer that merges characters into these tokens.
#[pyfunction]
pub(crate) fn harmless_pattern(tokens: Vec<Vec<u8>>) -> PyResult<String> {
    let pattern = errors::checked(file::split_pattern(tokens.iter().map(Vec::as_slice)))?;
    Ok(pattern.steps().concat())
}

/// GPT-2's characters for bytes.
#[pyfunction]
pub(crate) fn to_characters(token: &[u8]) -> String {
    pre_tokenizer::to_characters(token)
}

/// The bytes of GPT-2's characters; None if a character stands for no byte.
#[pyfunction]
pub(crate) fn to_bytes<'py>(py: Python<'py>, characters: &str) -> Option<Bound<'py, PyBytes>> {
    pre_tokenizer::to_bytes(characters).map(|bytes| PyBytes::new(py, &bytes))
}
