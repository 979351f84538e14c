//! A cache from pretokens to ids, which all threads read and fill.
//!
//! Text repeats itself, so the ids of a pretoken are cached, and the next lookup costs one cache
//! line. The ids are in a [`table`] that all threads share, so a pretoken that one thread has merged
//! is not merged by another.
//!
//! A crowded table is followed by another: the next *generation*. It is larger until the full size
//! is reached, and has the entries of the table before; it is filled in steps, so that no call pays
//! for all of it. At full size it starts empty, and a pretoken that is not found there is looked up
//! in the table before and copied, so entries that are not used for a generation are evicted.

pub(crate) mod entry;
pub(crate) mod table;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::encode::cache::table::{CacheTable, MIN_BITS};
use crate::hash::key::Key;
use entry::Entry;

/// 2 to the power of this many lines: 32 MiB of entries.
const BITS: u32 = 19;

/// The overflow of a table of full size, in words: 10 MiB.
const OVERFLOW_WORDS: usize = (10 << 20) / size_of::<u64>();

/// The first table has 2 to the power of this many lines: 8 KiB.
const FIRST_BITS: u32 = 7;

/// The second table has 16 times as many lines: 128 KiB. Each later table has 4 times as many as the
/// one before. A table is fresh memory, whose page faults cost more than filling it, so larger steps
/// save time; but with 16 times in every step, some thousand short texts take a fifth longer.
const SECOND_BITS: u32 = 11;

/// The fill level, in eighths of the entries and of the overflow, at which a smaller table, and one of
/// full size, are followed by the next generation. Requests for the overflow of the latter may then
/// reach twice its size, so that most of a text slightly larger than the cache stays cached when it
/// is read repeatedly.
const HALF_EIGHTHS: [usize; 2] = [4, 4];
const FULL_EIGHTHS: [usize; 2] = [7, 16];

/// The smallest overflow, in words.
const MIN_OVERFLOW_WORDS: usize = 1 << 12;

/// Why the first tables can be allocated.
const FIRST_TABLES_ARE_SMALL: &str = "memory for some kilobytes";

/// The cache of all threads.
#[derive(Debug)]
pub(crate) struct SharedCache {
    /// The largest table has 2 to the power of this many lines, and an overflow of this many words.
    max_bits: u32,
    max_overflow: usize,
    latest: Mutex<Latest>,
    /// The number of the latest generation.
    number: AtomicUsize,
}

/// The latest generation.
#[derive(Debug)]
struct Latest {
    generation: Generation,
    /// The table of the next generation, and the number of steps that are done.
    next: Option<(CacheTable, usize)>,
}

/// A table, and the one before it.
#[derive(Debug, Clone)]
struct Generation {
    number: usize,
    table: Arc<CacheTable>,
    previous: Option<Arc<CacheTable>>,
}

/// A thread's view of the cache: the latest generation that it has seen.
#[derive(Debug)]
pub(crate) struct Cache {
    generation: Generation,
    /// The number of entries that this thread added and has not yet reported to the table.
    added: usize,
}

impl Default for SharedCache {
    fn default() -> Self {
        Self::new(BITS, OVERFLOW_WORDS)
    }
}

impl Default for Cache {
    fn default() -> Self {
        let own = CacheTable::new(MIN_BITS, 0).expect(FIRST_TABLES_ARE_SMALL);
        Self {
            generation: Generation { number: 0, table: Arc::new(own), previous: None },
            added: 0,
        }
    }
}

impl SharedCache {
    /// A cache whose largest table has 2 to the power of `max_bits` lines, and an overflow of
    /// `max_overflow` words.
    pub(crate) fn new(max_bits: u32, max_overflow: usize) -> Self {
        let bits = FIRST_BITS.min(max_bits);
        let first = CacheTable::new(bits, MIN_OVERFLOW_WORDS);
        let table = Arc::new(first.expect(FIRST_TABLES_ARE_SMALL));
        let generation = Generation { number: 1, table, previous: None };
        Self {
            max_bits,
            max_overflow,
            latest: Mutex::new(Latest { generation, next: None }),
            number: AtomicUsize::new(1),
        }
    }

    /// Take a table of full size at once, for much text: smaller ones would soon be crowded, and
    /// each is fresh memory, whose page faults may cost more than filling it.
    #[cold]
    pub(crate) fn grow_to_full_size(&self) {
        let Ok(mut latest) = self.latest.try_lock() else { return };
        if latest.generation.table.bits() < self.max_bits
            && let Some(table) = self.table(self.max_bits)
        {
            table.copy_part(&latest.generation.table, 0, 1);
            self.publish(&mut latest, table);
        }
    }

    /// Do a step towards the next generation, if this one is the latest: first touch each page of its
    /// table, then copy the entries in as many parts if it is larger, and last publish it. A huge
    /// page is cleared when it is first touched, which takes a tenth of a millisecond, as a part does;
    /// without steps, one call would pay for all.
    ///
    /// No thread waits for the lock: in a forked process, the thread that held it may not exist.
    #[cold]
    fn grow(&self, crowded: &Generation) {
        let Ok(mut latest) = self.latest.try_lock() else { return };
        if latest.generation.number != crowded.number {
            return;
        }
        let bits = crowded.table.bits();
        let larger = if bits < SECOND_BITS { SECOND_BITS } else { bits + 2 };
        let next = latest.next.take().or_else(|| {
            let table = self.table(larger.min(self.max_bits))?;
            Some((table, 0))
        });
        let Some((table, step)) = next else { return };
        let pages = table.pages().count();
        let parts = if table.bits() > bits { pages + 1 } else { 0 };
        if let Some(word) = table.pages().nth(step) {
            word.store(0, Relaxed);
        } else if step < pages + parts {
            table.copy_part(&crowded.table, step - pages, parts);
        } else {
            return self.publish(&mut latest, table);
        }
        latest.next = Some((table, step + 1));
    }

    /// An empty table, unless memory is short.
    fn table(&self, bits: u32) -> Option<CacheTable> {
        let overflow = self.max_overflow >> (self.max_bits - bits);
        CacheTable::new(bits, overflow.max(MIN_OVERFLOW_WORDS)).ok()
    }

    /// Start the next generation with this table. A larger one has the entries of the one before.
    fn publish(&self, latest: &mut Latest, table: CacheTable) {
        let previous = std::mem::replace(&mut latest.generation.table, Arc::new(table));
        let is_larger = latest.generation.table.bits() > previous.bits();
        latest.generation.previous = (!is_larger).then_some(previous);
        latest.generation.number += 1;
        latest.next = None;
        self.number.store(latest.generation.number, Relaxed);
    }
}

impl Cache {
    /// Take the latest generation, and work on the next one if it is crowded. Results of earlier
    /// calls of `locate` become invalid.
    #[inline]
    pub(crate) fn prepare(&mut self, shared: &SharedCache) {
        let table = &self.generation.table;
        // Reported once a window: an addition to a shared count for each entry would make threads wait.
        if self.added > 0 {
            table.count_added(std::mem::take(&mut self.added));
        }
        let is_full_size = table.bits() == shared.max_bits;
        if table.is_filled(if is_full_size { FULL_EIGHTHS } else { HALF_EIGHTHS }) {
            shared.grow(&self.generation);
        }
        if shared.number.load(Relaxed) != self.generation.number {
            self.take_latest(shared);
        }
    }

    #[cold]
    fn take_latest(&mut self, shared: &SharedCache) {
        if let Ok(latest) = shared.latest.try_lock() {
            self.generation = latest.generation.clone();
        }
    }

    /// The table has 2 to the power of this many lines.
    pub(crate) fn bits(&self) -> u32 {
        self.table().bits()
    }

    /// The table.
    #[inline]
    pub(crate) fn table(&self) -> &CacheTable {
        &self.generation.table
    }

    /// The entry of a pretoken that is not in its line: in the other lines of its group, or copied
    /// from the previous generation.
    #[inline]
    pub(crate) fn find_elsewhere(&mut self, key: Key, line: usize) -> Option<Entry> {
        self.table().find_beside(key, line).or_else(|| self.recall(key, line))
    }

    /// Prefetch the lines of pretokens in the previous generation.
    #[inline]
    pub(crate) fn prefetch_previous(&self, keys: impl Iterator<Item = Key>) {
        if let Some(previous) = &self.generation.previous {
            keys.for_each(|key| _ = previous.locate(key));
        }
    }

    /// Copy the entry of a pretoken from the previous generation, if it is there.
    fn recall(&mut self, key: Key, line: usize) -> Option<Entry> {
        let Generation { table, previous, .. } = &self.generation;
        let previous = previous.as_deref()?;
        let entry = previous.find(key, previous.locate(key))?;
        let (entry, is_new) = table.put_again(line, previous, entry)?;
        self.added += usize::from(is_new);
        Some(entry)
    }

    /// Append the ids of a pretoken; returns whether it is cached.
    pub(crate) fn append(
        &mut self,
        key: Key,
        line: usize,
        pretoken: &[u8],
        out: &mut Vec<u32>,
    ) -> bool {
        let (is_here, entry) = self.table().look(key, line);
        let entry = if is_here { Some(entry) } else { self.find_elsewhere(key, line) };
        let Some(entry) = entry else { return false };
        let (count, words) = (entry::count(&entry), entry::words(&entry));
        let mut ids = [0; entry::READ_BUFFER_IDS];
        let Some(count) = self.table().read(count, words, pretoken, &mut ids) else { return false };
        out.extend_from_slice(&ids[..count]);
        true
    }

    /// Add the ids of a pretoken that is not cached and has at most [`entry::MAX_CACHED_BYTES`]
    /// bytes. Returns its entry, or `None` if the overflow is full.
    pub(crate) fn put(
        &mut self,
        key: Key,
        line: usize,
        pretoken: &[u8],
        ids: &[u32],
    ) -> Option<Entry> {
        let (entry, is_new) = self.table().put(key, line, pretoken, ids)?;
        self.added += usize::from(is_new);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const OVERFLOW_WORDS: usize = (1 << 20) / size_of::<u64>();

    fn key(pretoken: &[u8]) -> Key {
        Key::of(pretoken, 0..pretoken.len())
    }

    impl Cache {
        fn get(&mut self, pretoken: &[u8]) -> Option<Vec<u32>> {
            let (mut ids, place) = (Vec::new(), self.table().locate(key(pretoken)));
            self.append(key(pretoken), place, pretoken, &mut ids).then_some(ids)
        }

        fn keep(&mut self, pretoken: &[u8], ids: &[u32]) {
            let place = self.table().locate(key(pretoken));
            self.put(key(pretoken), place, pretoken, ids);
        }
    }

    /// The ids and the pretoken, short or long, for a number.
    fn example(number: u32) -> (Vec<u8>, Vec<u32>) {
        let long = number % 5 * 9 + 4;
        let pretoken = number.to_le_bytes().into_iter().cycle().take(long as usize);
        (pretoken.collect(), vec![number; 1 + number as usize % 7])
    }

    proptest! {
        /// Entries that are found are right, whatever was evicted.
        #[test]
        fn it_never_answers_for_another(
            puts in prop::collection::vec(
                (prop::collection::vec(0u8..2, 1..=40), prop::collection::vec(0u32..1 << 21, 1..=40)),
                1..600,
            ),
        ) {
            let (shared, mut cache) = (SharedCache::new(5, OVERFLOW_WORDS), Cache::default());
            let mut known: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
            for (pretoken, ids) in puts {
                cache.prepare(&shared);
                if let Some(hit) = cache.get(&pretoken) {
                    prop_assert_eq!(&hit, &known[&pretoken]);
                } else {
                    let ids = known.entry(pretoken.clone()).or_insert(ids);
                    cache.keep(&pretoken, ids);
                    prop_assert!(cache.get(&pretoken).is_none_or(|hit| &hit == ids));
                }
            }
        }
    }

    #[test]
    fn it_grows_and_then_forgets_what_is_not_met_again() {
        let (shared, mut cache) = (SharedCache::new(13, OVERFLOW_WORDS), Cache::default());
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
            cache.get(&pretoken).map(|hit| assert_eq!(hit, ids)).is_some()
        });
        let kept = kept.count();
        // Before eviction, many groups are full.
        assert!(kept > 1 << 13 && lost < 200_000 / 4, "{kept} {lost}");
    }

    #[test]
    fn it_is_as_large_as_it_may_be_where_much_is_expected() {
        let (shared, mut cache) = (SharedCache::new(13, OVERFLOW_WORDS), Cache::default());
        cache.prepare(&shared);
        cache.keep(b"known", &[7]);
        for _ in 0..2 {
            shared.grow_to_full_size();
            cache.prepare(&shared);
            assert_eq!((cache.bits(), cache.get(b"known")), (13, Some(vec![7])));
        }
        assert_eq!(cache.generation.number, 2);
    }

    /// Threads add the same pretokens at the same time, while tables grow and evict.
    #[test]
    fn threads_never_see_half_of_anything() {
        let shared = SharedCache::new(9, OVERFLOW_WORDS);
        let numbers = if cfg!(miri) { 100 } else { 40_000 };
        let work = &|offset: u32| {
            let mut cache = Cache::default();
            let mut hits = 0;
            for number in 0..numbers {
                cache.prepare(&shared);
                for number in [number, number / 2, (number + offset) % 50] {
                    let (pretoken, ids) = example(number);
                    match cache.get(&pretoken) {
                        Some(hit) => assert_eq!(hit, ids),
                        None => cache.keep(&pretoken, &ids),
                    }
                    hits += usize::from(cache.get(&pretoken).is_some());
                }
            }
            hits
        };
        let hits = crate::parallel::run((0..3).map(|offset| move || work(offset)));
        assert!(hits.into_iter().all(|hits| hits > numbers as usize));
    }

    /// A lock may be held forever.
    #[test]
    fn nobody_waits_for_a_lock() {
        let shared = SharedCache::new(9, OVERFLOW_WORDS);
        let _latest = shared.latest.lock();
        let mut cache = Cache::default();
        for number in 0..2000 {
            cache.prepare(&shared);
            let (pretoken, ids) = example(number);
            cache.keep(&pretoken, &ids);
            assert!(cache.get(&pretoken).is_none_or(|hit| hit == ids));
        }
    }
}
