//! Encodes pretokens as long as lines word by word, for vocabularies whose tokens cross spaces.
//!
//! A line rarely repeats, but its words do. Tokens that cross spaces are learnt last, so their
//! merges have ranks from a *limit* on, and merging has two phases:
//!
//! 1. All merges below the limit. The tokens that they create never cross a *cut*: a point between
//!    two characters, where the byte before it and the byte after it are not adjacent in any such
//!    token. So the words between cuts are merged separately, and their ids are cached.
//! 2. All other merges, on the ids of the first phase. A merge across the point between the ids `a`
//!    and `b` joins a token that ends with `a` and a token that begins with `b`; a token always
//!    consists of the same ids of the first phase. So if no merge of the second phase has these two
//!    ids at its joint, nothing merges across the point, and only the *runs* between such points
//!    are merged.
//!
//! This is exact if no merge below the limit needs a token of the second phase, so that no such
//! merge becomes possible during the second phase, and if no two merges create the same token.
//! Other vocabularies are encoded without it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use crate::encode::lookup::{PretokenCache, WINDOW};
use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::hash::key::{LONGEST, hash_number};
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::merger::Merger;
use crate::merge::pair_table::{NO_MERGE, PairTable, PairTableBuilder, Pairs};
use crate::pretokenize::{Pattern, PretokenEnds, Splitter};
use crate::vocabulary::{MergeRule, NO_ID, Vocabulary};

/// Runs of more ids are merged with a queue, in less than quadratic time.
const LONGEST_RUN: usize = 32;

/// In place of the index of the next id: this id was merged into another.
const GONE: usize = usize::MAX;

/// The pattern that proposes the ends of words. Any pattern gives exact ids; this one splits like
/// most others.
const WORDS: &str = "llama3";

/// At most this many bytes are scanned at once.
const SCANNED: usize = 16 * WINDOW;

/// Bits for each merge in the filter of joints, and for each token in the filter of tokens.
const FILTER_BITS: usize = 16;

/// The two phases of one vocabulary, and the caches of the first.
#[derive(Debug)]
pub(crate) struct Superwords {
    /// Encodes words with the merges below the limit.
    pub(crate) words: PretokenEncoder,
    pub(crate) cache: PretokenCache,
    /// A bit for each pair of bytes: whether they are adjacent in a character or in a token of the
    /// first phase.
    joined: Box<[u64; 1 << 10]>,
    /// A filter of the joints of the merges from the limit on: the hash of the two ids of the first
    /// phase at a joint selects a bit.
    joints: Vec<u64>,
    /// The number of low hash bits that are dropped.
    shift: u32,
    /// The merges from the limit on.
    high: HighPairs,
    /// Filters the lines that may be tokens.
    whole: TokenFilter,
    /// Proposes the ends of words.
    scanner: Splitter,
}

/// The words of a window, and the buffer for finding them.
#[derive(Debug, Default)]
pub(crate) struct WordEnds {
    /// The ends of the words.
    pub(crate) ends: Vec<usize>,
    /// For each line, the number of these words before its end.
    pub(crate) bounds: Vec<usize>,
    scanned: Box<PretokenEnds>,
}

impl Superwords {
    /// `None` if no token crosses a space between words, if two phases would not be exact, if there
    /// are user-defined tokens, or if there are too many ids for [`HighPairs`].
    pub(crate) fn new(encoder: &PretokenEncoder) -> Result<Option<Self>> {
        let (vocabulary, pairs) = (&encoder.vocabulary, encoder.merger()?.pairs());
        let crosses = |(token, _): (&[u8], u32)| crosses_space(token);
        if encoder.user_defined.is_some() || !vocabulary.ordinary_tokens().any(crosses) {
            return Ok(None);
        }
        let Some(phases) = Phases::new(encoder)? else { return Ok(None) };
        let Some(high) = HighPairs::of(&phases.high, vocabulary.len(), pairs)? else {
            return Ok(None);
        };
        let (joined, whole) = (phases.joined(vocabulary), TokenFilter::of(vocabulary)?);
        let bits = (phases.high.len() * FILTER_BITS).next_power_of_two().max(64);
        let shift = 64 - bits.ilog2();
        let mut joints: Vec<u64> = memory::zeros(bits / 64)?;
        for &(left, right) in &phases.high {
            let joint = (phases.last[left as usize], phases.first[right as usize]);
            let bit = hash_bits(joint, shift);
            joints[bit >> 6] |= 1 << (bit & 63);
        }
        // The table contains the ids, so the rule only determines that merging starts with bytes.
        let low = Merger::new(vocabulary, MergeRule::Ranks, phases.low.finish(vocabulary))?;
        let words = encoder.with_merger(low);
        let cache = PretokenCache::default();
        let scanner = Splitter::new(&Pattern::new(WORDS)?)?;
        Ok(Some(Self { words, cache, joined, joints, shift, high, whole, scanner }))
    }

    /// Whether a cut lies between two bytes.
    #[inline]
    fn is_cut(&self, left: u8, right: u8) -> bool {
        let bit = usize::from(left) << 8 | usize::from(right);
        self.joined[bit >> 6] >> (bit & 63) & 1 == 0
    }

    /// Find the next words, at most [`WINDOW`] of them, and the lines that they complete; returns
    /// the end of the last word. The first word begins at `start`. `lines` yields the ends of the
    /// remaining lines; those of completed lines are consumed. The text ends with the last line.
    ///
    /// The scanner proposes ends; those at cuts are ends of words. So most bytes need no lookup,
    /// and the words are similar to the pretokens of common split patterns.
    pub(crate) fn cut(
        &self,
        text: &str,
        start: usize,
        lines: &mut slice::Iter<'_, usize>,
        found: &mut WordEnds,
    ) -> Result<usize> {
        let (bytes, WordEnds { scanned, ends, bounds }) = (text.as_bytes(), found);
        ends.clear();
        bounds.clear();
        // The scanned part is bounded, so that text without a cut is not scanned repeatedly.
        let mut part = text.len().min(start + SCANNED);
        while !text.is_char_boundary(part) {
            part -= 1;
        }
        self.scanner.fill(&text[..part], start, scanned)?;
        let mut at = start;
        for &end in scanned.as_slice() {
            while let Some(&line) = lines.as_slice().first()
                && line <= end
            {
                at = self.cut_long(bytes, at, line, ends);
                if at < line {
                    return Ok(at);
                }
                bounds.push(ends.len());
                lines.next();
                if ends.len() == WINDOW {
                    return Ok(at);
                }
            }
            if at < end && self.is_cut(bytes[end - 1], bytes[end]) {
                at = self.cut_long(bytes, at, end, ends);
            }
            if ends.len() == WINDOW {
                return Ok(at);
            }
        }
        if at == start
            && let Some(&line) = lines.as_slice().first()
        {
            // The scanner proposed no cut in a long piece of a line.
            at = self.cut_line(bytes, at, line, ends);
            if at == line {
                bounds.push(ends.len());
                lines.next();
            }
        }
        Ok(at)
    }

    /// Append the end of a word, or the ends of several if it is long; returns the last end.
    #[inline]
    fn cut_long(&self, text: &[u8], start: usize, end: usize, words: &mut Vec<usize>) -> usize {
        if end - start > LONGEST {
            return self.cut_line(text, start, end, words);
        }
        if start < end {
            words.push(end);
        }
        end
    }

    /// Append the ends of the words from `start` on, until the line ends at `end` or there are
    /// [`WINDOW`] words; returns the last end.
    #[inline]
    fn cut_line(&self, text: &[u8], start: usize, end: usize, words: &mut Vec<usize>) -> usize {
        for (pair, at) in text[start..end].windows(2).zip(start + 1..) {
            if self.is_cut(pair[0], pair[1]) {
                words.push(at);
                if words.len() == WINDOW {
                    return at;
                }
            }
        }
        words.push(end);
        end
    }

    /// Whether a merge from the limit on may join two tokens at the point between these ids.
    #[inline]
    fn may_join(&self, left: u32, right: u32) -> bool {
        let bit = hash_bits((left, right), self.shift);
        self.joints[bit >> 6] >> (bit & 63) & 1 != 0
    }

    /// Run the second phase for a pretoken: merge the ids of its words, which are those from `from`
    /// on. If the pretoken is a token, and the encoder encodes such a pretoken as that token, the
    /// result is its id.
    pub(crate) fn finish(
        &self,
        encoder: &PretokenEncoder,
        pretoken: &[u8],
        from: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if ids.len() - from > 1 {
            self.join(&HighMerges { ranks: &self.high, ids: encoder.merger()?.pairs() }, from, ids);
        }
        if ids.len() - from > 1
            && encoder.whole_first
            && self.whole.may_hold(pretoken)
            && let Some(id) = encoder.vocabulary.id(pretoken)
        {
            ids.truncate(from);
            ids.push(id);
        }
        Ok(())
    }

    /// Merge the ids from `from` on, run by run.
    fn join(&self, pairs: &HighMerges<'_>, from: usize, ids: &mut Vec<u32>) {
        let (mut read, mut write) = (from, from);
        while read < ids.len() {
            let mut joints = self.joints(&ids[read..]);
            let end = ids.len().min(read + 64);
            while joints != 0 {
                let unjoined = joints.trailing_zeros();
                joints >>= unjoined;
                move_back(ids, &mut read, unjoined as usize, &mut write);
                let length = self.run_length(&ids[read..], joints, end - read);
                let kept = merge_run(pairs, &mut ids[read..read + length]);
                let after = read + length;
                move_back(ids, &mut read, kept, &mut write);
                read = after;
                joints =
                    u32::try_from(length).ok().and_then(|run| joints.checked_shr(run)).unwrap_or(0);
            }
            let rest = end.saturating_sub(read);
            move_back(ids, &mut read, rest, &mut write);
        }
        ids.truncate(write);
    }

    /// Bit `i` is set if a merge may join the ids `i` and `i + 1`. All bits are computed before any
    /// is used, because a branch on each would often be mispredicted.
    #[inline]
    fn joints(&self, ids: &[u32]) -> u64 {
        let pairs = ids.windows(2).take(64).zip(0..);
        pairs.fold(0, |all, (pair, at)| all | u64::from(self.may_join(pair[0], pair[1])) << at)
    }

    /// The number of ids in the run at the start of `ids`. `joints` has the bits of the first
    /// `covered` ids.
    #[inline]
    fn run_length(&self, ids: &[u32], joints: u64, covered: usize) -> usize {
        let mut length = 1 + joints.trailing_ones() as usize;
        if length > covered {
            let rest = ids[length - 1..].windows(2);
            length += rest.take_while(|pair| self.may_join(pair[0], pair[1])).count();
        }
        length
    }
}

/// Move the `count` ids at `read` to `write`, and advance both.
#[inline]
fn move_back(ids: &mut [u32], read: &mut usize, count: usize, write: &mut usize) {
    // Most moves are so short that a call of `memmove` would take longer.
    for at in 0..count {
        ids[*write + at] = ids[*read + at];
    }
    (*read, *write) = (*read + count, *write + count);
}

/// Merge a run in place; returns the number of remaining ids.
#[inline]
fn merge_run(pairs: &HighMerges<'_>, ids: &mut [u32]) -> usize {
    match ids.len() {
        2 => merge_two(pairs, ids),
        ..=LONGEST_RUN => merge_short(pairs, ids),
        _ => merge_long(pairs, ids),
    }
}

/// The ranks and the ids of the second phase.
struct HighMerges<'a> {
    ranks: &'a HighPairs,
    ids: &'a PairTable,
}

impl HighMerges<'_> {
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        self.ranks.rank(left, right)
    }

    #[inline]
    fn id(&self, rank: u32) -> u32 {
        self.ids.id(rank)
    }
}

/// The ranks of the merges from the limit on, in a hash table that fits the inner caches. The table
/// of all merges does not fit, and waiting for it took half of the time of the second phase.
///
/// A word of 64 bits holds a merge: 21 bits for each id, and 22 for the rank. A word of all ones is
/// free. Larger vocabularies are encoded without the two phases.
#[derive(Debug)]
struct HighPairs {
    words: Vec<u64>,
    shift: u32,
}

impl HighPairs {
    const FREE: u64 = u64::MAX;
    const ID_BITS: u32 = 21;
    const RANK_BITS: u32 = 22;

    /// The table for merges of a vocabulary with `ids` ids; `None` if an id or a rank has too many
    /// bits.
    fn of(merges: &[(u32, u32)], ids: usize, pairs: &PairTable) -> Result<Option<Self>> {
        // Two ids of all ones with a rank of all ones would equal a free word.
        if ids >= 1 << Self::ID_BITS {
            return Ok(None);
        }
        let mut table = Self::with_capacity(merges.len())?;
        for &(left, right) in merges {
            let rank = pairs.rank(left, right, Portable);
            if rank >= 1 << Self::RANK_BITS {
                return Ok(None);
            }
            table.insert(left, right, rank);
        }
        Ok(Some(table))
    }

    /// An empty table with capacity for `count` merges.
    fn with_capacity(count: usize) -> Result<Self> {
        let size = (2 * count).next_power_of_two().max(64);
        Ok(Self { words: memory::filled(Self::FREE, size)?, shift: 64 - size.ilog2() })
    }

    /// The two ids as the upper bits of a word.
    #[inline]
    fn key(left: u32, right: u32) -> u64 {
        (u64::from(left) << Self::ID_BITS | u64::from(right)) << Self::RANK_BITS
    }

    /// Insert a merge that is not in the table.
    fn insert(&mut self, left: u32, right: u32, rank: u32) {
        let mut at = hash_bits((left, right), self.shift);
        while self.words[at] != Self::FREE {
            at = (at + 1) & (self.words.len() - 1);
        }
        self.words[at] = Self::key(left, right) | u64::from(rank);
    }

    /// The rank of a pair of ids, or [`NO_MERGE`].
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        let (key, mut at) = (Self::key(left, right), hash_bits((left, right), self.shift));
        loop {
            let word = self.words[at];
            let rank = word ^ key;
            if rank >> Self::RANK_BITS == 0 {
                return u32::try_from(rank).unwrap_or(NO_MERGE);
            }
            if word == Self::FREE {
                return NO_MERGE;
            }
            at = (at + 1) & (self.words.len() - 1);
        }
    }
}

/// Merge a run of two ids in place; returns the number of remaining ids.
#[inline]
fn merge_two(pairs: &HighMerges<'_>, ids: &mut [u32]) -> usize {
    let rank = pairs.rank(ids[0], ids[1]);
    if rank == NO_MERGE {
        return 2;
    }
    ids[0] = pairs.id(rank);
    1
}

/// Merge the ids of a run in place, the lowest rank first, the leftmost of equals; returns the
/// number of remaining ids.
fn merge_short(pairs: &HighMerges<'_>, ids: &mut [u32]) -> usize {
    let mut length = ids.len();
    let mut ranks = [NO_MERGE; LONGEST_RUN];
    for (rank, pair) in ranks.iter_mut().zip(ids.windows(2)) {
        *rank = pairs.rank(pair[0], pair[1]);
    }
    while length > 1 {
        let all = ranks[..length - 1].iter().copied().zip(0..);
        let Some((rank, at)) = all.min().filter(|&(rank, _)| rank != NO_MERGE) else { break };
        ids[at] = pairs.id(rank);
        ids.copy_within(at + 2..length, at + 1);
        ranks.copy_within(at + 1..length - 1, at);
        length -= 1;
        for left in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            let right = ids[..length].get(left + 1);
            ranks[left] = right.map_or(NO_MERGE, |&right| pairs.rank(ids[left], right));
        }
    }
    length
}

/// The same for a run of any length, with a queue.
fn merge_long(pairs: &HighMerges<'_>, ids: &mut [u32]) -> usize {
    let mut next: Vec<usize> = (1..=ids.len()).collect();
    let mut before: Vec<Option<usize>> = (0..ids.len()).map(|at| at.checked_sub(1)).collect();
    let rank = |ids: &[u32], next: &[usize], at: usize| {
        ids.get(next[at]).map_or(NO_MERGE, |&right| pairs.rank(ids[at], right))
    };
    let all = (0..ids.len()).map(|at| Reverse((rank(ids, &next, at), at)));
    let mut queue: BinaryHeap<_> = all.filter(|entry| entry.0.0 != NO_MERGE).collect();
    while let Some(Reverse((lowest, at))) = queue.pop() {
        // The entry is stale if the id was merged into another, or if its right neighbour changed.
        if next[at] == GONE || rank(ids, &next, at) != lowest {
            continue;
        }
        let right = next[at];
        ids[at] = pairs.id(lowest);
        next[at] = std::mem::replace(&mut next[right], GONE);
        if let Some(before) = before.get_mut(next[at]) {
            *before = Some(at);
        }
        for left in [before[at], Some(at)].into_iter().flatten() {
            let rank = rank(ids, &next, left);
            if rank != NO_MERGE {
                queue.push(Reverse((rank, left)));
            }
        }
    }
    let mut kept = 0;
    for at in 0..ids.len() {
        if next[at] != GONE {
            ids[kept] = ids[at];
            kept += 1;
        }
    }
    kept
}

/// The merges of a vocabulary in two phases.
struct Phases {
    /// The rank of the merge that creates each id, or [`NO_MERGE`].
    ranks: Vec<u32>,
    limit: u32,
    low: PairTableBuilder,
    high: Vec<(u32, u32)>,
    /// For each id, the first and the last of the ids of the first phase that it consists of.
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Phases {
    /// `None` if two phases would not be exact.
    fn new(encoder: &PretokenEncoder) -> Result<Option<Self>> {
        let (vocabulary, pairs) = (&encoder.vocabulary, encoder.merger()?.pairs());
        let size = vocabulary.len();
        if vocabulary.byte_ids().contains(&NO_ID) || !encoder.merger()?.starts_with_bytes() {
            return Ok(None);
        }
        let merges = pairs.in_order();
        let ranked = |&(left, right): &(u32, u32)| pairs.rank(left, right, Portable);
        let crosses = |rank: &u32| vocabulary.bytes(pairs.id(*rank)).is_some_and(crosses_space);
        let Some(limit) = merges.iter().map(ranked).find(crosses) else { return Ok(None) };
        let ids = (0..limit).map(|rank| pairs.id(rank));
        let mut phases = Self {
            ranks: memory::filled(NO_MERGE, size)?,
            limit,
            low: PairTableBuilder::with_capacity(limit as usize, memory::collect(ids)?)?,
            high: memory::with_room(merges.len())?,
            first: memory::collect(0..u32::try_from(size).unwrap_or(NO_ID))?,
            last: memory::collect(0..u32::try_from(size).unwrap_or(NO_ID))?,
        };
        let all_fit = merges.iter().all(|pair| {
            let rank = ranked(pair);
            phases.add(*pair, rank, pairs.id(rank))
        });
        Ok(all_fit.then_some(phases))
    }

    /// Add the next merge in the order of ranks; false if one of its parts is created later, or if
    /// an earlier merge creates the same token.
    fn add(&mut self, (left, right): (u32, u32), rank: u32, id: u32) -> bool {
        let is_earlier = |part: u32| {
            let made = self.ranks[part as usize];
            made == NO_MERGE || made < rank
        };
        if self.ranks[id as usize] != NO_MERGE || !is_earlier(left) || !is_earlier(right) {
            return false;
        }
        self.ranks[id as usize] = rank;
        if rank < self.limit {
            self.low.insert(left, right, rank);
        } else {
            self.high.push((left, right));
            self.first[id as usize] = self.first[left as usize];
            self.last[id as usize] = self.last[right as usize];
        }
        true
    }

    /// A bit for each pair of bytes: whether they are adjacent in a character or in a token of the
    /// first phase.
    fn joined(&self, vocabulary: &Vocabulary) -> Box<[u64; 1 << 10]> {
        let mut joined = Box::new([0; 1 << 10]);
        let mut join = |left: u8, right: u8| {
            let bit = usize::from(left) << 8 | usize::from(right);
            joined[bit >> 6] |= 1u64 << (bit & 63);
        };
        (0x80..0xC0).for_each(|right| (0..=255).for_each(|left| join(left, right)));
        for (token, id) in vocabulary.ordinary_tokens() {
            if self.ranks[id as usize] < self.limit {
                token.windows(2).for_each(|pair| join(pair[0], pair[1]));
            }
        }
        joined
    }
}

/// A filter of all tokens by their length and first bytes. Few lines pass it, so lookups in the
/// vocabulary, which is larger than the inner caches, are rare.
#[derive(Debug)]
struct TokenFilter {
    bits: Vec<u64>,
    shift: u32,
}

impl TokenFilter {
    fn of(vocabulary: &Vocabulary) -> Result<Self> {
        let size = (vocabulary.len() * FILTER_BITS).next_power_of_two().max(64);
        let mut filter = Self { bits: memory::zeros(size / 64)?, shift: 64 - size.ilog2() };
        for (token, _) in vocabulary.ordinary_tokens() {
            let bit = filter.bit(token);
            filter.bits[bit >> 6] |= 1 << (bit & 63);
        }
        Ok(filter)
    }

    /// False if the pretoken is not a token.
    #[inline]
    fn may_hold(&self, pretoken: &[u8]) -> bool {
        let bit = self.bit(pretoken);
        self.bits[bit >> 6] >> (bit & 63) & 1 != 0
    }

    #[inline]
    fn bit(&self, token: &[u8]) -> usize {
        let start = token.first_chunk().copied().map_or_else(
            || token.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)),
            u64::from_le_bytes,
        );
        let length = u64::try_from(token.len()).unwrap_or_default();
        let hash = hash_number(start ^ length.rotate_right(8));
        usize::try_from(hash >> self.shift).expect("a small number")
    }
}

/// Whether a space follows a letter or digit in a token or pretoken: most patterns split there.
pub(crate) fn crosses_space(token: &[u8]) -> bool {
    token.windows(2).any(|pair| pair[0].is_ascii_alphanumeric() && pair[1] == b' ')
}

/// The hash of a pair of ids without its `shift` low bits, as an index.
#[inline]
fn hash_bits((left, right): (u32, u32), shift: u32) -> usize {
    let hash = hash_number(u64::from(left) << 32 | u64::from(right));
    usize::try_from(hash >> shift).expect("a small number")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{HighPairs, NO_MERGE};
    use crate::merge::pair_table::PairTableBuilder;
    use crate::pretokenize::Pattern;
    use crate::tokenizer::Tokenizer;
    use crate::vocabulary::Vocabulary;

    /// Tokens that are concatenations of two earlier ones, so that each has a merge.
    fn tokens(parts: &[(usize, usize)]) -> Vec<Vec<u8>> {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut useful: Vec<Vec<u8>> = "ab \u{e9}\u{4e2d}".bytes().map(|byte| vec![byte]).collect();
        for &(left, right) in parts {
            let token = [&*useful[left % useful.len()], &useful[right % useful.len()]].concat();
            if !tokens.contains(&token) {
                tokens.push(token.clone());
                useful.push(token);
            }
        }
        tokens
    }

    fn check(tokens: Vec<Vec<u8>>, texts: &[String]) {
        let vocabulary = Vocabulary::new(tokens.into_iter().zip(0u32..), []).unwrap();
        let pattern = Pattern::from_regex(r"[^\n]*\n");
        let by_rank = Tokenizer::from_ranks(vocabulary.clone(), pattern.clone()).unwrap();
        let merges = by_rank.merges().to_vec();
        let by_merges = Tokenizer::from_merges(vocabulary, merges, false, pattern).unwrap();
        for tokenizer in [by_rank, by_merges] {
            for text in texts.iter().chain(texts) {
                let mut expected = Vec::new();
                for line in text.split_inclusive('\n') {
                    expected.extend(tokenizer.encode_pretoken(line.as_bytes()).unwrap());
                }
                assert_eq!(tokenizer.encode(text).unwrap(), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn pairs_of_the_largest_ids_and_ranks_are_distinguished() {
        let (most, rank) = ((1 << 21) - 2, (1 << 22) - 1);
        let mut pairs = HighPairs::with_capacity(1).unwrap();
        pairs.insert(most, most, rank);
        assert_eq!(pairs.rank(most, most), rank);
        assert_eq!(pairs.rank(most, most - 1), NO_MERGE);
        assert_eq!(pairs.rank(0, 0), NO_MERGE);
        assert_eq!(HighPairs::with_capacity(1).unwrap().rank(most, most), NO_MERGE);
    }

    #[test]
    fn vocabularies_of_two_million_ids_are_encoded_without_two_phases() {
        let vocabulary = Vocabulary::new((0..=255).map(|byte| vec![byte]).zip(0u32..), []).unwrap();
        let empty = PairTableBuilder::with_capacity(1, Vec::new()).unwrap().finish(&vocabulary);
        assert!(HighPairs::of(&[], (1 << 21) - 1, &empty).unwrap().is_some());
        assert!(HighPairs::of(&[], 1 << 21, &empty).unwrap().is_none());
    }

    proptest! {
        /// Also for vocabularies for which two phases would not be exact.
        #[test]
        fn lines_are_encoded_as_by_plain_merging(
            parts in prop::collection::vec((any::<usize>(), any::<usize>()), 0..60),
            texts in prop::collection::vec("[ab \n\u{e9}\u{4e2d}]{0,80}", 1..8),
        ) {
            check(tokens(&parts), &texts);
        }

        /// The same for repeated phrases, in lines longer than any run or window.
        #[test]
        fn long_lines_are_encoded_as_by_plain_merging(
            words in prop::collection::vec("[ab]{1,3}", 1..4),
            order in prop::collection::vec(0usize..4, 1..3000),
        ) {
            let text: String =
                order.iter().map(|&at| words[at % words.len()].clone() + " ").collect();
            let space = usize::MAX - usize::MAX % 6 - 6 + 2;
            let parts = [(0, 1), (1, 0), (2, 0), (2, 1), (2, 6), (2, 7), (8, 9), (10, 11), (8, 8)];
            let phrases = [(6, 8), (8, 10), (12, 12), (9, 9), (12, 9), (16, 16), (20, space)];
            check(tokens(&[&parts[..], &phrases].concat()), &[text]);
        }
    }
}
