//! Filters that fit the inner caches: hashed sets of bits that answer "certainly not" or "perhaps".

use crate::error::Result;
use crate::hash::key::hash_number;
use crate::memory;
use crate::vocabulary::Vocabulary;

/// The number of bits for each entry: at most one bit of 16 is set, so about one of 16 items that are
/// not in the set is answered "perhaps".
const BITS_EACH: usize = 16;

/// Bits that are selected by a hash.
#[derive(Debug)]
struct BitSet {
    words: Vec<u64>,
    /// The number of low bits of a hash that are dropped.
    shift: u32,
}

impl BitSet {
    /// An empty set for this many entries.
    fn for_entries(count: usize) -> Result<Self> {
        let bits = (count * BITS_EACH).next_power_of_two().max(64);
        Ok(Self { words: memory::zeros(bits / 64)?, shift: 64 - bits.ilog2() })
    }

    fn insert(&mut self, hash: u64) {
        let bit = index(hash, self.shift);
        self.words[bit >> 6] |= 1 << (bit & 63);
    }

    #[inline]
    fn may_hold(&self, hash: u64) -> bool {
        let bit = index(hash, self.shift);
        self.words[bit >> 6] >> (bit & 63) & 1 != 0
    }
}

/// The points at which a merge of the second phase may join two tokens: pairs of ids of the first
/// phase.
#[derive(Debug)]
pub(super) struct JointFilter(BitSet);

impl JointFilter {
    /// The filter of these points.
    pub(super) fn of(joints: impl ExactSizeIterator<Item = (u32, u32)>) -> Result<Self> {
        let mut set = BitSet::for_entries(joints.len())?;
        joints.for_each(|(left, right)| set.insert(hash_pair(left, right)));
        Ok(Self(set))
    }

    /// Whether a merge may join two tokens at the point between these ids.
    #[inline]
    pub(super) fn may_join(&self, left: u32, right: u32) -> bool {
        self.0.may_hold(hash_pair(left, right))
    }
}

/// All tokens, by their length and first bytes. Few lines pass it, so lookups in the vocabulary,
/// which is larger than the inner caches, are rare.
#[derive(Debug)]
pub(super) struct TokenFilter(BitSet);

impl TokenFilter {
    pub(super) fn of(vocabulary: &Vocabulary) -> Result<Self> {
        let mut set = BitSet::for_entries(vocabulary.len())?;
        vocabulary.ordinary_tokens().for_each(|(token, _)| set.insert(hash_start(token)));
        Ok(Self(set))
    }

    /// False if the pretoken is not a token.
    #[inline]
    pub(super) fn may_hold(&self, pretoken: &[u8]) -> bool {
        self.0.may_hold(hash_start(pretoken))
    }
}

/// The hash of a pair of ids.
#[inline]
pub(super) fn hash_pair(left: u32, right: u32) -> u64 {
    hash_number(u64::from(left) << 32 | u64::from(right))
}

/// The hash of the length and the first eight bytes.
#[inline]
fn hash_start(token: &[u8]) -> u64 {
    let start = token.first_chunk().copied().map_or_else(
        || token.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)),
        u64::from_le_bytes,
    );
    let length = u64::try_from(token.len()).unwrap_or_default();
    hash_number(start ^ length.rotate_right(8))
}

/// A hash without its `shift` low bits, as an index.
#[inline]
pub(super) fn index(hash: u64, shift: u32) -> usize {
    usize::try_from(hash >> shift).expect("a small number")
}
