//! Which ids stand around a text, and how ids become text.

use serde::{Deserialize, Serialize};

use crate::rules::normalizer::ReplacePattern;

/// The ids around a text, or around two, where the caller asks for them; and whether offsets leave
/// out white space.
///
/// [`Default`] is none: nothing is added.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PostProcessor {
    /// For one text; empty if there is no template, which is the same as the text alone.
    pub single: Vec<TemplatePiece>,
    /// For a pair of texts.
    pub pair: Vec<TemplatePiece>,
    /// Whether offsets leave out the white space at the ends of tokens, and with it whether the
    /// first space counts as put there by the pre-tokenizer.
    pub trim_offsets: Option<bool>,
}

impl PostProcessor {
    /// The ids before and after the text in the template for one text; none without a template.
    ///
    /// ```
    /// use bytepair::rules::{PostProcessor, TemplatePiece};
    /// let begin = TemplatePiece::Ids { name: "<s>".to_owned(), ids: vec![1], type_id: 0 };
    /// let single = vec![begin, TemplatePiece::Text { which: 0, type_id: 0 }];
    /// let processor = PostProcessor { single, ..PostProcessor::default() };
    /// assert_eq!(processor.around(), (vec![1], vec![]));
    /// ```
    pub fn around(&self) -> (Vec<u32>, Vec<u32>) {
        let is_text = |piece: &TemplatePiece| matches!(piece, TemplatePiece::Text { .. });
        let mut sides = self.single.splitn(2, is_text).map(|pieces| {
            let ids = pieces.iter().flat_map(TemplatePiece::ids);
            ids.copied().collect()
        });
        (sides.next().unwrap_or_default(), sides.next().unwrap_or_default())
    }

    /// All ids of the templates.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.single.iter().chain(&self.pair).flat_map(TemplatePiece::ids).copied()
    }
}

impl TemplatePiece {
    pub(super) fn ids(&self) -> &[u32] {
        match self {
            Self::Ids { ids, .. } => ids,
            Self::Text { .. } => &[],
        }
    }
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TemplatePiece {
    /// The ids of the first text (0) or of the second (1), with the type id of its tokens.
    Text {
        /// 0 or 1.
        which: u8,
        /// The type id.
        type_id: u32,
    },
    /// Ids.
    Ids {
        /// The name by which the template refers to them.
        name: String,
        /// The ids, in order.
        ids: Vec<u32>,
        /// The type id.
        type_id: u32,
    },
}

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

impl Decoder {
    /// The steps; those of bytes have none.
    pub(crate) fn steps(&self) -> &[DecoderStep] {
        if let Self::Steps(steps) = self { steps } else { &[] }
    }
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
