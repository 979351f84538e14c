//! Encodes the bytes of one pretoken, without a cache.
//!
//! Under most rules, a pretoken that is a token is encoded as that token; otherwise its bytes are
//! merged. The [`SplitPoints`] say where a long pretoken can be divided into *sections* that no
//! token crosses, and that merge separately. User-defined tokens are found first of all.

use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::encode::special::MAX_DFA_NAME_BYTES;
use crate::encode::split_points::SplitPoints;
use crate::error::{Error, Result};
use crate::machine::array::Array;
use crate::memory;
use crate::merge::heap::{SizedId, SymbolMerger};
use crate::merge::merger::{self, MergeScratch, Merger};
use crate::merge::pair_table::PairTable;
use crate::rules::TextRules;
use crate::text::from_utf8;
use crate::vocabulary::{MAX_NAME_BYTES, MergeRule, Vocabulary};

/// The tables of a merge rule. Those that are missing are built on first use.
#[derive(Debug, Default)]
pub(crate) struct MergeTables {
    pub(crate) pairs: Option<PairTable>,
    pub(crate) split_points: Option<SplitPoints>,
    pub(crate) unmade: Option<UnmadeTokens>,
}

/// A vocabulary with the tables of its merge rule.
#[derive(Debug, Clone)]
pub(crate) struct PretokenEncoder {
    pub(crate) vocabulary: Vocabulary,
    /// Whether a pretoken that is a token is encoded as that token, without merging.
    pub(crate) whole_first: bool,
    /// The tokens that are found before anything is merged, if there are any.
    pub(crate) user_defined: Option<UserDefined>,
    /// Merges the characters of pretokens instead, where symbols have names of their own.
    symbols: Option<Arc<SymbolMerger>>,
    /// Built on first use, unless merges are listed, which are checked at once.
    merger: OnceLock<Merger>,
    /// Built for the first long pretoken.
    split_points: OnceLock<SplitPoints>,
    /// Found for the first long pretoken.
    unmade: OnceLock<UnmadeTokens>,
}

impl PretokenEncoder {
    /// An encoder by a merge rule, with its listed merges and the tables that exist. With
    /// [`TextRules::symbols`], symbols with names are merged; pretokens are then UTF-8.
    ///
    /// Fails if a merge contains an unknown id or its bytes are not a token, or if a user-defined token is
    /// none.
    pub(crate) fn new(
        vocabulary: Vocabulary,
        rule: MergeRule,
        rules: &TextRules,
        listed: &[(u32, u32)],
        tables: MergeTables,
    ) -> Result<Self> {
        let MergeTables { mut pairs, split_points, unmade } = tables;
        let mut symbols = None;
        if rules.symbols.is_some() {
            symbols = Some(Arc::new(SymbolMerger::new(&vocabulary, rules, listed)?));
        } else if pairs.is_none() && rule != MergeRule::Ranks {
            pairs = Some(merger::by_merges(&vocabulary, listed)?);
        }
        let merger = pairs.map(|pairs| Merger::new(&vocabulary, rule, pairs)).transpose()?;
        let merger = merger.map_or_else(OnceLock::new, OnceLock::from);
        let split_points = split_points.map_or_else(OnceLock::new, OnceLock::from);
        let unmade = unmade.map_or_else(OnceLock::new, OnceLock::from);
        let whole_first =
            matches!(rule, MergeRule::Ranks | MergeRule::Merges { ignore_merges: true });
        let user_defined = UserDefined::new(&vocabulary, rules.user_defined.clone())?;
        Ok(Self { vocabulary, whole_first, user_defined, symbols, merger, split_points, unmade })
    }

    /// Whether symbols with names are merged, instead of bytes or characters.
    #[inline]
    pub(crate) fn has_symbols(&self) -> bool {
        self.symbols.is_some()
    }

    /// This encoder with other user-defined tokens. Fails if an id is no token.
    pub(crate) fn with_user_defined(mut self, ids: Vec<u32>) -> Result<Self> {
        self.user_defined = UserDefined::new(&self.vocabulary, ids)?;
        Ok(self)
    }

    /// The vocabulary, if every pretoken that is a token is encoded as that token.
    #[inline]
    pub(crate) fn whole_tokens(&self) -> Option<&Vocabulary> {
        (self.whole_first && self.user_defined.is_none()).then_some(&self.vocabulary)
    }

    /// Whether the tables exist.
    pub(crate) fn has_tables(&self) -> bool {
        self.has_symbols() || self.merger.get().is_some()
    }

    /// The merger. Fails if it must be built and there is not enough memory.
    #[inline]
    pub(crate) fn merger(&self) -> Result<&Merger> {
        if let Some(merger) = self.merger.get() {
            return Ok(merger);
        }
        let pairs = merger::by_rank(&self.vocabulary)?;
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

    /// The tokens that only a whole pretoken becomes, if whole pretokens come first. Fails as
    /// [`merger`](Self::merger) does.
    pub(crate) fn unmade(&self) -> Result<&UnmadeTokens> {
        if let Some(unmade) = self.unmade.get() {
            return Ok(unmade);
        }
        let unmade = if self.whole_first {
            UnmadeTokens::of(&self.vocabulary, self.merger()?)?
        } else {
            UnmadeTokens::none()
        };
        Ok(self.unmade.get_or_init(|| unmade))
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
        if self.has_symbols() {
            let sized = self.encode_sized(pretoken, scratch)?;
            return memory::extend(ids, &sized.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        }
        let Some(user_defined) = &self.user_defined else {
            return self.encode_section(pretoken, scratch, ids);
        };
        let mut done = 0;
        for found in user_defined.automaton.find_iter(pretoken) {
            if done < found.start() {
                self.encode_section(&pretoken[done..found.start()], scratch, ids)?;
            }
            memory::push(ids, user_defined.ids[found.pattern().as_usize()])?;
            done = found.end();
        }
        if done == pretoken.len() {
            return Ok(());
        }
        self.encode_section(&pretoken[done..], scratch, ids)
    }

    /// The ids of a pretoken, each with the number of its bytes.
    ///
    /// Fails if no token covers one of its bytes.
    pub(crate) fn encode_sized(
        &self,
        pretoken: &[u8],
        scratch: &mut MergeScratch,
    ) -> Result<Vec<SizedId>> {
        let Some(symbols) = &self.symbols else {
            let mut ids = memory::with_room(pretoken.len())?;
            self.encode(pretoken, scratch, &mut ids)?;
            return memory::collect(
                ids.into_iter().map(|id| (id, self.vocabulary.token_length(id))),
            );
        };
        if self.whole_first
            && let Some(id) = self.vocabulary.id(pretoken)
        {
            return Ok(vec![(id, pretoken.len())]);
        }
        let broken = |_| Error::TextNotUtf8 { document: 0, at: 0 };
        symbols.merge(&self.vocabulary, from_utf8(pretoken).map_err(broken)?)
    }

    /// [`encode`](Self::encode) without user-defined tokens.
    fn encode_section(
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

/// To find user-defined tokens costs the square of their number before the first text; Gemma 3 has
/// 6,000.
const MAX_USER_DEFINED: usize = 1 << 15;

/// The user-defined tokens of a vocabulary.
///
/// In SentencePiece, *user-defined* pieces are single tokens wherever their text occurs, such as
/// runs of line breaks or HTML tags. They are found from left to right, the longest first, and the
/// text between them is merged by itself. The split pattern never splits within one of them.
#[derive(Debug, Clone)]
pub(crate) struct UserDefined {
    automaton: AhoCorasick,
    pub(crate) ids: Vec<u32>,
}

impl UserDefined {
    /// `None` if there are no ids. Fails if one of them is not an ordinary token of valid UTF-8.
    pub(crate) fn new(vocabulary: &Vocabulary, ids: Vec<u32>) -> Result<Option<Self>> {
        if ids.is_empty() {
            return Ok(None);
        }
        let broken = |reason: String| Error::Vocabulary { reason: reason.into() };
        let token = |&id: &u32| {
            let text = vocabulary.bytes(id).filter(|text| std::str::from_utf8(text).is_ok());
            let text = text.filter(|_| !vocabulary.is_special(id));
            text.ok_or_else(|| {
                broken(format!("the user-defined id {id} is not an ordinary token of valid UTF-8"))
            })
        };
        let tokens = ids.iter().map(token).collect::<Result<Vec<_>>>()?;
        if tokens.len() > MAX_USER_DEFINED || tokens.iter().any(|one| one.len() > MAX_NAME_BYTES) {
            return Err(broken(format!(
                "at most {MAX_USER_DEFINED} tokens are user-defined, each of {MAX_NAME_BYTES} bytes"
            )));
        }
        let size: usize = tokens.iter().map(|token| token.len()).sum();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind((size > MAX_DFA_NAME_BYTES).then_some(AhoCorasickKind::ContiguousNFA))
            .build(tokens)
            .map_err(|error| broken(format!("too many user-defined tokens: {error}")))?;
        Ok(Some(Self { automaton, ids }))
    }

    /// Whether a pretoken contains a user-defined token.
    pub(crate) fn is_in(&self, pretoken: &[u8]) -> bool {
        self.automaton.is_match(pretoken)
    }
}

/// The tokens that only a whole pretoken becomes.
///
/// Published vocabularies have a few of them. Within a longer pretoken their bytes are merged, so a
/// section of a long pretoken must not be one: it would be looked up as a pretoken is.
#[derive(Debug, Clone)]
pub(crate) struct UnmadeTokens {
    /// In ascending order; usually none.
    pub(crate) ids: Array<u32>,
}

impl UnmadeTokens {
    /// The tokens with these ids, which a file lists in ascending order. Tokens in another order are
    /// not found, which gives wrong ids, but nothing worse.
    pub(crate) fn from_array(ids: Array<u32>) -> Self {
        Self { ids }
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
        let is_merge_result = merger.pairs.merge_results()?;
        let by_rank = merger.pairs.ids_are_ranks();
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
