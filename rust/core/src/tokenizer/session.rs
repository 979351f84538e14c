//! Encodes a text that arrives in pieces: a [`Session`] has its ids at any time, as of a prompt that
//! grows; an [`EncodeStream`] gives them out once they are final.
//!
//! When the text grows, only its end is encoded again: the text after the last position before
//! which no continuation can change an id (`Encoder::certain`). The ids before that position are
//! final. Those of a session move into blocks that its forks share; the few other ids are copied
//! when a fork grows.

use std::sync::Arc;

use crate::encode::encoder::{Edges, Encoder};
use crate::encode::{EncodeOptions, Special};
use crate::error::Result;
use crate::memory;
use crate::rules::PartStart;
use crate::text::{MAX_CHARACTER_BYTES, Text};
use crate::tokenizer::Tokenizer;

/// The number of final ids that become a block.
const BLOCK_IDS: usize = if cfg!(test) { 1 << 5 } else { 1 << 12 };

/// The character that replaces a lone surrogate.
const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// The end of a text that arrives in pieces.
#[derive(Debug, Clone, Default)]
struct GrowingText {
    /// The text whose ids are not final.
    rest: String,
    /// The number of bytes of text before `rest`, and what precedes it.
    start: usize,
    begins: PartStart,
    tried: Tried,
    /// The high surrogate with which the text ends; U+FFFD replaces it at the end of `rest`.
    half: Option<u16>,
}

impl GrowingText {
    /// Append a piece.
    fn push(&mut self, piece: &Text<'_>) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let (low, high) = piece.half_pairs();
        let (mut more, mut buffer) = (*piece, String::new());
        if let Some((first, second)) = self.half.zip(low) {
            self.rest.truncate(self.rest.len() - UNKNOWN.len_utf8());
            let pair = char::decode_utf16([first, second]).map(|pair| pair.unwrap_or(UNKNOWN));
            self.rest.extend(pair);
            more = more.split_at(1).1;
        }
        let more = more.read(&mut buffer)?;
        memory::reserve_text(&mut self.rest, more.len())?;
        self.rest.push_str(more);
        self.half = high;
        Ok(())
    }

    /// The last position found in `rest` before which no continuation changes the ids.
    fn certain(&mut self, encoder: &Encoder, options: &EncodeOptions) -> Result<Certain> {
        let half = self.half.map_or(0, |_| UNKNOWN.len_utf8());
        let complete = &self.rest[..self.rest.len() - half];
        let certain = encoder.certain(complete, self.begins, options, &mut self.tried);
        certain.map_err(|error| error.shifted(self.start))
    }

    /// The ids of the rest from a position on, up to another position.
    fn encode(
        &self,
        encoder: &Encoder,
        options: &EncodeOptions,
        (from, start): (usize, PartStart),
        to: usize,
    ) -> Result<Vec<u32>> {
        let (text, edges) = (Text::Utf8(&self.rest[from..to]), Edges { start, last: true });
        let mut ids = Vec::new();
        let done = encoder.call().append_part(&text, options, edges, &mut ids);
        done.map(|()| ids).map_err(|error| error.shifted(self.start + from))
    }

    /// Drop the text before a position.
    fn pass(&mut self, Certain { at, start }: Certain) {
        if at > 0 {
            self.tried = Tried::default();
        }
        self.rest.drain(..at);
        self.start += at;
        self.begins = start;
    }
}

// ---------------------------------------------------------------------------- sessions

/// How the ids of a text changed when it grew: the last `removed` ids are gone, and `ids` follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// The number of ids to remove from the end.
    pub removed: usize,
    /// The ids to add to the end after that.
    pub ids: Vec<u32>,
}

/// A text that grows, and its ids; a clone takes the same time for a text of any length.
///
/// However the text is divided into pieces, the ids equal those of the whole text. Only the text
/// after the last position before which no continuation can change an id is kept and encoded again:
/// usually some pretokens. In a text without such positions, such as one long run of letters, it
/// may be long, and under a pattern that only the regex engine can split it is the whole text.
///
/// ```
/// use std::sync::Arc;
/// use bytepair::{Pattern, Special, Text, Tokenizer, Vocabulary, tokenizer::session::Session};
/// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// # let vocabulary = Vocabulary::new(bytes.chain([(b"ab".to_vec(), 256)]), [])?;
/// let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?);
/// let mut session = Session::new(&tokenizer, &Special::Text, None)?;
/// session.append(&Text::Utf8("b a"))?;
/// let change = session.append(&Text::Utf8("b"))?;
/// assert_eq!((change.removed, change.ids), (1, vec![256]));
/// assert_eq!((session.ids()?, session.stable()), (vec![98, 32, 256], 1));
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    tokenizer: Arc<Tokenizer>,
    options: Arc<EncodeOptions>,
    state: Arc<State>,
}

/// The text and its ids; forks share it until one of them grows.
#[derive(Debug, Clone, Default)]
struct State {
    /// The first ids, which are final.
    blocks: Vec<Arc<[u32]>>,
    /// The number of ids in the blocks.
    packed: usize,
    /// The ids after those of the blocks.
    ids: Vec<u32>,
    /// How many of `ids` are final.
    stable: usize,
    /// The text of the ids that are not final.
    text: GrowingText,
}

impl Session {
    /// Start with an empty text, preceded by the id `prepend`. `special` says how the text of
    /// special tokens is encoded; a special token that arrives in pieces takes effect once it is
    /// complete.
    ///
    /// Fails if `special` names an unknown special token.
    pub fn new(
        tokenizer: &Arc<Tokenizer>,
        special: &Special,
        prepend: Option<u32>,
    ) -> Result<Self> {
        let options = Arc::new(tokenizer.options(special, &[], &[])?);
        let ids = Vec::from_iter(prepend);
        let state = State { stable: ids.len(), ids, ..State::default() };
        Ok(Self { tokenizer: Arc::clone(tokenizer), options, state: Arc::new(state) })
    }

    /// Add to the end of the text; returns how the ids change.
    ///
    /// Fails as [`Tokenizer::encode_with`] does for the whole text; the session is then as before.
    pub fn append(&mut self, text: &Text<'_>) -> Result<Change> {
        if text.is_empty() {
            return Ok(Change::default());
        }
        let state = Arc::make_mut(&mut self.state);
        let (encoder, options) = (self.tokenizer.encoder(), &*self.options);
        let mut grown = state.text.clone();
        grown.push(text)?;
        let certain = grown.certain(encoder, options)?;
        let end = grown.rest.len();
        // The text before the position is encoded together with what follows, since a pretoken may
        // end elsewhere where the text ends.
        let ids = grown.encode(encoder, options, (0, grown.begins), end)?;
        let after = grown.encode(encoder, options, (certain.at, certain.start), end)?;
        debug_assert!(ids.ends_with(&after), "the ids divide at {certain:?}");
        let change = state.replace(&ids, ids.len() - after.len())?;
        grown.pass(certain);
        state.text = grown;
        state.pack();
        Ok(change)
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        self.state.packed + self.state.ids.len()
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of ids at the start that no continuation is known to change. It never decreases.
    pub fn stable(&self) -> usize {
        self.state.packed + self.state.stable
    }

    /// The text that is kept: the text of the ids after the stable ones.
    pub fn rest(&self) -> &str {
        &self.state.text.rest
    }

    /// All ids. Fails if there is not enough memory.
    pub fn ids(&self) -> Result<Vec<u32>> {
        let mut ids = memory::with_capacity(self.len())?;
        for block in &self.state.blocks {
            ids.extend_from_slice(block);
        }
        ids.extend_from_slice(&self.state.ids);
        Ok(ids)
    }
}

impl State {
    /// Replace the ids that are not final by `ids`, of which the first `stable` are final.
    fn replace(&mut self, ids: &[u32], stable: usize) -> Result<Change> {
        let old = &self.ids[self.stable..];
        let same = old.iter().zip(ids).take_while(|(old, new)| old == new).count();
        let change = Change { removed: old.len() - same, ids: memory::copy(&ids[same..])? };
        memory::reserve(&mut self.ids, change.ids.len())?;
        self.ids.truncate(self.stable + same);
        self.ids.extend(&change.ids);
        self.stable += stable;
        Ok(change)
    }

    /// Move the final ids into a block, if there are enough.
    fn pack(&mut self) {
        if self.stable >= BLOCK_IDS {
            self.blocks.push(self.ids.drain(..self.stable).collect());
            self.packed += std::mem::take(&mut self.stable);
        }
    }
}

// ---------------------------------------------------------------------------- streams

/// Encode once this many bytes are buffered.
const BUFFER_BYTES: usize = if cfg!(test) { 1 << 3 } else { 1 << 16 };

/// Encodes a text that arrives in pieces. A special token that arrives in pieces counts once it is
/// complete.
///
/// With a custom split pattern, the text after the last position where a cut is safe stays
/// buffered; with a pattern that only the regex engine can split, the whole text is buffered until
/// the end.
///
/// ```
/// use std::sync::Arc;
/// use bytepair::{Pattern, Special, Text, Tokenizer, Vocabulary, tokenizer::session::EncodeStream};
/// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// # let vocabulary = Vocabulary::new(bytes.chain([(b"ab".to_vec(), 256)]), [])?;
/// let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?);
/// let mut stream = EncodeStream::new(&tokenizer, &Special::Text)?;
/// assert!(stream.push(&Text::Utf8("a"))?.is_empty());
/// assert!(stream.push(&Text::Utf8("b"))?.is_empty());
/// assert_eq!(stream.flush()?, [256]);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct EncodeStream {
    tokenizer: Arc<Tokenizer>,
    /// The text that is not encoded yet.
    text: GrowingText,
    /// Its length after the last attempt to encode.
    tried_bytes: usize,
    /// How special tokens are encoded.
    options: EncodeOptions,
}

impl EncodeStream {
    /// A stream that encodes the text of special tokens as `special` says.
    ///
    /// Fails if `special` names an unknown special token.
    pub fn new(tokenizer: &Arc<Tokenizer>, special: &Special) -> Result<Self> {
        let options = tokenizer.options(special, &[], &[])?;
        let (tokenizer, text) = (Arc::clone(tokenizer), GrowingText::default());
        Ok(Self { tokenizer, text, tried_bytes: 0, options })
    }

    /// Take a piece of text; returns the ids that are now final.
    ///
    /// Fails as [`Tokenizer::encode`] does; drop the stream after an error.
    pub fn push(&mut self, text: &Text<'_>) -> Result<Vec<u32>> {
        let (encoder, options) = (self.tokenizer.encoder(), &self.options);
        self.text.push(text)?;
        // Doubling the threshold avoids quadratic time on one endless pretoken. Where normalization
        // moves characters, nothing is final before the end of the text.
        let is_enough = self.text.rest.len() >= BUFFER_BYTES.max(2 * self.tried_bytes);
        if !is_enough || !encoder.keeps_positions() {
            return Ok(Vec::new());
        }
        let certain = self.text.certain(encoder, options)?;
        let ids = self.text.encode(encoder, options, (0, self.text.begins), certain.at)?;
        self.text.pass(certain);
        self.tried_bytes = self.text.rest.len();
        Ok(ids)
    }

    /// End the text: returns the ids of the rest. The stream can then be used again.
    pub fn flush(&mut self) -> Result<Vec<u32>> {
        let text = std::mem::take(&mut self.text);
        self.tried_bytes = 0;
        text.encode(self.tokenizer.encoder(), &self.options, (0, text.begins), text.rest.len())
    }
}

// ---------------------------------------------------------------------------- the certain part
//
// Finds the part of a growing text whose ids are final, whatever text follows.
//
// The result is a position at which encoding can restart: whatever is appended to the text, its
// ids are those of the part before the position, then those of the part after it. First, special
// tokens that may still grow are excluded. Then a position is certain if the pattern always splits
// between its two characters; under a published pattern, all pretokens but the last two are
// certain too.

/// If no pair of characters gives a certain position, a text is split into pretokens only if it has
/// at least this many bytes.
const MIN_TEXT_BYTES: usize = if cfg!(test) { 8 } else { 256 };

/// The unsuccessful searches in a growing text so far, so that no part of it is searched
/// repeatedly.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tried {
    /// No pair of characters before this position gives a certain position.
    cuts: usize,
    /// The length of the text when it was last split into pretokens.
    pretokens: usize,
}

/// A position at which encoding can restart, and what precedes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Certain {
    pub(crate) at: usize,
    pub(crate) start: PartStart,
}

impl Encoder {
    /// The last position found in `text` before which no continuation changes the ids. `start`
    /// tells what precedes the text. `tried` must come from earlier calls for this text or for a
    /// prefix of it.
    ///
    /// Fails if the pattern fails on the text.
    pub(crate) fn certain(
        &self,
        text: &str,
        start: PartStart,
        options: &EncodeOptions,
        tried: &mut Tried,
    ) -> Result<Certain> {
        if self.preparation().is_some() || options.then.is_some() {
            // What follows may change any id.
            return Ok(Certain { at: 0, start });
        }
        let part = options.finder.as_ref().map_or(0..text.len(), |finder| finder.last_part(text));
        let normalizes = self.normalizes();
        let is_safe = |before, at, next: Option<char>| {
            let separates = |character| self.separates(character);
            !normalizes || separates(before) && separates(at) && next.is_some_and(separates)
        };
        let from = char_boundary(text, tried.cuts).clamp(part.start, part.end);
        if let Some(cut) = self.splitter.last_cut(text, from..part.end, is_safe) {
            return Ok(Certain { at: cut, start: PartStart::Inside });
        }
        tried.cuts = part.end.saturating_sub(3 * MAX_CHARACTER_BYTES).max(tried.cuts);
        let length = part.len();
        if normalizes
            || !self.splitter.is_scan()
            || length < MIN_TEXT_BYTES.max(2 * tried.pretokens)
        {
            let start = if part.start == 0 { start } else { PartStart::Special };
            return Ok(Certain { at: part.start, start });
        }
        tried.pretokens = length;
        let at = part.start + self.splitter.certain(&text[part])?;
        Ok(Certain { at, start: PartStart::Inside })
    }
}

/// The last character boundary up to `at`.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::tokenizer::tests::{PATTERNS, Rule, TOKENIZERS, pieces, special, tokenizer};
    use proptest::prelude::*;

    /// Append the pieces one by one; after each, the ids must be those of the whole text so far,
    /// and the stable ids must remain to the end.
    fn check(tokenizer: &Arc<Tokenizer>, special: &Special, pieces: &[&str]) {
        let options = tokenizer.options(special, &[7], &[]).unwrap();
        let mut session = Session::new(tokenizer, special, Some(7)).unwrap();
        let (mut text, mut ids, mut stable) = (String::new(), vec![7], Vec::new());
        for piece in pieces {
            text.push_str(piece);
            let fork = session.clone();
            let change = session.append(&Text::Utf8(piece)).unwrap();
            assert_eq!(fork.ids().unwrap(), ids);
            ids.truncate(ids.len() - change.removed);
            ids.extend(&change.ids);
            let expected = tokenizer.encode_with(&text, &options).unwrap();
            assert_eq!(ids, expected, "{pieces:?} {:?}", tokenizer.pattern());
            assert_eq!((session.ids().unwrap(), session.len()), (expected, ids.len()));
            stable.push(ids[..session.stable()].to_vec());
            assert!(fork.stable() <= session.stable());
        }
        for stable in stable {
            assert!(ids.starts_with(&stable), "{pieces:?} {:?}", tokenizer.pattern());
        }
    }

    proptest! {
        #[test]
        fn any_pieces_have_the_ids_of_the_whole_text(
            pieces in pieces(),
            tokenizer in prop::sample::select(TOKENIZERS.values().cloned().collect::<Vec<_>>()),
            special in special(),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            check(&tokenizer, &special, &pieces);
        }
    }

    #[test]
    fn long_texts_in_pieces_have_the_ids_of_the_whole_text() {
        let texts =
            ["The fox's don'T 1234567 \n\n x \r\n", "中文字符。", "ab", " ", "7", "\n ", "aB"];
        for pattern in PATTERNS {
            let tokenizer = tokenizer(pattern, 0, Rule::Ranks);
            for text in texts.map(|text| text.repeat(2000 / text.len())) {
                for length in [1, 37] {
                    let mut ends: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
                    ends.push(text.len());
                    let ends: Vec<_> = ends.into_iter().step_by(length).collect();
                    let pieces: Vec<_> = ends.windows(2).map(|at| &text[at[0]..at[1]]).collect();
                    check(&tokenizer, &Special::All, &pieces);
                }
            }
        }
    }

    #[test]
    fn little_text_is_kept_and_ids_move_into_blocks() {
        let tokenizer = tokenizer(&["gpt4o"], 0, Rule::Ranks);
        for text in ["words and words\n", "没有空格。", "!?\n", "1 2,3", "77", "aB"] {
            let mut session = Session::new(&tokenizer, &Special::All, None).unwrap();
            for _ in 0..3 * BLOCK_IDS {
                session.append(&Text::Utf8(text)).unwrap();
                assert!(session.rest().len() < 1024, "{text:?}");
                assert!(session.state.ids.len() < BLOCK_IDS + 1024);
            }
            assert_eq!(
                session.ids().unwrap(),
                tokenizer.encode(&text.repeat(3 * BLOCK_IDS)).unwrap()
            );
        }
    }

    #[test]
    fn a_failed_append_changes_nothing() {
        let tokenizer = tokenizer(&["gpt2"], 0, Rule::Ranks);
        let mut session = Session::new(&tokenizer, &Special::Error, None).unwrap();
        session.append(&Text::Utf8("one <")).unwrap();
        let before = (session.ids().unwrap(), session.stable());
        for text in ["a>", "c>"] {
            let error = session.append(&Text::Utf8(text)).unwrap_err();
            assert!(matches!(error, Error::SpecialInText { at: 4, .. }), "{error}");
            assert_eq!((session.ids().unwrap(), session.stable()), before);
        }
        session.append(&Text::Utf8("d>")).unwrap();
        assert_eq!(session.ids().unwrap(), tokenizer.encode("one <d>").unwrap());
    }

    #[test]
    fn pieces_may_end_within_a_surrogate_pair() {
        let tokenizer = tokenizer(&["gpt2"], 0, Rule::Ranks);
        let text = [0x61, 0xD83D, 0xDE00, 0xDE00, 0xD83D, 0xD83D, 0xDE00, 0x62];
        let expected = tokenizer.encode("a😀\u{fffd}\u{fffd}😀b").unwrap();
        for cut in 0..text.len() {
            for wide in [false, true] {
                let mut session = Session::new(&tokenizer, &Special::All, None).unwrap();
                for piece in [&text[..cut], &[], &text[cut..]] {
                    let units: Vec<u32> = piece.iter().copied().map(u32::from).collect();
                    let text = if wide { Text::Utf32(&units) } else { Text::Utf16(piece) };
                    session.append(&text).unwrap();
                }
                assert_eq!(session.ids().unwrap(), expected, "{cut}");
            }
        }
    }
}

#[cfg(test)]
mod stream_tests {
    use super::*;
    use crate::{Pattern, Vocabulary};

    #[test]
    fn pieces_of_any_length_give_the_ids_of_the_whole() {
        let texts = [
            "The quick brown fox's don'T 1234567 \n\n  x  \r\n".repeat(9000),
            "中文字符，没有空格。\n".repeat(9000),
            "ab".repeat(200_000),
            " ".repeat(200_000),
        ];
        for pattern in ["gpt2", "gpt4", "gpt4o", r"(?s).+"] {
            let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
            let more = [(b"ab".to_vec(), 256), (b"  ".to_vec(), 257), (b" x".to_vec(), 258)];
            let vocabulary = Vocabulary::new(bytes.chain(more), []).unwrap();
            let pattern = Pattern::from_regex(pattern);
            let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, pattern).unwrap());
            for text in &texts {
                let expected = tokenizer.encode(text).unwrap();
                for length in [1000, 70_001, usize::MAX] {
                    let chars: Vec<char> = text.chars().collect();
                    let (mut stream, mut ids) =
                        (EncodeStream::new(&tokenizer, &Special::Text).unwrap(), Vec::<u32>::new());
                    for piece in chars.chunks(length) {
                        let piece: String = piece.iter().collect();
                        ids.extend(stream.push(&Text::Utf8(&piece)).unwrap());
                    }
                    ids.extend(stream.flush().unwrap());
                    assert!(ids == expected, "{:?} in pieces of {length}", &text[..10]);
                }
            }
        }
    }

    #[test]
    fn little_text_is_buffered() {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let vocabulary = Vocabulary::new(bytes, []).unwrap();
        let pattern = Pattern::new("gpt4o").unwrap();
        let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, pattern).unwrap());
        for text in ["words and words\n", "没有空格。", "!?\n", "1 2,3"] {
            let mut stream = EncodeStream::new(&tokenizer, &Special::Text).unwrap();
            for _ in 0..10_000 {
                stream.push(&Text::Utf8(text)).unwrap();
                assert!(stream.text.rest.len() <= 2 * BUFFER_BYTES, "{text:?}");
            }
        }
    }
}
