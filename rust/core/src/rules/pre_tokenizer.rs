//! How a text is split into pretokens.

use serde::{Deserialize, Serialize};

use crate::rules::normalizer::SpacePrefix;

/// The pattern that is built into `ByteLevel`: GPT-2's, in its first spelling.
pub(crate) const GPT2_SPLIT: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// What `Punctuation` splits at: ASCII punctuation and the general categories P of Unicode 8, of which
/// two characters have other categories today.
pub(crate) const PUNCTUATION: &str = concat!(
    r"[[\p{P}\$\+<=>\^~\|`\x{166d}\x{111c9}]&&[^",
    r"\x{61d}\x{9fd}\x{a76}\x{c77}\x{c84}\x{1b4e}-\x{1b4f}\x{1b7d}-\x{1b7f}",
    r"\x{2e43}-\x{2e4f}\x{2e52}-\x{2e5d}\x{10d6e}\x{10ead}\x{10f55}-\x{10f59}",
    r"\x{10f86}-\x{10f89}\x{113d4}-\x{113d5}\x{113d7}-\x{113d8}\x{1144b}-\x{1144f}",
    r"\x{1145a}-\x{1145b}\x{1145d}\x{11660}-\x{1166c}\x{116b9}\x{1183b}",
    r"\x{11944}-\x{11946}\x{119e2}\x{11a3f}-\x{11a46}\x{11a9a}-\x{11a9c}",
    r"\x{11a9e}-\x{11aa2}\x{11b00}-\x{11b09}\x{11be1}\x{11c41}-\x{11c45}",
    r"\x{11c70}-\x{11c71}\x{11ef7}-\x{11ef8}\x{11f43}-\x{11f4f}\x{11fff}",
    r"\x{12ff1}-\x{12ff2}\x{16d6d}-\x{16d6f}\x{16e97}-\x{16e9a}\x{16fe2}\x{1e5ff}",
    r"\x{1e95e}-\x{1e95f}",
    "]]"
);

/// A sequence of splits; each splits the pieces of the previous one. Without steps, the text
/// between two added tokens is one pretoken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PreTokenizer {
    /// The steps, in order.
    pub steps: Vec<PreTokenizerStep>,
}

/// One split, in the terms of Hugging Face `tokenizers`, whose definitions hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreTokenizerStep {
    /// At the matches of a regular expression.
    Split {
        /// The regular expression.
        regex: String,
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
    /// A split at the matches of a regular expression, which are pieces of their own, as is the text
    /// between them.
    pub fn isolated(regex: impl Into<String>) -> Self {
        Self::Split { regex: regex.into(), behavior: Behavior::Isolated, invert: false }
    }

    /// The regular expression of a split whose matches are pieces of their own.
    pub(crate) fn isolated_regex(&self) -> Option<&str> {
        match self {
            Self::Split { regex, behavior: Behavior::Isolated, .. } => Some(regex),
            _ => None,
        }
    }

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
            Self::Metaspace { .. } => "Metaspace",
            Self::ByteLevel { .. } => "ByteLevel",
        }
    }
}

/// What a split does with a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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

// ---------------------------------------------------------------------------- characters for bytes
//
// GPT-2's characters for bytes, in which `vocab.json`, `merges.txt`, `tokenizer.json` and GGUF
// store tokens.
//
// Printable bytes of Latin-1 map to themselves; the other 68, in order, to the characters from
// U+0100 on. So a space is `Ġ` and a line break `Ċ`.

/// The character that stands for a byte.
#[inline]
#[expect(clippy::missing_panics_doc, reason = "no code is that of a surrogate")]
pub fn character(byte: u8) -> char {
    let code = match byte {
        0..=0x20 => 0x100 + u32::from(byte),
        0x7F..=0xA0 => 0x121 + u32::from(byte - 0x7F),
        0xAD => 0x143,
        _ => return char::from(byte),
    };
    char::from_u32(code).expect("no code is that of a surrogate")
}

/// The byte that a character stands for.
#[inline]
pub fn byte(character: char) -> Option<u8> {
    let byte = match u32::from(character) {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => code,
        code @ 0x100..=0x120 => code - 0x100,
        code @ 0x121..=0x142 => code - 0x121 + 0x7F,
        0x143 => 0xAD,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// The characters of bytes.
///
/// ```
/// use bytepair::rules::pre_tokenizer::to_characters;
/// assert_eq!(to_characters(" né".as_bytes()), "ĠnÃ©");
/// ```
pub fn to_characters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(character).collect()
}

/// The bytes of characters, the inverse of [`to_characters`]; `None` if a character stands for no
/// byte.
///
/// ```
/// use bytepair::rules::pre_tokenizer::to_bytes;
/// assert_eq!(to_bytes("ĠnÃ©").as_deref(), Some(" né".as_bytes()));
/// assert_eq!((to_bytes("a b"), to_bytes("▁")), (None, None));
/// ```
pub fn to_bytes(characters: &str) -> Option<Vec<u8>> {
    characters.chars().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_character() {
        for b in 0..=u8::MAX {
            assert_eq!(byte(character(b)), Some(b));
        }
        assert_eq!((character(0), character(b' '), character(0xAD)), ('Ā', 'Ġ', 'Ń'));
        assert_eq!((byte(' '), byte('\u{AD}'), byte('\u{144}')), (None, None, None));
    }
}
