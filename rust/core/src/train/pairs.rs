//! Pairs of neighbouring tokens and how often each occurs now, in all words.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::words::Words;
use crate::index::Index;
use crate::prefetch::prefetch;

/// Two neighbouring tokens.
pub(super) type Pair = (u32, u32);

/// A pair that is merged, its index, and the id of the token that it becomes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Merge {
    pub(super) pair: Pair,
    pub(super) index: u32,
    pub(super) new: u32,
}

/// How many pairs ahead the memory of a pair is asked for.
const AHEAD: usize = 8;

/// All pairs that were ever born and reached the floor. A pair has an index, given at its birth.
pub(super) struct Pairs {
    index: Index,
    /// Each pair and its count, which is 0 once it is merged.
    entries: Vec<(Pair, u64)>,
}

impl Default for Pairs {
    fn default() -> Self {
        Self { index: Index::of(std::iter::empty(), 0), entries: Vec::new() }
    }
}

impl Pairs {
    /// Add pairs that were not there before; their indices follow those that are there.
    pub(super) fn insert(&mut self, born: &[(Pair, u64)]) {
        let rows = self.entries.len() + born.len();
        assert!(rows <= Index::ROWS, "below 2^32 pairs");
        if !self.index.fits(rows) {
            self.index = Index::of(self.entries.iter().map(|&(pair, _)| hash(pair)), rows);
        }
        for (at, &(pair, count)) in born.iter().enumerate() {
            if let Some(&(later, _)) = born.get(at + AHEAD) {
                self.index.prefetch(hash(later));
            }
            let slot = self.index.find(hash(pair), |_| false).expect_err("no row is the one");
            self.index.put(slot, self.entries.len());
            self.entries.push((pair, count));
        }
    }

    /// One more than the largest index.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("below 2^32 pairs")
    }

    /// The index of a pair that is kept and not yet merged.
    pub(super) fn find(&self, pair: Pair) -> Option<u32> {
        let row = self.index.find(hash(pair), |row| self.entries[row].0 == pair).ok()?;
        (self.entries[row].1 > 0).then(|| u32::try_from(row).expect("below 2^32 pairs"))
    }

    /// The indices of those of many pairs that are kept, each with the number that stands with it.
    pub(super) fn find_all(&self, pairs: &[(Pair, u64)], found: &mut Vec<(u32, u64)>) {
        for (at, &(pair, number)) in pairs.iter().enumerate() {
            if let Some(&(later, _)) = pairs.get(at + 2 * AHEAD) {
                self.index.prefetch(hash(later));
            }
            let later = pairs.get(at + AHEAD);
            if let Some(row) = later.and_then(|&(later, _)| self.index.likely(hash(later))) {
                prefetch(&self.entries, row);
            }
            found.extend(self.find(pair).map(|index| (index, number)));
        }
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

    /// So many occurrences of pairs have ended.
    pub(super) fn lower(&mut self, ended: &[(u32, u64)]) {
        for (at, &(index, count)) in ended.iter().enumerate() {
            if let Some(&(later, _)) = ended.get(at + AHEAD) {
                prefetch(&self.entries, later as usize);
            }
            self.entries[index as usize].1 -= count;
        }
    }

    /// The pair is merged and occurs no more.
    pub(super) fn remove(&mut self, index: u32) {
        self.entries[index as usize].1 = 0;
    }
}

/// A number that depends on all bits of a pair, the more so the higher its own bits.
#[inline]
fn hash((left, right): Pair) -> u64 {
    let pair = u64::from(left) << 32 | u64::from(right);
    let product = u128::from(pair ^ 0x9E37_79B9_7F4A_7C15) * 0xC2B2_AE3D_27D4_EB4F;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a product")]
    let folded = (product as u64) ^ (product >> 64) as u64;
    folded
}

/// How often each pair occurs in some words, in no order.
pub(super) fn count_pairs(words: &Words, ids: u32) -> Vec<(Pair, u64)> {
    if ids <= 256 { count_bytes(words) } else { count_tokens(words) }
}

/// As long as all ids are bytes, a table of all pairs is small.
fn count_bytes(words: &Words) -> Vec<(Pair, u64)> {
    let mut table = vec![0u64; 1 << 16];
    words.for_each_pair(|_, (left, right), count| table[(left << 8 | right) as usize] += count);
    let all = (0..=255).flat_map(|left| (0..=255).map(move |right| (left, right)));
    all.zip(table).filter(|&(_, count)| count > 0).collect()
}

fn count_tokens(words: &Words) -> Vec<(Pair, u64)> {
    let mut table: HashMap<Pair, u64, FixedState> = HashMap::default();
    words.for_each_pair(|_, pair, count| *table.entry(pair).or_insert(0) += count);
    table.into_iter().collect()
}
