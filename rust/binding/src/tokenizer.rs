//! `Tokenizer`: encoding, decoding and looking things up. Python adds the rest in a subclass.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytepair::MergeRule;
use numpy::PyArray1;
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::model::Model;
use crate::{arguments, errors};

/// A tokenizer: immutable, shared freely between threads.
#[pyclass(frozen, subclass, module = "bytepair._core")]
pub(crate) struct Tokenizer(pub(crate) Arc<bytepair::Tokenizer>);

#[pymethods]
impl Tokenizer {
    #[new]
    fn new(model: &Model) -> Self {
        Self(Arc::clone(&model.0))
    }

    /// Encode one text into a list of ids.
    ///
    /// Args:
    ///     text: the text. Lone surrogates become U+FFFD, as in tiktoken.
    ///     special: what the text of a special token means: "text" (or None) nothing, it is ordinary
    ///         text; "all" it becomes its id; "error" it is an error; a collection of names: those become
    ///         their ids, others are text.
    ///     prepend: a special token by name, or any id, to begin with.
    ///     append: a special token by name, or any id, to end with.
    ///
    /// Returns:
    ///     The ids, a list of int.
    ///
    /// Raises:
    ///     SpecialTokenError: if a named special token does not exist, or occurs where it is forbidden.
    ///     SplitError: if the split pattern gives up on the text, or no token covers one of its bytes.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.encode("hello<|bos|>", special="all", append="<|user_end|>")
    ///     [259, 260, 262]
    #[pyo3(signature = (text, *, special=None, prepend=None, append=None))]
    fn encode(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u32>> {
        let options = arguments::options(&self.0, special, prepend, append)?;
        let text = arguments::text(text)?;
        py.detach(|| self.0.encode_with(&text, &options)).map_err(|e| errors::python(&e))
    }

    /// Encode many texts, each into a list of ids.
    ///
    /// Args:
    ///     texts: an iterable of str.
    ///     special: as in `encode`.
    ///     prepend: as in `encode`, for each text.
    ///     append: as in `encode`, for each text.
    ///     threads: how many threads to use at most; None means `RAYON_NUM_THREADS`, or else all.
    ///
    /// Returns:
    ///     A list of ids for each text, in order: the same as `encode` gives one by one.
    ///
    /// Raises:
    ///     SpecialTokenError: as in `encode`.
    ///     SplitError: as in `encode`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.encode_batch(["hello", ""])
    ///     [[259], []]
    #[pyo3(signature = (texts, *, special=None, prepend=None, append=None, threads=None))]
    fn encode_batch(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Vec<u32>>> {
        let options = arguments::options(&self.0, special, prepend, append)?;
        let threads = arguments::threads(threads)?;
        let strings = arguments::strings(texts)?;
        let texts = strings.iter().map(arguments::text).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| self.0.encode_batch(&texts, &options, threads)).map_err(|e| errors::python(&e))
    }

    /// Decode ids into text.
    ///
    /// Args:
    ///     ids: an iterable of int, or a numpy array of integers.
    ///     errors: what to do with bytes that are not UTF-8: "replace" puts U+FFFD, "strict" raises,
    ///         or any other of Python's error handlers.
    ///
    /// Returns:
    ///     The text of the tokens, end to end; special tokens as their names.
    ///
    /// Raises:
    ///     UnknownIdError: if an id stands for no token.
    ///     UnicodeDecodeError: if the bytes are not UTF-8 and `errors` is "strict".
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.decode([259, 33, 0xFF])
    ///     'hello!\ufffd'
    #[pyo3(signature = (ids, *, errors="replace"))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        errors: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        decoded(py, &self.bytes_of(py, ids)?, errors)
    }

    /// Decode ids into the bytes of their tokens, end to end; nothing is lost.
    ///
    /// Args:
    ///     ids: an iterable of int, or a numpy array of integers.
    ///
    /// Raises:
    ///     UnknownIdError: if an id stands for no token.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.decode_bytes([259, 33, 0xFF])
    ///     b'hello!\xff'
    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.bytes_of(py, ids)?))
    }

    /// Decode many lists of ids, each into text.
    ///
    /// Args:
    ///     batch: an iterable of what `decode` takes.
    ///     errors: as in `decode`.
    ///     threads: how many threads to use at most; None means `RAYON_NUM_THREADS`, or else all.
    ///
    /// Raises:
    ///     UnknownIdError: as in `decode`.
    ///     UnicodeDecodeError: as in `decode`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.decode_batch([[259, 33], []])
    ///     ['hello!', '']
    #[pyo3(signature = (batch, *, errors="replace", threads=None))]
    fn decode_batch<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
        errors: &str,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let threads = arguments::threads(threads)?;
        let lists = batch
            .try_iter()?
            .map(|ids| arguments::ids(&self.0, &ids?))
            .collect::<PyResult<Vec<_>>>()?;
        let texts = py.detach(|| self.0.decode_batch(&lists, threads));
        let texts = texts.map_err(|e| errors::python(&e))?;
        texts.iter().map(|bytes| decoded(py, bytes, errors)).collect()
    }

    /// The bytes of one id; of a special token its name.
    ///
    /// Args:
    ///     id: the id.
    ///
    /// Raises:
    ///     UnknownIdError: if the id stands for no token.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.token_bytes(259)
    ///     b'hello'
    fn token_bytes<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let id = arguments::id(&self.0, id)?;
        let token = self.0.token_bytes(id).map_err(|e| errors::python(&e))?;
        Ok(PyBytes::new(py, token))
    }

    /// The id of an ordinary token; special tokens are in `special_tokens`.
    ///
    /// Args:
    ///     token: its bytes.
    ///
    /// Raises:
    ///     KeyError: if there is no such token.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.token_id(b"hello")
    ///     259
    fn token_id(&self, token: &[u8]) -> PyResult<u32> {
        self.0.vocabulary().id(token).ok_or_else(|| {
            PyKeyError::new_err(format!("b\"{}\" is not a token", token.escape_ascii()))
        })
    }

    /// The pretokens of a text, in order; their concatenation is the text.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.pretokenize("hello world")
    ///     ['hello', ' world']
    fn pretokenize<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'_, PyString>,
    ) -> PyResult<Bound<'py, PyList>> {
        let text = arguments::text(text)?;
        let pretokens = py.detach(|| {
            let mut pretokens = Vec::new();
            self.0.splitter().for_each(&text, |pretoken| pretokens.push(pretoken))?;
            Ok(pretokens)
        });
        PyList::new(py, pretokens.map_err(|e: bytepair::Error| errors::python(&e))?)
    }

    /// Encode the bytes of one pretoken, whatever the split pattern would make of them.
    ///
    /// Raises:
    ///     SplitError: if no token covers one of the bytes.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.encode_pretoken(b"\xff")
    ///     [255]
    fn encode_pretoken(&self, py: Python<'_>, pretoken: &[u8]) -> PyResult<Vec<u32>> {
        py.detach(|| self.0.encode_pretoken(pretoken)).map_err(|e| errors::python(&e))
    }

    /// The bytes of the native format, as `save` writes them.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.to_bytes()[:8]
    ///     b'BYTEPAIR'
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_bytes()))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| *self.0 == *other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.fingerprint().hash(&mut hasher);
        hasher.finish()
    }

    /// How many ids there are, special tokens and holes included.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocabulary().len()
    }

    /// The special tokens with their ids.
    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, id) in self.0.vocabulary().special_tokens() {
            dict.set_item(name, id)?;
        }
        Ok(dict)
    }

    /// The split pattern, as a regular expression.
    #[getter]
    fn pattern(&self) -> &str {
        self.0.pattern().regex()
    }

    /// The pairs of tokens that merge, in order.
    #[getter]
    fn merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let merges = py.detach(|| self.0.merges());
        let bytes = |id: u32| self.0.token_bytes(id).map(|token| PyBytes::new(py, token));
        let pair = |&(left, right): &(u32, u32)| Ok((bytes(left)?, bytes(right)?));
        let pairs = merges.iter().map(pair).collect::<bytepair::Result<Vec<_>>>();
        PyList::new(py, pairs.map_err(|e| errors::python(&e))?)
    }

    /// The ordinary tokens with their ranks, as tiktoken has them.
    #[getter]
    fn mergeable_ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (token, id) in self.0.vocabulary().ordinary_tokens() {
            dict.set_item(PyBytes::new(py, token), id)?;
        }
        Ok(dict)
    }

    /// How many times training made each merge in its text; empty if not known.
    #[getter]
    fn merges_made<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, self.0.merges_made())
    }

    /// Where the tokenizer comes from, as keys and values.
    #[getter]
    fn notes(&self) -> std::collections::BTreeMap<String, String> {
        self.0.notes().clone()
    }

    /// Which neighbours merge: `"ranks"` (tiktoken's rule) or `"merges"` (Hugging Face's).
    #[getter]
    fn merge_rule(&self) -> &'static str {
        match self.0.rule() {
            MergeRule::Ranks => "ranks",
            MergeRule::Merges { .. } => "merges",
        }
    }

    /// Under the rule of merges: whether a pretoken that is a token wins outright.
    #[getter]
    fn ignore_merges(&self) -> bool {
        matches!(self.0.rule(), MergeRule::Merges { ignore_merges: true, .. })
    }

    /// The version of Unicode whose classes split text.
    #[getter]
    #[expect(clippy::unused_self, reason = "one version today; a value of the tokenizer to Python")]
    fn unicode_version(&self) -> &'static str {
        bytepair::pretokenize::UNICODE_VERSION
    }

    /// A hash of the four values, stable between versions and machines.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.0.fingerprint()
    }

    /// The way in which text is split, the faster or the slower.
    #[getter]
    fn splitter(&self) -> &'static str {
        self.0.splitter().tier()
    }

    /// Whether training ran out of pairs before it had `vocab_size` ids.
    #[getter]
    fn exhausted(&self) -> bool {
        self.0.notes().get("exhausted").is_some_and(|value| value == "true")
    }
}

impl Tokenizer {
    /// What the core knows.
    pub(crate) fn core(&self) -> &bytepair::Tokenizer {
        &self.0
    }

    fn bytes_of(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let ids = arguments::ids(&self.0, ids)?;
        py.detach(|| self.0.decode_bytes(&ids)).map_err(|e| errors::python(&e))
    }
}

/// Bytes as a `str`. Python's own decoder knows what each value of `errors` means.
fn decoded<'py>(py: Python<'py>, bytes: &[u8], errors: &str) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1(intern!(py, "decode"), ("utf-8", errors)),
    }
}
