//! What happens to a text before its pretokens are merged, and to ids after that, as values.
//!
//! A text goes through four stages, in the words of Hugging Face `tokenizers`:
//!
//! 1. [`AddedToken`]s are cut out of the text, those that are not `normalized` first.
//! 2. The [`Normalizer`] changes the text between them; `normalized` added tokens are then cut out
//!    of the result.
//! 3. The [`PreTokenizer`] splits what is left into pretokens, in steps.
//! 4. Each pretoken is merged (not part of these rules), and the [`PostProcessor`] puts ids around
//!    the result, where the caller asks for it.
//!
//! Ids become text again by the [`Decoder`].
//!
//! The values say what is done, not how: the fast ways for common rules, and the general one for
//! all others, are chosen when a tokenizer is built.

pub(crate) mod growth;
pub(crate) mod normalize;
pub mod normalizer;
pub mod post_processor;
pub mod pre_tokenizer;

use serde::{Deserialize, Serialize};

pub use normalizer::{Normalizer, NormalizerStep, PartStart, ReplacePattern, SpacePrefix};
pub use post_processor::{Decoder, DecoderStep, PostProcessor, TemplatePiece};
pub use pre_tokenizer::{Behavior, PreTokenizer, PreTokenizerStep};

/// The rules of a tokenizer beside its vocabulary (with the added tokens) and its merges.
///
/// Two tokenizers whose rules differ are not equal. The rules of most tokenizers are a split
/// pattern and nothing else; `TextRules::from` a [`Pattern`](crate::Pattern) makes them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextRules {
    /// How a text is changed before it is split.
    pub normalizer: Normalizer,
    /// How a text is split.
    pub pre_tokenizer: PreTokenizer,
    /// The ids of the ordinary tokens that are found in each pretoken before it is merged, from left to
    /// right, the longest first: the user-defined pieces of SentencePiece.
    pub user_defined: Vec<u32>,
    /// From which symbols merging starts, if not from bytes.
    pub symbols: Option<StartSymbols>,
    /// Which ids stand around a text.
    pub post_processor: PostProcessor,
    /// How ids become text.
    pub decoder: Decoder,
    /// Whether what no token covers (a byte, or a symbol with a name) is left out before merging, as
    /// Hugging Face `tokenizers` does. It is an error otherwise.
    pub drops_uncovered: bool,
}

impl TextRules {
    /// These rules with other ids of tokens; ids without a new one are left out.
    ///
    /// ```
    /// use bytepair::TextRules;
    /// let rules = TextRules { user_defined: vec![5, 7], ..TextRules::default() };
    /// let renumbered = rules.renumbered(|id| (id != 5).then(|| id - 4));
    /// assert_eq!(renumbered.user_defined, [3]);
    /// ```
    #[must_use]
    pub fn renumbered(&self, new: impl Fn(u32) -> Option<u32>) -> Self {
        let mut rules = self.clone();
        rules.user_defined = rules.user_defined.into_iter().filter_map(&new).collect();
        rules.user_defined.sort_unstable();
        if let Some(symbols) = &mut rules.symbols {
            symbols.unknown = symbols.unknown.and_then(&new);
        }
        let PostProcessor { single, pair, .. } = &mut rules.post_processor;
        for pieces in [single, pair] {
            for piece in pieces.iter_mut() {
                if let TemplatePiece::Ids { ids, .. } = piece {
                    *ids = ids.iter().copied().filter_map(&new).collect();
                }
            }
            let is_empty = |piece: &TemplatePiece| matches!(piece, TemplatePiece::Ids { ids, .. } if ids.is_empty());
            pieces.retain(|piece| !is_empty(piece));
        }
        rules
    }

    /// The bytes of the rules, in the encoding of `postcard`: what the native file stores and the
    /// fingerprint hashes. Equal rules have equal bytes. The order of the fields and variants of all
    /// rules is part of the specification of that file.
    ///
    /// ```
    /// use bytepair::{Pattern, TextRules};
    /// let rules = TextRules::from(Pattern::new("gpt4")?);
    /// assert_eq!(TextRules::from_bytes(&rules.to_bytes()), Some(rules));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "every rule can be written to memory")]
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("every rule can be written to memory")
    }

    /// The rules of these bytes; `None` if they are not exactly those that
    /// [`to_bytes`](Self::to_bytes) writes, or are no rules of a tokenizer.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rules: Self = postcard::from_bytes(bytes).ok()?;
        (rules.to_bytes() == bytes && rules.is_possible()).then_some(rules)
    }

    /// Whether all values are possible in rules; their types allow more.
    fn is_possible(&self) -> bool {
        let PostProcessor { single, pair, .. } = &self.post_processor;
        let mut pieces = single.iter().chain(pair);
        let third = |piece: &TemplatePiece| matches!(piece, TemplatePiece::Text { which: 2.., .. });
        // No scheme of `Metaspace` puts a space before a space.
        let impossible = |step: &PreTokenizerStep| {
            matches!(step, PreTokenizerStep::Metaspace { prefix: SpacePrefix::Always, .. })
        };
        !pieces.any(third) && !self.pre_tokenizer.steps.iter().any(impossible)
    }
}

/// The symbols of a pretoken before its first merge, as Hugging Face `tokenizers` makes them for a
/// model of type BPE: one for each character, with the prefix or suffix that its place asks for.
///
/// The bytes of the vocabulary are then the names of tokens, in UTF-8. A tokenizer without this value
/// starts from bytes (or, under [`MergeRule::Characters`](crate::MergeRule::Characters), from the
/// characters of a text, whose bytes are tokens too).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartSymbols {
    /// What precedes each character but the first of a pretoken (`continuing_subword_prefix`); a merge
    /// drops it from its right part.
    pub prefix: String,
    /// What follows the last character of a pretoken (`end_of_word_suffix`).
    pub suffix: String,
    /// The id that stands for a symbol without a token (`unk_token`); without it, and without tokens
    /// of bytes, such a symbol is an error.
    pub unknown: Option<u32>,
    /// Whether adjacent unknown symbols become one id (`fuse_unk`).
    pub fuse_unknown: bool,
    /// Whether a symbol without a token becomes the tokens of its bytes, such as `<0x0A>`, if all of
    /// them exist (`byte_fallback`).
    pub byte_fallback: bool,
}

/// The name of the token of a byte.
///
/// ```
/// assert_eq!(bytepair::rules::name_of_byte(10), "<0x0A>");
/// ```
pub fn name_of_byte(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// A token that is found in a text by its content, before anything is split or merged.
///
/// *Special* tokens give a text its structure; ordinary text contains them only where the caller
/// allows it. The others are ordinary text that always becomes one id, such as runs of spaces in
/// vocabularies for code. The flags are those of Hugging Face `tokenizers`.
///
/// ```
/// use bytepair::AddedToken;
/// let token = AddedToken::special("<s>", 1);
/// assert_eq!(token, AddedToken { special: true, ..AddedToken::ordinary("<s>", 1) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the format")]
pub struct AddedToken {
    /// The id.
    pub id: u32,
    /// The text that becomes the id; not empty.
    pub content: String,
    /// Whether the token is special.
    pub special: bool,
    /// Whether it takes the white space before it.
    pub lstrip: bool,
    /// Whether it takes the white space after it.
    pub rstrip: bool,
    /// Whether it is found only between characters that are not part of a word.
    pub single_word: bool,
    /// Whether it is looked for in the normalized text instead of the original one; its content is
    /// normalized too.
    pub normalized: bool,
}

impl AddedToken {
    /// A special token without flags.
    pub fn special(content: impl Into<String>, id: u32) -> Self {
        Self { special: true, ..Self::ordinary(content, id) }
    }

    /// An ordinary added token without flags.
    pub fn ordinary(content: impl Into<String>, id: u32) -> Self {
        Self {
            id,
            content: content.into(),
            special: false,
            lstrip: false,
            rstrip: false,
            single_word: false,
            normalized: false,
        }
    }

    /// The flags as bits, from the lowest: `special`, `lstrip`, `rstrip`, `single_word`, `normalized`.
    pub(crate) fn flags(&self) -> u8 {
        let flags = [self.special, self.lstrip, self.rstrip, self.single_word, self.normalized];
        flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
    }

    /// A token with these flags.
    pub(crate) fn with_flags(content: String, id: u32, bits: u8) -> Self {
        let [special, lstrip, rstrip, single_word, normalized] =
            [0, 1, 2, 3, 4].map(|bit| bits >> bit & 1 == 1);
        Self { id, content, special, lstrip, rstrip, single_word, normalized }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> TextRules {
        let pattern = ReplacePattern::Regex(r"\s".to_owned());
        let replace = NormalizerStep::Replace { pattern, content: "é".to_owned() };
        let (replacement, prefix) = ('\u{2581}', SpacePrefix::First);
        let meta = PreTokenizerStep::Metaspace { replacement, prefix, split: true };
        let piece = TemplatePiece::Ids { name: "<s>".to_owned(), ids: vec![1, 2], type_id: 3 };
        TextRules {
            normalizer: Normalizer { steps: vec![NormalizerStep::Nfkd, replace] },
            pre_tokenizer: PreTokenizer {
                steps: vec![
                    meta,
                    PreTokenizerStep::isolated("a"),
                    PreTokenizerStep::FixedLength(3),
                ],
            },
            user_defined: vec![5],
            symbols: Some(StartSymbols { unknown: Some(7), ..StartSymbols::default() }),
            post_processor: PostProcessor {
                single: vec![piece, TemplatePiece::Text { which: 0, type_id: 0 }],
                pair: Vec::new(),
                trim_offsets: Some(true),
            },
            decoder: Decoder::Steps(vec![DecoderStep::Fuse]),
            drops_uncovered: true,
        }
    }

    #[test]
    fn rules_become_bytes_and_back() {
        for rules in [rules(), TextRules::default()] {
            assert_eq!(TextRules::from_bytes(&rules.to_bytes()), Some(rules));
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_other_rules() {
        let bytes = rules().to_bytes();
        for end in 0..bytes.len() {
            assert_eq!(TextRules::from_bytes(&bytes[..end]), None);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let read = TextRules::from_bytes(&bytes);
                assert!(read.is_none_or(|rules| rules.to_bytes() == bytes));
            }
        }
    }
}
