//! The counts of one thread: pretokens in order of first occurrence, short ones by key, long ones
//! by their bytes.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::count::counts::{CountRows, Counts};
use crate::count::hot::{HotCounts, Seen};
use crate::count::spill::Spill;
use crate::error::{Error, Result};
use crate::hash::key::{Key, MAX_KEY_BYTES};
use crate::hash::tables::RowIndex;
use crate::machine::simd::prefetch;
use crate::memory;
use crate::parallel::{self, interrupt};
use crate::pretokenize::{PretokenEnds, Splitter};

/// Rows are freed in blocks of this many: above 32 MB, an allocator returns a block to the system.
const BLOCK_ROWS: usize = (33 << 20) / size_of::<(Key, Tally)>();

/// The counts of one thread.
#[derive(Debug, Default)]
pub(super) struct CountTable {
    short: ShortRows,
    long: LongRows,
    /// The memory limit, and what exceeds it; `None` for no limit.
    pub(super) spill: Option<Arc<Spill>>,
    /// Whether each text is counted completely or not at all.
    pub(super) is_careful: bool,
    /// Counts of frequent short pretokens that are not yet added to their rows.
    hot: HotCounts,
    /// The ends of the pretokens of the current block, and the start, key and hash of those that
    /// missed the hot table.
    ends: Box<PretokenEnds>,
    misses: Vec<(usize, Key, u64)>,
}

impl CountTable {
    /// The size of an empty table in bytes.
    pub(super) const EMPTY_BYTES: usize = 1 << 19;

    /// Split `text`, which starts at the position `offset` in the corpus, and count its pretokens.
    /// Each call needs a larger offset than the previous one.
    ///
    /// Nothing interrupts it, so that whole texts are counted, unless searches make it slow and the
    /// counter is not careful.
    pub(super) fn add_text(&mut self, splitter: &Splitter, text: &str, offset: u64) -> Result<()> {
        if self.is_careful || !splitter.may_fail() {
            return interrupt::uninterrupted(|| self.add_blocks(splitter, text, offset));
        }
        self.add_blocks(splitter, text, offset)
    }

    fn add_blocks(&mut self, splitter: &Splitter, text: &str, offset: u64) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            self.spill_if_full()?;
            splitter.fill(text, start, &mut self.ends)?;
            let (end, misses) = self.add_block(text.as_bytes(), start, offset)?;
            self.add_misses(misses, offset)?;
            start = end;
        }
        Ok(())
    }

    /// Count the pretokens of a block that are long or in the hot table, and collect the others.
    /// Returns the end of the block and the number of the others.
    fn add_block(&mut self, text: &[u8], mut start: usize, offset: u64) -> Result<(usize, usize)> {
        let most = PretokenEnds::CAPACITY.max(self.ends.as_slice().len());
        let more = most.saturating_sub(self.misses.len());
        memory::reserve(&mut self.misses, more)?;
        self.misses.resize(most, Default::default());
        // Every short pretoken is written to the next free entry of `misses`, which a hit leaves
        // free. So there is no branch on whether it was a hit, which is hard to predict. There are
        // at most as many misses as ends, so the index is below `most`.
        let mut misses = 0;
        for &end in self.ends.as_slice() {
            if end - start > MAX_KEY_BYTES {
                self.long.add(&text[start..end], offset + start as u64)?;
            } else {
                let key = Key::new(text, start..end);
                let hash = key.hash();
                self.misses[misses] = (start, key, hash);
                misses += usize::from(!self.hot.count(key, hash));
            }
            start = end;
        }
        Ok((start, misses))
    }

    /// Count the first `count` pretokens in `misses`: prefetch all index entries first, then the
    /// rows that they point to, then count.
    fn add_misses(&mut self, count: usize, offset: u64) -> Result<()> {
        let misses = &self.misses[..count];
        // First, because a growing index would make the prefetched slots useless.
        self.short.reserve(misses.len())?;
        // Three passes, so that the cache misses of the whole block overlap: a row can be
        // prefetched only once the slot that points to it has arrived.
        for &(_, _, hash) in misses {
            self.short.index.prefetch(hash);
        }
        for &(_, _, hash) in misses {
            if let Some(row) = self.short.index.likely(hash) {
                prefetch(&self.short.rows, row);
            }
        }
        for &(start, key, hash) in misses {
            let row = self.short.add(key, hash, offset + start as u64);
            // A frequent pretoken moves to the hot table; the count of the one that it displaces
            // goes back to that one's row. An entry that nobody held adds 0 to row 0.
            let count = self.short.rows[row].1.count();
            if let Some((previous, before)) = self.hot.offer(key, hash, row, count) {
                self.short.rows[row].1.set_count(0);
                self.short.carries.add(previous, &mut self.short.rows[previous].1, before);
            }
        }
        Ok(())
    }

    /// Add the counts of the hot table to their rows.
    fn flush_hot(&mut self) {
        for (row, count) in self.hot.drain().filter(|&(_, count)| count > 0) {
            self.short.carries.add(row, &mut self.short.rows[row].1, count);
        }
    }

    /// Whether there are no counts.
    fn is_empty(&self) -> bool {
        self.short.rows.is_empty() && self.long.iter().next().is_none()
    }

    /// The approximate size of the counts in bytes.
    pub(super) fn memory(&self) -> usize {
        self.short.memory(0) + self.long.memory()
    }

    /// Spill all counts if the next block might exceed the limit.
    fn spill_if_full(&mut self) -> Result<()> {
        let memory = self.short.memory(PretokenEnds::CAPACITY) + self.long.memory();
        match &self.spill {
            Some(spill) if memory > spill.memory && self.memory() > 0 => self.spill(),
            _ => Ok(()),
        }
    }

    /// Spill all counts; without a limit, they stay in memory.
    pub(super) fn spill(&mut self) -> Result<()> {
        // First, because the entries of the hot table refer to the rows that are dropped below.
        self.flush_hot();
        let Some(spill) = &self.spill else { return Ok(()) };
        let mut bytes = Vec::new();
        for (key, seen) in std::mem::take(&mut self.short).into_rows() {
            bytes.clear();
            key.write(&mut bytes);
            spill.push(&bytes, seen)?;
        }
        let long = std::mem::take(&mut self.long);
        long.iter().try_for_each(|(pretoken, seen)| spill.push(pretoken, seen))
    }
}

/// Add up several tables, on as many threads.
///
/// Each table is compared with each other one, as in a round-robin tournament: all but the first
/// rotate, and in each round the first half is paired with the reversed second half. If both tables
/// of a pair have a pretoken, its count moves to the table that saw it first. In the end each
/// pretoken has its count in one table, and a single thread merges the rows in order of first
/// occurrence.
pub(super) fn merge(mut tables: Vec<CountTable>) -> Result<Counts> {
    tables.iter_mut().for_each(CountTable::flush_hot);
    tables.retain(|table| !table.is_empty());
    // An even number of tables; an empty one stands for a round without an opponent.
    if tables.len() > 1 && !tables.len().is_multiple_of(2) {
        tables.push(CountTable::default());
    }
    let middle = tables.len() / 2;
    for _ in 1..tables.len() {
        let (half, others) = tables.split_at_mut(middle);
        // Each table is in one pair of the round, so the threads share nothing.
        parallel::run(half.iter_mut().zip(others.iter_mut().rev()).map(|(one, other)| {
            move || {
                one.short.move_duplicates(&mut other.short);
                one.long.move_duplicates(&mut other.long);
            }
        }));
        tables[1..].rotate_right(1);
    }
    // The indices are not used below.
    for table in &mut tables {
        table.long.index = RowIndex::default();
    }
    let (short, long): (Vec<_>, Vec<_>) =
        tables.into_iter().map(|table| (table.short, table.long)).unzip();
    in_order(short, &long)
}

/// The rows of tables without common pretokens, in order of first occurrence.
fn in_order(tables: Vec<ShortRows>, long: &[LongRows]) -> Result<Counts> {
    let rows = tables.iter().map(|table| table.rows.len()).max().unwrap_or(0);
    let mut counts = CountRows::with_capacity_about(rows * 8, rows);
    let mut short = by_first_seen(tables.into_iter().map(ShortRows::into_rows));
    let mut long = by_first_seen(long.iter().map(LongRows::iter));
    let mut next = (short.next(), long.next());
    let mut buffer = Vec::new();
    loop {
        // The short row is next unless there is a long one that was seen earlier. No two rows were
        // first seen at the same position.
        match next {
            (Some((key, seen)), ref other) if !other.is_some_and(|o| o.1.first < seen.first) => {
                buffer.clear();
                key.write(&mut buffer);
                counts.push(&buffer, seen.count)?;
                next.0 = short.next();
            }
            (_, Some((pretoken, seen))) => {
                counts.push(pretoken, seen.count)?;
                next.1 = long.next();
            }
            _ => return Ok(counts.finish()),
        }
    }
}

/// Merge streams of rows in order of first occurrence.
fn by_first_seen<T, I: Iterator<Item = (T, Seen)>>(
    streams: impl Iterator<Item = I>,
) -> impl Iterator<Item = (T, Seen)> {
    let mut streams: Vec<_> = streams.filter_map(|mut rows| Some((rows.next()?, rows))).collect();
    std::iter::from_fn(move || {
        let firsts = streams.iter().map(|((_, seen), _)| seen.first);
        let (at, _) = firsts.enumerate().min_by_key(|&(_, first)| first)?;
        let (head, rest) = &mut streams[at];
        match rest.next() {
            Some(row) => Some(std::mem::replace(head, row)),
            None => Some(streams.swap_remove(at).0),
        }
    })
}

/// How often a row was seen and where first, in one word: the position in the upper 48 bits, and in
/// the others the count, or what is left of it beside [`Carries`].
#[derive(Debug, Clone, Copy)]
struct Tally(u64);

impl Tally {
    const COUNT_BITS: u32 = 16;
    const MAX_COUNT: u64 = (1 << Self::COUNT_BITS) - 1;
    /// What was first seen beyond the first 281 TB has this position, and no order.
    const MAX_POSITION: u64 = (1 << (u64::BITS - Self::COUNT_BITS)) - 1;

    /// A row that is first seen at this position.
    fn at(first: u64) -> Self {
        Self(first.min(Self::MAX_POSITION) << Self::COUNT_BITS)
    }

    fn first(self) -> u64 {
        self.0 >> Self::COUNT_BITS
    }

    fn count(self) -> u64 {
        self.0 & Self::MAX_COUNT
    }

    fn set_count(&mut self, count: u64) {
        self.0 = self.0 & !Self::MAX_COUNT | count;
    }
}

/// The parts of the counts of a table that exceed the bits of a [`Tally`], by row.
#[derive(Debug, Default)]
struct Carries(HashMap<usize, u64, FixedState>);

impl Carries {
    /// Add to the count of a row.
    #[inline]
    fn add(&mut self, row: usize, tally: &mut Tally, count: u64) {
        let sum = tally.count() + count;
        tally.set_count(sum & Tally::MAX_COUNT);
        if sum > Tally::MAX_COUNT {
            *self.0.entry(row).or_default() += sum & !Tally::MAX_COUNT;
        }
    }

    /// The whole count of a row, and where it was first seen.
    #[inline]
    fn seen(&self, row: usize, tally: Tally) -> Seen {
        let carry = if self.0.is_empty() { 0 } else { self.0.get(&row).copied().unwrap_or(0) };
        Seen { count: carry + tally.count(), first: tally.first() }
    }

    /// The whole count of a row, which becomes 0.
    fn take(&mut self, row: usize, tally: &mut Tally) -> u64 {
        let count = tally.count();
        tally.set_count(0);
        count + self.0.remove(&row).unwrap_or(0)
    }
}

/// For the same pretoken in two tables, move its count to the table that saw it first. A count of 0
/// marks a row whose count was moved; it stays there.
fn move_to_first(
    (row, tally, carries): (usize, &mut Tally, &mut Carries),
    (other_row, other_tally, others): (usize, &mut Tally, &mut Carries),
) {
    let (one, other) = (carries.seen(row, *tally), others.seen(other_row, *other_tally));
    if one.count == 0 || other.count == 0 {
        return;
    }
    if one.first < other.first {
        carries.add(row, tally, others.take(other_row, other_tally));
    } else {
        others.add(other_row, other_tally, carries.take(row, tally));
    }
}

/// Counts of short pretokens, by key.
#[derive(Debug, Default)]
struct ShortRows {
    rows: Vec<(Key, Tally)>,
    carries: Carries,
    index: RowIndex,
}

impl ShortRows {
    /// Reserve capacity for `more` keys.
    #[inline]
    fn reserve(&mut self, more: usize) -> Result<()> {
        let rows = self.rows.len() + more;
        memory::reserve(&mut self.rows, more)?;
        if !self.index.fits(rows) {
            // The old index is freed before the new one is made.
            self.index = RowIndex::default();
            self.index = index_of(self.rows.iter().map(|(key, _)| key.hash()), rows)?;
        }
        Ok(())
    }

    /// The size in bytes while capacity for `more` keys is reserved.
    fn memory(&self, more: usize) -> usize {
        let rows = self.rows.len() + more;
        // While a vector grows, the old memory and twice as much new memory exist.
        let grown = if rows <= self.rows.capacity() { 0 } else { 2 * self.rows.capacity() };
        let rows_memory = (self.rows.capacity() + grown) * size_of::<(Key, Tally)>();
        let grown = if self.index.fits(rows) { 0 } else { RowIndex::slots_for(rows) };
        rows_memory + self.index.memory() + grown * size_of::<u32>()
    }

    /// Count a key at a position; returns its row. Capacity for the key must be reserved.
    #[inline]
    fn add(&mut self, key: Key, hash: u64, position: u64) -> usize {
        let row = self.index.find(hash, |row| self.rows[row].0 == key).unwrap_or_else(|slot| {
            self.index.put(slot, self.rows.len());
            self.rows.push((key, Tally::at(position)));
            self.rows.len() - 1
        });
        self.carries.add(row, &mut self.rows[row].1, 1);
        row
    }

    /// The rows whose counts were not moved to another table. The memory of the rows before is
    /// freed block by block, so that [`Counts`] grow while the table shrinks.
    fn into_rows(self) -> impl Iterator<Item = (Key, Seen)> {
        let Self { mut rows, carries, index } = self;
        drop(index);
        let mut blocks = Vec::new();
        while !rows.is_empty() {
            blocks.push(rows.split_off((rows.len() - 1) / BLOCK_ROWS * BLOCK_ROWS));
            rows.shrink_to_fit();
        }
        let rows = blocks.into_iter().rev().flatten().enumerate();
        rows.map(move |(row, (key, tally))| (key, carries.seen(row, tally)))
            .filter(|(_, seen)| seen.count > 0)
    }

    /// Move the count of each key in both tables to the one that saw it first.
    fn move_duplicates(&mut self, other: &mut Self) {
        if self.rows.is_empty() {
            return;
        }
        // Prefetched block by block as in `CountTable::add_misses`.
        let mut other_row = 0;
        for block in other.rows.chunks_mut(PretokenEnds::CAPACITY) {
            for (key, _) in &*block {
                self.index.prefetch(key.hash());
            }
            for (key, _) in &*block {
                if let Some(row) = self.index.likely(key.hash()) {
                    prefetch(&self.rows, row);
                }
            }
            for (key, tally) in block {
                if let Ok(row) = self.index.find(key.hash(), |row| self.rows[row].0 == *key) {
                    move_to_first(
                        (row, &mut self.rows[row].1, &mut self.carries),
                        (other_row, tally, &mut other.carries),
                    );
                }
                other_row += 1;
            }
        }
    }
}

/// Counts of long pretokens.
#[derive(Debug, Default)]
struct LongRows {
    /// The concatenated pretokens, and the end, count and first occurrence of each.
    bytes: Vec<u8>,
    rows: Vec<(usize, Tally)>,
    carries: Carries,
    index: RowIndex,
}

impl LongRows {
    /// Count a pretoken at a position.
    fn add(&mut self, pretoken: &[u8], position: u64) -> Result<()> {
        if !self.index.fits(self.rows.len() + 1) {
            // The old index is freed before the new one is made.
            self.index = RowIndex::default();
            let hashes = self.iter().map(|(pretoken, _)| hash(pretoken));
            self.index = index_of(hashes, self.rows.len() + 1)?;
        }
        let is_equal = |row| &self.bytes[self.range(row)] == pretoken;
        let row = match self.index.find(hash(pretoken), is_equal) {
            Ok(row) => row,
            Err(slot) => {
                memory::reserve(&mut self.rows, 1)?;
                memory::extend(&mut self.bytes, pretoken)?;
                self.index.put(slot, self.rows.len());
                self.rows.push((self.bytes.len(), Tally::at(position)));
                self.rows.len() - 1
            }
        };
        self.carries.add(row, &mut self.rows[row].1, 1);
        Ok(())
    }

    /// The size in bytes.
    fn memory(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<(usize, Tally)>();
        self.bytes.capacity() + rows + self.index.memory()
    }

    /// The range of a pretoken in `bytes`.
    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        row.checked_sub(1).map_or(0, |before| self.rows[before].0)..self.rows[row].0
    }

    /// The rows whose counts were not moved to another table.
    fn iter(&self) -> impl Iterator<Item = (&[u8], Seen)> {
        let seen = |row| self.carries.seen(row, self.rows[row].1);
        let rows = (0..self.rows.len()).map(move |row| (&self.bytes[self.range(row)], seen(row)));
        rows.filter(|(_, seen)| seen.count > 0)
    }

    /// Move the count of each pretoken in both tables to the one that saw it first.
    fn move_duplicates(&mut self, other: &mut Self) {
        if self.rows.is_empty() {
            return;
        }
        for row in 0..other.rows.len() {
            let pretoken = &other.bytes[other.range(row)];
            let is_equal = |row| &self.bytes[self.range(row)] == pretoken;
            if let Ok(own_row) = self.index.find(hash(pretoken), is_equal) {
                move_to_first(
                    (own_row, &mut self.rows[own_row].1, &mut self.carries),
                    (row, &mut other.rows[row].1, &mut other.carries),
                );
            }
        }
    }
}

/// An index of rows with these hashes, with capacity for `rows` rows.
#[cold]
fn index_of(hashes: impl Iterator<Item = u64>, rows: usize) -> Result<RowIndex> {
    if rows > RowIndex::ROWS {
        return Err(Error::TooManyPretokens);
    }
    RowIndex::of(hashes, rows)
}

/// The hash of a long pretoken. With [`hash_bytes`](crate::hash::key::hash_bytes) instead, counting
/// texts in many languages takes 11 % longer.
#[inline]
fn hash(pretoken: &[u8]) -> u64 {
    FixedState::default().hash_one(pretoken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretokenize::Pattern;
    use proptest::prelude::*;

    /// The counts of several tables that exceed the bits of a row, in the row and in the hot table.
    #[test]
    fn counts_of_any_size_are_added_up() {
        let splitter = Splitter::new(&Pattern::new("gpt2").unwrap()).unwrap();
        let (text, long) = ("a b".repeat(40_000), " averylongwordwithoutakey".repeat(70_000));
        let filled = |index: u64| {
            let mut table = CountTable::default();
            table.add_text(&splitter, &text, index << 40).unwrap();
            table.add_text(&splitter, &long, (index << 40) + (1 << 30)).unwrap();
            table
        };
        let counts = merge((0..3).map(filled).collect()).unwrap();
        let counts: Vec<_> = counts.iter().collect();
        let expected = [("a", 3), (" ba", 3 * 39_999), (" b", 3), (&long[..25], 3 * 70_000)];
        assert_eq!(counts, expected.map(|(pretoken, count)| (pretoken.as_bytes(), count)));
    }

    proptest! {
        /// Counts and positions, however they are added and moved, equal those of 64 bits each.
        #[test]
        fn a_tally_holds_any_count(
            first in 0u64..1 << 48, other_first in 0u64..1 << 48,
            added in prop::collection::vec((any::<bool>(), 0u64..200_000), 0..20),
        ) {
            let (mut one, mut other) = (Tally::at(first), Tally::at(other_first));
            let (mut carries, mut others) = (Carries::default(), Carries::default());
            let mut sums = [0, 0];
            for (is_other, count) in added {
                sums[usize::from(is_other)] += count;
                if is_other {
                    others.add(3, &mut other, count);
                } else {
                    carries.add(7, &mut one, count);
                }
            }
            let seen = |row, carries: &Carries, tally| {
                let Seen { count, first } = carries.seen(row, tally);
                (count, first)
            };
            prop_assert_eq!(seen(7, &carries, one), (sums[0], first));
            prop_assert_eq!(seen(3, &others, other), (sums[1], other_first));
            move_to_first((7, &mut one, &mut carries), (3, &mut other, &mut others));
            if sums[0] > 0 && sums[1] > 0 {
                let is_first = first < other_first;
                sums = if is_first { [sums[0] + sums[1], 0] } else { [0, sums[0] + sums[1]] };
            }
            prop_assert_eq!(seen(7, &carries, one), (sums[0], first));
            prop_assert_eq!(seen(3, &others, other), (sums[1], other_first));
        }
    }

    /// For any number of tables, all pairs are compared.
    #[test]
    fn tables_of_the_same_text_are_added_up() {
        let splitter = Splitter::new(&Pattern::new("gpt2").unwrap()).unwrap();
        let text = "two two words, and a verylongwordwithoutakey";
        let filled = |index: u64| {
            let mut table = CountTable::default();
            table.add_text(&splitter, text, 1000 * index).unwrap();
            table
        };
        let one: Vec<(Vec<u8>, u64)> =
            merge(vec![filled(0)]).unwrap().iter().map(|(p, n)| (p.to_vec(), n)).collect();
        for number in 2..=12 {
            let counts = merge((0..number).map(filled).collect()).unwrap();
            let times = one.iter().map(|(p, n)| (&p[..], n * number));
            assert!(counts.iter().eq(times), "{number} tables");
        }
    }
}
