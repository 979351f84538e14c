//! Errors of the core become the exceptions of `bytepair.errors`.

use bytepair::Error;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::import_exception;
use pyo3::prelude::*;

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
        Error::Pattern { .. } => PatternError::new_err(text),
        Error::Split { .. } | Error::UncoveredByte { .. } => SplitError::new_err(text),
        Error::UnknownId { .. } => UnknownIdError::new_err(text),
        Error::UnknownSpecial { .. } | Error::SpecialInText { .. } => {
            SpecialTokenError::new_err(text)
        }
        Error::TooLong { .. } => ConversationError::new_err(text),
        Error::CountOverflow => CountOverflowError::new_err(text),
        Error::Counts { .. } => CountsError::new_err(text),
        Error::File { .. } => FileFormatError::new_err(text),
        Error::TextNotUtf8 { .. } | Error::FileNotUtf8 { .. } => CorpusError::new_err(text),
        Error::Unreadable { .. } | Error::Spill { .. } => PyOSError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(text),
        _ => VocabularyError::new_err(text),
    }
}
