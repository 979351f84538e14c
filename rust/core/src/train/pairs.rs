//! Pairs of neighbouring tokens: how often each occurs now, and in which words.
//!
//! A pair has an index, given at its birth. Its words are written once, then, into one arena; some
//! of them lose the pair later, and then stand there in vain, which costs a look and no more.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::words::{Changes, Word, Words};

/// All pairs that were ever born and reached the floor.
pub(super) struct Pairs {
    index: HashMap<(u32, u32), u32, FixedState>,
    entries: Vec<Entry>,
    /// The words of all pairs; those of one pair are a range, in order.
    postings: Vec<Word>,
}

struct Entry {
    pair: (u32, u32),
    count: u64,
    /// The range of its words in the postings.
    start: usize,
    end: usize,
}

impl Pairs {
    /// All pairs of neighbours that occur at least `floor` times.
    pub(super) fn of_words(words: &Words, floor: u64) -> Self {
        let mut counts: HashMap<(u32, u32), u64, FixedState> = HashMap::default();
        for (_, ids, count) in words.iter() {
            for pair in ids.windows(2) {
                *counts.entry((pair[0], pair[1])).or_insert(0) += count;
            }
        }
        let mut kept: Vec<((u32, u32), u64)> =
            counts.into_iter().filter(|&(_, count)| count >= floor).collect();
        kept.sort_unstable();
        let pairs = kept.iter().map(|&(pair, _)| pair);
        let index: HashMap<_, _, _> = pairs.zip(0u32..).collect();
        let postings = postings(words, &index);
        let mut all = Self { index: HashMap::default(), entries: Vec::new(), postings: Vec::new() };
        for ((pair, count), words) in kept.into_iter().zip(postings) {
            all.insert(pair, count, &words);
        }
        all
    }

    fn insert(&mut self, pair: (u32, u32), count: u64, words: &[Word]) {
        let start = self.postings.len();
        self.postings.extend_from_slice(words);
        self.index.insert(pair, self.len());
        self.entries.push(Entry { pair, count, start, end: self.postings.len() });
    }

    /// One more than the largest index.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("below 2^32 pairs")
    }

    pub(super) fn pair(&self, index: u32) -> (u32, u32) {
        self.entries[index as usize].pair
    }

    /// How often the pair occurs now.
    pub(super) fn count(&self, index: u32) -> u64 {
        self.entries[index as usize].count
    }

    /// The words in which the pair was born, in order.
    pub(super) fn postings(&self, index: u32) -> &[Word] {
        let Entry { start, end, .. } = self.entries[index as usize];
        &self.postings[start..end]
    }

    /// The pair is merged and occurs no more.
    pub(super) fn remove(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.count = 0;
        self.index.remove(&entry.pair);
    }

    /// Take over what a merge changed. Pairs that are born below `floor` can never reach it and are
    /// not kept.
    pub(super) fn take_over(&mut self, changes: &mut Changes, floor: u64) {
        changes.drain_deaths(|pair, count| {
            if let Some(&index) = self.index.get(&pair) {
                self.entries[index as usize].count -= count;
            }
        });
        changes.drain_births(|pair, count, words| {
            if count >= floor {
                self.insert(pair, count, words);
            }
        });
    }

    /// The place of the first occurrence, as [`Words::place`] gives it; the largest number if there
    /// is none. Words before it are dropped from the postings: they never hold the pair again.
    pub(super) fn first_place(&mut self, words: &Words, index: u32) -> u64 {
        let Entry { pair, start, end, .. } = self.entries[index as usize];
        let mut places = (start..end).map(|at| (at, words.place(self.postings[at], pair)));
        let first = places.find_map(|(at, place)| Some((at, place?)));
        let (at, place) = first.unwrap_or((end, u64::MAX));
        self.entries[index as usize].start = at;
        place
    }
}

/// The words of each pair of an index, in order, each word once.
fn postings(words: &Words, index: &HashMap<(u32, u32), u32, FixedState>) -> Vec<Vec<Word>> {
    let mut postings = vec![Vec::new(); index.len()];
    for (word, ids, _) in words.iter() {
        for pair in ids.windows(2) {
            if let Some(&index) = index.get(&(pair[0], pair[1])) {
                let postings = &mut postings[index as usize];
                if postings.last() != Some(&word) {
                    postings.push(word);
                }
            }
        }
    }
    postings
}
