//! The rank and the result of every pair that merges: one table for both merge rules.
//!
//! Under the rule of merges, the table holds the listed pairs; under the rule of ranks, the pairs
//! that [`build`](super::build) derives. So merging never compares bytes. The ranks of the pairs of
//! single bytes, with which merging a pretoken starts, are in an array of 65,536 numbers.

use std::ops::Deref;

use crate::error::Result;
use crate::machine::array::Array;
use crate::machine::huge_pages::AlignedBuffer;
use crate::machine::lanes::{Lanes, Portable};
use crate::memory;
use crate::merge::buckets::Buckets;
use crate::vocabulary::{MergeRule, NO_ID, Vocabulary};

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
    buckets: Buckets<W>,
    /// The rank of each pair of bytes.
    bytes: B,
    /// The id that each merge creates, by rank; empty if ids are ranks.
    ids: Array<u32>,
    /// All ranks are below this.
    ranks: u32,
    /// The start of each id in the arena of the vocabulary, then the end of the last; empty while
    /// the table is built.
    offsets: Array<u32>,
}

/// A table under construction.
pub(crate) type PairTableBuilder = PairTable<AlignedBuffer, Vec<u32>>;

/// The arrays of a [`PairTable`], in the form of a file.
#[derive(Debug)]
pub(crate) struct PairArrays {
    pub(crate) buckets: Buckets,
    pub(crate) bytes: Array<u32>,
    pub(crate) ids: Array<u32>,
}

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

    /// The finished table, with the ranks of the pairs of single bytes filled in.
    pub(crate) fn finish(mut self, vocabulary: &Vocabulary) -> PairTable {
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
        PairTable { buckets: buckets.finish(), bytes: Array::new(bytes), ids, ranks, offsets }
    }
}

impl PairTable {
    /// The table in the arrays of a file; `ids` is empty under the rule of ranks.
    ///
    /// `None` if the arrays could give an id that does not exist. Ranks in the buckets are checked
    /// at each lookup instead.
    pub(crate) fn from_arrays(
        arrays: PairArrays,
        vocabulary: &Vocabulary,
        rule: MergeRule,
    ) -> Option<Self> {
        let PairArrays { buckets, bytes, ids } = arrays;
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

    /// The arrays, in the form of a file.
    pub(crate) fn arrays(&self) -> PairArrays {
        let Self { buckets, bytes, ids, .. } = self.clone();
        PairArrays { buckets, bytes, ids }
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

    /// All pairs of ids, in rank order.
    pub(crate) fn in_order(&self) -> Vec<(u32, u32)> {
        self.buckets.in_order()
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
