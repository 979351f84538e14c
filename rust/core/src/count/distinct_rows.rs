//! Merges counted pretokens into [`Counts`]: distinct, in order of first occurrence.
//!
//! [`push`](DistinctRows::push) is for the rows of a file, which must be distinct: a row that
//! breaks a rule fails at once, so a file that repeats its rows fails at the first repetition,
//! however many rows it claims to have. [`add`](DistinctRows::add) sums the counts of repeated
//! pretokens.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::count::counts::Counts;
use crate::error::{Error, Result};
use crate::memory;

/// Builds counts row by row.
#[derive(Default)]
pub(crate) struct DistinctRows {
    counts: Counts,
    /// The hash and the index of each row.
    rows: HashTable<(u64, usize)>,
    hasher: FixedState,
}

impl DistinctRows {
    /// Append a row. Fails if the pretoken is empty or already has a row, or if the count is 0.
    #[cfg(feature = "parquet")]
    pub(crate) fn push(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        let row = self.counts.len();
        let broken = |rule: &str| Err(Error::Counts { row, rule: rule.to_owned() });
        if pretoken.is_empty() {
            return broken("the pretoken is empty");
        }
        if count == 0 {
            return broken("the count is 0");
        }
        let hash = self.hasher.hash_one(pretoken);
        if let Some(first) = self.find(pretoken, hash) {
            return broken(&format!("it has the pretoken of row {first}"));
        }
        self.append(pretoken, hash, count)
    }

    /// Add to the count of a pretoken; a new pretoken is appended. Fails if the sum exceeds 64
    /// bits.
    pub(crate) fn add(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        let hash = self.hasher.hash_one(pretoken);
        match self.find(pretoken, hash) {
            Some(row) => self.counts.add_to(row, count),
            None => self.append(pretoken, hash, count),
        }
    }

    /// The row of a pretoken.
    fn find(&self, pretoken: &[u8], hash: u64) -> Option<usize> {
        let is_equal =
            |&(other, row): &(u64, usize)| hash == other && self.counts.row(row) == pretoken;
        self.rows.find(hash, is_equal).map(|&(_, row)| row)
    }

    /// Append a pretoken that is new.
    fn append(&mut self, pretoken: &[u8], hash: u64, count: u64) -> Result<()> {
        self.reserve()?;
        self.rows.insert_unique(hash, (hash, self.counts.len()), |&(hash, _)| hash);
        self.counts.push(pretoken, count)
    }

    /// Reserve capacity for one more row.
    fn reserve(&mut self) -> Result<()> {
        if self.rows.len() < self.rows.capacity() {
            return Ok(());
        }
        // The capacity doubles, so the new table has at least this many entries.
        let more = self.rows.len().max(1);
        let bytes = size_of::<(u64, usize)>().saturating_mul(2 * more);
        memory::check(bytes)?;
        let reserved = self.rows.try_reserve(more, |&(hash, _)| hash);
        reserved.map_err(|_| Error::OutOfMemory { bytes })
    }

    /// The counts.
    pub(crate) fn finish(self) -> Counts {
        self.counts
    }
}
