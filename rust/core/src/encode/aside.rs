//! What does not fit a slot: more ids than six, and the bytes of pretokens that are longer than a key can
//! say.
//!
//! Threads share it. Each takes the room that it fills, which nobody else writes to, and nothing is
//! overwritten; others know where something is from a slot, which is published when all of it is there.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::slot::{self, THREE};
use crate::pages::Words;
use crate::parallel::Apart;
use crate::prefetch::prefetch;

/// Longer pretokens (in bytes) are not kept. A pretoken has no more ids than bytes.
pub(super) const LONGEST_KEPT: usize = 128;

/// Entries are read into so much room, since three ids are a word.
pub(super) const ROOM: usize = LONGEST_KEPT.next_multiple_of(THREE);

/// So many words; of each entry first the bytes of a long pretoken, then the ids, three a word.
#[derive(Debug)]
pub(super) struct Aside {
    words: Words<AtomicU64>,
    /// How many are taken, or more if some were asked for in vain.
    taken: Apart<AtomicUsize>,
}

impl Aside {
    /// Room for so many words. What is not touched costs address space only.
    pub(super) fn new(length: usize) -> Self {
        Self { words: Words::zeros(length), taken: Apart::default() }
    }

    /// Whether so many eighths are taken, or more than eight were asked for, some of them in vain.
    #[inline]
    pub(super) fn has_taken(&self, eighths: usize) -> bool {
        8 * self.taken.0.load(Relaxed) >= eighths * self.words.len()
    }

    /// Keep the bytes of a long pretoken, or none, and ids. What a slot has to say of it is returned: where it
    /// is, and how many bytes and ids there are. `None` if there is no room.
    pub(super) fn put(&self, long: &[u8], ids: &[u32]) -> Option<[u64; 2]> {
        let named = [0, (long.len() << 16 | ids.len()) as u64];
        self.fill(named, words_of(long).chain(ids.chunks(THREE).map(slot::pack)))
    }

    /// Keep an entry of another.
    pub(super) fn put_again(&self, other: &Self, named: [u64; 2]) -> Option<[u64; 2]> {
        let entry = other.entry(named)?;
        self.fill(named, entry.iter().map(|word| word.load(Relaxed)))
    }

    /// Have all that another has, which is no larger, in the same places; here is nothing yet.
    pub(super) fn copy(&self, other: &Self) {
        let taken = other.taken.0.load(Relaxed).min(other.words.len());
        for (to, from) in self.words.iter().zip(&other.words[..taken]) {
            to.store(from.load(Relaxed), Relaxed);
        }
        self.taken.0.store(taken, Relaxed);
    }

    /// Write words where there is room.
    fn fill(&self, named: [u64; 2], words: impl Iterator<Item = u64>) -> Option<[u64; 2]> {
        let size = size_of_entry(named);
        let start = self.taken.0.fetch_add(size, Relaxed);
        let room = self.words.get(start..start + size)?;
        for (place, word) in room.iter().zip(words) {
            place.store(word, Relaxed);
        }
        Some([start as u64, named[1]])
    }

    /// Bring an entry: its first word and its last, which are in two lines of memory more often than not.
    #[inline]
    pub(super) fn prefetch(&self, named: [u64; 2]) {
        let start = usize::try_from(named[0]).unwrap_or(0);
        prefetch(&self.words, start);
        prefetch(&self.words, start + size_of_entry(named) - 1);
    }

    /// The words of an entry.
    #[inline]
    fn entry(&self, named: [u64; 2]) -> Option<&[AtomicU64]> {
        let start = usize::try_from(named[0]).ok()?;
        self.words.get(start..start + size_of_entry(named))
    }

    /// Write the ids of a pretoken to the beginning of `room`, and behind them perhaps zeros; how many
    /// there are is returned, or `None` if what is kept here is of another pretoken.
    #[inline]
    pub(super) fn read(
        &self,
        named: [u64; 2],
        pretoken: &[u8],
        room: &mut [u32; ROOM],
    ) -> Option<usize> {
        let (length, count) = sizes(named);
        let (bytes, packed) = self.entry(named)?.split_at_checked(words_of_bytes(length))?;
        let is_long = length == pretoken.len()
            && bytes.iter().map(|word| word.load(Relaxed)).eq(words_of(pretoken));
        for (ids, word) in room.as_chunks_mut().0.iter_mut().zip(packed) {
            *ids = slot::unpack(word.load(Relaxed));
        }
        (length == 0 || is_long).then_some(count)
    }
}

/// How many bytes of a long pretoken and how many ids an entry has.
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

/// How many words the bytes of a long pretoken take; none takes none.
#[inline]
fn words_of_bytes(length: usize) -> usize {
    if length == 0 { 0 } else { length / 8 + 1 }
}

/// The bytes of a long pretoken, eight at a time and the last eight once more.
#[inline]
fn words_of(long: &[u8]) -> impl Iterator<Item = u64> {
    let last = long.last_chunk::<8>();
    long.as_chunks::<8>().0.iter().chain(last).map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What was put is there, in a copy too, and is of nobody else; what has no room is not put.
        #[test]
        fn what_is_kept_stays(
            puts in prop::collection::vec(
                (prop::bool::ANY, prop::collection::vec(0u8..2, 16..40), prop::collection::vec(0u32..1 << 21, 1..20)),
                1..40,
            ),
        ) {
            let (aside, copies, mut put) = (Aside::new(200), Aside::new(150), Vec::new());
            for (is_long, pretoken, ids) in &puts {
                let is_crowded = aside.has_taken(6);
                match aside.put(if *is_long { pretoken } else { &[] }, ids) {
                    Some(named) => put.push((named, is_long, pretoken, ids)),
                    None => prop_assert!(is_crowded),
                }
            }
            let mut room = [0; ROOM];
            for &(named, is_long, pretoken, ids) in &put {
                prop_assert_eq!(aside.read(named, pretoken, &mut room), Some(ids.len()));
                prop_assert_eq!(&room[..ids.len()], &ids[..]);
                let other: Vec<u8> = pretoken.iter().map(|byte| byte ^ 1).collect();
                prop_assert_eq!(aside.read(named, &other, &mut room).is_none(), *is_long);
                if let Some(copy) = copies.put_again(&aside, named) {
                    prop_assert_eq!(copies.read(copy, pretoken, &mut room), Some(ids.len()));
                    prop_assert_eq!(&room[..ids.len()], &ids[..]);
                }
            }
        }
    }
}
