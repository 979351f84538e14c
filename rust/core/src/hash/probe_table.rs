//! An immutable hash table of numbers, by open addressing.
//!
//! The table may come from an untrusted file. An entry stands at the position of its hash or a
//! little after, before any empty position. The table records how far after at most (`max_probe`),
//! so a lookup ends after that many positions, whatever the table contains.

use crate::error::Result;
use crate::machine::array::Array;
use crate::machine::simd::prefetch;
use crate::memory;

/// A file with a larger `max_probe` is refused.
pub(crate) const MAX_PROBE: usize = 1 << 10;

/// The number of positions that a hash may have, per eight entries.
const STARTS_PER_8: usize = 13;

/// The number of positions after the last start that there are at first.
const BEHIND_POSITIONS: usize = 1 << 8;

/// The value at a position without an entry.
const EMPTY: u32 = 0;

/// A finished table.
#[derive(Debug, Clone)]
pub(crate) struct ProbeTable {
    entries: Array<u32>,
    max_probe: usize,
}

impl ProbeTable {
    /// The table in any array; `None` if `max_probe` is too large, in itself or for the array.
    pub(crate) fn from_array(entries: Array<u32>, max_probe: usize) -> Option<Self> {
        (max_probe < entries.len() && max_probe <= MAX_PROBE).then_some(Self { entries, max_probe })
    }

    /// The array, and `max_probe`.
    pub(crate) fn array(&self) -> (&Array<u32>, usize) {
        (&self.entries, self.max_probe)
    }

    /// The first position of a hash; its upper bits matter.
    #[inline]
    fn start(&self, hash: u64) -> usize {
        start(hash, self.entries.len() - self.max_probe)
    }

    /// The entries at the positions of a hash, up to the first empty one.
    #[inline]
    pub(crate) fn at(&self, hash: u64) -> impl Iterator<Item = u32> {
        let start = self.start(hash);
        let entries = &self.entries[start..start + self.max_probe];
        entries.iter().copied().take_while(|&entry| entry != EMPTY)
    }

    /// Prefetch the first position of a hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.entries, self.start(hash));
    }
}

/// A table that is being filled.
pub(crate) struct ProbeTableBuilder {
    entries: Vec<u32>,
    starts: usize,
    max_probe: usize,
}

impl ProbeTableBuilder {
    /// An empty table for about this many entries.
    pub(crate) fn new(entries: usize) -> Result<Self> {
        let starts = (entries * STARTS_PER_8 / 8).max(1);
        Ok(Self { entries: memory::zeros(starts + BEHIND_POSITIONS)?, starts, max_probe: 1 })
    }

    /// Insert an entry, unless there is one with this hash for which `is_it` holds: that is
    /// returned.
    #[inline]
    pub(crate) fn put(
        &mut self,
        hash: u64,
        entry: u32,
        is_it: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let start = start(hash, self.starts);
        let mut at = start;
        while self.entries[at] != EMPTY {
            if is_it(self.entries[at]) {
                return Some(self.entries[at]);
            }
            at += 1;
        }
        self.entries[at] = entry;
        self.max_probe = self.max_probe.max(at - start + 1);
        // The last position stays empty, so the loop above ends within the array.
        if at + 1 == self.entries.len() {
            self.entries.push(EMPTY);
        }
        None
    }

    pub(crate) fn finish(mut self) -> ProbeTable {
        // From the last start, too, `at` reads `max_probe` positions, which must exist.
        self.entries.resize(self.starts + self.max_probe, EMPTY);
        ProbeTable { entries: Array::new(self.entries), max_probe: self.max_probe }
    }
}

/// The position of a hash, below `starts`.
#[inline]
pub(crate) fn start(hash: u64, starts: usize) -> usize {
    // hash / 2^64 is a fraction below 1, so its product with `starts` is below `starts`. This takes one
    // multiplication, where a remainder would take a division.
    let product = u128::from(hash) * starts as u128;
    usize::try_from(product >> 64).expect("it is below `starts`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All entries and nothing else are found, however full the table is.
        #[test]
        fn what_was_put_is_found(
            numbers in prop::collection::btree_set(1u32..1000, 0..200),
            entries in 0usize..300,
            shift in 0u32..64,
        ) {
            let hash = |number: u32| u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift;
            let mut building = ProbeTableBuilder::new(entries).unwrap();
            for &number in &numbers {
                prop_assert_eq!(building.put(hash(number), number, |other| other == number), None);
                let again = building.put(hash(number), number, |other| other == number);
                prop_assert_eq!(again, Some(number));
            }
            let table = building.finish();
            for number in 1..1000 {
                let is_in = table.at(hash(number)).any(|other| other == number);
                prop_assert_eq!(is_in, numbers.contains(&number));
            }
            let (array, max_probe) = table.array();
            let again = ProbeTable::from_array(array.clone(), max_probe).unwrap();
            prop_assert!(numbers.iter().all(|&n| again.at(hash(n)).any(|other| other == n)));
        }
    }

    #[test]
    fn a_lookup_in_a_full_table_ends() {
        let table = ProbeTable::from_array(Array::new(vec![7_u32; 100]), 10).unwrap();
        for hash in [0, u64::MAX / 2, u64::MAX] {
            assert_eq!(table.at(hash).count(), 10);
        }
    }

    #[test]
    fn too_large_a_max_probe_is_refused() {
        let of =
            |length, max_probe| ProbeTable::from_array(Array::new(vec![7_u32; length]), max_probe);
        assert!(of(0, 0).is_none());
        assert!(of(10, 10).is_none());
        assert!(of(10_000, MAX_PROBE + 1).is_none());
        assert!(of(10, 0).is_some_and(|table| table.at(u64::MAX).next().is_none()));
    }
}
