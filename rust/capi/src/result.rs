//! Results: a code, a message, and values behind pointers. No panic passes this file.

use std::any::Any;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::arguments::given;

/// Room for a message of 1,000 characters and its zero byte.
pub const BYTEPAIR_MESSAGE_BYTES: usize = 4096;

/// What a call came to. New codes may be added.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The call did what it says.
    Ok = 0,
    /// An argument is NULL, or has a value that is not allowed.
    Argument = 1,
    /// The buffer of the caller is too small; the number of values it needs was written.
    TooSmall = 2,
    /// A text is not UTF-8.
    TextNotUtf8 = 3,
    /// An id is not in the vocabulary.
    UnknownId = 4,
    /// A special token is unknown, or occurs where it is forbidden.
    SpecialToken = 5,
    /// A split pattern is not valid or not known.
    Pattern = 6,
    /// A text cannot be split by the pattern, or no token covers one of its bytes.
    Split = 7,
    /// A vocabulary or its size breaks a rule.
    Vocabulary = 8,
    /// A tokenizer file is damaged or of an unknown format.
    Format = 9,
    /// A tokenizer file asks for something that is not done exactly.
    Unsupported = 10,
    /// A file cannot be read or written.
    File = 11,
    /// Counts break a rule, or exceed 64 bits.
    Counts = 12,
    /// Memory could not be allocated.
    OutOfMemory = 13,
    /// A defect of the library; please report it with the message.
    Internal = 14,
}

/// What a failed call says. A call that succeeds leaves it as it was.
#[repr(C)]
#[derive(Debug)]
pub struct ErrorReport {
    /// The same as the result of the call.
    pub code: Code,
    /// The rule, the value that breaks it and the way out; UTF-8, ends with a zero byte.
    pub message: [c_char; BYTEPAIR_MESSAGE_BYTES],
}

/// Why a call fails.
pub(crate) enum Failure {
    Core(bytepair::Error),
    Argument(String),
    TooSmall { needed: usize, capacity: usize },
    Internal(String),
}

impl From<bytepair::Error> for Failure {
    fn from(error: bytepair::Error) -> Self {
        Self::Core(error)
    }
}

impl Failure {
    fn code(&self) -> Code {
        match self {
            Self::Core(error) => code(error),
            Self::Argument(_) => Code::Argument,
            Self::TooSmall { .. } => Code::TooSmall,
            Self::Internal(_) => Code::Internal,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Core(error) => error.to_string(),
            Self::Argument(text) => bytepair::shortened(text.clone()),
            Self::TooSmall { needed, capacity } => {
                format!("the result has {needed} values, and the buffer has room for {capacity}")
            }
            Self::Internal(text) => {
                bytepair::shortened(format!("a defect of bytepair, please report it: {text}"))
            }
        }
    }
}

/// The code of an error of the core.
fn code(error: &bytepair::Error) -> Code {
    use bytepair::Error as E;
    match error {
        E::Pattern { .. } | E::PatternName { .. } => Code::Pattern,
        E::Split { .. } | E::UncoveredByte { .. } => Code::Split,
        E::UnknownId { .. } => Code::UnknownId,
        E::UnknownSpecial { .. } | E::SpecialInText { .. } => Code::SpecialToken,
        E::TextNotUtf8 { .. } | E::FileNotUtf8 { .. } => Code::TextNotUtf8,
        E::File { .. } | E::Format { .. } | E::Contradiction => Code::Format,
        E::Unsupported { .. } => Code::Unsupported,
        E::Unreadable { .. } | E::Unwritable { .. } | E::Spill { .. } => Code::File,
        E::Counts { .. } | E::CountOverflow | E::TooManyPretokens => Code::Counts,
        E::OutOfMemory { .. } => Code::OutOfMemory,
        E::Vocabulary { .. } | E::VocabularyTooSmall { .. } => Code::Vocabulary,
        _ => Code::Internal,
    }
}

/// Run a call of the interface: its result as a code, with a message if it fails. A panic is an
/// error like any other.
pub(crate) fn guard(
    report: Option<&mut MaybeUninit<ErrorReport>>,
    action: impl FnOnce() -> Result<(), Failure>,
) -> Code {
    let panicked = |payload: Box<dyn Any + Send>| Err(Failure::Internal(text_of(&*payload)));
    match catch_unwind(AssertUnwindSafe(action)).unwrap_or_else(panicked) {
        Ok(()) => Code::Ok,
        Err(failure) => {
            let code = failure.code();
            if let Some(report) = report {
                report.write(ErrorReport { code, message: message(&failure.message()) });
            }
            code
        }
    }
}

/// Run a call that cannot fail; a panic gives `otherwise`.
pub(crate) fn caught<T>(otherwise: T, action: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(action)).unwrap_or(otherwise)
}

/// The message of a panic.
fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}

/// A message as C stores it; a zero byte inside becomes a space.
fn message(text: &str) -> [c_char; BYTEPAIR_MESSAGE_BYTES] {
    let most = text.len().min(BYTEPAIR_MESSAGE_BYTES - 1);
    let end = (0..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let mut message = [0; BYTEPAIR_MESSAGE_BYTES];
    for (place, &byte) in message.iter_mut().zip(&text.as_bytes()[..end]) {
        *place = if byte == 0 { b' '.cast_signed() } else { byte.cast_signed() } as c_char;
    }
    message
}

/// Write a value where the caller wants it.
pub(crate) fn put<T>(
    name: &str,
    place: Option<&mut MaybeUninit<T>>,
    value: T,
) -> Result<(), Failure> {
    given(name, place)?.write(value);
    Ok(())
}

/// Copy values into a buffer of the caller as far as it reaches, and write their number. Fails if
/// there are more than the buffer has room for.
///
/// # Safety
///
/// Unless `buffer` is NULL, there is room for `capacity` values.
pub(crate) unsafe fn copy<T: Copy>(
    values: &[T],
    buffer: *mut T,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), Failure> {
    let (needed, copied) = (values.len(), values.len().min(capacity));
    put("length", length, needed)?;
    if copied > 0 {
        let buffer = given("the buffer", (!buffer.is_null()).then_some(buffer))?;
        // SAFETY: the caller guarantees room for `capacity` values, and the values are the library's.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), buffer, copied) };
    }
    if needed > capacity { Err(Failure::TooSmall { needed, capacity }) } else { Ok(()) }
}
