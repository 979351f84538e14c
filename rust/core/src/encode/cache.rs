//! The ids of pretokens that were met before.
//!
//! Text repeats itself: a few thousand pretokens make up most of it. A cache of fixed size keeps the
//! ids of short pretokens, so that most of them cost one look at one cache line of the processor.
//! It is made of sets of two slots. A new pretoken takes the second slot of its set; one that is met
//! again there moves to the first. So what is frequent stays, what is rare goes, and nothing grows.
//!
//! A slot is four words: the pretoken itself (up to 15 bytes, then its length and the number of its
//! ids in the last byte) and up to four ids. Longer lists of ids are kept aside.

use crate::key::{Key, LONGEST};
use crate::prefetch::prefetch;

/// How many ids fit a slot.
const INLINE: usize = 4;
const WORDS: usize = 8;
/// When so many ids are kept aside, everything is forgotten.
const MOST_ASIDE: usize = 1 << 18;

/// The number of ids is above the length, in the four bits of a key that are always zero.
const COUNT: u32 = 60;
const KEY: u64 = u64::MAX >> 4;
/// The count of a slot whose ids are kept aside.
const ASIDE: u64 = 15;

/// The cache of one thread, of 2 to the power of `SET_BITS` sets of two slots (64 bytes). Empty, it
/// costs address space only.
#[derive(Debug, Default)]
pub(super) struct Cache<const SET_BITS: u32> {
    /// The sets, from `base` on, which is where a line of the processor's cache begins. Made at the
    /// first use; zero is an empty slot, so that fresh memory need not be written.
    words: Vec<u64>,
    base: usize,
    aside: Vec<u32>,
}

impl<const SET_BITS: u32> Cache<SET_BITS> {
    /// Be ready for `get` and `put`.
    #[inline]
    pub(super) fn prepare(&mut self) {
        if self.words.is_empty() {
            self.words = vec![0; (WORDS << SET_BITS) + WORDS];
            self.base = self.words.as_ptr().align_offset(64).min(WORDS);
        }
    }

    /// Where the set of a key begins. Its memory is asked for, so that it is there a little later.
    #[inline]
    pub(super) fn locate(&self, key: Key) -> usize {
        let set = usize::try_from(key.hash() >> (64 - SET_BITS)).unwrap_or(0);
        let place = self.base + set * WORDS;
        prefetch(&self.words, place);
        place
    }

    #[inline]
    fn set(&mut self, place: usize) -> &mut [u64; WORDS] {
        let set: Option<&mut [u64; WORDS]> = self.words[place..].first_chunk_mut();
        set.expect("`prepare` made room for all sets")
    }

    /// Whether the ids of a pretoken, which `locate` has placed, are here.
    #[inline]
    pub(super) fn has(&mut self, key: Key, place: usize) -> bool {
        let set = self.set(place);
        let is = |low: u64, high: u64| (low, high & KEY) == key.words();
        is(set[0], set[1]) || is(set[4], set[5])
    }

    /// Write the ids of a pretoken, which `locate` has placed, to `out` and return how many they are;
    /// `None` if it is not here.
    ///
    /// More of `out` may be overwritten.
    #[inline]
    pub(super) fn get(
        &mut self,
        key: Key,
        place: usize,
        out: &mut [u32; LONGEST],
    ) -> Option<usize> {
        let set = self.set(place);
        let is = |low: u64, high: u64| (low, high & KEY) == key.words();
        if !is(set[0], set[1]) {
            if !is(set[4], set[5]) {
                return None;
            }
            let (first, second) = set.split_at_mut(4);
            first.swap_with_slice(second);
        }
        let (count, ids) = (set[1] >> COUNT, [set[2], set[3]]);
        if count == ASIDE {
            return Some(self.get_aside(ids, out));
        }
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
        for (pair, word) in out.chunks_exact_mut(2).zip(ids) {
            (pair[0], pair[1]) = (word as u32, (word >> 32) as u32);
        }
        usize::try_from(count).ok()
    }

    #[cold]
    fn get_aside(&self, ids: [u64; 2], out: &mut [u32; LONGEST]) -> usize {
        let [start, count] = ids.map(|word| usize::try_from(word).expect("it was a length"));
        out[..count].copy_from_slice(&self.aside[start..start + count]);
        count
    }

    /// Remember the ids of a pretoken that is not here.
    pub(super) fn put(&mut self, key: Key, place: usize, ids: &[u32]) {
        if self.aside.len() + ids.len() > MOST_ASIDE {
            self.words.fill(0);
            self.aside.clear();
        }
        let aside = self.aside.len() as u64;
        let set = self.set(place);
        let mut slot = [0; INLINE];
        let words = if ids.len() <= INLINE {
            slot[..ids.len()].copy_from_slice(ids);
            let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
            [ids.len() as u64, pair(slot[0], slot[1]), pair(slot[2], slot[3])]
        } else {
            [ASIDE, aside, ids.len() as u64]
        };
        let (low, high) = key.words();
        set[4..].copy_from_slice(&[low, high | words[0] << COUNT, words[1], words[2]]);
        if ids.len() > INLINE {
            self.aside.extend_from_slice(ids);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn key(pretoken: &[u8]) -> Key {
        Key::new(pretoken, 0..pretoken.len())
    }

    fn get(cache: &mut Cache<17>, pretoken: &[u8], out: &mut [u32; LONGEST]) -> Option<usize> {
        let place = cache.locate(key(pretoken));
        cache.get(key(pretoken), place, out)
    }

    fn put(cache: &mut Cache<17>, pretoken: &[u8], ids: &[u32]) {
        let place = cache.locate(key(pretoken));
        cache.put(key(pretoken), place, ids);
    }

    proptest! {
        /// What is there is right, whatever was forgotten.
        #[test]
        fn it_never_answers_for_another(
            puts in prop::collection::vec(
                (prop::collection::vec(0u8..4, 1..=LONGEST),
                 prop::collection::vec(0u32..1 << 21, 1..=LONGEST)),
                1..200,
            ),
        ) {
            let mut cache = Cache::<17>::default();
            cache.prepare();
            let mut known: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
            let mut out = [0; LONGEST];
            for (pretoken, ids) in puts {
                if let Some(count) = get(&mut cache, &pretoken, &mut out) {
                    prop_assert_eq!(&out[..count], &known[&pretoken][..]);
                } else {
                    put(&mut cache, &pretoken, &ids);
                    known.insert(pretoken.clone(), ids);
                }
                prop_assert!(get(&mut cache, &pretoken, &mut out).is_some());
            }
        }
    }

    #[test]
    fn forgetting_is_bounded_and_right() {
        let mut cache = Cache::<17>::default();
        cache.prepare();
        let mut out = [0; LONGEST];
        let mut kept = 0;
        for number in 0..300_000u32 {
            let pretoken = number.to_le_bytes();
            assert_eq!(get(&mut cache, &pretoken, &mut out), None);
            put(&mut cache, &pretoken, &[number; 6]);
            assert!(cache.aside.len() <= MOST_ASIDE);
        }
        for number in 0..300_000u32 {
            if let Some(count) = get(&mut cache, &number.to_le_bytes(), &mut out) {
                assert_eq!(out[..count], [number; 6]);
                kept += 1;
            }
        }
        assert!(kept > 0);
    }
}
