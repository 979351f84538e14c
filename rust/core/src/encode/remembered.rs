//! Frequent pretokens and their ids, as a file holds them: what a new process knows at once.
//!
//! The cache of a process is empty at first, and each pretoken that it meets for the first time is
//! looked up and merged. Most of them are the same everywhere. So the most frequent ones, by the counts
//! of some corpus, can be kept with the tokenizer: a hash table of sets of two slots, one line of the
//! processor's cache each. A pretoken whose set is full is left out.

use super::slot::{self, Slot};
use crate::column::Column;
use crate::count::Counts;
use crate::error::Result;
use crate::key::{Key, LONGEST};
use crate::prefetch::prefetch;

/// At most so many pretokens are kept.
const MOST: usize = 1 << 15;

/// How many words a set has.
const SET: usize = 2 * slot::WORDS;

/// A power of two of sets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Remembered {
    words: Column<u64>,
}

impl Remembered {
    /// The most frequent pretokens that a slot can hold, with the ids that `encode` finds.
    pub(crate) fn new(
        counts: &Counts,
        mut encode: impl FnMut(&[u8]) -> Result<Vec<u32>>,
    ) -> Result<Self> {
        let mut pretokens: Vec<(&[u8], u64)> =
            counts.iter().filter(|(pretoken, _)| pretoken.len() <= LONGEST).collect();
        pretokens.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        pretokens.truncate(MOST);
        let mut words = vec![0; SET * pretokens.len().next_power_of_two()];
        for (pretoken, _) in pretokens {
            let (key, ids) = (Key::new(pretoken, 0..pretoken.len()), encode(pretoken)?);
            let start = start(key, words.len());
            let (slots, _) = words[start..start + SET].as_chunks_mut();
            if let Some(slot) = slots.iter_mut().find(|slot: &&mut Slot| slot[1] == 0)
                && ids.len() <= slot::INLINE
            {
                *slot = slot::of_ids(key, &ids);
            }
        }
        Ok(Self { words: Column::new(words) })
    }

    /// The table in an array that comes from anywhere; `None` if it is not a power of two of sets.
    pub(crate) fn of_column(words: Column<u64>) -> Option<Self> {
        (words.len() >= SET && words.len().is_power_of_two()).then_some(Self { words })
    }

    /// The array, as a file holds it.
    pub(crate) fn column(&self) -> &Column<u64> {
        &self.words
    }

    /// Whether every entry is what `encode` says, and stands where it is looked for.
    pub(crate) fn agrees(&self, mut encode: impl FnMut(&[u8]) -> Result<Vec<u32>>) -> bool {
        let slots: &[Slot] = self.words.as_chunks().0;
        slots.iter().enumerate().filter(|(_, slot)| **slot != Slot::default()).all(|(at, slot)| {
            let key = slot::key(slot);
            let mut pretoken = Vec::new();
            key.write(&mut pretoken);
            let whole = !pretoken.is_empty() && Key::new(&pretoken, 0..pretoken.len()) == key;
            let here = start(key, self.words.len()) == at / 2 * SET;
            let ids = if whole && here { encode(&pretoken) } else { return false };
            ids.is_ok_and(|ids| ids.len() <= slot::INLINE && slot::of_ids(key, &ids) == *slot)
        })
    }

    /// Bring the memory that [`get`](Self::get) looks at, without waiting for it.
    #[inline]
    pub(super) fn prefetch(&self, key: Key) {
        prefetch(&self.words, start(key, self.words.len()));
    }

    /// The ids of a pretoken, of which each is below `size`, and how many they are.
    #[inline]
    pub(super) fn get(&self, key: Key, size: usize) -> Option<([u32; slot::INLINE], usize)> {
        let start = start(key, self.words.len());
        let slots = self.words[start..start + SET].as_chunks().0;
        let slot = slots.iter().find(|slot| slot::is(slot, key))?;
        let (ids, count) = (slot::ids(slot::words(slot)), usize::from(slot::count(slot)));
        // A file may hold any.
        let exist = ids.get(..count)?.iter().all(|&id| (id as usize) < size);
        (exist && count > 0).then_some((ids, count))
    }
}

/// Where the set of a key begins in so many words.
#[inline]
fn start(key: Key, words: usize) -> usize {
    let sets = u128::from(key.hash()) * (words / SET) as u128;
    SET * usize::try_from(sets >> 64).expect("a table fits memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pretokens: &[String]) -> Counts {
        Counts::new(pretokens.iter().zip(1..).map(|(pretoken, n)| (pretoken.as_bytes(), n)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "encoding may fail")]
    fn encode(pretoken: &[u8]) -> Result<Vec<u32>> {
        Ok(pretoken.chunks(3).map(|chunk| u32::from(chunk[0])).collect())
    }

    fn get(table: &Remembered, pretoken: &str) -> Option<Vec<u32>> {
        let key = Key::new(pretoken.as_bytes(), 0..pretoken.len());
        table.get(key, 128).map(|(ids, count)| ids[..count].to_vec())
    }

    #[test]
    fn what_is_frequent_is_there_and_right() {
        let pretokens: Vec<String> = (0..50_000).map(|n| format!(" {n:x}z")).collect();
        let table = Remembered::new(&counts(&pretokens), encode).unwrap();
        let found = |pretoken: &&String| match get(&table, pretoken) {
            Some(ids) => ids == encode(pretoken.as_bytes()).unwrap(),
            None => false,
        };
        assert_eq!(pretokens[..50_000 - MOST].iter().filter(found).count(), 0);
        assert!(pretokens[50_000 - MOST..].iter().filter(found).count() > MOST * 8 / 10);
        assert!(table.agrees(encode));
        let again = Remembered::of_column(table.column().clone()).unwrap();
        assert_eq!(again, table);
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let pretokens = ["a word of more than fifteen bytes", "fourteen bytes", "ab"];
        let table = Remembered::new(&counts(&pretokens.map(str::to_owned)), encode).unwrap();
        assert_eq!(
            pretokens.map(|pretoken| pretoken.len() < 16 && get(&table, pretoken).is_some()),
            [false, false, true]
        );
        assert!(get(&Remembered::new(&counts(&[]), encode).unwrap(), "ab").is_none());
    }

    #[test]
    fn a_hostile_table_gives_no_id_that_does_not_exist() {
        let table = Remembered::new(&counts(&["ab".to_owned()]), encode).unwrap();
        for (word, bits) in [(2, 128 ^ u64::from(b'a')), (1, 15 << 60), (1, 1 << 60)] {
            let mut words = table.column().to_vec();
            words[word] ^= bits;
            let hostile = Remembered::of_column(Column::new(words)).unwrap();
            assert!(!hostile.agrees(encode));
            assert!(get(&hostile, "ab").is_none());
        }
        assert!(Remembered::of_column(Column::new(vec![0; 24])).is_none());
        assert!(Remembered::of_column(Column::new(vec![0; 4])).is_none());
    }
}
