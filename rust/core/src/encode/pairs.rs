//! Which two neighbours merge, into what, and how early: both merge rules as one table.
//!
//! Under the rule of ranks two neighbours merge when their joined bytes are a token. Since every
//! part is itself a token, "the joined bytes are token `t`" says the same as "the two parts are one
//! of the ways to cut `t` in two tokens". So the table of all such cuts *is* the rule, and merging
//! needs no bytes at all. Under the rule of merges the table holds the listed pairs.
//!
//! A pair and its rank fit one word of 64 bits, so that a look-up costs one cache line: the ids
//! take 21 bits each and the rank 22. The pairs of single bytes, which every merge of a pretoken
//! begins with, have a square of their own.

use crate::column::Column;
use crate::error::{Error, Result};
use crate::slots::{Building, Slots};
use crate::vocabulary::{MergeRule, Rule, Vocabulary};

/// The rank of a pair that does not merge: above all others.
pub(super) const NO_MERGE: u32 = u32::MAX;

const ID_BITS: u32 = 21;
const KEY: u64 = (1 << (2 * ID_BITS)) - 1;

/// A list has at most so many merges, since a rank has 22 bits.
const MOST_MERGES: usize = (1 << 22) - 1;

const _: () = assert!(crate::vocabulary::MAX_VOCAB_SIZE < 1 << ID_BITS);

/// All pairs that merge.
#[derive(Debug, Clone)]
pub(crate) struct PairTable {
    /// A pair, and its rank above it. An empty place has no pair's key, since ids stay below the
    /// largest.
    slots: Slots<u64>,
    /// The rank of each pair of bytes.
    bytes: Column<u32>,
    /// The id that the merge of each rank makes; empty where it is the rank itself.
    ids: Column<u32>,
    /// Ranks are below.
    ranks: u32,
}

/// The arrays of a [`PairTable`], as a file holds them.
#[derive(Debug)]
pub(crate) struct PairColumns {
    pub(crate) slots: Slots<u64>,
    pub(crate) bytes: Column<u32>,
    pub(crate) ids: Column<u32>,
}

impl PairTable {
    /// Fails if a listed merge names an id that does not exist or makes bytes that are no token.
    pub(crate) fn new(vocabulary: &Vocabulary, rule: &MergeRule) -> Result<Self> {
        let (pairs, ids) = match rule {
            // The rank is the id.
            MergeRule::Ranks => (vocabulary.cuts(), Vec::new()),
            MergeRule::Merges { merges, .. } => pairs_of_merges(vocabulary, merges)?,
        };
        let ranks = number(if *rule == MergeRule::Ranks { vocabulary.len() } else { ids.len() });
        let mut building = Building::new(pairs.len());
        for (left, right, rank) in pairs {
            let key = key(left, right);
            // A pair that is there already keeps its rank: the list is in order.
            let entry = key | u64::from(rank) << (2 * ID_BITS);
            building.put(hash(key), entry, |slot| slot & KEY == key);
        }
        let (slots, ids) = (building.finish(), Column::new(ids));
        let mut table = Self { slots, bytes: Column::new(Vec::new()), ids, ranks };
        table.bytes = table.of_bytes(vocabulary);
        Ok(table)
    }

    /// The table in a file: `ids` is empty under the rule of ranks.
    ///
    /// Fails if it could give an id that does not exist. Of the pairs this is seen to when they are
    /// looked up.
    pub(crate) fn of_columns(
        columns: PairColumns,
        vocabulary: &Vocabulary,
        rule: Rule,
    ) -> Option<Self> {
        let PairColumns { slots, bytes, ids } = columns;
        // To count, without a way out in between, is what vector instructions can do.
        let below = |numbers: &[u32], limit: u32| {
            let wrong = |number: &&u32| **number >= limit && **number != NO_MERGE;
            numbers.iter().filter(wrong).count() == 0
        };
        let size = number(vocabulary.len());
        let ranks = if rule == Rule::Ranks { size } else { u32::try_from(ids.len()).ok()? };
        let right = (rule != Rule::Ranks || ids.is_empty())
            && bytes.len() == 1 << 16
            && below(&bytes, ranks)
            && below(&ids, size)
            && !ids.contains(&NO_MERGE);
        right.then_some(Self { slots, bytes, ids, ranks })
    }

    /// The arrays, as a file holds them.
    pub(crate) fn columns(&self) -> PairColumns {
        let Self { slots, bytes, ids, .. } = self.clone();
        PairColumns { slots, bytes, ids }
    }

    /// The ranks of all pairs of bytes.
    fn of_bytes(&self, vocabulary: &Vocabulary) -> Column<u32> {
        let ids: Vec<Option<u32>> = (0..=255).map(|byte| vocabulary.id(&[byte])).collect();
        let ranks = (0..1usize << 16).map(|pair| {
            let ids = ids[pair >> 8].zip(ids[pair & 0xFF]);
            ids.map_or(NO_MERGE, |(left, right)| self.rank(left, right))
        });
        Column::new(ranks.collect())
    }

    /// How early the pair merges, or [`NO_MERGE`].
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let found = self.slots.at(hash(key)).find(|slot| slot & KEY == key);
        // 22 bits are left, of which a file may hold any.
        let rank = found.and_then(|slot| u32::try_from(slot >> (2 * ID_BITS)).ok());
        rank.filter(|&rank| rank < self.ranks).unwrap_or(NO_MERGE)
    }

    /// Bring the memory that [`rank`](Self::rank) will look at.
    #[inline]
    pub(super) fn prefetch(&self, left: u32, right: u32) {
        self.slots.prefetch(hash(key(left, right)));
    }

    /// How early a pair of single bytes merges, or [`NO_MERGE`].
    #[inline]
    pub(super) fn rank_of_bytes(&self, left: u8, right: u8) -> u32 {
        self.bytes[usize::from(left) << 8 | usize::from(right)]
    }

    /// The id that the merge of that rank makes.
    #[inline]
    pub(super) fn id(&self, rank: u32) -> u32 {
        if self.ids.is_empty() { rank } else { self.ids[rank as usize] }
    }
}

#[inline]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) | u64::from(right) << ID_BITS
}

/// The high bits depend on all bits of the key.
#[inline]
fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn number(of: usize) -> u32 {
    u32::try_from(of).expect("there are at most 2^22 ids and ranks")
}

/// Left id, right id, rank.
type Pair = (u32, u32, u32);

/// The listed pairs, and the id that each makes; the joined bytes of each must be a token.
fn pairs_of_merges(
    vocabulary: &Vocabulary,
    merges: &[(u32, u32)],
) -> Result<(Vec<Pair>, Vec<u32>)> {
    let ordinary = |id: u32| vocabulary.bytes(id).filter(|_| !vocabulary.is_special(id));
    let joined = |rank: u32, left: u32, right: u32| {
        let broken = |what: &str| Error::Vocabulary {
            reason: format!("merge {rank}, of the ids {left} and {right}, {what}"),
        };
        let parts = ordinary(left).zip(ordinary(right));
        let (left, right) = parts.ok_or_else(|| broken("names an id that is no ordinary token"))?;
        let token = [left, right].concat();
        let missing = || broken(&format!("makes b\"{}\", which is no token", token.escape_ascii()));
        vocabulary.id(&token).ok_or_else(missing)
    };
    if merges.len() > MOST_MERGES {
        let reason = format!("{} merges are too many: {MOST_MERGES} is the most", merges.len());
        return Err(Error::Vocabulary { reason });
    }
    let ranked = (0u32..).zip(merges);
    let pairs: Vec<Pair> = ranked.map(|(rank, &(left, right))| (left, right, rank)).collect();
    let ids = pairs.iter().map(|&(left, right, rank)| joined(rank, left, right));
    let ids = ids.collect::<Result<_>>()?;
    Ok((pairs, ids))
}
