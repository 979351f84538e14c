//! The parts of one short pretoken while it is merged.
//!
//! Each part stays at the place of its first byte. A word of 64 bits marks the places where a part
//! starts, so that neighbours are found by counting zeros and nothing moves, and each merge looks
//! up two pairs only. The next merge is the minimum of an array of numbers, of which each says both
//! the rank of a merge and its place: the lowest rank, the leftmost among equals.

#![expect(
    clippy::inline_always,
    reason = "all of it must be compiled for the instructions of the caller"
)]

use crate::machine::lanes::Lanes;
use crate::merge::buckets::NO_PART;
use crate::merge::pair_table::{NO_MERGE, Pairs};
use crate::vocabulary::ByteIds;

/// A number below the rank in a merge: the place.
const PLACE_BITS: u32 = 6;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
/// The merge of a place where nothing merges is this or more; ranks of pairs are far below.
const NONE: u32 = NO_MERGE << PLACE_BITS;

/// Places for the bytes of a pretoken, of which the last stays free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortMerge<const PLACES: usize> {
    /// The id of the part that starts at a place; nothing at the end of the pretoken and behind.
    ids: [u32; PLACES],
    /// For each place the rank of the merge of its part with the part to its right, and the place.
    merges: [u32; PLACES],
    /// A bit for each place where a part starts, and one at the end of the pretoken.
    starts: u64,
    /// The two places whose ranks were asked for.
    pending: [Pending; 2],
}

/// A place, what stands there, and what stands to its right.
#[derive(Debug, Clone, Copy)]
struct Pending {
    place: usize,
    left: u32,
    right: u32,
}

impl<const PLACES: usize> ShortMerge<PLACES> {
    /// The most bytes that fit.
    pub(crate) const MAX_BYTES: usize = PLACES - 1;

    /// The bytes of a pretoken, of which each has an id; at most [`MOST`](Self::MAX_BYTES).
    #[inline(always)]
    pub(crate) fn new(pairs: &impl Pairs, byte_ids: &ByteIds, pretoken: &[u8]) -> Self {
        let (mut ids, mut merges) = ([NO_PART; PLACES], [NONE; PLACES]);
        for (id, &byte) in ids.iter_mut().zip(pretoken) {
            *id = byte_ids[usize::from(byte)];
        }
        for (place, pair) in pretoken.windows(2).enumerate() {
            merges[place] = merge(pairs.rank_of_bytes(pair[0], pair[1]), place);
        }
        let nothing = Pending { place: Self::MAX_BYTES, left: NO_PART, right: NO_PART };
        Self { ids, merges, starts: u64::MAX >> (63 - pretoken.len()), pending: [nothing; 2] }
    }

    /// Make the next merge; false if there is none.
    ///
    /// There is no branch but for the end: which places have neighbours is as good as random.
    #[inline(always)]
    pub(crate) fn step(&mut self, pairs: &impl Pairs, lanes: impl Lanes) -> bool {
        let [first, second] = &self.pending;
        let one = merge(pairs.rank(first.left, first.right, lanes), first.place);
        let other = merge(pairs.rank(second.left, second.right, lanes), second.place);
        // All places are read before one is written: to read them together soon after takes long.
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

    /// Merge the part at `at` with its right neighbour, and note what is to be asked.
    #[inline(always)]
    fn merge_at(&mut self, at: usize, id: u32) {
        let right = (self.starts & (!1 << at)).trailing_zeros() as usize & Self::MAX_BYTES;
        self.starts &= !(1 << right);
        self.ids[at] = id;
        let next = (self.starts & (!1 << at)).trailing_zeros() as usize & Self::MAX_BYTES;
        // Where there is no part before, this is the last place, where nothing stands.
        let parts_before = self.starts & ((1 << at) - 1);
        let before = (parts_before.leading_zeros() ^ 63) as usize & Self::MAX_BYTES;
        // The merge of the right part goes; those with the new part are not yet known.
        for place in [right, at, before] {
            self.merges[place] = NONE;
        }
        // At an edge there is nothing to ask, always in the same words: so their memory is near.
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
