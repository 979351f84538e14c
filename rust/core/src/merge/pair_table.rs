//! The rank and the result of every pair that merges: one table for both merge rules.
//!
//! Under the rule of merges, the table holds the listed pairs; under the rule of ranks, the pairs
//! that [`merger`](super::merger) derives. So merging never compares bytes. The ranks of the pairs of
//! single bytes, with which merging a pretoken starts, are in an array of 65,536 numbers.

use std::ops::Deref;

use crate::error::{Error, Result};
use crate::machine::array::{AlignedBuffer, Array};
use crate::machine::simd::{Lanes, Portable, prefetch};
use crate::memory;
use crate::vocabulary::{MAX_VOCAB_SIZE, MergeRule, NO_ID, Vocabulary};

/// The rank of a pair that does not merge, above all others.
pub(crate) const NO_MERGE: u32 = u32::MAX;

/// The lookups that merging needs.
pub(crate) trait Pairs {
    /// The rank of a pair of ids, or [`NO_MERGE`]. Must be `#[inline(always)]`.
    fn rank(&self, left: u32, right: u32, lanes: impl Lanes) -> u32;

    /// Prefetch the memory that [`rank`](Self::rank) reads.
    fn prefetch(&self, left: u32, right: u32);

    /// The rank of a pair of single bytes, or [`NO_MERGE`].
    fn rank_of_bytes(&self, left: u8, right: u8) -> u32;

    /// The id that the merge with this rank creates.
    fn id(&self, rank: u32) -> u32;
}

/// All pairs that merge, in memory or in a file.
#[derive(Debug, Clone)]
pub(crate) struct PairTable<W = Array<u64>, B = Array<u32>> {
    pub(crate) buckets: Buckets<W>,
    /// The rank of each pair of bytes.
    pub(crate) bytes: B,
    /// The id that each merge creates, by rank; empty if ids are ranks.
    pub(crate) ids: Array<u32>,
    /// All ranks are below this.
    ranks: u32,
    /// The start of each id in the arena of the vocabulary, then the end of the last; empty while
    /// the table is built.
    offsets: Array<u32>,
}

/// A table under construction.
pub(crate) type PairTableBuilder = PairTable<AlignedBuffer, Vec<u32>>;

impl PairTableBuilder {
    /// An empty table with capacity for `ranks` pairs. `ids` is empty if ids are ranks.
    pub(crate) fn with_capacity(ranks: usize, ids: Vec<u32>) -> Result<Self> {
        Ok(Self {
            buckets: Buckets::with_capacity(ranks)?,
            bytes: memory::filled(NO_MERGE, 1 << 16)?,
            ids: Array::new(ids),
            ranks: number(ranks),
            offsets: Array::new(Vec::new()),
        })
    }

    /// Insert a pair, unless it exists.
    pub(crate) fn insert(&mut self, left: u32, right: u32, rank: u32) {
        self.buckets.insert(left, right, rank);
    }

    /// Set the rank of a pair of single bytes.
    pub(crate) fn insert_bytes(&mut self, left: u8, right: u8, rank: u32) {
        self.bytes[usize::from(left) << 8 | usize::from(right)] = rank;
    }

    /// The finished table, with the ranks of the pairs of single bytes filled in. Fails as
    /// [`Buckets::finish`] does.
    pub(crate) fn finish(mut self, vocabulary: &Vocabulary) -> Result<PairTable> {
        let byte_ids = vocabulary.byte_ids();
        for bytes in 0..=u16::MAX {
            let [left, right] = bytes.to_be_bytes();
            let ids = [left, right].map(|byte| byte_ids[usize::from(byte)]);
            let rank =
                if ids.contains(&NO_ID) { NO_MERGE } else { self.rank(ids[0], ids[1], Portable) };
            self.insert_bytes(left, right, rank);
        }
        let Self { buckets, bytes, ids, ranks, .. } = self;
        let offsets = vocabulary.arrays().1.clone();
        let (buckets, bytes) = (buckets.finish()?, Array::new(bytes));
        Ok(PairTable { buckets, bytes, ids, ranks, offsets })
    }
}

impl PairTable {
    /// The table in the arrays of a file; `ids` is empty under the rule of ranks.
    ///
    /// `None` if the arrays could give an id that does not exist. Ranks in the buckets are checked
    /// at each lookup instead.
    pub(crate) fn from_arrays(
        buckets: Buckets,
        bytes: Array<u32>,
        ids: Array<u32>,
        vocabulary: &Vocabulary,
        rule: MergeRule,
    ) -> Option<Self> {
        // Counting all of them is vectorized; stopping at the first would not be.
        let below = |numbers: &[u32], limit: u32| {
            let exceeds = |number: &&u32| **number >= limit && **number != NO_MERGE;
            numbers.iter().filter(exceeds).count() == 0
        };
        let size = number(vocabulary.len());
        let ranks = if rule == MergeRule::Ranks { size } else { u32::try_from(ids.len()).ok()? };
        let is_valid = (rule != MergeRule::Ranks || ids.is_empty())
            && bytes.len() == 1 << 16
            && below(&bytes, ranks)
            && below(&ids, size)
            && !ids.contains(&NO_MERGE);
        let offsets = vocabulary.arrays().1.clone();
        is_valid.then_some(Self { buckets, bytes, ids, ranks, offsets })
    }

    /// The number of bytes of an id; 0 if it does not exist.
    pub(crate) fn length(&self, id: u32) -> usize {
        let id = id as usize;
        self.offsets.get(id..id + 2).map_or(0, |span| (span[1] - span[0]) as usize)
    }

    /// The number of bytes of the longest token; scans all tokens.
    pub(crate) fn longest(&self) -> usize {
        let lengths = self.offsets.windows(2).map(|span| span[1] - span[0]);
        lengths.max().unwrap_or_default() as usize
    }

    /// For each id, whether a pair merges into it.
    pub(crate) fn merge_results(&self) -> Result<Vec<bool>> {
        let mut is_result = memory::filled(false, self.offsets.len())?;
        for rank in self.buckets.ranks().filter(|&rank| rank < self.ranks) {
            is_result[self.id(rank) as usize] = true;
        }
        Ok(is_result)
    }

    /// Whether the rank of a pair is the id that it merges into.
    pub(crate) fn ids_are_ranks(&self) -> bool {
        self.ids.is_empty()
    }
}

impl<W: Deref<Target = [u64]>, B: Deref<Target = [u32]>> Pairs for PairTable<W, B> {
    #[expect(clippy::inline_always, reason = "compiled for the instructions of the caller")]
    #[inline(always)]
    fn rank(&self, left: u32, right: u32, lanes: impl Lanes) -> u32 {
        let rank = self.buckets.rank(left, right, lanes);
        // A file may contain any rank.
        if rank < self.ranks { rank } else { NO_MERGE }
    }

    #[inline]
    fn prefetch(&self, left: u32, right: u32) {
        self.buckets.prefetch(left, right);
    }

    #[inline]
    fn rank_of_bytes(&self, left: u8, right: u8) -> u32 {
        self.bytes[usize::from(left) << 8 | usize::from(right)]
    }

    #[inline]
    fn id(&self, rank: u32) -> u32 {
        if self.ids.is_empty() { rank } else { self.ids[rank as usize] }
    }
}

fn number(of: usize) -> u32 {
    u32::try_from(of).expect("there are at most 2^22 ids and ranks")
}

// ---------------------------------------------------------------------------- buckets
//
// A branch-free hash table from the pairs that merge to their ranks.
//
// A pair and its rank fit in one word of 64 bits: 21 bits for each id and 22 for the rank. Eight
// words form a bucket, which is one cache line, and are compared all at once: whether a pair
// merges is close to random, so a branch on it would be mispredicted half the time. If the bucket
// of a pair is full, the pair goes to a later bucket. The table records the longest such probe
// sequence, so a lookup ends even if a file contains an invalid table.

/// The number of words of a bucket.
const BUCKET_WORDS: usize = 8;

/// The buckets of a probe sequence. Published vocabularies need at most 5; a file may choose ids of which
/// many have one hash.
const MAX_PROBE: usize = 1 << 6;

const ID_BITS: u32 = 21;
const PAIR_BITS: u32 = 2 * ID_BITS;
const PAIR: u64 = (1 << PAIR_BITS) - 1;

/// All ranks are below this.
pub(crate) const MAX_RANKS: usize = (1 << 22) - 1;

/// In place of the id of a missing neighbour. It is above all ids, so a pair with it equals no
/// word, whatever the table contains.
pub(crate) const NO_PART: u32 = 1 << ID_BITS;

const _: () = assert!(MAX_VOCAB_SIZE < NO_PART as usize);

/// A table whose number of buckets is a power of two, in memory or in a file. A word holds a pair
/// in its low bits, and the rank plus 1 above it; an empty word is zero.
#[derive(Debug, Clone)]
pub(crate) struct Buckets<W = Array<u64>> {
    words: W,
    max_probe: usize,
}

impl Buckets<AlignedBuffer> {
    /// An empty table for `pairs` pairs, which fill at most half of it.
    pub(crate) fn with_capacity(pairs: usize) -> Result<Self> {
        let words = (2 * pairs + 2).next_power_of_two().max(BUCKET_WORDS);
        Ok(Self { words: AlignedBuffer::zeros(words)?, max_probe: 1 })
    }

    /// Insert a pair, unless it exists, or its probe sequence is too long: then `finish` fails.
    pub(crate) fn insert(&mut self, left: u32, right: u32, rank: u32) {
        let pair = pair(left, right);
        let (mut at, mut max_probe) = (start(pair, self.words.len()), 1);
        loop {
            // The words of a bucket are filled from the first to the last, so a bucket whose last word
            // is filled is full, and only then a pair may be in a later one.
            let bucket = &mut self.words[at..at + BUCKET_WORDS];
            match bucket.iter_mut().find(|word| **word == 0 || **word & PAIR == pair) {
                Some(word) if *word == 0 => {
                    *word = u64::from(rank + 1) << PAIR_BITS | pair;
                    self.max_probe = self.max_probe.max(max_probe);
                    return;
                }
                Some(_) => return,
                None if max_probe == MAX_PROBE => {
                    self.max_probe = MAX_PROBE + 1;
                    return;
                }
                None => {
                    (at, max_probe) = ((at + BUCKET_WORDS) & (self.words.len() - 1), max_probe + 1);
                }
            }
        }
    }

    /// The finished table. Fails if a pair was left out.
    pub(crate) fn finish(self) -> Result<Buckets> {
        if self.max_probe > MAX_PROBE {
            let reason =
                "hundreds of pairs of its merges have one hash, as of no trained vocabulary";
            return Err(Error::Vocabulary { reason: reason.into() });
        }
        Ok(Buckets { words: Array::of_words(self.words), max_probe: self.max_probe })
    }
}

impl Buckets {
    /// The table in an array, which may come from a file; `None` if its number of buckets is not a
    /// power of two, or if `max_probe` is too large.
    pub(crate) fn from_array(words: Array<u64>, max_probe: usize) -> Option<Self> {
        let is_valid =
            words.len() >= BUCKET_WORDS && words.len().is_power_of_two() && max_probe <= MAX_PROBE;
        is_valid.then_some(Self { words, max_probe })
    }

    /// The array, and the longest probe sequence in buckets.
    pub(crate) fn array(&self) -> (&Array<u64>, usize) {
        (&self.words, self.max_probe)
    }

    /// The ranks of all pairs.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = u32> {
        let words = self.words.iter().filter(|&&word| word != 0);
        words.map(|word| ((word >> PAIR_BITS) as u32).wrapping_sub(1))
    }

    /// All pairs of ids, in rank order.
    pub(crate) fn in_order(&self) -> Vec<(u32, u32)> {
        let mut words: Vec<u64> = self.words.iter().copied().filter(|&word| word != 0).collect();
        words.sort_unstable_by_key(|word| word >> PAIR_BITS);
        #[expect(clippy::cast_possible_truncation, reason = "the bits of an id")]
        let id = |bits: u64| bits as u32 & (NO_PART - 1);
        words.into_iter().map(|word| (id(word), id(word >> ID_BITS))).collect()
    }
}

impl<W: Deref<Target = [u64]>> Buckets<W> {
    /// The rank of a pair, or `u32::MAX` if it is not in the table.
    #[expect(clippy::inline_always, reason = "compiled for the instructions of the caller")]
    #[inline(always)]
    pub(crate) fn rank(&self, left: u32, right: u32, lanes: impl Lanes) -> u32 {
        let pair = pair(left, right);
        let mut at = start(pair, self.words.len());
        let bucket = self.words[at..].first_chunk::<BUCKET_WORDS>().expect("buckets are whole");
        let mut entry = lanes.find(bucket, PAIR, pair);
        // Whether a pair is in the table is close to random, but a full bucket is rare, so this
        // branch is predicted well.
        if bucket[BUCKET_WORDS - 1] != 0 && entry == 0 {
            for _ in 1..self.max_probe {
                at = (at + BUCKET_WORDS) & (self.words.len() - 1);
                let bucket = self.words[at..].first_chunk().expect("buckets are whole");
                entry |= lanes.find(bucket, PAIR, pair);
            }
        }
        // Without an entry this is 0, and 0 - 1 wraps to `u32::MAX`, the rank of no merge.
        let rank_plus_one = (entry >> PAIR_BITS) as u32;
        rank_plus_one.wrapping_sub(1)
    }

    /// Prefetch the bucket that [`rank`](Self::rank) reads first.
    #[inline]
    pub(crate) fn prefetch(&self, left: u32, right: u32) {
        prefetch(&self.words, start(pair(left, right), self.words.len()));
    }
}

#[inline]
fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) | u64::from(right) << ID_BITS
}

/// The index of the first word of a pair's bucket; `words` is a power of two.
#[inline]
fn start(pair: u64, words: usize) -> usize {
    // Fibonacci hashing: the high bits of the product depend on all bits of the pair.
    let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - words.trailing_zeros());
    usize::try_from(hash).expect("an index of a table in memory") & !(BUCKET_WORDS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::simd::Portable;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// A lookup finds each inserted pair with its first rank, and no other pair, even in a full
        /// table.
        #[test]
        fn lookups_find_exactly_the_inserted_pairs(
            pairs in prop::collection::vec((0u32..40, 0u32..40), 1..120),
            capacity in 1usize..200,
        ) {
            let mut buckets = Buckets::with_capacity(capacity.max(pairs.len() / 2)).unwrap();
            let mut expected = HashMap::new();
            for (&(left, right), rank) in pairs.iter().zip(0..) {
                expected.entry((left, right)).or_insert(rank);
                buckets.insert(left, right, rank);
            }
            let buckets = buckets.finish().unwrap();
            let (array, max_probe) = buckets.array();
            let again = Buckets::from_array(array.clone(), max_probe).unwrap();
            for (left, right) in (0..40).flat_map(|left| (0..40).map(move |right| (left, right))) {
                let rank = expected.get(&(left, right)).copied().unwrap_or(u32::MAX);
                prop_assert_eq!(buckets.rank(left, right, Portable), rank);
                prop_assert_eq!(again.rank(left, right, Portable), rank);
            }
            let mut order: Vec<_> = expected.iter().map(|(&pair, &rank)| (rank, pair)).collect();
            order.sort_unstable();
            prop_assert!(buckets.in_order().into_iter().eq(order.iter().map(|&(_, pair)| pair)));
        }
    }

    #[test]
    fn pairs_that_were_chosen_to_have_one_hash_are_refused() {
        let buckets = |most: usize| {
            let mut buckets = Buckets::with_capacity(1 << 12).unwrap();
            let words = buckets.words.len();
            let all = (0..2048).flat_map(|left| (0..2048).map(move |right| (left, right)));
            let chosen = all.filter(|&(left, right)| start(pair(left, right), words) == 0);
            chosen.take(most).for_each(|(left, right)| buckets.insert(left, right, left));
            buckets.finish()
        };
        assert!(buckets(MAX_PROBE * BUCKET_WORDS).is_ok());
        assert!(matches!(buckets(MAX_PROBE * BUCKET_WORDS + 1), Err(Error::Vocabulary { .. })));
    }

    #[test]
    fn a_lookup_in_an_invalid_table_ends() {
        let words = Array::new(vec![u64::MAX; 1 << 10]);
        assert!(Buckets::from_array(words.clone(), MAX_PROBE + 1).is_none());
        let buckets = Buckets::from_array(words, MAX_PROBE).unwrap();
        for (left, right) in [(1, 2), (1, NO_PART), (NO_PART, NO_PART)] {
            assert_eq!(buckets.rank(left, right, Portable), u32::MAX);
        }
        assert!(Buckets::from_array(Array::new(vec![0; 24]), 1).is_none());
        assert!(Buckets::from_array(Array::new(vec![0; 4]), 1).is_none());
    }
}
