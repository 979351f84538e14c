//! Bytes of one pretoken in, ids out: merge the best pair until none is left.
//!
//! Two ways with equal results. A short pretoken is an array that shrinks: look for the merge of
//! the lowest rank, the leftmost among equals, apply it, look again. A long one would be quadratic
//! so, and uses a queue of candidate merges over a linked list: O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pairs::{Merge, PairTable};

/// Longer pretokens (in bytes) take the way with the queue.
const SHORT: usize = 64;

/// No merge: a rank that is above all others.
const NONE: u32 = u32::MAX;

/// Buffers that a merge needs; empty between uses.
#[derive(Debug, Default)]
pub(super) struct MergeScratch {
    /// The parts of a short pretoken.
    parts: Vec<Part>,
    /// The parts of a long pretoken, linked.
    links: Vec<Link>,
    /// Candidate merges of a long pretoken, by rank, then from left to right.
    queue: BinaryHeap<Reverse<(Merge, u32)>>,
}

/// A part of a short pretoken, and the merge with the part to its right.
#[derive(Debug, Clone, Copy)]
struct Part {
    id: u32,
    next: Merge,
}

/// A part of a long pretoken with the places of its neighbours.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// `NONE` once the part is merged into its left neighbour.
    id: u32,
    left: u32,
    right: u32,
}

/// Append the ids of a pretoken, given as the ids of its bytes.
pub(super) fn merge(
    pairs: &PairTable,
    byte_ids: impl ExactSizeIterator<Item = u32>,
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    if byte_ids.len() <= SHORT {
        merge_short(pairs, byte_ids, &mut scratch.parts, out);
    } else {
        merge_long(pairs, byte_ids, scratch, out);
    }
}

/// The parts to which `ids` come down when only merges of a rank below `limit` are allowed.
/// Quadratic: for tokens, which are short.
pub(super) fn merge_below(pairs: &PairTable, mut ids: Vec<u32>, limit: u32) -> Vec<u32> {
    let candidate = |ids: &[u32], at: usize| pairs.get(ids[at], ids[at + 1]).map(|m| (m, at));
    while let Some((merge, at)) =
        (0..ids.len().saturating_sub(1)).filter_map(|at| candidate(&ids, at)).min()
        && merge.rank < limit
    {
        ids[at] = merge.id;
        ids.remove(at + 1);
    }
    ids
}

fn best(pairs: &PairTable, left: u32, right: u32) -> Merge {
    pairs.get(left, right).unwrap_or(Merge { rank: NONE, id: NONE })
}

fn merge_short(
    pairs: &PairTable,
    byte_ids: impl Iterator<Item = u32>,
    parts: &mut Vec<Part>,
    out: &mut Vec<u32>,
) {
    parts.clear();
    parts.extend(byte_ids.map(|id| Part { id, next: Merge { rank: NONE, id: NONE } }));
    for i in 1..parts.len() {
        parts[i - 1].next = best(pairs, parts[i - 1].id, parts[i].id);
    }
    while let Some((at, part)) = parts.iter().enumerate().min_by_key(|(_, part)| part.next.rank)
        && part.next.rank != NONE
    {
        parts[at].id = part.next.id;
        parts.remove(at + 1);
        parts[at].next = parts
            .get(at + 1)
            .map_or(Merge { rank: NONE, id: NONE }, |right| best(pairs, parts[at].id, right.id));
        if at > 0 {
            parts[at - 1].next = best(pairs, parts[at - 1].id, parts[at].id);
        }
    }
    out.extend(parts.iter().map(|part| part.id));
}

fn merge_long(
    pairs: &PairTable,
    byte_ids: impl Iterator<Item = u32>,
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    let MergeScratch { links, queue, .. } = scratch;
    links.clear();
    queue.clear();
    links.extend((0u32..).zip(byte_ids).map(|(at, id)| Link {
        id,
        left: at.wrapping_sub(1),
        right: at + 1,
    }));
    for at in (0u32..).take(links.len()) {
        offer(pairs, links, queue, at);
    }
    while let Some(Reverse((merge, at))) = queue.pop() {
        apply(pairs, links, queue, merge, at);
    }
    out.extend(links.iter().map(|link| link.id).filter(|&id| id != NONE));
}

/// Put the merge of the part at `at` with its right neighbour into the queue, if there is one.
fn offer(
    pairs: &PairTable,
    links: &[Link],
    queue: &mut BinaryHeap<Reverse<(Merge, u32)>>,
    at: u32,
) {
    let link = links[at as usize];
    if let Some(right) = links.get(link.right as usize)
        && let Some(merge) = pairs.get(link.id, right.id)
    {
        queue.push(Reverse((merge, at)));
    }
}

/// Merge the part at `at` with its right neighbour, unless the candidate is out of date.
fn apply(
    pairs: &PairTable,
    links: &mut [Link],
    queue: &mut BinaryHeap<Reverse<(Merge, u32)>>,
    merge: Merge,
    at: u32,
) {
    let link = links[at as usize];
    let Some(&right) = links.get(link.right as usize) else { return };
    if link.id == NONE || pairs.get(link.id, right.id) != Some(merge) {
        return;
    }
    links[link.right as usize].id = NONE;
    links[at as usize] = Link { id: merge.id, left: link.left, right: right.right };
    if let Some(next) = links.get_mut(right.right as usize) {
        next.left = at;
    }
    offer(pairs, links, queue, at);
    if (link.left as usize) < links.len() {
        offer(pairs, links, queue, link.left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{MergeRule, Vocabulary};
    use proptest::prelude::*;

    /// Bytes a, b, c, and random longer tokens over them.
    fn table(tokens: &[Vec<u8>]) -> PairTable {
        let mut all: Vec<Vec<u8>> = vec![vec![0], vec![1], vec![2]];
        all.extend(tokens.iter().cloned());
        let mut seen = std::collections::HashSet::new();
        all.retain(|token| seen.insert(token.clone()));
        let vocabulary = Vocabulary::new(all.into_iter().zip(0u32..), []).unwrap();
        PairTable::new(&vocabulary, &MergeRule::Ranks).unwrap()
    }

    proptest! {
        #[test]
        fn long_and_short_agree(
            tokens in prop::collection::vec(prop::collection::vec(0u8..3, 2..6), 0..30),
            text in prop::collection::vec(0u32..3, 1..200),
        ) {
            let pairs = table(&tokens);
            let (mut short, mut long) = (Vec::new(), Vec::new());
            let mut scratch = MergeScratch::default();
            merge_short(&pairs, text.iter().copied(), &mut scratch.parts, &mut short);
            merge_long(&pairs, text.iter().copied(), &mut scratch, &mut long);
            prop_assert_eq!(short, long);
        }
    }

    #[test]
    fn a_megabyte_without_a_split_point_takes_the_queue() {
        let pairs = table(&[vec![0, 0], vec![0, 0, 0, 0]]);
        let mut out = Vec::new();
        merge(&pairs, vec![0; 1 << 20].into_iter(), &mut MergeScratch::default(), &mut out);
        assert_eq!(out, vec![4; 1 << 18]);
    }
}
