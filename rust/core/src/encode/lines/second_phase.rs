//! The second phase of a line merges the ids of its words, run by run.
//!
//! Filters that fit the inner caches, hashed sets of bits, tell where certainly nothing merges.

#![expect(
    clippy::inline_always,
    reason = "the code must be compiled for the instructions of the caller"
)]

use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::hash::key::hash_number;
use crate::machine::simd::{self, LaneWork, Lanes, Portable};
use crate::memory;
use crate::merge::heap::{HeapMerge, RankedPairs};
use crate::merge::pair_table::{Buckets, NO_MERGE, PairTable, PairTableBuilder, Pairs};
use crate::vocabulary::{NO_ID, Vocabulary};

/// Runs of more ids are merged with a heap, in less than quadratic time.
const MAX_RUN_IDS: usize = 32;

/// The merges from the limit on.
#[derive(Debug)]
pub(super) struct SecondPhase {
    /// The points at which a merge of the second phase may join two tokens: pairs of ids of the first
    /// phase.
    joints: BitSet,
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
        let joints = phases.joints().map(|(left, right)| hash_pair(left, right));
        Ok(Self { joints: BitSet::of(joints, phases.high.len())?, ranks: ranks.finish()? })
    }

    /// Merge the ids from `from` on, run by run; `pairs` has all merges.
    pub(super) fn merge(&self, pairs: &PairTable, from: usize, ids: &mut Vec<u32>) {
        simd::run(MergeRuns { phase: self, pairs, from, ids });
    }

    /// Whether a merge may join two tokens at the point between these ids.
    #[inline]
    fn may_join(&self, left: u32, right: u32) -> bool {
        self.joints.may_hold(hash_pair(left, right))
    }

    /// Bit `i` is set if a merge may join the ids `i` and `i + 1`. All bits are computed before any
    /// is used, because a branch on each would often be mispredicted.
    #[inline]
    fn bits(&self, ids: &[u32]) -> u64 {
        let pairs = ids.windows(2).take(64).zip(0..);
        pairs.fold(0, |all, (pair, at)| all | u64::from(self.may_join(pair[0], pair[1])) << at)
    }

    /// The number of ids in the run at the start of `ids`. `joints` has the bits of the first
    /// `covered` ids.
    #[inline]
    fn run_length(&self, ids: &[u32], joints: u64, covered: usize) -> usize {
        let mut length = 1 + joints.trailing_ones() as usize;
        if length > covered {
            let rest = ids[length - 1..].windows(2);
            length += rest.take_while(|pair| self.may_join(pair[0], pair[1])).count();
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

impl<L: Lanes> RankedPairs for HighMerges<'_, L> {
    #[inline(always)]
    fn rank_of(&self, left: u32, right: u32) -> u32 {
        self.ranks.rank(left, right, self.lanes)
    }

    fn merged(&self, rank: u32) -> u32 {
        self.ids.id(rank)
    }
}

/// Merge a run of two ids in place; returns the number of remaining ids.
#[inline(always)]
fn merge_two(pairs: &HighMerges<'_, impl Lanes>, ids: &mut [u32]) -> usize {
    let rank = pairs.rank_of(ids[0], ids[1]);
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
        *rank = pairs.rank_of(pair[0], pair[1]);
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
            ranks[left] = right.map_or(NO_MERGE, |&right| pairs.rank_of(ids[left], right));
        }
    }
    length
}

/// The same for a run of any length.
fn merge_long(pairs: &HighMerges<'_, impl Lanes>, ids: &mut [u32]) -> usize {
    let mut heap = HeapMerge::default();
    heap.merge(pairs, ids.iter().copied().enumerate(), ids.len());
    let merged = heap.parts().zip(&mut *ids).map(|((_, id), place)| *place = id);
    merged.count()
}

/// The number of bits for each entry: at most one bit of 16 is set, so about one of 16 items that are
/// not in the set is answered "perhaps".
const BITS_EACH: usize = 16;

/// Hashes as single bits. A hash that is not in the set may be answered "perhaps".
#[derive(Debug)]
pub(super) struct BitSet {
    words: Vec<u64>,
    /// The number of low bits of a hash that are dropped.
    shift: u32,
}

impl BitSet {
    /// The set of some hashes, at most `count` of them.
    fn of(hashes: impl Iterator<Item = u64>, count: usize) -> Result<Self> {
        let bits = (count * BITS_EACH).next_power_of_two().max(64);
        let mut set = Self { words: memory::zeros(bits / 64)?, shift: 64 - bits.ilog2() };
        for hash in hashes {
            let bit = index(hash, set.shift);
            set.words[bit >> 6] |= 1 << (bit & 63);
        }
        Ok(set)
    }

    /// All tokens, by their length and first bytes. Few lines pass this filter, so lookups in the
    /// vocabulary, which is larger than the inner caches, are rare.
    pub(super) fn of_tokens(vocabulary: &Vocabulary) -> Result<Self> {
        let tokens = vocabulary.ordinary_tokens();
        Self::of(tokens.map(|(token, _)| hash_start(token)), vocabulary.len())
    }

    /// Whether a hash may be in the set.
    #[inline]
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let bit = index(hash, self.shift);
        self.words[bit >> 6] >> (bit & 63) & 1 != 0
    }
}

/// The hash of a pair of ids.
#[inline]
fn hash_pair(left: u32, right: u32) -> u64 {
    hash_number(u64::from(left) << 32 | u64::from(right))
}

/// The hash of the length and the first eight bytes.
#[inline]
pub(super) fn hash_start(token: &[u8]) -> u64 {
    let start = token.first_chunk().copied().map_or_else(
        || token.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)),
        u64::from_le_bytes,
    );
    let length = u64::try_from(token.len()).unwrap_or_default();
    hash_number(start ^ length.rotate_right(8))
}

/// A hash without its `shift` low bits, as an index.
#[inline]
fn index(hash: u64, shift: u32) -> usize {
    usize::try_from(hash >> shift).expect("a small number")
}

// ---------------------------------------------------------------------------- phases
//
// Divides the merges of a vocabulary into two phases, where that is exact.

/// The merges of a vocabulary in two phases.
pub(super) struct Phases {
    /// The rank of the merge that creates each id, or [`NO_MERGE`].
    ranks: Vec<u32>,
    limit: u32,
    pub(super) low: PairTableBuilder,
    pub(super) high: Vec<(u32, u32)>,
    /// For each id, the first and the last of the ids of the first phase that it consists of.
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Phases {
    /// `None` if two phases would not be exact.
    pub(super) fn new(encoder: &PretokenEncoder) -> Result<Option<Self>> {
        let (vocabulary, pairs) = (&encoder.vocabulary, &encoder.merger()?.pairs);
        let size = vocabulary.len();
        if vocabulary.byte_ids().contains(&NO_ID) || !encoder.merger()?.symbols.are_bytes() {
            return Ok(None);
        }
        let merges = pairs.in_order();
        let ranked = |&(left, right): &(u32, u32)| pairs.rank(left, right, Portable);
        let crosses = |rank: &u32| vocabulary.bytes(pairs.id(*rank)).is_some_and(crosses_space);
        let Some(limit) = merges.iter().map(ranked).find(crosses) else { return Ok(None) };
        let ids = (0..limit).map(|rank| pairs.id(rank));
        let mut phases = Self {
            ranks: memory::filled(NO_MERGE, size)?,
            limit,
            low: PairTableBuilder::with_capacity(limit as usize, memory::collect(ids)?)?,
            high: memory::with_room(merges.len())?,
            first: memory::collect(0..u32::try_from(size).unwrap_or(NO_ID))?,
            last: memory::collect(0..u32::try_from(size).unwrap_or(NO_ID))?,
        };
        let all_fit = merges.iter().all(|pair| {
            let rank = ranked(pair);
            phases.add(*pair, rank, pairs.id(rank))
        });
        Ok(all_fit.then_some(phases))
    }

    /// Add the next merge in the order of ranks; false if one of its parts is created later, or if
    /// an earlier merge creates the same token.
    fn add(&mut self, (left, right): (u32, u32), rank: u32, id: u32) -> bool {
        let is_earlier = |part: u32| {
            let part_rank = self.ranks[part as usize];
            part_rank == NO_MERGE || part_rank < rank
        };
        if self.ranks[id as usize] != NO_MERGE || !is_earlier(left) || !is_earlier(right) {
            return false;
        }
        self.ranks[id as usize] = rank;
        if rank < self.limit {
            self.low.insert(left, right, rank);
        } else {
            self.high.push((left, right));
            // A token of the first phase is its own first and last id.
            self.first[id as usize] = self.first[left as usize];
            self.last[id as usize] = self.last[right as usize];
        }
        true
    }

    /// The point of each merge of the second phase: the two ids of the first phase at its joint.
    fn joints(&self) -> impl Iterator<Item = (u32, u32)> {
        let joint =
            |&(left, right): &(u32, u32)| (self.last[left as usize], self.first[right as usize]);
        self.high.iter().map(joint)
    }

    /// A bit for each pair of bytes: whether they are adjacent in a character or in a token of the
    /// first phase.
    pub(super) fn joined(&self, vocabulary: &Vocabulary) -> Box<[u64; 1 << 10]> {
        let mut joined = Box::new([0; 1 << 10]);
        let mut join = |left: u8, right: u8| {
            let bit = usize::from(left) << 8 | usize::from(right);
            joined[bit >> 6] |= 1u64 << (bit & 63);
        };
        // A byte within a character never follows a cut.
        (0x80..0xC0).for_each(|right| (0..=255).for_each(|left| join(left, right)));
        for (token, id) in vocabulary.ordinary_tokens() {
            if self.ranks[id as usize] < self.limit {
                token.windows(2).for_each(|pair| join(pair[0], pair[1]));
            }
        }
        joined
    }
}

/// Whether a space follows a letter or digit in a token or pretoken: most patterns split there.
pub(crate) fn crosses_space(token: &[u8]) -> bool {
    token.windows(2).any(|pair| pair[0].is_ascii_alphanumeric() && pair[1] == b' ')
}
