//! `Tokenizer`: encoding and lookup; `decoding` has the methods that decode. A Python subclass adds
//! the rest.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use bytepair::formats::native::Tables;
use bytepair::{EncodeOptions, MergeRule, Text, memory};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString};

use crate::arguments::Options;
use crate::ints::Ints;
use crate::model::PyModel;
use crate::rules::python_pattern;
use crate::text::text as text_of;
use crate::{arguments, arrays, errors, interrupt};

/// An immutable tokenizer, which threads may share.
#[pyclass(frozen, subclass, name = "Tokenizer", module = "bytepair._core")]
pub(crate) struct PyTokenizer {
    pub(crate) core: Arc<bytepair::Tokenizer>,
    pub(crate) ints: Ints,
    options: Options,
    /// The ids that `skip_special_tokens` leaves out, in order, collected when first needed.
    pub(crate) skippable: OnceLock<Arc<[u32]>>,
}

#[pymethods]
impl PyTokenizer {
    #[new]
    #[pyo3(signature = (model=None))]
    fn new(py: Python<'_>, model: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let model = model.and_then(|model| model.cast::<PyModel>().ok());
        let core = model.map(|model| Arc::clone(&model.get().0)).ok_or_else(|| {
            PyTypeError::new_err(
                "a Tokenizer is made by bytepair.train(texts), bytepair.load(path), \
                 Tokenizer.from_ranks(...) or Tokenizer.from_merges(...)",
            )
        })?;
        let ints = Ints::new(core.vocabulary().len())?;
        let (options, skippable) = (Options::new(&core), OnceLock::new());
        let tokenizer = Self { core, ints, options, skippable };
        tokenizer.warm_up(py);
        Ok(tokenizer)
    }

    fn __len__(&self) -> usize {
        self.vocab_size()
    }

    /// A tokenizer is always true, even one without ids.
    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __bool__(&self) -> bool {
        true
    }

    /// Encode one text into a list of ids.
    ///
    /// Args:
    ///     text: the text. Lone surrogates become U+FFFD, as in tiktoken.
    ///     special: how the text of a special token is encoded: "text" (or None) as ordinary
    ///         text; "all" as its id; "error" raises; a collection of names: those as
    ///         their ids, others as text. Added tokens that control nothing, such as runs of
    ///         spaces, are found in every text, except with "none".
    ///     prepend: a special token by name, or any id, to begin with.
    ///     append: a special token by name, or any id, to end with.
    ///     add_special_tokens: whether to add the ids that the post-processor of a `tokenizer.json`
    ///         puts around a text, as `AutoTokenizer` does; none without one.
    ///
    /// Returns:
    ///     The ids, a list of int.
    ///
    /// Raises:
    ///     SpecialTokenError: if a named special token is unknown, or occurs where it is forbidden.
    ///     SplitError: if the split pattern fails on the text, or no token covers one of its bytes.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.encode("hello<|bos|>", special="all", append="<|user_end|>")
    ///     [259, 260, 262]
    #[pyo3(signature = (text, *, special=None, prepend=None, append=None, add_special_tokens=None,
                        allowed_special=None, disallowed_special=None),
           text_signature = "($self, text, *, special=None, prepend=None, append=None, \
                             add_special_tokens=None)")]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        special: Option<&Bound<'py, PyAny>>,
        prepend: Option<&Bound<'py, PyAny>>,
        append: Option<&Bound<'py, PyAny>>,
        add_special_tokens: Option<&Bound<'py, PyAny>>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        arguments::no_habits("encode", [allowed_special, disallowed_special])?;
        let options = self.options(special, prepend, append, add_special_tokens)?;
        let text = text_of(arguments::string(text)?)?;
        if interrupt::is_quick(&self.core, &text) {
            let list = self.core.encode_text(&text, &options, |ids| self.ints.list(py, ids));
            return errors::checked(list)?;
        }
        let list = |ids: &[u32]| Python::attach(|py| Ok(self.ints.list(py, ids)?.unbind()));
        let list = interrupt::detached(py, || self.core.encode_text(&text, &options, list));
        errors::checked(list)?.map(|list: Py<PyList>| list.into_bound(py))
    }

    /// Encode many texts, each into a list of ids; `pad` makes rows of equal length of them.
    ///
    /// Args:
    ///     texts: an iterable of str, or an Arrow column (of pyarrow, polars, pandas, ...) without
    ///         nulls.
    ///     special: as in `encode`.
    ///     prepend: as in `encode`, for each text.
    ///     append: as in `encode`, for each text.
    ///     add_special_tokens: as in `encode`, for each text.
    ///     threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all.
    ///
    /// Returns:
    ///     A list of ids for each text, as `encode` returns it.
    ///
    /// Raises:
    ///     ArgumentError: if `texts` is a text, a mapping or a table.
    ///     SpecialTokenError: as in `encode`.
    ///     SplitError: as in `encode`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.encode_batch(["hello", ""])
    ///     [[259], []]
    #[pyo3(signature = (texts, *, special=None, prepend=None, append=None, add_special_tokens=None,
                        threads=None, **others),
           text_signature = "($self, texts, *, special=None, prepend=None, append=None, \
                             add_special_tokens=None, threads=None)")]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        special: Option<&Bound<'py, PyAny>>,
        prepend: Option<&Bound<'py, PyAny>>,
        append: Option<&Bound<'py, PyAny>>,
        add_special_tokens: Option<&Bound<'py, PyAny>>,
        threads: Option<arguments::ThreadCount>,
        others: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        arguments::no_others("encode_batch", others)?;
        let options = self.options(special, prepend, append, add_special_tokens)?;
        let strings = arguments::strings(texts)?;
        let texts = errors::collect(strings.iter().map(text_of))?;
        let threads = arguments::threads_for(threads, &texts);
        let lists = || arrays::lists(&self.core, &self.ints, &texts, &options, threads);
        errors::list(py, py.detach(lists)?)
    }

    /// Encode many texts into one array of ids, without a Python object for each.
    ///
    /// A long text is split among threads where that changes no id, unless special tokens are
    /// searched. The array of one text is `encode_batch_to_numpy([text]).ids`.
    ///
    /// Args:
    ///     texts: as in `encode_batch`.
    ///     special: as in `encode`.
    ///     prepend: as in `encode`, for each text.
    ///     append: as in `encode`, for each text.
    ///     add_special_tokens: as in `encode`, for each text.
    ///     dtype: the type of the ids, such as "int64" for the embeddings of a model; None means
    ///         uint16 if the vocabulary has at most 65,536 ids, else uint32.
    ///     threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all.
    ///
    /// Returns:
    ///     The ids of all texts, concatenated, in this type. And the int64 offsets, one more than
    ///     texts: text `i` has the ids `ids[offsets[i]:offsets[i + 1]]`.
    ///
    /// Raises:
    ///     SpecialTokenError: as in `encode`.
    ///     SplitError: as in `encode`.
    ///     ValueError: if `dtype` is no integer, or cannot hold the ids of the vocabulary.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> ids, offsets = tok.encode_batch_to_numpy(["hello!", "", "ho"])
    ///     >>> ids.tolist(), offsets.tolist()
    ///     ([259, 33, 104, 111], [0, 2, 2, 4])
    #[pyo3(signature = (texts, *, special=None, prepend=None, append=None, add_special_tokens=None,
                        dtype=None, threads=None))]
    fn encode_batch_to_numpy<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        special: Option<&Bound<'py, PyAny>>,
        prepend: Option<&Bound<'py, PyAny>>,
        append: Option<&Bound<'py, PyAny>>,
        add_special_tokens: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        threads: Option<arguments::ThreadCount>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.options(special, prepend, append, add_special_tokens)?;
        let strings = arguments::strings(texts)?;
        let texts = errors::collect(strings.iter().map(text_of))?;
        let threads = arguments::threads_for(threads, &texts);
        let arrays = arrays::encode(py, &self.core, &texts, &options, threads)?;
        match dtype {
            None => Ok(arrays),
            Some(dtype) => py
                .import("bytepair.tokenizer.results")?
                .call_method1("of_type", (arrays, dtype, self.vocab_size())),
        }
    }

    /// Count the ids of a text: the length of `encode`, without the list.
    ///
    /// Args:
    ///     text: as in `encode`.
    ///     special: as in `encode`.
    ///     prepend: as in `encode`; it counts.
    ///     append: as in `encode`; it counts.
    ///
    /// Raises:
    ///     SpecialTokenError: as in `encode`.
    ///     SplitError: as in `encode`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.count("hello!")
    ///     2
    #[pyo3(signature = (text, *, special=None, prepend=None, append=None, add_special_tokens=None,
                        allowed_special=None, disallowed_special=None),
           text_signature = "($self, text, *, special=None, prepend=None, append=None, \
                             add_special_tokens=None)")]
    fn count(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
        add_special_tokens: Option<&Bound<'_, PyAny>>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        disallowed_special: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        arguments::no_habits("count", [allowed_special, disallowed_special])?;
        let options = self.options(special, prepend, append, add_special_tokens)?;
        let text = text_of(arguments::string(text)?)?;
        let count = || self.core.count_text(&text, &options);
        let quick = interrupt::is_quick(&self.core, &text);
        errors::checked(if quick { count() } else { interrupt::detached(py, count) })
    }

    /// Encode one text, with the span of text that each id covers.
    ///
    /// Args:
    ///     text: as in `encode`.
    ///     special: as in `encode`; a special token covers its text.
    ///     prepend: as in `encode`; it covers nothing, at the start of the text.
    ///     append: as in `encode`; it covers nothing, at the end of the text.
    ///
    /// Returns:
    ///     The ids, a list of int. And two int64 arrays of shape (n, 2) with the start and end of
    ///     each id: in bytes of the text's UTF-8, and in characters, as in `text[a:b]`; a pair of
    ///     surrogates counts as two. An id that has only some bytes of a character covers that
    ///     character, so the spans of neighbours in characters may overlap. If the tokenizer's file
    ///     says `trim_offsets`, spans leave out the spaces at the ends of tokens.
    ///
    /// Raises:
    ///     SpecialTokenError: as in `encode`.
    ///     SplitError: as in `encode`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> ids, in_bytes, in_chars = tok.encode_offsets("é hello")
    ///     >>> ids, in_bytes.tolist()
    ///     ([195, 169, 32, 259], [[0, 1], [1, 2], [2, 3], [3, 8]])
    ///     >>> in_chars.tolist()
    ///     [[0, 1], [0, 1], [1, 2], [2, 7]]
    #[pyo3(signature = (text, *, special=None, prepend=None, append=None, add_special_tokens=None))]
    fn encode_offsets<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        special: Option<&Bound<'py, PyAny>>,
        prepend: Option<&Bound<'py, PyAny>>,
        append: Option<&Bound<'py, PyAny>>,
        add_special_tokens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let options = self.options(special, prepend, append, add_special_tokens)?;
        let text = text_of(arguments::string(text)?)?;
        arrays::ready(py)?;
        let spans = || self.core.encode_with_spans(&text, &options);
        let spans = errors::checked(interrupt::detached(py, spans))?;
        let pairs = |pairs: Vec<[i64; 2]>| {
            let shape = [pairs.len(), 2];
            pairs.into_flattened().into_pyarray(py).reshape(shape)
        };
        let ids = self.ints.list(py, &spans.ids)?;
        let places = (ids, pairs(spans.bytes)?, pairs(spans.chars)?);
        CLASS.import(py, "bytepair.tokenizer.results", "IdsWithOffsets")?.call1(places)
    }

    /// The bytes of one id; for a special token, the bytes of its name.
    ///
    /// Args:
    ///     id: the id.
    ///
    /// Raises:
    ///     UnknownIdError: if the id is not in the vocabulary.
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
        let id = arguments::id(&self.core, id)?;
        Ok(PyBytes::new(py, errors::checked(self.core.token_bytes(id))?))
    }

    /// The id of an ordinary token; special tokens are in `special_tokens`.
    ///
    /// Args:
    ///     token: its bytes, or its text.
    ///
    /// Raises:
    ///     KeyError: if the token does not exist, or is a special token (the message says which).
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.token_id("hello"), tok.token_id(b"hello")
    ///     (259, 259)
    fn token_id(&self, token: &Bound<'_, PyAny>) -> PyResult<u32> {
        let text = token.cast::<PyString>().ok().map(arguments::utf8).transpose()?;
        let wrong = |_| arguments::refused("token", token, "bytes or a str");
        let bytes = match &text {
            Some(text) => text.as_bytes(),
            None => token.extract().map_err(wrong)?,
        };
        self.core.vocabulary().id(bytes).ok_or_else(|| {
            let special = text.as_ref().and_then(|text| self.core.vocabulary().special(text));
            let what = match special {
                Some(id) => format!("a special token, id {id} (see special_tokens)"),
                None => "not a token; encode gives the ids of any text".to_owned(),
            };
            PyKeyError::new_err(format!("{} is {what}", arguments::shown(token)))
        })
    }

    /// The bytes of the native format, as `save` writes them.
    ///
    /// Args:
    ///     tables: as in `save`.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 269)
    ///     >>> tok.to_bytes()[:8]
    ///     b'BYTEPAIR'
    #[pyo3(signature = (*, tables=None), text_signature = "($self, *, tables=True)")]
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        tables: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let has_tables = arguments::flag("tables", tables, true)?;
        let tables = if has_tables { Tables::With } else { Tables::Without };
        let bytes = errors::checked(py.detach(|| self.core.to_bytes(tables)))?;
        errors::checked(memory::check(bytes.len()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| *self.core == *other.get().core)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.core.fingerprint().hash(&mut hasher);
        hasher.finish()
    }

    /// The number of ids, including special tokens and unused ids.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.core.vocabulary().len()
    }

    /// The special tokens with their ids.
    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.core.vocabulary().special_tokens().into_py_dict(py)
    }

    /// The split pattern: a regular expression, or a list of several, of which each splits the pieces
    /// of the previous one; None if text is split in another way.
    #[getter]
    fn pattern<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.core.pattern().map(|pattern| python_pattern(py, &pattern)).transpose()
    }

    /// The pairs of tokens that merge, in order; a new list at each call.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> bytepair.train(["hello hello"], 267).merges()
    ///     [(b'e', b'l'), (b'h', b'el')]
    fn merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        errors::checked(memory::check(self.vocab_size() * MERGE_BYTES))?;
        errors::checked(py.detach(|| self.core.make_tables()))?;
        let bytes = |id: u32| self.core.token_bytes(id).map(|token| PyBytes::new(py, token));
        let pair = |&(left, right): &(u32, u32)| Ok((bytes(left)?, bytes(right)?));
        let pairs = self.core.merges().iter().map(|merge| errors::checked(pair(merge)));
        errors::list(py, errors::collect(pairs)?)
    }

    /// The ordinary tokens with their ranks, as tiktoken has them; a new dict at each call.
    ///
    /// Example:
    ///     >>> import bytepair
    ///     >>> tok = bytepair.train(["hello hello"], 267)
    ///     >>> len(tok.mergeable_ranks()), tok.mergeable_ranks()[b"hel"]
    ///     (258, 257)
    fn mergeable_ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        errors::checked(memory::check(self.vocab_size() * MERGE_BYTES))?;
        let tokens = self.core.vocabulary().ordinary_tokens();
        tokens.map(|(token, id)| (PyBytes::new(py, token), id)).into_py_dict(py)
    }

    /// Where the tokenizer comes from, as keys and values.
    #[getter]
    fn notes(&self) -> std::collections::BTreeMap<String, String> {
        self.core.notes().clone()
    }

    /// The merge rule: `"ranks"` (tiktoken's), `"merges"` (Hugging Face's), or `"characters"` (that
    /// of vocabularies with byte fallback, as SentencePiece trains them).
    #[getter]
    fn merge_rule(&self) -> &'static str {
        match self.core.rule() {
            MergeRule::Ranks => "ranks",
            MergeRule::Merges { .. } => "merges",
            MergeRule::Characters => "characters",
        }
    }

    /// A hash of the four values, stable between versions and machines.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.core.fingerprint()
    }
}

/// The memory of a merge or a token in Python, in bytes.
const MERGE_BYTES: usize = 300;

/// A text that is encoded when a tokenizer is created: about as long as a chat message, with words
/// that are tokens and words that are not.
const WARM_UP: &str = "It's the very first text of this tokenizer (about 100 bytes), and isn't shown \
                     to anybody: who'd pretokenize it?\n";

impl PyTokenizer {
    /// Encode a text, so that code and buffers are warm for the first call. Errors are ignored: a
    /// vocabulary need not cover this text.
    ///
    /// A tokenizer that was just trained has no tables yet and may never encode, so it is skipped.
    fn warm_up(&self, py: Python<'_>) {
        if !self.core.has_tables() {
            return;
        }
        let text = Text::Utf8(WARM_UP);
        drop(self.core.encode_text(&text, self.core.plain(), |ids| self.ints.list(py, ids)));
    }

    /// Prepare the keyword arguments of encoding.
    pub(crate) fn options(
        &self,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
        add_special_tokens: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Cow<'_, Arc<EncodeOptions>>> {
        let adds = arguments::flag("add_special_tokens", add_special_tokens, false)?;
        self.options.prepare(&self.core, special, prepend, append, adds)
    }
}
