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
pub(crate) struct MergeScratch {
    parts: LongParts,
    positions_by_rank: PositionsByRank,
}

/// The parts of a long pretoken, indexed by the position of their first byte.
#[derive(Debug, Default)]
struct LongParts {
    ids: Vec<u32>,
    /// The rank of the part at each position with the part to its right.
    ranks: Vec<u32>,
    /// A bit for each position where a part starts, and one for the end of the pretoken.
    starts: Vec<u64>,
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
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    let MergeScratch { parts, positions_by_rank } = scratch;
    parts.fill(pairs, symbols, pretoken);
    for (position, &rank) in (0..).zip(&parts.ranks) {
        positions_by_rank.add(rank, position);
    }
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
        at = parts.next(position);
    }
    if pretoken.len() > MAX_KEPT_BYTES {
        *parts = LongParts::default();
    }
}

impl LongParts {
    fn fill(&mut self, pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) {
        self.ids.clear();
        self.ranks.clear();
        self.starts.clear();
        if !symbols.are_bytes() {
            return self.fill_parts(pairs, symbols, pretoken);
        }
        let ranks = pretoken.windows(2).map(|pair| pairs.rank_of_bytes(pair[0], pair[1]));
        self.ids.extend(pretoken.iter().map(|&byte| symbols.of_byte(byte)));
        self.ranks.extend(ranks.chain([NO_MERGE]));
        self.starts.resize(pretoken.len() / 64 + 1, u64::MAX);
    }

    /// The same if merging starts with characters.
    fn fill_parts(&mut self, pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) {
        let length = pretoken.len();
        self.ids.resize(length, NO_PART);
        self.ranks.resize(length, NO_MERGE);
        self.starts.resize(length / 64 + 1, 0);
        let mut before = None;
        for (at, id) in symbols.parts(pretoken) {
            self.ids[at] = id;
            self.starts[at / 64] |= 1 << (at % 64);
            if let Some(left) = before.replace(at) {
                self.ranks[left] = pairs.rank(self.ids[left], id, Portable);
            }
        }
        self.starts[length / 64] |= 1 << (length % 64);
    }

    /// The next start after a position, or the end.
    #[inline]
    fn next(&self, position: usize) -> Option<usize> {
        let mut word = (position + 1) / 64;
        let mut bits = self.starts.get(word)? & u64::MAX << ((position + 1) % 64);
        while bits == 0 {
            word += 1;
            bits = *self.starts.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// The previous start before a position, if any.
    #[inline]
    fn before(&self, position: usize) -> Option<usize> {
        let mut word = position / 64;
        let mut bits = self.starts[word] & !(u64::MAX << (position % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.starts[word];
        }
        Some(word * 64 + 63 - bits.leading_zeros() as usize)
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
        let right = self.next(at).expect("a pair has two parts");
        self.starts[right / 64] &= !(1 << (right % 64));
        self.ranks[right] = NO_MERGE;
        self.ids[at] = pairs.id(rank);
        let next = self.next(at).and_then(|next| self.ids.get(next));
        let after = next.map_or(NO_MERGE, |&id| pairs.rank(self.ids[at], id, Portable));
        self.ranks[at] = after;
        positions_by_rank.add(after, position);
        let Some(left) = self.before(at) else { return after };
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
