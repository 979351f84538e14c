//! The parts with which merging starts: the bytes of a pretoken, or its characters.
//!
//! Under the rule of characters, a character that is a token is one part. Of any other character,
//! each byte is a part; no listed pair contains such a byte, so these parts never merge. A byte of
//! invalid UTF-8 is a part of its own as well.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::Result;
use crate::machine::simd::Portable;
use crate::memory;
use crate::merge::pair_table::Pairs;
use crate::vocabulary::{ByteIds, MergeRule, NO_ID, Vocabulary};

/// An initial part of a pretoken.
pub(crate) struct RankedPart {
    /// The position of its first byte.
    pub(crate) start: usize,
    pub(crate) id: u32,
    /// The start of the part to the left, and the rank of merging both.
    pub(crate) merge_with_left: Option<(usize, u32)>,
}

/// The ids of the initial parts.
#[derive(Debug, Clone)]
pub(crate) struct Symbols {
    bytes: ByteIds,
    /// The ids of the non-ASCII characters; `None` if merging starts with bytes.
    characters: Option<HashMap<char, u32, FixedState>>,
}

impl Symbols {
    /// The initial parts under a rule.
    pub(crate) fn new(vocabulary: &Vocabulary, rule: MergeRule) -> Result<Self> {
        let bytes = vocabulary.byte_ids();
        if rule != MergeRule::Characters {
            return Ok(Self { bytes, characters: None });
        }
        let one = |(token, id)| Some((character(token).filter(|c| !c.is_ascii())?, id));
        let characters = memory::collect(vocabulary.ordinary_tokens().filter_map(one))?;
        Ok(Self { bytes, characters: Some(characters.into_iter().collect()) })
    }

    /// Whether each byte is a part.
    #[inline]
    pub(crate) fn are_bytes(&self) -> bool {
        self.characters.is_none()
    }

    /// The id of a byte that is a part, or [`NO_ID`].
    #[inline]
    pub(crate) fn of_byte(&self, byte: u8) -> u32 {
        self.bytes[usize::from(byte)]
    }

    /// The first byte that has no id.
    pub(crate) fn uncovered(&self, bytes: &[u8]) -> Option<u8> {
        bytes.iter().copied().find(|&byte| self.of_byte(byte) == NO_ID)
    }

    /// Whether every byte has an id.
    pub(crate) fn cover_all_bytes(&self) -> bool {
        !self.bytes.contains(&NO_ID)
    }

    /// The parts of a text in order, with the ranks of the first merges. Ranks of pairs of bytes are in
    /// a table of their own, which is smaller.
    #[inline]
    pub(crate) fn ranked_parts<'a>(
        &'a self,
        pairs: &'a impl Pairs,
        text: &'a [u8],
    ) -> impl Iterator<Item = RankedPart> {
        let mut before: Option<(usize, u32)> = None;
        self.parts(text).map(move |(start, id)| {
            let left = before.replace((start, id));
            let merge_with_left = left.map(|(left, left_id)| {
                let rank = if self.are_bytes() {
                    pairs.rank_of_bytes(text[left], text[start])
                } else {
                    pairs.rank(left_id, id, Portable)
                };
                (left, rank)
            });
            RankedPart { start, id, merge_with_left }
        })
    }

    /// The parts of a text in order: the start and the id of each.
    #[inline]
    pub(crate) fn parts<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, u32)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (&byte, start) = (text.get(at)?, at);
            let whole = self.characters.as_ref().and_then(|characters| {
                let end = at + length(byte);
                let id = *characters.get(&character(text.get(at..end)?)?)?;
                Some((id, end))
            });
            let (id, end) = whole.unwrap_or((self.of_byte(byte), at + 1));
            at = end;
            Some((start, id))
        })
    }

    /// The first position from `at` on at which a text may be cut without cutting a part; the end
    /// of the text if there is none.
    #[inline]
    pub(crate) fn boundary(&self, text: &[u8], at: usize) -> usize {
        let inside = |byte: &&u8| !self.are_bytes() && **byte & 0xC0 == 0x80;
        let rest = text.get(at..).unwrap_or_default();
        at.min(text.len()) + rest.iter().take_while(inside).count()
    }
}

/// The character that the bytes encode; `None` if they are not exactly one character.
fn character(bytes: &[u8]) -> Option<char> {
    let mut characters = std::str::from_utf8(bytes).ok()?.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The number of bytes of a character that starts with this byte; 1 for a byte that starts no
/// character.
#[inline]
fn length(first: u8) -> usize {
    match first {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
        _ => 1,
    }
}
