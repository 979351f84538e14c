//! Bytes of one pretoken in, ids out: merge the best pair until none is left.
//!
//! The plain way, which the tests keep: look at all neighbours, merge the pair of the lowest rank,
//! the leftmost among equals, and look again. Three faster ways give the same ids:
//!
//! 1. Up to 63 bytes, [`Parts`] find the next merge as the minimum of an array.
//! 2. Beyond that, [`runs`] of equal bytes are merged as a whole, where there is little else.
//! 3. Where there is, and to look at all ranks for each merge would cost quadratic time, places wait
//!    in a list for each rank, and only the ranks that occur stand in a queue. Some ten thousand bytes
//!    have few ranks, so this takes about linear time.
//!
//! Longer pretokens are merged in [`windows`], so that they take no more memory than that.

mod windows;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::pairs::{NO_MERGE, PairTable, Pairs};
use super::parts::Parts;
use super::runs;
use crate::lanes::{self, Lanes, Plain, Work};
use windows::{SIZES, Windows};

/// Longer pretokens (in bytes) take the way with the queue.
pub(super) const SHORT: usize = Parts::<64>::MOST;

/// The ids of the single bytes.
pub(super) type ByteIds = [u32; 256];

/// Buffers of the way with the queue.
#[derive(Debug, Default)]
pub(super) struct MergeScratch {
    parts: LongParts,
    waiting: Waiting,
}

/// The parts of a long pretoken, each at the place of its first byte.
#[derive(Debug, Default)]
struct LongParts {
    ids: Vec<u32>,
    /// The rank of the merge of the part at a place with the part to its right.
    ranks: Vec<u32>,
    /// A bit for each place where a part starts, and one for the end of the pretoken.
    starts: Vec<u64>,
}

/// Places by the rank of the merge that waits there; out of date where another rank stands there now.
#[derive(Debug, Default)]
struct Waiting {
    places: HashMap<u32, Vec<u32>, FixedState>,
    /// The ranks that have places.
    queue: BinaryHeap<Reverse<u32>>,
    /// Lists that are empty, for the next rank.
    spare: Vec<Vec<u32>>,
}

/// Append the ids of a pretoken; each of its bytes must have an id.
#[inline]
pub(super) fn merge(
    pairs: &PairTable,
    byte_ids: &ByteIds,
    pretoken: &[u8],
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    if pretoken.len() <= SIZES.window {
        merge_at_once(pairs, byte_ids, pretoken, scratch, out);
    } else if !runs::merge(pairs, byte_ids, pretoken, out) {
        Windows { pairs, byte_ids, scratch, out, sizes: SIZES }.merge(pretoken);
    }
}

/// The same, whatever it takes.
#[inline]
pub(super) fn merge_at_once(
    pairs: &impl Pairs,
    byte_ids: &ByteIds,
    pretoken: &[u8],
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    if pretoken.len() <= SHORT {
        merge_short(pairs, byte_ids, pretoken, out);
    } else if !runs::merge(pairs, byte_ids, pretoken, out) {
        merge_long(pairs, byte_ids, pretoken, scratch, out);
    }
}

/// The first way: at most [`SHORT`] bytes.
fn merge_short(pairs: &impl Pairs, byte_ids: &ByteIds, pretoken: &[u8], out: &mut Vec<u32>) {
    lanes::run(Short { pairs, byte_ids, pretoken, out });
}

struct Short<'a, P> {
    pairs: &'a P,
    byte_ids: &'a ByteIds,
    pretoken: &'a [u8],
    out: &'a mut Vec<u32>,
}

impl<P: Pairs> Work for Short<'_, P> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "`Work` asks for it")]
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        match self.pretoken.len() {
            ..16 => self.merge::<16>(lanes),
            16..32 => self.merge::<32>(lanes),
            _ => self.merge::<64>(lanes),
        }
    }
}

impl<P: Pairs> Short<'_, P> {
    #[expect(clippy::inline_always, reason = "`Work` asks for it")]
    #[inline(always)]
    fn merge<const PLACES: usize>(self, lanes: impl Lanes) {
        let mut parts = Parts::<PLACES>::new(self.pairs, self.byte_ids, self.pretoken);
        while parts.turn(self.pairs, lanes) {}
        parts.write(self.out);
    }
}

/// The third way.
fn merge_long(
    pairs: &impl Pairs,
    byte_ids: &ByteIds,
    pretoken: &[u8],
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    let MergeScratch { parts, waiting } = scratch;
    parts.fill(pairs, byte_ids, pretoken);
    for (place, &rank) in (0..).zip(&parts.ranks) {
        waiting.add(rank, place);
    }
    while let Some((rank, places)) = waiting.lowest() {
        let done = places.iter().position(|&place| {
            // Two new pairs; if one of them goes before the places that are left, these wait again.
            parts.ranks[place as usize] == rank && parts.apply(pairs, place, rank, waiting) < rank
        });
        let left = done.map_or(&[][..], |done| &places[done + 1..]);
        for &place in left {
            waiting.add(rank, place);
        }
        waiting.keep(places);
    }
    let mut at = Some(0);
    while let Some(place) = at.filter(|&place| place < pretoken.len()) {
        out.push(parts.ids[place]);
        at = parts.next(place);
    }
    if pretoken.len() > SIZES.window {
        *parts = LongParts::default();
    }
}

impl LongParts {
    fn fill(&mut self, pairs: &impl Pairs, byte_ids: &ByteIds, pretoken: &[u8]) {
        let ranks = pretoken.windows(2).map(|pair| pairs.rank_of_bytes(pair[0], pair[1]));
        self.ids.clear();
        self.ids.extend(pretoken.iter().map(|&byte| byte_ids[usize::from(byte)]));
        self.ranks.clear();
        self.ranks.extend(ranks.chain([NO_MERGE]));
        self.starts.clear();
        self.starts.resize(pretoken.len() / 64 + 1, u64::MAX);
    }

    /// The next start behind a place, or the end.
    #[inline]
    fn next(&self, place: usize) -> Option<usize> {
        let mut word = (place + 1) / 64;
        let mut bits = self.starts.get(word)? & u64::MAX << ((place + 1) % 64);
        while bits == 0 {
            word += 1;
            bits = *self.starts.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// The start before a place, if there is one.
    #[inline]
    fn before(&self, place: usize) -> Option<usize> {
        let mut word = place / 64;
        let mut bits = self.starts[word] & !(u64::MAX << (place % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.starts[word];
        }
        Some(word * 64 + 63 - bits.leading_zeros() as usize)
    }

    /// Merge the part at `place` with its right neighbour; the lower rank of the two new pairs.
    fn apply(&mut self, pairs: &impl Pairs, place: u32, rank: u32, waiting: &mut Waiting) -> u32 {
        let at = place as usize;
        let right = self.next(at).expect("a pair has two parts");
        self.starts[right / 64] &= !(1 << (right % 64));
        self.ranks[right] = NO_MERGE;
        self.ids[at] = pairs.id(rank);
        let next = self.next(at).and_then(|next| self.ids.get(next));
        let behind = next.map_or(NO_MERGE, |&id| pairs.rank(self.ids[at], id, Plain));
        self.ranks[at] = behind;
        waiting.add(behind, place);
        let Some(left) = self.before(at) else { return behind };
        let before = pairs.rank(self.ids[left], self.ids[at], Plain);
        self.ranks[left] = before;
        waiting.add(before, u32::try_from(left).expect("left of a place"));
        behind.min(before)
    }
}

impl Waiting {
    #[inline]
    fn add(&mut self, rank: u32, place: u32) {
        if rank == NO_MERGE {
            return;
        }
        let Self { places, queue, spare } = self;
        let places = places.entry(rank).or_insert_with(|| {
            queue.push(Reverse(rank));
            spare.pop().unwrap_or_default()
        });
        places.push(place);
    }

    /// The lowest rank and its places from left to right.
    fn lowest(&mut self) -> Option<(u32, Vec<u32>)> {
        let Reverse(rank) = self.queue.pop()?;
        let mut places = self.places.remove(&rank).expect("it is in the queue");
        if !places.is_sorted() {
            places.sort_unstable();
        }
        Some((rank, places))
    }

    /// Keep the memory of a list, if it is not much: of all lists at most 4 MiB.
    fn keep(&mut self, mut places: Vec<u32>) {
        if places.capacity() <= 1 << 8 && self.spare.len() < 1 << 12 {
            places.clear();
            self.spare.push(places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs::PairTable;
    use super::super::together::{self, TURNS};
    use super::windows::Sizes;
    use super::*;
    use crate::key::LONGEST;
    use crate::vocabulary::{MergeRule, Vocabulary};
    use proptest::prelude::*;

    /// Bytes 0, 1, 2 with ids that are not their values, and random longer tokens over them.
    fn vocabulary(tokens: &[Vec<u8>]) -> Vocabulary {
        let mut all: Vec<Vec<u8>> = vec![vec![2], vec![0], vec![1]];
        all.extend(tokens.iter().cloned());
        let mut seen = std::collections::HashSet::new();
        all.retain(|token| seen.insert(token.clone()));
        Vocabulary::new(all.into_iter().zip(0u32..), []).unwrap()
    }

    fn byte_ids(vocabulary: &Vocabulary) -> ByteIds {
        std::array::from_fn(|b| vocabulary.id(&[u8::try_from(b).unwrap()]).unwrap_or(u32::MAX))
    }

    /// The plain way: look at all neighbours, merge the best, and look again.
    fn plain(vocabulary: &Vocabulary, rule: &MergeRule, text: &[u8]) -> Vec<u32> {
        let mut parts: Vec<Vec<u8>> = text.iter().map(|&byte| vec![byte]).collect();
        let rank = |left: &[u8], right: &[u8]| match rule {
            MergeRule::Ranks => vocabulary.id(&[left, right].concat()),
            MergeRule::Merges { merges, .. } => {
                let pair = vocabulary.id(left).zip(vocabulary.id(right));
                let at = merges.iter().position(|&merge| Some(merge) == pair)?;
                u32::try_from(at).ok()
            }
        };
        loop {
            let pairs = parts.windows(2).enumerate();
            let ranked = pairs.filter_map(|(at, pair)| Some((rank(&pair[0], &pair[1])?, at)));
            let Some((_, at)) = ranked.min() else { break };
            let right = parts.remove(at + 1);
            parts[at].extend(right);
        }
        parts.iter().map(|part| vocabulary.id(part).unwrap()).collect()
    }

    /// All ways on one text.
    fn check(vocabulary: &Vocabulary, rule: &MergeRule, text: &[u8]) {
        let byte_ids = byte_ids(vocabulary);
        let pairs = PairTable::new(vocabulary, rule, &byte_ids).unwrap();
        let mut out = Vec::new();
        merge_long(&pairs, &byte_ids, text, &mut MergeScratch::default(), &mut out);
        assert_eq!(out, plain(vocabulary, rule, text), "the queue");
        for (window, few) in [(1, 1), (7, 1), (20, 1), (20, 2), (40, 1)] {
            let (pairs, byte_ids, sizes) = (&pairs, &byte_ids, Sizes { window, few });
            let (scratch, mut out) = (&mut MergeScratch::default(), Vec::new());
            Windows { pairs, byte_ids, scratch, out: &mut out, sizes }.merge(text);
            assert_eq!(out, plain(vocabulary, rule, text), "{sizes:?}");
        }
        for length in [SHORT, 31, LONGEST] {
            for part in text.chunks(length) {
                let mut out = Vec::new();
                merge_short(&pairs, &byte_ids, part, &mut out);
                assert_eq!(out, plain(vocabulary, rule, part), "the array");
            }
        }
        let pretokens: Vec<&[u8]> = text.chunks(LONGEST).collect();
        for group in pretokens.chunks(TURNS) {
            let parts = group.iter().map(|pretoken| Parts::new(&pairs, &byte_ids, pretoken));
            let mut parts: Vec<Parts<{ LONGEST + 1 }>> = parts.collect();
            together::merge(&pairs, &mut parts);
            for (parts, pretoken) in parts.iter().zip(group) {
                let mut out = Vec::new();
                parts.write(&mut out);
                assert_eq!(out, plain(vocabulary, rule, pretoken), "side by side");
            }
        }
    }

    proptest! {
        #[test]
        fn all_ways_agree_on_ranks(
            tokens in prop::collection::vec(prop::collection::vec(0u8..3, 2..6), 0..30),
            text in prop::collection::vec(0u8..3, 1..200),
        ) {
            check(&vocabulary(&tokens), &MergeRule::Ranks, &text);
        }

        /// Merges in any order, also such that use a token before its own merge.
        #[test]
        fn all_ways_agree_on_merges(
            tokens in prop::collection::vec(prop::collection::vec(0u8..3, 2..6), 1..30),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            text in prop::collection::vec(0u8..3, 1..200),
        ) {
            let vocabulary = vocabulary(&tokens);
            let cuts: Vec<(u32, u32)> = vocabulary.ordinary_tokens().flat_map(|(token, _)| {
                (1..token.len())
                    .filter_map(|at| vocabulary.id(&token[..at]).zip(vocabulary.id(&token[at..])))
                    .collect::<Vec<_>>()
            }).collect();
            if !cuts.is_empty() {
                let merges = order.iter().map(|index| *index.get(&cuts)).collect();
                check(&vocabulary, &MergeRule::Merges { merges, ignore_merges: false }, &text);
            }
        }
    }

    proptest! {
        #[test]
        fn runs_are_merged_as_their_bytes_are(
            tokens in prop::collection::vec(
                prop::collection::vec((0u8..3, 1usize..9), 1..3), 0..30),
            runs in prop::collection::vec((0u8..3, 1usize..60), 1..5),
        ) {
            let bytes = |runs: &[(u8, usize)]| -> Vec<u8> {
                runs.iter().flat_map(|&(byte, count)| vec![byte; count]).collect()
            };
            let tokens: Vec<Vec<u8>> = tokens.iter().map(|token| bytes(token)).collect();
            let (vocabulary, text) = (vocabulary(&tokens), bytes(&runs));
            let byte_ids = byte_ids(&vocabulary);
            let pairs = PairTable::new(&vocabulary, &MergeRule::Ranks, &byte_ids).unwrap();
            let mut out = Vec::new();
            if runs::merge(&pairs, &byte_ids, &text, &mut out) {
                prop_assert_eq!(out, plain(&vocabulary, &MergeRule::Ranks, &text));
            }
        }
    }

    #[test]
    fn a_megabyte_without_a_split_point_takes_the_queue() {
        let vocabulary = vocabulary(&[vec![0, 0], vec![0, 0, 0, 0]]);
        let byte_ids = byte_ids(&vocabulary);
        let pairs = PairTable::new(&vocabulary, &MergeRule::Ranks, &byte_ids).unwrap();
        let mut out = Vec::new();
        let text = vec![0; 1 << 20];
        merge(&pairs, &byte_ids, &text, &mut MergeScratch::default(), &mut out);
        assert_eq!(out, vec![4; 1 << 18]);
    }
}
