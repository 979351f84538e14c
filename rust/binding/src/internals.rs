//! Functions of a tokenizer that few users, or only the package itself, need; so the class stays small.
//! `bytepair.tokenizer` exports the public ones.

use std::collections::BTreeMap;

use bytepair::roles::by_names;
use bytepair::{MergeRule, Role, memory};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::model::PyModel;
use crate::rules::{PyTextRules, names};
use crate::text::{string, text as text_of};
use crate::tokenizer::PyTokenizer;
use crate::{arguments, arrays, errors, interrupt, rules};

/// Count the ids of each of many texts.
///
/// Args:
///     tokenizer: the tokenizer.
///     texts: as in `Tokenizer.encode_batch`.
///     special: as in `Tokenizer.encode`.
///     prepend: as in `Tokenizer.encode`, for each text; it counts.
///     append: as in `Tokenizer.encode`, for each text; it counts.
///     add_special_tokens: as in `Tokenizer.encode`, for each text; what it adds counts.
///     threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all.
///
/// Returns:
///     int64, one for each text.
///
/// Raises:
///     SpecialTokenError: as in `Tokenizer.encode`.
///     SplitError: as in `Tokenizer.encode`.
///
/// Example:
///     >>> import bytepair
///     >>> tok = bytepair.train(["hello hello"], 269)
///     >>> bytepair.tokenizer.count_batch(tok, ["hello!", ""]).tolist()
///     [2, 0]
#[pyfunction]
#[pyo3(signature = (tokenizer, texts, *, special=None, prepend=None, append=None,
                    add_special_tokens=None, threads=None))]
pub(crate) fn count_batch<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
    texts: &Bound<'py, PyAny>,
    special: Option<&Bound<'py, PyAny>>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    add_special_tokens: Option<&Bound<'py, PyAny>>,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let options = tokenizer.options(special, prepend, append, add_special_tokens)?;
    let strings = arguments::strings(texts)?;
    let texts = errors::collect(strings.iter().map(text_of))?;
    let threads = arguments::threads_for(threads, &texts);
    arrays::ready(py)?;
    let count = || tokenizer.core.count_batch(&texts, &options, threads);
    let counts = interrupt::detached(py, count);
    Ok(errors::checked(counts)?.into_pyarray(py))
}

/// Truncate a text to at most `max_tokens` ids.
///
/// The result is the text of the first (or last) `max_tokens` ids of `tok.encode(text)`, without
/// incomplete characters. If that text has more ids when encoded by itself, because it now ends
/// within a token, it is truncated again in the same way. So
/// `tok.count(truncate_text(tok, text, n)) <= n` always holds. A text that fits is returned
/// unchanged.
///
/// Args:
///     tokenizer: the tokenizer.
///     text: as in `Tokenizer.encode`; special tokens in it are text.
///     max_tokens: the maximum number of ids of the result.
///     keep: which end of the text to keep: "start" or "end".
///
/// Raises:
///     ValueError: if `keep` has another value.
///     SplitError: as in `Tokenizer.encode`.
///
/// Example:
///     >>> import bytepair
///     >>> from bytepair.tokenizer import truncate_text
///     >>> tok = bytepair.train(["hello hello"], 269)
///     >>> truncate_text(tok, "hello hello hello", 3)
///     'hello hello'
///     >>> truncate_text(tok, "hello hello!", 2, keep="end")
///     'hello!'
#[pyfunction]
#[pyo3(signature = (tokenizer, text, max_tokens, *, keep=None),
       text_signature = "(tokenizer, text, max_tokens, *, keep='start')")]
pub(crate) fn truncate_text<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
    text: &Bound<'py, PyAny>,
    max_tokens: &Bound<'py, PyAny>,
    keep: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyString>> {
    let keep = arguments::keep(keep)?;
    let max_tokens = arguments::integer("max_tokens", max_tokens, 0)?;
    let utf8 = arguments::utf8(arguments::string(text)?)?;
    let cut = interrupt::detached(py, || tokenizer.core.truncate_text(&utf8, max_tokens, keep));
    string(py, errors::checked(cut)?)
}

/// The pretokens of a text, in order; their concatenation is the text.
#[pyfunction]
pub(crate) fn pretokenize<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
    text: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    rules::pretokens(py, text, |text, sink| {
        let lossy = |pretoken: &[u8]| sink(String::from_utf8_lossy(pretoken).into_owned());
        tokenizer.core.for_each_pretoken(text, lossy)
    })
}

/// The added tokens with their flags, by id: the special tokens, and those that are ordinary text.
///
/// Example:
///     >>> import bytepair
///     >>> tok = bytepair.train(["hello"], 258, special_tokens=["<|bos|>"])
///     >>> [token.content for token in bytepair.tokenizer.added_tokens(tok)]
///     ['<|bos|>']
#[pyfunction]
pub(crate) fn added_tokens<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let added = tokenizer.core.vocabulary().added_tokens();
    added.iter().map(|token| rules::python_token(py, token)).collect()
}

/// What happens to a text before its pretokens are merged, and to ids after that.
///
/// Example:
///     >>> import bytepair
///     >>> bytepair.tokenizer.text_rules(bytepair.train(["hello"], 265)).normalizer
///     []
#[pyfunction]
pub(crate) fn text_rules(tokenizer: &PyTokenizer) -> PyTextRules {
    PyTextRules(tokenizer.core.rules().clone())
}

/// The ids of the tokens that only a whole pretoken becomes, if whole pretokens come first.
#[pyfunction]
pub(crate) fn whole_only_ids(py: Python<'_>, tokenizer: &PyTokenizer) -> PyResult<Vec<u32>> {
    errors::checked(py.detach(|| tokenizer.core.whole_only_ids()))
}

/// Whether every text is decoded to itself: `tok.decode(tok.encode(text)) == text`.
///
/// Not so if a normalizer changes text, if the pre-tokenizer drops some, if an added token that is
/// found in every text takes white space, if characters are unknown, if a decoder changes names, or
/// if no token covers a byte that texts have.
///
/// Example:
///     >>> import bytepair
///     >>> bytepair.tokenizer.is_lossless(bytepair.train(["hello hello"], 269))
///     True
#[pyfunction]
pub(crate) fn is_lossless(tokenizer: &PyTokenizer) -> bool {
    tokenizer.core.is_lossless()
}

/// Under the rule of merges: whether a pretoken that is a token is encoded as that token, without
/// merging.
///
/// Example:
///     >>> import bytepair
///     >>> bytepair.tokenizer.ignores_merges(bytepair.train(["hello hello"], 269))
///     False
#[pyfunction]
pub(crate) fn ignores_merges(tokenizer: &PyTokenizer) -> bool {
    tokenizer.core.rule() == MergeRule::Merges { ignore_merges: true }
}

/// The implementation that splits text: "table", "regex" or "steps"; or, if it is the scanner, the
/// name of its vector instructions ("scalar" without any).
///
/// Example:
///     >>> import bytepair
///     >>> tok = bytepair.train(["hello hello"], 265, pattern="(?<=a)b|.")
///     >>> bytepair.tokenizer.split_engine(tok)
///     'regex'
#[pyfunction]
pub(crate) fn split_engine(tokenizer: &PyTokenizer) -> &'static str {
    tokenizer.core.splitter().tier()
}

/// The ids of bytes that are merged as one pretoken, whether or not the split pattern would keep them
/// together.
#[pyfunction]
pub(crate) fn encode_pretoken(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    pretoken: &Bound<'_, PyAny>,
) -> PyResult<Vec<u32>> {
    let pretoken = arguments::bytes("pretoken", pretoken)?;
    errors::checked(py.detach(|| tokenizer.core.encode_pretoken(pretoken)))
}

/// How often training made each of the first merges in its corpus: those whose counts are known.
#[pyfunction]
pub(crate) fn merge_counts<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    arrays::ready(py)?;
    errors::checked(tokenizer.core.make_tables())?;
    let counts = errors::checked(memory::copy(tokenizer.core.merge_counts()))?;
    Ok(counts.into_pyarray(py))
}

/// The ids of tokens that are only decoded, because another token has the same bytes.
#[pyfunction]
pub(crate) fn twin_ids(tokenizer: &PyTokenizer) -> Vec<u32> {
    tokenizer.core.vocabulary().twins().to_vec()
}

/// The limit in bytes of the cache of repeated text; 0 if it is off.
#[pyfunction]
pub(crate) fn repeats(tokenizer: &PyTokenizer) -> usize {
    tokenizer.core.repeats()
}

// ---------------------------------------------------------------------------- copies and roles

/// A copy with other notes.
#[pyfunction]
pub(crate) fn with_notes(tokenizer: &PyTokenizer, notes: BTreeMap<String, String>) -> PyModel {
    PyModel::of(bytepair::Tokenizer::clone(&tokenizer.core).with_notes(notes))
}

/// A copy with other special tokens; ordinary tokens, merges and their counts stay.
#[pyfunction]
pub(crate) fn with_special_tokens(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    special_tokens: &Bound<'_, PyAny>,
) -> PyResult<PyModel> {
    let special = names(special_tokens)?;
    PyModel::new(py.detach(|| tokenizer.core.with_special_tokens(special)))
}

/// A copy whose cache of repeated text holds at most `bytes`; 0 switches it off.
#[pyfunction]
pub(crate) fn with_repeats(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    bytes: usize,
) -> PyResult<PyModel> {
    PyModel::new(py.detach(|| bytepair::Tokenizer::clone(&tokenizer.core).with_repeats(bytes)))
}

/// A copy that leaves out what no token covers, or that fails on it.
#[pyfunction]
pub(crate) fn with_uncovered_dropped(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    drops: bool,
) -> PyResult<PyModel> {
    PyModel::new(py.detach(|| tokenizer.core.with_uncovered_dropped(drops)))
}

/// Names of roles, each with the name of its special token.
type Roles = Vec<(&'static str, String)>;

/// The roles of the special tokens of a tokenizer, by its notes and their names.
#[pyfunction]
pub(crate) fn roles(tokenizer: &PyTokenizer) -> Roles {
    let named = |role: Role| Some((role.name(), tokenizer.core.role(role)?.0.to_owned()));
    Role::ALL.into_iter().filter_map(named).collect()
}

/// The roles that special tokens have by their names alone.
#[pyfunction]
pub(crate) fn usual_roles(special: Vec<String>) -> Roles {
    let names: Vec<&str> = special.iter().map(String::as_str).collect();
    by_names(&names).into_iter().map(|(role, name)| (role.name(), name.to_owned())).collect()
}
