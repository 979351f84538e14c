//! Merges the bytes of a pretoken by the rule of one vocabulary.

use crate::error::{Error, Result};
use crate::merge::pair_table::PairTable;
use crate::merge::queue::{self, MergeScratch};
use crate::merge::short::ShortMerge;
use crate::merge::streaming::{SIZES, Streaming};
use crate::merge::{interleave, runs, whole};
use crate::vocabulary::{ByteIds, NO_ID, Vocabulary};

/// The pairs that merge, and the ids of single bytes, with which merging starts.
#[derive(Debug, Clone)]
pub(crate) struct Merger {
    pairs: PairTable,
    byte_ids: ByteIds,
    /// Whether every byte has an id.
    covers_all: bool,
}

impl Merger {
    /// A merger for these pairs of a vocabulary.
    pub(crate) fn new(vocabulary: &Vocabulary, pairs: PairTable) -> Self {
        let byte_ids = vocabulary.byte_ids();
        let covers_all = !byte_ids.contains(&NO_ID);
        Self { pairs, byte_ids, covers_all }
    }

    pub(crate) fn pairs(&self) -> &PairTable {
        &self.pairs
    }

    /// Whether each of these bytes has an id.
    #[inline]
    pub(crate) fn covers(&self, bytes: &[u8]) -> bool {
        self.covers_all || self.uncovered(bytes).is_none()
    }

    fn uncovered(&self, bytes: &[u8]) -> Option<u8> {
        bytes.iter().copied().find(|&byte| self.byte_ids[usize::from(byte)] == NO_ID)
    }

    /// Append the ids of a pretoken, within the capacity of `out`. Fails if no token covers one of
    /// its bytes, or if there is not enough memory to merge it.
    pub(crate) fn merge(
        &self,
        pretoken: &[u8],
        scratch: &mut MergeScratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if let Some(byte) = self.uncovered(pretoken) {
            return Err(Error::UncoveredByte { byte });
        }
        let Self { pairs, byte_ids, .. } = self;
        if pretoken.len() <= SIZES.window {
            queue::check(pretoken.len())?;
            whole::merge(pairs, byte_ids, pretoken, scratch, out);
        } else if !runs::merge(pairs, byte_ids, pretoken, out) {
            Streaming { pairs, byte_ids, scratch, out, sizes: SIZES }.merge(pretoken)?;
        }
        Ok(())
    }

    /// A short pretoken before its first merge; each of its bytes must have an id.
    #[inline]
    pub(crate) fn start<const PLACES: usize>(&self, pretoken: &[u8]) -> ShortMerge<PLACES> {
        ShortMerge::new(&self.pairs, &self.byte_ids, pretoken)
    }

    /// Merge at most [`interleave::MOST`] short pretokens, interleaved.
    pub(crate) fn interleave<const PLACES: usize>(&self, pretokens: &mut [ShortMerge<PLACES>]) {
        interleave::merge(&self.pairs, pretokens);
    }
}
