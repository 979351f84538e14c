//! The ids of pretokens that were met before.
//!
//! Text repeats itself, so the ids of a pretoken are kept, and to meet it again costs one look at one
//! line of memory. The cache is a hash table that grows with what it holds, up to a fixed size; from
//! then on what is rare gives way to what is new.
//!
//! It is made of lines of two slots. Four lines lend each other room: a pretoken takes the first slot that
//! is free, in its own line or else in those beside it. A new pretoken where all are full takes the second
//! slot of the last line, and what was there is forgotten; so what is met again moves to the first slot of
//! its own line, once that may happen to it.
//!
//! A [`slot`] holds up to four ids. More ids, and the bytes of pretokens that are longer than a key can
//! say, are kept aside.

use std::hint::select_unpredictable;

use super::ring::Ring;
use super::slot::{self, Slot};
use crate::key::{Key, LONGEST};
use crate::pages::Words;
use crate::prefetch::prefetch;

/// Longer pretokens (in bytes) are not kept. A pretoken has no more ids than bytes.
pub(super) const LONGEST_KEPT: usize = 128;

/// How many slots a line has, and how many words.
const SLOTS: usize = 2;
const LINE: usize = slot::WORDS * SLOTS;

/// How many lines lend each other room. Those beside a line differ from it in the lowest bits of its place.
const GROUP: usize = 4;

/// There are 2 to the power of this many lines at first, and 4 times as many whenever half of the slots
/// are taken.
const FIRST_BITS: u32 = 7;
const GROWTH_BITS: u32 = 2;

/// The cache of one thread, of 2 to the power of `BITS` lines (of 64 bytes) and `ASIDE` bytes aside at
/// most. Empty, it has nothing.
#[derive(Debug, Default)]
pub(super) struct Cache<const BITS: u32, const ASIDE: usize> {
    /// The lines. Zero is an empty slot.
    words: Words,
    bits: u32,
    /// How many slots are taken.
    taken: usize,
    /// Half of them are, and there will be no more.
    is_crowded: bool,
    aside: Ring<ASIDE>,
}

impl<const BITS: u32, const ASIDE: usize> Cache<BITS, ASIDE> {
    /// Be ready for `find` and `put`, and grow if that is due; says whether it was. Then the places that
    /// `locate` gave are no longer theirs.
    #[inline]
    pub(super) fn prepare(&mut self) -> bool {
        let is_half_taken = 2 * slot::WORDS * self.taken >= self.words.len();
        self.is_crowded = is_half_taken && self.bits == BITS;
        let due = is_half_taken && self.bits < BITS;
        if due {
            self.grow();
        }
        due
    }

    /// How many bits of lines there are.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    #[cold]
    fn grow(&mut self) {
        let grown = if self.bits == 0 { FIRST_BITS } else { self.bits + GROWTH_BITS };
        let bits = grown.min(BITS);
        let old = std::mem::replace(&mut self.words, Words::zeros(LINE << bits));
        (self.bits, self.taken) = (bits, 0);
        for slot in old.as_chunks().0.iter().filter(|slot| slot[1] != 0) {
            self.put_slot(self.place(slot::key(slot)), *slot);
        }
    }

    /// Where the line of a key begins.
    #[inline]
    fn place(&self, key: Key) -> usize {
        let line = usize::try_from(key.hash() >> (64 - self.bits)).unwrap_or(0);
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

    /// The line that begins at a place.
    #[inline]
    fn line(&mut self, place: usize) -> &mut [Slot; SLOTS] {
        let (slots, _) = self.words.chunk_mut::<LINE>(place).as_chunks_mut();
        slots.try_into().expect("a line has so many slots")
    }

    /// What stands in the line of a pretoken, which `locate` has placed: its slot, or another and `false`. There
    /// is no branch, since which one it is, a processor could only guess.
    #[inline]
    pub(super) fn look(&mut self, key: Key, place: usize) -> (bool, &Slot) {
        let is_crowded = self.is_crowded;
        let line = self.line(place);
        let (first, second) = (slot::is(&line[0], key), slot::is(&line[1], key));
        let mut at = usize::from(second);
        if is_crowded {
            *line = [line[at], line[1 - at]];
            at = 0;
        }
        (first | second, &line[at])
    }

    /// The slot of a pretoken, which `locate` has placed, if it is here.
    #[inline]
    pub(super) fn find(&mut self, key: Key, place: usize) -> Option<&Slot> {
        let (is_here, _) = self.look(key, place);
        if is_here { Some(self.look(key, place).1) } else { self.find_beside(key, place) }
    }

    /// A slot of the lines beside.
    #[cold]
    fn find_beside(&mut self, key: Key, place: usize) -> Option<&Slot> {
        let mut lines = group(place);
        let own = lines.next()?;
        let mut is_full = self.is_full(own);
        for line in lines {
            // Slots are taken in order, and no other line need come for nothing.
            if !is_full {
                return None;
            }
            if let Some(at) = self.line(line).iter().position(|slot| slot::is(slot, key)) {
                return Some(self.keep(place, line, at));
            }
            is_full = self.is_full(line);
        }
        None
    }

    /// A slot that was met again in a line beside. In a full group it moves to its own line, lest it be
    /// forgotten.
    fn keep(&mut self, own: usize, beside: usize, at: usize) -> &Slot {
        if !self.is_full(last(own)) {
            return &self.line(beside)[at];
        }
        let slot = self.line(beside)[at];
        let first = std::mem::replace(&mut self.line(own)[0], slot);
        self.line(beside)[at] = first;
        &self.line(own)[0]
    }

    /// Whether both slots of a line are taken.
    #[inline]
    fn is_full(&mut self, line: usize) -> bool {
        self.line(line)[1][1] != 0
    }

    /// Append the ids of a pretoken, which `locate` has placed; false if it is not here.
    pub(super) fn append(
        &mut self,
        key: Key,
        place: usize,
        pretoken: &[u8],
        out: &mut Vec<u32>,
    ) -> bool {
        let Some(slot) = self.find(key, place) else { return false };
        let (count, words) = (slot::count(slot), slot::words(slot));
        if count == slot::ASIDE {
            return self.append_aside(words, pretoken, out);
        }
        out.extend_from_slice(&slot::ids(words)[..usize::from(count)]);
        true
    }

    /// Bring what is kept aside, where the words of its slot say.
    #[inline]
    pub(super) fn prefetch_aside(&self, words: [u64; 2]) {
        self.aside.prefetch(usize::try_from(words[0]).unwrap_or(0));
    }

    /// Append the ids of a pretoken that are kept aside, where the words of its slot say; false if they
    /// are no longer there.
    fn append_aside(&self, words: [u64; 2], pretoken: &[u8], out: &mut Vec<u32>) -> bool {
        let kept = self.aside(words, pretoken);
        out.extend(kept.into_iter().flatten().map(|bytes| u32::from_le_bytes(*bytes)));
        kept.is_some()
    }

    /// The ids of a pretoken that are kept aside, where the words of its slot say, if they are still
    /// there.
    #[inline]
    pub(super) fn aside(&self, words: [u64; 2], pretoken: &[u8]) -> Option<&[[u8; 4]]> {
        let [position, sizes] = words.map(|word| usize::try_from(word).unwrap_or(0));
        let (length, count) = (sizes >> 16, sizes & 0xFFFF);
        let (bytes, ids) = self.aside.get(position, length + 4 * count)?.split_at(length);
        (length == 0 || bytes == pretoken).then_some(ids.as_chunks().0)
    }

    /// Remember the ids of a pretoken of at most [`LONGEST_KEPT`] bytes that is not here; its slot is
    /// returned.
    pub(super) fn put(&mut self, key: Key, place: usize, pretoken: &[u8], ids: &[u32]) -> Slot {
        let long = if pretoken.len() > LONGEST { pretoken } else { &[] };
        let slot = if long.is_empty() && ids.len() <= slot::INLINE {
            slot::of_ids(key, ids)
        } else {
            let position = self.put_aside(long, ids) as u64;
            slot::with(key, slot::ASIDE, [position, (long.len() << 16 | ids.len()) as u64])
        };
        self.put_slot(place, slot);
        slot
    }

    /// Remember a slot that holds its ids, unless something would have to be forgotten for it.
    pub(super) fn hear(&mut self, slot: Slot) {
        if !self.is_crowded {
            self.put_slot(self.place(slot::key(&slot)), slot);
        }
    }

    fn put_aside(&mut self, long: &[u8], ids: &[u32]) -> usize {
        self.aside.put(long.len() + 4 * ids.len(), |room| {
            let (bytes, rest) = room.split_at_mut(long.len());
            bytes.copy_from_slice(long);
            for (bytes, id) in rest.as_chunks_mut().0.iter_mut().zip(ids) {
                *bytes = id.to_le_bytes();
            }
        })
    }

    fn put_slot(&mut self, place: usize, slot: Slot) {
        let key = slot::key(&slot);
        for line in group(place) {
            // What was kept aside may be gone, while its slot is still here.
            let mut slots = self.line(line).iter_mut();
            if let Some(at) = slots.find(|at| at[1] == 0 || slot::is(at, key)) {
                let is_free = at[1] == 0;
                *at = slot;
                self.taken += usize::from(is_free);
                return;
            }
        }
        self.line(last(place))[1] = slot;
    }
}

/// Where the lines of a group begin, the one at `own` first.
#[inline]
fn group(own: usize) -> impl Iterator<Item = usize> {
    (0..GROUP).map(move |beside| own ^ (beside * LINE))
}

/// Where the last of them begins.
#[inline]
fn last(own: usize) -> usize {
    own ^ ((GROUP - 1) * LINE)
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

    fn get<const BITS: u32>(cache: &mut Cache<BITS, ASIDE>, pretoken: &[u8]) -> Option<Vec<u32>> {
        let mut ids = Vec::new();
        let place = cache.locate(key(pretoken));
        cache.append(key(pretoken), place, pretoken, &mut ids).then_some(ids)
    }

    fn put<const BITS: u32>(cache: &mut Cache<BITS, ASIDE>, pretoken: &[u8], ids: &[u32]) {
        let place = cache.locate(key(pretoken));
        cache.put(key(pretoken), place, pretoken, ids);
    }

    proptest! {
        /// What is there is right, whatever was forgotten, and the newest is there.
        #[test]
        fn it_never_answers_for_another(
            puts in prop::collection::vec(
                (prop::collection::vec(0u8..2, 1..=40), prop::collection::vec(0u32..1 << 21, 1..=40)),
                1..300,
            ),
        ) {
            let mut cache = Cache::<5, ASIDE>::default();
            let mut known: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
            for (pretoken, ids) in puts {
                cache.prepare();
                if let Some(found) = get(&mut cache, &pretoken) {
                    prop_assert_eq!(&found, &known[&pretoken]);
                } else {
                    put(&mut cache, &pretoken, &ids);
                    known.insert(pretoken.clone(), ids);
                }
                prop_assert!(get(&mut cache, &pretoken).is_some());
            }
        }
    }

    /// A slot whose bytes are gone gives way to the one that is put again.
    #[test]
    fn what_is_no_longer_aside_can_be_put_again() {
        let mut cache = Cache::<7, ASIDE>::default();
        cache.prepare();
        let long = |number: usize| format!("{number:0>100}").into_bytes();
        put(&mut cache, &long(0), &[7; 100]);
        for number in 1..ASIDE / 400 {
            cache.put_aside(&long(number), &[8; 100]);
        }
        assert_eq!(get(&mut cache, &long(0)), None);
        put(&mut cache, &long(0), &[9; 100]);
        assert_eq!(get(&mut cache, &long(0)), Some(vec![9; 100]));
    }

    #[test]
    fn it_grows_to_its_size_and_forgets_what_is_rare() {
        let mut cache = Cache::<13, ASIDE>::default();
        for number in 0..200_000u32 {
            cache.prepare();
            let pretoken = number.to_le_bytes();
            assert_eq!(get(&mut cache, &pretoken), None);
            put(&mut cache, &pretoken, &vec![number; 1 + number as usize % 7]);
            cache.prepare();
            assert!(get(&mut cache, b"frequent").is_none_or(|ids| ids == [7]));
            if get(&mut cache, b"frequent").is_none() {
                assert!(number < 10, "what is frequent stays");
                put(&mut cache, b"frequent", &[7]);
            }
        }
        assert_eq!(cache.words.len(), LINE << 13);
        let kept = (0..200_000u32).filter_map(|number| {
            let ids = get(&mut cache, &number.to_le_bytes())?;
            assert_eq!(ids, vec![number; 1 + number as usize % 7]);
            Some(number)
        });
        assert!(kept.count() > SLOTS << 12);
    }
}
