//! A hash table of pretokens and their ids that threads share and nobody locks.
//!
//! It is made of lines of two slots. Four lines lend each other room: a pretoken takes the first slot that
//! is free, in its own line or else in those beside it, and none where all are taken. Once there, it does not
//! change any more, nor goes away, so that whoever sees its key can read its ids: only the mark is added that
//! it was met again. A thread takes a free slot by its second word, and writes that word again, with the key,
//! when all others are there.
//!
//! A [`slot`] holds up to six ids; more, and the bytes of longer pretokens, are kept [`aside`](super::aside).

use std::hint::select_unpredictable;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use super::aside::{self, Aside};
use super::slot::{self, Slot};
use crate::key::{Key, LONGEST};
use crate::pages::Words;
use crate::parallel::Apart;
use crate::prefetch::prefetch;

/// How many slots a line has, and how many words.
const SLOTS: usize = 2;
const LINE: usize = slot::WORDS * SLOTS;

/// How many lines lend each other room. Those beside a line differ from it in the lowest bits of its place.
const GROUP: usize = 4;

/// There are 2 to the power of this many lines at least.
pub(super) const LEAST_BITS: u32 = 2;

/// The second word of a slot that somebody fills. It is that of no key.
const CLAIMED: u64 = 6 << 60;

/// 2 to the power of some number of lines (of 64 bytes).
#[derive(Debug)]
pub(super) struct Table {
    /// The lines. Zero is a free slot.
    words: Words<AtomicU64>,
    bits: u32,
    aside: Aside,
    /// How many slots are taken, as far as those who took them have said.
    taken: Apart<AtomicUsize>,
    /// Which one it is of those that came one after the other.
    number: usize,
}

impl Table {
    /// A table of 2 to the power of `bits` lines, and so many words aside.
    pub(super) fn new(number: usize, bits: u32, aside: usize) -> Self {
        let (words, aside) = (Words::zeros(LINE << bits), Aside::new(aside));
        Self { words, bits, aside, taken: Apart::default(), number }
    }

    /// Which one it is of those that came one after the other.
    #[inline]
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// How many bits of lines there are.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Say that so many slots were taken.
    #[inline]
    pub(super) fn took(&self, count: usize) {
        self.taken.0.fetch_add(count, Relaxed);
    }

    /// Whether so many eighths of the slots are taken, or so many of the room aside.
    #[inline]
    pub(super) fn has_taken(&self, [eighths, aside]: [usize; 2]) -> bool {
        let slots = self.words.len() / slot::WORDS;
        8 * self.taken.0.load(Relaxed) >= eighths * slots || self.aside.has_taken(aside)
    }

    /// Where the line of a key begins.
    #[inline]
    fn place(&self, key: Key) -> usize {
        let line = usize::try_from(key.hash() >> (u64::BITS - self.bits)).unwrap_or(0);
        line * LINE
    }

    /// Where the line of a key begins. Its memory is asked for, so that it is there a little later.
    #[inline]
    pub(super) fn locate(&self, key: Key) -> usize {
        let place = self.place(key);
        prefetch(&self.words, place);
        place
    }

    /// Ask for the memory of the lines beside, if that is said. There is no branch.
    #[inline]
    pub(super) fn prefetch_beside(&self, own: usize, is_said: bool) {
        for line in group(own).skip(1) {
            prefetch(&self.words, select_unpredictable(is_said, line, own));
        }
    }

    /// The words from a place on.
    #[inline]
    fn chunk<const LENGTH: usize>(&self, place: usize) -> &[AtomicU64; LENGTH] {
        self.words[place..].first_chunk().expect("there are so many words from a place on")
    }

    /// What stands in the line of a pretoken, which `locate` has placed: its slot, or another and `false`.
    /// There is no branch, since which one it is, a processor could only guess. What is found is marked as met
    /// again, if that is asked.
    #[inline]
    pub(super) fn look(&self, key: Key, place: usize, marks: bool) -> (bool, Slot) {
        let line = self.chunk::<LINE>(place);
        let is_first = slot::is(&name(line, 0), key);
        let is_second = slot::is(&name(line, slot::WORDS), key);
        let (is_here, at) = (is_first | is_second, usize::from(is_second) * slot::WORDS);
        let slot = read(line, at);
        if marks && is_here {
            mark(line, at);
        }
        (is_here, slot)
    }

    /// The slot of a pretoken in the lines beside, if it is there; marked, if that is asked.
    #[cold]
    pub(super) fn find_beside(&self, key: Key, place: usize, marks: bool) -> Option<Slot> {
        let mut lines = group(place);
        let mut last = lines.next()?;
        for line in lines {
            // Slots are taken in order, and no other line need come for nothing.
            if self.words[last + slot::WORDS + 1].load(Relaxed) == 0 {
                return None;
            }
            let words = self.chunk::<LINE>(line);
            if let Some(at) =
                [0, slot::WORDS].into_iter().find(|&at| slot::is(&name(words, at), key))
            {
                if marks {
                    mark(words, at);
                }
                return Some(read(words, at));
            }
            last = line;
        }
        None
    }

    /// Keep the ids of a pretoken that is not here. What its slot says is returned, unless there is no room for it
    /// aside; and whether it took a slot.
    pub(super) fn put(
        &self,
        key: Key,
        place: usize,
        pretoken: &[u8],
        ids: &[u32],
    ) -> Option<(Slot, bool)> {
        let long = if pretoken.len() > LONGEST { pretoken } else { &[] };
        let slot = if long.is_empty() && ids.len() <= slot::PACKED {
            slot::of_ids(key, ids)
        } else {
            slot::with(key, slot::ASIDE, self.aside.put(long, ids)?)
        };
        Some((slot, self.put_slot(place, slot)))
    }

    /// Take the first free slot of a group. False if there is none, or if the pretoken is here.
    fn put_slot(&self, place: usize, slot: Slot) -> bool {
        let key = slot::key(&slot);
        for place in group(place).flat_map(|line| [line, line + slot::WORDS]) {
            let words = self.chunk::<{ slot::WORDS }>(place);
            let stands = name(words, 0);
            if stands[1] == 0 && fill(words, slot) {
                return true;
            }
            if slot::is(&stands, key) {
                return false;
            }
        }
        false
    }

    /// Write the ids of a pretoken to the beginning of `room`, of which its slot says this count and these words, and
    /// perhaps others behind them. How many there are is returned, or `None` if the slot is of another pretoken, or
    /// of none. Most pretokens have few ids and do not come here: inlined, a message takes a tenth longer.
    #[inline(never)]
    pub(super) fn read(
        &self,
        count: u8,
        words: [u64; 2],
        pretoken: &[u8],
        room: &mut [u32; aside::ROOM],
    ) -> Option<usize> {
        if count == slot::ASIDE {
            return self.aside.read(words, pretoken, room);
        }
        let count = usize::from(count);
        if count <= slot::INLINE {
            *room.first_chunk_mut()? = slot::ids(words);
        } else {
            *room.first_chunk_mut()? = slot::packed_ids(words);
        }
        (count <= slot::PACKED).then_some(count)
    }

    /// What is kept aside, where slots say.
    #[inline]
    pub(super) fn aside(&self) -> &Aside {
        &self.aside
    }

    /// Have all that another table has, which has no more lines and no more aside.
    pub(super) fn copy(&self, other: &Self) {
        let taken = other.slots().filter(|slot| self.put_slot(self.place(slot::key(slot)), *slot));
        self.took(taken.count());
        // Whatever the slots said is there by now.
        self.aside.copy(&other.aside);
    }

    /// Have what was met again in another table, until so many eighths are taken of the slots, or so many aside. Here it was not yet met again.
    pub(super) fn thin(&self, other: &Self, eighths: [usize; 2]) {
        for slot in other.slots().filter(|slot| slot[1] & slot::MET != 0) {
            if self.has_taken(eighths) {
                break;
            }
            self.took(usize::from(self.put_again(&other.aside, slot).is_some()));
        }
    }

    /// Have a slot of another table, unless there is no room for what it has aside.
    fn put_again(&self, aside: &Aside, slot: Slot) -> Option<()> {
        let (key, count, mut words) = (slot::key(&slot), slot::count(&slot), slot::words(&slot));
        if count == slot::ASIDE {
            words = self.aside.put_again(aside, words)?;
        }
        self.put_slot(self.place(key), slot::with(key, count, words)).then_some(())
    }

    /// The slots that are taken and filled.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        let slots = self.words.as_chunks().0.iter();
        slots
            .map(|words: &[_; slot::WORDS]| read(words, 0))
            .filter(|slot| slot[1] != 0 && slot[1] != CLAIMED)
    }
}

/// The first two words of a slot, as far as a key is about them. What else the slot says can be read after
/// this.
#[inline]
fn name(words: &[AtomicU64], at: usize) -> Slot {
    let high = words[at + 1].load(Acquire);
    [words[at].load(Relaxed), high, 0, 0]
}

/// A slot.
#[inline]
fn read(words: &[AtomicU64], at: usize) -> Slot {
    let [low, high, ..] = name(words, at);
    [low, high, words[at + 2].load(Relaxed), words[at + 3].load(Relaxed)]
}

/// Mark a slot, whose key was seen, as met again.
#[inline]
fn mark(words: &[AtomicU64], at: usize) {
    let high = words[at + 1].load(Acquire);
    if high & slot::MET == 0 {
        // Whoever sees the mark sees what was there before it.
        words[at + 1].store(high | slot::MET, Release);
    }
}

/// Fill a slot if it is free; whether it was.
#[inline]
fn fill(words: &[AtomicU64; slot::WORDS], slot: Slot) -> bool {
    let [low, high, one, other] = words;
    let claim = high.compare_exchange(0, CLAIMED, Relaxed, Relaxed);
    if claim.is_err() {
        return false;
    }
    low.store(slot[0], Relaxed);
    one.store(slot[2], Relaxed);
    other.store(slot[3], Relaxed);
    high.store(slot[1], Release);
    true
}

/// Where the lines of a group begin, the one at `own` first.
#[inline]
fn group(own: usize) -> impl Iterator<Item = usize> {
    (0..GROUP).map(move |beside| own ^ (beside * LINE))
}
