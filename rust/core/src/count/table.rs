//! What one thread saw: pretokens in the order of their first occurrence, short ones by their keys,
//! long ones by their bytes.

use std::hash::BuildHasher;
use std::ops::Range;
use std::path::PathBuf;

use foldhash::fast::FixedState;

use super::near::Near;
use super::spill::Spill;
use super::{Counts, Seen};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::key::{Key, LONGEST};
use crate::parallel;
use crate::prefetch::prefetch;
use crate::pretokenize::{Ends, Splitter};

/// The pretokens that one thread saw.
#[derive(Debug, Default)]
pub(super) struct Table {
    short: Short,
    long: Long,
    /// What to do when memory is used up; `None` is to take more.
    pub(super) limit: Option<Limit>,
    /// Counts of short pretokens that are not yet in their rows.
    near: Near,
    /// The ends of the pretokens that are worked on, and those among them that are not near: where
    /// they start, keys and hashes.
    ends: Box<Ends>,
    far: Vec<(usize, Key, u64)>,
}

impl Table {
    /// Split `text`, whose first byte is number `offset` of the corpus, and add its pretokens. The
    /// offsets of one table rise from call to call.
    pub(super) fn add_text(&mut self, splitter: &Splitter, text: &str, offset: u64) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            self.spill_if_full()?;
            splitter.fill(text, start, &mut self.ends)?;
            let (end, far) = self.add_block(text.as_bytes(), start, offset)?;
            self.add_far(far, offset)?;
            start = end;
        }
        Ok(())
    }

    /// Count the pretokens of a block that are near or long, and gather the others. Returns the end
    /// of the block, and how many the others are.
    fn add_block(&mut self, text: &[u8], mut start: usize, offset: u64) -> Result<(usize, usize)> {
        let most = Ends::CAPACITY.max(self.ends.as_slice().len());
        self.far.resize(most, Default::default());
        let mut far = 0;
        for &end in self.ends.as_slice() {
            if end - start > LONGEST {
                let seen = Seen { count: 1, first: offset + start as u64 };
                self.long.add(&text[start..end], seen)?;
            } else {
                let key = Key::new(text, start..end);
                let hash = key.hash();
                self.far[far] = (start, key, hash);
                far += usize::from(!self.near.count(key, hash));
            }
            start = end;
        }
        Ok((start, far))
    }

    /// Count the first `far` of the pretokens that are not near. The memory of their counts is asked for before: first
    /// that of all slots, then that of the rows that they name.
    fn add_far(&mut self, far: usize, offset: u64) -> Result<()> {
        let far = &self.far[..far];
        self.short.reserve(far.len())?;
        for &(_, _, hash) in far {
            self.short.index.prefetch(hash);
        }
        for &(_, _, hash) in far {
            if let Some(row) = self.short.index.likely(hash) {
                prefetch(&self.short.rows, row);
            }
        }
        for &(start, key, hash) in far {
            let row = self.short.add(key, hash, Seen { count: 1, first: offset + start as u64 });
            let count = &mut self.short.rows[row].1.count;
            if let Some((row, count)) = self.near.offer(key, hash, row, count) {
                self.short.rows[row].1.count += count;
            }
        }
        Ok(())
    }

    /// Put all counts into their rows.
    fn settle(&mut self) {
        for (row, count) in self.near.drain().filter(|&(_, count)| count > 0) {
            self.short.rows[row].1.count += count;
        }
    }

    /// About how many bytes the pretokens take.
    pub(super) fn memory(&self) -> usize {
        self.short.memory(0) + self.long.memory()
    }

    /// Put all pretokens aside if the next ones might not fit the limit.
    fn spill_if_full(&mut self) -> Result<()> {
        let memory = self.short.memory(Ends::CAPACITY) + self.long.memory();
        match &self.limit {
            Some(limit) if memory > limit.memory && self.memory() > 0 => self.spill(),
            _ => Ok(()),
        }
    }

    /// Put all pretokens aside; without a limit, there is no place for them and they stay.
    pub(super) fn spill(&mut self) -> Result<()> {
        self.settle();
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

/// Add up what several threads saw, in order of first occurrence, on as many threads.
///
/// Each table meets each other one, as in a tournament: all but the first go round in a ring, and in each
/// round the first half meets the second half from its end on. Where both have a pretoken, the one that
/// saw it first gets the count of the other. So each pretoken is left in one table, and what is left to
/// do alone is to put the rows in line.
pub(super) fn merge(mut tables: Vec<Table>) -> Counts {
    tables.iter_mut().for_each(Table::settle);
    if tables.len() > 1 && !tables.len().is_multiple_of(2) {
        tables.push(Table::default());
    }
    let middle = tables.len() / 2;
    for _ in 1..tables.len() {
        let (half, others) = tables.split_at_mut(middle);
        parallel::run(half.iter_mut().zip(others.iter_mut().rev()).map(|(one, other)| {
            move || {
                one.short.meet(&mut other.short);
                one.long.meet(&mut other.long);
            }
        }));
        tables[1..].rotate_right(1);
    }
    in_line(&tables)
}

/// The rows of tables that have no pretoken in common, in order of first occurrence.
fn in_line(tables: &[Table]) -> Counts {
    let rows = tables.iter().map(|table| table.short.rows.len()).max().unwrap_or(0);
    let mut counts = Counts::with_capacity(rows * 8, rows);
    let mut short = InOrder::new(tables.iter().map(|table| table.short.iter()));
    let mut long = InOrder::new(tables.iter().map(|table| table.long.iter()));
    let mut next = (short.next(), long.next());
    let mut buffer = Vec::new();
    loop {
        match next {
            (Some((key, seen)), ref other) if !other.is_some_and(|o| o.1.first < seen.first) => {
                buffer.clear();
                key.write(&mut buffer);
                counts.push(&buffer, seen.count);
                next.0 = short.next();
            }
            (_, Some((pretoken, seen))) => {
                counts.push(pretoken, seen.count);
                next.1 = long.next();
            }
            _ => return counts,
        }
    }
}

/// Several streams of rows, each in order of first occurrence, as one.
struct InOrder<I: Iterator> {
    streams: Vec<(I::Item, I)>,
}

impl<T, I: Iterator<Item = (T, Seen)>> InOrder<I> {
    fn new(streams: impl Iterator<Item = I>) -> Self {
        Self { streams: streams.filter_map(|mut rows| Some((rows.next()?, rows))).collect() }
    }
}

impl<T, I: Iterator<Item = (T, Seen)>> Iterator for InOrder<I> {
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

/// Counts by key.
#[derive(Debug, Default)]
struct Short {
    rows: Vec<(Key, Seen)>,
    index: Index,
}

impl Short {
    /// Make room for so many keys more.
    #[inline]
    fn reserve(&mut self, more: usize) -> Result<()> {
        let rows = self.rows.len() + more;
        if self.index.fits(rows) { Ok(()) } else { self.grow(rows) }
    }

    #[cold]
    fn grow(&mut self, rows: usize) -> Result<()> {
        if rows > Index::ROWS {
            return Err(Error::TooManyPretokens);
        }
        self.index = Index::default();
        self.index = Index::of(self.rows.iter().map(|(key, _)| key.hash()), rows);
        Ok(())
    }

    /// How many bytes the rows take while there is made room for so many more.
    fn memory(&self, more: usize) -> usize {
        let rows = self.rows.len() + more;
        let room = if rows <= self.rows.capacity() { 0 } else { 2 * self.rows.capacity() };
        let rows_memory = (self.rows.capacity() + room) * size_of::<(Key, Seen)>();
        let grown = if self.index.fits(rows) { 0 } else { Index::slots_for(rows) };
        rows_memory + self.index.memory() + grown * size_of::<u32>()
    }

    /// Add to the count of a key, which has this hash, and return its row; there must be room.
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

    /// The keys that were not left to another table.
    fn iter(&self) -> impl Iterator<Item = (Key, Seen)> {
        self.rows.iter().copied().filter(|(_, seen)| seen.count > 0)
    }

    /// Leave each key that both have to one of the two.
    fn meet(&mut self, other: &mut Self) {
        if self.rows.is_empty() {
            return;
        }
        for block in other.rows.chunks_mut(Ends::CAPACITY) {
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
                    self.rows[row].1.meet(seen);
                }
            }
        }
    }
}

/// Counts of pretokens that have no key.
#[derive(Debug, Default)]
struct Long {
    /// The bytes of the pretokens end to end, where each ends, and what was seen of it.
    bytes: Vec<u8>,
    rows: Vec<(usize, Seen)>,
    index: Index,
}

impl Long {
    fn add(&mut self, pretoken: &[u8], seen: Seen) -> Result<()> {
        if !self.index.fits(self.rows.len() + 1) {
            self.grow()?;
        }
        match self.index.find(hash(pretoken), |row| &self.bytes[self.range(row)] == pretoken) {
            Ok(row) => self.rows[row].1.add(seen),
            Err(slot) => {
                self.index.put(slot, self.rows.len());
                self.bytes.extend_from_slice(pretoken);
                self.rows.push((self.bytes.len(), seen));
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        let rows = 2 * self.rows.len() + 1;
        if rows > Index::ROWS {
            return Err(Error::TooManyPretokens);
        }
        self.index = Index::of(self.iter().map(|(pretoken, _)| hash(pretoken)), rows);
        Ok(())
    }

    /// How many bytes the rows take.
    fn memory(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<(usize, Seen)>();
        self.bytes.capacity() + rows + self.index.memory()
    }

    /// Where a pretoken is.
    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        row.checked_sub(1).map_or(0, |before| self.rows[before].0)..self.rows[row].0
    }

    /// The pretokens that were not left to another table.
    fn iter(&self) -> impl Iterator<Item = (&[u8], Seen)> {
        let rows = (0..self.rows.len()).map(|row| (&self.bytes[self.range(row)], self.rows[row].1));
        rows.filter(|(_, seen)| seen.count > 0)
    }

    /// Leave each pretoken that both have to one of the two.
    fn meet(&mut self, other: &mut Self) {
        if self.rows.is_empty() {
            return;
        }
        for row in 0..other.rows.len() {
            let pretoken = &other.bytes[other.range(row)];
            let is_it = |row| &self.bytes[self.range(row)] == pretoken;
            if let Ok(here) = self.index.find(hash(pretoken), is_it) {
                self.rows[here].1.meet(&mut other.rows[row].1);
            }
        }
    }
}

#[inline]
fn hash(pretoken: &[u8]) -> u64 {
    FixedState::default().hash_one(pretoken)
}

/// How much memory the table of a thread may take, and where it puts aside what does not fit.
#[derive(Debug)]
pub(super) struct Limit {
    /// In bytes.
    pub(super) memory: usize,
    pub(super) folder: PathBuf,
    /// Which thread this is.
    pub(super) number: usize,
    /// Made when it is first needed.
    pub(super) spill: Option<Spill>,
}

impl Limit {
    fn spill(&mut self) -> Result<&mut Spill> {
        if self.spill.is_none() {
            self.spill = Some(Spill::create(&self.folder, self.number)?);
        }
        Ok(self.spill.as_mut().expect("made above"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretokenize::Pattern;

    /// However many tables there are, each meets each other one.
    #[test]
    fn tables_of_the_same_text_are_added_up() {
        let splitter = Splitter::new(&Pattern::new("gpt2")).unwrap();
        let text = "two two words, and a verylongwordwithoutakey";
        let filled = |place: u64| {
            let mut table = Table::default();
            table.add_text(&splitter, text, 1000 * place).unwrap();
            table
        };
        let one: Vec<(Vec<u8>, u64)> =
            merge(vec![filled(0)]).iter().map(|(p, n)| (p.to_vec(), n)).collect();
        for number in 2..=12 {
            let counts = merge((0..number).map(filled).collect());
            let times = one.iter().map(|(p, n)| (&p[..], n * number));
            assert!(counts.iter().eq(times), "{number} tables");
        }
    }
}
