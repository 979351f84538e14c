//! The pairs that merge, in rank order, and how often training made each merge.
//!
//! Few calls read these lists, which may be long, so they are computed on first use, from the
//! arrays of a file or from the ranks.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::machine::array::Array;
use crate::vocabulary::Vocabulary;

/// The bytes that all merges may have as text, for each byte of all tokens and of the merges. Those of
/// published vocabularies have fewer than three.
const BYTES_PER_BYTE: usize = 64;

/// Merges and their counts, computed lazily.
#[derive(Debug, Clone, Default)]
pub(crate) struct Merges {
    /// The arrays of a file: concatenated pairs of ids, and counts as [`encode_counts`] writes
    /// them.
    file: Option<(Array<u32>, Array<u8>)>,
    pairs: OnceLock<Vec<(u32, u32)>>,
    counts: OnceLock<Vec<u64>>,
}

impl Merges {
    /// Known merges, with the counts of training, or with no counts.
    pub(crate) fn of_pairs(pairs: Vec<(u32, u32)>, counts: Vec<u64>) -> Self {
        Self { file: None, pairs: OnceLock::from(pairs), counts: OnceLock::from(counts) }
    }

    /// Merges in the arrays of a file.
    pub(crate) fn from_file(pairs: Array<u32>, counts: Array<u8>) -> Self {
        Self { file: Some((pairs, counts)), ..Self::default() }
    }

    /// Whether the pairs are known without deriving them from the ranks.
    pub(crate) fn are_ready(&self) -> bool {
        self.file.is_some() || self.pairs.get().is_some()
    }

    /// Fails if the merges of a file are not of ordinary tokens, or so long as text that listing them
    /// would take any memory.
    pub(crate) fn check(&self, vocabulary: &Vocabulary) -> Result<()> {
        let Some((ids, _)) = &self.file else { return Ok(()) };
        let is_ordinary = |&id: &u32| vocabulary.token_length(id) > 0 && !vocabulary.is_special(id);
        let bytes: usize = ids.iter().map(|&id| vocabulary.token_length(id)).sum();
        let most = BYTES_PER_BYTE * (vocabulary.arrays().0.len() + size_of_val(&ids[..]));
        if bytes <= most && ids.iter().all(is_ordinary) {
            return Ok(());
        }
        let reason = "the merges of the file are not of ordinary tokens, or far longer than these";
        Err(Error::Vocabulary { reason: reason.into() })
    }

    /// The pairs of ids in rank order; `derive` computes them if they are not yet known.
    pub(crate) fn pairs(&self, derive: impl FnOnce() -> Vec<(u32, u32)>) -> &[(u32, u32)] {
        self.pairs.get_or_init(|| match &self.file {
            Some((pairs, _)) => as_pairs(pairs),
            None => derive(),
        })
    }

    /// How often training made each merge, for at most `most` merges.
    pub(crate) fn counts(&self, most: usize) -> &[u64] {
        self.counts.get_or_init(|| match &self.file {
            Some((_, counts)) => decode_counts(counts, most),
            None => Vec::new(),
        })
    }
}

/// Consecutive ids as pairs.
pub(crate) fn as_pairs(ids: &[u32]) -> Vec<(u32, u32)> {
    ids.as_chunks().0.iter().map(|&[left, right]| (left, right)).collect()
}

/// Counts in LEB128: groups of 7 bits, the lowest first, one in each byte; the highest bit marks
/// that another group follows.
pub(crate) fn encode_counts(counts: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &count in counts {
        let mut rest = count;
        while rest >= 0x80 {
            bytes.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        bytes.push(rest.to_le_bytes()[0]);
    }
    bytes
}

/// The counts in LEB128 bytes, at most `most` of them; bits above 64 are dropped.
fn decode_counts(bytes: &[u8], most: usize) -> Vec<u64> {
    let groups = bytes.split_inclusive(|byte| byte & 0x80 == 0).take(most);
    let count = |group: &[u8]| {
        group.iter().rev().fold(0, |count, byte| count << 7 | u64::from(byte & 0x7F))
    };
    groups.map(count).collect()
}
