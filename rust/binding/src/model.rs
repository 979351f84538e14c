//! `Model`: a finished tokenizer of the core, on its way into a Python `Tokenizer`.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use bytepair::{MergeRule, Pattern, Result, Vocabulary};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, HashMap};

use crate::counts::Counts;
use crate::errors;
use crate::tokenizer::Tokenizer;

/// The four values of a tokenizer, made by training or from the parts of a foreign format.
#[pyclass(frozen, module = "bytepair._core")]
pub(crate) struct Model(pub(crate) Arc<bytepair::Tokenizer>);

/// Where a tokenizer comes from, as keys and values.
type Notes = BTreeMap<String, String>;

impl Model {
    pub(crate) fn new(tokenizer: Result<bytepair::Tokenizer>) -> PyResult<Self> {
        tokenizer.map(Self::of).map_err(|e| errors::python(&e))
    }

    pub(crate) fn of(tokenizer: bytepair::Tokenizer) -> Self {
        Self(Arc::new(tokenizer))
    }
}

#[pymethods]
impl Model {
    /// Read the native format.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Self::new(py.detach(|| bytepair::Tokenizer::from_bytes(data)))
    }

    /// Map a file of the native format.
    #[staticmethod]
    fn map(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = File::open(&path).map_err(|error| errors::file(&path, &error))?;
        Self::new(py.detach(|| bytepair::Tokenizer::map(&file)))
    }

    /// A tokenizer with other notes.
    #[staticmethod]
    fn renoted(py: Python<'_>, tokenizer: &Tokenizer, notes: Notes) -> PyResult<Self> {
        Self::new(py.detach(|| tokenizer.core().renoted(notes)))
    }

    /// A tokenizer that knows the ids of the most frequent pretokens from the beginning.
    #[staticmethod]
    fn remembering(py: Python<'_>, tokenizer: &Tokenizer, counts: &Counts) -> PyResult<Self> {
        Self::new(py.detach(|| tokenizer.core().remembering(&counts.inner)))
    }

    /// Check that the tables in a file of the native format follow from its other sections.
    #[staticmethod]
    fn verify(py: Python<'_>, data: &[u8]) -> PyResult<()> {
        py.detach(|| bytepair::file::verify(data)).map_err(|e| errors::python(&e))
    }

    /// A vocabulary of ranks, as tiktoken has it.
    #[staticmethod]
    #[pyo3(signature = (mergeable_ranks, pattern, special_tokens, notes=None))]
    fn from_ranks(
        py: Python<'_>,
        mergeable_ranks: &Bound<'_, PyAny>,
        pattern: &str,
        special_tokens: &Bound<'_, PyAny>,
        notes: Option<Notes>,
    ) -> PyResult<Self> {
        let (tokens, special) = (tokens(mergeable_ranks)?, names(special_tokens)?);
        Self::new(py.detach(|| {
            let vocabulary = Vocabulary::new(tokens, special)?;
            let rule = MergeRule::Ranks;
            let tokenizer = bytepair::Tokenizer::new(vocabulary, rule, Pattern::new(pattern))?;
            Ok(tokenizer.with_notes(notes.unwrap_or_default()))
        }))
    }

    /// A vocabulary with a list of merges, as Hugging Face tokenizers have it.
    #[staticmethod]
    #[pyo3(signature = (tokens, merges, pattern, special_tokens, ignore_merges=false, notes=None))]
    fn from_merges(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        merges: Vec<(Vec<u8>, Vec<u8>)>,
        pattern: &str,
        special_tokens: &Bound<'_, PyAny>,
        ignore_merges: bool,
        notes: Option<Notes>,
    ) -> PyResult<Self> {
        let (tokens, special) = (self::tokens(tokens)?, names(special_tokens)?);
        let by_bytes: HashMap<&[u8], u32> = tokens.iter().map(|(t, id)| (&**t, *id)).collect();
        let find = |token: &[u8], rank: usize| {
            by_bytes.get(token).copied().ok_or_else(|| {
                let token = token.escape_ascii();
                PyKeyError::new_err(format!("merge {rank} names b\"{token}\", which is no token"))
            })
        };
        let pairs = merges.iter().enumerate();
        let merges = pairs
            .map(|(rank, (left, right))| Ok((find(left, rank)?, find(right, rank)?)))
            .collect::<PyResult<Vec<_>>>()?;
        Self::new(py.detach(|| {
            let vocabulary = Vocabulary::new(tokens, special)?;
            let rule = MergeRule::Merges { merges, ignore_merges };
            let tokenizer = bytepair::Tokenizer::new(vocabulary, rule, Pattern::new(pattern))?;
            Ok(tokenizer.with_notes(notes.unwrap_or_default()))
        }))
    }
}

/// Tokens and ids out of a mapping from `bytes` to `int`.
fn tokens(mapping: &Bound<'_, PyAny>) -> PyResult<Vec<(Vec<u8>, u32)>> {
    as_dict(mapping)?.iter().map(|(token, id)| Ok((token.extract()?, id.extract()?))).collect()
}

/// Special tokens and ids out of a mapping from `str` to `int`.
pub(crate) fn names(mapping: &Bound<'_, PyAny>) -> PyResult<Vec<(String, u32)>> {
    as_dict(mapping)?.iter().map(|(name, id)| Ok((name.extract()?, id.extract()?))).collect()
}

fn as_dict<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(mapping.py());
    dict.update(mapping.cast()?)?;
    Ok(dict)
}
