//! Merges one pretoken and drops merges at random: BPE-dropout (Provilkov et al., arXiv 1910.13267).
//!
//! Before each merge, every adjacent pair that could merge is dropped with some probability. Of the
//! other pairs, the one of lowest rank merges, leftmost among equals; if there is none, the
//! pretoken is done. A pretoken that is a token is merged like any other, since otherwise most
//! words would never be affected.
//!
//! Pairs are drawn in the order in which they would merge, up to the first that is not dropped:
//! whether later ones are dropped makes no difference. The heap of [`heap`] holds them.
//!
//! Under the rule of ranks, pairs are looked up by their joined bytes: the pair table contains only
//! the pair that merges into each token when nothing is dropped.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::heap::{self, HeapMerge, RankedPairs};
use crate::merge::pair_table::{NO_MERGE, PairTable, Pairs};
use crate::merge::symbols::Symbols;
use crate::vocabulary::Vocabulary;

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

/// The pairs of one pretoken.
struct PretokenPairs<'a> {
    candidates: MergeCandidates<'a>,
    pretoken: &'a [u8],
}

impl RankedPairs for PretokenPairs<'_> {
    fn rank_at(&self, left: u32, right: u32, place: Range<usize>) -> u32 {
        match self.candidates {
            MergeCandidates::Ranks(vocabulary) => {
                vocabulary.id(&self.pretoken[place]).unwrap_or(NO_MERGE)
            }
            MergeCandidates::Merges(pairs) => pairs.rank(left, right, Portable),
        }
    }

    fn merged(&self, rank: u32) -> u32 {
        match self.candidates {
            MergeCandidates::Ranks(_) => rank,
            MergeCandidates::Merges(pairs) => pairs.id(rank),
        }
    }
}

/// Append the ids of a pretoken. `drops` returns whether to drop the next candidate.
///
/// Fails if a byte has no id, or if there is not enough memory.
pub(crate) fn merge(
    heap: &mut HeapMerge,
    candidates: MergeCandidates<'_>,
    symbols: &Symbols,
    pretoken: &[u8],
    drops: impl FnMut() -> bool,
    out: &mut Vec<u32>,
) -> Result<()> {
    heap::check(pretoken.len())?;
    if let Some(byte) = symbols.uncovered(pretoken) {
        return Err(Error::UncoveredByte { byte });
    }
    memory::reserve(out, pretoken.len())?;
    let pairs = &PretokenPairs { candidates, pretoken };
    heap.merge(pairs, symbols.parts(pretoken), pretoken.len(), drops);
    out.extend(heap.parts().map(|(_, id)| id));
    heap.free_large();
    Ok(())
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
        fn the_heap_equals_the_slow_reference(
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
                let (mut heap, mut ids) = (HeapMerge::default(), Vec::new());
                let drops = || one.happens(probability);
                merge(&mut heap, candidates, &symbols, &text, drops, &mut ids).unwrap();
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
