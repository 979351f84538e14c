//! How a text is changed before it is split, and how SentencePiece's spaces are put into it.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};
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
// characters), which the old tables do not change. Text is cut at the younger characters, and the
// pieces between them are normalized.

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

/// The characters of a constant class such as `[\p{L}\p{N}]`.
///
/// # Panics
///
/// If the expression is no class.
pub(crate) fn class(class: &str) -> ClassUnicode {
    match regex_syntax::parse(class).map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => class,
        other => unreachable!("{class} is a class of characters, not {other:?}"),
    }
}

/// Whether a character is in a class.
pub(crate) fn has(class: &ClassUnicode, character: char) -> bool {
    let at = class.ranges().partition_point(|range| range.end() < character);
    class.ranges().get(at).is_some_and(|range| range.start() <= character)
}

/// Whether Unicode 9 does not have a character. That some of these never change does not matter.
pub(super) fn is_younger(character: char) -> bool {
    static YOUNGER: LazyLock<ClassUnicode> = LazyLock::new(|| class(r"\P{Age=9.0}"));
    // The first one is U+0378.
    character > '\u{377}' && has(&YOUNGER, character)
}

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
    fn younger_characters_are_known_where_the_current_tables_change_them() {
        let old = Regex::new(r"^\p{Age=9.0}$").unwrap();
        let is_young = |c: char| !old.is_match(&c.to_string()).unwrap();
        for c in '\0'..=char::MAX {
            let mut parts = Vec::new();
            decompose_canonical(c, |part| parts.push(part));
            decompose_compatible(c, |part| parts.push(part));
            if parts == [c, c] && canonical_combining_class(c) == 0 {
                continue;
            }
            assert_eq!(is_younger(c), is_young(c), "{c:?}");
            if is_young(c) {
                let young = parts.iter().filter(|&&part| is_young(part));
                assert!(young.chain([&c]).all(|&part| is_younger(part)), "{c:?}");
            }
        }
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
