//! Decodes ids that arrive one by one, as a model generates them.

use std::sync::Arc;

use crate::decode::TextStream;
use crate::error::Result;
use crate::rules::{Decoder, DecoderStep};
use crate::tokenizer::Tokenizer;
use crate::tokenizer::stops::{StopSearch, Stops};

/// Ids in, text out; never part of a character. Takes a few dozen bytes.
///
/// All text, concatenated, equals [`Tokenizer::decode`] of all ids.
///
/// ```
/// use std::sync::Arc;
/// use bytepair::{Pattern, Tokenizer, Vocabulary, tokenizer::decode_stream::DecodeStream};
/// let tokens = [(b"caf".to_vec(), 0), (b"\xC3".to_vec(), 1), (b"\xA9".to_vec(), 2)];
/// let vocabulary = Vocabulary::new(tokens, [])?;
/// let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?);
/// let (mut stream, mut text) = (DecodeStream::new(&tokenizer), String::new());
/// stream.push(0, &mut text)?;
/// stream.push(1, &mut text)?;
/// assert_eq!(text, "caf");
/// stream.push(2, &mut text)?;
/// assert_eq!(text, "café");
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecodeStream {
    decoder: IdDecoder,
    stops: Option<StopSearch>,
}

/// Decodes ids, and knows of no stop strings.
#[derive(Debug, Clone)]
struct IdDecoder {
    tokenizer: Arc<Tokenizer>,
    stream: TextStream,
    /// Takes the ids where the decoder works on the names of tokens.
    names: Option<NameStream>,
    /// The ids that are left out, in order.
    skipped: Arc<[u32]>,
    /// Whether an id has arrived since the start or the last `flush`.
    begun: bool,
}

impl DecodeStream {
    /// A stream without ids.
    pub fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        let names = (!tokenizer.decodes_bytes()).then(NameStream::default);
        let (tokenizer, stream) = (Arc::clone(tokenizer), TextStream::default());
        let decoder = IdDecoder { tokenizer, stream, names, skipped: Arc::default(), begun: false };
        Self { decoder, stops: None }
    }

    /// This stream without the text of some ids, which are in order.
    #[must_use]
    pub fn skipping(mut self, skipped: Arc<[u32]>) -> Self {
        self.decoder.skipped = skipped;
        self
    }

    /// This stream, which ends at the first of some strings, if there are any; it gives out no text that
    /// may be part of one of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// use bytepair::tokenizer::{decode_stream::DecodeStream, stops::Stops};
    /// let tokens = [(b"yes\n".to_vec(), 0), (b"User:".to_vec(), 1), (b"used".to_vec(), 2)];
    /// let vocabulary = Vocabulary::new(tokens, [])?;
    /// let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?);
    /// let stops = Arc::new(Stops::new(&tokenizer, &["\nUser:"], false)?);
    /// let (mut stream, mut text) = (DecodeStream::new(&tokenizer).stopping(stops), String::new());
    /// stream.push(0, &mut text)?;
    /// assert_eq!(text, "yes");
    /// stream.push(1, &mut text)?;
    /// assert_eq!((text.as_str(), stream.stopped()), ("yes", Some((0, "\nUser:"))));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[must_use]
    pub fn stopping(self, stops: Arc<Stops>) -> Self {
        Self { stops: (!stops.is_empty()).then(|| StopSearch::new(stops)), ..self }
    }

    /// The stop string that ended the text, and its number; until the first id of the next text.
    pub fn stopped(&self) -> Option<(usize, &str)> {
        self.stops.as_ref().and_then(StopSearch::stopped)
    }

    /// Take one id and append the text that is now complete, possibly nothing. Bytes that cannot
    /// become a character become U+FFFD. Where the decoder works on the names of tokens, the text of a
    /// run of bytes comes when it ends; if a step replaces text in joined names, all text comes at the
    /// end. Once a stop string has ended the text, nothing is appended until [`flush`](Self::flush).
    ///
    /// Fails if the vocabulary does not have the id; the stream does not change then.
    pub fn push(&mut self, id: u32, text: &mut String) -> Result<()> {
        let Self { decoder, stops } = self;
        let Some(stops) = stops else { return decoder.push(id, text) };
        decoder.tokenizer.token_bytes(id)?;
        stops.restart_if_ended();
        if stops.stopped().is_some() {
            return Ok(());
        }
        let mut piece = String::new();
        if let Some(number) = stops.of_id(id) {
            decoder.flush(&mut piece)?;
            stops.push(&piece, text);
            stops.push_id(number, text);
        } else {
            decoder.push(id, &mut piece)?;
            stops.push(&piece, text);
        }
        Ok(())
    }

    /// End the text: append the rest, or U+FFFD if a character is incomplete. The stream can be used
    /// again.
    ///
    /// Fails if a step of the decoder fails on what is left, as [`Tokenizer::decode`] does.
    pub fn flush(&mut self, text: &mut String) -> Result<()> {
        let Self { decoder, stops } = self;
        let Some(stops) = stops else { return decoder.flush(text) };
        let mut piece = String::new();
        decoder.flush(&mut piece)?;
        stops.push(&piece, text);
        stops.end(text);
        Ok(())
    }
}

impl IdDecoder {
    fn push(&mut self, id: u32, text: &mut String) -> Result<()> {
        let mut token = self.tokenizer.token_bytes(id)?;
        if self.skipped.binary_search(&id).is_ok() {
            return Ok(());
        }
        if let Some(names) = &mut self.names {
            text.push_str(&names.push(&self.tokenizer, id)?);
            return Ok(());
        }
        if !std::mem::replace(&mut self.begun, true) && self.tokenizer.drops_space() {
            token = token.strip_prefix(b" ").unwrap_or(token);
        }
        self.stream.push(token, text);
        Ok(())
    }

    fn flush(&mut self, text: &mut String) -> Result<()> {
        self.begun = false;
        match &mut self.names {
            Some(names) => text.push_str(&names.flush(&self.tokenizer)?),
            None => self.stream.flush(text),
        }
        Ok(())
    }
}

// ---------------------------------------------------------------------------- names
//
// Decodes ids that arrive one by one, where the decoder works on the names of tokens.
//
// A run of byte tokens is text only as a whole: one byte too many makes U+FFFD of each. So a run is
// held back until another token ends it. All other text is final at once, but for a character of
// GPT-2's bytes that may not be complete. The last few ids are decoded again with each new one, for
// steps that treat the first token in another way; where that is not enough, such as in a text of
// which nothing is left, text comes in ever longer parts. If a step replaces text in joined names,
// any text may still change, so all ids are held back.

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
