//! The errors of this crate, one variant for each broken rule.
//!
//! A message names the rule, the value, the place and a hint, so that the reader can act on it
//! without this code.

mod reason;

use std::path::Path;
use std::{fmt, io};

#[cfg(feature = "json")]
pub(crate) use reason::IGNORE_DROPOUT;
#[cfg(feature = "parquet")]
pub(crate) use reason::SMALLER_PAGES;
pub(crate) use reason::{
    DIVIDE, FETCH_AGAIN, FETCH_AGAIN_OR_SKIP, NO_HINT, OTHER_COLUMN, RENDER, REPAIR,
};
pub use reason::{Hint, Reason};

/// The result of every fallible function of this crate.
///
/// ```
/// fn pattern() -> bytepair::Result<bytepair::Pattern> {
///     bytepair::Pattern::new("gpt4")
/// }
/// assert_eq!(pattern()?.name(), Some("gpt4"));
/// # Ok::<(), bytepair::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// A broken rule.
///
/// ```
/// use bytepair::{Error, Vocabulary};
/// let twice = Vocabulary::new([(b"a".to_vec(), 0), (b"a".to_vec(), 1)], []);
/// assert!(matches!(twice, Err(Error::Vocabulary { .. })));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The split pattern is not a valid regular expression.
    Pattern {
        /// The pattern as given.
        pattern: String,
        /// The byte offset of the error in the pattern, if known.
        at: Option<usize>,
        /// The reason, from the compiler of the expression.
        reason: String,
    },
    /// An unknown name of a split pattern.
    PatternName {
        /// The name, and the existing names.
        reason: String,
    },
    /// The split pattern failed on a text, for instance after too much backtracking.
    Split {
        /// The byte offset in the text where the failed search started.
        at: usize,
        /// The message of the regular-expression engine.
        reason: String,
    },
    /// A vocabulary, a merge list or a set of special tokens breaks one of its rules.
    Vocabulary {
        /// The rule, with the token or the id that breaks it.
        reason: Reason,
    },
    /// An id that the vocabulary does not have.
    UnknownId {
        /// The id as given, which may exceed every integer type.
        id: String,
        /// The size of the vocabulary; valid ids are below it.
        vocab_size: usize,
    },
    /// An unknown special token.
    UnknownSpecial {
        /// The requested name.
        name: String,
        /// The existing names, in id order.
        known: Vec<String>,
    },
    /// The text of a special token occurs where the caller forbade it.
    SpecialInText {
        /// The special token.
        name: String,
        /// The byte offset of the special token in the text.
        at: usize,
    },
    /// A part of a text that no token of the vocabulary covers.
    Uncovered {
        /// The part: a byte such as `the byte 0x0A`, or a text in quotation marks.
        part: String,
    },
    /// A step of the text rules makes too much of a text.
    Growth {
        /// The step and the limit.
        reason: String,
    },
    /// Bytes of a text are not UTF-8.
    TextNotUtf8 {
        /// The index of the text.
        document: usize,
        /// The byte offset of the first invalid sequence in the text.
        at: usize,
    },
    /// A text file is not UTF-8.
    FileNotUtf8 {
        /// The file.
        path: String,
        /// The byte offset of the first invalid sequence in the file.
        at: usize,
    },
    /// A document of a file cannot be read.
    Document {
        /// The file, and its line (from 1) or its row (from 0), if it has lines or rows.
        place: String,
        /// What is wrong with it.
        reason: Reason,
    },
    /// A text file cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// The message of the system.
        reason: Reason,
    },
    /// A file cannot be written.
    Unwritable {
        /// The file.
        path: String,
        /// The message of the system.
        reason: String,
    },
    /// A file of another library breaks a rule of its format.
    Format {
        /// The place in the file: a field such as `model.vocab`, an offset, or a line.
        place: String,
        /// The rule, with the value that breaks it.
        reason: Reason,
    },
    /// A file of another library asks for something that this crate does not do exactly.
    Unsupported {
        /// The place in the file, as in [`Format`](Self::Format).
        place: String,
        /// What it asks for.
        reason: Reason,
    },
    /// A conversation is longer than a row.
    TooLong {
        /// The index of the conversation.
        conversation: usize,
        /// Its number of ids.
        length: usize,
        /// The number of ids of a row.
        width: usize,
    },
    /// A count exceeds 64 bits.
    CountOverflow,
    /// A table of counts breaks one of its rules.
    Counts {
        /// The row, from 0.
        row: usize,
        /// The rule.
        rule: String,
    },
    /// Counts could not be spilled to disk, or read back.
    Spill {
        /// The file or folder.
        path: String,
        /// The message of the system.
        reason: String,
    },
    /// The distinct pretokens have more bytes than training supports.
    TooManyPretokens,
    /// The bytes of a tokenizer file break its format.
    File {
        /// The byte offset in the file.
        at: usize,
        /// The rule.
        reason: Reason,
    },
    /// The ids of a text do not decode to its bytes: the tables of a tokenizer file contradict its
    /// tokens.
    Contradiction,
    /// A stop string is empty.
    EmptyStop,
    /// An array changed while it was read.
    Changed,
    /// Memory could not be allocated.
    OutOfMemory {
        /// The number of bytes.
        bytes: usize,
    },
    /// The caller's progress callback requested a stop.
    Interrupted,
}

/// Shows at most 1,000 characters, since a file may contain a name of a million.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(self.hint().rust))
    }
}

/// A message of at most 1,000 characters: the middle of a longer one is left out, because the place
/// stands at the start and the hint at the end.
///
/// ```
/// assert_eq!(bytepair::shortened("short".to_owned()), "short");
/// assert_eq!(bytepair::shortened("é".repeat(5_000)).chars().count(), 1_000);
/// ```
pub fn shortened(message: String) -> String {
    const START: usize = 600;
    const END: usize = 1_000 - START - 3;
    let chars = message.chars().count();
    if chars <= START + END + 3 {
        return message;
    }
    let at = |index| message.char_indices().nth(index).map_or(message.len(), |(at, _)| at);
    format!("{}...{}", &message[..at(START)], &message[at(chars - END)..])
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Hint {
        match self {
            Self::SpecialInText { .. } => reason::SPECIAL_IN_TEXT,
            Self::Uncovered { .. } => reason::DROP_UNCOVERED,
            Self::FileNotUtf8 { .. } => *REPAIR,
            Self::Contradiction => reason::LOAD_AGAIN,
            Self::Split { .. } => {
                Hint::new("use a pattern that does not backtrack, or use shorter texts")
            }
            Self::TooLong { .. } => Hint::new("truncate it first, or make rows wider"),
            Self::Spill { .. } => Hint::new(
                "free some space, or put temporary files elsewhere, or count with a larger memory \
                 limit",
            ),
            Self::TooManyPretokens => {
                Hint::new("train on a sample, or drop pretokens that occur once")
            }
            Self::OutOfMemory { .. } => Hint::new(
                "pass less text at once, or use fewer threads, or raise the limit of the process",
            ),
            Self::TextNotUtf8 { .. } => Hint::new("repair it, or replace invalid bytes"),
            Self::Vocabulary { reason }
            | Self::File { reason, .. }
            | Self::Document { reason, .. }
            | Self::Unreadable { reason, .. }
            | Self::Format { reason, .. }
            | Self::Unsupported { reason, .. } => reason.hint(),
            _ => Hint::new(""),
        }
    }

    /// The message for a caller with its own words for what to do: at most 1,000 characters.
    ///
    /// ```
    /// let error = bytepair::Error::FileNotUtf8 { path: "a.txt".to_owned(), at: 1 };
    /// assert_eq!(error.message(error.hint().plain), "a.txt is not UTF-8 at byte 1; repair it");
    /// ```
    pub fn message(&self, hint: &str) -> String {
        shortened(reason::sentence(&self.problem(), hint))
    }

    /// What is wrong, without what to do about it.
    ///
    /// ```
    /// let error = bytepair::Error::SpecialInText { name: "<|bos|>".to_owned(), at: 3 };
    /// assert_eq!(error.problem(), "the text contains the special token \"<|bos|>\" at byte 3");
    /// ```
    pub fn problem(&self) -> String {
        match self {
            Self::Pattern { pattern, at, reason } => pattern_problem(pattern, *at, reason),
            Self::PatternName { reason } | Self::Growth { reason } => reason.clone(),
            Self::Split { at, reason } => {
                format!("the split pattern failed on the text at byte {at}: {reason}")
            }
            Self::Vocabulary { reason } => reason.text().to_owned(),
            Self::UnknownId { id, vocab_size } => {
                format!("id {id} is not in the vocabulary, whose ids are below {vocab_size}")
            }
            Self::UnknownSpecial { name, known } => format!(
                "{name:?} is not a special token of this tokenizer; it has {}",
                if known.is_empty() { "none".to_owned() } else { known.join(" ") }
            ),
            Self::SpecialInText { name, at } => {
                format!("the text contains the special token {name:?} at byte {at}")
            }
            Self::Uncovered { part } => {
                format!("{part} occurs in the text but no token of the vocabulary covers it")
            }
            Self::TextNotUtf8 { document, at } => {
                format!("document {document} is not UTF-8 at byte {at}")
            }
            Self::FileNotUtf8 { path, at } => format!("{path} is not UTF-8 at byte {at}"),
            Self::Unreadable { path, reason } => {
                format!("{path} cannot be read: {}", reason.text())
            }
            Self::Unwritable { path, reason } => format!("{path} cannot be written: {reason}"),
            Self::Document { place, reason }
            | Self::Format { place, reason }
            | Self::Unsupported { place, reason } => format!("{place}: {}", reason.text()),
            Self::TooLong { conversation, length, width } => format!(
                "conversation {conversation} has {length} ids and does not fit a row of {width}"
            ),
            Self::CountOverflow => "a count exceeds 64 bits".to_owned(),
            Self::Counts { row, rule } => format!("the counts are invalid at row {row}: {rule}"),
            Self::Spill { path, reason } => {
                format!("counts could not be spilled to {path}: {reason}")
            }
            Self::TooManyPretokens => "the distinct pretokens have more than 2^32 bytes".to_owned(),
            Self::File { at, reason } => {
                format!("not a valid tokenizer file, at byte {at}: {}", reason.text())
            }
            Self::Contradiction => {
                "the tokenizer file is inconsistent: the ids of a text do not decode to its bytes"
                    .to_owned()
            }
            Self::EmptyStop => "a stop string is empty, and would end every text".to_owned(),
            Self::Changed => "an array changed while it was read; no other thread may write to it \
                              during a call, so pass a copy"
                .to_owned(),
            Self::OutOfMemory { bytes } => {
                format!("out of memory: {bytes} bytes could not be allocated")
            }
            Self::Interrupted => "interrupted".to_owned(),
        }
    }

    /// A vocabulary breaks a rule, with what to do about it.
    pub(crate) fn vocabulary(text: impl Into<String>, hint: &'static Hint) -> Self {
        Self::Vocabulary { reason: Reason::new(text, hint) }
    }

    /// A file cannot be read.
    pub(crate) fn unreadable(path: &Path, reason: impl Into<Reason>) -> Self {
        Self::Unreadable { path: path.display().to_string(), reason: reason.into() }
    }

    /// A file cannot be written.
    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::Unwritable { path: path.display().to_string(), reason: error.to_string() }
    }

    /// The error of this crate that an I/O error wraps; without one, the result of `otherwise`.
    pub(crate) fn of_io(error: &io::Error, otherwise: impl FnOnce(&io::Error) -> Self) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>());
        inner.cloned().unwrap_or_else(|| otherwise(error))
    }

    /// An error while counts are written to or read from a file.
    pub(crate) fn of_spill(path: &Path, error: &io::Error) -> Self {
        Self::of_io(error, |error| Self::Spill {
            path: path.display().to_string(),
            reason: error.to_string(),
        })
    }

    /// The error with `bytes` added to its offset: converts an offset in a part of a text to an
    /// offset in the text.
    pub(crate) fn shifted(mut self, bytes: usize) -> Self {
        if let Self::Split { at, .. } | Self::SpecialInText { at, .. } = &mut self {
            *at += bytes;
        }
        self
    }
}

/// A number with a comma between every three digits.
pub(crate) struct Grouped(pub(crate) usize);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.char_indices() {
            let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
            write!(f, "{}{digit}", if comma { "," } else { "" })?;
        }
        Ok(())
    }
}

/// What is wrong with a pattern: its part around the error, with a caret below the position, if known.
fn pattern_problem(pattern: &str, at: Option<usize>, reason: &str) -> String {
    const MAX_CONTEXT_CHARS: usize = 60;
    let Some(at) = at else {
        return format!("the split pattern is not valid: {reason}\n  {pattern}");
    };
    let (head, tail) = pattern.split_at_checked(at).unwrap_or((pattern, ""));
    let length = head.chars().count();
    let (dots, skipped) =
        if length > MAX_CONTEXT_CHARS { ("...", length - MAX_CONTEXT_CHARS) } else { ("", 0) };
    let before: String = dots.chars().chain(head.chars().skip(skipped)).collect();
    let after: String = tail.chars().take(MAX_CONTEXT_CHARS).collect();
    let caret = " ".repeat(before.chars().count());
    format!("the split pattern is not valid at byte {at}: {reason}\n  {before}{after}\n  {caret}^")
}

impl std::error::Error for Error {}

/// Lets implementations of `Read` and `Write` return this error; `Error::of_io` is the inverse.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}
