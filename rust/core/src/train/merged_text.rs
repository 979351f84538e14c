//! One text in which given merges are made, one by one; all its pairs are counted.
//!
//! The workers of a training share the counts of pairs, and keep only frequent pairs. A merged text
//! keeps all its pairs itself: any of them may be merged next, since another text may choose it.

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::memory;
use crate::tokenizer::Tokenizer;
use crate::train::changes::{Changes, Neighbour, new_pair};
use crate::train::order::TokenOrder;
use crate::train::pair_counts::{Merge, PairCounts, TokenPair};
use crate::train::postings::Postings;
use crate::train::queue::Queue;
use crate::train::words::{Seed, Words, words};

/// The words of a text, its pairs with their counts, and where they occur.
pub struct MergedText {
    words: Box<dyn Words>,
    pairs: PairCounts,
    postings: Postings,
    tokens: u64,
}

impl MergedText {
    /// The text of these counts in the tokens of `base`, or in bytes if there is none, for ids
    /// below `vocab_size`. Fails if it has more than 2^64 adjacent pairs or tokens.
    pub fn new(counts: &Counts, base: Option<&Tokenizer>, vocab_size: usize) -> Result<Self> {
        let ids = base.map_or(256, |base| base.vocabulary().len());
        let ids = u32::try_from(ids).map_err(|_| Error::CountOverflow)?;
        let words = words(counts, 0..counts.len(), &mut Seed::new(base)?, vocab_size)?;
        let tokens = words.total_pairs()?.checked_add(counts.total()?);
        let tokens = tokens.ok_or(Error::CountOverflow)?;
        let pairs = words.count_pairs(ids)?.frequent(1)?;
        let postings = words.postings(&pairs, ids)?;
        Ok(Self { words, pairs, postings, tokens })
    }

    /// The number of tokens in the text.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The number of all pairs, which have indices in order of creation.
    pub fn pair_count(&self) -> u32 {
        self.pairs.len()
    }

    /// The index of a pair, if the text has it and it is not yet merged.
    pub fn find(&self, pair: TokenPair) -> Option<u32> {
        self.pairs.find(pair)
    }

    /// The pair of an index, and its count, which is 0 once it is merged.
    pub fn counted(&self, index: u32) -> (TokenPair, u64) {
        self.pairs.counted(index)
    }

    /// The number of words that the merge of a pair visits.
    pub fn visits(&self, index: u32) -> usize {
        self.postings.of(index).len()
    }

    /// Take the next pair of this text from its queue; returns the index of the pair.
    pub fn next_pair(
        &mut self,
        queue: &mut Queue,
        order: &TokenOrder,
        floor: u64,
    ) -> Result<Option<u32>> {
        let Self { words, pairs, postings, .. } = self;
        let next = queue.pop(order, pairs, floor, &mut |index| {
            let first = words.first_position(postings, (index, pairs.pair(index)), order);
            // A pair without an occurrence comes after all pairs that have a position.
            first.map_or((1, 0), |position| (0, position))
        })?;
        Ok(next.map(|(_, _, index)| index))
    }

    /// Merge the pair of an index into a new token, and count the pairs that this creates. Returns
    /// how many occurrences were replaced.
    pub fn merge(&mut self, index: u32, new: u32, changes: &mut Changes) -> Result<u64> {
        let merge = Merge { pair: self.pairs.pair(index), index, new };
        self.pairs.remove(index);
        // A batch of one merge: the next one may be chosen by another text.
        self.words.merge_batch(&mut self.postings, &[merge], &self.pairs, changes)?;
        self.pairs.lower(&changes.removed_by_index);
        // All created pairs get an index, however rare they are, so every neighbour has postings.
        let created = changes.created(0).iter();
        let pairs = created.clone().map(|&(neighbour, count)| (new_pair(neighbour, new), count));
        self.pairs.insert(&memory::collect(pairs)?)?;
        let neighbours: Vec<Neighbour> = memory::collect(created.map(|&(neighbour, _)| neighbour))?;
        self.postings.add_new(&neighbours, 0, changes)?;
        self.tokens -= changes.replacements[0];
        Ok(changes.replacements[0])
    }
}
