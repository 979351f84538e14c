//! How a text is changed before it is split, and how SentencePiece's spaces are put into it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

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

// ---------------------------------------------------------------------------- fast forms
//
// NFC and NFKC with the tables of Unicode 9, as in Hugging Face tokenizers, and the spaces of
// SentencePiece.
//
// The normalization of a character never changes once Unicode has the character. So newer tables
// give the same result as those of Unicode 9, except for characters added later (*younger*
// characters), which the old tables do not change. Text is cut at the younger characters that the
// current tables would change, and the pieces between them are normalized.

/// A normalizer with a fast way: most texts are already normalized, and are not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Canonical composition.
    Nfc,
    /// Compatibility composition, which also replaces variants such as full-width letters.
    Nfkc,
    /// The spaces of SentencePiece.
    Spaces(SpacePrefix),
}

impl Form {
    /// The form of a normalizer; `None` if it has no step, or no fast way.
    pub(crate) fn of_normalizer(normalizer: &Normalizer) -> Option<Self> {
        match normalizer.steps[..] {
            [NormalizerStep::Nfc] => Some(Self::Nfc),
            [NormalizerStep::Nfkc] => Some(Self::Nfkc),
            [NormalizerStep::Spaces(prefix)] => Some(Self::Spaces(prefix)),
            _ => None,
        }
    }

    /// Normalize a part of a text. Most texts are already normalized and are not copied.
    pub(crate) fn of(self, text: &str, start: PartStart) -> Result<Cow<'_, str>> {
        let done = match self {
            Self::Spaces(prefix) => return prefix.of(text, start),
            // 0xCC is the first byte of U+0300; characters below U+0300 never combine.
            Self::Nfc => {
                text.bytes().all(|byte| byte < 0xCC)
                    || is_nfc_quick(text.chars()) == IsNormalized::Yes
            }
            Self::Nfkc => text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes,
        };
        if done {
            return Ok(Cow::Borrowed(text));
        }
        // The result is rarely longer than the text; if it is, the string doubles.
        memory::check(3 * text.len())?;
        let mut normalized = String::with_capacity(text.len());
        for piece in text.split_inclusive(is_younger) {
            let old = piece.trim_end_matches(is_younger);
            match self {
                Self::Nfkc => normalized.extend(old.nfkc()),
                _ => normalized.extend(old.nfc()),
            }
            normalized.push_str(&piece[old.len()..]);
        }
        Ok(Cow::Owned(normalized))
    }

    /// Whether normalization never changes a character, and never combines or reorders it with the
    /// characters before it. So the text before two such characters is normalized independently of
    /// the text after it.
    pub(crate) fn separates(self, character: char) -> bool {
        let once = std::iter::once(character);
        let is_unchanged = match self {
            Self::Nfc => is_nfc_quick(once) == IsNormalized::Yes,
            Self::Nfkc => is_nfkc_quick(once) == IsNormalized::Yes,
            Self::Spaces(_) => return character != META,
        };
        is_unchanged && canonical_combining_class(character) == 0
    }
}

/// Whether the current tables change, combine or reorder a character that Unicode 9 does not have.
pub(super) fn is_younger(character: char) -> bool {
    let at = YOUNGER.partition_point(|&(_, last)| last < character);
    YOUNGER.get(at).is_some_and(|&(first, _)| first <= character)
}

/// The younger characters, as the first and last character of each range, in order.
#[rustfmt::skip]
const YOUNGER: [(char, char); 98] = [
    ('\u{558}', '\u{558}'), ('\u{58b}', '\u{58c}'), ('\u{5c8}', '\u{5c9}'), ('\u{7fd}', '\u{7fd}'),
    ('\u{897}', '\u{89f}'), ('\u{8ca}', '\u{8d3}'), ('\u{9fe}', '\u{9fe}'), ('\u{c3c}', '\u{c3c}'),
    ('\u{d3b}', '\u{d3c}'), ('\u{eba}', '\u{eba}'), ('\u{1715}', '\u{1715}'),
    ('\u{1abf}', '\u{1af0}'), ('\u{1df6}', '\u{1dfa}'), ('\u{209d}', '\u{209f}'),
    ('\u{32ff}', '\u{32ff}'), ('\u{a7f1}', '\u{a7f4}'), ('\u{a82c}', '\u{a82c}'),
    ('\u{ab66}', '\u{ab67}'), ('\u{ab69}', '\u{ab69}'), ('\u{105c9}', '\u{105c9}'),
    ('\u{105d2}', '\u{105d2}'), ('\u{105da}', '\u{105da}'), ('\u{105e4}', '\u{105e4}'),
    ('\u{10781}', '\u{10785}'), ('\u{10787}', '\u{107b0}'), ('\u{107b2}', '\u{107bf}'),
    ('\u{10d24}', '\u{10d27}'), ('\u{10d69}', '\u{10d6d}'), ('\u{10eab}', '\u{10eac}'),
    ('\u{10ecb}', '\u{10ecf}'), ('\u{10ef0}', '\u{10efb}'), ('\u{10efd}', '\u{10eff}'),
    ('\u{10f46}', '\u{10f50}'), ('\u{10f82}', '\u{10f85}'), ('\u{11070}', '\u{11070}'),
    ('\u{1133b}', '\u{1133b}'), ('\u{11382}', '\u{11385}'), ('\u{1138b}', '\u{1138b}'),
    ('\u{1138e}', '\u{1138e}'), ('\u{11390}', '\u{11391}'), ('\u{113b8}', '\u{113b8}'),
    ('\u{113bb}', '\u{113bb}'), ('\u{113c2}', '\u{113c2}'), ('\u{113c5}', '\u{113c5}'),
    ('\u{113c7}', '\u{113c9}'), ('\u{113ce}', '\u{113d0}'), ('\u{1145e}', '\u{1145e}'),
    ('\u{11839}', '\u{1183a}'), ('\u{11930}', '\u{11930}'), ('\u{11935}', '\u{11935}'),
    ('\u{11938}', '\u{11938}'), ('\u{1193d}', '\u{1193e}'), ('\u{11943}', '\u{11943}'),
    ('\u{119e0}', '\u{119e0}'), ('\u{11a34}', '\u{11a34}'), ('\u{11a47}', '\u{11a47}'),
    ('\u{11a99}', '\u{11a99}'), ('\u{11d42}', '\u{11d42}'), ('\u{11d44}', '\u{11d45}'),
    ('\u{11d97}', '\u{11d97}'), ('\u{11f41}', '\u{11f42}'), ('\u{1611e}', '\u{16129}'),
    ('\u{1612f}', '\u{1612f}'), ('\u{16d63}', '\u{16d63}'), ('\u{16d67}', '\u{16d6a}'),
    ('\u{16ff0}', '\u{16ff1}'), ('\u{1b123}', '\u{1b126}'), ('\u{1ccd6}', '\u{1ccf9}'),
    ('\u{1d127}', '\u{1d128}'), ('\u{1d250}', '\u{1d252}'), ('\u{1d25b}', '\u{1d25c}'),
    ('\u{1d25f}', '\u{1d25f}'), ('\u{1d280}', '\u{1d281}'), ('\u{1d6a6}', '\u{1d6a6}'),
    ('\u{1df04}', '\u{1df06}'), ('\u{1df08}', '\u{1df0b}'), ('\u{1df19}', '\u{1df19}'),
    ('\u{1df1c}', '\u{1df1c}'), ('\u{1df1e}', '\u{1df1e}'), ('\u{1df2b}', '\u{1df2c}'),
    ('\u{1df3e}', '\u{1df3f}'), ('\u{1df50}', '\u{1df50}'), ('\u{1df57}', '\u{1df59}'),
    ('\u{1df95}', '\u{1df95}'), ('\u{1dfcd}', '\u{1dfff}'), ('\u{1e030}', '\u{1e06d}'),
    ('\u{1e08f}', '\u{1e08f}'), ('\u{1e130}', '\u{1e136}'), ('\u{1e2ae}', '\u{1e2ae}'),
    ('\u{1e2ec}', '\u{1e2ef}'), ('\u{1e4ec}', '\u{1e4ef}'), ('\u{1e5ee}', '\u{1e5ef}'),
    ('\u{1e6e3}', '\u{1e6e3}'), ('\u{1e6e6}', '\u{1e6e6}'), ('\u{1e6ee}', '\u{1e6ef}'),
    ('\u{1e6f5}', '\u{1e6f5}'), ('\u{1f16c}', '\u{1f16c}'), ('\u{1fbf0}', '\u{1fbf9}'),
];

#[cfg(test)]
mod tests {
    use PartStart::{Inside, Special, Text};
    use fancy_regex::Regex;
    use unicode_normalization::char::{decompose_canonical, decompose_compatible};

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

    #[test]
    fn the_list_contains_the_characters_that_the_current_tables_would_change() {
        let old = Regex::new(r"^\p{Age=9.0}$").unwrap();
        let is_young = |c: char| !old.is_match(&c.to_string()).unwrap();
        for c in '\0'..=char::MAX {
            let mut parts = Vec::new();
            decompose_canonical(c, |part| parts.push(part));
            decompose_compatible(c, |part| parts.push(part));
            if parts == [c, c] && canonical_combining_class(c) == 0 {
                continue;
            }
            if is_young(c) {
                let young = parts.iter().filter(|&&part| is_young(part));
                assert!(young.chain([&c]).all(|&part| is_younger(part)), "{c:?}");
            }
        }
        assert!(YOUNGER.iter().all(|&(first, last)| is_young(first) && is_young(last)));
    }

    #[test]
    fn text_is_composed() {
        let nfc = |text| Form::Nfc.of(text, PartStart::Text).unwrap().into_owned();
        assert_eq!(nfc("plain Ärger ﬁ"), "plain Ärger ﬁ");
        assert_eq!(nfc("a\u{308}e\u{301}"), "äé");
        assert_eq!(nfc("a\u{345}\u{301}"), "á\u{345}");
        assert_eq!(nfc("\u{1112}\u{1161}\u{11ab}"), "한");
        assert_eq!(nfc(""), "");
        assert_eq!(Form::Nfkc.of("ﬁ\u{a0}Ａe\u{301}", PartStart::Text).unwrap(), "fi Aé");
    }

    #[test]
    fn younger_characters_are_not_changed() {
        for text in ["a\u{345}\u{1ac0}\u{301}", "\u{105d2}\u{307}", "\u{1ac0}\u{1ac0}e", "\u{32ff}"]
        {
            assert_eq!(
                Form::Nfkc.of(text, PartStart::Text).unwrap().replace(' ', ""),
                Form::Nfkc.of(text, PartStart::Text).unwrap()
            );
            assert_eq!(Form::Nfc.of(text, PartStart::Text).unwrap(), text);
        }
        assert_eq!(
            Form::Nfc.of("e\u{301}\u{1ac0}e\u{301}", PartStart::Text).unwrap(),
            "é\u{1ac0}é"
        );
        assert_eq!(Form::Nfkc.of("\u{32ff}ﬁ", PartStart::Text).unwrap(), "\u{32ff}fi");
    }
}
