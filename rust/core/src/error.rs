//! What can go wrong, one variant for each broken rule.
//!
//! A message names the rule, the value, the place and the way out, so that it can be acted upon
//! without reading this code.

use std::{fmt, io};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The split pattern is not a regular expression that we can compile.
    Pattern {
        /// The pattern as given.
        pattern: String,
        /// Where the error is, in bytes from the start of the pattern, where it is known.
        at: Option<usize>,
        /// What is wrong with it.
        reason: String,
    },
    /// A name of a split pattern that there is not.
    PatternName {
        /// The name, the one that may be meant, and those that there are.
        reason: String,
    },
    /// The split pattern gave up on a text, for instance after too much backtracking.
    Split {
        /// Where the search began that failed, in bytes from the start of the text.
        at: usize,
        /// What the regular-expression engine says.
        reason: String,
    },
    /// The asked vocabulary cannot hold the 256 bytes and the special tokens.
    VocabularyTooSmall {
        /// The size that was asked for.
        asked: usize,
        /// The smallest size that works.
        smallest: usize,
    },
    /// A vocabulary, a merge list or a set of special tokens breaks one of its rules.
    Vocabulary {
        /// Which rule, with the token or the id that breaks it.
        reason: String,
    },
    /// An id that the vocabulary does not have.
    UnknownId {
        /// The id, as it was given: it may be a number that no id can be.
        id: String,
        /// How many ids the vocabulary has: valid ids are below.
        vocab_size: usize,
    },
    /// Instructions that this processor does not have, or that come too late.
    Simd {
        /// Their name, and which can be used.
        reason: String,
    },
    /// A special token that the vocabulary does not have.
    UnknownSpecial {
        /// The name that was asked for.
        name: String,
        /// The names that exist, in the order of their ids.
        known: Vec<String>,
    },
    /// The text of a special token occurs where the caller forbade it.
    SpecialInText {
        /// The special token.
        name: String,
        /// Where it starts, in bytes from the start of the text.
        at: usize,
    },
    /// A byte that no token of the vocabulary covers.
    UncoveredByte {
        /// The byte.
        byte: u8,
    },
    /// Bytes that should be text are not UTF-8.
    TextNotUtf8 {
        /// Which of several texts it is, from 0 on.
        document: usize,
        /// Where the first invalid sequence starts, in bytes from the start of the text.
        at: usize,
    },
    /// A text in a parquet file is not UTF-8.
    RowNotUtf8 {
        /// The file.
        path: String,
        /// The row, from 0 on.
        row: usize,
        /// Where the first invalid sequence starts, in bytes from the start of the text.
        at: usize,
    },
    /// A text in a parquet file is longer than may be read as one.
    RowTooLong {
        /// The file.
        path: String,
        /// The row, from 0 on.
        row: usize,
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        most: usize,
    },
    /// A text file is not UTF-8.
    FileNotUtf8 {
        /// The file.
        path: String,
        /// Where the first invalid sequence starts, in bytes from the start of the file.
        at: usize,
    },
    /// A text file cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// A conversation does not fit the rows that conversations are packed into.
    TooLong {
        /// Which one, counted from 0.
        conversation: usize,
        /// How many ids it has.
        length: usize,
        /// How many ids a row has.
        width: usize,
    },
    /// A count no longer fits 64 bits.
    CountOverflow,
    /// A table of counts breaks one of its rules.
    Counts {
        /// The row, from 0 on.
        row: usize,
        /// Which rule.
        rule: String,
    },
    /// Counts that do not fit memory could not be put aside on disk, or read back.
    Spill {
        /// The file or folder.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// The distinct pretokens have more bytes than training can hold.
    TooManyPretokens,
    /// The bytes of a tokenizer file break its format.
    File {
        /// Where, in bytes from the start of the file.
        at: usize,
        /// Which rule.
        reason: String,
    },
    /// The ids of a text do not stand for its bytes: the tables of a tokenizer file contradict its
    /// tokens.
    Contradiction,
    /// Memory that could not be had.
    OutOfMemory {
        /// How many bytes.
        bytes: usize,
    },
    /// The caller's progress callback asked to stop.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern { .. } | Self::PatternName { .. } => self.write_about_pattern(f),
            Self::Split { at, reason } => write!(
                f,
                "the split pattern failed on the text at byte {at}: {reason}; \
                 use a pattern that does not backtrack, or shorter texts"
            ),
            Self::VocabularyTooSmall { .. } | Self::OutOfMemory { .. } => self.write_about_size(f),
            Self::Vocabulary { reason } | Self::Simd { reason } => f.write_str(reason),
            Self::UnknownId { id, vocab_size } => {
                write!(f, "id {id} is not in the vocabulary, whose ids are below {vocab_size}")
            }
            Self::UnknownSpecial { name, known } => write!(
                f,
                "{name:?} is not a special token of this tokenizer; it has {}",
                if known.is_empty() { "none".to_owned() } else { known.join(" ") }
            ),
            Self::SpecialInText { name, at } => write!(
                f,
                "the text holds the special token {name:?} at byte {at}; pass special=\"text\" to \
                 encode it as ordinary text, or special=\"all\" to encode it as the special token"
            ),
            Self::UncoveredByte { byte } => write!(
                f,
                "the byte 0x{byte:02X} occurs in the text but no token of the vocabulary covers it"
            ),
            Self::TextNotUtf8 { .. }
            | Self::RowNotUtf8 { .. }
            | Self::RowTooLong { .. }
            | Self::FileNotUtf8 { .. }
            | Self::Unreadable { .. } => self.write_about_text(f),
            Self::TooLong { conversation, length, width } => write!(
                f,
                "conversation {conversation} has {length} ids and does not fit a row of {width}; \
                 truncate it first, or make rows wider"
            ),
            Self::CountOverflow => f.write_str("a count exceeds 64 bits"),
            Self::Counts { row, rule } => write!(f, "the counts are wrong at row {row}: {rule}"),
            Self::Spill { path, reason } => write!(
                f,
                "counts could not be put aside in {path}: {reason}; free some space, put temporary \
                 files elsewhere, or count with a larger memory limit"
            ),
            Self::TooManyPretokens => f.write_str(
                "the distinct pretokens have more than 2^32 bytes; train on a sample, or drop \
                 pretokens that occur once",
            ),
            Self::File { at, reason } => {
                write!(f, "not a valid tokenizer file, at byte {at}: {reason}")
            }
            Self::Contradiction => f.write_str(
                "the tokenizer's file contradicts itself: the ids of a text do not stand for its \
                 bytes; load it with a full check, or save it again from where it came from",
            ),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Error {
    /// The error in an error of input or output, or else what `otherwise` makes of that.
    pub(crate) fn of_io(error: &io::Error, otherwise: impl FnOnce(&io::Error) -> Self) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>());
        inner.cloned().unwrap_or_else(|| otherwise(error))
    }

    /// The same error of a text before which `bytes` more stand.
    pub(crate) fn behind(mut self, bytes: usize) -> Self {
        if let Self::Split { at, .. } = &mut self {
            *at += bytes;
        }
        self
    }

    /// What is wrong with a split pattern.
    fn write_about_pattern(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern { pattern, at, reason } => write_pattern(f, pattern, *at, reason),
            Self::PatternName { reason } => f.write_str(reason),
            _ => Ok(()),
        }
    }

    /// What is too small or too large.
    fn write_about_size(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VocabularyTooSmall { asked, smallest } => write!(
                f,
                "vocab_size {asked} is too small for the 256 bytes and the special tokens; \
                 the smallest size is {smallest}"
            ),
            Self::OutOfMemory { bytes } => write!(
                f,
                "out of memory: {bytes} bytes could not be reserved; give less at once, use fewer \
                 threads, or raise the limit of the process"
            ),
            _ => Ok(()),
        }
    }

    /// What is wrong with a text or a text file as such.
    fn write_about_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TextNotUtf8 { document, at } => write!(
                f,
                "document {document} is not UTF-8 at its byte {at}; repair it, or have what is not \
                 UTF-8 replaced"
            ),
            Self::RowNotUtf8 { path, row, at } => write!(
                f,
                "{path}: document {row} is not UTF-8 at its byte {at}; repair it, or pass \
                 errors=\"replace\" to read U+FFFD there"
            ),
            Self::RowTooLong { path, row, bytes, most } => write!(
                f,
                "{path}, row {row}: the document has {} bytes, more than the {} that are read as one; \
                 raise max_document_bytes, or divide it",
                Grouped(*bytes),
                Grouped(*most)
            ),
            Self::FileNotUtf8 { path, at } => write!(
                f,
                "{path} is not UTF-8 at byte {at}; repair it, or pass errors=\"replace\" to read \
                 U+FFFD there"
            ),
            Self::Unreadable { path, reason } => write!(f, "{path} cannot be read: {reason}"),
            _ => Ok(()),
        }
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

/// A pattern with a mark below the place that is wrong, where it is known.
fn write_pattern(
    f: &mut fmt::Formatter<'_>,
    pattern: &str,
    at: Option<usize>,
    reason: &str,
) -> fmt::Result {
    let Some(at) = at else {
        return write!(f, "the split pattern is not valid: {reason}\n  {pattern}");
    };
    let column = pattern.get(..at).map_or(0, |head| head.chars().count());
    write!(f, "the split pattern is not valid at byte {at}: {reason}\n  {pattern}\n  ")?;
    write!(f, "{:column$}^", "")
}

impl std::error::Error for Error {}

/// For readers and writers, which have errors of their own; [`Error::of_io`] is the way back.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}
