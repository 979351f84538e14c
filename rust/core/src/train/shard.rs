//! A contiguous share of the words, with all that its thread needs to merge pairs in them.

use std::ops::Range;

use super::changes::{Changes, Slot};
use super::pairs::{Merge, Pair, Pairs, count_pairs};
use super::start::Start;
use super::words::{Word, Words};
use crate::count::Counts;
use crate::error::Result;

/// A share of the words, and in which of them each pair stands.
pub(super) struct Shard {
    pub(super) words: Words,
    postings: Postings,
    pub(super) changes: Changes,
    /// What [`Shard::count`] found.
    pub(super) counted: Vec<(Pair, u64)>,
    /// For each slot, which of the pairs that a merge bears it names, if any.
    kept: Vec<Option<u32>>,
}

impl Shard {
    /// The share `range` of the pretokens, for ids below `vocab_size`.
    pub(super) fn new(
        counts: &Counts,
        range: Range<usize>,
        start: &mut Start,
        vocab_size: usize,
    ) -> Result<Self> {
        Ok(Self {
            words: Words::new(counts, range, start, vocab_size)?,
            postings: Postings::default(),
            changes: Changes::new(vocab_size),
            counted: Vec::new(),
            kept: vec![None; 2 * vocab_size],
        })
    }

    /// Count all pairs of neighbours, where `ids` ids exist.
    pub(super) fn count(&mut self, ids: u32) {
        self.counted = count_pairs(&self.words, ids);
    }

    /// Find out anew in which words each pair stands, where `ids` ids exist.
    pub(super) fn index(&mut self, pairs: &Pairs, ids: u32) {
        self.postings = Postings::default();
        self.counted = Vec::new();
        let table = Lookup::new(pairs, ids);
        self.postings.add_pairs(pairs.len() as usize);
        self.words.for_each_pair(|_, pair, _| {
            if let Some(index) = table.find(pair) {
                self.postings.expect(index);
            }
        });
        self.postings.lay_out();
        self.words.for_each_pair(|word, pair, _| {
            if let Some(index) = table.find(pair) {
                self.postings.put(index, word);
            }
        });
    }

    /// How many words the merges of pairs will visit.
    pub(super) fn visits(&self, pairs: &[u32]) -> usize {
        pairs.iter().map(|&index| self.postings.of(index).len()).sum()
    }

    /// Make the merges of a batch, one after the other.
    pub(super) fn merge(&mut self, batch: &[Merge], pairs: &Pairs) {
        self.changes.begin_batch(batch);
        for merge in batch {
            self.changes.begin_merge(*merge);
            let words = self.postings.of(merge.index);
            self.words.merge_all(words, merge.pair, &mut self.changes);
            self.changes.end_merge();
        }
        self.changes.end_batch(pairs);
    }

    /// Write down in which words the pairs stand that the batch bears. `born` has the slots of those
    /// that are kept, in the order of their indices, for each merge.
    pub(super) fn place(&mut self, born: &[Vec<Slot>]) {
        for (merge, slots) in born.iter().enumerate() {
            for (slot, which) in slots.iter().zip(0..) {
                self.kept[*slot as usize] = Some(which);
            }
            self.postings.add_pairs(slots.len());
            for &(slot, _) in self.changes.places(merge) {
                if let Some(which) = self.kept[slot as usize] {
                    self.postings.expect(which);
                }
            }
            self.postings.lay_out();
            for &(slot, word) in self.changes.places(merge) {
                if let Some(which) = self.kept[slot as usize] {
                    self.postings.put(which, word);
                }
            }
            for slot in slots {
                self.kept[*slot as usize] = None;
            }
        }
    }

    /// The place of the first occurrence of a pair, as [`Words::place`] gives it. Words before it are
    /// dropped from the postings: they never hold the pair again.
    pub(super) fn first_place(&mut self, index: u32, pair: Pair, lengths: &[u32]) -> Option<u64> {
        let words = self.postings.of(index);
        let mut places = words.iter().map(|&word| self.words.place(word, pair, lengths));
        let first = places.by_ref().enumerate().find_map(|(at, place)| Some((at, place?)));
        let before = first.map_or(words.len(), |(at, _)| at);
        self.postings.drop_first(index, before);
        first.map(|(_, place)| place)
    }
}

/// Finds the indices of pairs; as long as all ids are bytes, in a table of all pairs.
enum Lookup<'a> {
    Bytes(Vec<Option<u32>>),
    Tokens(&'a Pairs),
}

impl<'a> Lookup<'a> {
    fn new(pairs: &'a Pairs, ids: u32) -> Self {
        if ids > 256 {
            return Self::Tokens(pairs);
        }
        let mut table = vec![None; 1 << 16];
        for index in 0..pairs.len() {
            let (left, right) = pairs.pair(index);
            table[(left << 8 | right) as usize] = Some(index);
        }
        Self::Bytes(table)
    }

    #[inline]
    fn find(&self, (left, right): Pair) -> Option<u32> {
        match self {
            Self::Bytes(table) => table[(left << 8 | right) as usize],
            Self::Tokens(pairs) => pairs.find((left, right)),
        }
    }
}

/// The words of each pair, written once at its birth; some of them lose the pair later, and then
/// stand there in vain, which costs a look and no more.
#[derive(Default)]
struct Postings {
    words: Vec<Word>,
    /// The part of `words` of each pair.
    parts: Vec<Range<usize>>,
    /// The first of the pairs that were begun last.
    first: usize,
}

impl Postings {
    /// In order, each word once.
    fn of(&self, index: u32) -> &[Word] {
        &self.words[self.parts[index as usize].clone()]
    }

    fn drop_first(&mut self, index: u32, words: usize) {
        self.parts[index as usize].start += words;
    }

    /// Begin with so many pairs more. Each word of each of them is first expected, then, when their
    /// room is laid out, put there; pairs go by their number among these.
    fn add_pairs(&mut self, pairs: usize) {
        self.first = self.parts.len();
        self.parts.resize(self.first + pairs, 0..0);
    }

    #[inline]
    fn expect(&mut self, pair: u32) {
        self.parts[self.first + pair as usize].end += 1;
    }

    fn lay_out(&mut self) {
        let mut end = self.words.len();
        for part in &mut self.parts[self.first..] {
            let start = end;
            end += part.end;
            *part = start..start;
        }
        self.words.resize(end, 0);
    }

    #[inline]
    fn put(&mut self, pair: u32, word: Word) {
        let part = &mut self.parts[self.first + pair as usize];
        if part.start == part.end || self.words[part.end - 1] != word {
            self.words[part.end] = word;
            part.end += 1;
        }
    }
}
