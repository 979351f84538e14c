//! Hash in, number of a row out.
//!
//! The rows themselves stand elsewhere, one behind the other in the order in which they came. Words
//! that are frequent come early, so the rows that are needed all the time lie close together, and
//! each of them has the first place that its hash names. An index takes four bytes a slot, which
//! keeps it in near memory when the rows no longer fit.

use crate::prefetch::prefetch;

/// Numbers of rows by hash: open addressing, a power of two of slots, at most half of them taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// One more than the number of a row; zero is an empty slot.
    slots: Vec<u32>,
}

impl Index {
    /// How many rows an index can tell apart.
    pub(crate) const ROWS: usize = u32::MAX as usize - 1;

    /// How many slots there must be for so many rows.
    pub(crate) fn slots_for(rows: usize) -> usize {
        (2 * rows).next_power_of_two().max(1 << 12)
    }

    /// Whether so many rows fit.
    #[inline]
    pub(crate) fn fits(&self, rows: usize) -> bool {
        2 * rows <= self.slots.len()
    }

    /// How many bytes the index takes.
    pub(crate) fn memory(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }

    /// An index of the rows with these hashes, in order, with room for `rows`.
    pub(crate) fn of(hashes: impl Iterator<Item = u64>, rows: usize) -> Self {
        let mut index = Self { slots: vec![0; Self::slots_for(rows)] };
        for (row, hash) in (0..).zip(hashes) {
            let slot = index.find(hash, |_| false).expect_err("no row is the one");
            index.put(slot, row);
        }
        index
    }

    /// The row of this hash for which `is_it` holds, or the slot for it.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let last = self.slots.len() - 1;
        let mut at = self.start(hash);
        loop {
            match self.slots[at & last] {
                0 => return Err(at & last),
                taken if is_it(taken as usize - 1) => return Ok(taken as usize - 1),
                _ => at += 1,
            }
        }
    }

    /// Let a slot that [`find`](Self::find) gave be that of a row, which is below [`Self::ROWS`].
    #[inline]
    pub(crate) fn put(&mut self, slot: usize, row: usize) {
        self.slots[slot] = u32::try_from(row + 1).expect("below the number of rows");
    }

    /// The row that the first slot of a hash names, which is most often the one.
    #[inline]
    pub(crate) fn likely(&self, hash: u64) -> Option<usize> {
        (self.slots[self.start(hash)] as usize).checked_sub(1)
    }

    /// Bring the first slot of a hash without waiting for it.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.start(hash));
    }

    #[inline]
    fn start(&self, hash: u64) -> usize {
        let bits = self.slots.len().trailing_zeros();
        usize::try_from(hash >> (64 - bits)).expect("a table fits memory")
    }
}
