//! Pairs of neighbouring tokens and how often each occurs now, in all words.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::words::Words;

/// Two neighbouring tokens.
pub(super) type Pair = (u32, u32);

/// A pair that is merged, its index, and the id of the token that it becomes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Merge {
    pub(super) pair: Pair,
    pub(super) index: u32,
    pub(super) new: u32,
}

/// All pairs that were ever born and reached the floor. A pair has an index, given at its birth.
#[derive(Default)]
pub(super) struct Pairs {
    index: HashMap<Pair, u32, FixedState>,
    entries: Vec<(Pair, u64)>,
}

impl Pairs {
    /// The index of a pair that was not there before.
    pub(super) fn insert(&mut self, pair: Pair, count: u64) -> u32 {
        let index = self.len();
        self.index.insert(pair, index);
        self.entries.push((pair, count));
        index
    }

    /// One more than the largest index.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("below 2^32 pairs")
    }

    pub(super) fn find(&self, pair: Pair) -> Option<u32> {
        self.index.get(&pair).copied()
    }

    pub(super) fn pair(&self, index: u32) -> Pair {
        self.entries[index as usize].0
    }

    /// A pair and how often it occurs now.
    pub(super) fn counted(&self, index: u32) -> (Pair, u64) {
        self.entries[index as usize]
    }

    /// How often the pair occurs now.
    pub(super) fn count(&self, index: u32) -> u64 {
        self.entries[index as usize].1
    }

    /// Some occurrences of a pair have ended.
    pub(super) fn lower(&mut self, index: u32, count: u64) {
        self.entries[index as usize].1 -= count;
    }

    /// The pair is merged and occurs no more.
    pub(super) fn remove(&mut self, index: u32) {
        let (pair, count) = &mut self.entries[index as usize];
        *count = 0;
        self.index.remove(pair);
    }
}

/// How often each pair occurs in some words, in no order.
pub(super) fn count_pairs(words: &Words, ids: u32) -> Vec<(Pair, u64)> {
    if ids <= 256 { count_bytes(words) } else { count_tokens(words) }
}

/// As long as all ids are bytes, a table of all pairs is small.
fn count_bytes(words: &Words) -> Vec<(Pair, u64)> {
    let mut table = vec![0u64; 1 << 16];
    for (_, ids, count) in words.iter() {
        for pair in ids.windows(2) {
            table[(pair[0] << 8 | pair[1]) as usize] += count;
        }
    }
    let all = (0..=255).flat_map(|left| (0..=255).map(move |right| (left, right)));
    all.zip(table).filter(|&(_, count)| count > 0).collect()
}

fn count_tokens(words: &Words) -> Vec<(Pair, u64)> {
    let mut table: HashMap<Pair, u64, FixedState> = HashMap::default();
    for (_, ids, count) in words.iter() {
        for pair in ids.windows(2) {
            *table.entry((pair[0], pair[1])).or_insert(0) += count;
        }
    }
    table.into_iter().collect()
}
