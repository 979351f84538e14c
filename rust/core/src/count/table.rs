//! The counts of one thread: pretokens in order of first occurrence, short ones by key, long ones
//! by their bytes.

use std::hash::BuildHasher;
use std::ops::Range;
use std::path::PathBuf;

use foldhash::fast::FixedState;

use crate::count::counts::Counts;
use crate::count::hot::{HotCounts, Seen};
use crate::count::spill::Spill;
use crate::error::{Error, Result};
use crate::hash::key::{Key, MAX_KEY_BYTES};
use crate::hash::tables::RowIndex;
use crate::machine::simd::prefetch;
use crate::memory;
use crate::parallel::{self, interrupt};
use crate::pretokenize::{PretokenEnds, Splitter};

/// Rows are freed in blocks of this many: at 64 MB, an allocator returns a block to the system.
const BLOCK_ROWS: usize = 1 << 21;

/// The counts of one thread.
#[derive(Debug, Default)]
pub(super) struct CountTable {
    short: ShortRows,
    long: LongRows,
    /// The memory limit; `None` for no limit.
    pub(super) limit: Option<Limit>,
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
                let seen = Seen { count: 1, first: offset + start as u64 };
                self.long.add(&text[start..end], seen)?;
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
            let row = self.short.add(key, hash, Seen { count: 1, first: offset + start as u64 });
            // A frequent pretoken moves to the hot table; the count of the one that it displaces
            // goes back to that one's row. An entry that nobody held adds 0 to row 0.
            let count = &mut self.short.rows[row].1.count;
            if let Some((row, count)) = self.hot.offer(key, hash, row, count) {
                self.short.rows[row].1.count += count;
            }
        }
        Ok(())
    }

    /// Add the counts of the hot table to their rows.
    fn flush_hot(&mut self) {
        for (row, count) in self.hot.drain().filter(|&(_, count)| count > 0) {
            self.short.rows[row].1.count += count;
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
        match &self.limit {
            Some(limit) if memory > limit.memory && self.memory() > 0 => self.spill(),
            _ => Ok(()),
        }
    }

    /// Spill all counts; without a limit, they stay in memory.
    pub(super) fn spill(&mut self) -> Result<()> {
        // First, because the entries of the hot table refer to the rows that are dropped below.
        self.flush_hot();
        let Some(limit) = &mut self.limit else { return Ok(()) };
        let mut bytes = Vec::new();
        for &(key, seen) in &std::mem::take(&mut self.short).rows {
            bytes.clear();
            key.write(&mut bytes);
            limit.spill()?.push(&bytes, seen)?;
        }
        for (pretoken, seen) in std::mem::take(&mut self.long).iter() {
            limit.spill()?.push(pretoken, seen)?;
        }
        limit.spill()?.flush()
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
    let (short, long): (Vec<_>, Vec<_>) =
        tables.into_iter().map(|table| (table.short, table.long)).unzip();
    in_order(short, &long)
}

/// The rows of tables without common pretokens, in order of first occurrence.
fn in_order(tables: Vec<ShortRows>, long: &[LongRows]) -> Result<Counts> {
    let rows = tables.iter().map(|table| table.rows.len()).max().unwrap_or(0);
    let mut counts = Counts::with_room_for_about(rows * 8, rows);
    let mut short = FirstSeenOrder::new(tables.into_iter().map(ShortRows::into_rows));
    let mut long = FirstSeenOrder::new(long.iter().map(LongRows::iter));
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
            _ => return Ok(counts),
        }
    }
}

/// Merges streams of rows in order of first occurrence.
struct FirstSeenOrder<I: Iterator> {
    streams: Vec<(I::Item, I)>,
}

impl<T, I: Iterator<Item = (T, Seen)>> FirstSeenOrder<I> {
    fn new(streams: impl Iterator<Item = I>) -> Self {
        Self { streams: streams.filter_map(|mut rows| Some((rows.next()?, rows))).collect() }
    }
}

impl<T, I: Iterator<Item = (T, Seen)>> Iterator for FirstSeenOrder<I> {
    type Item = (T, Seen);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let firsts = self.streams.iter().map(|((_, seen), _)| seen.first);
        let (at, _) = firsts.enumerate().min_by_key(|&(_, first)| first)?;
        let (head, rest) = &mut self.streams[at];
        match rest.next() {
            Some(row) => Some(std::mem::replace(head, row)),
            None => Some(self.streams.swap_remove(at).0),
        }
    }
}

/// Counts of short pretokens, by key.
#[derive(Debug, Default)]
struct ShortRows {
    rows: Vec<(Key, Seen)>,
    index: RowIndex,
}

impl ShortRows {
    /// Reserve capacity for `more` keys.
    #[inline]
    fn reserve(&mut self, more: usize) -> Result<()> {
        let rows = self.rows.len() + more;
        memory::reserve(&mut self.rows, more)?;
        if self.index.fits(rows) { Ok(()) } else { self.grow(rows) }
    }

    #[cold]
    fn grow(&mut self, rows: usize) -> Result<()> {
        if rows > RowIndex::ROWS {
            return Err(Error::TooManyPretokens);
        }
        // The old index is freed before the new one is made.
        self.index = RowIndex::default();
        self.index = RowIndex::of(self.rows.iter().map(|(key, _)| key.hash()), rows)?;
        Ok(())
    }

    /// The size in bytes while capacity for `more` keys is reserved.
    fn memory(&self, more: usize) -> usize {
        let rows = self.rows.len() + more;
        // While a vector grows, the old memory and twice as much new memory exist.
        let grown = if rows <= self.rows.capacity() { 0 } else { 2 * self.rows.capacity() };
        let rows_memory = (self.rows.capacity() + grown) * size_of::<(Key, Seen)>();
        let grown = if self.index.fits(rows) { 0 } else { RowIndex::slots_for(rows) };
        rows_memory + self.index.memory() + grown * size_of::<u32>()
    }

    /// Add to the count of a key; returns its row. Capacity for the key must be reserved.
    #[inline]
    fn add(&mut self, key: Key, hash: u64, seen: Seen) -> usize {
        match self.index.find(hash, |row| self.rows[row].0 == key) {
            Ok(row) => {
                self.rows[row].1.add(seen);
                row
            }
            Err(slot) => {
                self.index.put(slot, self.rows.len());
                self.rows.push((key, seen));
                self.rows.len() - 1
            }
        }
    }

    /// The rows whose counts were not moved to another table. The memory of the rows before is
    /// freed block by block, so that [`Counts`] grow while the table shrinks.
    fn into_rows(self) -> impl Iterator<Item = (Key, Seen)> {
        let Self { mut rows, index } = self;
        drop(index);
        let mut blocks = Vec::new();
        while !rows.is_empty() {
            blocks.push(rows.split_off((rows.len() - 1) / BLOCK_ROWS * BLOCK_ROWS));
            rows.shrink_to_fit();
        }
        blocks.into_iter().rev().flatten().filter(|(_, seen)| seen.count > 0)
    }

    /// Move the count of each key in both tables to the one that saw it first.
    fn move_duplicates(&mut self, other: &mut Self) {
        if self.rows.is_empty() {
            return;
        }
        // Prefetched block by block as in `CountTable::add_misses`.
        for block in other.rows.chunks_mut(PretokenEnds::CAPACITY) {
            for (key, _) in &*block {
                self.index.prefetch(key.hash());
            }
            for (key, _) in &*block {
                if let Some(row) = self.index.likely(key.hash()) {
                    prefetch(&self.rows, row);
                }
            }
            for (key, seen) in block {
                if let Ok(row) = self.index.find(key.hash(), |row| self.rows[row].0 == *key) {
                    self.rows[row].1.move_to_first(seen);
                }
            }
        }
    }
}

/// Counts of long pretokens.
#[derive(Debug, Default)]
struct LongRows {
    /// The concatenated pretokens, and the end, count and first occurrence of each.
    bytes: Vec<u8>,
    rows: Vec<(usize, Seen)>,
    index: RowIndex,
}

impl LongRows {
    fn add(&mut self, pretoken: &[u8], seen: Seen) -> Result<()> {
        if !self.index.fits(self.rows.len() + 1) {
            self.grow()?;
        }
        match self.index.find(hash(pretoken), |row| &self.bytes[self.range(row)] == pretoken) {
            Ok(row) => self.rows[row].1.add(seen),
            Err(slot) => {
                memory::reserve(&mut self.rows, 1)?;
                memory::extend(&mut self.bytes, pretoken)?;
                self.index.put(slot, self.rows.len());
                self.rows.push((self.bytes.len(), seen));
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        let rows = 2 * self.rows.len() + 1;
        if rows > RowIndex::ROWS {
            return Err(Error::TooManyPretokens);
        }
        self.index = RowIndex::of(self.iter().map(|(pretoken, _)| hash(pretoken)), rows)?;
        Ok(())
    }

    /// The size in bytes.
    fn memory(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<(usize, Seen)>();
        self.bytes.capacity() + rows + self.index.memory()
    }

    /// The range of a pretoken in `bytes`.
    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        row.checked_sub(1).map_or(0, |before| self.rows[before].0)..self.rows[row].0
    }

    /// The rows whose counts were not moved to another table.
    fn iter(&self) -> impl Iterator<Item = (&[u8], Seen)> {
        let rows = (0..self.rows.len()).map(|row| (&self.bytes[self.range(row)], self.rows[row].1));
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
                self.rows[own_row].1.move_to_first(&mut other.rows[row].1);
            }
        }
    }
}

/// The hash of a long pretoken. With [`hash_bytes`](crate::hash::key::hash_bytes) instead, counting
/// texts in many languages takes 11 % longer.
#[inline]
fn hash(pretoken: &[u8]) -> u64 {
    FixedState::default().hash_one(pretoken)
}

/// The memory limit of a table, and the file that it spills to.
#[derive(Debug)]
pub(super) struct Limit {
    /// The limit in bytes.
    pub(super) memory: usize,
    pub(super) folder: PathBuf,
    /// The index of the thread.
    pub(super) number: usize,
    /// Created on the first spill.
    pub(super) spill: Option<Spill>,
}

impl Limit {
    fn spill(&mut self) -> Result<&mut Spill> {
        if self.spill.is_none() {
            self.spill = Some(Spill::create(&self.folder, self.number)?);
        }
        Ok(self.spill.as_mut().expect("created above"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretokenize::Pattern;

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
