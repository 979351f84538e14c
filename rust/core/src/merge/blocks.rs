//! Merges a pretoken of up to 4,096 bytes, such as a long identifier or base64.
//!
//! As in [`short`](super::short), the next merge is the minimum of numbers that combine the rank of a
//! merge with its position: the lowest rank, leftmost among equals. With more than 64 positions, the
//! minimum is taken in two levels. The positions are in blocks of 64; the *top* holds for each block
//! the lowest rank in it, combined with the number of the block. A merge changes the ranks at three
//! positions, which are nearly always in one block or two, so it costs a minimum of each changed
//! block and one of the top, however long the pretoken is.

use crate::machine::simd::{self, LaneWork, Lanes};
use crate::merge::pair_table::{NO_MERGE, Pairs};
use crate::merge::short::{NONE, POSITION, POSITION_BITS, POSITIONS, merge as combined};
use crate::merge::symbols::Symbols;

/// The positions of a block, and the largest number of blocks: both fit the low bits of a number.
const BLOCK: usize = POSITIONS;

/// The largest number of bytes of a pretoken.
pub(crate) const MAX_BYTES: usize = BLOCK * BLOCK;

/// The buffers of this algorithm, reused for the next pretoken.
#[derive(Debug)]
pub(crate) struct BlockMerge {
    /// The id of the part that starts at each position.
    ids: Vec<u32>,
    /// For each position, the rank of its part with the part to its right, combined with its
    /// position in the block.
    merges: Vec<[u32; BLOCK]>,
    /// The lowest number of each block.
    lowest: [u32; BLOCK],
    /// The same with the number of the block for the position; [`NONE`] beyond the last block.
    top: [u32; BLOCK],
    starts: Starts,
}

impl Default for BlockMerge {
    fn default() -> Self {
        let (ids, merges, starts) = (Vec::new(), Vec::new(), Starts::default());
        Self { ids, merges, lowest: [NONE; BLOCK], top: [NONE; BLOCK], starts }
    }
}

/// Append the ids of a pretoken of at most [`MAX_BYTES`]; each of its bytes must have an id.
pub(crate) fn merge(
    pairs: &impl Pairs,
    symbols: &Symbols,
    pretoken: &[u8],
    scratch: &mut BlockMerge,
    out: &mut Vec<u32>,
) {
    scratch.fill(pairs, symbols, pretoken);
    simd::run(BlockMergeWork { pairs, scratch });
    let mut at = Some(0);
    while let Some(position) = at.filter(|&position| position < pretoken.len()) {
        out.push(scratch.ids[position]);
        at = scratch.starts.next(position);
    }
}

struct BlockMergeWork<'a, P> {
    pairs: &'a P,
    scratch: &'a mut BlockMerge,
}

impl<P: Pairs> LaneWork for BlockMergeWork<'_, P> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "`LaneWork` requires it")]
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Self { pairs, scratch } = self;
        for block in 0..scratch.merges.len() {
            scratch.set_lowest(block, lanes.lowest(&scratch.merges[block]));
        }
        while let Some((position, rank)) = scratch.next(lanes) {
            scratch.apply(pairs, position, pairs.id(rank), lanes);
        }
    }
}

impl BlockMerge {
    /// The initial parts and merges.
    fn fill(&mut self, pairs: &impl Pairs, symbols: &Symbols, pretoken: &[u8]) {
        let Self { ids, merges, top, starts, .. } = self;
        ids.clear();
        ids.resize(pretoken.len(), 0);
        merges.clear();
        merges.resize(pretoken.len().div_ceil(BLOCK), [NONE; BLOCK]);
        *top = [NONE; BLOCK];
        starts.clear(pretoken.len());
        for part in symbols.ranked_parts(pairs, pretoken) {
            ids[part.start] = part.id;
            starts.insert(part.start);
            if let Some((left, rank)) = part.merge_with_left {
                merges[left / BLOCK][left % BLOCK] = combined(rank, left % BLOCK);
            }
        }
    }

    /// The position and the rank of the next merge: the lowest rank, leftmost among equals.
    #[expect(clippy::inline_always, reason = "`LaneWork` requires it")]
    #[inline(always)]
    fn next(&self, lanes: impl Lanes) -> Option<(usize, u32)> {
        // Most pretokens have at most eight blocks, and the top is `NONE` beyond the last.
        let few = self.top.first_chunk::<8>().filter(|_| self.merges.len() <= 8);
        let lowest = few.map_or_else(|| lanes.lowest(&self.top), |few| lanes.lowest(few));
        let block = (lowest & POSITION) as usize;
        let position = block * BLOCK + (self.lowest[block] & POSITION) as usize;
        (lowest < NONE).then_some((position, lowest >> POSITION_BITS))
    }

    /// Merge the part at `at` with its right neighbour to the part `id`.
    ///
    /// The merges of the old parts are removed first. So the minimum of a block is taken of what is
    /// left while the ranks of the new pairs are still being fetched, and compared with these last.
    #[expect(clippy::inline_always, reason = "`LaneWork` requires it")]
    #[inline(always)]
    fn apply(&mut self, pairs: &impl Pairs, at: usize, id: u32, lanes: impl Lanes) {
        let Self { ids, merges, starts, .. } = self;
        let right = starts.next(at).expect("a pair has two parts");
        starts.remove(right);
        ids[at] = id;
        let next = starts.next(at).and_then(|next| ids.get(next));
        // Without a part before, the other pair is that of this part once more, which changes nothing.
        let left = starts.before(at).unwrap_or(at);
        for position in [left, at, right] {
            merges[position / BLOCK][position % BLOCK] = NONE;
        }
        let after = next.map_or(NO_MERGE, |&next| pairs.rank(id, next, lanes));
        let before = if left < at { pairs.rank(ids[left], id, lanes) } else { after };
        let after = combined(after, at % BLOCK);
        let before = combined(before, left % BLOCK);
        // The three positions are in order, so at most three blocks change, and the left and the right
        // one are the same only if they are the middle one too.
        let (left_block, block, right_block) = (left / BLOCK, at / BLOCK, right / BLOCK);
        let rest = lanes.lowest(&merges[block]).min(after);
        if left_block == block {
            self.set_lowest(block, rest.min(before));
        } else {
            self.set_lowest(block, rest);
            self.set_lowest(left_block, lanes.lowest(&self.merges[left_block]).min(before));
        }
        if right_block != block {
            self.set_lowest(right_block, lanes.lowest(&self.merges[right_block]));
        }
        // Stored last: a minimum reads whole blocks, and would wait for a store to them just before.
        self.merges[left_block][left % BLOCK] = before;
        self.merges[block][at % BLOCK] = after;
    }

    /// Note the lowest number of a block.
    #[inline]
    fn set_lowest(&mut self, block: usize, lowest: u32) {
        // The top needs the number of the block where the block has the position, so the low bits are
        // replaced. Equal ranks of two blocks then compare by block, so the leftmost comes first.
        self.lowest[block] = lowest;
        self.top[block] = combined(lowest >> POSITION_BITS, block);
    }
}

/// A bit for each position where a part starts, and one for the end of the pretoken.
///
/// Merging two parts clears the bit of the right one. The neighbours of a part are the nearest bits
/// that are set, which are found a word of 64 positions at a time.
#[derive(Debug, Default)]
struct Starts(Vec<u64>);

impl Starts {
    /// No part starts anywhere in a pretoken of this many bytes; its end is set.
    fn clear(&mut self, bytes: usize) {
        self.0.clear();
        self.0.resize(bytes / 64 + 1, 0);
        self.insert(bytes);
    }

    /// A part starts at a position.
    #[inline]
    fn insert(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }

    /// The part that starts at a position joins the one before it.
    #[inline]
    fn remove(&mut self, position: usize) {
        self.0[position / 64] &= !(1 << (position % 64));
    }

    /// The next start after a position, or the end.
    #[inline]
    fn next(&self, position: usize) -> Option<usize> {
        let mut word = (position + 1) / 64;
        // Clears the bits up to the position: after position 2, 0b101101 becomes 0b101000, whose lowest
        // bit is the next start. The bits of position 63 of a word continue in the next word.
        let mut bits = self.0.get(word)? & u64::MAX << ((position + 1) % 64);
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// The previous start before a position, if any.
    #[inline]
    fn before(&self, position: usize) -> Option<usize> {
        let mut word = position / 64;
        // Clears the bits from the position on: before position 3, 0b101101 becomes 0b101, whose highest
        // bit is the previous start.
        let mut bits = self.0[word] & !(u64::MAX << (position % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.0[word];
        }
        Some(word * 64 + 63 - bits.leading_zeros() as usize)
    }
}
