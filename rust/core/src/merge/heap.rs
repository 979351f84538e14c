//! Merges the parts of a pretoken of any length in nearly linear time.
//!
//! A heap holds the pairs that may merge: the lowest rank is on top, the leftmost among equals. The
//! parts are linked to their neighbours, so a merge moves nothing, and adds at most two pairs. An
//! entry of the heap is stale if its part has another rank by now, or was merged into another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::error::Result;
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::pair_table::{NO_MERGE, Pairs};
use crate::merge::symbols::Symbols;

/// The approximate bytes of memory for each byte of a pretoken.
const SCRATCH_BYTES: usize = 64;

/// The buffers of a pretoken with more parts than this are freed after use.
const MAX_KEPT_PARTS: usize = 1 << 16;

/// Fails if there is not enough memory to merge a pretoken of this many bytes.
#[inline]
pub(crate) fn check(bytes: usize) -> Result<()> {
    memory::check(bytes.saturating_mul(SCRATCH_BYTES))
}

/// The ranks of pairs, and the ids that they merge into.
pub(crate) trait RankedPairs {
    /// The rank of two adjacent parts, which are at `place` in the pretoken, or [`NO_MERGE`].
    fn rank_at(&self, left: u32, right: u32, place: Range<usize>) -> u32;

    /// The id that the merge with this rank creates.
    fn merged(&self, rank: u32) -> u32;
}

impl<P: Pairs> RankedPairs for P {
    fn rank_at(&self, left: u32, right: u32, _place: Range<usize>) -> u32 {
        self.rank(left, right, Portable)
    }

    fn merged(&self, rank: u32) -> u32 {
        self.id(rank)
    }
}

/// A part of a pretoken.
#[derive(Debug, Clone, Copy)]
struct LinkedPart {
    id: u32,
    /// The rank of the pair with the next part, or [`NO_MERGE`].
    rank: u32,
    /// Where it starts in the pretoken.
    start: usize,
    /// The index of the part before; that of the part itself, if it is the first.
    before: usize,
    /// The index of the next part; behind the last one stands the end of the pretoken.
    after: usize,
}

/// The parts and the heap, in buffers that the next pretoken reuses.
#[derive(Debug, Default)]
pub(crate) struct HeapMerge {
    parts: Vec<LinkedPart>,
    heap: BinaryHeap<Reverse<(u32, usize)>>,
}

impl HeapMerge {
    /// Append the ids of a pretoken; each of its bytes must have an id.
    pub(crate) fn append(
        &mut self,
        pairs: &impl Pairs,
        symbols: &Symbols,
        pretoken: &[u8],
        out: &mut Vec<u32>,
    ) {
        self.merge(pairs, symbols.parts(pretoken), pretoken.len(), || false);
        out.extend(self.parts().map(|(_, id)| id));
        self.free_large();
    }

    /// Merge parts, of which the start and the id are given, in a pretoken that ends at `end`.
    /// [`parts`](Self::parts) are then those that remain.
    ///
    /// `drops` returns whether to drop the next pair: it then stays for later merges. Pairs are
    /// asked about in the order in which they would merge, up to the first that is not dropped.
    pub(crate) fn merge(
        &mut self,
        pairs: &impl RankedPairs,
        parts: impl Iterator<Item = (usize, u32)>,
        end: usize,
        mut drops: impl FnMut() -> bool,
    ) {
        self.parts.clear();
        let new = |(at, (start, id)): (usize, (usize, u32))| LinkedPart {
            id,
            rank: NO_MERGE,
            start,
            before: at.saturating_sub(1),
            after: at + 1,
        };
        self.parts.extend(parts.chain([(end, 0)]).enumerate().map(new));
        self.heap.clear();
        let count = self.parts.len() - 1;
        (0..count).for_each(|at| self.look_up(pairs, at));
        while let Some((rank, at)) = self.next(&mut drops) {
            let LinkedPart { after: gone, before, .. } = self.parts[at];
            let after = self.parts[gone].after;
            self.parts[gone].rank = NO_MERGE;
            self.parts[after].before = at;
            self.parts[at] = LinkedPart { id: pairs.merged(rank), after, ..self.parts[at] };
            self.look_up(pairs, at);
            if before != at {
                self.look_up(pairs, before);
            }
        }
    }

    /// The start and the id of each part in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, u32)> {
        let end = self.parts.len() - 1;
        let next = |part: &&LinkedPart| self.parts.get(part.after);
        let all = std::iter::successors(self.parts.first(), next);
        all.take_while(move |part| part.after <= end).map(|part| (part.start, part.id))
    }

    /// Free the buffers if they are large.
    pub(crate) fn free_large(&mut self) {
        if self.parts.len() > MAX_KEPT_PARTS {
            *self = Self::default();
        }
    }

    /// Look up the rank of a part with the next one.
    fn look_up(&mut self, pairs: &impl RankedPairs, at: usize) {
        let LinkedPart { id, start, after, .. } = self.parts[at];
        let next = self.parts[after];
        let end = self.parts.get(next.after).map(|part| part.start);
        let rank = end.map_or(NO_MERGE, |end| pairs.rank_at(id, next.id, start..end));
        self.parts[at].rank = rank;
        if rank != NO_MERGE {
            self.heap.push(Reverse((rank, at)));
        }
    }

    /// The rank and the part of the next merge.
    fn next(&mut self, drops: &mut impl FnMut() -> bool) -> Option<(u32, usize)> {
        let mut dropped = Vec::new();
        let mut next = None;
        while let Some(Reverse((rank, at))) = self.heap.pop() {
            // Nothing is drawn for a stale entry, which is no pair.
            if self.parts[at].rank != rank {
                continue;
            }
            if !drops() {
                next = Some((rank, at));
                break;
            }
            dropped.push(Reverse((rank, at)));
        }
        self.heap.extend(dropped);
        next
    }
}
