//! Finds the words that contain a pair.

use std::ops::Range;

use crate::error::Result;
use crate::train::changes::{Changes, Neighbour, grow, resize};
use crate::train::pair_counts::Word;

/// Dropped postings take at most one part of the memory in this many; in a large corpus, they would
/// take half of it after some thousand merges.
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
    /// The number of the pair of each neighbour, while the new pairs of a merge are added.
    numbers: Vec<Option<u32>>,
}

impl Postings {
    /// Add the postings of the new pairs of a merge, which is given by its number in the batch.
    /// `neighbours` are the neighbours in these pairs, in the order of the indices of the pairs.
    pub(super) fn add_new(
        &mut self,
        neighbours: &[Neighbour],
        merge: usize,
        changes: &Changes,
    ) -> Result<()> {
        let words = changes.created_in(merge);
        grow(&mut self.numbers, changes.ids())?;
        for (&neighbour, number) in neighbours.iter().zip(0..) {
            self.numbers[neighbour as usize] = Some(number);
        }
        self.add_pairs(neighbours.len())?;
        // A neighbour without a number makes a pair below the floor, which has no postings.
        for &(neighbour, _) in words {
            if let Some(number) = self.numbers[neighbour as usize] {
                self.expect(number);
            }
        }
        self.lay_out()?;
        for &(neighbour, word) in words {
            if let Some(number) = self.numbers[neighbour as usize] {
                self.put(number, word);
            }
        }
        // Only the entries that were set are reset: the buffer has one for each id.
        for &neighbour in neighbours {
            self.numbers[neighbour as usize] = None;
        }
        Ok(())
    }

    /// The words of a pair, in order and without duplicates.
    pub(super) fn of(&self, index: u32) -> &[Word] {
        &self.words[self.ranges[index as usize].clone()]
    }

    /// Drop the first words of a pair.
    pub(super) fn drop_first(&mut self, index: u32, words: usize) {
        self.ranges[index as usize].start += words;
        self.dropped += words;
    }

    /// Forget the words of a merged pair.
    pub(super) fn clear(&mut self, index: u32) {
        self.drop_first(index, self.ranges[index as usize].len());
    }

    /// Add pairs. Until the next call, the other methods number them from 0. First
    /// [`expect`](Self::expect) is called for each word of each pair, to count them, then
    /// [`lay_out`](Self::lay_out), and then [`put`](Self::put) again for each word of each pair.
    pub(super) fn add_pairs(&mut self, pairs: usize) -> Result<()> {
        self.first = self.ranges.len();
        resize(&mut self.ranges, self.first + pairs)
    }

    #[inline]
    pub(super) fn expect(&mut self, pair: u32) {
        self.ranges[self.first + pair as usize].end += 1;
    }

    pub(super) fn lay_out(&mut self) -> Result<()> {
        // Each dropped posting then pays for moving a few others and a few ranges.
        if self.dropped >= self.ranges.len().max(self.words.len() / DROPPED_SHARE) {
            self.compact();
        }
        // `expect` has counted the postings of a new range in its `end`. The range becomes empty, and
        // that much space follows it.
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
    pub(super) fn put(&mut self, pair: u32, word: Word) {
        let range = &mut self.ranges[self.first + pair as usize];
        // Words come in order, so a word that has the pair twice is the last posting already. Its
        // second place stays unused.
        if range.start == range.end || self.words[range.end - 1] != word {
            self.words[range.end] = word;
            range.end += 1;
        }
    }
}
