//! How a text is changed before it is split, and how SentencePiece's spaces are put into it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::memory;

/// A sequence of changes to a text; empty for most tokenizers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Normalizer {
    /// The steps; each changes the result of the previous one.
    pub steps: Vec<NormalizerStep>,
}

/// One change to a text, with the tables of Unicode that Hugging Face `tokenizers` uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NormalizerStep {
    /// Canonical decomposition and composition.
    Nfc,
    /// Canonical decomposition.
    Nfd,
    /// Compatibility decomposition and canonical composition.
    Nfkc,
    /// Compatibility decomposition.
    Nfkd,
    /// Lower case, character by character.
    Lowercase,
    /// Removes combining marks (general category M).
    StripAccents,
    /// Removes white space at the start and at the end of each part of a text.
    Strip {
        /// At the start.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// Puts a text before each part of a text that is not empty.
    Prepend(String),
    /// Replaces every match of a pattern.
    Replace {
        /// What is replaced.
        pattern: ReplacePattern,
        /// By what.
        content: String,
    },
    /// The spaces of SentencePiece: U+2581 stands for a space, and a space may be put before a
    /// text. The tokens of the vocabulary contain spaces, not U+2581.
    Spaces(SpacePrefix),
}

impl NormalizerStep {
    /// The name of this kind of step in a `tokenizer.json`.
    ///
    /// ```
    /// assert_eq!(bytepair::rules::NormalizerStep::Nfc.kind(), "NFC");
    /// ```
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Nfc => "NFC",
            Self::Nfd => "NFD",
            Self::Nfkc => "NFKC",
            Self::Nfkd => "NFKD",
            Self::Lowercase => "Lowercase",
            Self::StripAccents => "StripAccents",
            Self::Strip { .. } => "Strip",
            Self::Prepend(_) => "Prepend",
            Self::Replace { .. } => "Replace",
            Self::Spaces(_) => "Metaspace",
        }
    }
}

/// What [`NormalizerStep::Replace`] replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplacePattern {
    /// A literal text.
    Literal(String),
    /// The matches of a regular expression.
    Regex(String),
}

/// Where [`NormalizerStep::Spaces`] puts a space.
///
/// A SentencePiece vocabulary writes U+2581 for a space, and its tokenizers turn each space of a
/// text into that character. Here it is the other way round, with the same ids: the tokens contain
/// spaces, and each U+2581 of a text becomes a space. Most of these tokenizers also add a space
/// before a text, so that its first word is the same token as within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpacePrefix {
    /// Nowhere.
    Never,
    /// At the start of the text and after every added token.
    Always,
    /// At the same positions, unless a space follows there.
    Missing,
    /// At the start of the text, unless a space or an added token follows there.
    First,
}

/// The character that stands for a space.
pub(crate) const META: char = '\u{2581}';

/// What precedes a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartStart {
    /// Nothing: the part starts the text.
    #[default]
    Text,
    /// A special token.
    Special,
    /// Ordinary text, which the part continues.
    Inside,
}

impl SpacePrefix {
    /// Whether a space is added before a part that begins with this character.
    pub(crate) fn applies(self, first: Option<char>, start: PartStart) -> bool {
        let missing = !matches!(first, Some(' ' | META));
        first.is_some()
            && start != PartStart::Inside
            && match self {
                Self::Never => false,
                Self::Always => true,
                Self::Missing => missing,
                Self::First => missing && start == PartStart::Text,
            }
    }

    /// The part with its final spaces. An unchanged part is not copied.
    pub(crate) fn of(self, part: &str, start: PartStart) -> Result<Cow<'_, str>> {
        let prefix = self.applies(part.chars().next(), start);
        if !prefix && !part.contains(META) {
            return Ok(Cow::Borrowed(part));
        }
        let mut text = String::new();
        memory::reserve_text(&mut text, part.len() + 1)?;
        if prefix {
            text.push(' ');
        }
        for (index, piece) in part.split(META).enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(piece);
        }
        Ok(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests {
    use PartStart::{Inside, Special, Text};

    use super::*;

    #[test]
    fn a_space_is_added_by_the_rule() {
        let of = |prefix: SpacePrefix, part, start| prefix.of(part, start).unwrap().into_owned();
        for (prefix, at_text, after_special, with_space) in [
            (SpacePrefix::Never, "a", "a", " a"),
            (SpacePrefix::Always, " a", " a", "  a"),
            (SpacePrefix::Missing, " a", " a", " a"),
            (SpacePrefix::First, " a", "a", " a"),
        ] {
            assert_eq!(of(prefix, "a", Text), at_text);
            assert_eq!(of(prefix, "a", Special), after_special);
            assert_eq!(of(prefix, " a", Text), with_space);
            assert_eq!(of(prefix, "\u{2581}a", Text), with_space);
            assert_eq!(of(prefix, "a \u{2581}", Inside), "a  ");
            assert_eq!(of(prefix, "", Text), "");
        }
    }
}
