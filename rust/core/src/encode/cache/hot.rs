//! The most frequent pretokens and their ids, in a table that fits the processor's L2 cache.
//!
//! Five of six pretokens of a text are among a few thousand. The table is direct-mapped: the hash
//! of a pretoken gives its only index, and the latest pretoken replaces the one before.

use std::hint::select_unpredictable;

use crate::encode::cache::entry::{self, Entry};
use crate::hash::key::Key;
use crate::machine::array::AlignedBuffer;
use crate::machine::simd::prefetch;

/// The table has at most 2 to the power of this many entries: 2 MiB.
const BITS: u32 = 16;

/// From this many bits on, the table has the largest size, a huge page: half of it costs hundreds of
/// page faults.
const HUGE_BITS: u32 = 14;

/// The table has at least 2 to the power of this many entries.
const MIN_BITS: u32 = 1;

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
            let smallest = AlignedBuffer::zeros(words(MIN_BITS)).expect("memory for 3 entries");
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
