//! A contiguous range of the words, and the data with which one thread merges pairs in them.

use std::ops::Range;

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::memory;
use crate::train::changes::{Changes, Neighbour, grow, ids_with, resize};
use crate::train::pair::{Merge, TokenPair, Word};
use crate::train::pair_counts::PairCounts;
use crate::train::seed::Seed;
use crate::train::words::Words;

/// A range of the words, and which of them contain each pair.
pub(super) struct Worker {
    pub(super) words: Words,
    postings: Postings,
    pub(super) changes: Changes,
    /// The result of [`Worker::count`].
    pub(super) counted: Vec<(TokenPair, u64)>,
    /// For each neighbour, the number of its pair among the new pairs of a merge that are kept.
    kept: Vec<Option<u32>>,
    /// The error of the last round.
    pub(super) failed: Option<Error>,
}

impl Worker {
    /// The pretokens of `range`, for ids below `vocab_size`.
    pub(super) fn new(
        counts: &Counts,
        range: Range<usize>,
        seed: &mut Seed,
        vocab_size: usize,
    ) -> Result<Self> {
        Ok(Self {
            words: Words::new(counts, range, seed, vocab_size)?,
            postings: Postings::default(),
            changes: Changes::new(),
            counted: Vec::new(),
            kept: Vec::new(),
            failed: None,
        })
    }

    /// Count all pairs, where `ids` ids exist.
    pub(super) fn count(&mut self, ids: u32) -> Result<()> {
        self.counted = self.words.count_pairs(ids)?;
        Ok(())
    }

    /// Rebuild the postings of all pairs, where `ids` ids exist.
    pub(super) fn index(&mut self, pairs: &PairCounts, ids: u32) -> Result<()> {
        self.postings = Postings::default();
        self.counted = Vec::new();
        let table = PairIndex::new(pairs, ids)?;
        self.postings.add_pairs(pairs.len() as usize)?;
        self.words.for_each_pair(|_, pair, _| {
            if let Some(index) = table.find(pair) {
                self.postings.expect(index);
            }
        });
        self.postings.lay_out()?;
        self.words.for_each_pair(|word, pair, _| {
            if let Some(index) = table.find(pair) {
                self.postings.put(index, word);
            }
        });
        Ok(())
    }

    /// How many words the merges of these pairs visit.
    pub(super) fn visits(&self, pairs: &[u32]) -> usize {
        pairs.iter().map(|&index| self.postings.of(index).len()).sum()
    }

    /// Make the merges of a batch in order.
    pub(super) fn merge(&mut self, batch: &[Merge], pairs: &PairCounts) -> Result<()> {
        grow(&mut self.kept, ids_with(batch))?;
        self.changes.begin_batch(batch)?;
        for merge in batch {
            self.changes.begin_merge(*merge);
            let words = self.postings.of(merge.index);
            self.words.merge_all(words, merge.pair, &mut self.changes)?;
            self.changes.end_merge()?;
        }
        self.changes.end_batch(pairs)
    }

    /// Add the postings of the new pairs of a batch. For each merge, `kept` has the neighbours of
    /// the new pairs that are kept, in the order of their indices.
    pub(super) fn add_postings(&mut self, kept: &[Vec<Neighbour>]) -> Result<()> {
        for (merge, neighbours) in kept.iter().enumerate() {
            for (neighbour, number) in neighbours.iter().zip(0..) {
                self.kept[*neighbour as usize] = Some(number);
            }
            self.postings.add_pairs(neighbours.len())?;
            for &(neighbour, _) in self.changes.places(merge) {
                if let Some(number) = self.kept[neighbour as usize] {
                    self.postings.expect(number);
                }
            }
            self.postings.lay_out()?;
            for &(neighbour, word) in self.changes.places(merge) {
                if let Some(number) = self.kept[neighbour as usize] {
                    self.postings.put(number, word);
                }
            }
            for neighbour in neighbours {
                self.kept[*neighbour as usize] = None;
            }
        }
        Ok(())
    }

    /// The first position of a pair, as of [`Words::position`]. Words before it are dropped from
    /// the postings: they never contain the pair again.
    pub(super) fn first_position(
        &mut self,
        index: u32,
        pair: TokenPair,
        lengths: &[u32],
    ) -> Option<u64> {
        let words = self.postings.of(index);
        let mut positions = words.iter().map(|&word| self.words.position(word, pair, lengths));
        let first = positions.by_ref().enumerate().find_map(|(at, found)| Some((at, found?)));
        let before = first.map_or(words.len(), |(at, _)| at);
        self.postings.drop_first(index, before);
        first.map(|(_, position)| position)
    }
}

/// Finds the indices of pairs: while all ids are bytes, in a table of all pairs.
enum PairIndex<'a> {
    Bytes(Vec<Option<u32>>),
    Tokens(&'a PairCounts),
}

impl<'a> PairIndex<'a> {
    fn new(pairs: &'a PairCounts, ids: u32) -> Result<Self> {
        if ids > 256 {
            return Ok(Self::Tokens(pairs));
        }
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

/// The words that contain each pair, written once when the pair is created. A word may lose the
/// pair later; it stays in the list, which costs a visit without effect.
#[derive(Default)]
struct Postings {
    words: Vec<Word>,
    /// The range in `words` of each pair.
    ranges: Vec<Range<usize>>,
    /// The first of the pairs that were added last.
    first: usize,
}

impl Postings {
    /// The words of a pair, in order and without repetition.
    fn of(&self, index: u32) -> &[Word] {
        &self.words[self.ranges[index as usize].clone()]
    }

    fn drop_first(&mut self, index: u32, words: usize) {
        self.ranges[index as usize].start += words;
    }

    /// Add pairs, numbered from 0 until the next call. Each word of each pair is first announced by
    /// [`expect`](Self::expect), which counts it; after [`lay_out`](Self::lay_out),
    /// [`put`](Self::put) writes it.
    fn add_pairs(&mut self, pairs: usize) -> Result<()> {
        self.first = self.ranges.len();
        resize(&mut self.ranges, self.first + pairs)
    }

    #[inline]
    fn expect(&mut self, pair: u32) {
        self.ranges[self.first + pair as usize].end += 1;
    }

    fn lay_out(&mut self) -> Result<()> {
        let mut end = self.words.len();
        for range in &mut self.ranges[self.first..] {
            let start = end;
            end += range.end;
            *range = start..start;
        }
        resize(&mut self.words, end)
    }

    #[inline]
    fn put(&mut self, pair: u32, word: Word) {
        let range = &mut self.ranges[self.first + pair as usize];
        if range.start == range.end || self.words[range.end - 1] != word {
            self.words[range.end] = word;
            range.end += 1;
        }
    }
}
