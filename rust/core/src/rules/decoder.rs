//! How ids become text.

use serde::{Deserialize, Serialize};

use super::normalizer::ReplacePattern;

/// How ids become text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Decoder {
    /// The bytes of the tokens, one after the other. With
    /// [`NormalizerStep::Spaces`](super::NormalizerStep::Spaces), the space that encoding puts
    /// before a text is left out.
    #[default]
    Bytes,
    /// Steps that work on the names of the tokens, as Hugging Face `tokenizers` defines them. Without
    /// steps, the names are joined by spaces.
    Steps(Vec<DecoderStep>),
}

/// One step of a decoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DecoderStep {
    /// GPT-2's characters become bytes.
    ByteLevel,
    /// Names of bytes such as `<0x0A>` become these bytes.
    ByteFallback,
    /// All tokens become one.
    Fuse,
    /// Replaces every match of a pattern in each token.
    Replace {
        /// What is replaced.
        pattern: ReplacePattern,
        /// By what.
        content: String,
    },
    /// Removes a character at the ends of each token.
    Strip {
        /// The character.
        content: char,
        /// How many at the start, at most.
        start: usize,
        /// How many at the end, at most.
        stop: usize,
    },
    /// U+2581, or another character, becomes a space.
    Metaspace {
        /// The character.
        replacement: char,
        /// Whether the space that encoding puts before a text is left out.
        drops_first: bool,
    },
    /// A suffix that ends words becomes a space.
    WordSuffix(String),
    /// A prefix that continues words is removed; other words are preceded by a space.
    WordPiece {
        /// The prefix.
        prefix: String,
        /// Whether spaces before punctuation and contractions are removed.
        cleanup: bool,
    },
}

impl DecoderStep {
    /// The name of this kind of step in a `tokenizer.json`.
    ///
    /// ```
    /// assert_eq!(bytepair::rules::DecoderStep::Fuse.kind(), "Fuse");
    /// ```
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ByteLevel => "ByteLevel",
            Self::ByteFallback => "ByteFallback",
            Self::Fuse => "Fuse",
            Self::Replace { .. } => "Replace",
            Self::Strip { .. } => "Strip",
            Self::Metaspace { .. } => "Metaspace",
            Self::WordSuffix(_) => "BPEDecoder",
            Self::WordPiece { .. } => "WordPiece",
        }
    }
}
