//! Merges a long pretoken in about linear time.
//!
//! Comparing all ranks before each merge would take quadratic time. Instead, each rank has a list
//! of the positions where it occurs, and a queue holds the ranks that have a list. All positions of
//! the lowest rank are merged from left to right; an entry whose position has another rank by now
//! is stale and is skipped. Even tens of thousands of bytes have few distinct ranks, so the queue
//! stays small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::Result;
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::buckets::NO_PART;
use crate::merge::pair_table::{NO_MERGE, Pairs};
use crate::merge::starts::Starts;
use crate::merge::symbols::Symbols;

/// The buffers of a pretoken with more bytes than this are freed after use.
const MAX_KEPT_BYTES: usize = 1 << 16;

/// The approximate bytes of memory for each byte of a pretoken.
const SCRATCH_BYTES: usize = 32;

/// Fails if there is not enough memory to merge this many bytes.
#[inline]
pub(crate) fn check(bytes: usize) -> Result<()> {
    memory::check(bytes.saturating_mul(SCRATCH_BYTES))
}

/// The buffers of this algorithm, reused for the next pretoken.
#[derive(Debug, Default)]
pub(crate) struct QueueMerge {
    parts: LongParts,
    positions_by_rank: PositionsByRank,
}

/// The parts of a long pretoken, indexed by the position of their first byte.
#[derive(Debug, Default)]
struct LongParts {
    ids: Vec<u32>,
    /// The rank of the part at each position with the part to its right.
    ranks: Vec<u32>,
    starts: Starts,
}

/// Positions by the rank of their merge; an entry is stale if the position has another rank now.
#[derive(Debug, Default)]
struct PositionsByRank {
    positions: HashMap<u32, Vec<u32>, FixedState>,
    /// The ranks that have a list.
    queue: BinaryHeap<Reverse<u32>>,
    /// Empty lists for reuse.
    spare: Vec<Vec<u32>>,
}

/// Append the ids of a pretoken; each of its bytes must have an id.
pub(crate) fn merge(
    pairs: &impl Pairs,
    symbols: &Symbols,
    pretoken: &[u8],
    scratch: &mut QueueMerge,
    out: &mut Vec<u32>,
) {
    let QueueMerge { parts, positions_by_rank } = scratch;
    parts.fill(pairs, symbols, pretoken);
    for (position, &rank) in (0..).zip(&parts.ranks) {
        positions_by_rank.add(rank, position);
    }
    // Positions of one rank are merged from left to right, as comparing all pairs again after each
    // merge would do, as long as no merge creates a pair of lower rank.
    while let Some((rank, positions)) = positions_by_rank.lowest() {
        let done = positions.iter().position(|&position| {
            // A merge creates two new pairs; if one of them has a lower rank, the remaining
            // positions are queued again.
            parts.ranks[position as usize] == rank
                && parts.apply(pairs, position, rank, positions_by_rank) < rank
        });
        let left = done.map_or(&[][..], |done| &positions[done + 1..]);
        for &position in left {
            positions_by_rank.add(rank, position);
        }
        positions_by_rank.recycle(positions);
    }
    let mut at = Some(0);
    while let Some(position) = at.filter(|&position| position < pretoken.len()) {
        out.push(parts.ids[position]);
        at = parts.starts.next(position);
    }
    if pretoken.len() > MAX_KEPT_BYTES {
        *parts = LongParts::default();
    }
}

impl LongParts {
    fn fill(&mut self, pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) {
        let Self { ids, ranks, starts } = self;
        ids.clear();
        ids.resize(pretoken.len(), NO_PART);
        ranks.clear();
        ranks.resize(pretoken.len(), NO_MERGE);
        starts.clear(pretoken.len());
        for part in symbols.ranked_parts(pairs, pretoken) {
            ids[part.start] = part.id;
            starts.insert(part.start);
            if let Some((left, rank)) = part.merge_with_left {
                ranks[left] = rank;
            }
        }
    }

    /// Merge the part at `position` with its right neighbour; returns the lower rank of the two new
    /// pairs.
    fn apply(
        &mut self,
        pairs: &impl Pairs,
        position: u32,
        rank: u32,
        positions_by_rank: &mut PositionsByRank,
    ) -> u32 {
        let at = position as usize;
        let right = self.starts.next(at).expect("a pair has two parts");
        self.starts.remove(right);
        self.ranks[right] = NO_MERGE;
        self.ids[at] = pairs.id(rank);
        let next = self.starts.next(at).and_then(|next| self.ids.get(next));
        let after = next.map_or(NO_MERGE, |&id| pairs.rank(self.ids[at], id, Portable));
        self.ranks[at] = after;
        positions_by_rank.add(after, position);
        let Some(left) = self.starts.before(at) else { return after };
        let before = pairs.rank(self.ids[left], self.ids[at], Portable);
        self.ranks[left] = before;
        positions_by_rank.add(before, u32::try_from(left).expect("less than a position"));
        after.min(before)
    }
}

impl PositionsByRank {
    #[inline]
    fn add(&mut self, rank: u32, position: u32) {
        if rank == NO_MERGE {
            return;
        }
        let Self { positions, queue, spare } = self;
        let positions = positions.entry(rank).or_insert_with(|| {
            queue.push(Reverse(rank));
            spare.pop().unwrap_or_default()
        });
        positions.push(position);
    }

    /// Remove the lowest rank; returns it with its positions from left to right.
    fn lowest(&mut self) -> Option<(u32, Vec<u32>)> {
        let Reverse(rank) = self.queue.pop()?;
        let mut positions = self.positions.remove(&rank).expect("a rank in the queue has a list");
        if !positions.is_sorted() {
            positions.sort_unstable();
        }
        Some((rank, positions))
    }

    /// Keep a small list for reuse; all spare lists take at most 4 MiB.
    fn recycle(&mut self, mut positions: Vec<u32>) {
        if positions.capacity() <= 1 << 8 && self.spare.len() < 1 << 12 {
            positions.clear();
            self.spare.push(positions);
        }
    }
}
