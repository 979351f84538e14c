//! Hash in, the few places out at which something of that hash may be.
//!
//! Open addressing for tables that are made once and then only looked up, also in files of strangers.
//! Each entry stands where its hash says or a little behind, before anything empty. How far behind at
//! most, the *reach*, is known; so a look-up ends after so many places, whatever is in the table.

use crate::column::Column;
use crate::lanes::Lanes;
use crate::prefetch::prefetch;

/// A table in a file is not read if a look-up could take more places than this.
pub(crate) const MOST_REACH: usize = 1 << 10;

/// So many places at which an entry may begin there are for each entry, in eighths.
const PLACES: usize = 13;

/// So many places are looked at all at once.
const FEW: usize = 8;

/// What stands at a place without an entry.
const EMPTY: u32 = 0;

/// A finished table.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    slots: Column<u32>,
    reach: usize,
}

impl Slots {
    /// The table in an array that comes from anywhere; `None` if there are fewer places than `reach`,
    /// or that is too far.
    pub(crate) fn of_column(slots: Column<u32>, reach: usize) -> Option<Self> {
        (reach < slots.len() && reach <= MOST_REACH).then_some(Self { slots, reach })
    }

    /// The array, and how far a look-up reaches.
    pub(crate) fn column(&self) -> (&Column<u32>, usize) {
        (&self.slots, self.reach)
    }

    /// Where the places of a hash begin. It is the upper bits of the hash that count.
    #[inline]
    fn start(&self, hash: u64) -> usize {
        start(hash, self.slots.len() - self.reach)
    }

    /// What stands at the places of a hash, up to the first that is empty.
    #[inline]
    pub(crate) fn at(&self, hash: u64) -> impl Iterator<Item = u32> {
        let start = self.start(hash);
        let places = &self.slots[start..start + self.reach];
        places.iter().copied().take_while(|&slot| slot != EMPTY)
    }

    /// The first of [`at`](Self::at) that is equal to `tag` under `mask`, or zero; without branches, as a
    /// rule, since it is as good as random how many stand there.
    #[expect(clippy::inline_always, reason = "for the instructions of the caller")]
    #[inline(always)]
    pub(crate) fn first_like(&self, hash: u64, mask: u32, tag: u32, lanes: impl Lanes) -> u32 {
        let start = self.start(hash);
        if let Some(few) = self.slots[start..].first_chunk::<FEW>()
            && self.reach >= FEW
        {
            // An empty place ends the look-up.
            let ends = lanes.equal(few, mask, tag) | lanes.equal(few, u32::MAX, EMPTY);
            if ends != 0 {
                let first = few[ends.trailing_zeros() as usize % FEW];
                return if first & mask == tag { first } else { EMPTY };
            }
        }
        self.at(hash).find(|slot| slot & mask == tag).unwrap_or(EMPTY)
    }

    /// Bring the memory that a look-up of this hash begins with, without waiting for it.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.start(hash));
    }
}

/// A table that is being made.
pub(crate) struct Building {
    slots: Vec<u32>,
    starts: usize,
    reach: usize,
}

impl Building {
    /// A table for so many entries.
    pub(crate) fn new(entries: usize) -> Self {
        let starts = (entries * PLACES / 8).max(1);
        Self { slots: vec![EMPTY; starts + 1], starts, reach: 1 }
    }

    /// Put an entry where its hash says, or behind; return the entry that is there already for which
    /// `is_it` holds, instead.
    #[inline]
    pub(crate) fn put(
        &mut self,
        hash: u64,
        entry: u32,
        is_it: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let start = start(hash, self.starts);
        let mut at = start;
        while self.slots[at] != EMPTY {
            if is_it(self.slots[at]) {
                return Some(self.slots[at]);
            }
            at += 1;
        }
        self.slots[at] = entry;
        self.reach = self.reach.max(at - start + 1);
        if at + 1 == self.slots.len() {
            self.slots.push(EMPTY);
        }
        None
    }

    pub(crate) fn finish(mut self) -> Slots {
        self.slots.resize(self.starts + self.reach, EMPTY);
        Slots { slots: Column::new(self.slots), reach: self.reach }
    }
}

/// The place below `starts` that a hash names.
#[inline]
fn start(hash: u64, starts: usize) -> usize {
    let product = u128::from(hash) * starts as u128;
    usize::try_from(product >> 64).expect("it is below `starts`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Plain;
    use proptest::prelude::*;

    proptest! {
        /// Everything is found, in few places, and nothing else, however full the table is.
        #[test]
        fn what_was_put_is_found(
            numbers in prop::collection::btree_set(1u32..1000, 0..200),
            entries in 0usize..300,
            shift in 0u32..64,
        ) {
            let hash = |number: u32| u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift;
            let mut building = Building::new(entries);
            for &number in &numbers {
                prop_assert_eq!(building.put(hash(number), number, |other| other == number), None);
                let again = building.put(hash(number), number, |other| other == number);
                prop_assert_eq!(again, Some(number));
            }
            let table = building.finish();
            for number in 1..1000 {
                let found = table.at(hash(number)).any(|other| other == number);
                prop_assert_eq!(found, numbers.contains(&number));
                for mask in [1023, 7] {
                    let like = |slot: &u32| slot & mask == number & mask;
                    let first = table.at(hash(number)).find(like).unwrap_or(0);
                    let few = table.first_like(hash(number), mask, number & mask, Plain);
                    prop_assert_eq!(few, first);
                }
            }
            let (column, reach) = table.column();
            let again = Slots::of_column(column.clone(), reach).unwrap();
            prop_assert!(numbers.iter().all(|&n| again.at(hash(n)).any(|other| other == n)));
        }
    }

    #[test]
    fn a_table_without_an_empty_place_is_looked_through_once() {
        let table = Slots::of_column(Column::new(vec![7_u32; 100]), 10).unwrap();
        for hash in [0, u64::MAX / 2, u64::MAX] {
            assert_eq!(table.at(hash).count(), 10);
        }
    }

    #[test]
    fn a_reach_beyond_reason_is_refused() {
        let of = |length, reach| Slots::of_column(Column::new(vec![7_u32; length]), reach);
        assert!(of(0, 0).is_none());
        assert!(of(10, 10).is_none());
        assert!(of(10_000, MOST_REACH + 1).is_none());
        assert!(of(10, 0).is_some_and(|table| table.at(u64::MAX).next().is_none()));
    }
}
