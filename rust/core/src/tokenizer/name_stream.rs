//! Decodes ids that arrive one by one, where the decoder works on the names of tokens.
//!
//! A run of byte tokens is text only as a whole: one byte too many makes U+FFFD of each. So a run is
//! held back until another token ends it. All other text is final at once, but for a character of
//! GPT-2's bytes that may not be complete. The last few ids are decoded again with each new one, for
//! steps that treat the first token in another way; where that is not enough, such as in a text of
//! which nothing is left, text comes in ever longer parts. If a step replaces text in joined names,
//! any text may still change, so all ids are held back.

use super::Tokenizer;
use crate::error::Result;
use crate::rules::{Decoder, DecoderStep};

/// Ids are dropped when there are so many.
const MAX_HELD_IDS: usize = 16;
/// At least so many ids are kept then: a character has at most four bytes.
const MIN_KEPT_IDS: usize = 4;

/// The last ids, and how much of their text was given out.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameStream {
    ids: Vec<u32>,
    /// The number of bytes of the text of these ids that were given out.
    returned_bytes: usize,
    /// Nothing is decoded before there are so many ids.
    wait: usize,
}

impl NameStream {
    /// Take an id, and return the text that is now complete. Fails if the id has no token; the stream
    /// does not change then.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        tokenizer.token_bytes(id)?;
        self.ids.push(id);
        let may_change = is_byte(tokenizer, id) || has_inner_suffix(tokenizer, id);
        if may_change || self.ids.len() < self.wait || replaces_in_joined_names(tokenizer) {
            return Ok(String::new());
        }
        let text = tokenizer.decode(&self.ids).inspect_err(|_| {
            self.ids.pop();
        })?;
        // The bytes of an incomplete character are decoded as one U+FFFD.
        let complete = text.strip_suffix(char::REPLACEMENT_CHARACTER).unwrap_or(&text).len();
        let piece = text.get(self.returned_bytes..complete).unwrap_or_default().to_owned();
        self.returned_bytes = complete.max(self.returned_bytes);
        if self.ids.len() > MAX_HELD_IDS {
            self.drop_ids(tokenizer, &text[self.returned_bytes..])?;
        }
        Ok(piece)
    }

    /// Drop ids, but not the bytes before another, if the text of the others ends with `rest`, the part
    /// that was not given out. Some text is left before it, so that no step takes the next token for
    /// the first.
    fn drop_ids(&mut self, tokenizer: &Tokenizer, rest: &str) -> Result<()> {
        let droppable = &self.ids[..=self.ids.len() - MIN_KEPT_IDS];
        let from = droppable.iter().rposition(|&id| !is_byte(tokenizer, id)).unwrap_or(0);
        let text = tokenizer.decode(&self.ids[from..])?;
        if text.len() > rest.len() && text.ends_with(rest) {
            self.returned_bytes = text.len() - rest.len();
            self.ids.drain(..from);
            self.wait = 0;
        } else {
            self.wait = 2 * self.ids.len(); // or time would be quadratic
        }
        Ok(())
    }

    /// End the text, and return the rest of it. The stream can be used again.
    ///
    /// Fails as [`Tokenizer::decode`] does.
    pub(crate) fn flush(&mut self, tokenizer: &Tokenizer) -> Result<String> {
        let Self { ids, returned_bytes, .. } = std::mem::take(self);
        let text = tokenizer.decode(&ids)?;
        Ok(text.get(returned_bytes..).unwrap_or_default().to_owned())
    }
}

/// Whether an id is that of a byte under byte fallback.
fn is_byte(tokenizer: &Tokenizer, id: u32) -> bool {
    tokenizer.token_name(id).starts_with("<0x")
}

/// Whether a name has the suffix of words before its end: it is a space there, but nothing in the last
/// token.
fn has_inner_suffix(tokenizer: &Tokenizer, id: u32) -> bool {
    let Decoder::Steps(steps) = &tokenizer.rules().decoder else { return false };
    let name = tokenizer.token_name(id);
    steps.iter().any(|step| match step {
        DecoderStep::WordSuffix(suffix) => {
            name.strip_suffix(&**suffix).unwrap_or(&name).contains(&**suffix)
        }
        _ => false,
    })
}

/// Whether a step works on joined names, so that what follows may change the text before it.
fn replaces_in_joined_names(tokenizer: &Tokenizer) -> bool {
    let Decoder::Steps(steps) = &tokenizer.rules().decoder else { return false };
    let joins = |step: &DecoderStep| matches!(step, DecoderStep::Fuse | DecoderStep::ByteLevel);
    steps.iter().skip_while(|step| !joins(step)).skip(1).any(|step| match step {
        DecoderStep::Fuse | DecoderStep::Metaspace { .. } => false,
        DecoderStep::Strip { stop, .. } => *stop > 0,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use crate::rules::normalizer::ReplacePattern;
    use crate::rules::{StartSymbols, TextRules};
    use proptest::prelude::*;

    fn tokenizer(steps: Vec<DecoderStep>) -> Tokenizer {
        let names = ["a</w>", "b", "<0xC3>", "<0xA9>", "\u{2581}c", "<0x0A>", " ", "x</w>y</w>"];
        let tokens = names.iter().zip(0..).map(|(name, id)| (name.as_bytes().to_vec(), id));
        let (symbols, decoder) = (Some(StartSymbols::default()), Decoder::Steps(steps));
        let rules = TextRules { symbols, decoder, ..TextRules::default() };
        let vocabulary = Vocabulary::new(tokens, []).unwrap();
        Tokenizer::from_merges(vocabulary, Vec::new(), false, rules).unwrap()
    }

    #[test]
    fn ids_without_text_are_pushed_in_time() {
        let strip = DecoderStep::Strip { content: ' ', start: usize::MAX, stop: 0 };
        let (tokenizer, begun) =
            (tokenizer(vec![DecoderStep::Fuse, strip]), std::time::Instant::now());
        let mut stream = NameStream::default();
        for _ in 0..200_000 {
            assert_eq!(stream.push(&tokenizer, 6).unwrap(), "");
        }
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    /// Runs of names, of bytes, and of the two bytes of a character.
    fn long_runs() -> impl Strategy<Value = Vec<u32>> {
        let parts = [vec![0], vec![1], vec![2], vec![2, 3], vec![4], vec![5], vec![6], vec![7]];
        let run = (prop::sample::select(parts.to_vec()), 1..150usize);
        let runs = prop::collection::vec(run, 0..6);
        runs.prop_map(|runs| {
            runs.into_iter().flat_map(|(part, count)| part.repeat(count)).collect()
        })
    }

    proptest! {
        #[test]
        fn a_stream_equals_decoding_the_whole(
            ids in prop_oneof![prop::collection::vec(0u32..8, 0..200), long_runs()],
        ) {
            let meta = DecoderStep::Metaspace { replacement: '\u{2581}', drops_first: true };
            let suffix = DecoderStep::WordSuffix("</w>".to_owned());
            let strip = DecoderStep::Strip { content: ' ', start: 1, stop: 0 };
            let strip_more = DecoderStep::Strip { content: ' ', start: 3, stop: 0 };
            let strip_all = DecoderStep::Strip { content: ' ', start: 300, stop: 0 };
            let strip_ends = DecoderStep::Strip { content: ' ', start: 0, stop: 2 };
            let words = DecoderStep::WordPiece { prefix: "a".to_owned(), cleanup: true };
            let pattern = ReplacePattern::Literal("bb".to_owned());
            let replace = DecoderStep::Replace { pattern, content: "c".to_owned() };
            for steps in [
                vec![DecoderStep::ByteFallback, meta.clone()],
                vec![DecoderStep::ByteFallback, meta, DecoderStep::Fuse, strip],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, strip_more],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, strip_ends],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, replace],
                vec![DecoderStep::ByteLevel],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, DecoderStep::ByteLevel],
                vec![DecoderStep::Fuse, words],
                vec![suffix],
                vec![DecoderStep::Fuse, strip_all],
                Vec::new(),
            ] {
                let tokenizer = tokenizer(steps);
                let mut stream = NameStream::default();
                let pieces = ids.iter().map(|&id| stream.push(&tokenizer, id).unwrap());
                let text = pieces.collect::<String>() + &stream.flush(&tokenizer).unwrap();
                prop_assert_eq!(text, tokenizer.decode(&ids).unwrap());
            }
        }
    }
}
