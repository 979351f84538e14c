//! Errors of the core become the exceptions of `bytepair.errors`.

use std::io;
use std::path::Path;

use bytepair::{Error, memory};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyList;

import_exception!(bytepair.errors, ConversationError);
import_exception!(bytepair.errors, CorpusError);
import_exception!(bytepair.errors, CountOverflowError);
import_exception!(bytepair.errors, CountsError);
import_exception!(bytepair.errors, FileFormatError);
import_exception!(bytepair.errors, PatternError);
import_exception!(bytepair.errors, SpecialTokenError);
import_exception!(bytepair.errors, SplitError);
import_exception!(bytepair.errors, UnknownIdError);
import_exception!(bytepair.errors, VocabularyError);

/// The Python exception of an error; its text is the error's text.
pub(crate) fn python(error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Pattern { .. } | Error::PatternName { .. } => PatternError::new_err(text),
        Error::Split { .. } | Error::UncoveredByte { .. } => SplitError::new_err(text),
        Error::UnknownId { .. } => UnknownIdError::new_err(text),
        Error::UnknownSpecial { .. } | Error::SpecialInText { .. } => {
            SpecialTokenError::new_err(text)
        }
        Error::TooLong { .. } => ConversationError::new_err(text),
        Error::CountOverflow => CountOverflowError::new_err(text),
        Error::Counts { .. } => CountsError::new_err(text),
        Error::File { .. } | Error::Contradiction => FileFormatError::new_err(text),
        Error::TextNotUtf8 { .. }
        | Error::RowNotUtf8 { .. }
        | Error::RowTooLong { .. }
        | Error::FileNotUtf8 { .. } => CorpusError::new_err(text),
        Error::Unreadable { .. } | Error::Spill { .. } => PyOSError::new_err(text),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(text),
        _ => VocabularyError::new_err(text),
    }
}

/// What the core makes of `result`, in Python.
pub(crate) fn checked<T>(result: bytepair::Result<T>) -> PyResult<T> {
    result.map_err(|error| python(&error))
}

/// What an iterator gives, if there is memory for it, or its first error.
pub(crate) fn collect<T>(from: impl IntoIterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let from = from.into_iter();
    let mut values = checked(memory::with_room(from.size_hint().0))?;
    for value in from {
        checked(memory::reserve(&mut values, 1))?;
        values.push(value?);
    }
    Ok(values)
}

/// A list of objects; Python's own error if there is no memory for it.
pub(crate) fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    items: Vec<T>,
) -> PyResult<Bound<'py, PyList>> {
    checked(memory::check(items.len() * size_of::<usize>()))?;
    PyList::new(py, items)
}

/// The Python exception of a file that cannot be opened: the kind of `OSError` that fits.
pub(crate) fn file(path: &Path, error: &io::Error) -> PyErr {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
    PyOSError::new_err((error.raw_os_error(), reason, path.to_path_buf()))
}
