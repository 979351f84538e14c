//! The second phase of a line merges the ids of its words, run by run.
//!
//! Filters that fit the inner caches, hashed sets of bits, tell where certainly nothing merges.

#![expect(
    clippy::inline_always,
    reason = "the code must be compiled for the instructions of the caller"
)]

use std::ops::Range;

use crate::encode::lines::phases::Phases;
use crate::error::Result;
use crate::hash::key::hash_number;
use crate::machine::lanes::{self, LaneWork, Lanes, Portable};
use crate::memory;
use crate::merge::buckets::Buckets;
use crate::merge::heap::{HeapMerge, RankedPairs};
use crate::merge::pair_table::{NO_MERGE, PairTable, Pairs};
use crate::vocabulary::Vocabulary;

/// Runs of more ids are merged with a heap, in less than quadratic time.
const MAX_RUN_IDS: usize = 32;

/// The merges from the limit on.
#[derive(Debug)]
pub(super) struct SecondPhase {
    joints: JointFilter,
    /// Their ranks. The table of all merges does not fit the inner caches, and waiting for it would
    /// take half of the time.
    ranks: Buckets,
}

impl SecondPhase {
    /// The second of two phases; `pairs` has all merges.
    pub(super) fn new(phases: &Phases, pairs: &PairTable) -> Result<Self> {
        let mut ranks = Buckets::with_capacity(phases.high.len())?;
        for &(left, right) in &phases.high {
            ranks.insert(left, right, pairs.rank(left, right, Portable));
        }
        Ok(Self { joints: JointFilter::of(phases.joints())?, ranks: ranks.finish() })
    }

    /// Merge the ids from `from` on, run by run; `pairs` has all merges.
    pub(super) fn merge(&self, pairs: &PairTable, from: usize, ids: &mut Vec<u32>) {
        lanes::run(MergeRuns { phase: self, pairs, from, ids });
    }

    /// Bit `i` is set if a merge may join the ids `i` and `i + 1`. All bits are computed before any
    /// is used, because a branch on each would often be mispredicted.
    #[inline]
    fn bits(&self, ids: &[u32]) -> u64 {
        let pairs = ids.windows(2).take(64).zip(0..);
        pairs.fold(0, |all, (pair, at)| {
            all | u64::from(self.joints.may_join(pair[0], pair[1])) << at
        })
    }

    /// The number of ids in the run at the start of `ids`. `joints` has the bits of the first
    /// `covered` ids.
    #[inline]
    fn run_length(&self, ids: &[u32], joints: u64, covered: usize) -> usize {
        let mut length = 1 + joints.trailing_ones() as usize;
        if length > covered {
            let rest = ids[length - 1..].windows(2);
            length += rest.take_while(|pair| self.joints.may_join(pair[0], pair[1])).count();
        }
        length
    }
}

struct MergeRuns<'a> {
    phase: &'a SecondPhase,
    pairs: &'a PairTable,
    from: usize,
    ids: &'a mut Vec<u32>,
}

impl LaneWork for MergeRuns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Self { phase, pairs, from, ids } = self;
        let pairs = &HighMerges { ranks: &phase.ranks, ids: pairs, lanes };
        // Runs are merged in place; the ids that remain are moved back over the places of those that went.
        let (mut read, mut write) = (from, from);
        while read < ids.len() {
            // Bit 0 always belongs to the id at `read`.
            let mut joints = phase.bits(&ids[read..]);
            let end = ids.len().min(read + 64);
            while joints != 0 {
                // The ids before the next run stay as they are.
                let unjoined = joints.trailing_zeros();
                joints >>= unjoined;
                move_back(ids, &mut read, unjoined as usize, &mut write);
                let length = phase.run_length(&ids[read..], joints, end - read);
                let kept = merge_run(pairs, &mut ids[read..read + length]);
                let after = read + length;
                move_back(ids, &mut read, kept, &mut write);
                read = after;
                // A run may go on behind the ids that have bits; then no bit is left.
                joints =
                    u32::try_from(length).ok().and_then(|run| joints.checked_shr(run)).unwrap_or(0);
            }
            let rest = end.saturating_sub(read);
            move_back(ids, &mut read, rest, &mut write);
        }
        ids.truncate(write);
    }
}

/// Move the `count` ids at `read` to `write`, and advance both.
#[inline]
fn move_back(ids: &mut [u32], read: &mut usize, count: usize, write: &mut usize) {
    // Most moves are so short that a call of `memmove` would take longer.
    for at in 0..count {
        ids[*write + at] = ids[*read + at];
    }
    (*read, *write) = (*read + count, *write + count);
}

/// Merge a run in place; returns the number of remaining ids.
#[inline(always)]
fn merge_run(pairs: &HighMerges<'_, impl Lanes>, ids: &mut [u32]) -> usize {
    match ids.len() {
        2 => merge_two(pairs, ids),
        ..=MAX_RUN_IDS => merge_short(pairs, ids),
        _ => merge_long(pairs, ids),
    }
}

/// The ranks and the ids of the second phase.
struct HighMerges<'a, L> {
    ranks: &'a Buckets,
    ids: &'a PairTable,
    lanes: L,
}

impl<L: Lanes> HighMerges<'_, L> {
    #[inline(always)]
    fn rank(&self, left: u32, right: u32) -> u32 {
        self.ranks.rank(left, right, self.lanes)
    }
}

impl<L: Lanes> RankedPairs for HighMerges<'_, L> {
    fn rank_at(&self, left: u32, right: u32, _place: Range<usize>) -> u32 {
        self.rank(left, right)
    }

    fn merged(&self, rank: u32) -> u32 {
        self.ids.id(rank)
    }
}

/// Merge a run of two ids in place; returns the number of remaining ids.
#[inline(always)]
fn merge_two(pairs: &HighMerges<'_, impl Lanes>, ids: &mut [u32]) -> usize {
    let rank = pairs.rank(ids[0], ids[1]);
    if rank == NO_MERGE {
        return 2;
    }
    ids[0] = pairs.ids.id(rank);
    1
}

/// Merge the ids of a run in place, the lowest rank first, the leftmost of equals; returns the
/// number of remaining ids.
#[inline(always)]
fn merge_short(pairs: &HighMerges<'_, impl Lanes>, ids: &mut [u32]) -> usize {
    let mut length = ids.len();
    let mut ranks = [NO_MERGE; MAX_RUN_IDS];
    for (rank, pair) in ranks.iter_mut().zip(ids.windows(2)) {
        *rank = pairs.rank(pair[0], pair[1]);
    }
    while length > 1 {
        // Pairs of rank and position: the smallest is the lowest rank, at the leftmost position.
        let all = ranks[..length - 1].iter().copied().zip(0..);
        let Some((rank, at)) = all.min().filter(|&(rank, _)| rank != NO_MERGE) else { break };
        ids[at] = pairs.ids.id(rank);
        ids.copy_within(at + 2..length, at + 1);
        ranks.copy_within(at + 1..length - 1, at);
        length -= 1;
        for left in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            let right = ids[..length].get(left + 1);
            ranks[left] = right.map_or(NO_MERGE, |&right| pairs.rank(ids[left], right));
        }
    }
    length
}

/// The same for a run of any length.
fn merge_long(pairs: &HighMerges<'_, impl Lanes>, ids: &mut [u32]) -> usize {
    let mut heap = HeapMerge::default();
    heap.merge(pairs, ids.iter().copied().enumerate(), ids.len(), || false);
    let merged = heap.parts().zip(&mut *ids).map(|((_, id), place)| *place = id);
    merged.count()
}

/// The number of bits for each entry: at most one bit of 16 is set, so about one of 16 items that are
/// not in the set is answered "perhaps".
const BITS_EACH: usize = 16;

/// Bits that are selected by a hash.
#[derive(Debug)]
struct BitSet {
    words: Vec<u64>,
    /// The number of low bits of a hash that are dropped.
    shift: u32,
}

impl BitSet {
    /// An empty set for this many entries.
    fn for_entries(count: usize) -> Result<Self> {
        let bits = (count * BITS_EACH).next_power_of_two().max(64);
        Ok(Self { words: memory::zeros(bits / 64)?, shift: 64 - bits.ilog2() })
    }

    fn insert(&mut self, hash: u64) {
        let bit = index(hash, self.shift);
        self.words[bit >> 6] |= 1 << (bit & 63);
    }

    #[inline]
    fn may_hold(&self, hash: u64) -> bool {
        let bit = index(hash, self.shift);
        self.words[bit >> 6] >> (bit & 63) & 1 != 0
    }
}

/// The points at which a merge of the second phase may join two tokens: pairs of ids of the first
/// phase.
#[derive(Debug)]
pub(super) struct JointFilter(BitSet);

impl JointFilter {
    /// The filter of these points.
    pub(super) fn of(joints: impl ExactSizeIterator<Item = (u32, u32)>) -> Result<Self> {
        let mut set = BitSet::for_entries(joints.len())?;
        joints.for_each(|(left, right)| set.insert(hash_pair(left, right)));
        Ok(Self(set))
    }

    /// Whether a merge may join two tokens at the point between these ids.
    #[inline]
    pub(super) fn may_join(&self, left: u32, right: u32) -> bool {
        self.0.may_hold(hash_pair(left, right))
    }
}

/// All tokens, by their length and first bytes. Few lines pass it, so lookups in the vocabulary,
/// which is larger than the inner caches, are rare.
#[derive(Debug)]
pub(super) struct TokenFilter(BitSet);

impl TokenFilter {
    pub(super) fn of(vocabulary: &Vocabulary) -> Result<Self> {
        let mut set = BitSet::for_entries(vocabulary.len())?;
        vocabulary.ordinary_tokens().for_each(|(token, _)| set.insert(hash_start(token)));
        Ok(Self(set))
    }

    /// False if the pretoken is not a token.
    #[inline]
    pub(super) fn may_hold(&self, pretoken: &[u8]) -> bool {
        self.0.may_hold(hash_start(pretoken))
    }
}

/// The hash of a pair of ids.
#[inline]
pub(super) fn hash_pair(left: u32, right: u32) -> u64 {
    hash_number(u64::from(left) << 32 | u64::from(right))
}

/// The hash of the length and the first eight bytes.
#[inline]
fn hash_start(token: &[u8]) -> u64 {
    let start = token.first_chunk().copied().map_or_else(
        || token.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)),
        u64::from_le_bytes,
    );
    let length = u64::try_from(token.len()).unwrap_or_default();
    hash_number(start ^ length.rotate_right(8))
}

/// A hash without its `shift` low bits, as an index.
#[inline]
pub(super) fn index(hash: u64, shift: u32) -> usize {
    usize::try_from(hash >> shift).expect("a small number")
}
