//! Arrays of numbers, in memory or in a mapped file.
//!
//! A tokenizer is mostly a few large arrays. Made by training or out of another format they are in
//! memory; loaded from a file they are the file itself, mapped, so that nothing is copied and all
//! processes that load it share one copy. A [`Column`] is such an array, and whoever reads it cannot
//! tell which kind it is. This file has all that is unsafe about it.

#![expect(unsafe_code, reason = "to read a large file costs more than all else when it is loaded")]

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;

use crate::pages::Words;

/// Numbers of which any bytes are one, stored with the least byte first.
pub(crate) trait Plain: Copy + Send + Sync + 'static {
    /// The number in the bytes at the beginning of `bytes`, which are enough.
    fn read(bytes: &[u8]) -> Self;
    /// Append the bytes of the number.
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl Plain for $kind {
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(*bytes.first_chunk().expect("a chunk of this size"))
            }

            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

plain!(u8, u32, u64);

/// An array that never changes; to clone it costs nothing.
pub(crate) struct Column<T: 'static> {
    /// What `owner` keeps alive: never handed out for longer than `self` lives.
    items: &'static [T],
    owner: Arc<dyn Send + Sync>,
}

impl<T: Plain> Column<T> {
    /// Take over an array in memory.
    pub(crate) fn new(items: Vec<T>) -> Self {
        Self::owned(items, Vec::as_slice)
    }

    /// The array in these bytes of a map; `None` if they lie outside of it, or do not begin
    /// and end with a number in its place.
    ///
    /// Where numbers are stored the other way round, this is a copy.
    pub(crate) fn mapped(map: &Arc<Mmap>, range: Range<usize>) -> Option<Self> {
        let bytes = map.get(range)?;
        if cfg!(target_endian = "big") {
            return Self::copied(bytes);
        }
        // SAFETY: any bytes are a number; where none begins is left out, which is noticed below.
        let (before, items, after) = unsafe { bytes.align_to::<T>() };
        let whole = before.is_empty() && after.is_empty();
        let items: *const [T] = items;
        // SAFETY: the file stays mapped as long as its `Arc`, of which `Self` holds one, and a map
        // that only reads is never changed here. That nobody else writes into the file is demanded of
        // all users of the format; if somebody does, numbers change and nothing relies on them for
        // more than their own value.
        whole.then(|| Self { items: unsafe { &*items }, owner: Arc::clone(map) as _ })
    }

    /// A copy of the array in these bytes; `None` if they end within a number.
    fn copied(bytes: &[u8]) -> Option<Self> {
        let chunks = bytes.chunks_exact(size_of::<T>());
        let whole = chunks.remainder().is_empty();
        whole.then(|| Self::new(chunks.map(T::read).collect()))
    }

    /// The bytes of the array, as a file holds them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size_of_val(self.items));
        self.iter().for_each(|number| number.write(&mut bytes));
        bytes
    }
}

impl<T> Column<T> {
    /// Take over what holds an array that it never changes or moves.
    fn owned<O: Send + Sync + 'static>(owner: O, items: fn(&O) -> &[T]) -> Self {
        let owner = Arc::new(owner);
        let items: *const [T] = items(&owner);
        // SAFETY: the owner is never changed or moved out of its `Arc`, of which `Self` holds one.
        Self { items: unsafe { &*items }, owner }
    }
}

impl Column<u64> {
    /// Take over words in memory.
    pub(crate) fn of_words(words: Words) -> Self {
        Self::owned(words, Words::as_slice)
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.items
    }
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        Self { items: self.items, owner: Arc::clone(&self.owner) }
    }
}

impl<T: PartialEq> PartialEq for Column<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} numbers", self.items.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapMut;

    fn map(bytes: &[u8]) -> Arc<Mmap> {
        let mut map = MmapMut::map_anon(bytes.len()).unwrap();
        map.copy_from_slice(bytes);
        Arc::new(map.make_read_only().unwrap())
    }

    #[test]
    fn both_kinds_are_the_same_and_outlive_where_they_come_from() {
        let bytes: Vec<u8> = (0..64).collect();
        let map = map(&bytes);
        let mapped = Column::<u32>::mapped(&map, 8..24).unwrap();
        let copied = Column::<u32>::copied(&bytes[8..24]).unwrap();
        drop(map);
        assert_eq!(*mapped, [0x0B0A_0908, 0x0F0E_0D0C, 0x1312_1110, 0x1716_1514]);
        let clone = mapped.clone();
        assert!(mapped == copied);
        drop(mapped);
        assert_eq!(clone.to_bytes(), bytes[8..24]);
        assert_eq!(Column::new(vec![1_u64, 2])[1], 2);
    }

    #[test]
    fn what_is_out_of_place_is_no_array() {
        let map = map(&[0; 64]);
        assert!(Column::<u64>::mapped(&map, 0..64).is_some());
        assert!(Column::<u64>::mapped(&map, 0..0).is_some());
        let [empty, beyond] = [64..64, 64..72];
        assert!(Column::<u64>::mapped(&map, empty).is_some());
        for wrong in [4..12, 0..12, 56..72, beyond, 0..usize::MAX] {
            assert!(Column::<u64>::mapped(&map, wrong.clone()).is_none(), "{wrong:?}");
        }
        assert!(Column::<u64>::copied(&[0; 12]).is_none());
    }
}
