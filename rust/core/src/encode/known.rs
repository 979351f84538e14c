//! What is known of the pretokens of a text, looked up many at a time.
//!
//! To look a pretoken up is a few instructions and a wait for memory. So all pretokens of a batch are
//! looked up in four passes, in which waits overlap and the processor has little to guess: the first
//! asks for the memory of what is [`near`](super::near), the second looks at it; the third asks for the
//! memory of the others in the [`cache`](super::cache), the fourth looks at that.

use std::ops::Range;

use super::cache::{Cache, LONGEST_KEPT};
use super::near::Near;
use super::slot::{self, INLINE};
use crate::key::Key;
use crate::pretokenize::Ends;

/// How many pretokens are looked up together at most.
pub(super) const BATCH: usize = Ends::CAPACITY;

/// The count of a pretoken that is not known; more than a slot holds.
const UNKNOWN: usize = slot::ASIDE + 1;

/// 32 MiB, and 10 aside.
type Pretokens = Cache<18, { 10 << 20 }>;

/// The pretokens that were met lately.
#[derive(Debug, Default)]
pub(super) struct Known {
    cache: Pretokens,
    near: Near,
    batch: Box<Batch>,
    /// Those of the batch that are not known.
    pub(super) unknown: Vec<Far>,
}

/// What the slots of some pretokens say.
#[derive(Debug)]
struct Batch {
    /// Up to four ids, or where the cache has them aside.
    words: [[u64; 2]; BATCH],
    /// How many ids, [`slot::ASIDE`], or [`UNKNOWN`].
    counts: [usize; BATCH],
    keys: [Key; BATCH],
    /// Their places, first those near, and then in the cache.
    places: [usize; BATCH],
    /// Which ones are not near.
    missed: [usize; BATCH],
    /// The ids that are known, end to end.
    ids: [u32; INLINE * BATCH],
}

/// A pretoken that is not near.
#[derive(Debug, Clone)]
pub(super) struct Far {
    /// Where it is in the text.
    pub(super) range: Range<usize>,
    pub(super) key: Key,
    /// Its place in the cache.
    place: usize,
    /// Which one of the batch it is.
    index: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            words: [[0; 2]; BATCH],
            counts: [0; BATCH],
            keys: [Key::default(); BATCH],
            places: [0; BATCH],
            missed: [0; BATCH],
            ids: [0; INLINE * BATCH],
        }
    }
}

impl Known {
    /// Look up the pretokens between `start` and each of the `ends`, at most [`BATCH`] of them.
    pub(super) fn look_up(&mut self, text: &[u8], start: usize, ends: &[usize]) {
        if self.cache.prepare() {
            self.near = Near::new(self.cache.bits());
        }
        self.batch.name(&self.near, text, start, ends);
        let misses = self.batch.sift(&self.near, ends.len());
        let Self { cache, near, batch, unknown } = self;
        let Batch { words, counts, keys, places, missed, .. } = &mut **batch;
        for &index in &missed[..misses] {
            places[index] = cache.locate(keys[index]);
        }
        unknown.clear();
        for &index in &missed[..misses] {
            let (key, place) = (keys[index], places[index]);
            if let Some(slot) = cache.find(key, place) {
                (words[index], counts[index]) = (slot::words(&slot), slot::count(&slot));
                if slot::count(&slot) == slot::ASIDE {
                    cache.prefetch_aside(slot::words(&slot));
                } else {
                    near.put(key, slot);
                }
            } else {
                counts[index] = UNKNOWN;
                unknown.push(Far { range: range_of(start, ends, index), key, place, index });
            }
        }
    }

    /// Append the ids of the pretokens of the batch in `range`, up to one whose ids are not at hand; its
    /// index is returned, or where the range ends.
    pub(super) fn append_range(&mut self, range: Range<usize>, out: &mut Vec<u32>) -> usize {
        range.start + self.batch.gather(range, out)
    }

    /// Append the ids of one pretoken of the batch, wherever they are; false if they are not known.
    pub(super) fn append_one(&mut self, index: usize, pretoken: &[u8], out: &mut Vec<u32>) -> bool {
        let Self { cache, batch, .. } = self;
        let (key, count, words) = (batch.keys[index], batch.counts[index], batch.words[index]);
        count == slot::ASIDE && cache.append_aside(words, pretoken, out)
            || cache.append(key, cache.locate(key), pretoken, out)
    }

    /// Remember the ids of one pretoken of the batch.
    pub(super) fn put(&mut self, index: usize, pretoken: &[u8], ids: &[u32]) {
        if pretoken.len() <= LONGEST_KEPT {
            let key = self.batch.keys[index];
            self.cache.put(key, self.cache.locate(key), pretoken, ids);
        }
    }

    /// Let the ids of a pretoken of the batch be known that is in the text where `far` says.
    pub(super) fn learn(&mut self, far: &Far, text: &[u8], ids: &[u32]) {
        let slot = self.cache.put(far.key, far.place, &text[far.range.clone()], ids);
        self.batch.words[far.index] = slot::words(&slot);
        self.batch.counts[far.index] = slot::count(&slot);
    }
}

/// Where a pretoken of a batch is, which begins at `start`.
pub(super) fn range_of(start: usize, ends: &[usize], index: usize) -> Range<usize> {
    let start = index.checked_sub(1).map_or(start, |before| ends[before]);
    start..ends[index]
}

impl Batch {
    /// Append the ids of the pretokens in `range`, up to one whose ids are not at hand; how many
    /// pretokens these are is returned.
    #[inline(never)]
    fn gather(&mut self, range: Range<usize>, out: &mut Vec<u32>) -> usize {
        let Self { words, counts, ids, .. } = self;
        let (mut looked, mut filled) = (0, 0);
        for (&words, &count) in words[range.clone()].iter().zip(&counts[range]) {
            if count > INLINE {
                break;
            }
            // To copy four ids is quicker than to ask how many there are.
            let room = ids[filled..].first_chunk_mut().expect("there is room for all");
            *room = slot::ids(words);
            filled += count;
            looked += 1;
        }
        out.extend_from_slice(&ids[..filled]);
        looked
    }

    /// Make the keys, and ask for the memory of their places.
    #[inline(never)]
    fn name(&mut self, near: &Near, text: &[u8], mut start: usize, ends: &[usize]) {
        let Self { keys, places, .. } = self;
        for ((&end, key), place) in ends.iter().zip(keys).zip(places) {
            *key = Key::of(text, start..end);
            *place = near.locate(*key);
            start = end;
        }
    }

    /// Look at what is near of the first so many, and list what is not; how many these are is returned.
    #[inline(never)]
    fn sift(&mut self, near: &Near, all: usize) -> usize {
        let Self { words, counts, keys, places, missed, .. } = self;
        let asked = keys[..all].iter().zip(places).zip(words).zip(counts);
        let mut misses = 0;
        for (index, (((&key, &mut place), words), count)) in asked.enumerate() {
            let slot = near.slot(place);
            (*words, *count) = (slot::words(slot), slot::count(slot));
            missed[misses] = index;
            misses += usize::from(!slot::is(slot, key));
        }
        misses
    }
}
