//! Several short pretokens merged side by side.
//!
//! To merge one pretoken is a chain: which pairs the next look-ups are about is known only when the
//! last ones have answered, and each waits for memory. So a few pretokens take turns: a turn reads the
//! answers that it asked for one round ago, makes a merge, and asks for the memory of the next two
//! pairs. The ids are those of [`merge`](super::merge).

use super::merge::ByteIds;
use super::pairs::{NO_MERGE, PairTable};
use crate::key::LONGEST;

/// How many pretokens take turns.
pub(super) const TURNS: usize = 16;

/// Places for the bytes of a pretoken, of which the last stays free.
const PLACES: usize = LONGEST + 1;

/// The parts of one pretoken, each at the place of its first byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    ids: [u32; PLACES],
    /// The rank of the merge of the part at a place with the part to its right.
    ranks: [u32; PLACES],
    /// A bit for each place where a part starts, and one at the end of the pretoken.
    starts: u32,
    /// The two places whose ranks were asked for, with what stands there and to its right.
    asked: [Option<(usize, u32, u32)>; 2],
}

impl Parts {
    /// The bytes of a pretoken, of which each has an id.
    pub(super) fn new(pairs: &PairTable, byte_ids: &ByteIds, pretoken: &[u8]) -> Self {
        let (mut ids, mut ranks) = ([0; PLACES], [NO_MERGE; PLACES]);
        for (id, &byte) in ids.iter_mut().zip(pretoken) {
            *id = byte_ids[usize::from(byte)];
        }
        for (rank, pair) in ranks.iter_mut().zip(pretoken.windows(2)) {
            *rank = pairs.rank_of_bytes(pair[0], pair[1]);
        }
        Self { ids, ranks, starts: (2 << pretoken.len()) - 1, asked: [None; 2] }
    }

    /// Make the next merge; false if there is none.
    #[inline]
    fn turn(&mut self, pairs: &PairTable) -> bool {
        for (place, left, right) in self.asked.into_iter().flatten() {
            self.ranks[place] = pairs.rank(left, right);
        }
        let rank = self.ranks.iter().copied().fold(NO_MERGE, u32::min);
        if rank == NO_MERGE {
            return false;
        }
        let same = self.ranks.iter().map(|&other| u32::from(other == rank));
        let mask = (0..).zip(same).fold(0, |mask, (place, bit): (u32, u32)| mask | bit << place);
        self.merge_at(mask.trailing_zeros() as usize, pairs.id(rank));
        self.ask(pairs);
        true
    }

    /// Merge the part at `at` with its right neighbour, and note what is to be asked.
    #[inline]
    fn merge_at(&mut self, at: usize, id: u32) {
        let behind = self.starts & (!1 << at);
        let right = behind & behind.wrapping_neg();
        self.starts &= !right;
        self.ids[at] = id;
        // The rank of the right part goes; that of the new one is not yet known.
        self.ranks[right.trailing_zeros() as usize] = NO_MERGE;
        self.ranks[at] = NO_MERGE;
        let next = (self.starts & (!1 << at)).trailing_zeros() as usize;
        let is_end = self.starts >> next == 1;
        let before = self.starts & ((1 << at) - 1);
        self.asked = [
            (!is_end).then(|| (at, id, self.ids[next])),
            before.checked_ilog2().map(|left| (left as usize, self.ids[left as usize], id)),
        ];
    }

    #[inline]
    fn ask(&self, pairs: &PairTable) {
        for (_, left, right) in self.asked.into_iter().flatten() {
            pairs.prefetch(left, right);
        }
    }

    /// Append the ids.
    pub(super) fn write(&self, out: &mut Vec<u32>) {
        let mut starts = self.starts ^ (1 << self.starts.ilog2());
        while starts != 0 {
            out.push(self.ids[starts.trailing_zeros() as usize]);
            starts &= starts - 1;
        }
    }
}

/// Merge pretokens side by side, at most [`TURNS`].
pub(super) fn merge(pairs: &PairTable, all: &mut [Parts]) {
    let mut at_work = (1u32 << all.len()) - 1;
    while at_work != 0 {
        let mut turns = at_work;
        while turns != 0 {
            let index = turns.trailing_zeros();
            if !all[index as usize].turn(pairs) {
                at_work &= !(1 << index);
            }
            turns &= turns - 1;
        }
    }
}
