//! Merges the bytes of a pretoken by the rule of one vocabulary, and the algorithm for its length.

use crate::error::{Error, Result};
use crate::memory;
use crate::merge::blocks::{self, BlockMerge};
use crate::merge::heap::{self, HeapMerge};
use crate::merge::pair_table::{MAX_RANKS, PairTable, PairTableBuilder, Pairs};
use crate::merge::runs;
use crate::merge::short::{self, ShortMerge};
use crate::merge::symbols::Symbols;
use crate::parallel::interrupt;
use crate::vocabulary::{MergeRule, PairLookup, Vocabulary};

/// The pairs that merge, and the initial parts.
#[derive(Debug, Clone)]
pub(crate) struct Merger {
    pub(crate) pairs: PairTable,
    pub(crate) symbols: Symbols,
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
            return Err(Error::Uncovered { part: format!("the byte 0x{byte:02X}") });
        }
        let Self { pairs, symbols, .. } = self;
        if pretoken.len() <= WINDOW_BYTES {
            heap::check(pretoken.len())?;
            merge(pairs, symbols, pretoken, scratch, out);
        } else if !runs::merge(pairs, symbols, pretoken, out) {
            let (window, few) = (WINDOW_BYTES, FEW_TOKENS);
            Streaming { pairs, symbols, scratch, out, window, few }.merge(pretoken)?;
        }
        Ok(())
    }
}

/// The buffers for merging long pretokens, reused for the next one.
#[derive(Debug, Default)]
pub(crate) struct MergeScratch {
    blocks: BlockMerge,
    heap: HeapMerge,
}

/// Append the ids of a pretoken; each of its bytes must have an id.
#[inline]
pub(crate) fn merge(
    pairs: &impl Pairs,
    symbols: &Symbols,
    pretoken: &[u8],
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
) {
    if pretoken.len() <= ShortMerge::MAX_BYTES {
        let mut one = [ShortMerge::new(pairs, symbols, pretoken)];
        short::merge_interleaved(pairs, &mut one);
        one[0].write(out);
    } else if !runs::merge(pairs, symbols, pretoken, out) {
        if pretoken.len() <= blocks::MAX_BYTES {
            blocks::merge(pairs, symbols, pretoken, &mut scratch.blocks, out);
        } else {
            scratch.heap.append(pairs, symbols, pretoken, out);
        }
    }
}

/// The initial number of bytes of a window: what [`blocks`] merge fastest. A window may have up to three
/// bytes more, to end with a character.
const WINDOW_BYTES: usize = blocks::MAX_BYTES - 3;

/// The initial number of last tokens that are merged again, which takes little time.
const FEW_TOKENS: usize = 4;

/// The largest number of last tokens that are merged again.
const MAX_TOKENS: usize = 256;

/// The state of merging one pretoken.
///
/// The ids of some bytes depend on the bytes that follow, but rarely on distant ones. Below, a
/// *prefix* is the start of the pretoken, and its ids are those of the prefix encoded alone.
///
/// 1. If a token of the pretoken ends at a position, the ids before this position are those of the
///    prefix up to it: no merge crosses the position, so the merges before it are the same and in
///    the same order, whatever follows.
/// 2. Among as many consecutive positions as the longest token has bytes, there is one at which a
///    token of the pretoken ends. So the ids that the prefixes up to all of these positions have in
///    common at their start are the first ids of the pretoken.
/// 3. A sequence of ids is the encoding of its bytes if every two adjacent ids are the encoding of
///    their joined bytes: the first merge across the position between two ids would also have the
///    lowest rank among the bytes of these two. So when a prefix grows by a byte, only its last few
///    tokens are merged again, with the new byte; if the first of them is unchanged, all ids before
///    it are unchanged as well.
///
/// If merging starts with characters, the positions are those between characters.
///
/// If the first of the last tokens changes, more of them are merged again, up to a limit; beyond
/// it, the window grows. The next window starts after the last final token.
pub(crate) struct Streaming<'a> {
    pub(crate) pairs: &'a PairTable,
    pub(crate) symbols: &'a Symbols,
    pub(crate) scratch: &'a mut MergeScratch,
    /// Ids are appended here.
    pub(crate) out: &'a mut Vec<u32>,
    /// The initial number of bytes of a window, and of last tokens that are merged again.
    pub(crate) window: usize,
    pub(crate) few: usize,
}

impl Streaming<'_> {
    /// Append the ids of a pretoken, within the capacity of `out`.
    pub(crate) fn merge(&mut self, pretoken: &[u8]) -> Result<()> {
        let longest = self.pairs.longest();
        let mut window = self.window.max(longest);
        heap::check(window + longest)?;
        let mut rest = pretoken;
        while rest.len() > window + longest {
            interrupt::poll_now()?;
            let done = self.merge_final(rest, self.symbols.boundary(rest, window), longest);
            rest = &rest[done..];
            if done < window / 2 {
                window *= 2;
                heap::check(window + longest)?;
            }
        }
        merge(self.pairs, self.symbols, rest, self.scratch, self.out);
        Ok(())
    }

    /// Append the ids of a window of `rest` that are final; returns the number of their bytes.
    fn merge_final(&mut self, rest: &[u8], window: usize, longest: usize) -> usize {
        let first = self.out.len();
        merge(self.pairs, self.symbols, &rest[..window], self.scratch, self.out);
        let (mut final_end, mut end, mut again) = (self.out.len(), window, Vec::new());
        while end + 1 < window + longest && end < rest.len() {
            let before = end;
            end = self.symbols.boundary(rest, end + 1);
            let unchanged = self.merge_last(first, &rest[..end], before, &mut again);
            final_end = final_end.min(unchanged.unwrap_or(first));
            if final_end == first {
                break;
            }
        }
        // In a damaged file, a token may be longer than the bytes that merge into it.
        let after = self.bytes_of(final_end).min(end);
        self.out.truncate(final_end);
        if final_end == first { 0 } else { end - after }
    }

    /// The ids from index `first` on are those of `prefix` without its last part, up to `before`.
    /// Update them to those of all of `prefix`. Returns the number of ids at the start of `out`
    /// that did not change; `None` if more tokens would have to be merged again than there are, or
    /// than the limit.
    fn merge_last(
        &mut self,
        first: usize,
        prefix: &[u8],
        before: usize,
        again: &mut Vec<u32>,
    ) -> Option<usize> {
        let mut last = self.few;
        while last <= MAX_TOKENS {
            let from = self.out.len().checked_sub(last).filter(|&from| from >= first)?;
            let start = before.checked_sub(self.bytes_of(from))?;
            again.clear();
            merge(self.pairs, self.symbols, &prefix[start..], self.scratch, again);
            if again.first() == self.out.get(from) {
                self.out.truncate(from);
                self.out.append(again);
                return Some(from + 1);
            }
            last *= 2;
        }
        None
    }

    /// The number of bytes of the ids from an index on.
    fn bytes_of(&self, from: usize) -> usize {
        self.out[from..].iter().map(|&id| self.pairs.length(id)).sum()
    }
}

// ---------------------------------------------------------------------------- building the table
//
// Under the rule of merges, the pairs are listed. Under the rule of ranks, two adjacent parts
// merge if their joined bytes are a token, the lowest rank first. A token may split into two
// tokens in many ways, but only one of these pairs ever merges. Proof: consider a merge that
// creates token `t` anywhere in a text. No earlier merge crossed the ends of `t`, because parts
// only grow. Each merge within `t` had, at its time, the lowest rank in the whole text, leftmost
// among equals, and therefore also within the bytes of `t`. So these are the same merges as for
// the bytes of `t` alone, and the pair consists of the two parts that remain before the last of
// them.
//
// So the pair of each token is found by merging its bytes without the token itself. Tokens are
// processed in order of length, because all merges within a token create shorter tokens. If more
// than two parts remain, no merge creates the token.

/// The table of the rule of ranks: one pair for each token, with the id of the token as rank.
pub(crate) fn by_rank(vocabulary: &Vocabulary) -> Result<PairTable> {
    let symbols = Symbols::new(vocabulary, MergeRule::Ranks)?;
    let covered = |token: &[u8]| symbols.uncovered(token).is_none();
    let tokens = vocabulary.ordinary_tokens();
    let tokens = tokens.filter(|(token, _)| token.len() > 1 && covered(token));
    let mut tokens = memory::collect(tokens)?;
    // Sorting takes as much memory as the tokens; merging the longest token is checked below.
    memory::check(size_of_val(&*tokens))?;
    tokens.sort_by_key(|(token, _)| token.len());
    heap::check(tokens.last().map_or(0, |(token, _)| token.len()))?;
    let mut shorter = PairTableBuilder::with_capacity(vocabulary.len(), Vec::new())?;
    let mut pairs = memory::filled(None, vocabulary.len())?;
    let (mut scratch, mut parts) = (MergeScratch::default(), Vec::new());
    for (token, id) in tokens {
        parts.clear();
        merge(&shorter, &symbols, token, &mut scratch, &mut parts);
        if let &[left, right] = &*parts {
            shorter.insert(left, right, id);
            pairs[id as usize] = Some((left, right));
        }
        if let &[left, right] = token {
            shorter.insert_bytes(left, right, id);
        }
    }
    in_order(&pairs, vocabulary)
}

/// Build the table from the pairs of all ids, inserted in id order as the native file requires.
fn in_order(pairs: &[Option<(u32, u32)>], vocabulary: &Vocabulary) -> Result<PairTable> {
    let mut builder = PairTableBuilder::with_capacity(pairs.len(), Vec::new())?;
    for (id, pair) in (0..).zip(pairs) {
        if let &Some((left, right)) = pair {
            builder.insert(left, right, id);
        }
    }
    builder.finish(vocabulary)
}

/// The table of the rule of merges: the listed pairs, with their positions in the list as ranks.
///
/// Fails if a pair contains an unknown id, or if its joined bytes are not a token.
pub(crate) fn by_merges(vocabulary: &Vocabulary, merges: &[(u32, u32)]) -> Result<PairTable> {
    let ids = ids_of_merges(vocabulary, merges)?;
    let mut builder = PairTableBuilder::with_capacity(merges.len(), ids)?;
    for (rank, &(left, right)) in (0..).zip(merges) {
        builder.insert(left, right, rank);
    }
    builder.finish(vocabulary)
}

/// The id that each listed pair merges into.
fn ids_of_merges(vocabulary: &Vocabulary, merges: &[(u32, u32)]) -> Result<Vec<u32>> {
    if merges.len() > MAX_RANKS {
        let reason =
            format!("there are {} merges, more than the limit of {MAX_RANKS}", merges.len());
        return Err(Error::Vocabulary { reason: reason.into() });
    }
    let ordinary = |id: u32| vocabulary.bytes(id).filter(|_| !vocabulary.is_special(id));
    let mut all = PairLookup::new(vocabulary);
    let joined = |(rank, &(left, right)): (usize, &(u32, u32))| {
        let broken = |what: &str| Error::Vocabulary {
            reason: format!("merge {rank} (ids {left} and {right}) {what}").into(),
        };
        let parts = ordinary(left).zip(ordinary(right));
        let parts = parts.ok_or_else(|| broken("has an id that is not an ordinary token"))?;
        let token = || [parts.0, parts.1].concat().escape_ascii().to_string();
        let missing = || broken(&format!("produces b\"{}\", which is not a token", token()));
        all.id(left, right).ok_or_else(missing)
    };
    memory::try_collect(merges.iter().enumerate().map(joined))
}
