//! The commonest pretokens and their ids, in so little memory that it is always near the processor.
//!
//! Five of six pretokens of a text are among a few thousand. Each has one place here, which its hash
//! names, and the last one that was met holds it.

use std::hint::select_unpredictable;

use super::slot::{self, Slot};
use crate::key::Key;
use crate::keys;
use crate::pages::Words;
use crate::prefetch::prefetch;

/// There are 2 to the power of this many slots at most: 2 MiB.
const BITS: u32 = 16;

/// A power of two of slots, and one behind them for what is to be nowhere.
#[derive(Debug, Default)]
pub(super) struct Near {
    words: Words,
    /// How many bits of a hash are not part of a place.
    shift: u32,
}

impl Near {
    /// Have 2 to the power of so many slots, up to the most. If these are more than before, they are empty.
    pub(super) fn grow(&mut self, bits: u32) {
        let bits = bits.min(BITS);
        let length = slot::WORDS * ((1 << bits) + 1);
        if self.words.len() < length {
            *self = Self { words: Words::zeros(length), shift: u64::BITS - bits };
        }
    }

    /// Write the place of each pretoken, and ask for its memory; there are as many places.
    #[inline]
    pub(super) fn locate(&self, keys: &[Key], places: &mut [usize]) {
        keys::write_places::<{ slot::WORDS }>(keys, self.shift, places);
        for place in places {
            prefetch(&self.words, *place);
        }
    }

    /// The slot at a place.
    #[inline]
    pub(super) fn slot(&self, place: usize) -> &Slot {
        self.words[place..].first_chunk().expect("a place has so many words")
    }

    /// Let a pretoken hold its place if that is said; then its ids must stand in the slot. There is no branch.
    #[inline]
    pub(super) fn put_if(&mut self, is_said: bool, key: Key, slot: &Slot) {
        let nowhere = self.words.len() - slot::WORDS;
        let own = key.place::<{ slot::WORDS }>(self.shift);
        let place = select_unpredictable(is_said, own, nowhere);
        *self.words.chunk_mut(place) = *slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    impl Near {
        fn get(&self, key: Key) -> &Slot {
            let mut place = [0];
            self.locate(&[key], &mut place);
            self.slot(place[0])
        }
    }

    proptest! {
        /// A slot is that of the pretoken that was put last, and of no other.
        #[test]
        fn it_never_answers_for_another(
            pretokens in prop::collection::vec(prop::collection::vec(0u8..2, 1..=15), 1..200),
            bits in 1u32..6,
        ) {
            let (mut near, mut known) = (Near::default(), HashMap::new());
            near.grow(bits);
            for (pretoken, id) in pretokens.iter().zip(0..) {
                let key = Key::new(pretoken, 0..pretoken.len());
                let slot = near.get(key);
                prop_assert!(!slot::is(slot, key) || Some(slot) == known.get(pretoken));
                near.put_if(true, key, &slot::of_ids(key, &[id]));
                known.insert(pretoken, slot::of_ids(key, &[id]));
                prop_assert_eq!(near.get(key), &known[pretoken]);
                near.put_if(false, key, &slot::of_ids(key, &[id, id]));
                prop_assert_eq!(near.get(key), &known[pretoken]);
            }
        }
    }
}
