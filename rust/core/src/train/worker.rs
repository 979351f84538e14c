//! Merges pairs in a contiguous range of the words, on one thread.

use std::ops::Range;

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::train::changes::{Changes, Neighbour, grow, ids_with};
use crate::train::pair_counts::{Merge, PairCounts, TokenPair};
use crate::train::postings::Postings;
use crate::train::words::{Seed, Words};

/// A range of the words, and which of them contain each pair.
pub(super) struct Worker {
    pub(super) words: Words,
    postings: Postings,
    pub(super) changes: Changes,
    /// The result of [`Worker::count`].
    pub(super) counted: Vec<(TokenPair, u64)>,
    /// The buffer `numbers` of [`Postings::add_new`].
    numbers: Vec<Option<u32>>,
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
            changes: Changes::default(),
            counted: Vec::new(),
            numbers: Vec::new(),
            failed: None,
        })
    }

    /// Count all pairs; all ids are below `ids`.
    pub(super) fn count(&mut self, ids: u32) -> Result<()> {
        self.counted = self.words.count_pairs(ids)?;
        Ok(())
    }

    /// Rebuild the postings of all pairs; all ids are below `ids`.
    pub(super) fn index(&mut self, pairs: &PairCounts, ids: u32) -> Result<()> {
        // Both are freed first, so that the old and the new postings are never in memory together.
        self.counted = Vec::new();
        self.postings = Postings::default();
        self.postings = Postings::of_words(&self.words, pairs, ids)?;
        Ok(())
    }

    /// The number of words that the merges of these pairs visit.
    pub(super) fn visits(&self, pairs: &[u32]) -> usize {
        pairs.iter().map(|&index| self.postings.of(index).len()).sum()
    }

    /// Make the merges of a batch in order.
    pub(super) fn merge(&mut self, batch: &[Merge], pairs: &PairCounts) -> Result<()> {
        grow(&mut self.numbers, ids_with(batch))?;
        self.changes.begin_batch(batch)?;
        for merge in batch {
            self.changes.begin_merge(*merge);
            let words = self.postings.of(merge.index);
            self.words.merge_all(words, merge.pair, &mut self.changes)?;
            self.postings.clear(merge.index);
            self.changes.end_merge()?;
        }
        self.changes.end_batch(pairs)
    }

    /// Add the postings of the new pairs of a batch. For each merge, `new_neighbours` has the
    /// neighbours in the new pairs that reach the floor, in the order of the indices of these
    /// pairs.
    pub(super) fn add_postings(&mut self, new_neighbours: &[Vec<Neighbour>]) -> Result<()> {
        for (merge, neighbours) in new_neighbours.iter().enumerate() {
            let words = self.changes.created_in(merge);
            self.postings.add_new(neighbours, words, &mut self.numbers)?;
        }
        Ok(())
    }

    /// The first position of a pair in these words; see [`Words::position`].
    pub(super) fn first_position(
        &mut self,
        index: u32,
        pair: TokenPair,
        lengths: &[u32],
    ) -> Option<u64> {
        self.postings.first_position(index, |word| self.words.position(word, pair, lengths))
    }
}
