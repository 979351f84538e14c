//! Bytes that are kept until as many newer ones have come.
//!
//! What is kept has a position, counted in bytes since the beginning, so that whoever holds a
//! position can ask later and is told if it is gone.

use crate::pages;
use crate::prefetch::prefetch;

/// The last `MOST` bytes at most; empty, it has nothing.
#[derive(Debug, Default)]
pub(super) struct Ring<const MOST: usize> {
    /// The byte of a position stands at the rest of its division by `MOST`.
    bytes: Vec<u8>,
    /// The position of the next byte.
    end: usize,
}

impl<const MOST: usize> Ring<MOST> {
    /// Keep so many bytes, which `write` puts there; their position.
    pub(super) fn put(&mut self, length: usize, write: impl FnOnce(&mut [u8])) -> usize {
        if self.end % MOST + length > MOST {
            self.end = self.end.next_multiple_of(MOST);
        }
        let (position, start) = (self.end, self.end % MOST);
        if self.bytes.len() < start + length {
            self.grow(start + length);
        }
        write(&mut self.bytes[start..start + length]);
        self.end += length;
        position
    }

    /// Have so many bytes. What does not fit a small allocation gets room for all there will be; memory
    /// that is not touched costs nothing.
    fn grow(&mut self, length: usize) {
        if length > self.bytes.capacity() && length > MOST / 16 {
            let few = std::mem::replace(&mut self.bytes, pages::room(MOST));
            self.bytes.extend_from_slice(&few);
        }
        self.bytes.resize(length, 0);
    }

    /// Bring the first bytes that were put at a position.
    #[inline]
    pub(super) fn prefetch(&self, position: usize) {
        prefetch(&self.bytes, position % MOST);
    }

    /// The bytes that were put at a position, if they are still there.
    #[inline]
    pub(super) fn get(&self, position: usize, length: usize) -> Option<&[u8]> {
        let start = position % MOST;
        (self.end - position <= MOST).then(|| &self.bytes[start..start + length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is there is what was put there, and the newest is there.
        #[test]
        fn it_forgets_the_oldest(lengths in prop::collection::vec(1usize..20, 1..60)) {
            let mut ring = Ring::<64>::default();
            let mut put = Vec::new();
            for (value, length) in (0u8..).zip(lengths) {
                put.push((ring.put(length, |room| room.fill(value)), length, value));
                let mut gone = false;
                for &(position, length, value) in put.iter().rev() {
                    match ring.get(position, length) {
                        Some(bytes) => prop_assert!(!gone && bytes == vec![value; length]),
                        None => gone = true,
                    }
                }
                prop_assert!(ring.get(position_of_last(&put), length).is_some());
                prop_assert!(ring.bytes.len() <= 64);
            }
        }
    }

    fn position_of_last(put: &[(usize, usize, u8)]) -> usize {
        put.last().expect("one was put").0
    }
}
