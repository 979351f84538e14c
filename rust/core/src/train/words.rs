//! Distinct pretokens as sequences of ids, which merges rewrite in place: first the ids of the 256
//! bytes, or of the tokenizer that is trained further.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::machine::simd::prefetch;
use crate::memory;
use crate::merge::merger::{self, MergeScratch, Merger};
use crate::tokenizer::Tokenizer;
use crate::train::changes::Changes;
use crate::train::order::TokenOrder;
use crate::train::pair_counts::{TokenPair, Word};

/// A range of the distinct pretokens, without those of a single id.
///
/// Words are visited in random order, and each visit waits for memory. So that they take less
/// memory, words are stored in cells of 16 bits if all ids, lengths and counts fit.
pub(super) enum Words {
    Narrow(Cells<u16>),
    Wide(Cells<u32>),
}

/// Run `$action` with the cells of either width.
macro_rules! each_width {
    ($words:expr, $cells:ident => $action:expr) => {
        match $words {
            Words::Narrow($cells) => $action,
            Words::Wide($cells) => $action,
        }
    };
}

impl Words {
    /// The pretokens of `range` in the ids of `seed`, with space for ids below `vocab_size`. Fails
    /// if there are more than 2^32 cells, or if the seed has no ids for a pretoken.
    pub(super) fn new(
        counts: &Counts,
        range: Range<usize>,
        seed: &mut Seed,
        vocab_size: usize,
    ) -> Result<Self> {
        let fits = |(pretoken, count): (&[u8], u64)| {
            pretoken.len() < 1 << u16::BITS && count < 1 << (2 * u16::BITS)
        };
        let narrow = vocab_size <= 1 << u16::BITS && counts.range(range.clone()).all(fits);
        Ok(if narrow {
            Self::Narrow(Cells::new(counts, range, seed)?)
        } else {
            Self::Wide(Cells::new(counts, range, seed)?)
        })
    }

    /// The number of adjacent pairs in these words, weighted by the counts of the words. Fails if
    /// it exceeds 64 bits; otherwise no count of a pair can overflow later.
    pub(super) fn total_pairs(&self) -> Result<u64> {
        each_width!(self, cells => cells.total_pairs())
    }

    /// Call `each` for each adjacent pair of each word, in order, with the word, the pair and the
    /// count of the word.
    pub(super) fn for_each_pair(&self, each: impl FnMut(Word, TokenPair, u64)) {
        each_width!(self, cells => cells.for_each_pair(each));
    }

    /// The first position of a pair in a word, as a number that increases from word to word and
    /// from byte to byte.
    pub(super) fn position(&self, word: Word, pair: TokenPair, order: &TokenOrder) -> Option<u64> {
        each_width!(self, cells => cells.position(word, pair, order))
    }

    /// The count of each pair in these words, unordered; all ids are below `ids`.
    pub(super) fn count_pairs(&self, ids: u32) -> Result<Vec<(TokenPair, u64)>> {
        if ids <= 256 { self.count_bytes() } else { self.count_tokens() }
    }

    /// The same while all ids are bytes, when a table of all pairs is small.
    fn count_bytes(&self) -> Result<Vec<(TokenPair, u64)>> {
        let mut table: Vec<u64> = memory::zeros(1 << 16)?;
        // Both ids are below 256, so they fill 16 bits and every index is in the table.
        self.for_each_pair(|_, (left, right), count| table[(left << 8 | right) as usize] += count);
        let all = (0..=255).flat_map(|left| (0..=255).map(move |right| (left, right)));
        memory::collect(all.zip(table).filter(|&(_, count)| count > 0))
    }

    fn count_tokens(&self) -> Result<Vec<(TokenPair, u64)>> {
        let mut table: HashMap<TokenPair, u64, FixedState> = HashMap::default();
        let mut counted = Ok(());
        self.for_each_pair(|_, pair, count| {
            // The walk cannot be stopped, so after the first error the other pairs are passed over.
            counted = std::mem::replace(&mut counted, Ok(())).and_then(|()| {
                memory::reserve_entry(&mut table)?;
                *table.entry(pair).or_insert(0) += count;
                Ok(())
            });
        });
        counted?;
        memory::collect(table)
    }

    /// Merge a pair in these words and record the changes.
    pub(super) fn merge_all(
        &mut self,
        words: &[Word],
        pair: TokenPair,
        changes: &mut Changes,
    ) -> Result<()> {
        each_width!(self, cells => cells.merge_all(words, pair, changes))
    }
}

/// The number of cells before the ids of a word: capacity, length, and the count in two halves.
const HEADER_CELLS: usize = 4;

/// How many words ahead a word is prefetched.
const AHEAD_WORDS: usize = 12;

/// Most words have fewer cells. They may extend over two cache lines, so both are prefetched.
const TYPICAL_CELLS: usize = 16;

/// Concatenated words. Each is its capacity and length in ids, its count, then its ids.
pub(super) struct Cells<C> {
    cells: Vec<C>,
}

/// A number that holds an id, a length, or half of a count.
pub(super) trait Cell: Copy + Default + Eq + Into<u32> {
    /// The lower bits of a number. Ids and lengths fit, as [`Words::new`] has checked; counts are
    /// stored as two halves.
    fn of(number: u64) -> Self;

    const BITS: u32;
}

macro_rules! cell {
    ($($kind:ty),*) => {$(
        impl Cell for $kind {
            #[expect(clippy::cast_possible_truncation, reason = "counts are halved; all else fits")]
            fn of(number: u64) -> Self {
                number as Self
            }

            const BITS: u32 = Self::BITS;
        }
    )*};
}

cell!(u16, u32);

impl<C: Cell> Cells<C> {
    fn new(counts: &Counts, range: Range<usize>, seed: &mut Seed) -> Result<Self> {
        // Each id stands for at least one byte, so the cells never exceed this and never move.
        let capacity = range.len() * HEADER_CELLS + counts.bytes_of(&range).len();
        let mut words = Self { cells: memory::with_room(capacity)? };
        let mut ids = Vec::new();
        for (pretoken, count) in counts.range(range) {
            seed.ids(pretoken, &mut ids)?;
            if ids.len() > 1 {
                words.push(&ids, count)?;
            }
        }
        Ok(words)
    }

    fn push(&mut self, ids: &[u32], count: u64) -> Result<()> {
        let length = C::of(ids.len() as u64);
        self.cells.extend([length, length, C::of(count), C::of(count >> C::BITS)]);
        self.cells.extend(ids.iter().map(|&id| C::of(u64::from(id))));
        u32::try_from(self.cells.len()).map(drop).map_err(|_| Error::TooManyPretokens)
    }

    fn iter(&self) -> impl Iterator<Item = (Word, &[C], u64)> {
        let mut word = 0;
        std::iter::repeat_with(|| ()).map_while(move |()| {
            let capacity: u32 = (*self.cells.get(word as usize)?).into();
            let item = (word, self.ids(word), self.count(word));
            // Merges shorten a word but not its capacity, so the next word is always found here.
            word += u32::try_from(HEADER_CELLS).expect("a small number") + capacity;
            Some(item)
        })
    }

    fn length(&self, word: Word) -> usize {
        let length: u32 = self.cells[word as usize + 1].into();
        length as usize
    }

    fn ids(&self, word: Word) -> &[C] {
        let start = word as usize + HEADER_CELLS;
        &self.cells[start..start + self.length(word)]
    }

    fn count(&self, word: Word) -> u64 {
        // Two cells of 16 bits hold counts below 2^32, two of 32 bits hold all counts.
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

    fn for_each_pair(&self, mut each: impl FnMut(Word, TokenPair, u64)) {
        for (word, ids, count) in self.iter() {
            for pair in ids.windows(2) {
                each(word, (pair[0].into(), pair[1].into()), count);
            }
        }
    }

    fn position(&self, word: Word, pair: TokenPair, order: &TokenOrder) -> Option<u64> {
        let ids = self.ids(word);
        let at = find(ids, cells(pair))?;
        // Later words have larger indices, so the word takes the upper bits and its bytes the
        // lower.
        let bytes: usize = ids[..at].iter().map(|&id| order.length(id.into())).sum();
        Some(u64::from(word) << 32 | bytes as u64)
    }

    fn merge_all(&mut self, words: &[Word], pair: TokenPair, changes: &mut Changes) -> Result<()> {
        let pair = cells(pair);
        for (index, &word) in words.iter().enumerate() {
            // The words of a pair are far apart, so each visit is a cache miss. The misses of
            // several words overlap with the merges of the words before them.
            if let Some(&later) = words.get(index + AHEAD_WORDS) {
                prefetch(&self.cells, later as usize);
                prefetch(&self.cells, later as usize + TYPICAL_CELLS - 1);
            }
            self.merge(word, pair, changes)?;
        }
        Ok(())
    }

    /// Merge a pair in one word, from left to right.
    fn merge(&mut self, word: Word, pair: (C, C), changes: &mut Changes) -> Result<()> {
        // A posting may be out of date: another merge may have taken the last occurrence.
        let Some(first) = find(self.ids(word), pair) else { return Ok(()) };
        let (count, length) = (self.count(word), self.length(word));
        let start = word as usize + HEADER_CELLS;
        let ids = &mut self.cells[start..start + length];
        let new = C::of(u64::from(changes.merge.new));
        // The word is rewritten in place: (a, b) into z turns "xabaab" into "xzaz" and lowers the
        // length. `write` never passes `read`, so no id is overwritten before it is read.
        let (mut read, mut write) = (first, first);
        while read < length {
            if read + 1 < length && (ids[read], ids[read + 1]) == pair {
                // The left neighbour is read from the rewritten ids, where it may be the new id
                // itself; the right one from the original ids.
                let before = write.checked_sub(1).map(|at| ids[at].into());
                let after = ids.get(read + 2).map(|&id| id.into());
                changes.add(before, after, word, count)?;
                ids[write] = new;
                read += 2;
            } else {
                ids[write] = ids[read];
                read += 1;
            }
            write += 1;
        }
        // Each replacement moved `read` ahead of `write` by one.
        changes.add_replacements((read - write) as u64 * count);
        self.cells[word as usize + 1] = C::of(write as u64);
        Ok(())
    }
}

fn cells<C: Cell>((left, right): TokenPair) -> (C, C) {
    (C::of(u64::from(left)), C::of(u64::from(right)))
}

/// The index of the first occurrence of a pair.
#[inline]
fn find<C: Cell>(ids: &[C], (left, right): (C, C)) -> Option<usize> {
    ids.windows(2).position(|ids| ids[0] == left && ids[1] == right)
}

/// The tokens before the first merge, and the ids of pretokens in them.
pub struct Seed<'a> {
    /// A tokenizer, and what merges as training does, by the list of merges only.
    base: Option<(&'a Tokenizer, Merger, MergeScratch)>,
}

impl<'a> Seed<'a> {
    /// The tokens of `base`, or without a base the 256 bytes, whose ids are their values.
    pub fn new(base: Option<&'a Tokenizer>) -> Result<Self> {
        let Some(tokenizer) = base else { return Ok(Self { base: None }) };
        let vocabulary = tokenizer.vocabulary();
        let pairs = merger::by_merges(vocabulary, tokenizer.merges())?;
        let merger = Merger::new(vocabulary, tokenizer.rule(), pairs)?;
        Ok(Self { base: Some((tokenizer, merger, MergeScratch::default())) })
    }

    /// The bytes of every token, in the order of ids; empty for an id without a token.
    pub fn tokens(&self) -> Result<Vec<Vec<u8>>> {
        match &self.base {
            None => Ok((0..=255).map(|byte| vec![byte]).collect()),
            Some((tokenizer, ..)) => tokenizer.vocabulary().all_bytes(),
        }
    }

    /// Replace `ids` by the ids of a pretoken.
    pub(super) fn ids(&mut self, pretoken: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        memory::reserve(ids, pretoken.len())?;
        match &mut self.base {
            None => ids.extend(pretoken.iter().map(|&byte| u32::from(byte))),
            Some((_, merger, scratch)) => merger.merge(pretoken, scratch, ids)?,
        }
        Ok(())
    }
}
