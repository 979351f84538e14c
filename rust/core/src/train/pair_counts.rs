//! Pairs of adjacent tokens, and the current count of each in all words.

use crate::error::{Error, Result};
use crate::hash::key::hash_number;
use crate::hash::tables::RowIndex;
use crate::machine::simd::prefetch;
use crate::memory;

/// How many pairs ahead the entry of a pair is prefetched.
const AHEAD_PAIRS: usize = 8;

/// Counts of pairs. Each pair has an index, in order of creation.
pub(super) struct PairCounts {
    index: RowIndex,
    /// Each pair and its count; in a training, the count is 0 after the merge of the pair.
    pub(super) entries: Vec<(TokenPair, u64)>,
}

impl PairCounts {
    /// No pairs.
    pub(super) fn new() -> Result<Self> {
        Ok(Self { index: RowIndex::of(std::iter::empty(), 0)?, entries: Vec::new() })
    }

    /// Add to the count of a pair. Fails if the sum exceeds 64 bits.
    #[inline]
    pub(super) fn add(&mut self, pair: TokenPair, count: u64) -> Result<()> {
        let Ok(row) = self.index.find(hash(pair), |row| self.entries[row].0 == pair) else {
            return self.insert(&[(pair, count)]);
        };
        let sum = &mut self.entries[row].1;
        *sum = sum.checked_add(count).ok_or(Error::CountOverflow)?;
        Ok(())
    }

    /// The sum of several counts.
    pub(super) fn sum(all: impl IntoIterator<Item = Self>) -> Result<Self> {
        let mut all = all.into_iter();
        let mut sum = all.next().map_or_else(Self::new, Ok)?;
        let mut others = all.flat_map(|other| other.entries);
        others.try_for_each(|(pair, count)| sum.add(pair, count))?;
        Ok(sum)
    }

    /// The pairs with a count of at least `least`, with new indices in the order of their ids.
    pub(super) fn frequent(self, least: u64) -> Result<Self> {
        let Self { mut entries, index } = self;
        drop(index);
        entries.retain(|&(_, count)| count >= least);
        entries.sort_unstable();
        let mut frequent = Self::new()?;
        frequent.insert(&entries)?;
        Ok(frequent)
    }

    /// Add new pairs; their indices follow the existing ones.
    pub(super) fn insert(&mut self, new: &[(TokenPair, u64)]) -> Result<()> {
        let rows = self.entries.len() + new.len();
        assert!(rows <= RowIndex::ROWS, "below 2^32 pairs");
        memory::reserve(&mut self.entries, new.len())?;
        if !self.index.fits(rows) {
            self.index = RowIndex::of(self.entries.iter().map(|&(pair, _)| hash(pair)), rows)?;
        }
        for (at, &(pair, count)) in new.iter().enumerate() {
            if let Some(&(later, _)) = new.get(at + AHEAD_PAIRS) {
                self.index.prefetch(hash(later));
            }
            // A new pair differs from all others, so no pair is compared on the way to a free slot.
            let slot = self.index.find(hash(pair), |_| false).expect_err("no row matches");
            self.index.put(slot, self.entries.len());
            self.entries.push((pair, count));
        }
        Ok(())
    }

    /// One more than the largest index.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("below 2^32 pairs")
    }

    /// The index of a pair, if it is kept and not yet merged.
    ///
    /// A merged pair must not be found: in "aaa", the merge of (a, a) removes the second occurrence
    /// too, and its count, which is 0 already, cannot be lowered.
    pub(super) fn find(&self, pair: TokenPair) -> Option<u32> {
        let row = self.index.find(hash(pair), |row| self.entries[row].0 == pair).ok()?;
        (self.entries[row].1 > 0).then(|| u32::try_from(row).expect("below 2^32 pairs"))
    }

    /// For each pair that is kept, append its index with the number that accompanies it in `pairs`.
    pub(super) fn find_all(
        &self,
        pairs: &[(TokenPair, u64)],
        counts: &mut Vec<(u32, u64)>,
    ) -> Result<()> {
        memory::reserve(counts, pairs.len())?;
        for (at, &(pair, number)) in pairs.iter().enumerate() {
            // Two dependent loads, so two prefetches: first the slot of a pair, and half the
            // distance later, when the slot has arrived, the entry that it points to.
            if let Some(&(later, _)) = pairs.get(at + 2 * AHEAD_PAIRS) {
                self.index.prefetch(hash(later));
            }
            let later = pairs.get(at + AHEAD_PAIRS);
            if let Some(row) = later.and_then(|&(later, _)| self.index.likely(hash(later))) {
                prefetch(&self.entries, row);
            }
            counts.extend(self.find(pair).map(|index| (index, number)));
        }
        Ok(())
    }

    pub(super) fn pair(&self, index: u32) -> TokenPair {
        self.entries[index as usize].0
    }

    /// A pair and its current count.
    pub(super) fn counted(&self, index: u32) -> (TokenPair, u64) {
        self.entries[index as usize]
    }

    /// Subtract removed occurrences from the counts.
    pub(super) fn lower(&mut self, removed: &[(u32, u64)]) {
        for (at, &(index, count)) in removed.iter().enumerate() {
            if let Some(&(later, _)) = removed.get(at + AHEAD_PAIRS) {
                prefetch(&self.entries, later as usize);
            }
            self.entries[index as usize].1 -= count;
        }
    }

    /// Set the count of a pair to 0, because it is merged.
    pub(super) fn remove(&mut self, index: u32) {
        self.entries[index as usize].1 = 0;
    }
}

/// A hash that depends on all bits of the pair; its upper bits are the best.
#[inline]
fn hash((left, right): TokenPair) -> u64 {
    hash_number(u64::from(left) << 32 | u64::from(right))
}

/// Two adjacent tokens.
pub type TokenPair = (u32, u32);

/// A word, identified by the index of its first cell in [`Cells`](super::words::Cells).
pub(super) type Word = u32;

/// A pair to be merged, its index, and the id of the token that it becomes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Merge {
    pub(super) pair: TokenPair,
    pub(super) index: u32,
    pub(super) new: u32,
}
