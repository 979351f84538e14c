//! Whether decoding gives every text back, derived from the rules and the vocabulary.

use super::Tokenizer;
use crate::decode::steps::byte_of;
use crate::rules::byte_level::to_bytes;
use crate::rules::normalizer::ReplacePattern;
use crate::rules::symbols::name_of_byte;
use crate::rules::{
    AddedToken, Behavior, Decoder, DecoderStep, NormalizerStep, PreTokenizerStep, StartSymbols,
};
use crate::vocabulary::{MergeRule, NO_ID};

/// The bytes that occur in UTF-8.
const UTF8: [std::ops::RangeInclusive<u8>; 2] = [0..=0xBF, 0xC2..=0xF4];

impl Tokenizer {
    /// Whether every text is decoded to itself: `decode(encode(text)) == text`. Not so if a normalizer
    /// changes text, if the pre-tokenizer drops some, if an added token that is found in every text takes
    /// white space, if characters are unknown, if no token covers a byte that texts have, or if a decoder
    /// changes names.
    ///
    /// ```
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// let tokenizer = |bytes: std::ops::RangeInclusive<u8>| {
    ///     let bytes = bytes.map(|byte| (vec![byte], u32::from(byte)));
    ///     Tokenizer::from_ranks(Vocabulary::new(bytes, [])?, Pattern::new("gpt2")?)
    /// };
    /// assert!(tokenizer(0..=255)?.is_lossless() && tokenizer(0..=0xF4)?.is_lossless());
    /// assert!(!tokenizer(1..=255)?.is_lossless() && !tokenizer(0..=0xF3)?.is_lossless());
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn is_lossless(&self) -> bool {
        let rules = self.rules();
        rules.normalizer.steps.iter().all(changes_nothing)
            && rules.pre_tokenizer.steps.iter().all(drops_nothing)
            && !self.ordinary_added().any(|token| token.lstrip || token.rstrip)
            && match &rules.symbols {
                None => self.bytes_come_back(),
                Some(symbols) => self.names_come_back(symbols),
            }
    }

    /// The added tokens that are found in every text.
    fn ordinary_added(&self) -> impl Iterator<Item = &AddedToken> {
        self.vocabulary().added_tokens().iter().filter(|token| !token.special)
    }

    /// Whether all bytes of texts have tokens, which are decoded to these bytes.
    fn bytes_come_back(&self) -> bool {
        let ids = self.vocabulary().byte_ids();
        let is_covered = UTF8.into_iter().flatten().all(|byte| ids[usize::from(byte)] != NO_ID);
        is_covered
            && match &self.rules().decoder {
                Decoder::Bytes => true,
                Decoder::Steps(steps) => {
                    let (levels, others): (Vec<_>, Vec<_>) =
                        steps.iter().partition(|step| **step == DecoderStep::ByteLevel);
                    let is_alone = others.is_empty();
                    // The names of bytes are GPT-2's characters; those of added tokens are texts.
                    let is_kept = |token: &AddedToken| match to_bytes(&token.content) {
                        Some(bytes) => bytes == token.content.as_bytes(),
                        None => is_alone,
                    };
                    levels.len() == 1
                        && others.iter().all(|step| **step == DecoderStep::Fuse)
                        && self.ordinary_added().all(is_kept)
                }
            }
    }

    /// Whether all characters have tokens or are written as bytes, and only these are read as bytes.
    fn names_come_back(&self, symbols: &StartSymbols) -> bool {
        let StartSymbols { prefix, suffix, byte_fallback, .. } = symbols;
        let vocabulary = self.vocabulary();
        let has_bytes = || {
            let mut names = UTF8.into_iter().flatten().map(name_of_byte);
            names.all(|name| vocabulary.id(name.as_bytes()).is_some())
        };
        let is_byte = |name: &[u8]| str::from_utf8(name).is_ok_and(|name| byte_of(name).is_some());
        let merges_to_byte = |&(left, right): &(u32, u32)| {
            let [left, right] = [left, right].map(|id| vocabulary.bytes(id).unwrap_or_default());
            is_byte(&[left, right].concat())
        };
        *byte_fallback
            && prefix.is_empty()
            && suffix.is_empty()
            && self.rule() == MergeRule::Merges { ignore_merges: false }
            && matches!(&self.rules().decoder, Decoder::Steps(steps) if decodes_bytes(steps))
            && has_bytes()
            && !self.merges().iter().any(merges_to_byte)
            && !self.ordinary_added().any(|token| is_byte(token.content.as_bytes()))
    }
}

/// Whether steps turn names of bytes into text, and leave other names as they are.
fn decodes_bytes(steps: &[DecoderStep]) -> bool {
    steps.first() == Some(&DecoderStep::ByteFallback)
        && steps[1..].iter().all(|step| *step == DecoderStep::Fuse)
}

/// Whether a step of a normalizer leaves all texts as they are.
fn changes_nothing(step: &NormalizerStep) -> bool {
    match step {
        NormalizerStep::Strip { left, right } => !left && !right,
        NormalizerStep::Prepend(text) => text.is_empty(),
        NormalizerStep::Replace { pattern: ReplacePattern::Literal(text), content } => {
            text == content
        }
        _ => false,
    }
}

/// Whether the pieces of a step are the text.
fn drops_nothing(step: &PreTokenizerStep) -> bool {
    match step {
        PreTokenizerStep::Split { behavior, .. } | PreTokenizerStep::Punctuation(behavior) => {
            *behavior != Behavior::Removed
        }
        PreTokenizerStep::Digits { .. }
        | PreTokenizerStep::UnicodeScripts
        | PreTokenizerStep::FixedLength(_) => true,
        _ => false,
    }
}
