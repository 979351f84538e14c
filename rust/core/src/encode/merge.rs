//! Bytes of one pretoken in, ids out: merge the best pair until none is left.
//!
//! The plain way, which the tests keep: look at all neighbours, merge the pair of the lowest rank,
//! the leftmost among equals, and look again. Two faster ways give the same ids:
//!
//! 1. Up to 64 bytes, parts stay where their first byte is. A word of 64 bits marks the places
//!    where a part starts, so that neighbours are found by counting zeros, nothing moves, and each
//!    merge looks up two pairs only. The next merge is the minimum of an array of ranks.
//! 2. Beyond that, where an array would cost quadratic time, the candidates wait in a queue over a
//!    linked list: O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pairs::{NO_MERGE, PairTable};

/// Longer pretokens (in bytes) take the way with the queue.
pub(super) const SHORT: usize = 64;

/// The ids of the single bytes.
pub(super) type ByteIds = [u32; 256];

/// Buffers of the way with the queue; empty between uses.
#[derive(Debug, Default)]
pub(super) struct MergeScratch {
    links: Vec<Link>,
    /// Candidate merges by rank, then from left to right.
    queue: BinaryHeap<Reverse<(u32, u32)>>,
}

/// A part of a long pretoken with the places of its neighbours.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// `GONE` once the part is merged into its left neighbour.
    id: u32,
    left: u32,
    right: u32,
}

const GONE: u32 = u32::MAX;

/// Append the ids of a pretoken; each of its bytes must have an id.
#[inline]
pub(super) fn merge(
    pairs: &PairTable,
    byte_ids: &ByteIds,
    pretoken: &[u8],
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    if pretoken.len() <= SHORT {
        merge_short(pairs, byte_ids, pretoken, out);
    } else {
        merge_long(pairs, byte_ids, pretoken, scratch, out);
    }
}

/// The first way: at most [`SHORT`] bytes.
fn merge_short(pairs: &PairTable, byte_ids: &ByteIds, pretoken: &[u8], out: &mut Vec<u32>) {
    let length = pretoken.len();
    let mut parts = Parts { ids: [0; SHORT], ranks: [NO_MERGE; SHORT], starts: u64::MAX, length };
    for (id, &byte) in parts.ids.iter_mut().zip(pretoken) {
        *id = byte_ids[usize::from(byte)];
    }
    for (rank, pair) in parts.ranks.iter_mut().zip(pretoken.windows(2)) {
        *rank = pairs.rank_of_bytes(pair[0], pair[1]);
    }
    parts.starts >>= SHORT - length.max(1);
    while let Some((at, rank)) = parts.lowest() {
        parts.apply(pairs, at, rank);
    }
    let mut starts = parts.starts;
    while starts != 0 {
        out.push(parts.ids[starts.trailing_zeros() as usize]);
        starts &= starts - 1;
    }
}

/// The parts of a short pretoken, each at the place of its first byte.
struct Parts {
    ids: [u32; SHORT],
    /// The rank of the merge of the part at a place with the part to its right.
    ranks: [u32; SHORT],
    /// A bit for each place where a part starts.
    starts: u64,
    length: usize,
}

impl Parts {
    /// The place and the rank of the next merge.
    #[inline]
    fn lowest(&self) -> Option<(usize, u32)> {
        let ranks = &self.ranks[..self.length];
        let rank = ranks.iter().copied().min().filter(|&rank| rank != NO_MERGE)?;
        let at = ranks.iter().position(|&other| other == rank)?;
        Some((at, rank))
    }

    /// Merge the part at `at` with its right neighbour.
    #[inline]
    fn apply(&mut self, pairs: &PairTable, at: usize, rank: u32) {
        let after = |place: usize| (u64::MAX << place) << 1;
        let right = (self.starts & after(at)).trailing_zeros() as usize;
        self.starts &= !(1 << right);
        self.ids[at] = pairs.id(rank);
        self.ranks[right] = NO_MERGE;
        let next = (self.starts & after(at)).trailing_zeros() as usize;
        self.ranks[at] = match self.ids.get(next) {
            Some(&id) => pairs.rank(self.ids[at], id),
            None => NO_MERGE,
        };
        let before = self.starts & !(u64::MAX << at);
        if before != 0 {
            let left = 63 - before.leading_zeros() as usize;
            self.ranks[left] = pairs.rank(self.ids[left], self.ids[at]);
        }
    }
}

/// The second way.
fn merge_long(
    pairs: &PairTable,
    byte_ids: &ByteIds,
    pretoken: &[u8],
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    let MergeScratch { links, queue } = scratch;
    links.clear();
    queue.clear();
    links.extend((0u32..).zip(pretoken).map(|(at, &byte)| Link {
        id: byte_ids[usize::from(byte)],
        left: at.wrapping_sub(1),
        right: at + 1,
    }));
    for at in (0u32..).take(links.len()) {
        offer(pairs, links, queue, at);
    }
    while let Some(Reverse((rank, at))) = queue.pop() {
        apply(pairs, links, queue, rank, at);
    }
    out.extend(links.iter().map(|link| link.id).filter(|&id| id != GONE));
}

/// Put the merge of the part at `at` with its right neighbour into the queue, if there is one.
fn offer(pairs: &PairTable, links: &[Link], queue: &mut BinaryHeap<Reverse<(u32, u32)>>, at: u32) {
    let link = links[at as usize];
    if let Some(right) = links.get(link.right as usize) {
        let rank = pairs.rank(link.id, right.id);
        if rank != NO_MERGE {
            queue.push(Reverse((rank, at)));
        }
    }
}

/// Merge the part at `at` with its right neighbour, unless the candidate is out of date.
fn apply(
    pairs: &PairTable,
    links: &mut [Link],
    queue: &mut BinaryHeap<Reverse<(u32, u32)>>,
    rank: u32,
    at: u32,
) {
    let link = links[at as usize];
    let Some(&right) = links.get(link.right as usize) else { return };
    if link.id == GONE || pairs.rank(link.id, right.id) != rank {
        return;
    }
    links[link.right as usize].id = GONE;
    links[at as usize] = Link { id: pairs.id(rank), left: link.left, right: right.right };
    if let Some(next) = links.get_mut(right.right as usize) {
        next.left = at;
    }
    offer(pairs, links, queue, at);
    if (link.left as usize) < links.len() {
        offer(pairs, links, queue, link.left);
    }
}

/// The parts to which `ids` come down when only merges of a rank below `limit` are allowed.
///
/// The plain way: quadratic, for tokens, which are short, and the twin of the fast ways in tests.
pub(super) fn merge_below(pairs: &PairTable, mut ids: Vec<u32>, limit: u32) -> Vec<u32> {
    let lowest = |ids: &[u32]| {
        let ranked =
            ids.windows(2).enumerate().map(|(at, pair)| (pairs.rank(pair[0], pair[1]), at));
        ranked.min().filter(|&(rank, _)| rank < limit)
    };
    while let Some((rank, at)) = lowest(&ids) {
        ids[at] = pairs.id(rank);
        ids.remove(at + 1);
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::super::together::{self, Parts, TURNS};
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
        std::array::from_fn(|b| vocabulary.id(&[u8::try_from(b).unwrap()]).unwrap_or(GONE))
    }

    /// All ways on one text.
    fn check(vocabulary: &Vocabulary, rule: &MergeRule, text: &[u8]) {
        let pairs = PairTable::new(vocabulary, rule).unwrap();
        let byte_ids = byte_ids(vocabulary);
        let ids = text.iter().map(|&b| byte_ids[usize::from(b)]).collect();
        let plain = merge_below(&pairs, ids, NO_MERGE);
        let mut out = Vec::new();
        merge_long(&pairs, &byte_ids, text, &mut MergeScratch::default(), &mut out);
        assert_eq!(out, plain, "the queue");
        for part in text.chunks(SHORT) {
            let ids = part.iter().map(|&b| byte_ids[usize::from(b)]).collect();
            let mut out = Vec::new();
            merge_short(&pairs, &byte_ids, part, &mut out);
            assert_eq!(out, merge_below(&pairs, ids, NO_MERGE), "the array");
        }
        let pretokens: Vec<&[u8]> = text.chunks(LONGEST).collect();
        for group in pretokens.chunks(TURNS) {
            let parts = group.iter().map(|pretoken| Parts::new(&pairs, &byte_ids, pretoken));
            let mut parts: Vec<Parts> = parts.collect();
            together::merge(&pairs, &mut parts);
            for (parts, pretoken) in parts.iter().zip(group) {
                let ids = pretoken.iter().map(|&b| byte_ids[usize::from(b)]).collect();
                let mut out = Vec::new();
                parts.write(&mut out);
                assert_eq!(out, merge_below(&pairs, ids, NO_MERGE), "side by side");
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

    #[test]
    fn a_megabyte_without_a_split_point_takes_the_queue() {
        let vocabulary = vocabulary(&[vec![0, 0], vec![0, 0, 0, 0]]);
        let pairs = PairTable::new(&vocabulary, &MergeRule::Ranks).unwrap();
        let mut out = Vec::new();
        let text = vec![0; 1 << 20];
        merge(&pairs, &byte_ids(&vocabulary), &text, &mut MergeScratch::default(), &mut out);
        assert_eq!(out, vec![4; 1 << 18]);
    }
}
