//! Merges several short pretokens, interleaved.
//!
//! Merging one pretoken is a chain of dependent loads: the next pairs are known only after the
//! current lookup. So pretokens are merged in rounds, with one step for each pretoken. A step reads
//! the ranks whose cache lines were prefetched in the previous round, applies a merge, and
//! prefetches the cache lines of the two new pairs.

use crate::machine::lanes::{self, LaneWork, Lanes};
use crate::merge::pair_table::Pairs;
use crate::merge::short::ShortMerge;

/// The largest number of interleaved pretokens, which is enough to hide the latency of memory.
pub(crate) const MAX_PRETOKENS: usize = 32;

/// Merge pretokens, at most [`MAX_PRETOKENS`], until none of them has a pair that merges.
pub(crate) fn merge(pairs: &impl Pairs, all: &mut [ShortMerge]) {
    lanes::run(Interleaved { pairs, all });
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
