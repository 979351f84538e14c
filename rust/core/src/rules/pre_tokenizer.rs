//! How a text is split into pretokens.

use super::normalizer::SpacePrefix;
use crate::pretokenize::Pattern;

/// A sequence of splits; each splits the pieces of the previous one. Without steps, the text
/// between two added tokens is one pretoken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreTokenizer {
    /// The steps, in order.
    pub steps: Vec<PreTokenizerStep>,
}

impl From<Pattern> for PreTokenizer {
    fn from(pattern: Pattern) -> Self {
        let (behavior, invert) = (Behavior::Isolated, false);
        Self { steps: vec![PreTokenizerStep::Split { pattern, behavior, invert }] }
    }
}

/// One split, in the terms of Hugging Face `tokenizers`, whose definitions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreTokenizerStep {
    /// At the matches of a regular expression.
    Split {
        /// The regular expression.
        pattern: Pattern,
        /// What happens to the matches.
        behavior: Behavior,
        /// Whether the text between matches counts as the match, and the reverse.
        invert: bool,
    },
    /// Between numeric characters and others.
    Digits {
        /// Whether each numeric character is a piece of its own, instead of each run.
        individual: bool,
    },
    /// At punctuation: ASCII punctuation and the general categories P.
    Punctuation(Behavior),
    /// `\w+|[^\w\s]+`; the white space between these is removed.
    Whitespace,
    /// At white space, which is removed.
    WhitespaceSplit,
    /// At white space, which is removed, and around punctuation.
    Bert,
    /// At a character, which is removed.
    Delimiter(char),
    /// Where the script of Unicode changes.
    UnicodeScripts,
    /// After a number of characters.
    FixedLength(usize),
    /// Before each space, where [`NormalizerStep::Spaces`](super::NormalizerStep::Spaces) holds.
    BeforeSpaces,
    /// Each space becomes another character, which may also be put before each piece. The names of
    /// tokens have this character.
    Metaspace {
        /// The character; U+2581 in most vocabularies.
        replacement: char,
        /// Where it is put: nowhere; before each piece that does not start with it
        /// ([`Missing`](SpacePrefix::Missing)); or only before such a piece at the start of the text
        /// ([`First`](SpacePrefix::First)).
        prefix: SpacePrefix,
        /// Whether the text is split before each such character.
        split: bool,
    },
    /// The bytes of the text become GPT-2's characters, one for each byte. Later steps see these
    /// characters.
    ByteLevel {
        /// Whether a space is put before each piece that does not start with one.
        add_prefix_space: bool,
        /// Whether the text is first split by GPT-2's pattern.
        use_regex: bool,
    },
}

impl PreTokenizerStep {
    /// The name of this kind of step in a `tokenizer.json`.
    ///
    /// ```
    /// use bytepair::rules::PreTokenizerStep;
    /// assert_eq!(PreTokenizerStep::Digits { individual: true }.kind(), "Digits");
    /// ```
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Split { .. } => "Split",
            Self::Digits { .. } => "Digits",
            Self::Punctuation(_) => "Punctuation",
            Self::Whitespace => "Whitespace",
            Self::WhitespaceSplit => "WhitespaceSplit",
            Self::Bert => "BertPreTokenizer",
            Self::Delimiter(_) => "CharDelimiterSplit",
            Self::UnicodeScripts => "UnicodeScripts",
            Self::FixedLength(_) => "FixedLength",
            Self::BeforeSpaces | Self::Metaspace { .. } => "Metaspace",
            Self::ByteLevel { .. } => "ByteLevel",
        }
    }
}

/// What a split does with a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behavior {
    /// Each match is a piece of its own.
    #[default]
    Isolated,
    /// Matches are left out, and have no ids.
    Removed,
    /// Adjacent matches are one piece.
    Contiguous,
    /// A match belongs to the piece before it.
    MergedWithPrevious,
    /// A match belongs to the piece after it.
    MergedWithNext,
}
