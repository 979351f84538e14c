//! Distinct pretokens as sequences of ids, rewritten in place as merges are made.

use std::ops::Range;

use super::changes::Changes;
use super::pairs::Pair;
use super::start::Start;
use crate::count::Counts;
use crate::error::{Error, Result};
use crate::prefetch::prefetch;

/// Names a word: where its cells begin.
pub(super) type Word = u32;

/// What stands before the ids of a word: room, length, and the count in two halves.
const HEADER: usize = 4;

/// How many words ahead the memory of a word is asked for.
const AHEAD: usize = 12;

/// A range of the distinct pretokens, without those of one id.
///
/// All about a word stands in one place, because words are visited in no order and the memory of
/// each is waited for: its room and its length in ids, its count, then its ids.
#[derive(Default)]
pub(super) struct Words {
    cells: Vec<u32>,
}

impl Words {
    /// Fails if there are too many for the names of words, or if a pretoken has no ids.
    pub(super) fn new(counts: &Counts, range: Range<usize>, start: &mut Start) -> Result<Self> {
        let most = range.len() * HEADER + counts.bytes_of(&range);
        let mut words = Self { cells: Vec::with_capacity(most) };
        let mut ids = Vec::new();
        for (pretoken, count) in counts.range(range) {
            start.ids(pretoken, &mut ids)?;
            if ids.len() > 1 {
                words.push(&ids, count)?;
            }
        }
        Ok(words)
    }

    /// How many pairs of neighbours the corpus has in these words. Fails beyond 64 bits; if it does
    /// not, no count of a pair can overflow later.
    pub(super) fn total_pairs(&self) -> Result<u64> {
        let mut words = self.iter();
        let total = words.try_fold(0u64, |sum, (_, ids, count)| {
            sum.checked_add(count.checked_mul(ids.len() as u64 - 1)?)
        });
        total.ok_or(Error::CountOverflow)
    }

    fn push(&mut self, ids: &[u32], count: u64) -> Result<()> {
        let length = u32::try_from(ids.len()).map_err(|_| Error::TooManyPretokens)?;
        let [low, high] = halves(count);
        self.cells.extend([length, length, low, high]);
        self.cells.extend_from_slice(ids);
        match u32::try_from(self.cells.len()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::TooManyPretokens),
        }
    }

    /// The words with their ids and counts, in the order of the counts that they come from.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Word, &[u32], u64)> + Clone {
        let mut word = 0;
        std::iter::repeat_with(|| ()).map_while(move |()| {
            let room = *self.cells.get(word as usize)?;
            let item = (word, self.ids(word), self.count(word));
            word += u32::try_from(HEADER).expect("a small number") + room;
            Some(item)
        })
    }

    fn ids(&self, word: Word) -> &[u32] {
        let start = word as usize + HEADER;
        &self.cells[start..start + self.cells[word as usize + 1] as usize]
    }

    fn count(&self, word: Word) -> u64 {
        let word = word as usize;
        u64::from(self.cells[word + 2]) | u64::from(self.cells[word + 3]) << 32
    }

    /// Where a pair first occurs in a word, as a number that grows from word to word and from byte
    /// to byte. `lengths` has the length in bytes of each token.
    pub(super) fn place(&self, word: Word, pair: Pair, lengths: &[u32]) -> Option<u64> {
        let ids = self.ids(word);
        let at = position(ids, pair)?;
        let bytes = ids[..at].iter().map(|&id| u64::from(lengths[id as usize]));
        Some(u64::from(word) << 32 | bytes.sum::<u64>())
    }

    /// How often a pair occurs, by looking at every word.
    pub(super) fn count_pair(&self, pair: Pair) -> u64 {
        let occurrences = |ids: &[u32]| ids.windows(2).filter(|w| (w[0], w[1]) == pair).count();
        self.iter().map(|(_, ids, count)| occurrences(ids) as u64 * count).sum()
    }

    /// Merge a pair in all these words and add what that changes.
    pub(super) fn merge_all(&mut self, words: &[Word], pair: Pair, changes: &mut Changes) {
        for (index, &word) in words.iter().enumerate() {
            if let Some(&later) = words.get(index + AHEAD) {
                prefetch(&self.cells, later as usize);
                prefetch(&self.cells, later as usize + 15);
            }
            self.merge(word, pair, changes);
        }
    }

    /// Merge a pair in one word, from left to right.
    fn merge(&mut self, word: Word, pair: Pair, changes: &mut Changes) {
        let Some(first) = position(self.ids(word), pair) else { return };
        let count = self.count(word);
        let start = word as usize + HEADER;
        let length = self.cells[word as usize + 1] as usize;
        let ids = &mut self.cells[start..start + length];
        let (mut read, mut write) = (first, first);
        while read < length {
            if read + 1 < length && (ids[read], ids[read + 1]) == pair {
                let before = write.checked_sub(1).map(|at| ids[at]);
                changes.add(before, ids.get(read + 2).copied(), word, count);
                ids[write] = changes.new_id();
                read += 2;
            } else {
                ids[write] = ids[read];
                read += 1;
            }
            write += 1;
        }
        changes.add_made((read - write) as u64 * count);
        self.cells[word as usize + 1] = u32::try_from(write).expect("shorter than before");
    }
}

/// Where a pair first stands.
#[inline]
fn position(ids: &[u32], (left, right): Pair) -> Option<usize> {
    ids.windows(2).position(|ids| ids[0] == left && ids[1] == right)
}

fn halves(count: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
    let halves = [count as u32, (count >> 32) as u32];
    halves
}
