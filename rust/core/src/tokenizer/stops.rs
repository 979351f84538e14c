//! Ends a text that arrives in pieces at the first of some stop strings.
//!
//! The text ends where the first stop string is complete, character by character; of several that
//! are complete there, the longest counts. So the result does not depend on how the text is cut into
//! pieces. The end of the text that may be the beginning of a stop string is held back.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

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
pub(crate) struct StopSearch {
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

    /// Whether there is no string.
    pub(crate) fn is_empty(&self) -> bool {
        self.strings.is_empty()
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
    pub(crate) fn new(stops: Arc<Stops>) -> Self {
        Self { stops, held: String::new(), stopped: None, ended: false }
    }

    /// Begin a new text if the last one has ended.
    pub(crate) fn restart_if_ended(&mut self) {
        if std::mem::take(&mut self.ended) {
            self.stopped = None;
        }
    }

    /// The string that ended the text, and its number.
    pub(crate) fn stopped(&self) -> Option<(usize, &str)> {
        self.stopped.map(|number| (number, &*self.stops.strings[number]))
    }

    /// The number of the string at whose id a text ends.
    pub(crate) fn of_id(&self, id: u32) -> Option<usize> {
        self.stops.ids.iter().position(|stop| *stop == Some(id))
    }

    /// Take a piece of the text, and append what is certain to be given out. What follows the end is
    /// dropped.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        if self.stopped.is_some() {
            return;
        }
        self.held.push_str(piece);
        if let Some(found) = self.stops.automaton.find(&self.held) {
            let kept = if self.stops.keep { found.end() } else { found.start() };
            self.stop(found.pattern().as_usize(), kept, out);
        } else {
            self.release(self.stops.first_open(&self.held), out);
        }
    }

    /// End the text at the id of a string, which is appended if it is kept.
    pub(crate) fn push_id(&mut self, number: usize, out: &mut String) {
        if self.stopped.is_some() {
            return;
        }
        if self.stops.keep {
            self.held.push_str(&self.stops.strings[number]);
        }
        self.stop(number, self.held.len(), out);
    }

    /// End the text: append what is held back.
    pub(crate) fn end(&mut self, out: &mut String) {
        self.release(self.held.len(), out);
        self.ended = true;
    }

    fn stop(&mut self, number: usize, kept: usize, out: &mut String) {
        self.release(kept, out);
        self.held.clear();
        self.stopped = Some(number);
    }

    fn release(&mut self, bytes: usize, out: &mut String) {
        out.push_str(&self.held[..bytes]);
        self.held.drain(..bytes);
    }
}

#[cfg(test)]
mod tests {
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
                    stream.push(id, &mut text).unwrap();
                }
                stream.flush(&mut text).unwrap();
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
                search.push(piece, &mut out);
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
