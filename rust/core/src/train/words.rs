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

/// A range of the distinct pretokens, without those of one id.
///
/// Words are visited in no order, and the memory of each is waited for. So they are kept in cells of
/// 16 bits, if all ids, lengths and counts fit.
pub(super) enum Words {
    Narrow(Cells<u16>),
    Wide(Cells<u32>),
}

impl Words {
    /// For ids below `vocab_size`. Fails if there are too many for the names of words, or if a
    /// pretoken has no ids.
    pub(super) fn new(
        counts: &Counts,
        range: Range<usize>,
        start: &mut Start,
        vocab_size: usize,
    ) -> Result<Self> {
        let fits = |(pretoken, count): (&[u8], u64)| {
            pretoken.len() < 1 << u16::BITS && count < 1 << (2 * u16::BITS)
        };
        let narrow = vocab_size <= 1 << u16::BITS && counts.range(range.clone()).all(fits);
        Ok(if narrow {
            Self::Narrow(Cells::new(counts, range, start)?)
        } else {
            Self::Wide(Cells::new(counts, range, start)?)
        })
    }

    /// How many pairs of neighbours the corpus has in these words. Fails beyond 64 bits; if it does
    /// not, no count of a pair can overflow later.
    pub(super) fn total_pairs(&self) -> Result<u64> {
        match self {
            Self::Narrow(cells) => cells.total_pairs(),
            Self::Wide(cells) => cells.total_pairs(),
        }
    }

    /// Call `each` with every pair of neighbours in every word, in order, and with the count of the
    /// word.
    pub(super) fn for_each_pair(&self, each: impl FnMut(Word, Pair, u64)) {
        match self {
            Self::Narrow(cells) => cells.for_each_pair(each),
            Self::Wide(cells) => cells.for_each_pair(each),
        }
    }

    /// Where a pair first occurs in a word, as a number that grows from word to word and from byte
    /// to byte. `lengths` has the length in bytes of each token.
    pub(super) fn place(&self, word: Word, pair: Pair, lengths: &[u32]) -> Option<u64> {
        match self {
            Self::Narrow(cells) => cells.place(word, pair, lengths),
            Self::Wide(cells) => cells.place(word, pair, lengths),
        }
    }

    /// How often a pair occurs, by looking at every word.
    pub(super) fn count_pair(&self, pair: Pair) -> u64 {
        let mut sum = 0;
        self.for_each_pair(|_, found, count| sum += if found == pair { count } else { 0 });
        sum
    }

    /// Merge a pair in all these words and add what that changes.
    pub(super) fn merge_all(&mut self, words: &[Word], pair: Pair, changes: &mut Changes) {
        match self {
            Self::Narrow(cells) => cells.merge_all(words, pair, changes),
            Self::Wide(cells) => cells.merge_all(words, pair, changes),
        }
    }
}

/// What stands before the ids of a word: room, length, and the count in two halves.
const HEADER: usize = 4;

/// How many words ahead the memory of a word is asked for.
const AHEAD: usize = 12;

/// Most words have fewer cells, but may stand on two lines of memory.
const MOST: usize = 16;

/// Words end to end, all about a word in one place: its room and its length in ids, its count, then
/// its ids.
pub(super) struct Cells<C> {
    cells: Vec<C>,
}

/// What holds an id, a length, or half of a count.
pub(super) trait Cell: Copy + Default + Eq + Into<u32> {
    /// All bits, or those that fit; whoever makes cells has seen to it that all do.
    fn of(number: u64) -> Self;

    const BITS: u32;
}

impl Cell for u16 {
    #[expect(clippy::cast_possible_truncation, reason = "halves are cut; all else fits")]
    fn of(number: u64) -> Self {
        number as Self
    }

    const BITS: u32 = Self::BITS;
}

impl Cell for u32 {
    #[expect(clippy::cast_possible_truncation, reason = "halves are cut; all else fits")]
    fn of(number: u64) -> Self {
        number as Self
    }

    const BITS: u32 = Self::BITS;
}

impl<C: Cell> Cells<C> {
    fn new(counts: &Counts, range: Range<usize>, start: &mut Start) -> Result<Self> {
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

    fn push(&mut self, ids: &[u32], count: u64) -> Result<()> {
        u32::try_from(ids.len()).map_err(|_| Error::TooManyPretokens)?;
        let length = C::of(ids.len() as u64);
        self.cells.extend([length, length, C::of(count), C::of(count >> C::BITS)]);
        self.cells.extend(ids.iter().map(|&id| C::of(u64::from(id))));
        match u32::try_from(self.cells.len()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::TooManyPretokens),
        }
    }

    fn iter(&self) -> impl Iterator<Item = (Word, &[C], u64)> {
        let mut word = 0;
        std::iter::repeat_with(|| ()).map_while(move |()| {
            let room: u32 = (*self.cells.get(word as usize)?).into();
            let item = (word, self.ids(word), self.count(word));
            word += u32::try_from(HEADER).expect("a small number") + room;
            Some(item)
        })
    }

    fn length(&self, word: Word) -> usize {
        let length: u32 = self.cells[word as usize + 1].into();
        length as usize
    }

    fn ids(&self, word: Word) -> &[C] {
        let start = word as usize + HEADER;
        &self.cells[start..start + self.length(word)]
    }

    fn count(&self, word: Word) -> u64 {
        let (low, high): (u32, u32) =
            (self.cells[word as usize + 2].into(), self.cells[word as usize + 3].into());
        u64::from(low) | u64::from(high) << C::BITS
    }

    fn total_pairs(&self) -> Result<u64> {
        let mut words = self.iter();
        let total = words.try_fold(0u64, |sum, (_, ids, count)| {
            sum.checked_add(count.checked_mul(ids.len() as u64 - 1)?)
        });
        total.ok_or(Error::CountOverflow)
    }

    fn for_each_pair(&self, mut each: impl FnMut(Word, Pair, u64)) {
        for (word, ids, count) in self.iter() {
            for pair in ids.windows(2) {
                each(word, (pair[0].into(), pair[1].into()), count);
            }
        }
    }

    fn place(&self, word: Word, pair: Pair, lengths: &[u32]) -> Option<u64> {
        let ids = self.ids(word);
        let at = position(ids, cells(pair))?;
        let bytes = ids[..at].iter().map(|&id| u64::from(lengths[Into::<u32>::into(id) as usize]));
        Some(u64::from(word) << 32 | bytes.sum::<u64>())
    }

    fn merge_all(&mut self, words: &[Word], pair: Pair, changes: &mut Changes) {
        let pair = cells(pair);
        for (index, &word) in words.iter().enumerate() {
            if let Some(&later) = words.get(index + AHEAD) {
                prefetch(&self.cells, later as usize);
                prefetch(&self.cells, later as usize + MOST - 1);
            }
            self.merge(word, pair, changes);
        }
    }

    /// Merge a pair in one word, from left to right.
    fn merge(&mut self, word: Word, pair: (C, C), changes: &mut Changes) {
        let Some(first) = position(self.ids(word), pair) else { return };
        let (count, length) = (self.count(word), self.length(word));
        let start = word as usize + HEADER;
        let ids = &mut self.cells[start..start + length];
        let new = C::of(u64::from(changes.new_id()));
        let (mut read, mut write) = (first, first);
        while read < length {
            if read + 1 < length && (ids[read], ids[read + 1]) == pair {
                let before = write.checked_sub(1).map(|at| ids[at].into());
                let after = ids.get(read + 2).map(|&id| id.into());
                changes.add(before, after, word, count);
                ids[write] = new;
                read += 2;
            } else {
                ids[write] = ids[read];
                read += 1;
            }
            write += 1;
        }
        changes.add_made((read - write) as u64 * count);
        self.cells[word as usize + 1] = C::of(write as u64);
    }
}

fn cells<C: Cell>((left, right): Pair) -> (C, C) {
    (C::of(u64::from(left)), C::of(u64::from(right)))
}

/// Where a pair first stands.
#[inline]
fn position<C: Cell>(ids: &[C], (left, right): (C, C)) -> Option<usize> {
    ids.windows(2).position(|ids| ids[0] == left && ids[1] == right)
}
