//! `TextRules`: what a tokenizer does to a text before it merges, as a value.

use std::collections::HashMap;

use bytepair::rules::{
    Normalizer, NormalizerStep, PreTokenizer, PreTokenizerStep, SpacePrefix, TextRules as CoreRules,
};
use bytepair::{AddedToken, Error, Pattern, Result, Splitter, memory};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::{arguments, errors, interrupt};

/// The names of the normalizers that need no further values.
const NORMALIZERS: [(&str, NormalizerStep); 10] = [
    ("NFC", NormalizerStep::Nfc),
    ("NFD", NormalizerStep::Nfd),
    ("NFKC", NormalizerStep::Nfkc),
    ("NFKD", NormalizerStep::Nfkd),
    ("Lowercase", NormalizerStep::Lowercase),
    ("StripAccents", NormalizerStep::StripAccents),
    ("spaces", NormalizerStep::Spaces(SpacePrefix::Never)),
    ("spaces always", NormalizerStep::Spaces(SpacePrefix::Always)),
    ("spaces missing", NormalizerStep::Spaces(SpacePrefix::Missing)),
    ("spaces first", NormalizerStep::Spaces(SpacePrefix::First)),
];

/// A pattern from a regular expression or a list of them.
pub(crate) fn pattern_of(value: &Bound<'_, PyAny>) -> PyResult<Pattern> {
    errors::checked(Pattern::in_steps(steps(value)?))
}

/// The text of each step of a pattern: a string, or the strings of a list.
fn steps(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(step) = value.cast::<PyString>() {
        return Ok(vec![step.extract()?]);
    }
    let allowed = "a str, or a list of str without lone surrogates";
    value.extract().map_err(|_| arguments::refused("pattern", value, allowed))
}

/// A pattern as Python has it: a regular expression, or a tuple of several.
pub(crate) fn python_pattern<'py>(
    py: Python<'py>,
    pattern: &Pattern,
) -> PyResult<Bound<'py, PyAny>> {
    match pattern.regex() {
        Some(regex) => Ok(PyString::new(py, regex).into_any()),
        None => Ok(PyTuple::new(py, pattern.steps())?.into_any()),
    }
}

/// Rules from a value of this class, or from a pattern.
pub(crate) fn rules(value: &Bound<'_, PyAny>) -> PyResult<CoreRules> {
    match value.cast::<PyTextRules>() {
        Ok(rules) => Ok(rules.get().0.clone()),
        Err(_) => pattern_of(value).map(CoreRules::from),
    }
}

/// What a tokenizer does to a text before its pretokens are merged, and to ids after that.
///
/// Example:
///     >>> from bytepair._core import TextRules
///     >>> rules = TextRules(r"\S+|\s+", normalizer=["NFC"])
///     >>> rules.pattern, rules.normalizer
///     ('\\S+|\\s+', ['NFC'])
#[pyclass(frozen, eq, name = "TextRules", module = "bytepair._core")]
#[derive(PartialEq)]
pub(crate) struct PyTextRules(pub(crate) CoreRules);

#[pymethods]
impl PyTextRules {
    /// Rules that split by a pattern: a regular expression, or a list of several, of which each
    /// splits the pieces of the previous one. `normalizer` lists names; `user_defined` are ids of
    /// tokens that are found in pretokens before these are merged.
    #[new]
    #[pyo3(signature = (pattern, *, normalizer=Vec::new(), user_defined=Vec::new()))]
    fn new(
        pattern: &Bound<'_, PyAny>,
        normalizer: Vec<String>,
        mut user_defined: Vec<u32>,
    ) -> PyResult<Self> {
        let step = |name: &String| {
            let entry = NORMALIZERS.iter().find(|(other, _)| other == name);
            let names = NORMALIZERS.map(|(name, _)| name).join(", ");
            let reason = format!("{name:?} is not one of {names}").into();
            let place = "normalizer".to_owned();
            entry.map(|(_, step)| step.clone()).ok_or(Error::Unsupported { place, reason })
        };
        let steps = errors::checked(normalizer.iter().map(step).collect())?;
        user_defined.sort_unstable();
        Ok(Self(CoreRules {
            normalizer: Normalizer { steps },
            pre_tokenizer: PreTokenizer::from(pattern_of(pattern)?),
            user_defined,
            ..CoreRules::default()
        }))
    }

    /// The split pattern: a regular expression, or a list of several; None if text is split in
    /// another way.
    #[getter]
    fn pattern<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let pattern = self.0.pre_tokenizer.pattern();
        pattern.map(|pattern| python_pattern(py, &pattern)).transpose()
    }

    /// The names of the steps of the normalizer.
    #[getter]
    fn normalizer(&self) -> Vec<&'static str> {
        let name = |step: &NormalizerStep| {
            let entry = NORMALIZERS.iter().find(|(_, other)| other == step);
            entry.map_or(step.kind(), |(name, _)| name)
        };
        self.0.normalizer.steps.iter().map(name).collect()
    }

    /// Whether the first space of a text stays in its span, if spans leave out the spaces at the ends
    /// of tokens; None if they do not.
    #[getter]
    fn trim_offsets(&self) -> Option<bool> {
        self.0.post_processor.trim_offsets
    }

    /// The names of the steps of the pre-tokenizer.
    #[getter]
    fn pre_tokenizer(&self) -> Vec<&'static str> {
        self.0.pre_tokenizer.steps.iter().map(PreTokenizerStep::kind).collect()
    }

    /// The ids that the post-processor puts before and after one text.
    #[getter]
    fn around(&self) -> (Vec<u32>, Vec<u32>) {
        self.0.post_processor.around()
    }

    /// The ids of the ordinary tokens that are found in pretokens before these are merged.
    #[getter]
    fn user_defined(&self) -> Vec<u32> {
        self.0.user_defined.clone()
    }

    /// Whether merging starts from symbols with names, prefixes or suffixes.
    #[getter]
    fn has_symbols(&self) -> bool {
        self.0.symbols.is_some()
    }

    /// Whether ids become text by steps that work on the names of tokens, instead of by their bytes.
    #[getter]
    fn decodes_names(&self) -> bool {
        self.0.decoder != bytepair::rules::Decoder::Bytes
    }

    /// Whether what no token covers is left out before merging, instead of being an error.
    #[getter]
    fn drops_uncovered(&self) -> bool {
        self.0.drops_uncovered
    }

    /// These rules with the new ids of tokens, by the old ones; ids of other tokens are left out.
    fn renumbered(&self, ids: HashMap<u32, u32>) -> Self {
        Self(self.0.renumbered(|id| ids.get(&id).copied()))
    }
}

/// Added tokens from a mapping of names to ids, which are special tokens, or from a list of
/// `AddedToken` of Python, a tuple of the text, the id and the flags.
pub(crate) fn added_tokens(value: &Bound<'_, PyAny>) -> PyResult<Vec<AddedToken>> {
    let Ok(tokens) = value.cast::<PyList>() else {
        let special = names(value)?.into_iter();
        return Ok(special.map(|(name, id)| AddedToken::special(name, id)).collect());
    };
    let token = |item: Bound<'_, PyAny>| {
        let (content, id, special, lstrip, rstrip, single_word, normalized) = item.extract()?;
        Ok(AddedToken { id, content, special, lstrip, rstrip, single_word, normalized })
    };
    tokens.iter().map(token).collect()
}

/// An `AddedToken` of Python.
pub(crate) fn python_token<'py>(
    py: Python<'py>,
    token: &AddedToken,
) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let AddedToken { id, content, special, lstrip, rstrip, single_word, normalized } = token;
    let values = (content, id, special, lstrip, rstrip, single_word, normalized);
    CLASS.import(py, "bytepair.properties.tokens", "AddedToken")?.call1(values)
}

/// Special tokens and ids from a mapping from `str` to `int`.
pub(crate) fn names(mapping: &Bound<'_, PyAny>) -> PyResult<Vec<(String, u32)>> {
    as_dict(mapping)?.iter().map(|(name, id)| Ok((name.extract()?, id.extract()?))).collect()
}

pub(crate) fn as_dict<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(mapping.py());
    dict.update(mapping.cast()?)?;
    Ok(dict)
}

// ---------------------------------------------------------------------------- patterns

/// Bytes of memory for a pretoken in Python.
const PRETOKEN_BYTES: usize = 64;

/// Splits text by a pattern.
#[pyclass(frozen, name = "Splitter", module = "bytepair._core")]
pub(crate) struct PySplitter {
    splitter: Splitter,
}

#[pymethods]
impl PySplitter {
    #[new]
    fn new(pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        let splitter = Splitter::new(&pattern_of(pattern)?);
        Ok(Self { splitter: errors::checked(splitter)? })
    }

    /// The pretokens of a text, in order.
    fn pretokenize<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        pretokens(py, text, |text, sink| {
            self.splitter.for_each(text, |pretoken| sink(pretoken.into()))
        })
    }
}

/// The pretokens of a text: those with which `for_each` calls its second argument.
pub(crate) fn pretokens<'py>(
    py: Python<'py>,
    text: &Bound<'_, PyAny>,
    for_each: impl Fn(&str, &mut dyn FnMut(String)) -> Result<()> + Sync,
) -> PyResult<Bound<'py, PyList>> {
    let text = arguments::utf8(arguments::string(text)?)?;
    let pretokens = interrupt::detached(py, || {
        let mut pretokens = Vec::new();
        for_each(&text, &mut |pretoken| pretokens.push(pretoken))?;
        memory::check(text.len() + pretokens.len() * PRETOKEN_BYTES)?;
        Ok(pretokens)
    });
    errors::list(py, errors::checked(pretokens)?)
}

/// The regular expression of a named pattern, or the given expression itself if it is valid; of a list,
/// those of its items, which are the steps of a pattern.
#[pyfunction]
pub(crate) fn pattern<'py>(
    py: Python<'py>,
    name_or_regex: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut all = Vec::new();
    for name in steps(name_or_regex)? {
        all.extend_from_slice(errors::checked(Pattern::new(&name))?.steps());
    }
    python_pattern(py, &errors::checked(Pattern::in_steps(all))?)
}
