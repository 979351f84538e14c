//! What is known of the pretokens of a text, looked up many at a time.
//!
//! To look a pretoken up is a few instructions and a wait for memory. So many pretokens are looked up in
//! passes, in which waits overlap and the processor has little to guess. Of a batch, the first pass asks
//! for the memory of what is [`near`](super::near), the second looks at it and asks for the memory of the
//! others in the [`cache`](super::cache). A few batches are a window, and the last pass looks at all that was
//! asked for: at each in the same way first, and again at those for which that was not enough.
//!
//! Those of a window that are not known are listed: so many that they can be merged side by side. What a
//! text says for the first time it soon says again; a pretoken that is like one in the list takes over its
//! ids, once they are known.

use std::hint::select_unpredictable;
use std::ops::Range;

use super::aside::{self, LONGEST_KEPT};
use super::cache::{Cache, Shared};
use super::near::Near;
use super::slot::{self, INLINE, Slot};
use crate::key::{Key, LONGEST};
use crate::keys;
use crate::pretokenize::Ends;

/// How many pretokens are a window at most.
pub(super) const WINDOW: usize = Ends::CAPACITY;

/// How many pretokens are looked up together at most.
const BATCH: usize = 256;

/// Room for the ids of a window. Before more than four ids of one are added, at most [`MOST_FILLED`] are in
/// it.
const ROOM: usize = MOST_FILLED + aside::ROOM + INLINE * WINDOW;
const MOST_FILLED: usize = 1 << 10;

/// The count of a pretoken that is not known; more than a slot holds.
const UNKNOWN: u8 = 16;
const _: () = assert!(slot::ASIDE < UNKNOWN);

/// 32 MiB, and 10 aside.
const BITS: u32 = 19;
const ASIDE: usize = 10 << 20;

/// The pretokens that all threads have met.
pub(super) type Met = Shared<BITS, ASIDE>;

/// The pretokens that were met lately.
#[derive(Debug, Default)]
pub(super) struct Known {
    cache: Cache<BITS, ASIDE>,
    near: Near,
    batch: Box<Batch>,
    window: Box<Window>,
    /// Those of the window that are not near.
    asked: Vec<Asked>,
    /// Which ones of these are looked at again.
    rest: Vec<usize>,
    /// Those of the window that are not known, each once.
    pub(super) unknown: Vec<Far>,
    listed: Box<Listed>,
    /// Which ones of the window are like one in the list, and which one of the window that is.
    again: Vec<(usize, usize)>,
}

/// What the slots of some pretokens say.
#[derive(Debug)]
struct Window {
    /// Up to six ids, or where the cache has them aside.
    words: [[u64; 2]; WINDOW],
    /// How many ids, [`slot::ASIDE`], or [`UNKNOWN`].
    counts: [u8; WINDOW],
    /// The ids that are known, end to end: [`ROOM`] of them.
    ids: Vec<u32>,
}

/// What it takes to look some pretokens up.
#[derive(Debug)]
struct Batch {
    keys: [Key; BATCH],
    /// Where they would be near.
    places: [usize; BATCH],
    /// Which ones are not near.
    missed: [usize; BATCH],
}

/// A pretoken that is looked for in the cache.
#[derive(Debug, Clone, Copy)]
struct Asked {
    key: Key,
    /// Its place in the cache.
    place: usize,
    /// Which one of the window it is.
    index: usize,
}

/// A pretoken that is not known.
#[derive(Debug, Clone)]
pub(super) struct Far {
    /// Where it is in the text.
    pub(super) range: Range<usize>,
    pub(super) key: Key,
    /// The hash of its bytes in the vocabulary, and the id of which it may be the token, once somebody has
    /// looked.
    pub(super) hash: u64,
    pub(super) candidate: Option<u32>,
    /// Its place in the cache.
    place: usize,
    /// Which one of the window it is.
    index: usize,
}

/// By some bits of its hash, one more than the place in the list of the latest one.
#[derive(Debug)]
struct Listed([u16; Self::PLACES]);

impl Default for Window {
    fn default() -> Self {
        Self { words: [[0; 2]; WINDOW], counts: [0; WINDOW], ids: vec![0; ROOM] }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self { keys: [Key::default(); BATCH], places: [0; BATCH], missed: [0; BATCH] }
    }
}

impl Default for Listed {
    fn default() -> Self {
        Self([0; Self::PLACES])
    }
}

impl Known {
    /// Look up the pretokens between `start` and each of the `ends`, at most [`WINDOW`] of them.
    pub(super) fn look_up(&mut self, met: &Met, text: &[u8], start: usize, ends: &[usize]) {
        self.cache.prepare(met);
        self.near.grow(self.cache.bits());
        self.asked.clear();
        for first in (0..ends.len()).step_by(BATCH) {
            let last = ends.len().min(first + BATCH);
            let range = range_of(start, ends, first);
            self.look_near(text, range.start, first, &ends[first..last]);
        }
        self.look_far(start, ends);
    }

    /// Look at what is near of the pretokens between `start` and each of the `ends`, of which the first is
    /// the one of the window at `first`; ask for the memory of the others.
    #[inline]
    fn look_near(&mut self, text: &[u8], start: usize, first: usize, ends: &[usize]) {
        let Self { cache, near, batch, window, asked, .. } = self;
        let (words, counts) = (&mut window.words[first..], &mut window.counts[first..]);
        batch.name(near, text, start, ends);
        let misses = batch.sift(near, words, counts, ends.len());
        asked.extend(batch.missed[..misses].iter().map(|&at| {
            let key = batch.keys[at];
            Asked { key, place: cache.table().locate(key), index: first + at }
        }));
    }

    /// Look at what was asked for, once without a branch and then again where that was not enough; list what
    /// is not known.
    #[inline]
    fn look_far(&mut self, start: usize, ends: &[usize]) {
        self.unknown.clear();
        self.again.clear();
        self.rest.resize(self.asked.len(), 0);
        let count = self.look_once();
        for number in 0..count {
            self.look_again(self.asked[self.rest[number]], start, ends);
        }
    }

    /// Note what stands in the line of each, and list those that are not there or whose ids are aside; how many
    /// these are is returned. Which ones they are, a processor could only guess.
    #[inline]
    fn look_once(&mut self) -> usize {
        let Self { cache, near, window, asked, rest, .. } = self;
        let mut count = 0;
        for (number, &Asked { key, place, index }) in asked.iter().enumerate() {
            let (is_here, slot) = cache.look(key, place);
            window.put(index, &slot);
            let ids = select_unpredictable(is_here, slot::count(&slot), UNKNOWN);
            window.counts[index] = ids;
            let is_all = ids < slot::ASIDE;
            near.put_if(is_all, key, &slot);
            cache.table().prefetch_beside(place, !is_here);
            rest[count] = number;
            count += usize::from(!is_all);
        }
        count
    }

    /// Ask for what is aside, look at the lines beside, or list what is not known.
    #[inline]
    fn look_again(&mut self, asked: Asked, start: usize, ends: &[usize]) {
        let Self { cache, near, window, unknown, listed, again, .. } = self;
        let Asked { key, place, index } = asked;
        if window.counts[index] == UNKNOWN
            && let Some(slot) = cache.find_beside(key, place)
        {
            window.put(index, &slot);
            near.put_if(slot::count(&slot) != slot::ASIDE, key, &slot);
        }
        match window.counts[index] {
            slot::ASIDE => return cache.table().aside().prefetch(window.words[index]),
            UNKNOWN => (),
            _ => return,
        }
        let range = range_of(start, ends, index);
        let far = Far { range, key, hash: 0, candidate: None, place, index };
        match listed.twin(unknown, &far) {
            Some(like) => again.push((index, like)),
            None => unknown.push(far),
        }
    }

    /// Append the ids of the pretokens of the window from `first` on, up to one whose ids are not known;
    /// its index is returned, or how many there are. Start and ends are those that were looked up.
    pub(super) fn append(
        &mut self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        first: usize,
        out: &mut Vec<u32>,
    ) -> usize {
        let Self { cache, window, .. } = self;
        let read = |index, count, words, room: &mut _| {
            cache.table().read(count, words, &text[range_of(start, ends, index)], room)
        };
        window.gather(first..ends.len(), read, out)
    }

    /// Append the ids of one pretoken if somebody has remembered them meanwhile; false if nobody has.
    pub(super) fn append_one(&self, pretoken: &[u8], out: &mut Vec<u32>) -> bool {
        let key = Key::of(pretoken, 0..pretoken.len());
        self.cache.append(key, self.cache.table().locate(key), pretoken, out)
    }

    /// Remember the ids of one pretoken.
    pub(super) fn put(&mut self, pretoken: &[u8], ids: &[u32]) {
        if pretoken.len() <= LONGEST_KEPT {
            let key = Key::of(pretoken, 0..pretoken.len());
            self.cache.put(key, self.cache.table().locate(key), pretoken, ids);
        }
    }

    /// Let the ids of a pretoken of the list be known, which is in the text where `far` says.
    pub(super) fn learn(&mut self, far: &Far, text: &[u8], ids: &[u32]) {
        if let Some(slot) = self.cache.put(far.key, far.place, &text[far.range.clone()], ids) {
            self.window.put(far.index, &slot);
        }
    }

    /// Let those know their ids that are like one in the list.
    pub(super) fn repeat(&mut self) {
        let Window { words, counts, .. } = &mut *self.window;
        for (index, like) in self.again.drain(..) {
            (words[index], counts[index]) = (words[like], counts[like]);
        }
    }
}

/// Where a pretoken is, the first of which begins at `start`.
pub(super) fn range_of(start: usize, ends: &[usize], index: usize) -> Range<usize> {
    let start = index.checked_sub(1).map_or(start, |before| ends[before]);
    start..ends[index]
}

impl Listed {
    const PLACES: usize = 1 << 10;

    /// Which one of the window it is that is listed and like this one. If there is none, this one is noted,
    /// which is about to be listed.
    #[inline]
    fn twin(&mut self, list: &[Far], far: &Far) -> Option<usize> {
        let place = usize::try_from(far.key.hash()).unwrap_or_default() % Self::PLACES;
        let listed = usize::from(self.0[place]).checked_sub(1).and_then(|at| list.get(at));
        // Only the keys of short ones are no one else's.
        let like = listed.filter(|one| one.key == far.key && far.range.len() <= LONGEST);
        if like.is_none() {
            self.0[place] = u16::try_from(list.len() + 1).expect("a window is shorter");
        }
        like.map(|one| one.index)
    }
}

impl Window {
    /// Note what a slot says of a pretoken.
    #[inline]
    fn put(&mut self, index: usize, slot: &Slot) {
        (self.words[index], self.counts[index]) = (slot::words(slot), slot::count(slot));
    }

    /// Append the ids of the pretokens in `range`, up to one whose ids are not known; its index is
    /// returned, or the end. `read` writes the ids of one of which a slot says this, and says how many they are.
    #[inline]
    fn gather(
        &mut self,
        range: Range<usize>,
        read: impl Fn(usize, u8, [u64; 2], &mut [u32; aside::ROOM]) -> Option<usize>,
        out: &mut Vec<u32>,
    ) -> usize {
        let Self { words, counts, ids } = self;
        let (mut at, mut filled) = (range.start, 0);
        loop {
            for (&words, &count) in words[at..range.end].iter().zip(&counts[at..range.end]) {
                if usize::from(count) > INLINE {
                    break;
                }
                // To copy four ids is quicker than to ask how many there are.
                let room = ids[filled..].first_chunk_mut().expect("there is room for all");
                *room = slot::ids(words);
                filled += usize::from(count);
                at += 1;
            }
            if filled > MOST_FILLED {
                out.extend_from_slice(&ids[..filled]);
                filled = 0;
            }
            let room = ids[filled..].first_chunk_mut().expect("there is room for all");
            let one = words[..range.end].get(at);
            let kept = one.and_then(|&words| read(at, counts[at], words, room));
            let Some(kept) = kept else {
                out.extend_from_slice(&ids[..filled]);
                return at;
            };
            filled += kept;
            at += 1;
        }
    }
}

impl Batch {
    /// Make the keys, and ask for the memory of their places.
    #[inline(never)]
    fn name(&mut self, near: &Near, text: &[u8], start: usize, ends: &[usize]) {
        let (keys, places) = (&mut self.keys[..ends.len()], &mut self.places[..ends.len()]);
        keys::write(text, start, ends, keys);
        near.locate(keys, places);
    }

    /// Look at what is near of the first so many, and list what is not; how many these are is returned.
    #[inline(never)]
    fn sift(
        &mut self,
        near: &Near,
        words: &mut [[u64; 2]],
        counts: &mut [u8],
        all: usize,
    ) -> usize {
        let Self { keys, places, missed } = self;
        let asked = keys[..all].iter().zip(places).zip(words).zip(counts);
        let mut misses = 0;
        for (at, (((&key, &mut place), words), count)) in asked.enumerate() {
            let slot = near.slot(place);
            (*words, *count) = (slot::words(slot), slot::count(slot));
            missed[misses] = at;
            misses += usize::from(!slot::is(slot, key));
        }
        misses
    }
}
