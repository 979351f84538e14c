//! Encodes pretokens as long as lines word by word, for vocabularies whose tokens cross spaces.
//!
//! A line rarely repeats, but its words do. Tokens that cross spaces are learnt last, so their
//! ranks are above a *limit*, and merging has two phases:
//!
//! 1. All merges below the limit. No token of these crosses a *cut*: a point between two characters
//!    whose bytes are neighbours in no such token. So the words between cuts are merged separately, and their
//!    ids are cached.
//! 2. All others, on the ids of the first phase. A merge across the point between ids `a` and `b`
//!    is one of a token that ends with `a` and a token that begins with `b`, where each id is made
//!    of the same parts everywhere. So if no merge has these ends, the point stays, and only the
//!    *runs* between such points are merged.
//!
//! This is exact if no merge below the limit needs a token from above it, so that none becomes
//! possible in the second phase, and if no two merges make the same token. Other vocabularies are
//! encoded without it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use crate::encode::lookup::{PretokenCache, WINDOW};
use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::hash::key::hash_number;
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::merger::Merger;
use crate::merge::pair_table::{NO_MERGE, PairTable, PairTableBuilder, Pairs};
use crate::vocabulary::{MergeRule, NO_ID, Vocabulary};

/// Longer runs are merged with a queue, in less than quadratic time.
const LONGEST_RUN: usize = 32;

/// The next id of one that was merged into another.
const GONE: usize = usize::MAX;

/// Bits for each merge in the filter of the ends of merges.
const BITS_A_MERGE: usize = 16;

/// The two phases of one vocabulary, and the caches of the first.
#[derive(Debug)]
pub(crate) struct Superwords {
    /// Merges below the limit.
    pub(crate) words: PretokenEncoder,
    pub(crate) cache: PretokenCache,
    /// A bit for each pair of bytes that are neighbours in a character or in a token below the
    /// limit.
    joined: Box<[u64; 1 << 10]>,
    /// The ends of merges from the limit on: a bit for some bits of the hash of the two ids.
    ends: Vec<u64>,
    shift: u32,
    /// The length of the longest token.
    longest: usize,
}

impl Superwords {
    /// `None` if no token crosses a space between words, or two phases would not be exact.
    pub(crate) fn new(encoder: &PretokenEncoder) -> Result<Option<Self>> {
        let PretokenEncoder { vocabulary, .. } = encoder;
        if !vocabulary.ordinary_tokens().any(|(token, _)| crosses_space(token)) {
            return Ok(None);
        }
        let Some(phases) = Phases::new(encoder)? else { return Ok(None) };
        let (joined, longest) = (phases.joined(vocabulary), longest(vocabulary));
        let bits = (phases.high.len() * BITS_A_MERGE).next_power_of_two().max(64);
        let shift = 64 - bits.ilog2();
        let mut ends: Vec<u64> = memory::zeros(bits / 64)?;
        for &(left, right) in &phases.high {
            let bit = place((phases.last[left as usize], phases.first[right as usize]), shift);
            ends[bit >> 6] |= 1 << (bit & 63);
        }
        // The table gives the ids, so the rule only says that merging starts with bytes.
        let low = Merger::new(vocabulary, MergeRule::Ranks, phases.low.finish(vocabulary))?;
        let words = encoder.with_merger(low);
        let cache = PretokenCache::default();
        Ok(Some(Self { words, cache, joined, ends, shift, longest }))
    }

    /// Whether a cut lies between two bytes.
    #[inline]
    fn is_cut(&self, left: u8, right: u8) -> bool {
        let bit = usize::from(left) << 8 | usize::from(right);
        self.joined[bit >> 6] >> (bit & 63) & 1 == 0
    }

    /// Replace `words` by the ends of the words of the next lines, at most [`WINDOW`] of them, and
    /// `bounds` by how many of them lie before the end of each line; returns the last end. The
    /// first word begins at `start`; `lines` has the ends of the lines, and those that are done are
    /// taken from it.
    pub(crate) fn cut(
        &self,
        text: &[u8],
        start: usize,
        lines: &mut slice::Iter<'_, usize>,
        words: &mut Vec<usize>,
        bounds: &mut Vec<usize>,
    ) -> usize {
        words.clear();
        bounds.clear();
        let mut at = start;
        while words.len() < WINDOW
            && let Some(&end) = lines.as_slice().first()
        {
            at = self.cut_line(text, at, end, words);
            if at == end {
                bounds.push(words.len());
                lines.next();
            }
        }
        at
    }

    /// Append the ends of the words from `start` on, until the line ends at `end` or there are
    /// [`WINDOW`]; returns the last end.
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

    /// Whether a merge from the limit on may have these ends.
    #[inline]
    fn may_join(&self, left: u32, right: u32) -> bool {
        let bit = place((left, right), self.shift);
        self.ends[bit >> 6] >> (bit & 63) & 1 != 0
    }

    /// Append the ids of a pretoken that is a token, where that wins; else do the second phase: merge
    /// the ids of its words, which are those from `from` on.
    pub(crate) fn finish(
        &self,
        encoder: &PretokenEncoder,
        pretoken: &[u8],
        from: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if ids.len() - from > 1 {
            self.join(encoder.merger()?.pairs(), from, ids);
        }
        if ids.len() - from > 1
            && encoder.whole_first
            && pretoken.len() <= self.longest
            && let Some(id) = encoder.vocabulary.id(pretoken)
        {
            ids.truncate(from);
            ids.push(id);
        }
        Ok(())
    }

    /// Merge the ids from `from` on, run by run.
    fn join(&self, pairs: &PairTable, from: usize, ids: &mut Vec<u32>) {
        let (mut write, mut start) = (from, from);
        for read in from + 1..=ids.len() {
            if read < ids.len() && self.may_join(ids[read - 1], ids[read]) {
                continue;
            }
            let kept = match read - start {
                1 => 1,
                2..=LONGEST_RUN => merge_short(pairs, &mut ids[start..read]),
                _ => merge_long(pairs, &mut ids[start..read]),
            };
            ids.copy_within(start..start + kept, write);
            (write, start) = (write + kept, read);
        }
        ids.truncate(write);
    }
}

/// Merge the ids of a run in place, the lowest rank first, the leftmost of equals; returns how many
/// are left.
fn merge_short(pairs: &PairTable, ids: &mut [u32]) -> usize {
    let mut length = ids.len();
    let mut ranks = [NO_MERGE; LONGEST_RUN];
    for (rank, pair) in ranks.iter_mut().zip(ids.windows(2)) {
        *rank = pairs.rank(pair[0], pair[1], Portable);
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
            ranks[left] = right.map_or(NO_MERGE, |&right| pairs.rank(ids[left], right, Portable));
        }
    }
    length
}

/// The same for a run of any length, with a queue.
fn merge_long(pairs: &PairTable, ids: &mut [u32]) -> usize {
    let mut next: Vec<usize> = (1..=ids.len()).collect();
    let mut before: Vec<Option<usize>> = (0..ids.len()).map(|at| at.checked_sub(1)).collect();
    let rank = |ids: &[u32], next: &[usize], at: usize| {
        ids.get(next[at]).map_or(NO_MERGE, |&right| pairs.rank(ids[at], right, Portable))
    };
    let all = (0..ids.len()).map(|at| Reverse((rank(ids, &next, at), at)));
    let mut queue: BinaryHeap<_> = all.filter(|entry| entry.0.0 != NO_MERGE).collect();
    while let Some(Reverse((lowest, at))) = queue.pop() {
        // The id may be gone, or its neighbour another one by now.
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
    /// The rank of the merge that makes each id, or [`NO_MERGE`].
    ranks: Vec<u32>,
    limit: u32,
    low: PairTableBuilder,
    high: Vec<(u32, u32)>,
    /// The first and the last id of the first phase in each id.
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Phases {
    /// `None` if they are not exact.
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
            low: PairTableBuilder::with_room(limit as usize, memory::collect(ids)?)?,
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

    /// Add the next merge in the order of ranks; false if its parts come later, or its token is
    /// there already.
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

    /// A bit for each pair of bytes that are neighbours in a character or in a token below the
    /// limit.
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

/// The length of the longest token.
fn longest(vocabulary: &Vocabulary) -> usize {
    vocabulary.ordinary_tokens().map(|(token, _)| token.len()).max().unwrap_or_default()
}

/// Whether a space follows a letter or digit in a token or pretoken: most patterns split there.
pub(crate) fn crosses_space(token: &[u8]) -> bool {
    token.windows(2).any(|pair| pair[0].is_ascii_alphanumeric() && pair[1] == b' ')
}

/// The bit of a pair of ids in the filter.
#[inline]
fn place((left, right): (u32, u32), shift: u32) -> usize {
    let hash = hash_number(u64::from(left) << 32 | u64::from(right));
    usize::try_from(hash >> shift).expect("a small number")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::pretokenize::Pattern;
    use crate::tokenizer::Tokenizer;
    use crate::vocabulary::Vocabulary;

    /// Tokens that are made of earlier ones, so that each has a merge.
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

    proptest! {
        /// Lines are encoded as by plain merging, also if no two phases are exact.
        #[test]
        fn lines_are_encoded_as_by_plain_merging(
            parts in prop::collection::vec((any::<usize>(), any::<usize>()), 0..60),
            texts in prop::collection::vec("[ab \n\u{e9}\u{4e2d}]{0,80}", 1..8),
        ) {
            check(tokens(&parts), &texts);
        }

        /// The same for phrases that repeat, in lines longer than any run or window.
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
