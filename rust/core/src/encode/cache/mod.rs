//! A cache from pretokens to ids, which all threads read and fill.
//!
//! Text repeats itself, so the ids of a pretoken are cached, and the next lookup costs one cache
//! line. The ids are in a [`table`] that all threads share, so a pretoken that one thread has
//! merged is not merged by another. Threads that find the table crowded make a larger one in small
//! steps ([`growth`]), and continue with the old one until it is finished; some entries that they
//! add in that time are lost. At full size, entries without a recent hit are evicted.

pub(crate) mod entry;
mod growth;

pub(crate) mod hot;

pub(crate) mod overflow;

pub(crate) mod table;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::encode::cache::table::{CacheTable, MIN_BITS};
use crate::error::Result;
use crate::hash::key::Key;
use crate::machine::huge_pages::PageSize;
use entry::Entry;
use growth::{Growth, RetiredTable};

/// The first table has 2 to the power of this many lines: 8 KiB.
const FIRST_BITS: u32 = 7;

/// The second table has 16 times as many lines: 128 KiB. Each later table has 4 times as many as the one
/// before. A table is fresh memory, whose page faults cost more than filling it, so larger steps save
/// time; but with 16 times in every step, some thousand short texts take a fifth longer.
const SECOND_BITS: u32 = 11;

/// The fill level, in eighths of the entries and of the overflow, at which a table grows, or at
/// full size evicts. By then, requests for the overflow may reach twice its size, so that most of a
/// text slightly larger than the cache stays cached when it is read repeatedly.
const HALF_EIGHTHS: [usize; 2] = [4, 4];
const FULL_EIGHTHS: [usize; 2] = [7, 16];

/// After an allocation fails, this many requests for a larger table are ignored before the next
/// attempt.
const REQUESTS_IGNORED: usize = 1 << 12;

/// The smallest overflow, in words.
const MIN_OVERFLOW_WORDS: usize = 1 << 12;

/// A window of fewer pretokens may be a short text, which gets no huge page: the system may have to
/// move other pages for it first.
const MIN_PRETOKENS_HUGE_PAGES: usize = 1 << 10;

/// Why the first tables can be allocated.
const FIRST_TABLES_ARE_SMALL: &str = "memory for some kilobytes";

/// The cache of all threads: at most 2 to the power of `BITS` lines, and `OVERFLOW` bytes of
/// overflow.
#[derive(Debug)]
pub(crate) struct SharedCache<const BITS: u32, const OVERFLOW: usize> {
    latest: Mutex<Arc<CacheTable>>,
    /// The number of the latest table.
    number: AtomicUsize,
    /// Locked by the thread that makes the next table, or frees an earlier one.
    renewal: Mutex<Renewal>,
    /// Whether there is a table to free.
    has_retired: AtomicBool,
    /// Whether much text was announced, for which huge pages are worth their price.
    expects_bulk: AtomicBool,
}

/// The next table.
#[derive(Debug, Default)]
struct Renewal {
    /// How far it is, if it was begun.
    growth: Option<Growth>,
    /// The number of requests to ignore before it is begun, since memory was short.
    pause: usize,
    /// An earlier table that no thread uses any more.
    retired: Option<RetiredTable>,
}

/// A thread's view of the cache: the latest table that it has seen.
#[derive(Debug)]
pub(crate) struct Cache<const BITS: u32, const OVERFLOW: usize> {
    table: Arc<CacheTable>,
    /// The number of entries that this thread added and has not yet reported to the table.
    added: usize,
    /// Whether hits are marked, because the table will soon evict.
    marks: bool,
}

impl<const BITS: u32, const OVERFLOW: usize> Default for SharedCache<BITS, OVERFLOW> {
    fn default() -> Self {
        let first = Self::table(1, FIRST_BITS.min(BITS), PageSize::Small);
        let first = first.expect(FIRST_TABLES_ARE_SMALL);
        let number = AtomicUsize::new(first.number());
        Self {
            latest: Mutex::new(Arc::new(first)),
            number,
            renewal: Mutex::default(),
            has_retired: AtomicBool::new(false),
            expects_bulk: AtomicBool::new(false),
        }
    }
}

impl<const BITS: u32, const OVERFLOW: usize> Default for Cache<BITS, OVERFLOW> {
    fn default() -> Self {
        let own = CacheTable::new(0, MIN_BITS, 0, PageSize::Small).expect(FIRST_TABLES_ARE_SMALL);
        Self { table: Arc::new(own), added: 0, marks: false }
    }
}

impl<const BITS: u32, const OVERFLOW: usize> SharedCache<BITS, OVERFLOW> {
    fn table(number: usize, bits: u32, page_size: PageSize) -> Result<CacheTable> {
        let overflow = (OVERFLOW / size_of::<u64>()) >> (BITS - bits);
        CacheTable::new(number, bits, overflow.max(MIN_OVERFLOW_WORDS), page_size)
    }

    /// Take huge pages from now on, for much text.
    pub(crate) fn expect_bulk(&self) {
        self.expects_bulk.store(true, Relaxed);
    }

    /// The page size of tables that grow for a window of this many pretokens.
    #[inline]
    pub(crate) fn page_size(&self, pretokens: usize) -> PageSize {
        let is_bulk = pretokens >= MIN_PRETOKENS_HUGE_PAGES || self.expects_bulk.load(Relaxed);
        if is_bulk { PageSize::Huge } else { PageSize::Small }
    }

    /// Make the table of full size at once, for much text: smaller ones would soon be crowded, and
    /// each is fresh memory, whose page faults may cost more than filling it.
    #[cold]
    pub(crate) fn grow_to_full_size(&self) {
        let latest = self.latest.try_lock().ok().map(|latest| Arc::clone(&latest));
        if let Some(table) = latest.filter(|table| table.bits() < BITS) {
            self.renew(&table, |renewal| {
                let next = Self::begun(renewal, &table, BITS, PageSize::Huge)?;
                Some(next.finish(&table))
            });
        }
    }

    /// Do a step, in proportion to this many pretokens, of replacing a table by one of 2 to the
    /// power of `bits` lines.
    #[cold]
    fn grow(&self, table: &CacheTable, bits: u32, pretokens: usize) {
        self.renew(table, |renewal| {
            let mut growth = Self::begun(renewal, table, bits, self.page_size(pretokens))?;
            if growth.step(table, pretokens) {
                return Some(growth.table());
            }
            renewal.growth = Some(growth);
            None
        });
    }

    /// Publish the table that `next` returns, if it does, unless another thread has replaced this
    /// table or is at it.
    ///
    /// No thread waits for a lock: in a forked process, the thread that held it may not exist.
    fn renew(&self, table: &CacheTable, next: impl FnOnce(&mut Renewal) -> Option<CacheTable>) {
        let Ok(mut renewal) = self.renewal.try_lock() else { return };
        if self.number.load(Relaxed) == table.number()
            && let Some(next) = next(&mut renewal)
            && let Ok(mut latest) = self.latest.try_lock()
        {
            self.number.store(next.number(), Relaxed);
            *latest = Arc::new(next);
        }
    }

    /// Free a table that no thread uses any more: in steps, or at once if another is being freed.
    #[cold]
    fn retire(&self, table: CacheTable) {
        if let Ok(mut renewal) = self.renewal.try_lock()
            && renewal.retired.is_none()
        {
            renewal.retired = Some(RetiredTable::new(table));
            self.has_retired.store(true, Relaxed);
        }
    }

    /// Free the next part of a table that no thread uses any more.
    #[cold]
    fn free_part(&self) {
        if let Ok(mut renewal) = self.renewal.try_lock() {
            renewal.retired = renewal.retired.take().and_then(RetiredTable::free_part);
            self.has_retired.store(renewal.retired.is_some(), Relaxed);
        }
    }

    /// The next table as far as it is made; `None` if there is not enough memory for it.
    fn begun(
        renewal: &mut Renewal,
        table: &CacheTable,
        bits: u32,
        page_size: PageSize,
    ) -> Option<Growth> {
        if let Some(growth) = renewal.growth.take().filter(|growth| growth.bits() >= bits) {
            return Some(growth);
        }
        if renewal.pause > 0 {
            renewal.pause -= 1;
            return None;
        }
        let next = Self::table(table.number() + 1, bits, page_size);
        if next.is_err() {
            renewal.pause = REQUESTS_IGNORED;
        }
        Some(Growth::new(next.ok()?))
    }
}

impl<const BITS: u32, const OVERFLOW: usize> Cache<BITS, OVERFLOW> {
    /// Take the latest table for a window of this many pretokens, and do a step of its replacement
    /// if it is crowded. Results of earlier calls of `locate` become invalid.
    #[inline]
    pub(crate) fn prepare(&mut self, shared: &SharedCache<BITS, OVERFLOW>, pretokens: usize) {
        // Reported once a window: an addition to a shared count for each entry would make threads wait.
        if self.added > 0 {
            self.table.count_added(std::mem::take(&mut self.added));
        }
        let is_full_size = self.table.bits() == BITS;
        self.marks = is_full_size && self.table.is_filled(HALF_EIGHTHS);
        if self.table.is_filled(if is_full_size { FULL_EIGHTHS } else { HALF_EIGHTHS }) {
            let bits = self.table.bits();
            let larger = if bits < SECOND_BITS { SECOND_BITS } else { bits + 2 };
            shared.grow(&self.table, larger.min(BITS), pretokens);
        }
        if shared.number.load(Relaxed) != self.table.number() {
            self.take_latest(shared, pretokens);
        } else if shared.has_retired.load(Relaxed) {
            shared.free_part();
        }
    }

    #[cold]
    fn take_latest(&mut self, shared: &SharedCache<BITS, OVERFLOW>, pretokens: usize) {
        let latest = shared.latest.try_lock().ok().map(|latest| Arc::clone(&latest));
        if let Some(latest) = latest
            && let Some(old) = Arc::into_inner(std::mem::replace(&mut self.table, latest))
            // Nobody waits for one window of much text, so it frees the table at once.
            && shared.page_size(pretokens) == PageSize::Small
        {
            shared.retire(old);
        }
    }

    /// The table has 2 to the power of this many lines.
    pub(crate) fn bits(&self) -> u32 {
        self.table.bits()
    }

    /// The table.
    #[inline]
    pub(crate) fn table(&self) -> &CacheTable {
        &self.table
    }

    /// The entry of a pretoken in its line, or another entry and `false`; without a branch.
    #[inline]
    pub(crate) fn look(&self, key: Key, line: usize) -> (bool, Entry) {
        self.table.look(key, line, self.marks)
    }

    /// The entry of a pretoken in the other lines of its group.
    #[inline]
    pub(crate) fn find_beside(&self, key: Key, line: usize) -> Option<Entry> {
        self.table.find_beside(key, line, self.marks)
    }

    /// The entry of a pretoken.
    #[inline]
    pub(crate) fn find(&self, key: Key, line: usize) -> Option<Entry> {
        let (is_here, entry) = self.look(key, line);
        if is_here { Some(entry) } else { self.find_beside(key, line) }
    }

    /// Append the ids of a pretoken; returns whether it is cached.
    pub(crate) fn append(
        &self,
        key: Key,
        line: usize,
        pretoken: &[u8],
        out: &mut Vec<u32>,
    ) -> bool {
        let Some(entry) = self.find(key, line) else { return false };
        let (count, words) = (entry::count(&entry), entry::words(&entry));
        let mut room = [0; overflow::READ_BUFFER_IDS];
        let Some(count) = self.table.read(count, words, pretoken, &mut room) else { return false };
        out.extend_from_slice(&room[..count]);
        true
    }

    /// Add the ids of a pretoken that is not cached and has at most [`overflow::MAX_CACHED_BYTES`]
    /// bytes. Returns its entry, or `None` if the overflow is full.
    pub(crate) fn put(
        &mut self,
        key: Key,
        line: usize,
        pretoken: &[u8],
        ids: &[u32],
    ) -> Option<Entry> {
        let (entry, is_new) = self.table.put(key, line, pretoken, ids)?;
        self.added += usize::from(is_new);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const OVERFLOW: usize = 1 << 20;

    fn key(pretoken: &[u8]) -> Key {
        Key::of(pretoken, 0..pretoken.len())
    }

    impl<const BITS: u32> Cache<BITS, OVERFLOW> {
        fn get(&self, pretoken: &[u8]) -> Option<Vec<u32>> {
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
            let (shared, mut cache) = (SharedCache::<5, OVERFLOW>::default(), Cache::default());
            let mut known: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
            for (pretoken, ids) in puts {
                cache.prepare(&shared, 1);
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
        let (shared, mut cache) = (SharedCache::<13, OVERFLOW>::default(), Cache::default());
        let (mut misses, mut lost) = (0, 0);
        for number in 0..200_000 {
            cache.prepare(&shared, 1);
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
        let (shared, mut cache) = (SharedCache::<13, OVERFLOW>::default(), Cache::default());
        cache.prepare(&shared, 1);
        cache.keep(b"known", &[7]);
        for _ in 0..2 {
            shared.grow_to_full_size();
            cache.prepare(&shared, 1);
            assert_eq!((cache.bits(), cache.get(b"known")), (13, Some(vec![7])));
        }
        assert_eq!(cache.table().number(), 2);
    }

    /// Threads add the same pretokens at the same time, while tables grow and evict.
    #[test]
    fn threads_never_see_half_of_anything() {
        let shared = SharedCache::<9, OVERFLOW>::default();
        let numbers = if cfg!(miri) { 100 } else { 40_000 };
        let work = &|offset: u32| {
            let mut cache = Cache::default();
            let mut hits = 0;
            for number in 0..numbers {
                cache.prepare(&shared, 1);
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
        let shared = SharedCache::<9, OVERFLOW>::default();
        let (_latest, _renewal) = (shared.latest.lock(), shared.renewal.lock());
        let mut cache = Cache::default();
        for number in 0..2000 {
            cache.prepare(&shared, 1);
            let (pretoken, ids) = example(number);
            cache.keep(&pretoken, &ids);
            assert!(cache.get(&pretoken).is_none_or(|hit| hit == ids));
        }
    }
}
