//! Turns errors of the core and of the arguments into codes and messages.

use bytepair::Error;

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

/// Why a call fails.
pub(crate) enum CallFailure {
    Core(bytepair::Error),
    Argument(String),
    TooSmall { needed: usize, capacity: usize },
    Internal(String),
}

impl From<bytepair::Error> for CallFailure {
    fn from(error: bytepair::Error) -> Self {
        Self::Core(error)
    }
}

impl CallFailure {
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Core(error) => code(error),
            Self::Argument(_) => Code::Argument,
            Self::TooSmall { .. } => Code::TooSmall,
            Self::Internal(_) => Code::Internal,
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::Core(error) => error.message(hint(error)),
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

/// What to do about an error, in the words of C.
fn hint(error: &Error) -> &'static str {
    match error {
        Error::SpecialInText { .. } => {
            "pass BYTEPAIR_SPECIAL_TEXT to encode it as ordinary text, or BYTEPAIR_SPECIAL_ALL to \
             encode it as the special token"
        }
        _ => error.hint().plain,
    }
}

/// The code of an error of the core.
fn code(error: &bytepair::Error) -> Code {
    use bytepair::Error as E;
    match error {
        E::Pattern { .. } | E::PatternName { .. } => Code::Pattern,
        E::Split { .. } | E::Uncovered { .. } | E::Growth { .. } => Code::Split,
        E::UnknownId { .. } => Code::UnknownId,
        E::UnknownSpecial { .. } | E::SpecialInText { .. } => Code::SpecialToken,
        E::TextNotUtf8 { .. } | E::FileNotUtf8 { .. } => Code::TextNotUtf8,
        E::File { .. } | E::Format { .. } | E::Contradiction => Code::Format,
        E::Unsupported { .. } => Code::Unsupported,
        E::Unreadable { .. } | E::Unwritable { .. } | E::Spill { .. } => Code::File,
        E::Counts { .. } | E::CountOverflow | E::TooManyPretokens => Code::Counts,
        E::OutOfMemory { .. } => Code::OutOfMemory,
        E::Vocabulary { .. } => Code::Vocabulary,
        E::Changed | E::EmptyStop => Code::Argument,
        _ => Code::Internal,
    }
}
