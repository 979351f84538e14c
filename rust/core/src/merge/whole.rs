//! Merges the bytes of one pretoken, by the algorithm for its length.

use crate::machine::lanes::{self, LaneWork, Lanes};
use crate::merge::blocks::{self, BlockMerge};
use crate::merge::heap::HeapMerge;
use crate::merge::pair_table::Pairs;
use crate::merge::runs;
use crate::merge::short::ShortMerge;
use crate::merge::symbols::Symbols;

/// The buffers for merging long pretokens, reused for the next one.
#[derive(Debug, Default)]
pub(crate) struct MergeScratch {
    blocks: BlockMerge,
    heap: HeapMerge,
}

/// Append the ids of a pretoken; each of its bytes must have an id.
#[inline]
pub(crate) fn merge(
    pairs: &impl Pairs,
    symbols: &Symbols,
    pretoken: &[u8],
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    if pretoken.len() <= ShortMerge::MAX_BYTES {
        merge_short(pairs, symbols, pretoken, out);
    } else if !runs::merge(pairs, symbols, pretoken, out) {
        if pretoken.len() <= blocks::MAX_BYTES {
            blocks::merge(pairs, symbols, pretoken, &mut scratch.blocks, out);
        } else {
            scratch.heap.append(pairs, symbols, pretoken, out);
        }
    }
}

/// The same for at most [`ShortMerge::MAX_BYTES`] bytes.
pub(crate) fn merge_short(
    pairs: &impl Pairs,
    symbols: &Symbols,
    pretoken: &[u8],
    out: &mut Vec<u32>,
) {
    lanes::run(Short { pairs, symbols, pretoken, out });
}

struct Short<'a, P> {
    pairs: &'a P,
    symbols: &'a Symbols,
    pretoken: &'a [u8],
    out: &'a mut Vec<u32>,
}

impl<P: Pairs> LaneWork for Short<'_, P> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "`LaneWork` requires it")]
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let mut merge = ShortMerge::new(self.pairs, self.symbols, self.pretoken);
        while merge.step(self.pairs, lanes) {}
        merge.write(self.out);
    }
}
