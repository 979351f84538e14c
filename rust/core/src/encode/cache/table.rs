//! The hash table of the cache, which threads share without a lock.
//!
//! The table consists of lines of two entries, each one cache line. Four lines form a group: a
//! pretoken takes the first free entry of its own line, or else of the other lines, and is not
//! cached if all are filled. A filled entry never changes or moves, so a thread that sees the key can
//! read the ids. A thread claims a free entry by its second word, and
//! stores that word again, with the key, once all others are written.
//!
//! An [`entry`](super::entry) holds up to six ids; longer lists, and the bytes of long pretokens,
//! are in the [`overflow`](super::overflow).

use std::hint::select_unpredictable;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::encode::cache::entry::{self, Entry, Overflow, READ_BUFFER_IDS};
use crate::error::Result;
use crate::hash::key::{Key, MAX_KEY_BYTES};
use crate::machine::array::{AlignedBuffer, HUGE_PAGE_BYTES};
use crate::machine::simd::prefetch;
use crate::parallel::Padded;

/// The number of entries of a line, and of words.
const ENTRIES: usize = 2;
const LINE: usize = entry::WORDS * ENTRIES;

/// The number of lines of a group; their indices differ in the lowest bits.
const GROUP: usize = 4;

/// A table has at least 2 to the power of this many lines.
pub(crate) const MIN_BITS: u32 = 2;

/// The second word of an entry that a thread is filling. No key has this word.
const CLAIMED: u64 = 6 << 60;

/// 2 to the power of some number of lines (of 64 bytes).
#[derive(Debug)]
pub(crate) struct CacheTable {
    /// The lines; a free entry is zero.
    words: AlignedBuffer<AtomicU64>,
    bits: u32,
    overflow: Overflow,
    /// The number of filled entries, as far as threads have reported.
    filled_entries: Padded<AtomicUsize>,
}

impl CacheTable {
    /// A table of 2 to the power of `bits` lines, with an overflow of this many words.
    pub(crate) fn new(bits: u32, overflow: usize) -> Result<Self> {
        let words = AlignedBuffer::zeros(LINE << bits)?;
        let overflow = Overflow::new(overflow)?;
        Ok(Self { words, bits, overflow, filled_entries: Padded::default() })
    }

    /// The table has 2 to the power of this many lines.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// The first word of each whole huge page: of the lines, then of the overflow.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &AtomicU64> {
        const PAGE_WORDS: usize = HUGE_PAGE_BYTES / size_of::<AtomicU64>();
        let pages =
            [&*self.words, self.overflow.words()].map(|words| words.chunks_exact(PAGE_WORDS));
        pages.into_iter().flatten().filter_map(|words| words.first())
    }

    /// Add the entries of one of several equal parts of another table, as far as they fit. Those
    /// that other threads add to that part later are not copied.
    pub(crate) fn copy_part(&self, other: &Self, part: usize, parts: usize) {
        let [start, end] = [part, part + 1].map(|part| (part << other.bits) / parts * LINE);
        let entries = other.words[start..end].as_chunks::<{ entry::WORDS }>().0.iter();
        let filled = entries
            .map(|words| read(words, 0))
            .filter(|entry| entry[1] != 0 && entry[1] != CLAIMED);
        let added = filled.filter(|&entry| {
            let place = self.place(entry::key(&entry));
            self.put_again(place, other, entry).is_some_and(|(_, is_new)| is_new)
        });
        self.count_added(added.count());
    }

    /// Report that this many entries were added.
    #[inline]
    pub(crate) fn count_added(&self, count: usize) {
        self.filled_entries.0.fetch_add(count, Relaxed);
    }

    /// Whether this many eighths of the entries, or of the overflow, are filled.
    #[inline]
    pub(crate) fn is_filled(&self, [eighths, overflow]: [usize; 2]) -> bool {
        let entries = self.words.len() / entry::WORDS;
        8 * self.filled_entries.0.load(Relaxed) >= eighths * entries
            || self.overflow.is_filled(overflow)
    }

    /// The index of the first word of a key's line.
    #[inline]
    fn place(&self, key: Key) -> usize {
        let line = usize::try_from(key.hash() >> (u64::BITS - self.bits)).unwrap_or(0);
        line * LINE
    }

    /// The index of the first word of a key's line, which is prefetched.
    #[inline]
    pub(crate) fn locate(&self, key: Key) -> usize {
        let place = self.place(key);
        prefetch(&self.words, place);
        place
    }

    /// The words from a place on.
    #[inline]
    fn chunk<const LENGTH: usize>(&self, place: usize) -> &[AtomicU64; LENGTH] {
        self.words[place..].first_chunk().expect("the words are inside the table")
    }

    /// The entry of a pretoken.
    #[inline]
    pub(crate) fn find(&self, key: Key, place: usize) -> Option<Entry> {
        let (is_here, entry) = self.look(key, place);
        if is_here { Some(entry) } else { self.find_beside(key, place) }
    }

    /// The entry of a pretoken at its line, or another entry and `false`; without a branch, which
    /// would be mispredicted.
    #[inline]
    pub(crate) fn look(&self, key: Key, place: usize) -> (bool, Entry) {
        let line = self.chunk::<LINE>(place);
        // The result of the second comparison, 0 or 1, selects the entry that is read: no branch. If
        // two threads added the pretoken at once, both entries have it, with the same ids.
        let is_first = entry::is(&name(line, 0), key);
        let is_second = entry::is(&name(line, entry::WORDS), key);
        (is_first | is_second, read(line, usize::from(is_second) * entry::WORDS))
    }

    /// The entry of a pretoken in the other lines of its group.
    #[cold]
    pub(crate) fn find_beside(&self, key: Key, place: usize) -> Option<Entry> {
        let mut lines = group(place);
        let mut last = lines.next()?;
        for line in lines {
            // Entries are filled in order, so after a free one there are none.
            if self.words[last + entry::WORDS + 1].load(Relaxed) == 0 {
                return None;
            }
            let words = self.chunk::<LINE>(line);
            let here = [0, entry::WORDS].into_iter().find(|&at| entry::is(&name(words, at), key));
            if let Some(at) = here {
                return Some(read(words, at));
            }
            last = line;
        }
        None
    }

    /// Add the ids of a pretoken that is not cached. Returns its entry and whether it was added, or
    /// `None` if the overflow is full.
    pub(crate) fn put(
        &self,
        key: Key,
        place: usize,
        pretoken: &[u8],
        ids: &[u32],
    ) -> Option<(Entry, bool)> {
        let long = if pretoken.len() > MAX_KEY_BYTES { pretoken } else { &[] };
        let entry = if long.is_empty() && ids.len() <= entry::PACKED {
            entry::of_ids(key, ids)
        } else {
            entry::with(key, entry::IN_OVERFLOW, self.overflow.put(long, ids)?)
        };
        Some((entry, self.put_entry(place, entry)))
    }

    /// Fill the first free entry of a group; false if there is none, or if the pretoken is cached.
    fn put_entry(&self, place: usize, entry: Entry) -> bool {
        let key = entry::key(&entry);
        for place in group(place).flat_map(|line| [line, line + entry::WORDS]) {
            let words = self.chunk::<{ entry::WORDS }>(place);
            let stands = name(words, 0);
            if stands[1] == 0 && fill(words, entry) {
                return true;
            }
            // Another thread may have added the same pretoken in the meantime.
            if entry::is(&stands, key) {
                return false;
            }
        }
        false
    }

    /// Write the ids of an entry with this count and these words to the start of `out`, perhaps
    /// followed by other numbers; returns their number, or `None` if the entry belongs to another
    /// pretoken, or to none. Not inlined, since most pretokens have few ids; inlining makes a
    /// message a tenth slower.
    #[inline(never)]
    pub(crate) fn read(
        &self,
        count: u8,
        words: [u64; 2],
        pretoken: &[u8],
        out: &mut [u32; READ_BUFFER_IDS],
    ) -> Option<usize> {
        if count == entry::IN_OVERFLOW {
            return self.overflow.read(words, pretoken, out);
        }
        let count = usize::from(count);
        if count <= entry::INLINE {
            *out.first_chunk_mut()? = entry::ids(words);
        } else {
            *out.first_chunk_mut()? = entry::packed_ids(words);
        }
        (count <= entry::PACKED).then_some(count)
    }

    /// The overflow that entries point into.
    #[inline]
    pub(crate) fn overflow(&self) -> &Overflow {
        &self.overflow
    }

    /// Add an entry of another table. Returns the entry and whether it was added, or `None` if the
    /// overflow is full.
    pub(crate) fn put_again(
        &self,
        place: usize,
        other: &Self,
        entry: Entry,
    ) -> Option<(Entry, bool)> {
        let (count, mut words) = (entry::count(&entry), entry::words(&entry));
        if count == entry::IN_OVERFLOW {
            words = self.overflow.put_again(&other.overflow, words)?;
        }
        let entry = entry::with(entry::key(&entry), count, words);
        Some((entry, self.put_entry(place, entry)))
    }
}

/// The first two words of an entry, which are its key. The other words may be read after these.
#[inline]
fn name(words: &[AtomicU64], at: usize) -> Entry {
    let high = words[at + 1].load(Acquire);
    [words[at].load(Relaxed), high, 0, 0]
}

/// An entry.
#[inline]
fn read(words: &[AtomicU64], at: usize) -> Entry {
    let [low, high, ..] = name(words, at);
    [low, high, words[at + 2].load(Relaxed), words[at + 3].load(Relaxed)]
}

/// Fill an entry if it is free; returns whether it was.
#[inline]
fn fill(words: &[AtomicU64; entry::WORDS], entry: Entry) -> bool {
    let [low, high, one, other] = words;
    // One thread gets the entry. Until the last store, its second word equals no key.
    let claim = high.compare_exchange(0, CLAIMED, Relaxed, Relaxed);
    if claim.is_err() {
        return false;
    }
    low.store(entry[0], Relaxed);
    one.store(entry[2], Relaxed);
    other.store(entry[3], Relaxed);
    // A thread that reads this word with `Acquire` and finds the key sees the other words as well.
    high.store(entry[1], Release);
    true
}

/// The start of each line of a group, that at `own` first.
#[inline]
fn group(own: usize) -> impl Iterator<Item = usize> {
    (0..GROUP).map(move |beside| own ^ (beside * LINE))
}

// ---------------------------------------------------------------------------- the hot table
//
// The most frequent pretokens and their ids, in a table that fits the processor's L2 cache.
//
// Five of six pretokens of a text are among a few thousand. The table is direct-mapped: the hash
// of a pretoken gives its only index, and the latest pretoken replaces the one before.

/// The table has at most 2 to the power of this many entries: 2 MiB.
const BITS: u32 = 16;

/// From this many bits on, the table has the largest size, a huge page: half of it costs hundreds of
/// page faults.
const HUGE_BITS: u32 = 14;

/// The table has at least 2 to the power of this many entries.
const MIN_HOT_BITS: u32 = 1;

/// The words of 2 to the power of `bits` entries, and of a spare one.
fn words(bits: u32) -> usize {
    entry::WORDS * ((1 << bits) + 1)
}

/// A power of two of entries, and a spare one that receives entries that are not to be stored.
#[derive(Debug, Default)]
pub(crate) struct HotTable {
    words: AlignedBuffer,
    /// The number of low bits of a hash that are not part of an index.
    shift: u32,
}

impl HotTable {
    /// Grow to about 2 to the power of `bits` entries, at most the largest size. If there is not
    /// enough memory, the table stays as it is.
    #[inline]
    pub(crate) fn grow(&mut self, bits: u32) {
        let bits = if bits < HUGE_BITS { bits } else { BITS };
        if self.words.len() < words(bits) {
            self.grow_to(bits);
        }
    }

    #[cold]
    fn grow_to(&mut self, bits: u32) {
        if self.words.is_empty() {
            let smallest = AlignedBuffer::zeros(words(MIN_HOT_BITS)).expect("memory for 3 entries");
            self.replace(smallest);
        }
        if let Ok(larger) = AlignedBuffer::zeros(words(bits)) {
            self.replace(larger);
        }
    }

    /// Continue with these words, which are zeros, and copy the entries into them.
    fn replace(&mut self, words: AlignedBuffer) {
        let entries = words.len() / entry::WORDS - 1;
        let old = std::mem::replace(&mut self.words, words);
        self.shift = u64::BITS - entries.ilog2();
        let stored = &old[..old.len().saturating_sub(entry::WORDS)];
        for entry in stored.as_chunks().0.iter().filter(|entry| entry[1] != 0) {
            self.put_if(true, entry::key(entry), entry);
        }
    }

    /// Write the index of each pretoken to `places`, which is as long as `keys`, and prefetch its
    /// entry.
    #[inline]
    pub(crate) fn locate(&self, keys: &[Key], places: &mut [usize]) {
        for (place, &key) in places.iter_mut().zip(keys) {
            *place = self.place(key);
            prefetch(&self.words, *place);
        }
    }

    /// The index of a pretoken.
    #[inline]
    fn place(&self, key: Key) -> usize {
        let index = usize::try_from(key.hash() >> self.shift).expect("a table fits memory");
        index * entry::WORDS
    }

    /// The entry at an index.
    #[inline]
    pub(crate) fn entry(&self, place: usize) -> &Entry {
        self.words[place..].first_chunk().expect("an index is followed by an entry")
    }

    /// Store an entry if `stores`, without a branch, which would be mispredicted. Its ids must be
    /// in the entry itself.
    #[inline]
    pub(crate) fn put_if(&mut self, stores: bool, key: Key, entry: &Entry) {
        // The spare entry: it belongs to no index, so what is stored there is never found.
        let nowhere = self.words.len() - entry::WORDS;
        let place = select_unpredictable(stores, self.place(key), nowhere);
        *self.words.chunk_mut(place) = *entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl HotTable {
        fn get(&self, key: Key) -> &Entry {
            let mut place = [0];
            self.locate(&[key], &mut place);
            self.entry(place[0])
        }
    }

    proptest! {
        /// The entry at an index is that of the pretoken that was stored last.
        #[test]
        fn it_never_answers_for_another(
            pretokens in prop::collection::vec(prop::collection::vec(0u8..2, 1..=15), 1..200),
            bits in 1u32..6,
        ) {
            let (mut hot, mut known) = (HotTable::default(), BTreeMap::new());
            hot.grow(bits);
            for (pretoken, id) in pretokens.iter().zip(0..) {
                let key = Key::new(pretoken, 0..pretoken.len());
                let entry = hot.get(key);
                prop_assert!(!entry::is(entry, key) || Some(entry) == known.get(pretoken));
                hot.put_if(true, key, &entry::of_ids(key, &[id]));
                known.insert(pretoken, entry::of_ids(key, &[id]));
                prop_assert_eq!(hot.get(key), &known[pretoken]);
                hot.put_if(false, key, &entry::of_ids(key, &[id, id]));
                prop_assert_eq!(hot.get(key), &known[pretoken]);
            }
            let key = |pretoken: &[u8]| Key::new(pretoken, 0..pretoken.len());
            known.retain(|pretoken, entry| hot.get(key(pretoken)) == entry);
            hot.grow(bits + 2);
            for (pretoken, entry) in known {
                prop_assert_eq!(hot.get(key(pretoken)), &entry);
            }
        }
    }
}
