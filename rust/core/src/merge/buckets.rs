//! The pairs that merge and their ranks, as a hash table that is looked at without branches.
//!
//! A pair and its rank fit one word of 64 bits: the ids take 21 bits each and the rank 22. Eight
//! words are a bucket, one line of the processor's cache, and are looked at all at once: whether a
//! pair merges is as good as random, so a branch on it would be guessed wrong half the time. A pair
//! that finds its bucket full goes to one behind. How many buckets behind at most, the *reach*, is
//! known, so a look-up ends, whatever is in the table.

use std::ops::Deref;

use crate::error::Result;
use crate::hash::probe_table::MAX_PROBE;
use crate::machine::array::Array;
use crate::machine::huge_pages::AlignedBuffer;
use crate::machine::lanes::Lanes;
use crate::machine::prefetch::prefetch;
use crate::vocabulary::MAX_VOCAB_SIZE;

/// How many words a bucket has.
const BUCKET: usize = 8;

const ID_BITS: u32 = 21;
const PAIR_BITS: u32 = 2 * ID_BITS;
const PAIR: u64 = (1 << PAIR_BITS) - 1;

/// Ranks are below.
pub(crate) const MOST_RANKS: usize = (1 << 22) - 1;

/// What stands to the right of nothing: above all ids, so that its pairs are like no word, whatever
/// is in the table.
pub(crate) const NO_PART: u32 = 1 << ID_BITS;

const _: () = assert!(MAX_VOCAB_SIZE < NO_PART as usize);

/// A power of two of buckets, in memory or in a file. A word is a pair and, above it, one more than
/// its rank; zero is an empty word.
#[derive(Debug, Clone)]
pub(crate) struct Buckets<W = Array<u64>> {
    words: W,
    reach: usize,
}

impl Buckets<AlignedBuffer> {
    /// An empty table with room for so many pairs, which fill half of it at most.
    pub(crate) fn with_room(pairs: usize) -> Result<Self> {
        let words = (2 * pairs + 2).next_power_of_two().max(BUCKET);
        Ok(Self { words: AlignedBuffer::zeros(words)?, reach: 1 })
    }

    /// Put a pair into the table, unless it is there already.
    pub(crate) fn insert(&mut self, left: u32, right: u32, rank: u32) {
        let pair = pair(left, right);
        let (mut at, mut reach) = (start(pair, self.words.len()), 1);
        loop {
            let bucket = &mut self.words[at..at + BUCKET];
            match bucket.iter_mut().find(|word| **word == 0 || **word & PAIR == pair) {
                Some(word) if *word == 0 => {
                    *word = u64::from(rank + 1) << PAIR_BITS | pair;
                    self.reach = self.reach.max(reach);
                    return;
                }
                Some(_) => return,
                None => (at, reach) = ((at + BUCKET) & (self.words.len() - 1), reach + 1),
            }
        }
    }

    /// The finished table.
    pub(crate) fn finish(self) -> Buckets {
        Buckets { words: Array::of_words(self.words), reach: self.reach }
    }
}

impl Buckets {
    /// The table in an array that comes from anywhere; `None` if it is not a power of two of
    /// buckets, or the reach is too far.
    pub(crate) fn of_column(words: Array<u64>, reach: usize) -> Option<Self> {
        let right = words.len() >= BUCKET && words.len().is_power_of_two() && reach <= MAX_PROBE;
        right.then_some(Self { words, reach })
    }

    /// The array, and how many buckets a look-up reaches.
    pub(crate) fn column(&self) -> (&Array<u64>, usize) {
        (&self.words, self.reach)
    }

    /// All pairs of ids, in order of rank.
    pub(crate) fn in_order(&self) -> Vec<(u32, u32)> {
        let mut words: Vec<u64> = self.words.iter().copied().filter(|&word| word != 0).collect();
        words.sort_unstable_by_key(|word| word >> PAIR_BITS);
        #[expect(clippy::cast_possible_truncation, reason = "the bits of an id")]
        let id = |bits: u64| bits as u32 & (NO_PART - 1);
        words.into_iter().map(|word| (id(word), id(word >> ID_BITS))).collect()
    }
}

impl<W: Deref<Target = [u64]>> Buckets<W> {
    /// The rank of a pair, or `u32::MAX` if it is not here.
    #[expect(clippy::inline_always, reason = "for the instructions of the caller")]
    #[inline(always)]
    pub(crate) fn rank(&self, left: u32, right: u32, lanes: impl Lanes) -> u32 {
        let pair = pair(left, right);
        let mut at = start(pair, self.words.len());
        let bucket = self.words[at..].first_chunk::<BUCKET>().expect("buckets are whole");
        let mut found = lanes.find(bucket, PAIR, pair);
        // Whether a pair is here is as good as random; that a bucket is full hardly ever happens.
        if bucket[BUCKET - 1] != 0 && found == 0 {
            for _ in 1..self.reach {
                at = (at + BUCKET) & (self.words.len() - 1);
                let bucket = self.words[at..].first_chunk().expect("buckets are whole");
                found |= lanes.find(bucket, PAIR, pair);
            }
        }
        let above = (found >> PAIR_BITS) as u32;
        above.wrapping_sub(1)
    }

    /// Bring the memory that [`rank`](Self::rank) will look at.
    #[inline]
    pub(crate) fn prefetch(&self, left: u32, right: u32) {
        prefetch(&self.words, start(pair(left, right), self.words.len()));
    }
}

#[inline]
fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) | u64::from(right) << ID_BITS
}

/// Where the bucket of a pair begins in so many words, a power of two.
#[inline]
fn start(pair: u64, words: usize) -> usize {
    // Fibonacci hashing: the high bits of the product depend on all bits of the pair.
    let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - words.trailing_zeros());
    usize::try_from(hash).expect("a table fits memory") & !(BUCKET - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::lanes::Portable;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Every pair is found with its first rank, in a table that is as full as can be, and no
        /// other.
        #[test]
        fn what_was_put_is_found(
            pairs in prop::collection::vec((0u32..40, 0u32..40), 1..120),
            room in 1usize..200,
        ) {
            let mut buckets = Buckets::with_room(room.max(pairs.len() / 2)).unwrap();
            let mut known = HashMap::new();
            for (&(left, right), rank) in pairs.iter().zip(0..) {
                known.entry((left, right)).or_insert(rank);
                buckets.insert(left, right, rank);
            }
            let buckets = buckets.finish();
            let (column, reach) = buckets.column();
            let again = Buckets::of_column(column.clone(), reach).unwrap();
            for (left, right) in (0..40).flat_map(|left| (0..40).map(move |right| (left, right))) {
                let rank = known.get(&(left, right)).copied().unwrap_or(u32::MAX);
                prop_assert_eq!(buckets.rank(left, right, Portable), rank);
                prop_assert_eq!(again.rank(left, right, Portable), rank);
            }
            let mut order: Vec<_> = known.iter().map(|(&pair, &rank)| (rank, pair)).collect();
            order.sort_unstable();
            prop_assert!(buckets.in_order().into_iter().eq(order.iter().map(|&(_, pair)| pair)));
        }
    }

    #[test]
    fn a_table_of_anything_is_looked_through_in_bounded_time() {
        let words = Array::new(vec![u64::MAX; 1 << 10]);
        assert!(Buckets::of_column(words.clone(), MAX_PROBE + 1).is_none());
        let buckets = Buckets::of_column(words, MAX_PROBE).unwrap();
        for (left, right) in [(1, 2), (1, NO_PART), (NO_PART, NO_PART)] {
            assert_eq!(buckets.rank(left, right, Portable), u32::MAX);
        }
        assert!(Buckets::of_column(Array::new(vec![0; 24]), 1).is_none());
        assert!(Buckets::of_column(Array::new(vec![0; 4]), 1).is_none());
    }
}
