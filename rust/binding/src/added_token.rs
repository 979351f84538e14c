//! `AddedToken`: a token that is found in a text before pretokens are merged.

use bytepair::AddedToken;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// A token that is found in a text by its content, before the text is split and merged.
///
/// Special tokens give a text its structure, and text contains them only where the caller allows it.
/// The others are ordinary text that always becomes one id, such as runs of spaces. The flags are those
/// of Hugging Face `tokenizers`.
///
/// Attributes:
///     content: the text.
///     id: the id.
///     special: whether the token is special.
///     lstrip: whether it takes the white space before it.
///     rstrip: whether it takes the white space after it.
///     single_word: whether it is found only between characters that are not part of a word.
///     normalized: whether it is looked for in the normalized text.
///
/// Example:
///     >>> import bytepair
///     >>> bytepair.train(["hello hello"], 269).added_tokens[0]
///     AddedToken('<|bos|>', 260)
#[pyclass(frozen, eq, hash, name = "AddedToken", module = "bytepair._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyAddedToken(pub(crate) AddedToken);

#[pymethods]
impl PyAddedToken {
    #[new]
    #[pyo3(signature = (
        content, id, *, special=true, lstrip=false, rstrip=false, single_word=false, normalized=false
    ))]
    #[expect(clippy::fn_params_excessive_bools, reason = "the flags of the format")]
    fn new(
        content: String,
        id: u32,
        special: bool,
        lstrip: bool,
        rstrip: bool,
        single_word: bool,
        normalized: bool,
    ) -> Self {
        Self(AddedToken { content, id, special, lstrip, rstrip, single_word, normalized })
    }

    /// The text of the token.
    #[getter]
    fn content(&self) -> &str {
        &self.0.content
    }

    /// The id of the token.
    #[getter]
    fn id(&self) -> u32 {
        self.0.id
    }

    /// Whether the token is special: found in a text only on request, and left out by decoding on request.
    #[getter]
    fn special(&self) -> bool {
        self.0.special
    }

    /// Whether the token takes white space before it.
    #[getter]
    fn lstrip(&self) -> bool {
        self.0.lstrip
    }

    /// Whether the token takes white space after it.
    #[getter]
    fn rstrip(&self) -> bool {
        self.0.rstrip
    }

    /// Whether the token is found only as a whole word.
    #[getter]
    fn single_word(&self) -> bool {
        self.0.single_word
    }

    /// Whether the token is found in the normalized text.
    #[getter]
    fn normalized(&self) -> bool {
        self.0.normalized
    }

    /// This token with another id.
    fn with_id(&self, id: u32) -> Self {
        Self(AddedToken { id, ..self.0.clone() })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let token = &self.0;
        let content = PyString::new(py, &token.content).repr()?;
        let flags = [
            ("special=False", !token.special),
            ("lstrip=True", token.lstrip),
            ("rstrip=True", token.rstrip),
            ("single_word=True", token.single_word),
            ("normalized=True", token.normalized),
        ];
        let flags = flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| *flag);
        let shown: Vec<String> = [content.to_string(), token.id.to_string()]
            .into_iter()
            .chain(flags.map(str::to_owned))
            .collect();
        Ok(format!("AddedToken({})", shown.join(", ")))
    }
}

/// Added tokens from a mapping of names to ids, which are special tokens, or from a list of values.
pub(crate) fn added_tokens(value: &Bound<'_, PyAny>) -> PyResult<Vec<AddedToken>> {
    if let Ok(tokens) = value.cast::<PyList>() {
        let token = |item: Bound<'_, PyAny>| Ok(item.cast::<PyAddedToken>()?.get().0.clone());
        return tokens.iter().map(token).collect();
    }
    let names = PyDict::new(value.py());
    names.update(value.cast()?)?;
    let token = |(name, id): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok(AddedToken::special(name.extract::<String>()?, id.extract()?))
    };
    names.iter().map(token).collect()
}
