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
//! that no training made, it is merged by looking its bytes up.

use super::merge::{self, ByteIds, MergeScratch};
use super::pairs::{NO_MERGE, PairTable};
use crate::vocabulary::Vocabulary;

/// Put the pair of each token into a table, with the id of the token as its rank.
pub(super) fn fill(pairs: &mut PairTable, byte_ids: &ByteIds, vocabulary: &Vocabulary) {
    let (mut scratch, mut parts) = (MergeScratch::default(), Vec::new());
    let covered = |token: &[u8]| token.iter().all(|&byte| byte_ids[usize::from(byte)] != NO_MERGE);
    for (token, id) in vocabulary.ordinary_tokens() {
        if token.len() < 2 || !covered(token) {
            continue;
        }
        parts.clear();
        merge::merge(pairs, byte_ids, token, &mut scratch, &mut parts);
        let pair = match parts[..] {
            [left, right] => Some((left, right)),
            _ => last_pair(vocabulary, token),
        };
        if let Some((left, right)) = pair {
            pairs.insert(left, right, id);
            if let &[left, right] = token {
                pairs.insert_bytes(left, right, id);
            }
        }
    }
}

/// The two parts that merge last when the bytes of a token are merged by looking them up, or `None`
/// if they do not come down to the token.
fn last_pair(vocabulary: &Vocabulary, token: &[u8]) -> Option<(u32, u32)> {
    let mut ends: Vec<usize> = (0..=token.len()).collect();
    while ends.len() > 3 {
        let joined = ends.windows(3).enumerate();
        let ranked = joined
            .filter_map(|(at, ends)| Some((vocabulary.id(&token[ends[0]..ends[2]])?, at + 1)));
        ends.remove(ranked.min()?.1);
    }
    let id = |start: usize, end: usize| vocabulary.id(&token[start..end]);
    Some((id(0, ends[1])?, id(ends[1], token.len())?))
}
