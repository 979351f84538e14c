//! Encodes training texts into one array of ids, with merges dropped at random (BPE-dropout).
//!
//! The random numbers of a text depend only on the seed and on the index of the text, so the ids
//! are the same for any number of threads. Nothing is cached, because each occurrence of a pretoken
//! has its own ids.

use std::ops::Range;

use crate::bulk::arrays::{self, Arrays, Part, Size};
use crate::encode::encoder::TextPart;
use crate::encode::pretoken::PretokenPart;
use crate::encode::{EncodeOptions, Id};
use crate::error::{Error, Result};
use crate::machine::simd::Portable;
use crate::merge::heap::{self, HeapMerge, RankedPairs};
use crate::merge::pair_table::{NO_MERGE, PairTable, Pairs};
use crate::merge::symbols::Symbols;
use crate::rules::PartStart;
use crate::text::Text;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{MergeRule, Vocabulary};
use crate::{memory, parallel};

/// How often a merge is dropped, and the seed of the random numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// Between 0 (never) and 1 (always).
    pub probability: f64,
    /// The seed of the random numbers; another seed gives other ids.
    pub seed: u64,
}

/// Encodes texts on one thread.
struct DropoutCall<'a> {
    tokenizer: &'a Tokenizer,
    options: &'a EncodeOptions,
    candidates: MergeCandidates<'a>,
    symbols: &'a Symbols,
    probability: f64,
    random: DropoutRandom,
    heap: HeapMerge,
    ids: Vec<u32>,
}

impl Tokenizer {
    /// Encode texts on up to `threads` threads into one array, with merges dropped at random.
    ///
    /// With a probability of 0, this is [`encode_arrays`](Self::encode_arrays). The errors are the
    /// same.
    ///
    /// ```
    /// use bytepair::bulk::dropout::Dropout;
    /// use bytepair::{Pattern, Text, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let tokens = bytes.chain([(b"ab".to_vec(), 256)]);
    /// # let vocabulary = Vocabulary::new(tokens, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let always = Dropout { probability: 1.0, seed: 7 };
    /// let options = tokenizer.plain();
    /// let arrays = tokenizer.encode_with_dropout::<u16>(&[Text::Utf8("ab")], options, always, 1)?;
    /// assert_eq!(arrays.ids, [97, 98]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn encode_with_dropout<T: Id>(
        &self,
        texts: &[Text<'_>],
        options: &EncodeOptions,
        dropout: Dropout,
        threads: usize,
    ) -> Result<Arrays<T>> {
        if dropout.probability == 0.0 {
            return self.encode_arrays(texts, options, threads);
        }
        if self.rules().symbols.is_some() {
            let reason = "dropout leaves out merges of bytes, and this tokenizer merges symbols with \
                          names";
            let place = "dropout".to_owned();
            return Err(Error::Unsupported { place, reason: reason.into() });
        }
        let candidates = match self.rule() {
            MergeRule::Ranks => MergeCandidates::Ranks(self.vocabulary()),
            MergeRule::Merges { .. } | MergeRule::Characters => {
                MergeCandidates::Merges(self.pairs()?)
            }
        };
        let symbols = &Symbols::new(self.vocabulary(), self.rule())?;
        let Dropout { probability, seed } = dropout;
        let state = || {
            let (random, heap, ids) = (DropoutRandom(seed), HeapMerge::default(), Vec::new());
            let tokenizer = self;
            DropoutCall { tokenizer, options, candidates, symbols, probability, random, heap, ids }
        };
        let encode = |call: &mut DropoutCall<'_>, part: &Part<'_>, ids: &mut Vec<T>| {
            call.ids.clear();
            call.random = DropoutRandom::of_text(seed, part.document);
            call.encode_text(part.text.read(&mut String::new())?)?;
            arrays::extend(ids, &call.ids)
        };
        let parts = (0..).zip(texts).flat_map(|(number, text)| arrays::cut(number, *text, None));
        let size: Size = texts.iter().map(Size::of).sum();
        let threads = parallel::worth(threads, size.units);
        arrays::encode_parts(parts, size, threads, state, encode)
    }
}

impl DropoutCall<'_> {
    fn encode_text(&mut self, text: &str) -> Result<()> {
        let (tokenizer, options) = (self.tokenizer, self.options);
        memory::extend(&mut self.ids, &options.prepend)?;
        tokenizer.encoder().divide(text, options, PartStart::Text, |part| match part {
            TextPart::Id(id) => memory::push(&mut self.ids, id),
            TextPart::Ordinary(part) => {
                // The splitter cannot be stopped, so after an error the other pretokens are passed over.
                let mut done = Ok(());
                tokenizer.splitter().for_each(part, |pretoken| {
                    if done.is_ok() {
                        done = self.encode_pretoken(pretoken.as_bytes());
                    }
                })?;
                done
            }
            TextPart::Pretokens(bytes, mut start, ends) => ends.iter().try_for_each(|&end| {
                let pretoken = &bytes[start..end];
                start = end;
                self.encode_pretoken(pretoken)
            }),
        })?;
        memory::extend(&mut self.ids, &options.append)
    }

    fn encode_pretoken(&mut self, pretoken: &[u8]) -> Result<()> {
        let encoder = self.tokenizer.encoder();
        let covered = encoder.uncovered.as_ref().map(|uncovered| uncovered.without(pretoken));
        let pretoken = covered.as_deref().unwrap_or(pretoken);
        let Self { candidates, symbols, probability, random, heap, ids, .. } = self;
        encoder.pretokens.divide(pretoken, |section| match section {
            PretokenPart::Id(id) => memory::push(ids, id),
            PretokenPart::Text(text) => {
                merge(heap, *candidates, symbols, text, || random.happens(*probability), ids)
            }
        })
    }
}

// ---------------------------------------------------------------------------- one pretoken
//
// Merges one pretoken and drops merges at random: BPE-dropout (Provilkov et al., arXiv 1910.13267).
//
// Before each merge, every adjacent pair that could merge is dropped with some probability. Of the
// other pairs, the one of lowest rank merges, leftmost among equals; if there is none, the
// pretoken is done. A pretoken that is a token is merged like any other, since otherwise most
// words would never be affected.
//
// Pairs are drawn in the order in which they would merge, up to the first that is not dropped:
// whether later ones are dropped makes no difference. The heap of `merge::heap` holds them.
//
// Under the rule of ranks, pairs are looked up by their joined bytes: the pair table contains only
// the pair that merges into each token when nothing is dropped.

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
    use crate::merge::merger;

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
            let table = merger::by_merges(&vocabulary, &merges).unwrap();
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
