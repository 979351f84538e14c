//! Looks up the pretokens of a window in the cache, many at a time.
//!
//! A lookup is a few instructions and a wait for memory, so it runs in passes that overlap the
//! waits and rarely branch:
//!
//! 1. for a batch of pretokens, compute the keys and prefetch their entries in the [`hot`] table;
//! 2. read the hot table, and prefetch the entries of the others in the [`cache`](super::cache);
//! 3. after all batches of a window, read those entries; if an entry is in another line, or its ids
//!    are in the overflow, prefetch that and read it last.
//!
//! In a window of few pretokens, such as a short text, waits overlap little. There, the pretokens
//! that are tokens are found in the vocabulary at the same time, and take no entry of the cache.
//!
//! A pretoken in neither table is a [`Miss`]. The misses of a window are collected, so that their
//! merges can be interleaved. A pretoken that occurs twice among them is a *duplicate*, and copies
//! the ids of the first.
//!
//! [`hot`]: super::cache::table::HotTable

use std::hint::select_unpredictable;
use std::ops::Range;

use crate::encode::cache::entry::{self, Entry, INLINE, MAX_CACHED_BYTES, READ_BUFFER_IDS};
use crate::encode::cache::table::HotTable;
use crate::encode::cache::{Cache, SharedCache};
use crate::error::Result;
use crate::hash::key::{Key, MAX_KEY_BYTES};
use crate::hash::key_batch;
use crate::pretokenize::PretokenEnds;
use crate::vocabulary::Vocabulary;

/// The maximal number of pretokens in a window.
pub(crate) const WINDOW_PRETOKENS: usize = PretokenEnds::CAPACITY;

/// In a window of at most this many pretokens, tokens are looked up in the vocabulary.
const MAX_PRETOKENS_TOKEN_LOOKUP: usize = 64;

/// The maximal number of pretokens in a batch.
const BATCH_PRETOKENS: usize = 256;

/// The capacity for the ids of a window. Before more than [`INLINE`] ids of one pretoken are added, at
/// most [`MAX_FILLED_IDS`] ids are in use.
const WINDOW_IDS: usize = MAX_FILLED_IDS + READ_BUFFER_IDS + INLINE * WINDOW_PRETOKENS;
const MAX_FILLED_IDS: usize = 1 << 10;

/// The count of a pretoken without known ids; greater than every count of an entry.
const MISSING: u8 = 16;
const _: () = assert!(entry::IN_OVERFLOW < MISSING);

/// The state of one thread for looking up pretokens.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    cache: Cache,
    hot: HotTable,
    batch: Box<Batch>,
    window: Box<Window>,
    /// The pretokens of the window that missed the hot table.
    probes: Vec<Probe>,
    /// The indices in `probes` of those that need a second read.
    second: Vec<usize>,
    /// The pretokens of the window that are in no table, without duplicates.
    pub(crate) misses: Vec<Miss>,
    duplicate_finder: Box<DuplicateFinder>,
    /// For each duplicate of a miss, its index in the window and that of the miss.
    duplicates: Vec<(usize, usize)>,
}

/// The contents of the entries of the pretokens of a window.
#[derive(Debug)]
struct Window {
    /// Up to six ids, or their location in the overflow.
    words: [[u64; 2]; WINDOW_PRETOKENS],
    /// The number of ids, [`entry::IN_OVERFLOW`], or [`MISSING`].
    counts: [u8; WINDOW_PRETOKENS],
    /// The ids, end to end: [`WINDOW_IDS`] of them.
    ids: Vec<u32>,
}

/// The pretokens of a batch.
#[derive(Debug)]
struct Batch {
    keys: [Key; BATCH_PRETOKENS],
    /// The index of each pretoken in the hot table.
    hot: [usize; BATCH_PRETOKENS],
    /// The indices of the pretokens that missed the hot table.
    missed: [usize; BATCH_PRETOKENS],
}

/// A pretoken to be looked up in the cache.
#[derive(Debug, Clone, Copy)]
struct Probe {
    key: Key,
    /// The line of the pretoken in the cache.
    line: usize,
    /// The index of the pretoken in the window.
    index: usize,
}

/// A pretoken that is in no table.
#[derive(Debug, Clone)]
pub(crate) struct Miss {
    /// The range of the pretoken in the text.
    pub(crate) range: Range<usize>,
    pub(crate) key: Key,
    /// Its key in the vocabulary, and, of a long pretoken, the id of the only token that it may be.
    pub(crate) token_key: Key,
    pub(crate) candidate: Option<u32>,
    /// The line of the pretoken in the cache.
    line: usize,
    /// The index of the pretoken in the window.
    index: usize,
}

impl Miss {
    /// Whether the pretoken is too long for an exact key.
    pub(crate) fn is_long(&self) -> bool {
        self.range.len() > MAX_KEY_BYTES
    }
}

/// For some bits of a hash, the index + 1 of the latest miss with these bits.
#[derive(Debug)]
struct DuplicateFinder([u16; Self::SIZE]);

impl Default for Window {
    fn default() -> Self {
        Self {
            words: [[0; 2]; WINDOW_PRETOKENS],
            counts: [0; WINDOW_PRETOKENS],
            ids: vec![0; WINDOW_IDS],
        }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            keys: [Key::default(); BATCH_PRETOKENS],
            hot: [0; BATCH_PRETOKENS],
            missed: [0; BATCH_PRETOKENS],
        }
    }
}

impl Default for DuplicateFinder {
    fn default() -> Self {
        Self([0; Self::SIZE])
    }
}

impl Lookup {
    /// Look up the pretokens between `start` and each of the `ends`, at most [`WINDOW_PRETOKENS`] of
    /// them. `tokens` is the vocabulary if a pretoken that is a token is encoded as that token.
    pub(crate) fn look_up(
        &mut self,
        cache: &SharedCache,
        tokens: Option<&Vocabulary>,
        text: &[u8],
        start: usize,
        ends: &[usize],
    ) {
        // Tables are replaced only here, between windows: within one, the lines and indices that were
        // prefetched stay valid.
        self.cache.prepare(cache);
        self.hot.grow(self.cache.bits());
        self.probes.clear();
        for first in (0..ends.len()).step_by(BATCH_PRETOKENS) {
            let last = ends.len().min(first + BATCH_PRETOKENS);
            let range = range_of(start, ends, first);
            self.read_hot(text, range.start, first, &ends[first..last]);
        }
        if let Some(vocabulary) = tokens.filter(|_| ends.len() <= MAX_PRETOKENS_TOKEN_LOOKUP) {
            self.read_vocabulary(vocabulary);
        }
        self.read_cache(start, ends);
    }

    /// Read the hot table for a batch whose first pretoken has the index `first` in the window, and
    /// prefetch the cache lines of its misses.
    #[inline]
    fn read_hot(&mut self, text: &[u8], start: usize, first: usize, ends: &[usize]) {
        let Self { cache, hot, batch, window, probes, .. } = self;
        let (words, counts) = (&mut window.words[first..], &mut window.counts[first..]);
        batch.locate(hot, text, start, ends);
        // Between both, the prefetches of up to 256 entries overlap.
        let misses = batch.read(hot, words, counts, ends.len());
        probes.extend(batch.missed[..misses].iter().map(|&at| {
            let key = batch.keys[at];
            Probe { key, line: cache.table().locate(key), index: first + at }
        }));
    }

    /// Find the probes that are tokens, and leave the others.
    #[inline]
    fn read_vocabulary(&mut self, vocabulary: &Vocabulary) {
        let Self { probes, window, hot, .. } = self;
        // The cache lines of the probes are under way; those of the vocabulary join them.
        for probe in &*probes {
            vocabulary.prefetch_key(probe.key);
        }
        probes.retain(|&Probe { key, index, .. }| {
            let id = vocabulary.id_of_key(key);
            if let Some(id) = id {
                let entry = entry::of_ids(key, &[id]);
                window.put(index, &entry);
                hot.put_if(true, key, &entry);
            }
            id.is_none()
        });
    }

    /// Read the cache for all probes, then again for the few that need it, and collect the misses.
    #[inline]
    fn read_cache(&mut self, start: usize, ends: &[usize]) {
        self.misses.clear();
        self.duplicates.clear();
        self.second.resize(self.probes.len(), 0);
        let count = self.read_lines();
        let keys = self.second[..count].iter().map(|&number| self.probes[number].key);
        self.cache.prefetch_previous(keys);
        for number in 0..count {
            self.read_again(self.probes[self.second[number]], start, ends);
        }
    }

    /// Read the line of each probe without branches, which would be mispredicted. Returns the
    /// number of probes that need a second read: their pretoken is not in that line, or its ids are
    /// in the overflow.
    #[inline]
    fn read_lines(&mut self) -> usize {
        let Self { cache, hot, window, probes, second, .. } = self;
        let mut count = 0;
        for (number, &Probe { key, line, index }) in probes.iter().enumerate() {
            // The entry is copied whether it is the right one or not; if not, the count says so.
            let (is_here, entry) = cache.table().look(key, line);
            window.put(index, &entry);
            let ids = select_unpredictable(is_here, entry::count(&entry), MISSING);
            window.counts[index] = ids;
            let is_all = ids < entry::IN_OVERFLOW;
            hot.put_if(is_all, key, &entry);
            // The number is written each time, and stays only if the count goes up.
            second[count] = number;
            count += usize::from(!is_all);
        }
        count
    }

    /// Look for a probe elsewhere in the cache; then prefetch its ids in the overflow, or add it to
    /// the misses or duplicates.
    #[inline]
    fn read_again(&mut self, Probe { key, line, index }: Probe, start: usize, ends: &[usize]) {
        let Self { cache, hot, window, misses, duplicate_finder, duplicates, .. } = self;
        if window.counts[index] == MISSING
            && let Some(entry) = cache.find_elsewhere(key, line)
        {
            window.put(index, &entry);
            hot.put_if(entry::count(&entry) != entry::IN_OVERFLOW, key, &entry);
        }
        match window.counts[index] {
            entry::IN_OVERFLOW => return cache.table().overflow().prefetch(window.words[index]),
            MISSING => (),
            _ => return,
        }
        let range = range_of(start, ends, index);
        let miss = Miss { range, key, token_key: key, candidate: None, line, index };
        match duplicate_finder.find_or_note(misses, &miss) {
            Some(first) => duplicates.push((index, first)),
            None => misses.push(miss),
        }
    }

    /// Append the ids of the pretokens of the window from `first` on, up to one without known ids;
    /// returns its index, or the number of pretokens. `start` and `ends` are the arguments of
    /// [`look_up`](Self::look_up).
    pub(crate) fn append(
        &mut self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        first: usize,
        out: &mut Vec<u32>,
    ) -> usize {
        let Self { cache, window, .. } = self;
        let Window { words, counts, ids } = &mut **window;
        let (mut at, mut filled) = (first, 0);
        loop {
            for (&words, &count) in words[at..ends.len()].iter().zip(&counts[at..ends.len()]) {
                if usize::from(count) > INLINE {
                    break;
                }
                // Copying four ids is faster than branching on their number.
                let free = ids[filled..].first_chunk_mut().expect("the buffer holds all");
                *free = entry::ids(words);
                filled += usize::from(count);
                at += 1;
            }
            // Beyond this mark, the buffer holds the entries of a window and one more list.
            if filled > MAX_FILLED_IDS {
                out.extend_from_slice(&ids[..filled]);
                filled = 0;
            }
            let free = ids[filled..].first_chunk_mut().expect("the buffer holds all");
            let read = words[..ends.len()].get(at).and_then(|&words| {
                cache.table().read(counts[at], words, &text[range_of(start, ends, at)], free)
            });
            let Some(count) = read else {
                out.extend_from_slice(&ids[..filled]);
                return at;
            };
            filled += count;
            at += 1;
        }
    }

    /// Append the ids of one pretoken that has none in the window. If they are not in the cache by
    /// now, `encode` appends them, and they are added to it.
    pub(crate) fn append_one(
        &mut self,
        pretoken: &[u8],
        out: &mut Vec<u32>,
        encode: impl FnOnce(&mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        let key = Key::of(pretoken, 0..pretoken.len());
        let line = self.cache.table().locate(key);
        if self.cache.append(key, line, pretoken, out) {
            return Ok(());
        }
        let before = out.len();
        encode(out)?;
        // The cache holds at most as many ids as bytes; a symbol with a prefix may have more.
        if pretoken.len() <= MAX_CACHED_BYTES && out.len() - before <= pretoken.len() {
            self.cache.put(key, line, pretoken, &out[before..]);
        }
        Ok(())
    }

    /// Add the ids of a miss to the cache and to the window.
    pub(crate) fn resolve(&mut self, miss: &Miss, text: &[u8], ids: &[u32]) {
        let pretoken = &text[miss.range.clone()];
        if let Some(entry) = self.cache.put(miss.key, miss.line, pretoken, ids) {
            self.window.put(miss.index, &entry);
        }
    }

    /// Give each duplicate the ids of its miss.
    pub(crate) fn copy_duplicates(&mut self) {
        let Window { words, counts, .. } = &mut *self.window;
        for (index, first) in self.duplicates.drain(..) {
            (words[index], counts[index]) = (words[first], counts[first]);
        }
    }
}

/// The range of a pretoken in the text, where `start` is the start of the first pretoken.
pub(crate) fn range_of(start: usize, ends: &[usize], index: usize) -> Range<usize> {
    let start = index.checked_sub(1).map_or(start, |before| ends[before]);
    start..ends[index]
}

impl DuplicateFinder {
    const SIZE: usize = 1 << 10;

    /// The index in the window of an equal pretoken among the misses. If there is none, remember
    /// `miss`, which the caller then appends.
    #[inline]
    fn find_or_note(&mut self, list: &[Miss], miss: &Miss) -> Option<usize> {
        let at = usize::try_from(miss.key.hash()).unwrap_or_default() % Self::SIZE;
        let candidate =
            usize::from(self.0[at]).checked_sub(1).and_then(|candidate| list.get(candidate));
        // The key of a long pretoken is a hash, which another pretoken may share.
        let equal =
            candidate.filter(|one| one.key == miss.key && miss.range.len() <= MAX_KEY_BYTES);
        if equal.is_none() {
            self.0[at] = u16::try_from(list.len() + 1).expect("a window is shorter");
        }
        equal.map(|one| one.index)
    }
}

impl Window {
    /// Copy the contents of an entry.
    #[inline]
    fn put(&mut self, index: usize, entry: &Entry) {
        (self.words[index], self.counts[index]) = (entry::words(entry), entry::count(entry));
    }
}

impl Batch {
    /// Compute the keys of the pretokens, and prefetch their entries in the hot table.
    #[inline(never)]
    fn locate(&mut self, hot: &HotTable, text: &[u8], start: usize, ends: &[usize]) {
        key_batch::write(text, start, ends, self.keys.as_chunks_mut().0);
        hot.locate(&self.keys[..ends.len()], &mut self.hot);
    }

    /// Read the entries of the first `all` pretokens and collect the misses; returns their number.
    #[inline(never)]
    fn read(
        &mut self,
        hot: &HotTable,
        words: &mut [[u64; 2]],
        counts: &mut [u8],
        all: usize,
    ) -> usize {
        let Self { keys, hot: indices, missed } = self;
        let pretokens = keys[..all].iter().zip(indices).zip(words).zip(counts);
        let mut misses = 0;
        for (at, (((&key, &mut index), words), count)) in pretokens.enumerate() {
            let entry = hot.entry(index);
            // Copied before the comparison is known; the entry of another pretoken is overwritten when
            // this one is looked up in the cache.
            (*words, *count) = (entry::words(entry), entry::count(entry));
            missed[misses] = at;
            misses += usize::from(!entry::is(entry, key));
        }
        misses
    }
}
