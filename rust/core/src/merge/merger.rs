//! Merges the bytes of a pretoken by the rule of one vocabulary.

use crate::error::{Error, Result};
use crate::merge::pair_table::PairTable;
use crate::merge::short::{self, ShortMerge};
use crate::merge::symbols::Symbols;
use crate::merge::whole::{self, MergeScratch, SIZES, Streaming};
use crate::merge::{heap, runs};
use crate::vocabulary::{MergeRule, Vocabulary};

/// The pairs that merge, and the initial parts.
#[derive(Debug, Clone)]
pub(crate) struct Merger {
    pairs: PairTable,
    symbols: Symbols,
    /// Whether every byte has an id.
    covers_all: bool,
}

impl Merger {
    /// A merger for these pairs of a vocabulary. Fails if there is not enough memory.
    pub(crate) fn new(vocabulary: &Vocabulary, rule: MergeRule, pairs: PairTable) -> Result<Self> {
        let symbols = Symbols::new(vocabulary, rule)?;
        let covers_all = symbols.cover_all_bytes();
        Ok(Self { pairs, symbols, covers_all })
    }

    pub(crate) fn pairs(&self) -> &PairTable {
        &self.pairs
    }

    /// Whether merging starts with bytes rather than characters.
    pub(crate) fn starts_with_bytes(&self) -> bool {
        self.symbols.are_bytes()
    }

    /// Whether each of these bytes has an id.
    #[inline]
    pub(crate) fn covers(&self, bytes: &[u8]) -> bool {
        self.covers_all || self.symbols.uncovered(bytes).is_none()
    }

    /// Append the ids of a pretoken, within the capacity of `out`. Fails if no token covers one of
    /// its bytes, or if there is not enough memory to merge it.
    pub(crate) fn merge(
        &self,
        pretoken: &[u8],
        scratch: &mut MergeScratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if let Some(byte) = self.symbols.uncovered(pretoken) {
            return Err(Error::UncoveredByte { byte });
        }
        let Self { pairs, symbols, .. } = self;
        if pretoken.len() <= SIZES.window {
            heap::check(pretoken.len())?;
            whole::merge(pairs, symbols, pretoken, scratch, out);
        } else if !runs::merge(pairs, symbols, pretoken, out) {
            Streaming { pairs, symbols, scratch, out, sizes: SIZES }.merge(pretoken)?;
        }
        Ok(())
    }

    /// The initial state of merging a short pretoken; each of its bytes must have an id.
    #[inline]
    pub(crate) fn start(&self, pretoken: &[u8]) -> ShortMerge {
        ShortMerge::new(&self.pairs, &self.symbols, pretoken)
    }

    /// Merge at most [`short::MAX_PRETOKENS`] short pretokens, interleaved.
    pub(crate) fn interleave(&self, pretokens: &mut [ShortMerge]) {
        short::merge_interleaved(&self.pairs, pretokens);
    }
}
