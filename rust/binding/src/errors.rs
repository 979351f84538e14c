//! Converts errors of the core into the exceptions of `bytepair.errors`.

use std::io;
use std::path::Path;

use bytepair::{Error, Hint, Reason, memory, shortened};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyErrArguments, import_exception};

use crate::interrupt;

import_exception!(bytepair.errors, ArgumentError);
import_exception!(bytepair.errors, ConversationError);
import_exception!(bytepair.errors, CorpusError);
import_exception!(bytepair.errors, CountOverflowError);
import_exception!(bytepair.errors, CountsError);
import_exception!(bytepair.errors, FileFormatError);
import_exception!(bytepair.errors, FormatError);
import_exception!(bytepair.errors, OutOfMemoryError);
import_exception!(bytepair.errors, PatternError);
import_exception!(bytepair.errors, SpecialTokenError);
import_exception!(bytepair.errors, SpillError);
import_exception!(bytepair.errors, SplitError);
import_exception!(bytepair.errors, UnknownIdError);
import_exception!(bytepair.errors, UnsupportedError);
import_exception!(bytepair.errors, VocabularyError);

/// The arguments of an exception of `bytepair.errors`: message, option, value and hint. They are
/// positional, since a `PyErr` that is not raised yet has no keywords.
type Arguments = (String, Option<&'static str>, Option<()>, &'static str);

fn with_hint(message: String, hint: Hint) -> Arguments {
    (message, hint.option, None, hint.python)
}

/// The error for a value that an argument cannot have, given its name and what is wrong with it.
pub(crate) fn about_argument(name: &str, text: &str) -> PyErr {
    about_argument_with_hint(name, text, "")
}

/// As `about_argument`, with what to do about it.
pub(crate) fn about_argument_with_hint(name: &str, text: &str, hint: &'static str) -> PyErr {
    ArgumentError::new_err((format!("{name} {text}"), name.to_owned(), None::<()>, hint))
}

/// The exception for an error, with the same message.
pub(crate) fn python(error: &Error) -> PyErr {
    let text = || with_hint(shortened(error.problem()), error.hint());
    match error {
        Error::Pattern { .. } | Error::PatternName { .. } => PatternError::new_err(text()),
        Error::Split { .. } | Error::Growth { .. } | Error::Uncovered { .. } => {
            SplitError::new_err(text())
        }
        Error::UnknownId { .. } => UnknownIdError::new_err(text()),
        Error::UnknownSpecial { .. } | Error::SpecialInText { .. } => {
            SpecialTokenError::new_err(text())
        }
        Error::TooLong { .. } => ConversationError::new_err(text()),
        Error::CountOverflow => CountOverflowError::new_err(text()),
        Error::Counts { .. } => CountsError::new_err(text()),
        Error::File { .. } | Error::Contradiction => FileFormatError::new_err(text()),
        Error::Format { place, reason } => FormatError::new_err(at(place, reason)),
        Error::Unsupported { place, reason } => UnsupportedError::new_err(at(place, reason)),
        Error::TextNotUtf8 { .. } | Error::Document { .. } | Error::FileNotUtf8 { .. } => {
            CorpusError::new_err(text())
        }
        // The hint is about reading a corpus.
        Error::Unreadable { reason, .. } if !reason.hint().python.is_empty() => {
            CorpusError::new_err(text())
        }
        Error::Spill { .. } => SpillError::new_err(text()),
        Error::Unreadable { .. } | Error::Unwritable { .. } => {
            PyOSError::new_err(error.to_string())
        }
        Error::OutOfMemory { .. } => OutOfMemoryError::new_err(text()),
        Error::Interrupted => {
            interrupt::take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(error.to_string()))
        }
        Error::Changed => PyRuntimeError::new_err(error.to_string()),
        _ => VocabularyError::new_err(text()),
    }
}

/// The arguments of an error at a place of a file of another library, which comes before the others.
fn at(place: &str, reason: &Reason) -> impl PyErrArguments + use<> {
    let (message, option, value, hint) = with_hint(reason.text().to_owned(), reason.hint());
    (place.to_owned(), message, option, value, hint)
}

/// A result of the core as a Python result.
pub(crate) fn checked<T>(result: bytepair::Result<T>) -> PyResult<T> {
    result.map_err(|error| python(&error))
}

/// Collect an iterator; fails with its first error, or if there is not enough memory.
pub(crate) fn collect<T>(from: impl IntoIterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let from = from.into_iter();
    let mut values = checked(memory::with_capacity(from.size_hint().0))?;
    for value in from {
        checked(memory::reserve(&mut values, 1))?;
        values.push(value?);
    }
    Ok(values)
}

/// A list of objects; raises `MemoryError` if there is not enough memory.
pub(crate) fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    items: Vec<T>,
) -> PyResult<Bound<'py, PyList>> {
    checked(memory::check(items.len() * size_of::<usize>()))?;
    PyList::new(py, items)
}

/// The exception for a file that cannot be opened: the matching subclass of `OSError`.
pub(crate) fn file(path: &Path, error: &io::Error) -> PyErr {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
    let (code, path) = (error.raw_os_error(), path.to_path_buf());
    if cfg!(windows) {
        // On Windows, the fourth argument of `OSError` is the system's error code, from which
        // Python derives the errno and the subclass.
        return PyOSError::new_err((0, reason, path, code));
    }
    PyOSError::new_err((code, reason, path))
}
