//! How much the rules may make of a text.
//!
//! The rules may come from an untrusted file, in which a few steps that double a text would make more
//! than any memory holds. So the bytes that each step makes are counted, for all parts of a text
//! together, and so is the time of searches.

use super::normalizer::{NormalizerStep, ReplacePattern};
use super::{DecoderStep, PostProcessor, PreTokenizerStep, TextRules};
use crate::error::{Error, Result};
use crate::memory;
use crate::search::{Budget, MAX_WRITTEN_BYTES, too_many, written_bytes};

/// Bytes that a step may make of each byte of a text.
const BYTES_PER_BYTE: usize = 64;
/// Bytes that it may make of any text beside these.
const BYTES_PER_TEXT: usize = 1 << 20;
/// Steps that a normalizer, a pre-tokenizer or a decoder may have.
pub(crate) const MAX_STEPS: usize = 256;
/// Entries that a list of a post-processor's template may have: each piece of a token has all ids of
/// the token.
pub(crate) const MAX_ENTRIES: usize = 64;
/// Bytes that a prefix and a suffix of symbols may have.
const MAX_AFFIX_BYTES: usize = 64;

/// Memory is checked after this many bytes.
const BETWEEN_CHECKS_BYTES: usize = 1 << 20;
/// Bytes of memory for a string beside its text.
const STRING_BYTES: usize = 64;

/// The size of the text to which the rules change one text.
#[derive(Debug)]
pub(crate) struct TextGrowth {
    limit: usize,
    /// The bytes that the parts of the text before this one have after all steps.
    before: usize,
    /// These bytes, and those that the current step has added.
    size: usize,
    /// The bytes since memory was checked.
    unchecked: usize,
    /// The time for searches in the text.
    pub(crate) time: Budget,
    stage: &'static str,
    number: usize,
    kind: &'static str,
}

impl TextGrowth {
    /// For a text of this many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        let (limit, time) = (limit(bytes), Budget::new(bytes));
        Self { limit, before: 0, size: 0, unchecked: 0, time, stage: "", number: 0, kind: "" }
    }

    /// Begin a step, which is counted from 0: the field of its stage in a `tokenizer.json`, and its
    /// kind.
    pub(crate) fn begin(&mut self, stage: &'static str, number: usize, kind: &'static str) {
        (self.stage, self.number, self.kind) = (stage, number, kind);
        self.size = self.before;
    }

    /// Count what the step makes. Fails if it is too much, or if there is not enough memory.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) -> Result<()> {
        self.size = self.size.saturating_add(bytes);
        if self.size > self.limit {
            return Err(self.too_much());
        }
        self.unchecked += bytes + STRING_BYTES;
        if self.unchecked < BETWEEN_CHECKS_BYTES {
            return Ok(());
        }
        memory::check(std::mem::take(&mut self.unchecked))
    }

    /// End a part of the text, which has this many bytes after all steps.
    pub(crate) fn end_part(&mut self, bytes: usize) {
        self.before = self.before.saturating_add(bytes);
    }

    #[cold]
    fn too_much(&self) -> Error {
        let Self { stage, number, kind, .. } = self;
        too_much(&format!("step {} of the {stage} ({kind})", number + 1))
    }
}

/// Fails if a text of `size` bytes is too long for a decoder of names of `bytes` bytes.
pub(crate) fn check_stream(size: usize, bytes: usize) -> Result<()> {
    if size > limit(bytes) { Err(too_much("the decoder")) } else { Ok(()) }
}

/// The largest number of bytes that a step may make of a text of this many bytes.
fn limit(bytes: usize) -> usize {
    bytes.saturating_mul(BYTES_PER_BYTE).saturating_add(BYTES_PER_TEXT)
}

fn too_much(step: &str) -> Error {
    Error::Growth {
        reason: format!(
            "{step} makes more than {BYTES_PER_BYTE} bytes of each byte of the text and {} MiB",
            BYTES_PER_TEXT >> 20
        ),
    }
}

impl TextRules {
    /// Fails if the rules have more steps, or longer affixes of symbols, than any published tokenizer,
    /// or pieces of no length.
    pub(crate) fn check_bounds(&self) -> Result<()> {
        let symbols = self.symbols.iter().flat_map(|symbols| [&symbols.prefix, &symbols.suffix]);
        let PostProcessor { single, pair, .. } = &self.post_processor;
        let entries = single.iter().chain(pair).map(|piece| piece.ids().len());
        let entries = entries.chain([single.len(), pair.len()]).max().unwrap_or(0);
        let affix = symbols.map(String::len).max().unwrap_or(0);
        let steps = &self.pre_tokenizer.steps;
        let is_empty = |step: &&PreTokenizerStep| matches!(step, PreTokenizerStep::FixedLength(0));
        let empty = steps.iter().filter(is_empty).count();
        let most = [
            ("steps of the normalizer", self.normalizer.steps.len(), MAX_STEPS),
            ("steps of the pre-tokenizer", steps.len(), MAX_STEPS),
            ("steps of the decoder", self.decoder.steps().len(), MAX_STEPS),
            ("entries in a list of the post-processor", entries, MAX_ENTRIES),
            ("bytes of an affix of symbols", affix, MAX_AFFIX_BYTES),
            ("steps with pieces of no length", empty, 0),
        ];
        match most.into_iter().find(|(_, count, most)| count > most) {
            None => self.check_expressions(),
            Some((what, count, most)) => Err(Error::Vocabulary {
                reason: format!("the text rules have {count} {what}; {most} are possible").into(),
            }),
        }
    }

    /// Fails if the regular expressions have too many bytes together.
    fn check_expressions(&self) -> Result<()> {
        let in_normalizer = self.normalizer.steps.iter().map(|step| match step {
            NormalizerStep::Replace { pattern, .. } => pattern_bytes(pattern),
            _ => 0,
        });
        let in_pre_tokenizer = self.pre_tokenizer.steps.iter().map(|step| match step {
            PreTokenizerStep::Split { regex, .. } => written_bytes(regex),
            _ => 0,
        });
        let in_decoder = self.decoder.steps().iter().map(|step| match step {
            DecoderStep::Replace { pattern, .. } => pattern_bytes(pattern),
            _ => 0,
        });
        let all = in_normalizer.chain(in_pre_tokenizer).chain(in_decoder);
        let bytes = all.fold(0, usize::saturating_add);
        if bytes <= MAX_WRITTEN_BYTES {
            return Ok(());
        }
        let bytes = too_many(bytes);
        let reason = format!("the regular expressions of the text rules count as {bytes}");
        Err(Error::Vocabulary { reason: reason.into() })
    }
}

fn pattern_bytes(pattern: &ReplacePattern) -> usize {
    match pattern {
        ReplacePattern::Literal(text) => text.len(),
        ReplacePattern::Regex(regex) => written_bytes(regex),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::TemplatePiece;

    #[test]
    fn lists_of_a_template_are_short() {
        let ids = |count| TemplatePiece::Ids { name: "a".into(), ids: vec![0; count], type_id: 0 };
        let rules = |single| {
            let post_processor = PostProcessor { single, ..PostProcessor::default() };
            TextRules { post_processor, ..TextRules::default() }
        };
        assert_eq!(rules(vec![ids(MAX_ENTRIES)]).check_bounds(), Ok(()));
        assert!(rules(vec![ids(MAX_ENTRIES + 1)]).check_bounds().is_err());
        assert!(rules(vec![ids(1); MAX_ENTRIES + 1]).check_bounds().is_err());
    }

    #[test]
    fn all_parts_of_a_text_count() {
        let mut growth = TextGrowth::of(10);
        for _ in 0..2 {
            growth.begin("normalizer", 0, "Replace");
            growth.add(BYTES_PER_TEXT / 2).unwrap();
            growth.begin("normalizer", 1, "NFC");
            growth.add(BYTES_PER_TEXT / 2).unwrap();
            growth.end_part(BYTES_PER_TEXT / 2);
        }
        growth.begin("decoder", 4, "Strip");
        growth.add(640).unwrap();
        let error = growth.add(1).unwrap_err();
        assert!(error.to_string().starts_with("step 5 of the decoder (Strip) makes"), "{error}");
    }
}
