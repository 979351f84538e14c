//! Merges one pretoken and drops merges at random: BPE-dropout (Provilkov et al., arXiv 1910.13267).
//!
//! Before each merge, every pair of neighbours that could merge is dropped with some probability; of
//! those left, the one of lowest rank merges, leftmost among equals; if none is left, the pretoken is
//! done. A pretoken that is a token does not win outright, since that would leave most words whole.
//!
//! Pairs are drawn in the order in which they would merge, up to the first that is not dropped:
//! whether later ones are dropped makes no difference. The candidates are in a queue, so a long
//! pretoken takes little more than linear time.
//!
//! Under the rule of ranks, pairs are looked up by their joined bytes. The pair table has only the
//! pair that merges into each token when nothing is dropped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Result};
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::pair_table::{NO_MERGE, PairTable, Pairs};
use crate::merge::symbols::Symbols;
use crate::vocabulary::Vocabulary;

/// Memory for each byte of a pretoken.
const SCRATCH: usize = 64;

/// The buffers of a pretoken longer than this (in bytes) are freed after use.
const KEPT: usize = 1 << 16;

/// What splitmix64 adds to its state for each number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Random numbers: splitmix64, which needs eight bytes of state and is the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct DropoutRandom(u64);

impl DropoutRandom {
    /// The numbers of a text: seeded by the number at its index in those of `seed`.
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

/// Which neighbours merge, by the merge rule.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MergeCandidates<'a> {
    /// Those whose joined bytes are a token.
    Ranks(&'a Vocabulary),
    /// Those that are listed.
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

/// The parts of a pretoken and the queue of its candidates; buffers for the next pretoken.
#[derive(Debug, Default)]
pub(crate) struct DropoutScratch {
    /// The id of the part that starts at each place.
    ids: Vec<u32>,
    /// The end of the part that starts at each place.
    ends: Vec<usize>,
    /// The start of the part that ends at each place.
    starts: Vec<usize>,
    /// The rank of the part that starts at each place with the part to its right.
    ranks: Vec<u32>,
    /// Rank and place; an entry is stale if the place has another rank now.
    queue: BinaryHeap<Reverse<(u32, usize)>>,
    dropped: Vec<Reverse<(u32, usize)>>,
}

impl DropoutScratch {
    /// Append the ids of a pretoken. `drops` says whether the next candidate is dropped.
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
        memory::check(pretoken.len().saturating_mul(SCRATCH))?;
        self.fill(candidates, symbols, pretoken)?;
        while let Some((rank, place)) = self.next(&mut drops) {
            self.apply(candidates, pretoken, rank, place);
        }
        memory::reserve(out, pretoken.len())?;
        let mut place = 0;
        while place < pretoken.len() {
            out.push(self.ids[place]);
            place = self.ends[place];
        }
        if pretoken.len() > KEPT {
            *self = Self::default();
        }
        Ok(())
    }

    /// The initial parts.
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
        let mut before = 0;
        for (place, id) in symbols.parts(pretoken) {
            self.ids[place] = id;
            self.ends[before] = place;
            self.starts[place] = before;
            before = place;
        }
        if let Some(end) = self.ends.get_mut(before) {
            *end = pretoken.len();
        }
        self.starts[pretoken.len()] = before;
        self.ends.truncate(pretoken.len());
        self.queue.clear();
        let mut place = 0;
        while place < pretoken.len() {
            self.look_up(candidates, pretoken, place);
            place = self.ends[place];
        }
        Ok(())
    }

    /// Find the rank of the part at `place` with its right neighbour.
    fn look_up(&mut self, candidates: MergeCandidates<'_>, pretoken: &[u8], place: usize) {
        let right = self.ends[place];
        let rank = self.ends.get(right).map_or(NO_MERGE, |&end| {
            candidates.rank(self.ids[place], self.ids[right], &pretoken[place..end])
        });
        self.ranks[place] = rank;
        if rank != NO_MERGE {
            self.queue.push(Reverse((rank, place)));
        }
    }

    /// The first candidate that is not dropped; all others stay candidates.
    fn next(&mut self, drops: &mut impl FnMut() -> bool) -> Option<(u32, usize)> {
        let mut found = None;
        while let Some(Reverse((rank, place))) = self.queue.pop() {
            if self.ranks[place] != rank {
                continue;
            }
            if !drops() {
                found = Some((rank, place));
                break;
            }
            self.dropped.push(Reverse((rank, place)));
        }
        self.queue.extend(self.dropped.drain(..));
        found
    }

    fn apply(&mut self, candidates: MergeCandidates<'_>, pretoken: &[u8], rank: u32, place: usize) {
        let right = self.ends[place];
        let end = self.ends[right];
        self.ids[place] = candidates.id(rank);
        self.ranks[right] = NO_MERGE;
        self.ends[place] = end;
        self.starts[end] = place;
        self.look_up(candidates, pretoken, place);
        if place > 0 {
            self.look_up(candidates, pretoken, self.starts[place]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::merge::build;

    /// The plain way: look at all neighbours in order of rank before each merge.
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
        fn the_queue_is_the_plain_way(
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
                let found: Vec<_> = ids.iter().map(|&id| all[id as usize].clone()).collect();
                prop_assert_eq!(found, expected);
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
