//! Merges one pretoken and drops merges at random: BPE-dropout (Provilkov et al., arXiv 1910.13267).
//!
//! Before each merge, every adjacent pair that could merge is dropped with some probability. Of the
//! other pairs, the one of lowest rank merges, leftmost among equals; if there is none, the
//! pretoken is done. A pretoken that is a token is merged like any other, since otherwise most
//! words would never be affected.
//!
//! Pairs are drawn in the order in which they would merge, up to the first that is not dropped:
//! whether later ones are dropped makes no difference. The candidates are in a queue, so a long
//! pretoken takes little more than linear time.
//!
//! Under the rule of ranks, pairs are looked up by their joined bytes: the pair table contains only
//! the pair that merges into each token when nothing is dropped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Result};
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::pair_table::{NO_MERGE, PairTable, Pairs};
use crate::merge::symbols::Symbols;
use crate::vocabulary::Vocabulary;

/// Bytes of memory for each byte of a pretoken.
const SCRATCH_BYTES: usize = 64;

/// The buffers of a pretoken with more bytes than this are freed after use.
const MAX_KEPT_BYTES: usize = 1 << 16;

/// The increment of the state of splitmix64.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Random numbers by splitmix64, which has eight bytes of state and the same numbers on all
/// machines.
#[derive(Debug, Clone)]
pub(crate) struct DropoutRandom(u64);

impl DropoutRandom {
    /// The random numbers of a text. Their seed is number `index` of the sequence seeded by `seed`.
    pub(crate) fn of_text(seed: u64, index: usize) -> Self {
        Self(Self(seed.wrapping_add(STEP.wrapping_mul(index as u64))).number())
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Whether an event of this probability happens.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        let unit = (self.number() >> 11) as f64 / (1u64 << 53) as f64;
        unit < probability
    }
}

/// The pairs that can merge, by the merge rule.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MergeCandidates<'a> {
    /// Pairs whose joined bytes are a token.
    Ranks(&'a Vocabulary),
    /// The listed pairs.
    Merges(&'a PairTable),
}

impl MergeCandidates<'_> {
    fn rank(&self, left: u32, right: u32, joined: &[u8]) -> u32 {
        match self {
            Self::Ranks(vocabulary) => vocabulary.id(joined).unwrap_or(NO_MERGE),
            Self::Merges(pairs) => pairs.rank(left, right, Portable),
        }
    }

    fn id(&self, rank: u32) -> u32 {
        match self {
            Self::Ranks(_) => rank,
            Self::Merges(pairs) => pairs.id(rank),
        }
    }
}

/// The parts of a pretoken and the queue of its candidates, in buffers that the next pretoken
/// reuses.
#[derive(Debug, Default)]
pub(crate) struct DropoutScratch {
    /// The id of the part that starts at each position.
    ids: Vec<u32>,
    /// The end of the part that starts at each position.
    ends: Vec<usize>,
    /// The start of the part that ends at each position.
    starts: Vec<usize>,
    /// The rank of the part that starts at each position with the part to its right.
    ranks: Vec<u32>,
    /// Rank and position of candidates; an entry is stale if the position has another rank now.
    queue: BinaryHeap<Reverse<(u32, usize)>>,
    /// The candidates that were dropped before the next merge.
    dropped: Vec<Reverse<(u32, usize)>>,
}

impl DropoutScratch {
    /// Append the ids of a pretoken. `drops` returns whether to drop the next candidate.
    ///
    /// Fails if a byte has no id, or if there is not enough memory.
    pub(crate) fn merge(
        &mut self,
        candidates: MergeCandidates<'_>,
        symbols: &Symbols,
        pretoken: &[u8],
        mut drops: impl FnMut() -> bool,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        memory::check(pretoken.len().saturating_mul(SCRATCH_BYTES))?;
        self.fill(candidates, symbols, pretoken)?;
        while let Some((rank, position)) = self.next(&mut drops) {
            self.apply(candidates, pretoken, rank, position);
        }
        memory::reserve(out, pretoken.len())?;
        let mut position = 0;
        while position < pretoken.len() {
            out.push(self.ids[position]);
            position = self.ends[position];
        }
        if pretoken.len() > MAX_KEPT_BYTES {
            *self = Self::default();
        }
        Ok(())
    }

    /// Set the initial parts and candidates.
    fn fill(
        &mut self,
        candidates: MergeCandidates<'_>,
        symbols: &Symbols,
        pretoken: &[u8],
    ) -> Result<()> {
        if let Some(byte) = symbols.uncovered(pretoken) {
            return Err(Error::UncoveredByte { byte });
        }
        for list in [&mut self.ends, &mut self.starts] {
            list.clear();
            list.resize(pretoken.len() + 1, pretoken.len());
        }
        for list in [&mut self.ids, &mut self.ranks] {
            list.clear();
            list.resize(pretoken.len(), NO_MERGE);
        }
        // Link each part to the one before: where a part starts, the one before ends.
        let mut before = 0;
        for (position, id) in symbols.parts(pretoken) {
            self.ids[position] = id;
            self.ends[before] = position;
            self.starts[position] = before;
            before = position;
        }
        if let Some(end) = self.ends.get_mut(before) {
            *end = pretoken.len();
        }
        self.starts[pretoken.len()] = before;
        self.ends.truncate(pretoken.len());
        self.queue.clear();
        let mut position = 0;
        while position < pretoken.len() {
            self.look_up(candidates, pretoken, position);
            position = self.ends[position];
        }
        Ok(())
    }

    /// Look up the rank of the part at `position` with its right neighbour.
    fn look_up(&mut self, candidates: MergeCandidates<'_>, pretoken: &[u8], position: usize) {
        let right = self.ends[position];
        let rank = self.ends.get(right).map_or(NO_MERGE, |&end| {
            candidates.rank(self.ids[position], self.ids[right], &pretoken[position..end])
        });
        self.ranks[position] = rank;
        if rank != NO_MERGE {
            self.queue.push(Reverse((rank, position)));
        }
    }

    /// The first candidate that is not dropped; the dropped ones remain candidates for later
    /// merges.
    fn next(&mut self, drops: &mut impl FnMut() -> bool) -> Option<(u32, usize)> {
        let mut best = None;
        while let Some(Reverse((rank, position))) = self.queue.pop() {
            // A stale entry is no candidate, so nothing is drawn for it.
            if self.ranks[position] != rank {
                continue;
            }
            if !drops() {
                best = Some((rank, position));
                break;
            }
            self.dropped.push(Reverse((rank, position)));
        }
        self.queue.extend(self.dropped.drain(..));
        best
    }

    /// Merge the part at `position` with its right neighbour, and look up the pairs of the new part.
    fn apply(
        &mut self,
        candidates: MergeCandidates<'_>,
        pretoken: &[u8],
        rank: u32,
        position: usize,
    ) {
        let right = self.ends[position];
        let end = self.ends[right];
        self.ids[position] = candidates.id(rank);
        // The right part is gone; its entry in the queue is stale now.
        self.ranks[right] = NO_MERGE;
        self.ends[position] = end;
        self.starts[end] = position;
        self.look_up(candidates, pretoken, position);
        if position > 0 {
            self.look_up(candidates, pretoken, self.starts[position]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::merge::build;

    /// The slow reference: sort all pairs by rank before each merge.
    fn plain(
        rank: impl Fn(&[u8], &[u8]) -> Option<usize>,
        text: &[u8],
        mut drops: impl FnMut() -> bool,
    ) -> Vec<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = text.iter().map(|&byte| vec![byte]).collect();
        loop {
            let pairs = parts.windows(2).enumerate();
            let mut ranked: Vec<_> =
                pairs.filter_map(|(at, pair)| Some((rank(&pair[0], &pair[1])?, at))).collect();
            ranked.sort_unstable();
            let Some((_, at)) = ranked.into_iter().find(|_| !drops()) else { return parts };
            let right = parts.remove(at + 1);
            parts[at].extend(right);
        }
    }

    proptest! {
        #[test]
        fn the_queue_equals_the_slow_reference(
            tokens in proptest::collection::btree_set(proptest::collection::vec(0u8..3, 2..5), 0..20),
            order in proptest::collection::vec((0usize..20, 0usize..20), 0..30),
            text in proptest::collection::vec(0u8..3, 0..30),
            seed: u64,
            probability in 0.0f64..1.0,
        ) {
            let bytes = (0u8..3).map(|byte| vec![byte]);
            let all: Vec<Vec<u8>> = bytes.chain(tokens).collect();
            let vocabulary = Vocabulary::new(all.iter().cloned().zip(0u32..), []).unwrap();
            let symbols = Symbols::bytes(&vocabulary);
            let id = |token: &[u8]| all.iter().position(|one| one == token);
            let merges: Vec<(u32, u32)> = order
                .into_iter()
                .filter(|&(a, b)| a.max(b) < all.len())
                .filter(|&(a, b)| id(&[&all[a][..], &all[b]].concat()).is_some())
                .map(|(a, b)| (u32::try_from(a).unwrap(), u32::try_from(b).unwrap()))
                .collect();
            let table = build::by_merges(&vocabulary, &merges).unwrap();
            let by_rank = |left: &[u8], right: &[u8]| id(&[left, right].concat());
            let by_list = |left: &[u8], right: &[u8]| {
                let pair = vocabulary.id(left).zip(vocabulary.id(right));
                merges.iter().position(|&merge| Some(merge) == pair)
            };
            let random = DropoutRandom::of_text(seed, 3);
            for candidates in [MergeCandidates::Ranks(&vocabulary), MergeCandidates::Merges(&table)] {
                let (mut one, mut other) = (random.clone(), random.clone());
                let (mut scratch, mut ids) = (DropoutScratch::default(), Vec::new());
                let drops = || one.happens(probability);
                scratch.merge(candidates, &symbols, &text, drops, &mut ids).unwrap();
                let drops = || other.happens(probability);
                let expected = match candidates {
                    MergeCandidates::Ranks(_) => plain(by_rank, &text, drops),
                    MergeCandidates::Merges(_) => plain(by_list, &text, drops),
                };
                let parts: Vec<_> = ids.iter().map(|&id| all[id as usize].clone()).collect();
                prop_assert_eq!(parts, expected);
            }
        }
    }

    #[test]
    fn random_numbers_are_those_of_splitmix64() {
        let mut random = DropoutRandom(1_234_567);
        let numbers: Vec<u64> = (0..3).map(|_| random.number()).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers, published);
        assert_eq!(DropoutRandom::of_text(1_234_567, 2).0, published[2]);
        assert!(!random.happens(0.0) && random.happens(1.0));
    }
}
