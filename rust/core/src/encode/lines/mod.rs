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

mod second_phase;

use std::slice;

use crate::encode::cache::SharedCache;
use crate::encode::lookup::{self, Lookup, WINDOW_PRETOKENS};
use crate::encode::misses::{self, Misses};
use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::hash::key::MAX_KEY_BYTES;
use crate::memory;
use crate::merge::merger::{MergeScratch, Merger};
use crate::pretokenize::{Pattern, PretokenEnds, Splitter};
use crate::vocabulary::MergeRule;

pub(crate) use second_phase::crosses_space;
use second_phase::{BitSet, Phases, SecondPhase, hash_start};

/// The pattern that proposes the ends of words. Any pattern gives exact ids; this one splits like
/// most others.
const WORDS: &str = "llama3";

/// At most this many bytes are scanned at once.
const MAX_SCAN_BYTES: usize = 16 * WINDOW_PRETOKENS;

/// The two phases of one vocabulary, and the caches of the first.
#[derive(Debug)]
pub(crate) struct Superwords {
    /// Encodes words with the merges below the limit.
    words: PretokenEncoder,
    cache: SharedCache,
    /// A bit for each pair of bytes: whether they are adjacent in a character or in a token of the
    /// first phase.
    joined: Box<[u64; 1 << 10]>,
    second: SecondPhase,
    /// Filters the lines that may be tokens.
    whole: BitSet,
    /// Proposes the ends of words.
    scanner: Splitter,
}

/// The buffers for encoding lines word by word.
#[derive(Debug, Default)]
pub(crate) struct LineBuffers {
    lookup: Lookup,
    words: WordEnds,
}

/// The same, with buffers that are used for pretokens too.
pub(crate) struct LineScratch<'a> {
    pub(crate) buffers: &'a mut LineBuffers,
    pub(crate) misses: &'a mut Misses,
    pub(crate) merge: &'a mut MergeScratch,
}

/// The words of a window, and the buffer for finding them.
#[derive(Debug, Default)]
struct WordEnds {
    /// The ends of the words.
    ends: Vec<usize>,
    /// For each line, the number of these words before its end.
    bounds: Vec<usize>,
    scanned: Box<PretokenEnds>,
}

impl Superwords {
    /// `None` if no token crosses a space between words, if two phases would not be exact, if there
    /// are user-defined tokens, or if there are too many ids for [`SecondPhase`].
    pub(crate) fn new(encoder: &PretokenEncoder) -> Result<Option<Self>> {
        let (vocabulary, pairs) = (&encoder.vocabulary, &encoder.merger()?.pairs);
        let crosses = |(token, _): (&[u8], u32)| crosses_space(token);
        if encoder.user_defined.is_some() || !vocabulary.ordinary_tokens().any(crosses) {
            return Ok(None);
        }
        let Some(phases) = Phases::new(encoder)? else { return Ok(None) };
        let second = SecondPhase::new(&phases, pairs)?;
        let (joined, whole) = (phases.joined(vocabulary), BitSet::of_tokens(vocabulary)?);
        // The table contains the ids, so the rule only determines that merging starts with bytes.
        let low = Merger::new(vocabulary, MergeRule::Ranks, phases.low.finish(vocabulary)?)?;
        let words = encoder.with_merger(low);
        let cache = SharedCache::default();
        let scanner = Splitter::new(&Pattern::new(WORDS)?)?;
        Ok(Some(Self { words, cache, joined, second, whole, scanner }))
    }

    /// Append the ids of the lines of a text between `start` and each of the ends, word by word, as
    /// `encoder` merges them.
    pub(crate) fn encode(
        &self,
        encoder: &PretokenEncoder,
        (text, start, ends): (&str, usize, &[usize]),
        LineScratch { buffers, misses, merge }: LineScratch<'_>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let text = &text[..ends.last().copied().unwrap_or(start)];
        let (bytes, cached) = (text.as_bytes(), self.words.whole_tokens());
        let mut rest = ends.iter();
        let (mut at, mut line, mut from) = (start, start, out.len());
        while !rest.as_slice().is_empty() {
            let start = at;
            at = self.cut(text, start, &mut rest, &mut buffers.words)?;
            // No pretoken has more ids than bytes.
            memory::reserve(out, at - start)?;
            let LineBuffers { lookup, words } = &mut *buffers;
            lookup.look_up(&self.cache, cached, bytes, start, &words.ends);
            misses.resolve(&self.words, bytes, lookup)?;
            let mut next = 0;
            for &bound in &words.bounds {
                self.append((bytes, start), lookup, &words.ends[..bound], next, merge, out)?;
                let end = words.ends[bound - 1];
                self.finish(encoder, &bytes[line..end], from, out)?;
                (next, line, from) = (bound, end, out.len());
            }
            // The last line goes on in the next window.
            self.append((bytes, start), lookup, &words.ends, next, merge, out)?;
        }
        Ok(())
    }

    /// Append the ids of the words from number `from` on of a window that begins at `start`.
    fn append(
        &self,
        (text, start): (&[u8], usize),
        lookup: &mut Lookup,
        words: &[usize],
        from: usize,
        merge: &mut MergeScratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let mut next = lookup.append(text, start, words, from, out);
        while next < words.len() {
            let word = &text[lookup::range_of(start, words, next)];
            let mut begin = 0;
            for end in self.words.split_points()?.ends(word) {
                misses::append_one(lookup, &self.words, &word[begin..end], merge, out)?;
                begin = end;
            }
            next = lookup.append(text, start, words, next + 1, out);
        }
        Ok(())
    }

    /// Whether a cut lies between two bytes.
    #[inline]
    fn is_cut(&self, left: u8, right: u8) -> bool {
        let bit = usize::from(left) << 8 | usize::from(right);
        self.joined[bit >> 6] >> (bit & 63) & 1 == 0
    }

    /// Find the next words, at most [`WINDOW_PRETOKENS`] of them, and the lines that they complete;
    /// returns the end of the last word. The first word begins at `start`. `lines` yields the ends of
    /// the remaining lines; those of completed lines are consumed. The text ends with the last line.
    ///
    /// The scanner proposes ends; those at cuts are ends of words. So most bytes need no lookup,
    /// and the words are similar to the pretokens of common split patterns.
    fn cut(
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
        let mut part = text.len().min(start + MAX_SCAN_BYTES);
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
                if ends.len() == WINDOW_PRETOKENS {
                    return Ok(at);
                }
            }
            if at < end && self.is_cut(bytes[end - 1], bytes[end]) {
                at = self.cut_long(bytes, at, end, ends);
            }
            if ends.len() == WINDOW_PRETOKENS {
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
        if end - start > MAX_KEY_BYTES {
            return self.cut_line(text, start, end, words);
        }
        if start < end {
            words.push(end);
        }
        end
    }

    /// Append the ends of the words from `start` on, until the line ends at `end` or there are
    /// [`WINDOW_PRETOKENS`] words; returns the last end.
    #[inline]
    fn cut_line(&self, text: &[u8], start: usize, end: usize, words: &mut Vec<usize>) -> usize {
        for (pair, at) in text[start..end].windows(2).zip(start + 1..) {
            if self.is_cut(pair[0], pair[1]) {
                words.push(at);
                if words.len() == WINDOW_PRETOKENS {
                    return at;
                }
            }
        }
        words.push(end);
        end
    }

    /// Run the second phase for a pretoken: merge the ids of its words, which are those from `from`
    /// on. If the pretoken is a token, and the encoder encodes such a pretoken as that token, the
    /// result is its id.
    fn finish(
        &self,
        encoder: &PretokenEncoder,
        pretoken: &[u8],
        from: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if ids.len() - from > 1 {
            self.second.merge(&encoder.merger()?.pairs, from, ids);
        }
        if ids.len() - from > 1
            && encoder.whole_first
            && self.whole.may_hold(hash_start(pretoken))
            && let Some(id) = encoder.vocabulary.id(pretoken)
        {
            ids.truncate(from);
            ids.push(id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
