//! Pairs of neighbouring tokens: how often each occurs now, and in which words.
//!
//! A pair has an index, given at its birth. Its words are written once, then, into one arena; some
//! of them lose the pair later, and then stand there in vain, which costs a look and no more.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::words::{Changes, Words};

/// All pairs that were ever born and may be merged.
pub(super) struct Pairs {
    index: HashMap<(u32, u32), u32, FixedState>,
    entries: Vec<Entry>,
    /// The words of all pairs; those of one pair are a range, in order.
    postings: Vec<u32>,
}

struct Entry {
    pair: (u32, u32),
    count: u64,
    /// The range of its words in the postings.
    start: usize,
    end: usize,
}

impl Pairs {
    /// The pairs of bytes, before any merge.
    pub(super) fn of_bytes(words: &Words) -> Self {
        let mut found = vec![(0u64, Vec::new()); 1 << 16];
        for (word, ids, count) in words.iter() {
            for pair in ids.windows(2) {
                let (sum, postings) = &mut found[(pair[0] << 8 | pair[1]) as usize];
                *sum += count;
                if postings.last() != Some(&word) {
                    postings.push(word);
                }
            }
        }
        let mut pairs =
            Self { index: HashMap::default(), entries: Vec::new(), postings: Vec::new() };
        for (pair, (count, postings)) in (0u32..).zip(found).filter(|(_, (_, p))| !p.is_empty()) {
            pairs.insert((pair >> 8, pair & 0xFF), count, &postings);
        }
        pairs
    }

    fn insert(&mut self, pair: (u32, u32), count: u64, words: &[u32]) {
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
    pub(super) fn postings(&self, index: u32) -> &[u32] {
        let Entry { start, end, .. } = self.entries[index as usize];
        &self.postings[start..end]
    }

    /// The pair is merged and occurs no more.
    pub(super) fn remove(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.count = 0;
        self.index.remove(&entry.pair);
    }

    /// Take over what a merge changed. Pairs that are born below `min_count` can never reach it and
    /// are not kept.
    pub(super) fn take_over(&mut self, changes: &mut Changes, min_count: u64) {
        changes.drain_deaths(|pair, count| {
            if let Some(&index) = self.index.get(&pair) {
                self.entries[index as usize].count -= count;
            }
        });
        changes.drain_births(|pair, count, words| {
            if count >= min_count {
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
