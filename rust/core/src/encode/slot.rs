//! A pretoken and its ids in four words: what tables of known pretokens are made of.
//!
//! The first two words are the key of the pretoken, with the number of its ids in the bits that keys
//! leave free; the others are up to four ids. A slot without a pretoken is all zeros.

use crate::key::Key;

/// How many ids fit a slot.
pub(super) const INLINE: usize = 4;

/// How many words a slot has.
pub(super) const WORDS: usize = 4;

pub(super) type Slot = [u64; WORDS];

/// The count of a slot whose last two words are no ids.
pub(super) const ASIDE: u8 = 7;

/// The number of ids is in three of the four highest bits of a key, which are always zero.
const COUNT: u32 = 60;
const KEY: u64 = u64::MAX >> 4;

/// The highest bit of the second word says in a table that the pretoken was met again.
pub(super) const MET: u64 = 1 << 63;

/// The slot of a pretoken with at most [`INLINE`] ids.
pub(super) fn of_ids(key: Key, ids: &[u32]) -> Slot {
    let id = |at: usize| u64::from(ids.get(at).copied().unwrap_or(0));
    let count = u8::try_from(ids.len()).expect("a few");
    with(key, count, [id(0) | id(1) << 32, id(2) | id(3) << 32])
}

/// The slot of a pretoken with a count and two words.
pub(super) fn with(key: Key, count: u8, words: [u64; 2]) -> Slot {
    let (low, high) = key.words();
    [low, high | u64::from(count) << COUNT, words[0], words[1]]
}

/// Whether a slot is that of a key.
#[inline]
pub(super) fn is(slot: &Slot, key: Key) -> bool {
    let (low, high) = key.words();
    // Not one behind the other: a processor would have to guess the first.
    (slot[0] ^ low) | (slot[1] & KEY ^ high) == 0
}

/// The key of a slot.
pub(super) fn key(slot: &Slot) -> Key {
    Key::of_words(slot[0], slot[1] & KEY)
}

/// How many ids a slot has, or [`ASIDE`].
#[inline]
pub(super) fn count(slot: &Slot) -> u8 {
    u8::try_from((slot[1] & !MET) >> COUNT).expect("three bits")
}

/// The last two words of a slot: its ids, or where they are.
#[inline]
pub(super) fn words(slot: &Slot) -> [u64; 2] {
    [slot[2], slot[3]]
}

/// The ids in the last two words of a slot, and whatever stands behind them.
#[inline]
pub(super) fn ids(words: [u64; 2]) -> [u32; INLINE] {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let ([first, second], [third, fourth]) = (halves(words[0]), halves(words[1]));
    [first, second, third, fourth]
}
