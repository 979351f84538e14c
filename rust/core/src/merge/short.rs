//! Merges one short pretoken, or several of them interleaved.
//!
//! Each part is stored at the position of its first byte. A word of 64 bits marks the positions
//! where parts start, so neighbours are found by counting zeros, nothing moves, and each merge
//! looks up only two pairs. The next merge is the minimum of an array whose numbers combine the
//! rank of a merge with its position: the lowest rank, leftmost among equals.

#![expect(
    clippy::inline_always,
    reason = "the code must be compiled for the instructions of the caller"
)]

use crate::machine::simd::{self, LaneWork, Lanes};
use crate::merge::pair_table::{NO_MERGE, NO_PART, Pairs};
use crate::merge::symbols::Symbols;

/// A merge is a number with its position in the low bits and its rank in the high bits.
pub(super) const POSITION_BITS: u32 = 6;
pub(super) const POSITION: u32 = (1 << POSITION_BITS) - 1;
pub(super) const POSITIONS: usize = 1 << POSITION_BITS;
/// A number from this on is no merge; all ranks of pairs are far below.
pub(super) const NONE: u32 = NO_MERGE << POSITION_BITS;

/// The state of merging a pretoken of fewer bytes than there are positions; the last position stays
/// free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortMerge {
    /// The id of the part that starts at each position; [`NO_PART`] from the end of the pretoken
    /// on.
    ids: [u32; POSITIONS],
    /// For each position, the rank of its part with the part to its right, combined with the
    /// position.
    merges: [u32; POSITIONS],
    /// A bit for each position where a part starts, and for the end of the pretoken.
    starts: u64,
    /// The two pairs whose ranks were prefetched.
    pending: [Pending; 2],
}

/// A position with its part and the part to its right.
#[derive(Debug, Clone, Copy)]
struct Pending {
    position: usize,
    left: u32,
    right: u32,
}

impl ShortMerge {
    /// The largest number of bytes.
    pub(crate) const MAX_BYTES: usize = POSITIONS - 1;

    /// The initial state for a pretoken of at most [`MAX_BYTES`](Self::MAX_BYTES) bytes, each of
    /// which must have an id.
    #[inline(always)]
    pub(crate) fn new(pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) -> Self {
        // Until the first merge no rank is pending: both lookups are of a pair that is in no table,
        // and their result goes to the last position, which is free.
        let nothing = Pending { position: Self::MAX_BYTES, left: NO_PART, right: NO_PART };
        let (ids, merges) = ([NO_PART; POSITIONS], [NONE; POSITIONS]);
        // A bit for each of the n bytes and one for the end: n = 3 gives 0b1111.
        let starts = u64::MAX >> (63 - pretoken.len());
        let mut new = Self { ids, merges, starts, pending: [nothing; 2] };
        if !symbols.are_bytes() {
            new.fill(pairs, symbols, pretoken);
            return new;
        }
        for (id, &byte) in new.ids.iter_mut().zip(pretoken) {
            *id = symbols.of_byte(byte);
        }
        for (position, pair) in pretoken.windows(2).enumerate() {
            new.merges[position] = merge(pairs.rank_of_bytes(pair[0], pair[1]), position);
        }
        new
    }

    /// Set the initial parts if merging starts with characters.
    #[inline(never)]
    fn fill(&mut self, pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) {
        self.starts = 1 << pretoken.len();
        for part in symbols.ranked_parts(pairs, pretoken) {
            self.ids[part.start] = part.id;
            self.starts |= 1 << part.start;
            if let Some((left, rank)) = part.merge_with_left {
                self.merges[left] = merge(rank, left);
            }
        }
    }

    /// Apply the next merge; false if there is none.
    ///
    /// Only the end is a branch: which positions have neighbours is close to random, so branches on
    /// that would be mispredicted.
    #[inline(always)]
    pub(crate) fn step(&mut self, pairs: &impl Pairs, lanes: impl Lanes) -> bool {
        // The two pairs that the merge before created. Their cache lines were prefetched then.
        let [first, second] = &self.pending;
        let one = merge(pairs.rank(first.left, first.right, lanes), first.position);
        let other = merge(pairs.rank(second.left, second.right, lanes), second.position);
        // All positions are read before any is written: a wide load after a narrow store to the
        // same bytes would stall.
        let lowest = lanes.lowest(&self.merges).min(one).min(other);
        self.merges[first.position] = one;
        self.merges[second.position] = other;
        if lowest >= NONE {
            return false;
        }
        self.merge_at((lowest & POSITION) as usize, pairs.id(lowest >> POSITION_BITS));
        for pair in &self.pending {
            pairs.prefetch(pair.left, pair.right);
        }
        true
    }

    /// Merge the part at `at` with its right neighbour, and prepare the lookups of the new pairs.
    #[inline(always)]
    fn merge_at(&mut self, at: usize, id: u32) {
        // `!1 << at` has the bits above `at`; the lowest start among them is the next part. At the
        // end it may be none, 64 zeros: the mask makes that position 0, so that the compiler sees an
        // index below 64 and needs no check.
        let right = (self.starts & (!1 << at)).trailing_zeros() as usize & Self::MAX_BYTES;
        // The right part is now inside the left one.
        self.starts &= !(1 << right);
        self.ids[at] = id;
        let next = (self.starts & (!1 << at)).trailing_zeros() as usize & Self::MAX_BYTES;
        // The highest start below `at`: 63 - n is 63 ^ n for n up to 63. Without a part before, n is
        // 64 and the mask makes that position 63, which is free.
        let parts_before = self.starts & ((1 << at) - 1);
        let before = (parts_before.leading_zeros() ^ 63) as usize & Self::MAX_BYTES;
        // The merge of the right part is gone; the ranks of the new pairs are not known yet.
        for position in [right, at, before] {
            self.merges[position] = NONE;
        }
        // If there is no neighbour, the lookup is always for the same pair of `NO_PART`, which
        // stays in the cache.
        let (left, right) = (self.ids[before], self.ids[next]);
        self.pending = [
            Pending { position: at, left: if right == NO_PART { NO_PART } else { id }, right },
            Pending { position: before, left, right: if left == NO_PART { NO_PART } else { id } },
        ];
    }

    /// Append the ids.
    pub(crate) fn write(&self, out: &mut Vec<u32>) {
        // The highest bit is the end of the pretoken, where no part starts.
        let mut starts = self.starts ^ (1 << self.starts.ilog2());
        while starts != 0 {
            out.push(self.ids[starts.trailing_zeros() as usize]);
            starts &= starts - 1; // removes the lowest bit
        }
    }
}

/// A rank and a position as one number.
#[inline(always)]
pub(super) fn merge(rank: u32, position: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 64 positions")]
    let position = position as u32;
    rank << POSITION_BITS | position
}

/// The largest number of interleaved pretokens, which is enough to hide the latency of memory.
pub(crate) const MAX_PRETOKENS: usize = 32;

/// Merge pretokens, at most [`MAX_PRETOKENS`], until none of them has a pair that merges.
///
/// Merging one pretoken is a chain of dependent loads: the next pairs are known only after the
/// current lookup. So pretokens are merged in rounds, with one step for each pretoken. A step reads
/// the ranks whose cache lines were prefetched in the previous round, applies a merge, and
/// prefetches the cache lines of the two new pairs.
pub(crate) fn merge_interleaved(pairs: &impl Pairs, all: &mut [ShortMerge]) {
    simd::run(Interleaved { pairs, all });
}

struct Interleaved<'a, P> {
    pairs: &'a P,
    all: &'a mut [ShortMerge],
}

impl<P: Pairs> LaneWork for Interleaved<'_, P> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "`LaneWork` requires it")]
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Self { pairs, all } = self;
        // A bit for each pretoken that may have another merge.
        let mut unfinished = (1u64 << all.len()) - 1;
        while unfinished != 0 {
            // One step of each. By the time a pretoken has its next turn, the up to 31 steps of the
            // others have hidden the wait for the cache lines that it prefetched.
            let mut round = unfinished;
            while round != 0 {
                let index = round.trailing_zeros();
                if !all[index as usize].step(pairs, lanes) {
                    unfinished &= !(1 << index);
                }
                round &= round - 1;
            }
        }
    }
}
