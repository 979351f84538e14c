//! How a text is changed before it is split.

use serde::{Deserialize, Serialize};

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
