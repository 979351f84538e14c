//! Which two neighbours merge, into what, and how early: both merge rules as one table.
//!
//! Under the rule of merges the table holds the listed pairs, under the rule of ranks those that
//! [`ranks`](super::ranks) finds. So merging needs no bytes at all.
//!
//! A pair and its rank fit one word of 64 bits: the ids take 21 bits each and the rank 22. The table is
//! made of buckets of eight words, one line of the processor's cache, which are looked at all at once:
//! whether a pair merges is as good as random, so a branch on it would be guessed wrong half the time.
//! A pair that finds its bucket full goes to the next. The pairs of single bytes, which every merge of
//! a pretoken begins with, have a square of their own.

use super::merge::ByteIds;
use super::{NO_ID, ranks};
use crate::error::{Error, Result};
use crate::lanes::{Lanes, Plain};
use crate::pages::Words;
use crate::prefetch::prefetch;
use crate::vocabulary::{MergeRule, Vocabulary};

/// The rank of a pair that does not merge: above all others.
pub(super) const NO_MERGE: u32 = u32::MAX;

const ID_BITS: u32 = 21;
const KEY: u64 = (1 << (2 * ID_BITS)) - 1;
/// How many slots a bucket has.
const BUCKET: usize = 8;

/// An id of which no pair is made, since ids stay below it.
pub(super) const NOTHING: u32 = (1 << ID_BITS) - 1;

const _: () = assert!(crate::vocabulary::MAX_VOCAB_SIZE <= NOTHING as usize);

/// All pairs that merge.
#[derive(Debug)]
pub(super) struct PairTable {
    /// A power of two of buckets, which are half full on the average at most. A slot is a pair and,
    /// above it, one more than its rank; zero is an empty slot.
    slots: Words,
    shift: u32,
    /// The rank of each pair of bytes.
    bytes: Box<[u32]>,
    /// The id that the merge of each rank makes; empty where it is the rank itself.
    ids: Vec<u32>,
}

impl PairTable {
    /// The pairs that merge under a rule.
    ///
    /// Fails if a listed merge names an id that does not exist or makes bytes that are no token.
    pub(super) fn new(
        vocabulary: &Vocabulary,
        rule: &MergeRule,
        byte_ids: &ByteIds,
    ) -> Result<Self> {
        match rule {
            MergeRule::Ranks => {
                // The rank is the id, and each token has one pair at most.
                let mut table = Self::with_room(vocabulary.len(), Vec::new());
                ranks::fill(&mut table, byte_ids, vocabulary);
                Ok(table)
            }
            MergeRule::Merges { merges, .. } => {
                let ids = ids_of_merges(vocabulary, merges)?;
                let mut table = Self::with_room(merges.len(), ids);
                for (rank, &(left, right)) in (0..).zip(merges) {
                    table.insert(left, right, rank);
                }
                table.fill_bytes(byte_ids);
                Ok(table)
            }
        }
    }

    fn with_room(pairs: usize, ids: Vec<u32>) -> Self {
        let slots = Words::zeros((2 * pairs + 2).next_power_of_two().max(BUCKET));
        Self {
            shift: 64 - slots.len().trailing_zeros(),
            slots,
            bytes: vec![NO_MERGE; 1 << 16].into_boxed_slice(),
            ids,
        }
    }

    /// A pair that is there already keeps its rank: the list is in order.
    pub(super) fn insert(&mut self, left: u32, right: u32, rank: u32) {
        let key = key(left, right);
        let mut at = self.start(key);
        loop {
            let bucket = self.slots.chunk_mut::<BUCKET>(at);
            match bucket.iter_mut().find(|slot| **slot == 0 || **slot & KEY == key) {
                Some(slot) if *slot == 0 => {
                    *slot = u64::from(rank + 1) << (2 * ID_BITS) | key;
                    return;
                }
                Some(_) => return,
                None => at = (at + BUCKET) & (self.slots.len() - 1),
            }
        }
    }

    /// Let single bytes merge as the pair of their ids does.
    pub(super) fn insert_bytes(&mut self, left: u8, right: u8, rank: u32) {
        self.bytes[usize::from(left) << 8 | usize::from(right)] = rank;
    }

    fn fill_bytes(&mut self, byte_ids: &ByteIds) {
        for (pair, rank) in (0..=u16::MAX).zip(0..) {
            let [left, right] = pair.to_be_bytes().map(|byte| byte_ids[usize::from(byte)]);
            if left != NO_ID && right != NO_ID {
                self.bytes[rank] = self.rank(left, right, Plain);
            }
        }
    }

    /// All pairs of ids, in order of rank.
    pub(super) fn in_order(&self) -> Vec<(u32, u32)> {
        let mut slots: Vec<u64> = self.slots.iter().copied().filter(|&slot| slot != 0).collect();
        slots.sort_unstable_by_key(|slot| slot >> (2 * ID_BITS));
        #[expect(clippy::cast_possible_truncation, reason = "the bits of an id")]
        let id = |bits: u64| bits as u32 & ((1 << ID_BITS) - 1);
        slots.into_iter().map(|slot| (id(slot), id(slot >> ID_BITS))).collect()
    }

    /// Where the bucket of a pair begins.
    #[inline]
    fn start(&self, key: u64) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the key.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        usize::try_from(hash).expect("a table fits memory") & !(BUCKET - 1)
    }

    /// How early the pair merges, or [`NO_MERGE`].
    #[expect(clippy::inline_always, reason = "for the instructions of the caller")]
    #[inline(always)]
    pub(super) fn rank(&self, left: u32, right: u32, lanes: impl Lanes) -> u32 {
        let key = key(left, right);
        let mut at = self.start(key);
        loop {
            let bucket = self.slots.chunk::<BUCKET>(at);
            let found = lanes.find(bucket, KEY, key) >> (2 * ID_BITS);
            if found != 0 || bucket[BUCKET - 1] == 0 {
                #[expect(clippy::cast_possible_truncation, reason = "22 bits are left")]
                return (found as u32).wrapping_sub(1);
            }
            at = (at + BUCKET) & (self.slots.len() - 1);
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

/// The id that each listed pair makes: that of the token of its joined bytes.
fn ids_of_merges(vocabulary: &Vocabulary, merges: &[(u32, u32)]) -> Result<Vec<u32>> {
    let ordinary = |id: u32| vocabulary.bytes(id).filter(|_| !vocabulary.is_special(id));
    let joined = |(rank, &(left, right)): (usize, &(u32, u32))| {
        let broken = |what: &str| Error::Vocabulary {
            reason: format!("merge {rank}, of the ids {left} and {right}, {what}"),
        };
        let parts = ordinary(left).zip(ordinary(right));
        let (left, right) = parts.ok_or_else(|| broken("names an id that is no ordinary token"))?;
        let token = [left, right].concat();
        let missing = || broken(&format!("makes b\"{}\", which is no token", token.escape_ascii()));
        vocabulary.id(&token).ok_or_else(missing)
    };
    merges.iter().enumerate().map(joined).collect()
}
