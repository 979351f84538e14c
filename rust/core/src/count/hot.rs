//! The hot table: the most frequent pretokens with their counts, small enough for the processor's
//! caches.
//!
//! Three of four pretokens of a text are among a few thousand. The hash of a pretoken selects one
//! entry of this table; of the pretokens that share an entry, the most frequent holds it. So most
//! pretokens are counted without access to the large table, and without a branch that is hard to
//! predict.

use crate::hash::key::Key;

/// The binary logarithm of the number of entries.
const ENTRY_BITS: u32 = 13;

/// Counts that are not yet added to the rows of the large table.
#[derive(Debug)]
pub(super) struct HotCounts {
    entries: Box<[HotEntry; 1 << ENTRY_BITS]>,
}

/// The key that holds the entry, its row in the large table, and its occurrences since it took the
/// entry; initially all zero.
#[derive(Debug, Clone, Copy, Default)]
struct HotEntry {
    key: Key,
    count: u64,
    row: usize,
}

impl Default for HotCounts {
    fn default() -> Self {
        let entries = vec![HotEntry::default(); 1 << ENTRY_BITS].into_boxed_slice();
        Self { entries: entries.try_into().expect("the array has this length") }
    }
}

impl HotCounts {
    /// Count an occurrence of a key if it holds the entry of its hash; returns whether it does.
    #[inline]
    pub(super) fn count(&mut self, key: Key, hash: u64) -> bool {
        let entry = self.entry(hash);
        let (one, other) = (key.words(), entry.key.words());
        // Both words are compared at once and the result is added as 0 or 1, so there is no branch.
        // An empty entry is all zero, and the second word of a key is not, so it never matches.
        let is_holder = (one.0 ^ other.0) | (one.1 ^ other.1) == 0;
        entry.count += u64::from(is_holder);
        is_holder
    }

    /// Offer the entry to a key whose row has the count `count`. If that exceeds the count of the
    /// holder, the key takes the entry with its count, which the caller removes from the row, and
    /// adds the returned count of the previous holder to that one's row.
    #[inline]
    pub(super) fn offer(
        &mut self,
        key: Key,
        hash: u64,
        row: usize,
        count: u64,
    ) -> Option<(usize, u64)> {
        let entry = self.entry(hash);
        if count <= entry.count {
            return None;
        }
        // The count is in one place at a time: here while the key holds the entry, else in its row.
        // So it can be compared with the count in the row of the next key that is offered the
        // entry.
        let holder = HotEntry { key, count, row };
        let previous = std::mem::replace(entry, holder);
        Some((previous.row, previous.count))
    }

    /// Reset all entries; returns their rows and counts.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (usize, u64)> {
        self.entries.iter_mut().map(|entry| {
            let entry = std::mem::take(entry);
            (entry.row, entry.count)
        })
    }

    #[inline]
    fn entry(&mut self, hash: u64) -> &mut HotEntry {
        // The upper bits of a hash are its best ones.
        &mut self.entries[usize::try_from(hash >> (64 - ENTRY_BITS)).expect("a few bits")]
    }
}

/// How often a pretoken was seen, and the position in the corpus where it was first seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) count: u64,
    pub(super) first: u64,
}

impl Seen {
    /// Add the occurrences in another part of the corpus.
    #[inline]
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
    }
}
