//! Converts errors of the core into the exceptions of `bytepair.errors`.

use std::io;
use std::path::Path;

use bytepair::{Error, OptionValue, Reason, WayOut, memory, shortened};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};
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

/// The arguments of an exception: text, and the ways out as tuples, which `bytepair.errors` reads.
pub(crate) struct Phrases {
    text: Vec<String>,
    ways_out: &'static [WayOut],
}

impl Phrases {
    /// A reason with its ways out.
    pub(crate) fn of(reason: &Reason) -> Self {
        Self::new([reason.text().to_owned()], reason.ways_out())
    }

    /// What is wrong, with ways out.
    fn new(text: impl IntoIterator<Item = String>, ways_out: &'static [WayOut]) -> Self {
        Self { text: text.into_iter().collect(), ways_out }
    }
}

impl PyErrArguments for Phrases {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        let phrases = || -> PyResult<Bound<'_, PyTuple>> {
            let text = self.text.iter().map(|text| Ok(PyString::new(py, text).into_any()));
            let ways_out = self.ways_out.iter().map(|one| Ok(way_out(py, one)?.into_any()));
            PyTuple::new(py, text.chain(ways_out).collect::<PyResult<Vec<_>>>()?)
        };
        phrases()
            .map_or_else(|error| error.into_value(py).into_any(), |all| all.into_any().unbind())
    }
}

/// What to do, the name and the value of an option, and what it does then.
pub(crate) fn way_out<'py>(py: Python<'py>, way_out: &WayOut) -> PyResult<Bound<'py, PyTuple>> {
    let name = way_out.option.map(|option| option.name);
    let value = match way_out.option.map(|option| option.value) {
        None | Some(OptionValue::Any) => py.None().into_bound(py),
        Some(OptionValue::Name(name)) => PyString::new(py, name).into_any(),
        Some(OptionValue::True) => PyBool::new(py, true).to_owned().into_any(),
    };
    (way_out.action, name, value, way_out.purpose).into_pyobject(py)
}

/// The error for a value that an argument cannot have, given its name and what is wrong with it.
pub(crate) fn about_argument(name: &str, text: String) -> PyErr {
    ArgumentError::new_err(((name.to_owned(),), text))
}

/// The exception for an error, with the same message.
pub(crate) fn python(error: &Error) -> PyErr {
    let text = || Phrases::new([shortened(error.problem())], error.ways_out());
    match error {
        Error::Pattern { .. } | Error::PatternName { .. } => PatternError::new_err(text()),
        Error::Split { .. }
        | Error::Growth { .. }
        | Error::UncoveredByte { .. }
        | Error::UncoveredText { .. } => SplitError::new_err(text()),
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
        Error::TextNotUtf8 { .. }
        | Error::Row { .. }
        | Error::Document { .. }
        | Error::FileNotUtf8 { .. } => CorpusError::new_err(text()),
        // An option of reading a corpus matters.
        Error::Unreadable { reason, .. } if !reason.ways_out().is_empty() => {
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

/// The arguments of an error at a place of a file.
fn at(place: &str, reason: &Reason) -> Phrases {
    Phrases::new([place.to_owned(), reason.text().to_owned()], reason.ways_out())
}

/// A result of the core as a Python result.
pub(crate) fn checked<T>(result: bytepair::Result<T>) -> PyResult<T> {
    result.map_err(|error| python(&error))
}

/// Collect an iterator; fails with its first error, or if there is not enough memory.
pub(crate) fn collect<T>(from: impl IntoIterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let from = from.into_iter();
    let mut values = checked(memory::with_room(from.size_hint().0))?;
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
