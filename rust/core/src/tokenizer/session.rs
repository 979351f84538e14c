//! Encodes a text that grows, such as a prompt; the cost depends on the new text only.
//!
//! When the text grows, only its end is encoded again: the text after the last position before
//! which no continuation can change an id (`Encoder::certain`). The ids before that position are
//! final. They move into blocks that forks of the session share; the few other ids are copied when
//! a fork grows.

use std::sync::Arc;

use crate::encode::encoder::{Edges, Encoder};
use crate::encode::{EncodeOptions, Special};
use crate::error::{Error, Result};
use crate::memory;
use crate::rules::PartStart;
use crate::text::{MAX_CHARACTER_BYTES, Text};
use crate::tokenizer::Tokenizer;

/// The number of final ids that become a block.
const BLOCK_IDS: usize = if cfg!(test) { 1 << 5 } else { 1 << 12 };

/// The character that replaces a lone surrogate.
const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

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
    blocks: Option<Arc<IdBlock>>,
    /// The ids after those of the blocks.
    ids: Vec<u32>,
    /// How many of `ids` are final.
    stable: usize,
    /// The text of the ids that are not final.
    rest: String,
    /// The number of bytes of text before `rest`.
    start: usize,
    /// What precedes `rest`.
    begins: PartStart,
    tried: Tried,
    /// The high surrogate with which the text ends; U+FFFD replaces it at the end of `rest`.
    half: Option<u16>,
}

/// Final ids, and the previous block.
#[derive(Debug)]
struct IdBlock {
    before: Option<Arc<Self>>,
    ids: Vec<u32>,
    /// The number of ids of this block and all before it.
    end: usize,
}

impl Drop for IdBlock {
    /// Frees the previous blocks in a loop; recursion over a long list would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut block) = next.and_then(Arc::into_inner) {
            next = block.before.take();
        }
    }
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
        let (mut rest, half) = state.grown(text)?;
        let complete = if half.is_some() { rest.len() - UNKNOWN.len_utf8() } else { rest.len() };
        let encoder = self.tokenizer.encoder();
        let mut tried = state.tried;
        let shifted = |error: Error| error.shifted(state.start);
        let begins = state.begins;
        let certain = encoder.certain(&rest[..complete], begins, &self.options, &mut tried);
        let Certain { at: certain, start } = certain.map_err(shifted)?;
        let mut call = encoder.call();
        let mut encode = |text: &str, start| -> Result<Vec<u32>> {
            let mut ids = Vec::new();
            let edges = Edges { start, last: true };
            call.append_part(&Text::Utf8(text), &self.options, edges, &mut ids)?;
            Ok(ids)
        };
        // The text before the position is encoded together with what follows, since a pretoken may
        // end elsewhere where the text ends.
        let ids = encode(&rest, begins).map_err(shifted)?;
        let shifted = |error: Error| error.shifted(state.start + certain);
        let after = encode(&rest[certain..], start).map_err(shifted)?;
        debug_assert!(ids.ends_with(&after), "the ids of {rest:?} divide at {certain}");
        let stable = ids.len() - after.len();
        let change = state.replace(&ids, stable)?;
        state.half = half;
        state.tried = if certain > 0 { Tried::default() } else { tried };
        state.start += certain;
        state.begins = start;
        state.rest = rest.split_off(certain);
        state.pack();
        Ok(change)
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        self.state.packed() + self.state.ids.len()
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of ids at the start that no continuation is known to change. It never decreases.
    pub fn stable(&self) -> usize {
        self.state.packed() + self.state.stable
    }

    /// The text that is kept: the text of the ids after the stable ones.
    pub fn rest(&self) -> &str {
        &self.state.rest
    }

    /// All ids. Fails if there is not enough memory.
    pub fn ids(&self) -> Result<Vec<u32>> {
        let mut ids = memory::zeros(self.len())?;
        let mut packed = &mut ids[..];
        packed[self.state.packed()..].copy_from_slice(&self.state.ids);
        let mut next = self.state.blocks.as_deref();
        while let Some(block) = next {
            let start = block.end - block.ids.len();
            packed[start..block.end].copy_from_slice(&block.ids);
            packed = &mut packed[..start];
            next = block.before.as_deref();
        }
        Ok(ids)
    }
}

impl State {
    /// The text that is kept followed by `text`, and the high surrogate with which it then ends.
    fn grown(&self, text: &Text<'_>) -> Result<(String, Option<u16>)> {
        let (low, high) = text.half_pairs();
        let mut rest = String::new();
        memory::reserve_text(&mut rest, self.rest.len() + MAX_CHARACTER_BYTES + 3 * text.len())?;
        rest.push_str(&self.rest);
        let mut more = *text;
        if let Some((first, second)) = self.half.zip(low) {
            rest.truncate(rest.len() - UNKNOWN.len_utf8());
            rest.extend(char::decode_utf16([first, second]).map(|pair| pair.unwrap_or(UNKNOWN)));
            more = more.split_at(1).1;
        }
        let mut buffer = String::new();
        rest.push_str(more.read(&mut buffer)?);
        Ok((rest, high))
    }

    /// The number of ids in blocks.
    fn packed(&self) -> usize {
        self.blocks.as_ref().map_or(0, |block| block.end)
    }

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
            let others = self.ids.split_off(self.stable);
            let mut ids = std::mem::replace(&mut self.ids, others);
            ids.shrink_to_fit();
            let end = self.packed() + ids.len();
            self.blocks = Some(Arc::new(IdBlock { before: self.blocks.take(), ids, end }));
            self.stable = 0;
        }
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

    #[test]
    fn long_lists_of_blocks_are_freed() {
        let mut blocks = None;
        for end in 0..1_000_000 {
            blocks = Some(Arc::new(IdBlock { before: blocks, ids: Vec::new(), end }));
        }
        drop(blocks);
    }
}
