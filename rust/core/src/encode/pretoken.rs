//! Encodes the bytes of one pretoken, without a cache.
//!
//! Under most rules, a pretoken that is a token is encoded as that token; otherwise its bytes are
//! merged. The [`SplitPoints`] say where a long pretoken can be divided into *sections* that no
//! token crosses, and that merge separately.

use std::sync::OnceLock;

use crate::encode::split_points::SplitPoints;
use crate::error::Result;
use crate::merge::build;
use crate::merge::merger::Merger;
use crate::merge::pair_table::PairTable;
use crate::merge::queue::MergeScratch;
use crate::vocabulary::{MergeRule, Vocabulary};

/// A vocabulary with the tables of its merge rule.
#[derive(Debug, Clone)]
pub(crate) struct PretokenEncoder {
    pub(crate) vocabulary: Vocabulary,
    /// Whether a pretoken that is a token is encoded as that token, without merging.
    pub(crate) whole_first: bool,
    /// Built on first use, unless merges are listed, which are checked at once.
    merger: OnceLock<Merger>,
    /// Built for the first long pretoken.
    split_points: OnceLock<SplitPoints>,
}

impl PretokenEncoder {
    /// Encode by rank.
    pub(crate) fn by_rank(vocabulary: Vocabulary) -> Self {
        let (merger, split_points) = (OnceLock::new(), OnceLock::new());
        Self { vocabulary, whole_first: true, merger, split_points }
    }

    /// Encode with existing tables.
    pub(crate) fn with_tables(
        vocabulary: Vocabulary,
        rule: MergeRule,
        pairs: PairTable,
        split_points: Option<SplitPoints>,
    ) -> Result<Self> {
        let merger = OnceLock::from(Merger::new(&vocabulary, rule, pairs)?);
        let whole_first =
            matches!(rule, MergeRule::Ranks | MergeRule::Merges { ignore_merges: true });
        let split_points = split_points.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Self { vocabulary, whole_first, merger, split_points })
    }

    /// An encoder of the same bytes by other merges, which never takes a whole pretoken.
    pub(crate) fn with_merger(&self, merger: Merger) -> Self {
        Self { whole_first: false, merger: OnceLock::from(merger), ..self.clone() }
    }

    /// Whether the tables exist.
    pub(crate) fn has_tables(&self) -> bool {
        self.merger.get().is_some()
    }

    /// The merger. Fails if it must be built and there is not enough memory.
    #[inline]
    pub(crate) fn merger(&self) -> Result<&Merger> {
        if let Some(merger) = self.merger.get() {
            return Ok(merger);
        }
        let pairs = build::by_rank(&self.vocabulary)?;
        let merger = Merger::new(&self.vocabulary, MergeRule::Ranks, pairs)?;
        Ok(self.merger.get_or_init(|| merger))
    }

    /// The split points of long pretokens. Fails as [`merger`](Self::merger) does.
    pub(crate) fn split_points(&self) -> Result<&SplitPoints> {
        if let Some(points) = self.split_points.get() {
            return Ok(points);
        }
        let points = SplitPoints::new(&self.vocabulary)?;
        Ok(self.split_points.get_or_init(|| points))
    }

    /// Append the ids of a pretoken, merged as one section, within the capacity of `ids`.
    ///
    /// Fails if no token covers one of its bytes.
    pub(crate) fn encode(
        &self,
        pretoken: &[u8],
        scratch: &mut MergeScratch,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.whole_first
            && let Some(id) = self.vocabulary.id(pretoken)
        {
            ids.push(id);
            return Ok(());
        }
        self.merger()?.merge(pretoken, scratch, ids)
    }
}
