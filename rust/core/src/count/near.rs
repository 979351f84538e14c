//! The commonest pretokens with their counts, in so little memory that it is always near.
//!
//! Three of four pretokens of a text are among a few thousand. Each has one place here, which its
//! hash names, and the place is held by the most frequent of those that meet there. So most
//! pretokens are counted without a look at the large table, and without a branch that a processor
//! would have to guess.

use crate::key::Key;

/// How many places there are, as a power of two.
const BITS: u32 = 13;

/// Counts that are to be added to those of rows of the large table.
#[derive(Debug)]
pub(super) struct Near {
    places: Box<[Place; 1 << BITS]>,
}

/// The key that holds a place, what it was counted since, and its row; no key and no count at first.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    key: Key,
    count: u64,
    row: usize,
}

impl Default for Near {
    fn default() -> Self {
        let places = vec![Place::default(); 1 << BITS].into_boxed_slice();
        Self { places: places.try_into().expect("as many as that") }
    }
}

impl Near {
    /// Count a key, which has this hash, if it holds its place; says whether it does.
    #[inline]
    pub(super) fn count(&mut self, key: Key, hash: u64) -> bool {
        let place = self.place(hash);
        let (one, other) = (key.words(), place.key.words());
        let held = (one.0 ^ other.0) | (one.1 ^ other.1) == 0;
        place.count += u64::from(held);
        held
    }

    /// A key that does not hold its place was counted `count` times, in this row: it takes the place
    /// if that is more than the holder has. What it was counted is then taken from the row, and what
    /// the holder was counted is to be added to a row: that is returned.
    #[inline]
    pub(super) fn offer(
        &mut self,
        key: Key,
        hash: u64,
        row: usize,
        count: &mut u64,
    ) -> Option<(usize, u64)> {
        let place = self.place(hash);
        if *count <= place.count {
            return None;
        }
        let taken = Place { key, count: std::mem::take(count), row };
        let before = std::mem::replace(place, taken);
        Some((before.row, before.count))
    }

    /// What is to be added to which rows.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (usize, u64)> {
        self.places.iter_mut().map(|place| {
            let place = std::mem::take(place);
            (place.row, place.count)
        })
    }

    #[inline]
    fn place(&mut self, hash: u64) -> &mut Place {
        &mut self.places[usize::try_from(hash >> (64 - BITS)).expect("a few bits")]
    }
}
