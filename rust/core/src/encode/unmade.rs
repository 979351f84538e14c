//! Tokens that merging does not produce: only a whole pretoken is encoded as one of them.
//!
//! Published vocabularies have a few of them. Within a longer pretoken their bytes are merged, so a
//! section of a long pretoken must not be one: it would be looked up as a pretoken is.

use crate::error::Result;
use crate::machine::array::Array;
use crate::memory;
use crate::merge::merger::Merger;
use crate::merge::whole::MergeScratch;
use crate::vocabulary::Vocabulary;

/// The tokens that only a whole pretoken becomes.
#[derive(Debug, Clone)]
pub(crate) struct UnmadeTokens {
    /// In ascending order; usually none.
    ids: Array<u32>,
}

impl UnmadeTokens {
    /// The tokens with these ids, which a file lists in ascending order. Tokens in another order are
    /// not found, which gives wrong ids, but nothing worse.
    pub(crate) fn from_array(ids: Array<u32>) -> Self {
        Self { ids }
    }

    /// The ids, in the form of a file.
    pub(crate) fn array(&self) -> &Array<u32> {
        &self.ids
    }

    /// No tokens.
    pub(crate) fn none() -> Self {
        Self { ids: Array::new(Vec::new()) }
    }

    /// The tokens that a merger does not produce. Fails if there is not enough memory.
    ///
    /// Under the rule of ranks, a token without a pair is one. Listed pairs may also come too late,
    /// so all tokens are merged, which takes some 20 ms for 100,000 tokens.
    pub(crate) fn of(vocabulary: &Vocabulary, merger: &Merger) -> Result<Self> {
        let (mut scratch, mut merged_ids, mut ids) =
            (MergeScratch::default(), Vec::new(), Vec::new());
        let is_merge_result = merger.pairs().merge_results()?;
        let by_rank = merger.pairs().ids_are_ranks();
        for (token, id) in vocabulary.ordinary_tokens().filter(|(token, _)| token.len() > 1) {
            let mut is_produced = is_merge_result[id as usize];
            if is_produced && !by_rank && merger.covers(token) {
                merged_ids.clear();
                memory::reserve(&mut merged_ids, token.len())?;
                merger.merge(token, &mut scratch, &mut merged_ids)?;
                is_produced = merged_ids == [id];
            }
            if !is_produced {
                memory::push(&mut ids, id)?;
            }
        }
        Ok(Self { ids: Array::new(ids) })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether these bytes are such a token.
    pub(crate) fn contains(&self, vocabulary: &Vocabulary, bytes: &[u8]) -> bool {
        vocabulary.id(bytes).is_some_and(|id| self.ids.binary_search(&id).is_ok())
    }
}
