//! The pairs of a vocabulary of ranks: for each token the one pair that ever merges into it.
//!
//! Under the rule of ranks two neighbours merge when their joined bytes are a token, the lowest rank
//! first. There are many ways to cut a token in two tokens, but only one of them occurs. For take a
//! merge that makes token `t` somewhere in a text. No merge before it crossed the ends of `t`, since
//! parts only grow; and each of those within was, at its time, the lowest in the whole text, the
//! leftmost among equals, and so in the bytes of `t` too. So they are the merges that the bytes of
//! `t` alone go through, one by one, and the pair is what these have come down to at the last but one.
//!
//! That is how the pairs are found: the tokens are merged by themselves, in the order of their ranks,
//! with the pairs found so far. Where these do not bring a token down to two parts, as in vocabularies
//! that no training made, looking the bytes of the parts up goes on.

use super::NO_ID;
use super::buckets::Buckets;
use super::merge::{self, ByteIds, MergeScratch};
use super::pairs::{NO_MERGE, Pairs};
use crate::lanes::Lanes;
use crate::pages::Words;
use crate::vocabulary::Vocabulary;

/// The pairs found so far.
struct Found {
    buckets: Buckets<Words>,
    /// The ranks of all pairs of bytes.
    bytes: Vec<u32>,
}

/// The pair of each token, with the id of the token as its rank, and the ranks of all pairs of bytes.
pub(super) fn find(vocabulary: &Vocabulary, byte_ids: &ByteIds) -> (Buckets, Vec<u32>) {
    let buckets = Buckets::with_room(vocabulary.len());
    let mut found = Found { buckets, bytes: vec![NO_MERGE; 1 << 16] };
    let (mut scratch, mut parts) = (MergeScratch::default(), Vec::new());
    let covered = |token: &[u8]| token.iter().all(|&byte| byte_ids[usize::from(byte)] != NO_ID);
    for (token, id) in vocabulary.ordinary_tokens() {
        if token.len() < 2 || !covered(token) {
            continue;
        }
        parts.clear();
        merge::merge(&found, byte_ids, token, &mut scratch, &mut parts);
        if parts.len() > 2 {
            merge_by_bytes(vocabulary, &mut parts);
        }
        if let &[left, right] = &*parts {
            found.buckets.insert(left, right, id);
        }
        if let &[left, right] = token {
            found.bytes[usize::from(left) << 8 | usize::from(right)] = id;
        }
    }
    (found.buckets.finish(), found.bytes)
}

impl Pairs for Found {
    #[expect(clippy::inline_always, reason = "for the instructions of the caller")]
    #[inline(always)]
    fn rank(&self, left: u32, right: u32, lanes: impl Lanes) -> u32 {
        self.buckets.rank(left, right, lanes)
    }

    #[inline]
    fn prefetch(&self, left: u32, right: u32) {
        self.buckets.prefetch(left, right);
    }

    #[inline]
    fn rank_of_bytes(&self, left: u8, right: u8) -> u32 {
        self.bytes[usize::from(left) << 8 | usize::from(right)]
    }

    #[inline]
    fn id(&self, rank: u32) -> u32 {
        rank
    }
}

/// Merge the parts of a token until two are left or nothing merges, by looking their bytes up.
fn merge_by_bytes(vocabulary: &Vocabulary, parts: &mut Vec<u32>) {
    let bytes = |id: u32| vocabulary.bytes(id).unwrap_or_default();
    let joined = |left: u32, right: u32| vocabulary.id(&[bytes(left), bytes(right)].concat());
    let rank = |pair: &[u32]| joined(pair[0], pair[1]).unwrap_or(NO_MERGE);
    let mut ranks: Vec<u32> = parts.windows(2).map(rank).collect();
    while parts.len() > 2 {
        let lowest = ranks.iter().copied().fold(NO_MERGE, u32::min);
        let Some(at) = ranks.iter().position(|&rank| rank == lowest && rank != NO_MERGE) else {
            return;
        };
        parts[at] = lowest;
        parts.remove(at + 1);
        ranks.remove(at);
        for pair in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            if let Some(two) = parts.get(pair..pair + 2) {
                ranks[pair] = rank(two);
            }
        }
    }
}
