//! Puts the spaces into a text that the tokens of SentencePiece expect.
//!
//! A SentencePiece vocabulary writes U+2581 for a space, and its tokenizers turn each space of a
//! text into that character. Here it is the other way round, with the same ids: the tokens contain
//! spaces, and each U+2581 of a text becomes a space. Most of these tokenizers also add a space
//! before a text, so that its first word is the same token as within a line.

use std::borrow::Cow;

use super::normalizer::SpacePrefix;
use crate::error::Result;
use crate::memory;

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
    use super::*;
    use PartStart::{Inside, Special, Text};

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
