//! An immutable hash table from keys to numbers: nearly every lookup reads one cache line.
//!
//! A line holds three keys, their numbers, and a filter: a bit for each key that found the line full
//! and went to a later one. So a lookup of an absent key rarely reads a second line.
//!
//! The table may come from an untrusted file. It records how many lines a lookup reads at most
//! (`max_probe`), so a lookup ends, whatever the table contains.

use crate::error::{Error, Result};
use crate::hash::key::Key;
use crate::machine::array::{AlignedBuffer, Array};
use crate::machine::simd::prefetch;
use crate::memory;

/// The lines of a probe sequence. Published vocabularies need at most 70; a file may choose tokens of
/// which many have one hash.
const MAX_PROBE: usize = 1 << 10;

/// The number of keys in a line.
const KEYS_PER_LINE: usize = 3;

/// The number of words of a line, and the words that follow the keys: the numbers and the filter.
const LINE_WORDS: usize = 8;
const NUMBERS_WORD: usize = 2 * KEYS_PER_LINE;
const FILTER_WORD: usize = NUMBERS_WORD + 1;

/// The bits of a number.
const BITS: u32 = 21;

/// A table has 5 lines for each group of 12 keys, so four of five places are taken: fewer lines are
/// smaller files, and more lookups read a second line.
const LINES_PER_GROUP: usize = 5;
const KEYS_PER_GROUP: usize = 12;

type Line = [u64; LINE_WORDS];

/// A finished table. A place without a key is zero.
#[derive(Debug, Clone)]
pub(crate) struct KeyTable {
    words: Array<u64>,
    max_probe: usize,
}

impl KeyTable {
    /// The table of `count` keys of at least one byte, with their numbers of at most 21 bits. Fails with
    /// `twice` of both numbers if a key comes twice, and if many keys have one hash.
    pub(crate) fn new(
        count: usize,
        keys: impl Iterator<Item = (Key, u32)>,
        twice: impl Fn(u32, u32) -> Error,
    ) -> Result<Self> {
        let lines = (count * LINES_PER_GROUP).div_ceil(KEYS_PER_GROUP).max(1);
        let (mut words, mut max_probe) = (AlignedBuffer::zeros(lines * LINE_WORDS)?, 1);
        for (key, number) in keys {
            if let Some(other) = insert(&mut words, &mut max_probe, key, number)? {
                return Err(twice(other, number));
            }
        }
        Ok(Self { words: Array::of_words(words), max_probe })
    }

    /// A table without keys.
    pub(crate) fn empty() -> Self {
        Self { words: Array::new(vec![0; LINE_WORDS]), max_probe: 1 }
    }

    /// The table in an array from any source; `None` if it does not consist of lines, or if
    /// `max_probe` is too large.
    pub(crate) fn from_array(words: Array<u64>, max_probe: usize) -> Option<Self> {
        let whole = !words.is_empty() && words.len().is_multiple_of(LINE_WORDS);
        (whole && max_probe <= MAX_PROBE).then_some(Self { words, max_probe })
    }

    /// The array, and `max_probe`.
    pub(crate) fn array(&self) -> (&Array<u64>, usize) {
        (&self.words, self.max_probe)
    }

    /// Prefetch the line of a key.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key) {
        prefetch(&self.words, home(key, self.words.len()));
    }

    /// The number of a key, which must not be that of an empty pretoken.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let mut at = home(key, self.words.len());
        // A builder never needs more probes, and the probes in an untrusted table may not end.
        for _ in 0..self.max_probe {
            let line = self.words[at..].first_chunk().expect("lines are whole");
            if let Some(place) = place(line, key) {
                return Some(number(line, place));
            }
            // No key with this bit went on from here.
            if line[FILTER_WORD] & bit(key) == 0 {
                return None;
            }
            at = next(at, self.words.len());
        }
        None
    }
}

/// Insert a key, and raise `max_probe` to the length of its probe sequence. If the key is in the table,
/// return its number instead.
fn insert(words: &mut [u64], max_probe: &mut usize, key: Key, new: u32) -> Result<Option<u32>> {
    let length = words.len();
    let mut at = home(key, length);
    for probe in 1..=MAX_PROBE {
        let line = words[at..].first_chunk_mut().expect("lines are whole");
        if let Some(place) = place(line, key) {
            return Ok(Some(number(line, place)));
        }
        // The second word of a key has its length, so that of a free place is zero.
        if let Some(free) = (0..KEYS_PER_LINE).find(|&place| line[2 * place + 1] == 0) {
            (line[2 * free], line[2 * free + 1]) = key.words();
            line[NUMBERS_WORD] |= u64::from(new) << shift(free);
            *max_probe = probe.max(*max_probe);
            return Ok(None);
        }
        line[FILTER_WORD] |= bit(key);
        at = next(at, length);
    }
    let reason = "hundreds of its tokens have one hash, as of no trained vocabulary";
    Err(Error::Vocabulary { reason: reason.into() })
}

/// The index of the first word of a key's line.
#[inline]
fn home(key: Key, words: usize) -> usize {
    start(key.hash(), words / LINE_WORDS) * LINE_WORDS
}

/// The index of the line after another, which follows the last one.
#[inline]
fn next(at: usize, words: usize) -> usize {
    if at + LINE_WORDS < words { at + LINE_WORDS } else { 0 }
}

/// The bit of a key in the filter of a full line.
#[inline]
fn bit(key: Key) -> u64 {
    // The upper bits of the hash choose the line.
    1 << (key.hash() % 64)
}

/// The place of a key in a line.
#[inline]
fn place(line: &Line, key: Key) -> Option<usize> {
    let (low, high) = key.words();
    let is_at = |place: usize| (line[2 * place] ^ low) | (line[2 * place + 1] ^ high) == 0;
    // Without a short circuit: which place it is would be mispredicted.
    let (first, second, third) = (is_at(0), is_at(1), is_at(2));
    (first | second | third).then(|| usize::from(second) + 2 * usize::from(third))
}

/// The number of the key at a place.
#[inline]
fn number(line: &Line, place: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "what is above is masked")]
    let number = (line[NUMBERS_WORD] >> shift(place)) as u32;
    number & ((1 << BITS) - 1)
}

/// The position of the number of the key at a place.
#[inline]
fn shift(place: usize) -> u32 {
    [0, BITS, 2 * BITS][place]
}

/// The position of a hash, below `starts`.
#[inline]
fn start(hash: u64, starts: usize) -> usize {
    // hash / 2^64 is a fraction below 1, so its product with `starts` is below `starts`. This takes one
    // multiplication, where a remainder would take a division.
    let product = u128::from(hash) * starts as u128;
    usize::try_from(product >> 64).expect("it is below `starts`")
}

// ---------------------------------------------------------------------------- rows
//
// Finds the number of a row by its hash.
//
// The rows themselves are stored elsewhere, in order of insertion. Frequent pretokens come early,
// so their rows are close together, and each is at the first position of its hash. An index takes
// four bytes per position, so it still fits in the caches when the rows do not.
/// Row numbers by hash: open addressing in 2^n slots, at most half of them used.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowIndex {
    /// One more than the number of a row; zero is an empty slot.
    slots: Vec<u32>,
}

impl RowIndex {
    /// The largest number of rows.
    pub(crate) const ROWS: usize = u32::MAX as usize - 1;

    /// The number of slots for a number of rows.
    pub(crate) fn slots_for(rows: usize) -> usize {
        (2 * rows).next_power_of_two().max(1 << 12)
    }

    /// Whether this many rows fit.
    #[inline]
    pub(crate) fn fits(&self, rows: usize) -> bool {
        2 * rows <= self.slots.len()
    }

    /// The size of the index in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }

    /// An index of rows with these hashes, in order, with capacity for `rows` rows.
    pub(crate) fn of(hashes: impl Iterator<Item = u64>, rows: usize) -> Result<Self> {
        let mut index = Self { slots: memory::zeros(Self::slots_for(rows))? };
        for (row, hash) in (0..).zip(hashes) {
            let slot = index.find(hash, |_| false).expect_err("no row matches");
            index.put(slot, row);
        }
        Ok(index)
    }

    /// The row of this hash for which `is_it` holds, or else the slot for it.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: u64,
        is_it: impl Fn(usize) -> bool,
    ) -> std::result::Result<usize, usize> {
        let last = self.slots.len() - 1;
        let mut at = self.start(hash);
        loop {
            match self.slots[at & last] {
                0 => return Err(at & last),
                taken if is_it(taken as usize - 1) => return Ok(taken as usize - 1),
                _ => at += 1,
            }
        }
    }

    /// Put a row below [`Self::ROWS`] into a slot that [`find`](Self::find) returned.
    #[inline]
    pub(crate) fn put(&mut self, slot: usize, row: usize) {
        self.slots[slot] = u32::try_from(row + 1).expect("below the number of rows");
    }

    /// The row in the first slot of a hash, which usually is the right one.
    #[inline]
    pub(crate) fn likely(&self, hash: u64) -> Option<usize> {
        (self.slots[self.start(hash)] as usize).checked_sub(1)
    }

    /// Prefetch the first slot of a hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.start(hash));
    }

    #[inline]
    fn start(&self, hash: u64) -> usize {
        let bits = self.slots.len().trailing_zeros();
        usize::try_from(hash >> (64 - bits)).expect("a table fits memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(text: &[u8]) -> Key {
        Key::new(text, 0..text.len())
    }

    proptest! {
        /// Every key is found with its number, however full the table is, and no other is. A key that
        /// comes twice is an error.
        #[test]
        fn keys_are_found_with_their_numbers(
            texts in prop::collection::vec(prop::collection::vec(0u8..3, 1..=15), 0..150),
            others in prop::collection::vec(prop::collection::vec(0u8..3, 1..=15), 0..50),
            room in 0usize..200,
        ) {
            let all = texts.iter().cloned().zip((0..1 << BITS).rev());
            let known: BTreeMap<Vec<u8>, u32> = all.clone().collect();
            let twice = |one, other| Error::Uncovered { part: format!("{one} {other}") };
            let keys = all.map(|(text, number)| (key(&text), number));
            let table = KeyTable::new(texts.len(), keys, twice);
            prop_assert_eq!(table.is_ok(), known.len() == texts.len());
            let keys = known.iter().map(|(text, &number)| (key(text), number));
            let table = KeyTable::new(room.max(texts.len()), keys, twice).unwrap();
            let (array, max_probe) = table.array();
            let again = KeyTable::from_array(array.clone(), max_probe).unwrap();
            for text in texts.iter().chain(&others) {
                prop_assert_eq!(table.find(key(text)), known.get(text).copied());
                prop_assert_eq!(again.find(key(text)), known.get(text).copied());
            }
        }
    }

    #[test]
    fn keys_that_were_chosen_to_have_one_hash_are_refused() {
        let start = 0x9E37_79B9_7F4A_7C15_u64.to_le_bytes();
        let table = |keys: u32| {
            let text = |number: u32| [&start[..], &number.to_le_bytes()].concat();
            let all = (0..keys).map(|number| (key(&text(number)), number));
            KeyTable::new(2 * keys as usize, all, |_, _| Error::CountOverflow)
        };
        assert!(table(3_000).is_ok());
        assert!(matches!(table(3_100), Err(Error::Vocabulary { .. })));
    }

    #[test]
    fn a_lookup_in_a_table_of_anything_ends() {
        for word in [0, 1, u64::MAX] {
            let table =
                KeyTable::from_array(Array::new(vec![word; 5 * LINE_WORDS]), MAX_PROBE).unwrap();
            assert_eq!(table.find(key(b"abc")), None);
        }
    }

    #[test]
    fn arrays_that_are_no_tables_are_refused() {
        let of = |words, max_probe| KeyTable::from_array(Array::new(vec![0; words]), max_probe);
        assert!(of(0, 1).is_none());
        assert!(of(LINE_WORDS + 1, 1).is_none());
        assert!(of(LINE_WORDS, MAX_PROBE + 1).is_none());
        assert!(of(LINE_WORDS, 0).is_some_and(|table| table.find(key(b"abc")).is_none()));
    }
}
