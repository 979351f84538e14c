//! Decodes ids that arrive one by one, as a model generates them.

use std::sync::Arc;

use crate::decode::TextStream;
use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::error::{Error, Result};
use crate::rules::{Decoder, DecoderStep, growth};
use crate::tokenizer::Tokenizer;

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
/// let mut stream = DecodeStream::new(&tokenizer);
/// assert_eq!((stream.push(0)?, stream.push(1)?), ("caf".to_owned(), String::new()));
/// assert_eq!(stream.push(2)?, "é");
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecodeStream {
    tokenizer: Arc<Tokenizer>,
    stream: TextStream,
    /// Takes the ids where the decoder works on the names of tokens.
    names: Option<NameStream>,
    /// The ids that are left out, in order.
    skipped: Arc<[u32]>,
    /// Whether an id has arrived since the start or the last `flush`.
    begun: bool,
    stops: Option<StopSearch>,
}

impl DecodeStream {
    /// A stream without ids.
    pub fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        let names = (!tokenizer.decodes_bytes()).then(NameStream::default);
        let (tokenizer, stream, skipped) =
            (Arc::clone(tokenizer), TextStream::default(), Arc::default());
        Self { tokenizer, stream, names, skipped, begun: false, stops: None }
    }

    /// This stream without the text of some ids, which are in order.
    #[must_use]
    pub fn skipping(mut self, skipped: Arc<[u32]>) -> Self {
        self.skipped = skipped;
        self
    }

    /// This stream, which ends at the first of some strings, if there are any; it gives out no text that
    /// may be part of one of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// use bytepair::tokenizer::decode_stream::{DecodeStream, Stops};
    /// let tokens = [(b"yes\n".to_vec(), 0), (b"User:".to_vec(), 1), (b"used".to_vec(), 2)];
    /// let vocabulary = Vocabulary::new(tokens, [])?;
    /// let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?);
    /// let stops = Arc::new(Stops::new(&tokenizer, &["\nUser:"], false)?);
    /// let mut stream = DecodeStream::new(&tokenizer).stopping(stops);
    /// assert_eq!((stream.push(0)?, stream.push(1)?), ("yes".to_owned(), String::new()));
    /// assert_eq!(stream.stopped(), Some((0, "\nUser:")));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[must_use]
    pub fn stopping(self, stops: Arc<Stops>) -> Self {
        Self { stops: (!stops.strings.is_empty()).then(|| StopSearch::new(stops)), ..self }
    }

    /// The stop string that ended the text, and its number; until the first id of the next text.
    pub fn stopped(&self) -> Option<(usize, &str)> {
        let search = self.stops.as_ref()?;
        search.stopped.map(|number| (number, &*search.stops.strings[number]))
    }

    /// Take one id; returns the text that is now complete, possibly nothing. Bytes that cannot become a
    /// character become U+FFFD. Where the decoder works on the names of tokens, the text of a run of
    /// bytes comes when it ends; if a step replaces text in joined names, all text comes at the end.
    /// Once a stop string has ended the text, nothing comes until [`flush`](Self::flush).
    ///
    /// Fails if the vocabulary does not have the id; the stream does not change then.
    pub fn push(&mut self, id: u32) -> Result<String> {
        self.tokenizer.token_bytes(id)?;
        let mut stop = None;
        if let Some(search) = &mut self.stops {
            if std::mem::take(&mut search.ended) {
                search.stopped = None;
            }
            if search.stopped.is_some() {
                return Ok(String::new());
            }
            stop = search.stops.ids.iter().position(|stop| *stop == Some(id));
        }
        let piece = if stop.is_some() { self.rest()? } else { self.text_of(id)? };
        Ok(match &mut self.stops {
            Some(search) => search.push(&piece, stop),
            None => piece,
        })
    }

    /// End the text: returns the rest, or U+FFFD if a character is incomplete. The stream can be used
    /// again.
    ///
    /// Fails if a step of the decoder fails on what is left, as [`Tokenizer::decode`] does.
    pub fn flush(&mut self) -> Result<String> {
        let piece = self.rest()?;
        Ok(match &mut self.stops {
            Some(search) => search.push(&piece, None) + &search.end(),
            None => piece,
        })
    }

    /// The text that one more id completes.
    fn text_of(&mut self, id: u32) -> Result<String> {
        if self.skipped.binary_search(&id).is_ok() {
            return Ok(String::new());
        }
        if let Some(names) = &mut self.names {
            return names.push(&self.tokenizer, id);
        }
        let mut token = self.tokenizer.token_bytes(id)?;
        if !std::mem::replace(&mut self.begun, true) && self.tokenizer.drops_space() {
            token = token.strip_prefix(b" ").unwrap_or(token);
        }
        let mut text = String::new();
        self.stream.push(token, &mut text);
        Ok(text)
    }

    /// The text of the ids so far that was not complete; a new text begins.
    fn rest(&mut self) -> Result<String> {
        self.begun = false;
        if let Some(names) = &mut self.names {
            return names.flush(&self.tokenizer);
        }
        let mut text = String::new();
        self.stream.flush(&mut text);
        Ok(text)
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

/// Ids are dropped when there are this many.
const MAX_HELD_IDS: usize = 16;
/// At least this many ids are kept then: a character has at most four bytes.
const MIN_KEPT_IDS: usize = 4;

/// The last ids, and how much of their text was given out.
#[derive(Debug, Clone, Default)]
struct NameStream {
    ids: Vec<u32>,
    /// The number of bytes of the text of these ids that were given out.
    returned_bytes: usize,
    /// Nothing is decoded before there are this many ids.
    wait: usize,
    /// The bytes of all tokens of the text, and of all that was given out.
    token_bytes: usize,
    text_bytes: usize,
}

impl NameStream {
    /// Take an id, and return the text that is now complete. Fails if the id has no token; the stream
    /// does not change then.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        let bytes = tokenizer.token_bytes(id)?.len();
        self.ids.push(id);
        self.token_bytes += bytes;
        let may_change = is_byte(tokenizer, id) || has_inner_suffix(tokenizer, id);
        if may_change || self.ids.len() < self.wait || may_change_all(tokenizer) {
            return Ok(String::new());
        }
        let text = self.decode(tokenizer).inspect_err(|_| {
            self.ids.pop();
            self.token_bytes -= bytes;
        })?;
        // The bytes of an incomplete character are decoded as one U+FFFD.
        let complete = text.strip_suffix(char::REPLACEMENT_CHARACTER).unwrap_or(&text).len();
        let piece = text.get(self.returned_bytes..complete).unwrap_or_default().to_owned();
        self.returned_bytes = complete.max(self.returned_bytes);
        self.text_bytes += piece.len();
        if self.ids.len() > MAX_HELD_IDS {
            self.drop_ids(tokenizer, &text[self.returned_bytes..])?;
        }
        Ok(piece)
    }

    /// The text of the last ids. Fails if the whole text would be too long for its ids.
    fn decode(&self, tokenizer: &Tokenizer) -> Result<String> {
        let text = tokenizer.decode(&self.ids)?;
        let more = text.len().saturating_sub(self.returned_bytes);
        growth::check_stream(self.text_bytes + more, self.token_bytes)?;
        Ok(text)
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
        let last = std::mem::take(self);
        let text = last.decode(tokenizer)?;
        Ok(text.get(last.returned_bytes..).unwrap_or_default().to_owned())
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

/// Whether what follows may change any text before it: a step works on joined names, or one before
/// `WordSuffix` may make suffixes.
fn may_change_all(tokenizer: &Tokenizer) -> bool {
    let Decoder::Steps(steps) = &tokenizer.rules().decoder else { return false };
    if steps.iter().skip(1).any(|step| matches!(step, DecoderStep::WordSuffix(_))) {
        return true;
    }
    let joins = |step: &DecoderStep| matches!(step, DecoderStep::Fuse | DecoderStep::ByteLevel);
    steps.iter().skip_while(|step| !joins(step)).skip(1).any(|step| match step {
        DecoderStep::Fuse | DecoderStep::Metaspace { .. } => false,
        DecoderStep::Strip { stop, .. } => *stop > 0,
        _ => true,
    })
}

// ---------------------------------------------------------------------------- stop strings
//
// Ends a text that arrives in pieces at the first of some stop strings.
//
// The text ends where the first stop string is complete, character by character; of several that
// are complete there, the longest counts. So the result does not depend on how the text is cut into
// pieces. The end of the text that may be the beginning of a stop string is held back.

/// Strings that end a text. Streams may share them.
#[derive(Debug)]
pub struct Stops {
    strings: Vec<String>,
    /// Finds the string that is complete first, the longest if several are.
    automaton: AhoCorasick,
    /// The special token of the name of each string, which ends the text even where its name is left
    /// out.
    ids: Vec<Option<u32>>,
    /// Whether the text keeps the string that ends it.
    keep: bool,
}

/// The search for stop strings in one text.
#[derive(Debug, Clone)]
struct StopSearch {
    stops: Arc<Stops>,
    /// The end of the text that was not given out.
    held: String,
    stopped: Option<usize>,
    ended: bool,
}

impl Stops {
    /// The stop strings of the texts of a tokenizer. A name of a special token also stops at its id.
    /// `keep` includes the string that ends a text in it.
    ///
    /// Fails if a string is empty.
    pub fn new(tokenizer: &Tokenizer, strings: &[impl AsRef<str>], keep: bool) -> Result<Self> {
        let strings: Vec<String> = strings.iter().map(|one| one.as_ref().to_owned()).collect();
        if strings.iter().any(String::is_empty) {
            return Err(Error::EmptyStop);
        }
        let ids = strings.iter().map(|string| tokenizer.vocabulary().special(string)).collect();
        // Building a DFA takes quadratic time for a long string that repeats one character.
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        let automaton = AhoCorasick::builder().kind(kind).build(&strings).map_err(|error| {
            Error::Vocabulary { reason: format!("too many stop strings: {error}").into() }
        })?;
        Ok(Self { strings, automaton, ids, keep })
    }

    /// The first position of a text from which the rest may be the beginning of a stop string.
    fn first_open(&self, text: &str) -> usize {
        let longest = self.strings.iter().map(String::len).max().unwrap_or(0);
        let is_open = |at: &usize| {
            let rest = &text.as_bytes()[*at..];
            self.strings.iter().any(|string| string.as_bytes().starts_with(rest))
        };
        let from = text.len().saturating_sub(longest);
        (from..text.len()).find(is_open).unwrap_or(text.len())
    }
}

impl StopSearch {
    /// The search in a new text.
    fn new(stops: Arc<Stops>) -> Self {
        Self { stops, held: String::new(), stopped: None, ended: false }
    }

    /// Take a piece of the text, and the number of the string whose id follows, if one does; returns
    /// what is certain to be given out. What follows the end is dropped.
    fn push(&mut self, piece: &str, id: Option<usize>) -> String {
        if self.stopped.is_some() {
            return String::new();
        }
        self.held.push_str(piece);
        let Stops { strings, automaton, keep, .. } = &*self.stops;
        match (automaton.find(&self.held), id) {
            (Some(hit), _) => {
                let end = if *keep { hit.end() } else { hit.start() };
                self.stop(hit.pattern().as_usize(), end)
            }
            (None, Some(number)) => {
                self.held.push_str(if *keep { &strings[number] } else { "" });
                self.stop(number, self.held.len())
            }
            (None, None) => self.release(self.stops.first_open(&self.held)),
        }
    }

    /// End the text; returns what is held back.
    fn end(&mut self) -> String {
        self.ended = true;
        self.release(self.held.len())
    }

    fn stop(&mut self, number: usize, end: usize) -> String {
        let rest = self.release(end);
        self.held.clear();
        self.stopped = Some(number);
        rest
    }

    fn release(&mut self, bytes: usize) -> String {
        self.held.drain(..bytes).collect()
    }
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

    #[test]
    fn a_stream_has_the_limit_of_its_whole_text() {
        let pattern = ReplacePattern::Literal("b".to_owned());
        let (tokenizer, mut stream) = (
            tokenizer(vec![DecoderStep::Replace { pattern, content: "x".repeat(60_000) }]),
            NameStream::default(),
        );
        let pieces: Vec<_> = (0..20).map(|_| stream.push(&tokenizer, 1)).collect();
        let whole: Vec<_> = (1..=20).map(|count| tokenizer.decode(&vec![1; count])).collect();
        let failed = pieces.iter().position(Result::is_err);
        assert_eq!(failed, whole.iter().position(Result::is_err));
        assert_eq!(failed, Some(17));
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
            let pattern = ReplacePattern::Literal("b".to_owned());
            let letters = DecoderStep::Replace { pattern, content: "</w>".to_owned() };
            for steps in [
                vec![DecoderStep::ByteFallback, meta.clone()],
                vec![DecoderStep::ByteFallback, meta, DecoderStep::Fuse, strip],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, strip_more],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, strip_ends],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, replace],
                vec![DecoderStep::ByteLevel],
                vec![DecoderStep::ByteFallback, DecoderStep::Fuse, DecoderStep::ByteLevel],
                vec![DecoderStep::Fuse, words],
                vec![suffix.clone()],
                vec![letters, suffix],
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

#[cfg(test)]
mod stop_tests {
    use super::*;
    use crate::tokenizer::decode_stream::DecodeStream;
    use crate::{Pattern, Vocabulary};
    use proptest::prelude::*;

    const STOP_ID: u32 = 6;

    fn tokenizer() -> Arc<Tokenizer> {
        let tokens = ["a", "b", "ab", "aab", "\u{e9}"].map(|token| token.as_bytes().to_vec());
        let tokens = tokens.into_iter().chain([vec![0xC3]]).zip(0..);
        let vocabulary = Vocabulary::new(tokens, [("<stop>".to_owned(), STOP_ID)]).unwrap();
        Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2").unwrap()).unwrap())
    }

    /// The text up to the first stop string, found by looking at every beginning of it, and the number
    /// of that string.
    fn slow(text: &str, stops: &[&str], keep: bool) -> (String, Option<usize>) {
        for (end, _) in text.char_indices().skip(1).chain([(text.len(), ' ')]) {
            let complete = (0..stops.len()).filter(|&number| text[..end].ends_with(stops[number]));
            // Of several equal ones, the first.
            if let Some(number) = complete.rev().max_by_key(|&number| stops[number].len()) {
                let kept = if keep { end } else { end - stops[number].len() };
                return (text[..kept].to_owned(), Some(number));
            }
        }
        (text.to_owned(), None)
    }

    proptest! {
        /// After each id, no less is given out than is certain, and the whole is that of the slow search.
        #[test]
        fn a_text_ends_at_the_first_stop_string(
            ids in prop::collection::vec(0..=STOP_ID, 0..20),
            strings in prop::collection::vec("[ab\u{e9}]{1,5}|<stop>|p>", 1..4),
            keep: bool,
        ) {
            let tokenizer = tokenizer();
            let strings: Vec<_> = strings.iter().map(String::as_str).collect();
            let stops = Arc::new(Stops::new(&tokenizer, &strings, keep).unwrap());
            let mut stream = DecodeStream::new(&tokenizer).stopping(stops);
            for _ in 0..2 {
                let mut text = String::new();
                for &id in &ids {
                    text += &stream.push(id).unwrap();
                }
                text += &stream.flush().unwrap();
                let whole = tokenizer.decode(&ids).unwrap();
                let (expected, number) = slow(&whole, &strings, keep);
                prop_assert_eq!(&text, &expected);
                prop_assert_eq!(stream.stopped(), number.map(|number| (number, strings[number])));
            }
        }

        #[test]
        fn what_is_certain_is_given_out_at_once(
            pieces in prop::collection::vec("[ab\u{e9}]{0,4}", 0..9),
            strings in prop::collection::vec("[ab\u{e9}]{1,5}", 1..4),
        ) {
            let strings: Vec<_> = strings.iter().map(String::as_str).collect();
            let stops = Arc::new(Stops::new(&tokenizer(), &strings, false).unwrap());
            let (mut search, mut text, mut out) = (StopSearch::new(stops), String::new(), String::new());
            for piece in &pieces {
                text.push_str(piece);
                out += &search.push(piece, None);
                let (expected, number) = slow(&text, &strings, false);
                prop_assert_eq!(search.stopped, number);
                let begins = |held: &str| strings.iter().any(|string| string.starts_with(held));
                let mut at = (0..=expected.len()).filter(|&at| expected.is_char_boundary(at));
                let certain = at.find(|&at| number.is_none() && begins(&expected[at..]));
                prop_assert_eq!(&out, &expected[..certain.unwrap_or(expected.len())]);
            }
        }
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        assert_eq!(Stops::new(&tokenizer(), &["a", ""], false).err(), Some(Error::EmptyStop));
    }
}
