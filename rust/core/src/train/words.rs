//! Distinct pretokens as sequences of ids, which merges rewrite in place: first the ids of the 256
//! bytes, or of the tokenizer that is trained further.

use std::ops::Range;

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::machine::simd::prefetch;
use crate::memory;
use crate::merge::merger::{self, MergeScratch, Merger};
use crate::tokenizer::Tokenizer;
use crate::train::changes::Changes;
use crate::train::order::TokenOrder;
use crate::train::pair_counts::{Merge, PairCounts, TokenPair, Word};
use crate::train::postings::Postings;

/// A range of the distinct pretokens, without those of a single id.
///
/// Words are visited in random order, and each visit waits for memory. So that they take less
/// memory, words are stored in cells of 16 bits if all ids, lengths and counts fit.
pub(super) trait Words: Send {
    /// The number of adjacent pairs in these words, weighted by the counts of the words. Fails if
    /// it exceeds 64 bits; otherwise no count of a pair can overflow later.
    fn total_pairs(&self) -> Result<u64>;

    /// The counts of the pairs in these words; all ids are below `ids`.
    fn count_pairs(&self, ids: u32) -> Result<PairCounts>;

    /// The postings of these pairs; all ids are below `ids`.
    fn postings(&self, pairs: &PairCounts, ids: u32) -> Result<Postings>;

    /// The first position of a pair in a word, as a number that increases from word to word and
    /// from byte to byte.
    fn position(&self, word: Word, pair: TokenPair, order: &TokenOrder) -> Option<u64>;

    /// Merge a pair in these words and record the changes.
    fn merge_all(&mut self, words: &[Word], pair: TokenPair, changes: &mut Changes) -> Result<()>;

    /// Make the merges of a batch in order. The pairs of the batch are at count 0 already, so their
    /// own changes are not recorded.
    fn merge_batch(
        &mut self,
        postings: &mut Postings,
        batch: &[Merge],
        pairs: &PairCounts,
        changes: &mut Changes,
    ) -> Result<()> {
        changes.begin_batch(batch)?;
        for merge in batch {
            changes.begin_merge(*merge);
            self.merge_all(postings.of(merge.index), merge.pair, changes)?;
            postings.clear(merge.index);
            changes.end_merge()?;
        }
        changes.end_batch(pairs)
    }

    /// The first position of a pair. The postings before it are dropped, since those words never
    /// contain the pair again.
    fn first_position(
        &self,
        postings: &mut Postings,
        (index, pair): (u32, TokenPair),
        order: &TokenOrder,
    ) -> Option<u64> {
        let of_pair = postings.of(index);
        let mut positions = of_pair.iter().map(|&word| self.position(word, pair, order));
        let first = positions.by_ref().enumerate().find_map(|(at, position)| Some((at, position?)));
        // Occurrences only disappear, so a word without the pair never has it again, and dropping its
        // posting spares the next call and the merge a visit.
        let before = first.map_or(of_pair.len(), |(at, _)| at);
        postings.drop_first(index, before);
        first.map(|(_, position)| position)
    }
}

/// The pretokens of `range` in the ids of `seed`, with space for ids below `vocab_size`. Fails if
/// there are more than 2^32 cells, or if the seed has no ids for a pretoken.
pub(super) fn words(
    counts: &Counts,
    range: Range<usize>,
    seed: &mut Seed,
    vocab_size: usize,
) -> Result<Box<dyn Words>> {
    let fits = |(pretoken, count): (&[u8], u64)| {
        pretoken.len() < 1 << u16::BITS && count < 1 << (2 * u16::BITS)
    };
    let narrow = vocab_size <= 1 << u16::BITS && counts.range(range.clone()).all(fits);
    Ok(if narrow {
        Box::new(Cells::<u16>::new(counts, range, seed)?)
    } else {
        Box::new(Cells::<u32>::new(counts, range, seed)?)
    })
}

/// The number of cells before the ids of a word: capacity, length, and the count in two halves.
const HEADER_CELLS: usize = 4;

/// How many words ahead a word is prefetched.
const AHEAD_WORDS: usize = 12;

/// Most words have fewer cells. They may extend over two cache lines, so both are prefetched.
const TYPICAL_CELLS: usize = 16;

/// Concatenated words. Each is its capacity and length in ids, its count, then its ids.
struct Cells<C> {
    cells: Vec<C>,
}

/// A number that holds an id, a length, or half of a count.
trait Cell: Copy + Default + Eq + Into<u32> + Send {
    /// The lower bits of a number. Ids and lengths fit, as [`words`] has checked; counts are
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
        let mut words = Self { cells: memory::with_capacity(capacity)? };
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

    fn for_each_pair(
        &self,
        mut each: impl FnMut(Word, TokenPair, u64) -> Result<()>,
    ) -> Result<()> {
        for (word, ids, count) in self.iter() {
            for pair in ids.windows(2) {
                each(word, (pair[0].into(), pair[1].into()), count)?;
            }
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

impl<C: Cell> Words for Cells<C> {
    fn total_pairs(&self) -> Result<u64> {
        let mut words = self.iter();
        let total = words.try_fold(0u64, |sum, (_, ids, count)| {
            sum.checked_add(count.checked_mul(ids.len() as u64 - 1)?)
        });
        total.ok_or(Error::CountOverflow)
    }

    fn count_pairs(&self, ids: u32) -> Result<PairCounts> {
        let mut pairs = PairCounts::new()?;
        if ids > 256 {
            self.for_each_pair(|_, pair, count| pairs.add(pair, count))?;
            return Ok(pairs);
        }
        // While all ids are bytes, a table of all pairs is small, and every index is in it.
        let mut table: Vec<u64> = memory::zeros(1 << 16)?;
        self.for_each_pair(|_, (left, right), count| {
            table[(left << 8 | right) as usize] += count;
            Ok(())
        })?;
        let all = (0..=255).flat_map(|left| (0..=255).map(move |right| (left, right)));
        pairs.insert(&memory::collect(all.zip(table).filter(|&(_, count)| count > 0))?)?;
        Ok(pairs)
    }

    fn postings(&self, pairs: &PairCounts, ids: u32) -> Result<Postings> {
        let are_bytes = ids <= 256;
        let mut table = Vec::new();
        if are_bytes {
            // One lookup by both bytes instead of a hash, for each pair of the corpus.
            table = memory::filled(None, 1 << 16)?;
            for (&((left, right), _), index) in pairs.entries.iter().zip(0..) {
                table[(left << 8 | right) as usize] = Some(index);
            }
        }
        let find = |(left, right): TokenPair| {
            if are_bytes { table[(left << 8 | right) as usize] } else { pairs.find((left, right)) }
        };
        let mut postings = Postings::default();
        // A counting sort: the first walk over the words counts the postings of each pair, so all
        // lists get their place in one vector, and the second walk fills them.
        postings.add_pairs(pairs.entries.len())?;
        self.for_each_pair(|_, pair, _| {
            if let Some(index) = find(pair) {
                postings.expect(index);
            }
            Ok(())
        })?;
        postings.lay_out()?;
        self.for_each_pair(|word, pair, _| {
            if let Some(index) = find(pair) {
                postings.put(index, word);
            }
            Ok(())
        })?;
        Ok(postings)
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
