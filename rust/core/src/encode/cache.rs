//! The ids of pretokens that were met before.
//!
//! Text repeats itself, so the ids of a pretoken are kept, and to meet it again costs one look at one
//! line of memory. They are kept in a [`table`](super::table) that all threads read and fill, so that what one has
//! merged no other merges. It grows with what it holds: whoever finds it crowded makes a larger one, while others
//! go on with it; what they put there meanwhile is forgotten. At its full size what was not met again gives way.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::aside;
use super::slot::{self, Slot};
use super::table::{LEAST_BITS, Table};
use crate::key::Key;

/// There are 2 to the power of this many lines at first, and 4 times as many whenever half of a table is
/// taken.
const FIRST_BITS: u32 = 7;
const GROWTH_BITS: u32 = 2;

/// In eighths, so many slots of a table are taken, or so much of its room aside, before it grows; and of one of full
/// size, before it is thinned. Aside, so much is asked for in vain by then as there is room: a text that is a little
/// too large comes again and again, and all but a little of it is known.
const HALF: [usize; 2] = [4, 4];
const FULL: [usize; 2] = [7, 16];

/// At least so many words aside.
const LEAST_ASIDE: usize = 1 << 12;

/// What all threads keep, in 2 to the power of `BITS` lines at most and `ASIDE` bytes aside.
#[derive(Debug)]
pub(super) struct Shared<const BITS: u32, const ASIDE: usize> {
    latest: Mutex<Arc<Table>>,
    /// The number of the latest table.
    number: AtomicUsize,
    /// Who makes the next one has locked this.
    renewing: Mutex<()>,
}

/// What one thread sees of it: the latest table when it looked last.
#[derive(Debug)]
pub(super) struct Cache<const BITS: u32, const ASIDE: usize> {
    table: Arc<Table>,
    /// How many slots this thread took of which it has said nothing yet.
    taken: usize,
    /// Whether it will soon be asked what was met again.
    marks: bool,
}

impl<const BITS: u32, const ASIDE: usize> Default for Shared<BITS, ASIDE> {
    fn default() -> Self {
        let first = Self::table(1, FIRST_BITS);
        let number = AtomicUsize::new(first.number());
        Self { latest: Mutex::new(Arc::new(first)), number, renewing: Mutex::default() }
    }
}

impl<const BITS: u32, const ASIDE: usize> Default for Cache<BITS, ASIDE> {
    fn default() -> Self {
        let own = Table::new(0, LEAST_BITS, 0);
        Self { table: Arc::new(own), taken: 0, marks: false }
    }
}

impl<const BITS: u32, const ASIDE: usize> Shared<BITS, ASIDE> {
    fn table(number: usize, bits: u32) -> Table {
        let bits = bits.min(BITS);
        Table::new(number, bits, ((ASIDE / size_of::<u64>()) >> (BITS - bits)).max(LEAST_ASIDE))
    }

    /// Make the table of full size at once: so much is coming that all before it would be crowded soon. Each of them is
    /// memory that nobody has touched yet, which may cost more than to fill it, and is filled again.
    #[cold]
    pub(super) fn expect_much(&self) {
        let latest = self.latest.try_lock().ok().map(|latest| Arc::clone(&latest));
        if let Some(table) = latest.filter(|table| table.bits() < BITS) {
            self.renew(&table, BITS);
        }
    }

    /// Make the table that follows one, of 2 to the power of `bits` lines, unless somebody does or has done so.
    ///
    /// Nobody waits for a lock: who has it may be gone for ever, in a process that was forked.
    #[cold]
    fn renew(&self, table: &Table, bits: u32) {
        let Ok(_alone) = self.renewing.try_lock() else { return };
        if self.number.load(Relaxed) != table.number() {
            return;
        }
        let next = Self::table(table.number() + 1, bits);
        if table.bits() < BITS {
            next.copy(table);
        } else {
            next.thin(table, HALF);
        }
        if let Ok(mut latest) = self.latest.try_lock() {
            self.number.store(next.number(), Relaxed);
            *latest = Arc::new(next);
        }
    }
}

impl<const BITS: u32, const ASIDE: usize> Cache<BITS, ASIDE> {
    /// Be ready to look and to put, with the latest table, and see to it that there is room. Where `locate` and
    /// slots said that something is, it may be no longer.
    #[inline]
    pub(super) fn prepare(&mut self, shared: &Shared<BITS, ASIDE>) {
        if self.taken > 0 {
            self.table.took(std::mem::take(&mut self.taken));
        }
        let is_full_size = self.table.bits() == BITS;
        self.marks = is_full_size && self.table.has_taken(HALF);
        if self.table.has_taken(if is_full_size { FULL } else { HALF }) {
            shared.renew(&self.table, self.table.bits() + GROWTH_BITS);
        }
        if shared.number.load(Relaxed) != self.table.number() {
            self.turn_to_latest(shared);
        }
    }

    #[cold]
    fn turn_to_latest(&mut self, shared: &Shared<BITS, ASIDE>) {
        if let Ok(latest) = shared.latest.try_lock() {
            self.table = Arc::clone(&latest);
        }
    }

    /// How many bits of lines there are.
    pub(super) fn bits(&self) -> u32 {
        self.table.bits()
    }

    /// The table, to be looked at.
    #[inline]
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// What stands in the line of a pretoken, which was located: its slot, or another and `false`. There is no
    /// branch.
    #[inline]
    pub(super) fn look(&self, key: Key, place: usize) -> (bool, Slot) {
        self.table.look(key, place, self.marks)
    }

    /// The slot of a pretoken, which was located, if it is in a line beside its own.
    #[inline]
    pub(super) fn find_beside(&self, key: Key, place: usize) -> Option<Slot> {
        self.table.find_beside(key, place, self.marks)
    }

    /// The slot of a pretoken, which was located, if it is here.
    #[inline]
    pub(super) fn find(&self, key: Key, place: usize) -> Option<Slot> {
        let (is_here, slot) = self.look(key, place);
        if is_here { Some(slot) } else { self.find_beside(key, place) }
    }

    /// Append the ids of a pretoken, which was located; false if it is not here.
    pub(super) fn append(
        &self,
        key: Key,
        place: usize,
        pretoken: &[u8],
        out: &mut Vec<u32>,
    ) -> bool {
        let Some(slot) = self.find(key, place) else { return false };
        let (count, words) = (slot::count(&slot), slot::words(&slot));
        let mut room = [0; aside::ROOM];
        let Some(count) = self.table.read(count, words, pretoken, &mut room) else { return false };
        out.extend_from_slice(&room[..count]);
        true
    }

    /// Keep the ids of a pretoken of at most [`aside::LONGEST_KEPT`] bytes that is not here, which was located. What its
    /// slot says is returned, unless there is no room for it aside.
    pub(super) fn put(
        &mut self,
        key: Key,
        place: usize,
        pretoken: &[u8],
        ids: &[u32],
    ) -> Option<Slot> {
        let (slot, is_new) = self.table.put(key, place, pretoken, ids)?;
        self.taken += usize::from(is_new);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const ASIDE: usize = 1 << 20;

    fn key(pretoken: &[u8]) -> Key {
        Key::of(pretoken, 0..pretoken.len())
    }

    impl<const BITS: u32> Cache<BITS, ASIDE> {
        fn get(&self, pretoken: &[u8]) -> Option<Vec<u32>> {
            let (mut ids, place) = (Vec::new(), self.table().locate(key(pretoken)));
            self.append(key(pretoken), place, pretoken, &mut ids).then_some(ids)
        }

        fn keep(&mut self, pretoken: &[u8], ids: &[u32]) {
            let place = self.table().locate(key(pretoken));
            self.put(key(pretoken), place, pretoken, ids);
        }
    }

    /// The ids that a number has, and its pretoken, of which some are long.
    fn example(number: u32) -> (Vec<u8>, Vec<u32>) {
        let long = number % 5 * 9 + 4;
        let pretoken = number.to_le_bytes().into_iter().cycle().take(long as usize);
        (pretoken.collect(), vec![number; 1 + number as usize % 7])
    }

    proptest! {
        /// What is there is right, whatever was forgotten.
        #[test]
        fn it_never_answers_for_another(
            puts in prop::collection::vec(
                (prop::collection::vec(0u8..2, 1..=40), prop::collection::vec(0u32..1 << 21, 1..=40)),
                1..600,
            ),
        ) {
            let (shared, mut cache) = (Shared::<5, ASIDE>::default(), Cache::default());
            let mut known: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
            for (pretoken, ids) in puts {
                cache.prepare(&shared);
                if let Some(found) = cache.get(&pretoken) {
                    prop_assert_eq!(&found, &known[&pretoken]);
                } else {
                    let ids = known.entry(pretoken.clone()).or_insert(ids);
                    cache.keep(&pretoken, ids);
                    prop_assert!(cache.get(&pretoken).is_none_or(|found| &found == ids));
                }
            }
        }
    }

    #[test]
    fn it_grows_and_then_forgets_what_is_not_met_again() {
        let (shared, mut cache) = (Shared::<13, ASIDE>::default(), Cache::default());
        let (mut misses, mut lost) = (0, 0);
        for number in 0..200_000 {
            cache.prepare(&shared);
            let (pretoken, ids) = example(number);
            assert_eq!(cache.get(&pretoken), None);
            cache.keep(&pretoken, &ids);
            lost += usize::from(cache.get(&pretoken).is_none());
            if cache.get(b"frequent").is_none() {
                misses += 1;
                cache.keep(b"frequent", &[7]);
            }
        }
        assert_eq!(cache.bits(), 13);
        assert!(misses <= 2, "{misses}");
        let kept = (0..200_000).filter(|&number| {
            let (pretoken, ids) = example(number);
            cache.get(&pretoken).map(|found| assert_eq!(found, ids)).is_some()
        });
        let kept = kept.count();
        // Before a table is thinned, many groups are full.
        assert!(kept > 1 << 13 && lost < 200_000 / 4, "{kept} {lost}");
    }

    #[test]
    fn it_is_as_large_as_it_may_be_where_much_is_expected() {
        let (shared, mut cache) = (Shared::<13, ASIDE>::default(), Cache::default());
        cache.prepare(&shared);
        cache.keep(b"known", &[7]);
        for _ in 0..2 {
            shared.expect_much();
            cache.prepare(&shared);
            assert_eq!((cache.bits(), cache.get(b"known")), (13, Some(vec![7])));
        }
        assert_eq!(cache.table().number(), 2);
    }

    /// Threads that meet the same pretokens at the same time, while tables grow and are thinned.
    #[test]
    fn threads_never_see_half_of_anything() {
        let shared = Shared::<9, ASIDE>::default();
        let numbers = if cfg!(miri) { 100 } else { 40_000 };
        let work = &|offset: u32| {
            let mut cache = Cache::default();
            let mut found = 0;
            for number in 0..numbers {
                cache.prepare(&shared);
                for number in [number, number / 2, (number + offset) % 50] {
                    let (pretoken, ids) = example(number);
                    match cache.get(&pretoken) {
                        Some(met) => assert_eq!(met, ids),
                        None => cache.keep(&pretoken, &ids),
                    }
                    found += usize::from(cache.get(&pretoken).is_some());
                }
            }
            found
        };
        let found = crate::parallel::run((0..3).map(|offset| move || work(offset)));
        assert!(found.into_iter().all(|found| found > numbers as usize));
    }

    /// Who has a lock may be gone for ever.
    #[test]
    fn nobody_waits_for_a_lock() {
        let shared = Shared::<9, ASIDE>::default();
        let (_latest, _renewing) = (shared.latest.lock(), shared.renewing.lock());
        let mut cache = Cache::default();
        for number in 0..2000 {
            cache.prepare(&shared);
            let (pretoken, ids) = example(number);
            cache.keep(&pretoken, &ids);
            assert!(cache.get(&pretoken).is_none_or(|found| found == ids));
        }
    }
}
