//! Finds the words that contain a pair.

use std::ops::Range;

use crate::error::Result;
use crate::memory;
use crate::train::changes::{Changes, Neighbour, resize};
use crate::train::order::TokenOrder;
use crate::train::pair_counts::{Merge, PairCounts, TokenPair, Word};
use crate::train::words::Words;

/// Dropped postings take at most one part in so many of the memory; in a large corpus, they would be
/// half of it after some thousand merges.
const DROPPED_SHARE: usize = 4;

/// The words that contain each pair, written once when the pair is created. A word that later loses
/// the pair stays in the list, at the cost of a visit without effect.
#[derive(Default)]
pub(super) struct Postings {
    words: Vec<Word>,
    /// The range in `words` of each pair.
    ranges: Vec<Range<usize>>,
    /// The index of the first of the pairs that were added last.
    first: usize,
    /// How many postings were dropped and are still in `words`.
    dropped: usize,
}

impl Postings {
    /// The postings of all pairs that are kept; all ids are below `ids`.
    pub(super) fn of_words(words: &Words, pairs: &PairCounts, ids: u32) -> Result<Self> {
        let mut postings = Self::default();
        let table = PairIndex::new(pairs, ids)?;
        // A counting sort: the first walk over the words counts the postings of each pair, so all
        // lists get their place in one vector, and the second walk fills them.
        postings.add_pairs(pairs.len() as usize)?;
        words.for_each_pair(|_, pair, _| {
            if let Some(index) = table.find(pair) {
                postings.expect(index);
            }
        });
        postings.lay_out()?;
        words.for_each_pair(|word, pair, _| {
            if let Some(index) = table.find(pair) {
                postings.put(index, word);
            }
        });
        Ok(postings)
    }

    /// Make the merges of a batch in order, in the words of these postings. The pairs of the batch
    /// are at count 0 already, so their own changes are not recorded.
    pub(super) fn merge(
        &mut self,
        words: &mut Words,
        batch: &[Merge],
        pairs: &PairCounts,
        changes: &mut Changes,
    ) -> Result<()> {
        changes.begin_batch(batch)?;
        for merge in batch {
            changes.begin_merge(*merge);
            words.merge_all(self.of(merge.index), merge.pair, changes)?;
            self.clear(merge.index);
            changes.end_merge()?;
        }
        changes.end_batch(pairs)
    }

    /// Add the postings of the new pairs of a merge, which is given by its number in the batch.
    /// `neighbours` are the neighbours in these pairs, in the order of the indices of the pairs.
    pub(super) fn add_new(
        &mut self,
        neighbours: &[Neighbour],
        merge: usize,
        changes: &mut Changes,
    ) -> Result<()> {
        let (words, numbers) = changes.created_in(merge);
        for (neighbour, number) in neighbours.iter().zip(0..) {
            numbers[*neighbour as usize] = Some(number);
        }
        self.add_pairs(neighbours.len())?;
        // A neighbour without a number makes a pair below the floor, which has no postings.
        for &(neighbour, _) in words {
            if let Some(number) = numbers[neighbour as usize] {
                self.expect(number);
            }
        }
        self.lay_out()?;
        for &(neighbour, word) in words {
            if let Some(number) = numbers[neighbour as usize] {
                self.put(number, word);
            }
        }
        // Only the entries that were set are reset: the buffer has one for each id.
        for neighbour in neighbours {
            numbers[*neighbour as usize] = None;
        }
        Ok(())
    }

    /// The first position of a pair in the words of these postings. The postings before it are
    /// dropped, since those words never contain the pair again.
    pub(super) fn first_position(
        &mut self,
        words: &Words,
        (index, pair): (u32, TokenPair),
        order: &TokenOrder,
    ) -> Option<u64> {
        let of_pair = self.of(index);
        let mut positions = of_pair.iter().map(|&word| words.position(word, pair, order));
        let first = positions.by_ref().enumerate().find_map(|(at, position)| Some((at, position?)));
        // Occurrences only disappear, so a word without the pair never has it again: dropping these
        // postings now spares the next call and the merge a visit.
        let before = first.map_or(of_pair.len(), |(at, _)| at);
        self.drop_first(index, before);
        first.map(|(_, position)| position)
    }

    /// The words of a pair, in order and without duplicates.
    pub(super) fn of(&self, index: u32) -> &[Word] {
        &self.words[self.ranges[index as usize].clone()]
    }

    fn drop_first(&mut self, index: u32, words: usize) {
        self.ranges[index as usize].start += words;
        self.dropped += words;
    }

    /// Forget the words of a merged pair.
    fn clear(&mut self, index: u32) {
        self.drop_first(index, self.ranges[index as usize].len());
    }

    /// Add pairs. Until the next call, the other methods number them from 0. First
    /// [`expect`](Self::expect) is called for each word of each pair, to count them, then
    /// [`lay_out`](Self::lay_out), and then [`put`](Self::put) again for each word of each pair.
    fn add_pairs(&mut self, pairs: usize) -> Result<()> {
        self.first = self.ranges.len();
        resize(&mut self.ranges, self.first + pairs)
    }

    #[inline]
    fn expect(&mut self, pair: u32) {
        self.ranges[self.first + pair as usize].end += 1;
    }

    fn lay_out(&mut self) -> Result<()> {
        // Each dropped posting then pays for moving a few others and a few ranges.
        if self.dropped >= self.ranges.len().max(self.words.len() / DROPPED_SHARE) {
            self.compact();
        }
        // Until here, `end` of a new range is the number of its postings; now it becomes a range
        // that is empty and has that much space behind it.
        let mut end = self.words.len();
        for range in &mut self.ranges[self.first..] {
            let start = end;
            end += range.end;
            *range = start..start;
        }
        resize(&mut self.words, end)
    }

    /// Move the postings of the older pairs over those that were dropped.
    fn compact(&mut self) {
        let mut end = 0;
        // Lists are in the order of their pairs, so each moves to the left.
        for range in &mut self.ranges[..self.first] {
            self.words.copy_within(range.clone(), end);
            *range = end..end + range.len();
            end = range.end;
        }
        self.words.truncate(end);
        self.dropped = 0;
    }

    #[inline]
    fn put(&mut self, pair: u32, word: Word) {
        let range = &mut self.ranges[self.first + pair as usize];
        // Words come in order, so a word that has the pair twice is the last posting already. Its
        // second place stays unused.
        if range.start == range.end || self.words[range.end - 1] != word {
            self.words[range.end] = word;
            range.end += 1;
        }
    }
}

/// Finds the indices of pairs; while all ids are bytes, in a table of all pairs of bytes.
enum PairIndex<'a> {
    Bytes(Vec<Option<u32>>),
    Tokens(&'a PairCounts),
}

impl<'a> PairIndex<'a> {
    fn new(pairs: &'a PairCounts, ids: u32) -> Result<Self> {
        if ids > 256 {
            return Ok(Self::Tokens(pairs));
        }
        // One lookup by both bytes instead of a hash, for each pair of the corpus.
        let mut table = memory::filled(None, 1 << 16)?;
        for index in 0..pairs.len() {
            let (left, right) = pairs.pair(index);
            table[(left << 8 | right) as usize] = Some(index);
        }
        Ok(Self::Bytes(table))
    }

    #[inline]
    fn find(&self, (left, right): TokenPair) -> Option<u32> {
        match self {
            Self::Bytes(table) => table[(left << 8 | right) as usize],
            Self::Tokens(pairs) => pairs.find((left, right)),
        }
    }
}
