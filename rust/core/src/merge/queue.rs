//! Merges a long pretoken in about linear time.
//!
//! Comparing all ranks before each merge would take quadratic time. Instead, the places of each
//! rank are kept in a list, and a queue holds the ranks that have a list. All places of the lowest
//! rank are merged from left to right; an entry whose place has another rank by now is stale, and
//! is skipped. Even tens of thousands of bytes have few distinct ranks, so the queue stays small.

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

/// The buffers of a pretoken longer than this (in bytes) are freed after use.
const KEPT: usize = 1 << 16;

/// Approximate memory for each byte of a pretoken.
const SCRATCH: usize = 32;

/// Fails if there is not enough memory to merge this many bytes.
#[inline]
pub(crate) fn check(bytes: usize) -> Result<()> {
    memory::check(bytes.saturating_mul(SCRATCH))
}

/// The buffers of this algorithm, reused for the next pretoken.
#[derive(Debug, Default)]
pub(crate) struct MergeScratch {
    parts: LongParts,
    places_by_rank: PlacesByRank,
}

/// The parts of a long pretoken, each at the place of its first byte.
#[derive(Debug, Default)]
struct LongParts {
    ids: Vec<u32>,
    /// The rank of the part at each place with the part to its right.
    ranks: Vec<u32>,
    /// A bit for each place where a part starts, and one for the end of the pretoken.
    starts: Vec<u64>,
}

/// Places by the rank of their merge; an entry is stale if the place has another rank now.
#[derive(Debug, Default)]
struct PlacesByRank {
    places: HashMap<u32, Vec<u32>, FixedState>,
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
    let MergeScratch { parts, places_by_rank } = scratch;
    parts.fill(pairs, symbols, pretoken);
    for (place, &rank) in (0..).zip(&parts.ranks) {
        places_by_rank.add(rank, place);
    }
    while let Some((rank, places)) = places_by_rank.lowest() {
        let done = places.iter().position(|&place| {
            // A merge creates two new pairs; if one of them has a lower rank, the remaining places
            // are queued again.
            parts.ranks[place as usize] == rank
                && parts.apply(pairs, place, rank, places_by_rank) < rank
        });
        let left = done.map_or(&[][..], |done| &places[done + 1..]);
        for &place in left {
            places_by_rank.add(rank, place);
        }
        places_by_rank.keep(places);
    }
    let mut at = Some(0);
    while let Some(place) = at.filter(|&place| place < pretoken.len()) {
        out.push(parts.ids[place]);
        at = parts.next(place);
    }
    if pretoken.len() > KEPT {
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

    /// The same for parts of several bytes.
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

    /// The next start after a place, or the end.
    #[inline]
    fn next(&self, place: usize) -> Option<usize> {
        let mut word = (place + 1) / 64;
        let mut bits = self.starts.get(word)? & u64::MAX << ((place + 1) % 64);
        while bits == 0 {
            word += 1;
            bits = *self.starts.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// The previous start before a place, if any.
    #[inline]
    fn before(&self, place: usize) -> Option<usize> {
        let mut word = place / 64;
        let mut bits = self.starts[word] & !(u64::MAX << (place % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.starts[word];
        }
        Some(word * 64 + 63 - bits.leading_zeros() as usize)
    }

    /// Merge the part at `place` with its right neighbour; returns the lower rank of the two new
    /// pairs.
    fn apply(
        &mut self,
        pairs: &impl Pairs,
        place: u32,
        rank: u32,
        places_by_rank: &mut PlacesByRank,
    ) -> u32 {
        let at = place as usize;
        let right = self.next(at).expect("a pair has two parts");
        self.starts[right / 64] &= !(1 << (right % 64));
        self.ranks[right] = NO_MERGE;
        self.ids[at] = pairs.id(rank);
        let next = self.next(at).and_then(|next| self.ids.get(next));
        let behind = next.map_or(NO_MERGE, |&id| pairs.rank(self.ids[at], id, Portable));
        self.ranks[at] = behind;
        places_by_rank.add(behind, place);
        let Some(left) = self.before(at) else { return behind };
        let before = pairs.rank(self.ids[left], self.ids[at], Portable);
        self.ranks[left] = before;
        places_by_rank.add(before, u32::try_from(left).expect("left of a place"));
        behind.min(before)
    }
}

impl PlacesByRank {
    #[inline]
    fn add(&mut self, rank: u32, place: u32) {
        if rank == NO_MERGE {
            return;
        }
        let Self { places, queue, spare } = self;
        let places = places.entry(rank).or_insert_with(|| {
            queue.push(Reverse(rank));
            spare.pop().unwrap_or_default()
        });
        places.push(place);
    }

    /// Remove the lowest rank; returns it with its places from left to right.
    fn lowest(&mut self) -> Option<(u32, Vec<u32>)> {
        let Reverse(rank) = self.queue.pop()?;
        let mut places = self.places.remove(&rank).expect("it is in the queue");
        if !places.is_sorted() {
            places.sort_unstable();
        }
        Some((rank, places))
    }

    /// Keep a small list for reuse; all kept lists take at most 4 MiB.
    fn keep(&mut self, mut places: Vec<u32>) {
        if places.capacity() <= 1 << 8 && self.spare.len() < 1 << 12 {
            places.clear();
            self.spare.push(places);
        }
    }
}
