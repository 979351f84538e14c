//! Which two neighbours merge, into what, and how early: both merge rules as one table.
//!
//! Under the rule of ranks two neighbours merge when their joined bytes are a token. Since every
//! part is itself a token, "the joined bytes are token `t`" says the same as "the two parts are one
//! of the ways to cut `t` in two tokens". So the table of all such cuts *is* the rule, and merging
//! needs no bytes at all. Under the rule of merges the table holds the listed pairs.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::vocabulary::{MergeRule, Vocabulary};

/// What a pair becomes: merges of lower rank come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Merge {
    pub(super) rank: u32,
    pub(super) id: u32,
}

/// All pairs that merge.
#[derive(Debug, Clone)]
pub(super) struct PairTable {
    pairs: HashMap<(u32, u32), Merge, FixedState>,
}

impl PairTable {
    pub(super) fn new(vocabulary: &Vocabulary, rule: &MergeRule) -> Result<Self> {
        let pairs = match rule {
            MergeRule::Ranks => pairs_of_ranks(vocabulary),
            MergeRule::Merges { merges, .. } => pairs_of_merges(vocabulary, merges)?,
        };
        Ok(Self { pairs })
    }

    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> Option<Merge> {
        self.pairs.get(&(left, right)).copied()
    }
}

/// Every way to cut a token in two tokens.
fn pairs_of_ranks(vocabulary: &Vocabulary) -> HashMap<(u32, u32), Merge, FixedState> {
    let mut pairs = HashMap::with_capacity_and_hasher(2 * vocabulary.len(), FixedState::default());
    for (token, id) in vocabulary.ordinary_tokens() {
        for cut in 1..token.len() {
            if let Some(left) = vocabulary.id(&token[..cut])
                && let Some(right) = vocabulary.id(&token[cut..])
            {
                pairs.insert((left, right), Merge { rank: id, id });
            }
        }
    }
    pairs
}

/// The listed pairs; the joined bytes of each must be a token.
fn pairs_of_merges(
    vocabulary: &Vocabulary,
    merges: &[(u32, u32)],
) -> Result<HashMap<(u32, u32), Merge, FixedState>> {
    let mut pairs = HashMap::with_capacity_and_hasher(merges.len(), FixedState::default());
    for (rank, &(left, right)) in (0u32..).zip(merges) {
        let broken = |what: &str| Error::Vocabulary {
            reason: format!("merge {rank}, of the ids {left} and {right}, {what}"),
        };
        let parts = vocabulary.bytes(left).zip(vocabulary.bytes(right));
        let (left_bytes, right_bytes) =
            parts.ok_or_else(|| broken("names an id that does not exist"))?;
        let joined = [left_bytes, right_bytes].concat();
        let id = vocabulary
            .id(&joined)
            .ok_or_else(|| broken(&format!("makes b\"{}\", no token", joined.escape_ascii())))?;
        // A pair that is listed twice keeps its first rank.
        pairs.entry((left, right)).or_insert(Merge { rank, id });
    }
    Ok(pairs)
}
