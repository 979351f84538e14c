//! Merges one short pretoken.
//!
//! Each part stays at the place of its first byte. A word of 64 bits marks the places where parts
//! start, so neighbours are found by counting zeros, nothing moves, and each merge looks up only
//! two pairs. The next merge is the minimum of an array whose numbers combine the rank of a merge
//! with its place: the lowest rank, leftmost among equals.

#![expect(
    clippy::inline_always,
    reason = "all of it must be compiled for the instructions of the caller"
)]

use crate::machine::lanes::{Lanes, Portable};
use crate::merge::buckets::NO_PART;
use crate::merge::pair_table::{NO_MERGE, Pairs};
use crate::merge::symbols::Symbols;

/// The low bits of a merge hold its place, the high bits its rank.
const PLACE_BITS: u32 = 6;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
/// At least this if a place has no merge; ranks of pairs are far below.
const NONE: u32 = NO_MERGE << PLACE_BITS;

/// Places for the bytes of a pretoken; the last place stays free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortMerge<const PLACES: usize> {
    /// The id of the part that starts at each place; [`NO_PART`] from the end of the pretoken on.
    ids: [u32; PLACES],
    /// For each place, the rank of its part with the part to its right, combined with the place.
    merges: [u32; PLACES],
    /// A bit for each place where a part starts, and for the end of the pretoken.
    starts: u64,
    /// The two pairs whose ranks were prefetched.
    pending: [Pending; 2],
}

/// A place with its part and the part to its right.
#[derive(Debug, Clone, Copy)]
struct Pending {
    place: usize,
    left: u32,
    right: u32,
}

impl<const PLACES: usize> ShortMerge<PLACES> {
    /// The maximal number of bytes.
    pub(crate) const MAX_BYTES: usize = PLACES - 1;

    /// The bytes of a pretoken, each of which must have an id; at most
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    #[inline(always)]
    pub(crate) fn new(pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) -> Self {
        let nothing = Pending { place: Self::MAX_BYTES, left: NO_PART, right: NO_PART };
        let (ids, merges) = ([NO_PART; PLACES], [NONE; PLACES]);
        let starts = u64::MAX >> (63 - pretoken.len());
        let mut new = Self { ids, merges, starts, pending: [nothing; 2] };
        if !symbols.are_bytes() {
            new.fill(pairs, symbols, pretoken);
            return new;
        }
        for (id, &byte) in new.ids.iter_mut().zip(pretoken) {
            *id = symbols.of_byte(byte);
        }
        for (place, pair) in pretoken.windows(2).enumerate() {
            new.merges[place] = merge(pairs.rank_of_bytes(pair[0], pair[1]), place);
        }
        new
    }

    /// Start with parts of several bytes.
    #[inline(never)]
    fn fill(&mut self, pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) {
        self.starts = 1 << pretoken.len();
        let mut before = None;
        for (at, id) in symbols.parts(pretoken) {
            self.ids[at] = id;
            self.starts |= 1 << at;
            if let Some(left) = before.replace(at) {
                self.merges[left] = merge(pairs.rank(self.ids[left], id, Portable), left);
            }
        }
    }

    /// Make the next merge; false if there is none.
    ///
    /// Only the end is a branch: which places have neighbours is close to random, so branches on it
    /// would be mispredicted.
    #[inline(always)]
    pub(crate) fn step(&mut self, pairs: &impl Pairs, lanes: impl Lanes) -> bool {
        let [first, second] = &self.pending;
        let one = merge(pairs.rank(first.left, first.right, lanes), first.place);
        let other = merge(pairs.rank(second.left, second.right, lanes), second.place);
        // All places are read before one is written: a wide load that follows a narrow store to the
        // same bytes would stall.
        let lowest = lanes.lowest(&self.merges).min(one).min(other);
        self.merges[first.place] = one;
        self.merges[second.place] = other;
        if lowest >= NONE {
            return false;
        }
        self.merge_at((lowest & PLACE) as usize, pairs.id(lowest >> PLACE_BITS));
        for pair in &self.pending {
            pairs.prefetch(pair.left, pair.right);
        }
        true
    }

    /// Merge the part at `at` with its right neighbour, and prepare the lookups of the new pairs.
    #[inline(always)]
    fn merge_at(&mut self, at: usize, id: u32) {
        let right = (self.starts & (!1 << at)).trailing_zeros() as usize & Self::MAX_BYTES;
        self.starts &= !(1 << right);
        self.ids[at] = id;
        let next = (self.starts & (!1 << at)).trailing_zeros() as usize & Self::MAX_BYTES;
        // Without a part before, this is the last place, which is empty.
        let parts_before = self.starts & ((1 << at) - 1);
        let before = (parts_before.leading_zeros() ^ 63) as usize & Self::MAX_BYTES;
        // The merge of the right part disappears; those of the new part are not known yet.
        for place in [right, at, before] {
            self.merges[place] = NONE;
        }
        // At an edge, the lookup is always for the same pair of no parts, which stays in the cache.
        let (left, right) = (self.ids[before], self.ids[next]);
        self.pending = [
            Pending { place: at, left: if right == NO_PART { NO_PART } else { id }, right },
            Pending { place: before, left, right: if left == NO_PART { NO_PART } else { id } },
        ];
    }

    /// Append the ids.
    pub(crate) fn write(&self, out: &mut Vec<u32>) {
        let mut starts = self.starts ^ (1 << self.starts.ilog2());
        while starts != 0 {
            out.push(self.ids[starts.trailing_zeros() as usize]);
            starts &= starts - 1;
        }
    }
}

/// A rank and a place as one number.
#[inline(always)]
fn merge(rank: u32, place: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 64 places")]
    let place = place as u32;
    rank << PLACE_BITS | place
}
