//! `Model`: a tokenizer of the core, from which Python creates its `Tokenizer`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use bytepair::{Error, MergeRule, Result, TokenizerParts, Vocabulary, memory};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::errors;
use crate::rules::{added_tokens, as_dict, rules as rules_of};

/// The values of a tokenizer, from training or from a file.
#[pyclass(frozen, name = "Model", module = "bytepair._core")]
pub(crate) struct PyModel(pub(crate) Arc<bytepair::Tokenizer>);

impl PyModel {
    pub(crate) fn new(tokenizer: Result<bytepair::Tokenizer>) -> PyResult<Self> {
        errors::checked(tokenizer).map(Self::of)
    }

    pub(crate) fn of(tokenizer: bytepair::Tokenizer) -> Self {
        Self(Arc::new(tokenizer))
    }
}

#[pymethods]
impl PyModel {
    /// Read the native format.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Self::new(py.detach(|| bytepair::Tokenizer::from_bytes(data)))
    }

    /// Read a `tokenizer.json`. With `lossy`, a dropout is ignored.
    #[staticmethod]
    fn from_tokenizer_json(py: Python<'_>, data: &[u8], lossy: bool) -> PyResult<Self> {
        Self::new(py.detach(|| {
            let parts = bytepair::formats::tokenizer_json::read(data, lossy)?;
            bytepair::Tokenizer::from_parts(parts)
        }))
    }

    /// Map a file of the native format. `bytepair.load` documents that the file must not be written
    /// to. Windows neither replaces nor removes a mapped file, so there it is read.
    #[staticmethod]
    #[expect(unsafe_code, reason = "a large vocabulary loads in less than a millisecond")]
    fn map(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = File::open(&path).map_err(|error| errors::file(&path, &error))?;
        if cfg!(windows) {
            return Self::new(py.detach(|| bytepair::Tokenizer::open(&path)));
        }
        // SAFETY: files are replaced by renaming, never written to in place; `bytepair.load` and
        // `docs/formats/native.md` ask the same of everybody else, and offer reading instead.
        let mapped = py.detach(|| unsafe { bytepair::Tokenizer::map(&file) });
        match mapped {
            // Some file systems cannot map files.
            Err(Error::Unreadable { .. }) => {
                Self::new(py.detach(|| bytepair::Tokenizer::open(&path)))
            }
            mapped => Self::new(mapped),
        }
    }

    /// Check that the tables in a file of the native format equal those rebuilt from its other
    /// sections.
    #[staticmethod]
    fn check(py: Python<'_>, data: &[u8]) -> PyResult<()> {
        errors::checked(py.detach(|| bytepair::formats::native::verify(data)))
    }

    /// Build a tokenizer that merges by rank, as tiktoken does; with `merges`, by a list of them, as
    /// Hugging Face tokenizers does; or, with `twins` too, that merges characters and falls back to one
    /// token for each byte. `twins` are ids whose bytes are also those of another token.
    #[staticmethod]
    #[pyo3(signature = (tokens, rules, special_tokens, *, merges=None, ignore_merges=false, twins=None,
                        notes=None))]
    fn from_parts(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        rules: &Bound<'_, PyAny>,
        special_tokens: &Bound<'_, PyAny>,
        merges: Option<Vec<(Vec<u8>, Vec<u8>)>>,
        ignore_merges: bool,
        twins: Option<BTreeMap<u32, Vec<u8>>>,
        notes: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let rule = match (&merges, &twins) {
            (_, Some(_)) => MergeRule::Characters,
            (Some(_), None) => MergeRule::Merges { ignore_merges },
            (None, None) => MergeRule::Ranks,
        };
        let (tokens, added) = (self::tokens(tokens)?, added_tokens(special_tokens)?);
        let (rules, notes) = (rules_of(rules)?, notes.unwrap_or_default());
        let twins = twins.unwrap_or_default().into_iter().map(|(id, token)| (token, id));
        let vocabulary = py.detach(|| Vocabulary::with_added(tokens, twins, added));
        let vocabulary = errors::checked(vocabulary)?;
        let merges = pairs(&vocabulary, &merges.unwrap_or_default())?;
        Self::new(py.detach(|| {
            let parts = TokenizerParts { vocabulary, rule, merges, rules, notes };
            bytepair::Tokenizer::from_parts(parts)
        }))
    }
}

/// Replace the byte strings of merges by their ids. Fails if one of them is not a token.
fn pairs(vocabulary: &Vocabulary, merges: &[(Vec<u8>, Vec<u8>)]) -> PyResult<Vec<(u32, u32)>> {
    let find = |token: &[u8], rank: usize| {
        vocabulary.id(token).ok_or_else(|| {
            let token = token.escape_ascii();
            PyKeyError::new_err(format!("merge {rank} contains b\"{token}\", which is not a token"))
        })
    };
    let pairs = merges.iter().enumerate();
    errors::collect(pairs.map(|(rank, (left, right))| Ok((find(left, rank)?, find(right, rank)?))))
}

/// The memory of a token in bytes, in addition to its own bytes, which are those of the mapping.
const TOKEN_BYTES: usize = 64;

/// Tokens and ids from a mapping from `bytes` to `int`.
fn tokens(mapping: &Bound<'_, PyAny>) -> PyResult<Vec<(Vec<u8>, u32)>> {
    let dict = as_dict(mapping)?;
    errors::checked(memory::check(dict.len() * TOKEN_BYTES))?;
    let token = |(token, id): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((token.extract::<&[u8]>()?.to_vec(), id.extract()?))
    };
    errors::collect(dict.iter().map(token))
}
