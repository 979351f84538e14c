//! Cache entries of four words: a pretoken and its ids.
//!
//! The first two words are the key of the pretoken, with the number of its ids in bits that keys
//! leave free. The other two hold up to four ids, five or six packed ids, or the location of the
//! ids in the overflow. An empty entry is all zeros.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::error::Result;
use crate::hash::key::Key;
use crate::machine::array::AlignedBuffer;
use crate::machine::simd::prefetch;
use crate::parallel::Padded;
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

// ---------------------------------------------------------------------------- overflow
//
// The overflow of the cache: lists of more than six ids, and the bytes of pretokens longer than a
// key.
//
// It is an arena of words that all threads share. A thread reserves the words that it writes, and
// nothing is overwritten. An entry that points into the arena is published after its words are
// written.

/// Longer pretokens (in bytes) are not cached. A pretoken has at most as many ids as bytes.
pub(crate) const MAX_CACHED_BYTES: usize = 128;

/// Ids are read into a buffer of this size, since three at a time are unpacked from a word.
pub(crate) const READ_BUFFER_IDS: usize = MAX_CACHED_BYTES.next_multiple_of(THREE);

/// For each item, the bytes of a long pretoken, then the ids, three in a word.
#[derive(Debug)]
pub(crate) struct Overflow {
    words: AlignedBuffer<AtomicU64>,
    /// The number of reserved words, including those that were requested when none were left.
    reserved_words: Padded<AtomicUsize>,
}

impl Overflow {
    /// An arena of `length` words. Words that are never written cost address space only.
    pub(crate) fn new(length: usize) -> Result<Self> {
        let words = AlignedBuffer::zeros(length)?;
        Ok(Self { words, reserved_words: Padded::default() })
    }

    /// The words of the arena.
    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// Whether this many eighths of the words are reserved; above eight, whether this many were
    /// requested.
    #[inline]
    pub(crate) fn is_filled(&self, eighths: usize) -> bool {
        8 * self.reserved_words.0.load(Relaxed) >= eighths * self.words.len()
    }

    /// Store the bytes of a long pretoken, or none, and ids. Returns the last two words of the
    /// entry, which hold the location and both lengths. `None` if the arena is full.
    pub(crate) fn put(&self, long: &[u8], ids: &[u32]) -> Option<[u64; 2]> {
        let named = [0, (long.len() << 16 | ids.len()) as u64];
        self.fill(named, words_of(long).chain(ids.chunks(THREE).map(pack)))
    }

    /// Store an item of another overflow.
    pub(crate) fn put_again(&self, other: &Self, named: [u64; 2]) -> Option<[u64; 2]> {
        let entry = other.entry(named)?;
        self.fill(named, entry.iter().map(|word| word.load(Relaxed)))
    }

    /// Write words to the next free location.
    fn fill(&self, named: [u64; 2], words: impl Iterator<Item = u64>) -> Option<[u64; 2]> {
        let size = size_of_entry(named);
        let start = self.reserved_words.0.fetch_add(size, Relaxed);
        let free = self.words.get(start..start + size)?;
        for (place, word) in free.iter().zip(words) {
            place.store(word, Relaxed);
        }
        Some([start as u64, named[1]])
    }

    /// Prefetch an item: its first and last word, which are usually in two cache lines.
    #[inline]
    pub(crate) fn prefetch(&self, named: [u64; 2]) {
        let start = usize::try_from(named[0]).unwrap_or(0);
        prefetch(&self.words, start);
        prefetch(&self.words, start + size_of_entry(named) - 1);
    }

    /// The words of an item.
    #[inline]
    fn entry(&self, named: [u64; 2]) -> Option<&[AtomicU64]> {
        let start = usize::try_from(named[0]).ok()?;
        self.words.get(start..start + size_of_entry(named))
    }

    /// Write the ids of a pretoken to the start of `out`, perhaps followed by zeros; returns their
    /// number, or `None` if the item belongs to another pretoken.
    #[inline]
    pub(crate) fn read(
        &self,
        named: [u64; 2],
        pretoken: &[u8],
        out: &mut [u32; READ_BUFFER_IDS],
    ) -> Option<usize> {
        let (length, count) = sizes(named);
        let (bytes, packed) = self.entry(named)?.split_at_checked(words_of_bytes(length))?;
        let is_long = length == pretoken.len()
            && bytes.iter().map(|word| word.load(Relaxed)).eq(words_of(pretoken));
        for (ids, word) in out.as_chunks_mut().0.iter_mut().zip(packed) {
            *ids = unpack(word.load(Relaxed));
        }
        (length == 0 || is_long).then_some(count)
    }
}

/// The number of bytes of a long pretoken, and the number of ids of an item.
#[inline]
fn sizes(named: [u64; 2]) -> (usize, usize) {
    let sizes = usize::try_from(named[1]).unwrap_or(0);
    (sizes >> 16, sizes & 0xFFFF)
}

#[inline]
fn size_of_entry(named: [u64; 2]) -> usize {
    let (length, count) = sizes(named);
    words_of_bytes(length) + count.div_ceil(THREE)
}

/// The number of words that the bytes of a long pretoken take; none without bytes.
#[inline]
fn words_of_bytes(length: usize) -> usize {
    if length == 0 { 0 } else { length / 8 + 1 }
}

/// The bytes of a long pretoken, eight at a time, then the last eight again.
#[inline]
fn words_of(long: &[u8]) -> impl Iterator<Item = u64> {
    let last = long.last_chunk::<8>();
    long.as_chunks::<8>().0.iter().chain(last).map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    proptest! {
        /// Stored items are found, also in a copy, and by no other pretoken; items that do not fit are
        /// not stored.
        #[test]
        fn what_is_kept_stays(
            puts in prop::collection::vec(
                (prop::bool::ANY, prop::collection::vec(0u8..2, 16..40), prop::collection::vec(0u32..1 << 21, 1..20)),
                1..40,
            ),
        ) {
            let [overflow, copies] = [200, 150].map(|words| Overflow::new(words).unwrap());
            let mut put = Vec::new();
            for (is_long, pretoken, ids) in &puts {
                let is_crowded = overflow.is_filled(6);
                match overflow.put(if *is_long { pretoken } else { &[] }, ids) {
                    Some(named) => put.push((named, is_long, pretoken, ids)),
                    None => prop_assert!(is_crowded),
                }
            }
            let mut room = [0; READ_BUFFER_IDS];
            for &(named, is_long, pretoken, ids) in &put {
                prop_assert_eq!(overflow.read(named, pretoken, &mut room), Some(ids.len()));
                prop_assert_eq!(&room[..ids.len()], &ids[..]);
                let other: Vec<u8> = pretoken.iter().map(|byte| byte ^ 1).collect();
                prop_assert_eq!(overflow.read(named, &other, &mut room).is_none(), *is_long);
                if let Some(copy) = copies.put_again(&overflow, named) {
                    prop_assert_eq!(copies.read(copy, pretoken, &mut room), Some(ids.len()));
                    prop_assert_eq!(&room[..ids.len()], &ids[..]);
                }
            }
        }
    }
}
