//! Cache entries of four words: a pretoken and its ids.
//!
//! The first two words are the key of the pretoken, with the number of its ids in bits that keys
//! leave free. The other two hold up to four ids, five or six packed ids, or the location of the
//! ids in the overflow. An empty entry is all zeros.

use crate::hash::key::Key;
use crate::vocabulary::MAX_VOCAB_SIZE;

/// The number of ids that fit an entry unpacked, and packed.
pub(crate) const INLINE: usize = 4;
pub(crate) const PACKED: usize = 2 * THREE;

/// The number of words of an entry.
pub(crate) const WORDS: usize = 4;

pub(crate) type Entry = [u64; WORDS];

/// The count of an entry whose last two words locate its ids in the overflow.
pub(crate) const IN_OVERFLOW: u8 = 7;

/// The number of ids in a packed word, and the bits of each.
pub(crate) const THREE: usize = 3;
const PACKED_BITS: u32 = 21;
const _: () = assert!(MAX_VOCAB_SIZE <= 1 << PACKED_BITS);

/// The number of ids occupies three of the four highest bits of a key, which are always zero.
const COUNT: u32 = 60;
const KEY: u64 = u64::MAX >> 4;

/// The entry of a pretoken with at most [`PACKED`] ids.
pub(crate) fn of_ids(key: Key, ids: &[u32]) -> Entry {
    let count = u8::try_from(ids.len()).expect("a few");
    if let Some((first, others)) = ids.split_at_checked(THREE).filter(|_| ids.len() > INLINE) {
        return with(key, count, [pack(first), pack(others)]);
    }
    let id = |at: usize| u64::from(ids.get(at).copied().unwrap_or(0));
    with(key, count, [id(0) | id(1) << 32, id(2) | id(3) << 32])
}

/// At most three ids as a word.
pub(crate) fn pack(ids: &[u32]) -> u64 {
    ids.iter().rev().fold(0, |word, &id| word << PACKED_BITS | u64::from(id))
}

/// The ids of a word, padded with zeros.
#[inline]
pub(crate) fn unpack(word: u64) -> [u32; THREE] {
    #[expect(clippy::cast_possible_truncation, reason = "what is above is masked")]
    let id = |at: u32| (word >> (at * PACKED_BITS)) as u32 & ((1 << PACKED_BITS) - 1);
    [id(0), id(1), id(2)]
}

/// The entry of a pretoken with this count and these last two words.
pub(crate) fn with(key: Key, count: u8, words: [u64; 2]) -> Entry {
    let (low, high) = key.words();
    [low, high | u64::from(count) << COUNT, words[0], words[1]]
}

/// Whether an entry is that of a key.
#[inline]
pub(crate) fn is(entry: &Entry, key: Key) -> bool {
    let (low, high) = key.words();
    // Without a short circuit, whose branch would be mispredicted.
    (entry[0] ^ low) | (entry[1] & KEY ^ high) == 0
}

/// The key of an entry.
pub(crate) fn key(entry: &Entry) -> Key {
    Key::of_words(entry[0], entry[1] & KEY)
}

/// The number of ids of an entry, or [`IN_OVERFLOW`].
#[inline]
pub(crate) fn count(entry: &Entry) -> u8 {
    u8::try_from(entry[1] >> COUNT).expect("four bits")
}

/// The last two words of an entry: its ids, or their location.
#[inline]
pub(crate) fn words(entry: &Entry) -> [u64; 2] {
    [entry[2], entry[3]]
}

/// The ids in the last two words of an entry with more than [`INLINE`] ids, perhaps followed by a
/// zero.
#[inline]
pub(crate) fn packed_ids(words: [u64; 2]) -> [u32; PACKED] {
    let [[first, second, third], [fourth, fifth, sixth]] = words.map(unpack);
    [first, second, third, fourth, fifth, sixth]
}

/// The ids in the last two words of an entry with at most [`INLINE`] ids, followed by arbitrary
/// numbers.
#[inline]
pub(crate) fn ids(words: [u64; 2]) -> [u32; INLINE] {
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
        /// An entry returns the ids from which it was made, and their number.
        #[test]
        fn a_slot_has_its_ids(ids in prop::collection::vec(0..1u32 << PACKED_BITS, 0..=PACKED)) {
            let key = Key::new(b"abc", 0..3);
            let entry = of_ids(key, &ids);
            let count = usize::from(count(&entry));
            prop_assert!(is(&entry, key) && count == ids.len());
            if ids.len() <= INLINE {
                prop_assert_eq!(&super::ids(words(&entry))[..count], &ids);
            } else {
                prop_assert_eq!(&packed_ids(words(&entry))[..count], &ids);
            }
        }
    }
}
