//! The pairs of a vocabulary of ranks: for each token the one pair that ever merges into it.
//!
//! Under the rule of ranks two neighbours merge when their joined bytes are a token, the lowest rank
//! first. There are many ways to cut a token in two tokens, but only one of them occurs. For take a
//! merge that makes token `t` somewhere in a text. No merge before it crossed the ends of `t`, since
//! parts only grow; and each of those within was, at its time, the lowest in the whole text, the
//! leftmost among equals, and so in the bytes of `t` too. So they are the merges that the bytes of
//! `t` alone go through, one by one, and the pair is what these have come down to at the last but one.
//!
//! That is how the pairs are found: each token is merged by itself, the shorter ones first, since all
//! merges within a token make shorter ones. Where more than two parts are left, no merge makes it.

use super::NO_ID;
use super::merge::{self, ByteIds, MergeScratch};
use super::pairs::{Building, PairTable};
use crate::vocabulary::Vocabulary;

/// The pair of each token, with the id of the token as its rank.
pub(super) fn find(vocabulary: &Vocabulary, byte_ids: &ByteIds) -> PairTable {
    let covered = |token: &[u8]| token.iter().all(|&byte| byte_ids[usize::from(byte)] != NO_ID);
    let tokens = vocabulary.ordinary_tokens();
    let mut tokens: Vec<_> =
        tokens.filter(|(token, _)| token.len() > 1 && covered(token)).collect();
    tokens.sort_by_key(|(token, _)| token.len());
    let mut shorter = Building::with_room(vocabulary.len(), Vec::new());
    let mut pairs = vec![None; vocabulary.len()];
    let (mut scratch, mut parts) = (MergeScratch::default(), Vec::new());
    for (token, id) in tokens {
        parts.clear();
        merge::merge_at_once(&shorter, byte_ids, token, &mut scratch, &mut parts);
        if let &[left, right] = &*parts {
            shorter.insert(left, right, id);
            pairs[id as usize] = Some((left, right));
        }
        if let &[left, right] = token {
            shorter.insert_bytes(left, right, id);
        }
    }
    in_order(&pairs, vocabulary, byte_ids)
}

/// The table of the pairs of all ids, put in in the order of the ids, as the native file has it.
fn in_order(
    pairs: &[Option<(u32, u32)>],
    vocabulary: &Vocabulary,
    byte_ids: &ByteIds,
) -> PairTable {
    let mut building = Building::with_room(pairs.len(), Vec::new());
    for (id, pair) in (0..).zip(pairs) {
        if let &Some((left, right)) = pair {
            building.insert(left, right, id);
        }
    }
    building.finish(vocabulary, byte_ids)
}
