//! `Model`: a tokenizer of the core, from which Python creates its `Tokenizer`.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use bytepair::{Error, Result, Tokenizer, Vocabulary, memory, shortened};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::rules::{added_tokens, rules as rules_of};
use crate::{arguments, errors};

/// The values of a tokenizer, from training or from a file.
#[pyclass(frozen, name = "Model", module = "bytepair._core")]
pub(crate) struct PyModel(pub(crate) Arc<bytepair::Tokenizer>);

/// Where a tokenizer comes from, as keys and values.
type Notes = BTreeMap<String, String>;

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

    /// Build a tokenizer from ranks, as tiktoken uses them.
    #[staticmethod]
    #[pyo3(signature = (mergeable_ranks, rules, special_tokens, notes=None))]
    fn from_ranks(
        py: Python<'_>,
        mergeable_ranks: &Bound<'_, PyAny>,
        rules: &Bound<'_, PyAny>,
        special_tokens: &Bound<'_, PyAny>,
        notes: Option<Notes>,
    ) -> PyResult<Self> {
        let (tokens, added) = (tokens(mergeable_ranks)?, added_tokens(special_tokens)?);
        let rules = rules_of(rules)?;
        Self::new(py.detach(|| {
            let vocabulary = Vocabulary::with_added(tokens, [], added)?;
            let tokenizer = bytepair::Tokenizer::from_ranks(vocabulary, rules)?;
            Ok(tokenizer.with_notes(notes.unwrap_or_default()))
        }))
    }

    /// Build a tokenizer from a list of merges, as Hugging Face tokenizers use it.
    #[staticmethod]
    #[pyo3(signature = (tokens, merges, rules, special_tokens, ignore_merges=false, notes=None))]
    fn from_merges(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        merges: Vec<(Vec<u8>, Vec<u8>)>,
        rules: &Bound<'_, PyAny>,
        special_tokens: &Bound<'_, PyAny>,
        ignore_merges: bool,
        notes: Option<Notes>,
    ) -> PyResult<Self> {
        let (tokens, added) = (self::tokens(tokens)?, added_tokens(special_tokens)?);
        let (merges, rules) = (pairs(&tokens, &merges)?, rules_of(rules)?);
        Self::new(py.detach(|| {
            let vocabulary = Vocabulary::with_added(tokens, [], added)?;
            let tokenizer =
                bytepair::Tokenizer::from_merges(vocabulary, merges, ignore_merges, rules)?;
            Ok(tokenizer.with_notes(notes.unwrap_or_default()))
        }))
    }

    /// Build a tokenizer that merges characters and falls back to one token for each byte. `twins`
    /// are ids whose bytes are also those of another token.
    #[staticmethod]
    fn from_characters(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        twins: BTreeMap<u32, Vec<u8>>,
        merges: Vec<(Vec<u8>, Vec<u8>)>,
        rules: &Bound<'_, PyAny>,
        special_tokens: &Bound<'_, PyAny>,
        notes: Notes,
    ) -> PyResult<Self> {
        let (tokens, added) = (self::tokens(tokens)?, added_tokens(special_tokens)?);
        let (merges, rules) = (pairs(&tokens, &merges)?, rules_of(rules)?);
        Self::new(py.detach(|| {
            let twins = twins.into_iter().map(|(id, token)| (token, id));
            let vocabulary = Vocabulary::with_added(tokens, twins, added)?;
            Ok(bytepair::Tokenizer::from_characters(vocabulary, merges, rules)?.with_notes(notes))
        }))
    }
}

/// Replace the byte strings of merges by their ids. Fails if one of them is not a token.
fn pairs(tokens: &[(Vec<u8>, u32)], merges: &[(Vec<u8>, Vec<u8>)]) -> PyResult<Vec<(u32, u32)>> {
    // Four entries for each token, because half of a hash map may be empty.
    errors::checked(memory::check(tokens.len() * 4 * size_of::<(&[u8], u32)>()))?;
    let by_bytes: HashMap<&[u8], u32> = tokens.iter().map(|(t, id)| (&**t, *id)).collect();
    let find = |token: &[u8], rank: usize| {
        by_bytes.get(token).copied().ok_or_else(|| {
            let token = token.escape_ascii();
            PyKeyError::new_err(format!("merge {rank} contains b\"{token}\", which is not a token"))
        })
    };
    let pairs = merges.iter().enumerate();
    errors::collect(pairs.map(|(rank, (left, right))| Ok((find(left, rank)?, find(right, rank)?))))
}

/// Tokens and ids from a mapping from `bytes` to `int`.
fn tokens(mapping: &Bound<'_, PyAny>) -> PyResult<Vec<(Vec<u8>, u32)>> {
    let dict = as_dict(mapping)?;
    let mut unchecked = 0;
    errors::collect(dict.iter().map(|(token, id)| {
        let token: &[u8] = token.extract()?;
        // Many small allocations are checked together.
        unchecked += token.len() + TOKEN_BYTES;
        if unchecked > CHECK_BYTES {
            errors::checked(memory::check(std::mem::take(&mut unchecked)))?;
        }
        Ok((token.to_vec(), id.extract()?))
    }))
}

/// The memory of a token in bytes, in addition to its own bytes. Available memory is checked once
/// for every `CHECK_BYTES` bytes.
const TOKEN_BYTES: usize = 64;
const CHECK_BYTES: usize = 1 << 20;

/// Special tokens and ids from a mapping from `str` to `int`.
pub(crate) fn names(mapping: &Bound<'_, PyAny>) -> PyResult<Vec<(String, u32)>> {
    as_dict(mapping)?.iter().map(|(name, id)| Ok((name.extract()?, id.extract()?))).collect()
}

fn as_dict<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(mapping.py());
    dict.update(mapping.cast()?)?;
    Ok(dict)
}

/// The memory of a merge or a token in Python, in bytes.
const MERGE_BYTES: usize = 300;

/// The pairs of tokens that merge, in order.
pub(crate) fn merges<'py>(py: Python<'py>, core: &Tokenizer) -> PyResult<Bound<'py, PyList>> {
    errors::checked(memory::check(core.vocabulary().len() * MERGE_BYTES))?;
    errors::checked(py.detach(|| core.make_tables()))?;
    let bytes = |id: u32| core.token_bytes(id).map(|token| PyBytes::new(py, token));
    let pair = |&(left, right): &(u32, u32)| Ok((bytes(left)?, bytes(right)?));
    let pairs = core.merges().iter().map(|merge| errors::checked(pair(merge)));
    errors::list(py, errors::collect(pairs)?)
}

/// The ordinary tokens with their ids.
pub(crate) fn ranks<'py>(py: Python<'py>, core: &Tokenizer) -> PyResult<Bound<'py, PyDict>> {
    errors::checked(memory::check(core.vocabulary().len() * MERGE_BYTES))?;
    let dict = PyDict::new(py);
    for (token, id) in core.vocabulary().ordinary_tokens() {
        dict.set_item(PyBytes::new(py, token), id)?;
    }
    Ok(dict)
}

/// The id of an ordinary token, given as bytes or as text; `KeyError` if there is none.
pub(crate) fn token_id(core: &Tokenizer, token: &Bound<'_, PyAny>) -> PyResult<u32> {
    if let Ok(text) = token.cast::<PyString>() {
        let text = arguments::utf8(text)?;
        let unknown = || PyKeyError::new_err(shortened(unknown_token(core, &text)));
        return core.vocabulary().id(text.as_bytes()).ok_or_else(unknown);
    }
    let wrong = |_| arguments::refused("token", token, "bytes or a str");
    let token: &[u8] = token.extract().map_err(wrong)?;
    let unknown = || format!("b\"{}\" is not a token", token.escape_ascii());
    core.vocabulary().id(token).ok_or_else(|| PyKeyError::new_err(shortened(unknown())))
}

/// Why a text has no id.
fn unknown_token(core: &Tokenizer, text: &str) -> String {
    match core.vocabulary().special(text) {
        Some(id) => format!("{text:?} is a special token, id {id} (see special_tokens)"),
        None => format!("{text:?} is not a token; encode gives the ids of any text"),
    }
}
