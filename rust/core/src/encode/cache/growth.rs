//! The next table of the cache, made in steps, and an earlier one, freed in steps.
//!
//! A larger table is megabytes of fresh memory, and a full one has megabytes of entries to copy. If
//! one call did that at once, it would take a thousand times as long as the calls before and after
//! it. So each window of text does one step, in proportion to its pretokens: the memory of some
//! lines of the next table is made ready, and the entries that belong there are copied. Until the
//! last step, all threads use the old table; entries that they add behind the place of the copy are
//! lost.

use std::ops::Range;

use crate::encode::cache::table::CacheTable;

/// The fill level, in eighths of the entries and of the overflow, up to which entries are copied
/// when a table evicts.
const COPIED_EIGHTHS: [usize; 2] = [4, 4];

/// The number of lines of the next table that one pretoken pays for, and the bounds of a step.
const LINES_PER_PRETOKEN: usize = 4;
const MIN_STEP_LINES: usize = 1 << 9;
const MAX_STEP_LINES: usize = 1 << 13;

/// The number of lines whose memory is freed at once, with their part of the overflow.
const FREED_LINES: usize = 1 << 11;

/// A table that is being made, and how far it is.
#[derive(Debug)]
pub(super) struct Growth {
    next: CacheTable,
    /// The number of lines of the next table that are finished.
    lines: usize,
    /// The number of words of the overflow that are copied.
    words: usize,
    /// The number of words of the overflow to copy, once all lines are finished.
    all_words: Option<usize>,
}

impl Growth {
    /// Begin with an empty table.
    pub(super) fn new(next: CacheTable) -> Self {
        Self { next, lines: 0, words: 0, all_words: None }
    }

    /// Do the step of a window of this many pretokens; returns whether it was the last one.
    pub(super) fn step(&mut self, old: &CacheTable, pretokens: usize) -> bool {
        let size =
            pretokens.saturating_mul(LINES_PER_PRETOKEN).clamp(MIN_STEP_LINES, MAX_STEP_LINES);
        // First all lines, then the overflow: an entry points into the overflow at the same place in
        // both tables, so its ids may come later, as long as nobody reads the next table yet.
        if self.lines < self.next.lines() {
            self.copy_lines(old, size);
            return false;
        }
        self.copy_overflow(old, size)
    }

    /// Do all steps at once, and return the table.
    pub(super) fn finish(mut self, old: &CacheTable) -> CacheTable {
        while !self.step(old, usize::MAX) {}
        self.next
    }

    /// The next table has 2 to the power of this many lines.
    pub(super) fn bits(&self) -> u32 {
        self.next.bits()
    }

    /// The finished table.
    pub(super) fn table(self) -> CacheTable {
        self.next
    }

    /// Finish some lines.
    fn copy_lines(&mut self, old: &CacheTable, count: usize) {
        let lines = self.lines..self.next.lines().min(self.lines + count);
        self.lines = lines.end;
        self.next.touch(lines.clone());
        // The next table has a power of two times as many lines, in the same order.
        // A line is the highest bits of a hash, so line n of the old table becomes the lines from
        // n * times on, and a step reads each old line once.
        let times = self.next.lines() / old.lines();
        let same: Range<usize> = lines.start.div_ceil(times)..lines.end.div_ceil(times);
        if self.evicts(old) {
            self.next.copy_hits(old, same, COPIED_EIGHTHS);
        } else {
            self.next.copy(old, same);
        }
    }

    /// Copy some words of the overflow; returns whether none are left. The words of an item were
    /// written before its entry, and no entry is copied any more.
    fn copy_overflow(&mut self, old: &CacheTable, count: usize) -> bool {
        if self.evicts(old) {
            return true; // each entry was copied with its item
        }
        let all = *self.all_words.get_or_insert_with(|| old.overflow().used());
        let end = all.min(self.words + count * size_of::<u64>());
        self.next.overflow().copy(old.overflow(), self.words..end);
        self.words = end;
        end == all
    }

    /// Whether the next table is not larger, so that some entries must go.
    fn evicts(&self, old: &CacheTable) -> bool {
        self.next.lines() == old.lines()
    }
}

/// A table that no thread uses any more. Freeing megabytes at once takes up to a millisecond, since
/// the system takes back page by page.
#[derive(Debug)]
pub(super) struct RetiredTable {
    table: CacheTable,
    /// The number of parts that are freed.
    parts: usize,
}

impl RetiredTable {
    /// A table to be freed.
    pub(super) fn new(table: CacheTable) -> Self {
        Self { table, parts: 0 }
    }

    /// Free the next part; returns what is left.
    pub(super) fn free_part(mut self) -> Option<Self> {
        let parts = self.table.lines().div_ceil(FREED_LINES);
        self.table.release(self.parts, parts);
        self.parts += 1;
        (self.parts < parts).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::key::Key;
    use crate::machine::huge_pages::PageSize;

    /// A table with some entries, whose ids are in the entry or in the overflow.
    fn table(number: usize, bits: u32, entries: u32) -> CacheTable {
        let table = CacheTable::new(number, bits, 1 << 12, PageSize::Small).unwrap();
        for number in 0..entries {
            let (key, pretoken, ids) = example(number);
            table.put(key, table.locate(key), &pretoken, &ids);
        }
        table
    }

    fn example(number: u32) -> (Key, Vec<u8>, Vec<u32>) {
        let pretoken = number.to_le_bytes().repeat(1 + number as usize % 7);
        let key = Key::of(&pretoken, 0..pretoken.len());
        (key, pretoken, vec![number; 1 + number as usize % 9])
    }

    /// The ids of an example, if the table has them; `marks` marks them as hit.
    fn get(table: &CacheTable, number: u32, marks: bool) -> Option<Vec<u32>> {
        let (key, pretoken, _) = example(number);
        let place = table.locate(key);
        let (is_here, entry) = table.look(key, place, marks);
        let entry = if is_here { Some(entry) } else { table.find_beside(key, place, marks) };
        let (entry, mut room) = (entry?, [0; crate::encode::cache::overflow::READ_BUFFER_IDS]);
        let (count, words) = (
            crate::encode::cache::entry::count(&entry),
            crate::encode::cache::entry::words(&entry),
        );
        let count = table.read(count, words, &pretoken, &mut room)?;
        Some(room[..count].to_vec())
    }

    #[test]
    fn a_larger_table_has_all_entries_whatever_the_steps() {
        for (bits, more, pretokens) in [(4, 4, 1), (11, 2, 1), (11, 2, 1000), (6, 9, usize::MAX)] {
            let old = table(1, bits, 40);
            let mut growth =
                Growth::new(CacheTable::new(2, bits + more, 1 << 14, PageSize::Small).unwrap());
            let mut steps = 1;
            while !growth.step(&old, pretokens) {
                steps += 1;
            }
            assert!(
                steps <= 2 + (1 << (bits + more)) / MIN_STEP_LINES + (1 << 12) / MIN_STEP_LINES
            );
            let new = growth.table();
            for number in 0..40 {
                let known = get(&old, number, false);
                assert!(known.is_none() || known == Some(example(number).2));
                assert_eq!(get(&new, number, false), known, "{number}");
            }
        }
    }

    #[test]
    fn a_table_is_freed_in_parts() {
        for (bits, parts) in [(2, 1), (FREED_LINES.ilog2(), 1), (FREED_LINES.ilog2() + 2, 4)] {
            let mut retired = Some(RetiredTable::new(table(1, bits, 40)));
            for part in 0..parts {
                assert!(retired.is_some(), "{part}");
                retired = retired.and_then(RetiredTable::free_part);
            }
            assert!(retired.is_none());
        }
    }

    #[test]
    fn a_table_that_is_full_keeps_what_was_hit() {
        let old = table(1, 8, 200);
        for number in (0..200).step_by(3) {
            get(&old, number, true);
        }
        let new = Growth::new(CacheTable::new(2, 8, 1 << 12, PageSize::Huge).unwrap()).finish(&old);
        for number in 0..200 {
            let known = get(&old, number, false).filter(|_| number % 3 == 0);
            assert_eq!(get(&new, number, false), known, "{number}");
        }
    }
}
