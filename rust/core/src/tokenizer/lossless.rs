//! Whether decoding gives every text back, derived from the rules and the vocabulary.

use super::Tokenizer;
use crate::decode::byte_of;
use crate::rules::normalizer::ReplacePattern;
use crate::rules::pre_tokenizer::{to_bytes, to_characters};
use crate::rules::{
    AddedToken, Behavior, Decoder, DecoderStep, NormalizerStep, PreTokenizerStep, StartSymbols,
    name_of_byte,
};
use crate::vocabulary::MergeRule;

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
        let Some(are_levels) = kept(&rules.pre_tokenizer.steps) else { return false };
        rules.normalizer.steps.iter().all(changes_nothing)
            && !self.ordinary_added().any(|token| token.lstrip || token.rstrip)
            && match (&rules.symbols, &rules.decoder) {
                (None, Decoder::Bytes) => self.has_bytes(|byte| vec![byte]),
                (None, Decoder::Steps(steps)) => {
                    self.has_bytes(|byte| vec![byte]) && self.levels_come_back(steps)
                }
                (Some(_), Decoder::Bytes) => false,
                (Some(StartSymbols { prefix, suffix, .. }), _)
                    if !prefix.is_empty() || !suffix.is_empty() =>
                {
                    false
                }
                (Some(_), Decoder::Steps(steps)) if are_levels => {
                    self.has_bytes(|byte| to_characters(&[byte]).into_bytes())
                        && self.levels_come_back(steps)
                }
                (Some(symbols), Decoder::Steps(steps)) => {
                    symbols.byte_fallback
                        && self.has_bytes(|byte| name_of_byte(byte).into_bytes())
                        && decodes_bytes(steps)
                        && self.text_becomes_no_byte()
                }
            }
    }

    /// The added tokens that are found in every text.
    fn ordinary_added(&self) -> impl Iterator<Item = &AddedToken> {
        self.vocabulary().added_tokens().iter().filter(|token| !token.special)
    }

    /// Whether there is an ordinary token of this name for each byte that texts have.
    fn has_bytes(&self, name: impl Fn(u8) -> Vec<u8>) -> bool {
        UTF8.into_iter().flatten().all(|byte| self.vocabulary().id(&name(byte)).is_some())
    }

    /// Whether steps decode GPT-2's characters, and leave the added tokens as they are.
    fn levels_come_back(&self, steps: &[DecoderStep]) -> bool {
        let level = steps.iter().position(|step| *step == DecoderStep::ByteLevel);
        let Some((before, [_, after @ ..])) = level.map(|at| steps.split_at(at)) else {
            return false;
        };
        let is_kept = |token: &AddedToken| match to_bytes(&token.content) {
            Some(bytes) => bytes == token.content.as_bytes(),
            None => before.is_empty(),
        };
        before.iter().all(|step| *step == DecoderStep::Fuse)
            && after.iter().all(keeps_one_name)
            && self.ordinary_added().all(is_kept)
    }

    /// Whether no text such as `<0x0A>` becomes the token of a byte.
    fn text_becomes_no_byte(&self) -> bool {
        let is_byte = |name: &[u8]| str::from_utf8(name).is_ok_and(|name| byte_of(name).is_some());
        let merges_to_byte = |&(left, right): &(u32, u32)| {
            let [left, right] =
                [left, right].map(|id| self.vocabulary().bytes(id).unwrap_or_default());
            is_byte(&[left, right].concat())
        };
        self.rule() == MergeRule::Merges { ignore_merges: false }
            && !self.merges().iter().any(merges_to_byte)
            && !self.ordinary_added().any(|token| is_byte(token.content.as_bytes()))
    }
}

/// Whether a step leaves a single name as it is, whatever it is.
fn keeps_one_name(step: &DecoderStep) -> bool {
    match step {
        DecoderStep::Fuse | DecoderStep::WordPiece { cleanup: false, .. } => true,
        DecoderStep::Strip { start, stop, .. } => *start == 0 && *stop == 0,
        _ => false,
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

/// Whether the pieces are GPT-2's characters at the end; `None` if a step drops or adds text.
fn kept(steps: &[PreTokenizerStep]) -> Option<bool> {
    steps.iter().try_fold(false, |are_levels, step| match step {
        PreTokenizerStep::ByteLevel { add_prefix_space: false, .. } => {
            (!are_levels).then_some(true)
        }
        step => keeps_text(step, are_levels).then_some(are_levels),
    })
}

/// Whether the pieces of a step are the text; none of GPT-2's characters is white space.
fn keeps_text(step: &PreTokenizerStep, are_levels: bool) -> bool {
    match step {
        PreTokenizerStep::Split { behavior, .. } | PreTokenizerStep::Punctuation(behavior) => {
            *behavior != Behavior::Removed
        }
        PreTokenizerStep::Digits { .. } | PreTokenizerStep::FixedLength(_) => true,
        PreTokenizerStep::Whitespace
        | PreTokenizerStep::WhitespaceSplit
        | PreTokenizerStep::Bert => are_levels,
        PreTokenizerStep::Delimiter(character) => {
            are_levels && to_bytes(character.encode_utf8(&mut [0; 4])).is_none()
        }
        _ => false,
    }
}
