//! Builds the table of the pairs that merge, for either rule.
//!
//! Under the rule of merges, the pairs are listed. Under the rule of ranks, two adjacent parts
//! merge if their joined bytes are a token, the lowest rank first. A token may split into two
//! tokens in many ways, but only one of these pairs ever merges. Proof: consider a merge that
//! creates token `t` anywhere in a text. No earlier merge crossed the ends of `t`, because parts
//! only grow. Each merge within `t` had, at its time, the lowest rank in the whole text, leftmost
//! among equals, and therefore also within the bytes of `t`. So these are the same merges as for
//! the bytes of `t` alone, and the pair consists of the two parts that remain before the last of
//! them.
//!
//! So the pair of each token is found by merging its bytes without the token itself. Tokens are
//! processed in order of length, because all merges within a token create shorter tokens. If more
//! than two parts remain, no merge creates the token.

use crate::error::{Error, Result};
use crate::memory;
use crate::merge::heap;
use crate::merge::merger::{self, MergeScratch};
use crate::merge::pair_table::{MAX_RANKS, PairTable, PairTableBuilder};
use crate::merge::symbols::Symbols;
use crate::vocabulary::{PairLookup, Vocabulary};

/// The table of the rule of ranks: one pair for each token, with the id of the token as rank.
pub(crate) fn by_rank(vocabulary: &Vocabulary) -> Result<PairTable> {
    let symbols = Symbols::bytes(vocabulary);
    let covered = |token: &[u8]| symbols.uncovered(token).is_none();
    let tokens = vocabulary.ordinary_tokens();
    let tokens = tokens.filter(|(token, _)| token.len() > 1 && covered(token));
    let mut tokens = memory::collect(tokens)?;
    // Sorting takes as much memory as the tokens; merging the longest token is checked below.
    memory::check(size_of_val(&*tokens))?;
    tokens.sort_by_key(|(token, _)| token.len());
    heap::check(tokens.last().map_or(0, |(token, _)| token.len()))?;
    let mut shorter = PairTableBuilder::with_capacity(vocabulary.len(), Vec::new())?;
    let mut pairs = memory::filled(None, vocabulary.len())?;
    let (mut scratch, mut parts) = (MergeScratch::default(), Vec::new());
    for (token, id) in tokens {
        parts.clear();
        merger::merge(&shorter, &symbols, token, &mut scratch, &mut parts);
        if let &[left, right] = &*parts {
            shorter.insert(left, right, id);
            pairs[id as usize] = Some((left, right));
        }
        if let &[left, right] = token {
            shorter.insert_bytes(left, right, id);
        }
    }
    in_order(&pairs, vocabulary)
}

/// Build the table from the pairs of all ids, inserted in id order as the native file requires.
fn in_order(pairs: &[Option<(u32, u32)>], vocabulary: &Vocabulary) -> Result<PairTable> {
    let mut builder = PairTableBuilder::with_capacity(pairs.len(), Vec::new())?;
    for (id, pair) in (0..).zip(pairs) {
        if let &Some((left, right)) = pair {
            builder.insert(left, right, id);
        }
    }
    Ok(builder.finish(vocabulary))
}

/// The table of the rule of merges: the listed pairs, with their positions in the list as ranks.
///
/// Fails if a pair contains an unknown id, or if its joined bytes are not a token.
pub(crate) fn by_merges(vocabulary: &Vocabulary, merges: &[(u32, u32)]) -> Result<PairTable> {
    let ids = ids_of_merges(vocabulary, merges)?;
    let mut builder = PairTableBuilder::with_capacity(merges.len(), ids)?;
    for (rank, &(left, right)) in (0..).zip(merges) {
        builder.insert(left, right, rank);
    }
    Ok(builder.finish(vocabulary))
}

/// The id that each listed pair merges into.
fn ids_of_merges(vocabulary: &Vocabulary, merges: &[(u32, u32)]) -> Result<Vec<u32>> {
    if merges.len() > MAX_RANKS {
        let reason =
            format!("there are {} merges, more than the limit of {MAX_RANKS}", merges.len());
        return Err(Error::Vocabulary { reason: reason.into() });
    }
    let ordinary = |id: u32| vocabulary.bytes(id).filter(|_| !vocabulary.is_special(id));
    let mut all = PairLookup::new(vocabulary);
    let joined = |(rank, &(left, right)): (usize, &(u32, u32))| {
        let broken = |what: &str| Error::Vocabulary {
            reason: format!("merge {rank} (ids {left} and {right}) {what}").into(),
        };
        let parts = ordinary(left).zip(ordinary(right));
        let parts = parts.ok_or_else(|| broken("has an id that is not an ordinary token"))?;
        let token = || [parts.0, parts.1].concat().escape_ascii().to_string();
        let missing = || broken(&format!("produces b\"{}\", which is not a token", token()));
        all.id(left, right).ok_or_else(missing)
    };
    memory::try_collect(merges.iter().enumerate().map(joined))
}
