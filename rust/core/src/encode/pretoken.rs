//! Encodes the bytes of one pretoken, without a cache.
//!
//! Under most rules, a pretoken that is a token is encoded as that token; otherwise its bytes are
//! merged. The [`SplitPoints`] say where a long pretoken can be divided into *sections* that no
//! token crosses, and that merge separately. User-defined tokens are found first of all.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use aho_corasick::AhoCorasick;

use crate::encode::special;
use crate::encode::split_points::SplitPoints;
use crate::error::{Error, Result};
use crate::machine::array::Array;
use crate::memory;
use crate::merge::heap::{SizedId, SymbolMerger};
use crate::merge::merger::{self, MergeScratch, Merger};
use crate::merge::pair_table::PairTable;
use crate::rules::TextRules;
use crate::text::from_utf8;
use crate::vocabulary::{MAX_NAME_BYTES, MergeRule, NO_ID, Vocabulary};

/// The tables of a merge rule. Those that are missing are built on first use.
#[derive(Debug, Default)]
pub(crate) struct MergeTables {
    pub(crate) pairs: Option<PairTable>,
    pub(crate) split_points: Option<SplitPoints>,
    /// The tokens that only a whole pretoken becomes, in ascending order. In another order, they are
    /// not found, which gives wrong ids, but nothing worse.
    pub(crate) whole_only: Option<Array<u32>>,
}

/// A vocabulary with the tables of its merge rule.
#[derive(Debug, Clone)]
pub(crate) struct PretokenEncoder {
    pub(crate) vocabulary: Vocabulary,
    /// Whether a pretoken that is a token is encoded as that token, without merging.
    pub(crate) whole_first: bool,
    /// The tokens that are found before anything is merged, if there are any.
    pub(crate) user_defined: Option<UserDefined>,
    /// The bytes that are left out, if there are any.
    pub(crate) uncovered: Option<Uncovered>,
    /// Merges the characters of pretokens instead, where symbols have names of their own.
    symbols: Option<Arc<SymbolMerger>>,
    /// Built on first use, unless merges are listed, which are checked at once.
    merger: OnceLock<Merger>,
    /// Built for the first long pretoken.
    split_points: OnceLock<SplitPoints>,
    /// Built for the first long pretoken.
    whole_only: OnceLock<Array<u32>>,
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
        merge_pairs: &[(u32, u32)],
        tables: MergeTables,
    ) -> Result<Self> {
        let MergeTables { mut pairs, split_points, whole_only } = tables;
        let mut symbols = None;
        if rules.symbols.is_some() {
            symbols = Some(Arc::new(SymbolMerger::new(&vocabulary, rules, merge_pairs)?));
        } else if pairs.is_none() && rule != MergeRule::Ranks {
            pairs = Some(merger::by_merges(&vocabulary, merge_pairs)?);
        }
        let merger = pairs.map(|pairs| Merger::new(&vocabulary, rule, pairs)).transpose()?;
        let merger = merger.map_or_else(OnceLock::new, OnceLock::from);
        let split_points = split_points.map_or_else(OnceLock::new, OnceLock::from);
        let whole_only = whole_only.map_or_else(OnceLock::new, OnceLock::from);
        let whole_first =
            matches!(rule, MergeRule::Ranks | MergeRule::Merges { ignore_merges: true });
        let user_defined = UserDefined::new(&vocabulary, rules.user_defined.clone())?;
        let uncovered = Uncovered::of(&vocabulary, rules);
        Ok(Self {
            vocabulary,
            whole_first,
            user_defined,
            uncovered,
            symbols,
            merger,
            split_points,
            whole_only,
        })
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
        let is_plain = self.user_defined.is_none() && self.uncovered.is_none();
        (self.whole_first && is_plain).then_some(&self.vocabulary)
    }

    /// Whether a pretoken has a byte that is left out.
    #[inline]
    pub(crate) fn drops_from(&self, pretoken: &[u8]) -> bool {
        self.uncovered.as_ref().is_some_and(|uncovered| uncovered.is_in(pretoken))
    }

    /// Whether the tables exist.
    pub(crate) fn has_tables(&self) -> bool {
        self.has_symbols() || self.merger.get().is_some()
    }

    /// The merger. Fails if it must be built and there is not enough memory.
    #[inline]
    pub(crate) fn merger(&self) -> Result<&Merger> {
        get_or_build(&self.merger, || {
            let pairs = merger::by_rank(&self.vocabulary)?;
            Merger::new(&self.vocabulary, MergeRule::Ranks, pairs)
        })
    }

    /// The split points of long pretokens. Fails as [`merger`](Self::merger) does.
    pub(crate) fn split_points(&self) -> Result<&SplitPoints> {
        get_or_build(&self.split_points, || SplitPoints::new(&self.vocabulary))
    }

    /// The tokens that only a whole pretoken becomes, if whole pretokens come first. Fails as
    /// [`merger`](Self::merger) does.
    pub(crate) fn whole_only(&self) -> Result<&Array<u32>> {
        get_or_build(&self.whole_only, || {
            if !self.whole_first {
                return Ok(Array::new(Vec::new()));
            }
            whole_only_tokens(&self.vocabulary, self.merger()?)
        })
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
        let covered = match &self.uncovered {
            Some(uncovered) => uncovered.without(pretoken)?,
            None => Cow::Borrowed(pretoken),
        };
        let pretoken = &*covered;
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
            let mut ids = memory::with_capacity(pretoken.len())?;
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

/// The value of a cell, built on first use.
pub(crate) fn get_or_build<T>(cell: &OnceLock<T>, build: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = build()?;
    Ok(cell.get_or_init(|| value))
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
        Ok(Some(Self { automaton: special::automaton(&tokens, "user-defined")?, ids }))
    }

    /// Whether a pretoken contains a user-defined token.
    pub(crate) fn is_in(&self, pretoken: &[u8]) -> bool {
        self.automaton.is_match(pretoken)
    }
}

/// The bytes that no token covers, for rules by which they are left out.
///
/// A text is split as it is, and the bytes are then missing from its pretokens: what stands on their
/// two sides in one pretoken may merge, as in Hugging Face `tokenizers`.
#[derive(Debug, Clone)]
pub(crate) struct Uncovered(Box<[bool; 256]>);

impl Uncovered {
    /// `None` if no byte is left out. Symbols with names are left out one by one, when they are merged.
    fn of(vocabulary: &Vocabulary, rules: &TextRules) -> Option<Self> {
        let bytes = vocabulary.byte_ids().map(|id| id == NO_ID);
        let drops = rules.drops_uncovered && rules.symbols.is_none() && bytes.contains(&true);
        drops.then(|| Self(Box::new(bytes)))
    }

    /// Whether a pretoken has such a byte.
    fn is_in(&self, pretoken: &[u8]) -> bool {
        pretoken.iter().any(|&byte| self.0[usize::from(byte)])
    }

    /// A pretoken without these bytes. Fails if there is not enough memory.
    pub(crate) fn without<'t>(&self, pretoken: &'t [u8]) -> Result<Cow<'t, [u8]>> {
        if !self.is_in(pretoken) {
            return Ok(Cow::Borrowed(pretoken));
        }
        let mut rest = memory::copy(pretoken)?;
        rest.retain(|&byte| !self.0[usize::from(byte)]);
        Ok(Cow::Owned(rest))
    }
}

/// The ids of the tokens that a merger does not produce, in ascending order; usually none. Fails if
/// there is not enough memory.
///
/// Within a pretoken, the bytes of such a token are merged, so a section of a long pretoken must not be
/// such a token: it would be looked up as a pretoken is. Published vocabularies have a few.
///
/// Under the rule of ranks, these are the tokens without a pair. Listed pairs may also come too late,
/// so all tokens are merged, which takes some 20 ms for 100,000 tokens.
fn whole_only_tokens(vocabulary: &Vocabulary, merger: &Merger) -> Result<Array<u32>> {
    let (mut scratch, mut merged_ids, mut ids) = (MergeScratch::default(), Vec::new(), Vec::new());
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
    Ok(Array::new(ids))
}
