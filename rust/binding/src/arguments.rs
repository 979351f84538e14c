//! Conversion of Python arguments that several methods share: texts, ids, special tokens, threads.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use bytepair::tokenizer::offsets::Keep;
use bytepair::{EncodeOptions, Error, Special, Text, Tokenizer, parallel};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyIterator, PyList, PyMapping, PyString, PyTuple,
};

use crate::errors;
use crate::errors::ArgumentError;
use crate::text::text;

/// The number of characters of a value in a message.
const SHOWN_CHARS: usize = 60;

/// A value in a message: its repr, shortened.
#[pyfunction]
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let repr = value.repr().map(|repr| repr.to_string_lossy().into_owned());
    // The repr of a foreign object may fail.
    let text = repr.unwrap_or_else(|_| match value.get_type().name() {
        Ok(kind) => format!("a {kind}"),
        Err(_) => "an object".to_owned(),
    });
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text,
        Some(_) => text.chars().take(SHOWN_CHARS - 1).chain("...".chars()).collect(),
    }
}

/// A struct of the fields of a Python object. Its error is that of the field, such as text that is not
/// UTF-8: the error of a derived struct only names the field.
pub(crate) struct Fields<T>(pub(crate) T);

impl<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'a, 'py> for Fields<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let own = |error: PyErr| error.cause(object.py()).unwrap_or(error);
        object.extract().map(Self).map_err(own)
    }
}

impl<T> Deref for Fields<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The error for a value that an argument cannot have.
pub(crate) fn refused(name: &str, value: &Bound<'_, PyAny>, allowed: &str) -> PyErr {
    errors::about_argument(name, &format!("is {}; it must be {allowed}", shown(value)))
}

/// Refuse keywords that a method does not have; the error names the one that other libraries mean.
pub(crate) fn no_others(method: &str, others: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    others.map_or(Ok(()), |others| Err(unknown_keyword(others.py(), method, others.keys())))
}

/// The keywords of other libraries that methods for one short text know, to refuse them: taking any
/// keyword would lose Python's fast way of passing arguments, a sixth of the time of a call.
const HABITS: [&str; 2] = ["allowed_special", "disallowed_special"];

/// Refuse the keywords of [`HABITS`], as [`no_others`] does.
pub(crate) fn no_habits(method: &str, values: [Option<&Bound<'_, PyAny>>; 2]) -> PyResult<()> {
    for (name, value) in HABITS.iter().zip(values) {
        if let Some(value) = value {
            return Err(unknown_keyword(value.py(), method, [*name]));
        }
    }
    Ok(())
}

fn unknown_keyword<'py>(py: Python<'py>, method: &str, names: impl IntoPyObject<'py>) -> PyErr {
    let refuse = || -> PyResult<Bound<'py, PyAny>> {
        py.import("bytepair._internal.hints")?.call_method1("unknown_keyword", (method, names))
    };
    refuse().map_or_else(|error| error, PyErr::from_value)
}

/// An integer of at least `least`.
pub(crate) fn integer<'py, T>(name: &str, value: &Bound<'py, PyAny>, least: T) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py> + PartialOrd + std::fmt::Display + Copy,
{
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract::<T>().ok() };
    number
        .filter(|&number| number >= least)
        .ok_or_else(|| refused(name, value, &format!("an integer of at least {least}")))
}

/// The value that an argument names, of a table of the core.
pub(crate) fn choice<T: Copy>(argument: &str, name: &str, table: &[(&str, T)]) -> PyResult<T> {
    let entry = table.iter().find(|(other, _)| *other == name);
    entry.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<_> = table.iter().map(|(other, _)| format!("{other:?}")).collect();
        let names = names.join(" or ");
        errors::about_argument(argument, &format!("is {name:?}; it must be {names}"))
    })
}

/// The names of a table of the core, for Python.
pub(crate) fn names<'py, T>(py: Python<'py>, table: &[(&str, T)]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, table.iter().map(|(name, _)| name))
}

/// The argument `threads`, checked.
#[derive(Clone, Copy)]
pub(crate) struct ThreadCount(usize);

impl<'a, 'py> FromPyObject<'a, 'py> for ThreadCount {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        integer("threads", &value, 1).map(Self)
    }
}

/// An argument that is true or false.
pub(crate) fn flag(name: &str, value: Option<&Bound<'_, PyAny>>, usual: bool) -> PyResult<bool> {
    let Some(value) = value else { return Ok(usual) };
    value.extract().map_err(|_| refused(name, value, "True or False"))
}

/// The argument `stop`: a string or several; by default none.
pub(crate) fn stops(value: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let one = value.extract().map(|string| vec![string]);
    one.or_else(|_| value.extract()).map_err(|_| refused("stop", value, "a str or a list of str"))
}

/// The argument `errors`: the name of one of Python's error handlers; by default "replace".
pub(crate) fn handler<'a>(errors: Option<&'a Bound<'_, PyAny>>) -> PyResult<Cow<'a, str>> {
    let Some(errors) = errors else { return Ok(Cow::Borrowed("replace")) };
    let wrong = || refused("errors", errors, "\"replace\", \"strict\" or another error handler");
    let name = errors.cast::<PyString>().map_err(|_| wrong())?.to_cow().map_err(|_| wrong())?;
    if !matches!(&*name, "replace" | "strict") {
        let codecs = errors.py().import("codecs")?;
        codecs.call_method1("lookup_error", (errors,)).map_err(|_| wrong())?;
    }
    Ok(name)
}

/// Cast a text argument to `str`; the error of any other type says what to pass instead.
pub(crate) fn string<'a, 'py>(text: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    text.cast::<PyString>().or_else(|_| {
        let way_out = if text.is_instance_of::<PyBytes>() {
            "pass data.decode(), or data.decode(errors=\"replace\")"
        } else if text.is_instance_of::<PyList>() || text.is_instance_of::<PyTuple>() {
            "for many texts, call encode_batch"
        } else {
            "pass a str"
        };
        let kind = text.get_type().name()?;
        Err(ArgumentError::new_err(format!("a text must be a str, not {kind}; {way_out}")))
    })
}

/// The UTF-8 of a `str`, borrowed where possible.
pub(crate) fn utf8<'a>(string: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    if let Text::Utf8(text) = text(string)? {
        return Ok(Cow::Borrowed(text));
    }
    let mut buffer = String::new();
    errors::checked(text(string)?.read(&mut buffer))?;
    Ok(Cow::Owned(buffer))
}

/// The argument `batch`, an iterable of lists of ids.
pub(crate) fn lists<'py>(batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    many("batch", batch, "an iterable of lists of ids")?;
    batch.try_iter().map_err(|_| refused("batch", batch, "an iterable of lists of ids"))
}

/// Refuse what is iterable but is not several values: a text, and a mapping or a table, which give the
/// names of their columns.
fn many(name: &str, values: &Bound<'_, PyAny>, allowed: &str) -> PyResult<()> {
    let py = values.py();
    if values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>() {
        return Ok(());
    }
    let is_text = values.is_instance_of::<PyString>()
        || values.is_instance_of::<PyBytes>()
        || values.is_instance_of::<PyByteArray>();
    let is_table = values.cast::<PyMapping>().is_ok() || values.hasattr(intern!(py, "columns"))?;
    let hint = match (is_text, is_table) {
        (false, false) => return Ok(()),
        (true, _) if name == "texts" => "pass [text]",
        (true, _) => "pass a list of them",
        (false, true) => "pass one of its columns",
    };
    let text = format!("is {}; it must be {allowed}", shown(values));
    Err(errors::about_argument_with_hint(name, &text, hint))
}

/// An argument of bytes.
pub(crate) fn bytes<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    value.extract().map_err(|_| refused(name, value, "bytes"))
}

/// The strings of an iterable or of an Arrow column, kept alive while their text is borrowed.
pub(crate) fn strings<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let cast = |(index, item): (usize, PyResult<Bound<'py, PyAny>>)| {
        let item = item?;
        let kind = item.get_type();
        item.cast_into::<PyString>().map_err(|_| match kind.name() {
            Ok(kind) => {
                ArgumentError::new_err(format!("text {index} is of type {kind}, not a str"))
            }
            Err(error) => error,
        })
    };
    let texts = column(texts)?;
    many("texts", &texts, "an iterable of str")?;
    let items = texts.try_iter().map_err(|_| refused("texts", &texts, "an iterable of str"))?;
    errors::collect(items.enumerate().map(cast))
}

/// An Arrow column as an iterable of its texts; anything else as it is.
fn column<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = texts.py();
    let is_list = texts.is_instance_of::<PyList>() || texts.is_instance_of::<PyTuple>();
    if is_list
        || !(texts.hasattr(intern!(py, "__arrow_c_stream__"))?
            || texts.hasattr(intern!(py, "__arrow_c_array__"))?)
    {
        return Ok(texts.clone());
    }
    py.import("bytepair.corpus.arrow")?.call_method1("texts", (texts,))
}

/// The number of threads: the argument, else the number set by the environment, else the number of
/// processors that the process may use.
#[pyfunction]
#[pyo3(signature = (requested=None))]
pub(crate) fn threads(requested: Option<ThreadCount>) -> usize {
    let threads = requested.map(|ThreadCount(threads)| threads);
    let threads = threads.or_else(threads_of_environment).unwrap_or_else(parallel::available);
    threads.min(parallel::MAX_THREADS)
}

/// `BYTEPAIR_NUM_THREADS`; or 1 if `TOKENIZERS_PARALLELISM` is false, as in Hugging Face
/// tokenizers; or `RAYON_NUM_THREADS`. A value that is not a positive integer is ignored.
fn threads_of_environment() -> Option<usize> {
    let number = |name| std::env::var(name).ok()?.parse().ok().filter(|&threads| threads > 0);
    let parallel = std::env::var("TOKENIZERS_PARALLELISM").unwrap_or_default().to_lowercase();
    let one = matches!(&*parallel, "off" | "false" | "f" | "no" | "n" | "0");
    number("BYTEPAIR_NUM_THREADS")
        .or_else(|| one.then_some(1))
        .or_else(|| number("RAYON_NUM_THREADS"))
}

/// The number of threads for these texts. For short texts this is 1 without a system call, which
/// would take longer than encoding.
pub(crate) fn threads_for(requested: Option<ThreadCount>, texts: &[Text<'_>]) -> usize {
    let weight = texts.iter().map(Text::len).sum();
    match requested {
        None if parallel::worth(usize::MAX, weight) == 1 => 1,
        requested => threads(requested),
    }
}

/// Which end of a text is kept: `"start"` or `"end"`.
pub(crate) fn keep(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Keep> {
    let Some(argument) = argument else { return Ok(Keep::Start) };
    match argument.extract::<Cow<'_, str>>().as_deref() {
        Ok("start") => Ok(Keep::Start),
        Ok("end") => Ok(Keep::End),
        _ => Err(refused("keep", argument, "\"start\" or \"end\"")),
    }
}

/// The options `special`, `prepend` and `append`.
pub(crate) fn options(
    tokenizer: &bytepair::Tokenizer,
    special: Option<&Bound<'_, PyAny>>,
    prepend: Option<&Bound<'_, PyAny>>,
    append: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Special, Option<u32>, Option<u32>)> {
    Ok((self::special(special)?, affix(tokenizer, prepend)?, affix(tokenizer, append)?))
}

/// How the text of special tokens is encoded: `"text"`, `"all"`, `"none"`, `"error"`, or a collection of
/// names.
fn special(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Special> {
    let Some(argument) = argument else { return Ok(Special::Text) };
    let wrong =
        || refused("special", argument, "\"text\", \"all\", \"none\", \"error\" or a set of names");
    let Ok(word) = argument.cast::<PyString>() else {
        let names = argument.try_iter().map_err(|_| wrong())?;
        let names = names.map(|name| name?.extract::<String>().map_err(|_| wrong()));
        return Ok(Special::Only(names.collect::<PyResult<_>>()?));
    };
    match word.to_str() {
        Ok("text") => Ok(Special::Text),
        Ok("all") => Ok(Special::All),
        Ok("none") => Ok(Special::None),
        Ok("error") => Ok(Special::Error),
        _ => Err(wrong()),
    }
}

/// An id to put before or after a text, given as the name of a special token or as the id itself.
fn affix(
    tokenizer: &bytepair::Tokenizer,
    argument: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<u32>> {
    let Some(argument) = argument else { return Ok(None) };
    if let Ok(name) = argument.cast::<PyString>() {
        let wrong = |_| ArgumentError::new_err("the name of a special token has a lone surrogate");
        return errors::checked(tokenizer.special_id(name.to_str().map_err(wrong)?)).map(Some);
    }
    let id = id(tokenizer, argument)?;
    errors::checked(tokenizer.token_bytes(id))?;
    Ok(Some(id))
}

/// One id. An integer out of range is reported like an unknown id.
pub(crate) fn id(tokenizer: &bytepair::Tokenizer, number: &Bound<'_, PyAny>) -> PyResult<u32> {
    number.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(number.py()) {
            return refused("an id", number, "an integer");
        }
        let (id, vocab_size) = (number.to_string(), tokenizer.vocabulary().len());
        errors::python(&Error::UnknownId { id, vocab_size })
    })
}

/// Offsets of an Arrow column, of 32 or 64 bits.
pub(crate) fn offsets(array: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    match array.extract::<PyReadonlyArray1<'_, i32>>() {
        Ok(short) => spans(short.as_slice()?),
        Err(_) => spans(array.extract::<PyReadonlyArray1<'_, i64>>()?.as_slice()?),
    }
}

/// Convert offsets, which must be non-negative and ascending.
fn spans<T: Copy + TryInto<usize>>(offsets: &[T]) -> PyResult<Vec<usize>> {
    let wrong =
        || ArgumentError::new_err("the offsets of the texts must start at 0 and not decrease");
    let all = offsets.iter().map(|&at| at.try_into().map_err(|_| wrong()));
    let all: Vec<usize> = errors::collect(all)?;
    if all.is_sorted() { Ok(all) } else { Err(wrong()) }
}

// ---------------------------------------------------------------------------- prepared options

/// Prepares the keywords `special`, `prepend`, `append` and `add_special_tokens` of encoding.
pub(crate) struct Options {
    plain: Arc<EncodeOptions>,
    /// The last search for special tokens, cached because building it takes longer than encoding a
    /// short text.
    last: Mutex<Option<(Special, EncodeOptions)>>,
}

impl Options {
    pub(crate) fn new(tokenizer: &Tokenizer) -> Self {
        Self { plain: Arc::new(tokenizer.plain().clone()), last: Mutex::default() }
    }

    /// Prepared options. The default ones are borrowed, which saves measurable time on short texts.
    pub(crate) fn prepare<'a>(
        &'a self,
        tokenizer: &Tokenizer,
        special: Option<&Bound<'_, PyAny>>,
        prepend: Option<&Bound<'_, PyAny>>,
        append: Option<&Bound<'_, PyAny>>,
        adds_special: bool,
    ) -> PyResult<Cow<'a, Arc<EncodeOptions>>> {
        if special.is_none() && prepend.is_none() && append.is_none() && !adds_special {
            return Ok(Cow::Borrowed(&self.plain));
        }
        let (special, prepend, append) = options(tokenizer, special, prepend, append)?;
        let (prepend, append) = tokenizer.around(prepend, append, adds_special);
        // Never blocks: the lock may have been held when the process forked.
        let mut last = self.last.try_lock().ok();
        let cached = last.as_deref().and_then(Option::as_ref);
        if let Some((_, options)) = cached.filter(|(cached, _)| *cached == special) {
            return Ok(Cow::Owned(Arc::new(options.clone().between(prepend, append))));
        }
        let options = errors::checked(tokenizer.options(&special, &[], &[]))?;
        if let Some(last) = last.as_deref_mut() {
            *last = Some((special, options.clone()));
        }
        Ok(Cow::Owned(Arc::new(options.between(prepend, append))))
    }
}
