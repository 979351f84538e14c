//! Finds the number of a row by its hash.
//!
//! The rows themselves are stored elsewhere, in order of insertion. Frequent pretokens come early,
//! so their rows are close together, and each is at the first position of its hash. An index takes
//! four bytes per position, so it stays in the caches when the rows no longer do.

use crate::machine::simd::prefetch;
use crate::{error, memory};

/// Row numbers by hash: open addressing in 2^n slots, at most half of them used.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowIndex {
    /// One more than the number of a row; zero is an empty slot.
    slots: Vec<u32>,
}

impl RowIndex {
    /// The largest number of rows.
    pub(crate) const ROWS: usize = u32::MAX as usize - 1;

    /// The number of slots for a number of rows.
    pub(crate) fn slots_for(rows: usize) -> usize {
        (2 * rows).next_power_of_two().max(1 << 12)
    }

    /// Whether this many rows fit.
    #[inline]
    pub(crate) fn fits(&self, rows: usize) -> bool {
        2 * rows <= self.slots.len()
    }

    /// The size of the index in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }

    /// An index of rows with these hashes, in order, with room for `rows` rows.
    pub(crate) fn of(hashes: impl Iterator<Item = u64>, rows: usize) -> error::Result<Self> {
        let mut index = Self { slots: memory::zeros(Self::slots_for(rows))? };
        for (row, hash) in (0..).zip(hashes) {
            let slot = index.find(hash, |_| false).expect_err("no row matches");
            index.put(slot, row);
        }
        Ok(index)
    }

    /// The row of this hash for which `is_it` holds, or else the slot for it.
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

    /// Put a row below [`Self::ROWS`] into a slot that [`find`](Self::find) returned.
    #[inline]
    pub(crate) fn put(&mut self, slot: usize, row: usize) {
        self.slots[slot] = u32::try_from(row + 1).expect("below the number of rows");
    }

    /// The row in the first slot of a hash, which usually is the right one.
    #[inline]
    pub(crate) fn likely(&self, hash: u64) -> Option<usize> {
        (self.slots[self.start(hash)] as usize).checked_sub(1)
    }

    /// Prefetch the first slot of a hash.
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
