//! A pretoken and its ids in four words: what tables of known pretokens are made of.
//!
//! The first two words are the key of the pretoken, with the number of its ids in the bits that keys
//! leave free; the others are up to four ids, or five or six that are packed. A slot without a pretoken is all zeros.

use crate::key::Key;
use crate::vocabulary::MAX_VOCAB_SIZE;

/// How many ids fit a slot as they are, and packed.
pub(super) const INLINE: usize = 4;
pub(super) const PACKED: usize = 2 * THREE;

/// How many words a slot has.
pub(super) const WORDS: usize = 4;

pub(super) type Slot = [u64; WORDS];

/// The count of a slot whose last two words are no ids.
pub(super) const ASIDE: u8 = 7;

/// So many ids are packed in a word, and each has so many bits.
pub(super) const THREE: usize = 3;
const PACKED_BITS: u32 = 21;
const _: () = assert!(MAX_VOCAB_SIZE <= 1 << PACKED_BITS);

/// The number of ids is in three of the four highest bits of a key, which are always zero.
const COUNT: u32 = 60;
const KEY: u64 = u64::MAX >> 4;

/// The highest bit of the second word says in a table that the pretoken was met again.
pub(super) const MET: u64 = 1 << 63;

/// The slot of a pretoken with at most [`PACKED`] ids.
pub(super) fn of_ids(key: Key, ids: &[u32]) -> Slot {
    let count = u8::try_from(ids.len()).expect("a few");
    if let Some((first, others)) = ids.split_at_checked(THREE).filter(|_| ids.len() > INLINE) {
        return with(key, count, [pack(first), pack(others)]);
    }
    let id = |at: usize| u64::from(ids.get(at).copied().unwrap_or(0));
    with(key, count, [id(0) | id(1) << 32, id(2) | id(3) << 32])
}

/// At most three ids as a word.
pub(super) fn pack(ids: &[u32]) -> u64 {
    ids.iter().rev().fold(0, |word, &id| word << PACKED_BITS | u64::from(id))
}

/// The ids of a word, and zeros behind them.
#[inline]
pub(super) fn unpack(word: u64) -> [u32; THREE] {
    #[expect(clippy::cast_possible_truncation, reason = "what is above is masked")]
    let id = |at: u32| (word >> (at * PACKED_BITS)) as u32 & ((1 << PACKED_BITS) - 1);
    [id(0), id(1), id(2)]
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

/// The more than [`INLINE`] ids in the last two words of a slot, and perhaps a zero behind them.
#[inline]
pub(super) fn packed_ids(words: [u64; 2]) -> [u32; PACKED] {
    let [[first, second, third], [fourth, fifth, sixth]] = words.map(unpack);
    [first, second, third, fourth, fifth, sixth]
}

/// The at most [`INLINE`] ids in the last two words of a slot, and whatever stands behind them.
#[inline]
pub(super) fn ids(words: [u64; 2]) -> [u32; INLINE] {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let ([first, second], [third, fourth]) = (halves(words[0]), halves(words[1]));
    [first, second, third, fourth]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A slot says the ids that it was made of, and how many there are.
        #[test]
        fn a_slot_has_its_ids(ids in prop::collection::vec(0..1u32 << PACKED_BITS, 0..=PACKED)) {
            let key = Key::new(b"abc", 0..3);
            let slot = of_ids(key, &ids);
            let count = usize::from(count(&slot));
            prop_assert!(is(&slot, key) && count == ids.len());
            if ids.len() <= INLINE {
                prop_assert_eq!(&super::ids(words(&slot))[..count], &ids);
            } else {
                prop_assert_eq!(&packed_ids(words(&slot))[..count], &ids);
            }
        }
    }
}
