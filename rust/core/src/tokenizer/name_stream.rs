//! Decodes ids that arrive one by one, where the decoder works on the names of tokens.
//!
//! A step may change what the last token gives once another follows, and bytes may not be a character
//! yet. So the last ids are decoded again for each id, and what two successive results have in common
//! is given out. Steps look no further back than a run of bytes, except a replacement in joined
//! names: there all ids are decoded again, which takes quadratic time. A run of bytes is text only as
//! a whole, so a long one is decoded when it ends.

use super::Tokenizer;
use crate::error::Result;
use crate::rules::{Decoder, DecoderStep};

/// Ids are dropped when there are so many.
const MAX_HELD_IDS: usize = 64;
/// At least so many ids are kept then.
const MIN_KEPT_IDS: usize = 16;

/// The last ids, and the text that was given out.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameStream {
    ids: Vec<u32>,
    /// The text of these ids, but for the last ones if `is_behind`.
    text: String,
    /// Whether a long run of bytes has not ended, and is not decoded yet.
    is_behind: bool,
    /// The number of bytes of the text that were given out.
    returned_bytes: usize,
}

impl NameStream {
    /// Take an id, and return the text that is now complete. Fails if the id has no token; the stream
    /// does not change then.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        tokenizer.token_bytes(id)?;
        self.ids.push(id);
        let is_full = self.ids.len() >= MAX_HELD_IDS && looks_back_little(tokenizer);
        if is_full && self.ids.len() > MAX_HELD_IDS && is_byte(tokenizer, id) {
            self.is_behind = true;
            return Ok(String::new());
        }
        let text = tokenizer.decode(&self.ids).inspect_err(|_| {
            self.ids.pop();
        })?;
        let pairs = self.text.char_indices().zip(text.chars());
        let same = pairs.take_while(|((_, one), other)| one == other);
        let common = same.map(|((at, c), _)| at + c.len_utf8()).last().unwrap_or(0);
        let complete = text[..common].trim_end_matches(char::REPLACEMENT_CHARACTER).len();
        let from = self.returned_bytes;
        (self.returned_bytes, self.text, self.is_behind) = (complete.max(from), text, false);
        let piece = self.text.get(from..self.returned_bytes).unwrap_or_default().to_owned();
        if is_full {
            self.drop_ids(tokenizer)?;
        }
        Ok(piece)
    }

    /// Drop ids up to one that is not the token of a byte, if the rest of the text stays the same.
    fn drop_ids(&mut self, tokenizer: &Tokenizer) -> Result<()> {
        let movable = &self.ids[..self.ids.len() - MIN_KEPT_IDS];
        let Some(from) =
            movable.iter().rposition(|&id| !is_byte(tokenizer, id)).filter(|&at| at > 0)
        else {
            return Ok(());
        };
        let text = tokenizer.decode(&self.ids[from..])?;
        let rest = self.text.get(self.returned_bytes..).unwrap_or_default();
        if text.ends_with(rest) {
            self.returned_bytes = text.len() - rest.len();
            self.text = text;
            self.ids.drain(..from);
        }
        Ok(())
    }

    /// End the text, and return the rest of it. The stream can be used again.
    pub(crate) fn flush(&mut self, tokenizer: &Tokenizer) -> String {
        let Self { ids, text, is_behind, returned_bytes } = std::mem::take(self);
        let whole = if is_behind { tokenizer.decode(&ids).unwrap_or(text) } else { text };
        whole.get(returned_bytes..).unwrap_or_default().to_owned()
    }
}

/// Whether an id is that of a byte under byte fallback.
fn is_byte(tokenizer: &Tokenizer, id: u32) -> bool {
    tokenizer.token_name(id).starts_with("<0x")
}

/// Whether no step replaces text in joined names.
fn looks_back_little(tokenizer: &Tokenizer) -> bool {
    let Decoder::Steps(steps) = &tokenizer.rules().decoder else { return false };
    let joins = |step: &DecoderStep| matches!(step, DecoderStep::Fuse | DecoderStep::ByteLevel);
    let joined = steps.iter().skip_while(|step| !joins(step));
    !joined.into_iter().any(|step| matches!(step, DecoderStep::Replace { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use crate::rules::{Decoder, DecoderStep, StartSymbols, TextRules};
    use proptest::prelude::*;

    fn tokenizer(steps: Vec<DecoderStep>) -> Tokenizer {
        let names = ["a</w>", "b", "<0xC3>", "<0xA9>", "\u{2581}c"];
        let tokens = names.iter().zip(0..).map(|(name, id)| (name.as_bytes().to_vec(), id));
        let (symbols, decoder) = (Some(StartSymbols::default()), Decoder::Steps(steps));
        let rules = TextRules { symbols, decoder, ..TextRules::default() };
        let vocabulary = Vocabulary::new(tokens, []).unwrap();
        Tokenizer::from_merges(vocabulary, Vec::new(), false, rules).unwrap()
    }

    /// Runs of names, of bytes, and of the two bytes of a character.
    fn long_runs() -> impl Strategy<Value = Vec<u32>> {
        let parts = [vec![0], vec![1], vec![2], vec![2, 3], vec![4]];
        let run = (prop::sample::select(parts.to_vec()), 1..150usize);
        let runs = prop::collection::vec(run, 0..6);
        runs.prop_map(|runs| {
            runs.into_iter().flat_map(|(part, count)| part.repeat(count)).collect()
        })
    }

    proptest! {
        #[test]
        fn a_stream_equals_decoding_the_whole(
            ids in prop_oneof![prop::collection::vec(0u32..5, 0..200), long_runs()],
        ) {
            let meta = DecoderStep::Metaspace { replacement: '\u{2581}', drops_first: true };
            let suffix = DecoderStep::WordSuffix("</w>".to_owned());
            let strip = DecoderStep::Strip { content: ' ', start: 1, stop: 0 };
            for steps in [
                vec![DecoderStep::ByteFallback, meta.clone()],
                vec![DecoderStep::ByteFallback, meta, DecoderStep::Fuse, strip],
                vec![DecoderStep::ByteLevel],
                vec![suffix],
                Vec::new(),
            ] {
                let tokenizer = tokenizer(steps);
                let mut stream = NameStream::default();
                let pieces = ids.iter().map(|&id| stream.push(&tokenizer, id).unwrap());
                let text = pieces.collect::<String>() + &stream.flush(&tokenizer);
                prop_assert_eq!(text, tokenizer.decode(&ids).unwrap());
            }
        }
    }
}
