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

use crate::error::{Error, Result};
use crate::prefetch::prefetch;
use crate::vocabulary::{MergeRule, Vocabulary};

/// The rank of a pair that does not merge: above all others.
pub(super) const NO_MERGE: u32 = u32::MAX;

const ID_BITS: u32 = 21;
const KEY: u64 = (1 << (2 * ID_BITS)) - 1;
/// A slot without a pair: no pair has this key, since ids stay below the largest.
const EMPTY: u64 = u64::MAX;

const _: () = assert!(crate::vocabulary::MAX_VOCAB_SIZE < 1 << ID_BITS);

/// All pairs that merge.
#[derive(Debug, Clone)]
pub(super) struct PairTable {
    /// Open addressing, a power of two, at most half full.
    slots: Box<[u64]>,
    shift: u32,
    /// The rank of each pair of bytes.
    bytes: Box<[u32]>,
    /// The id that the merge of each rank makes; empty where it is the rank itself.
    ids: Vec<u32>,
}

impl PairTable {
    /// Fails if a listed merge names an id that does not exist or makes bytes that are no token.
    pub(super) fn new(vocabulary: &Vocabulary, rule: &MergeRule) -> Result<Self> {
        let (pairs, ids) = match rule {
            // The rank is the id.
            MergeRule::Ranks => (vocabulary.cuts(), Vec::new()),
            MergeRule::Merges { merges, .. } => pairs_of_merges(vocabulary, merges)?,
        };
        let slots = (2 * pairs.len() + 2).next_power_of_two();
        let mut table = Self {
            slots: vec![EMPTY; slots].into_boxed_slice(),
            shift: 64 - slots.trailing_zeros(),
            bytes: vec![NO_MERGE; 1 << 16].into_boxed_slice(),
            ids,
        };
        for (left, right, rank) in pairs {
            table.insert(left, right, rank);
        }
        table.fill_bytes(vocabulary);
        Ok(table)
    }

    /// A pair that is there already keeps its rank: the list is in order.
    fn insert(&mut self, left: u32, right: u32, rank: u32) {
        let key = key(left, right);
        let mut at = self.start(key);
        while self.slots[at] != EMPTY {
            if self.slots[at] & KEY == key {
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = key | u64::from(rank) << (2 * ID_BITS);
    }

    fn fill_bytes(&mut self, vocabulary: &Vocabulary) {
        let ids: Vec<Option<u32>> = (0..=255).map(|byte| vocabulary.id(&[byte])).collect();
        for (pair, rank) in (0..1 << 16).zip(0..) {
            let pair: usize = pair;
            if let (Some(left), Some(right)) = (ids[pair >> 8], ids[pair & 0xFF]) {
                self.bytes[rank] = self.rank(left, right);
            }
        }
    }

    #[inline]
    fn start(&self, key: u64) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the key.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        usize::try_from(hash).expect("a table fits memory")
    }

    /// How early the pair merges, or [`NO_MERGE`].
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let mut at = self.start(key);
        loop {
            let slot = self.slots[at & (self.slots.len() - 1)];
            if slot & KEY == key {
                // 22 bits are left.
                return u32::try_from(slot >> (2 * ID_BITS)).unwrap_or(NO_MERGE);
            }
            if slot == EMPTY {
                return NO_MERGE;
            }
            at += 1;
        }
    }

    /// Bring the memory that [`rank`](Self::rank) will look at.
    #[inline]
    pub(super) fn prefetch(&self, left: u32, right: u32) {
        prefetch(&self.slots, self.start(key(left, right)));
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
    let ranked = (0u32..).zip(merges);
    let pairs: Vec<Pair> = ranked.map(|(rank, &(left, right))| (left, right, rank)).collect();
    let ids = pairs.iter().map(|&(left, right, rank)| joined(rank, left, right));
    let ids = ids.collect::<Result<_>>()?;
    Ok((pairs, ids))
}
