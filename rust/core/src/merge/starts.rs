//! Where the parts of a long pretoken start: a bit for each position, and one for the end.
//!
//! Merging two parts clears the bit of the right one. The neighbours of a part are the nearest bits
//! that are set, which are found a word of 64 positions at a time.

/// A bit for each position where a part starts, and one for the end of the pretoken.
#[derive(Debug, Default)]
pub(crate) struct Starts(Vec<u64>);

impl Starts {
    /// No part starts anywhere in a pretoken of this many bytes; its end is set.
    pub(crate) fn clear(&mut self, bytes: usize) {
        self.0.clear();
        self.0.resize(bytes / 64 + 1, 0);
        self.insert(bytes);
    }

    /// A part starts at a position.
    #[inline]
    pub(crate) fn insert(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }

    /// No part starts at a position any more.
    #[inline]
    pub(crate) fn remove(&mut self, position: usize) {
        self.0[position / 64] &= !(1 << (position % 64));
    }

    /// The next start after a position, or the end.
    #[inline]
    pub(crate) fn next(&self, position: usize) -> Option<usize> {
        let mut word = (position + 1) / 64;
        // Clears the bits up to the position: after position 2, 0b101101 becomes 0b101000, whose lowest
        // bit is the next start. The bits of position 63 of a word continue in the next word.
        let mut bits = self.0.get(word)? & u64::MAX << ((position + 1) % 64);
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// The previous start before a position, if any.
    #[inline]
    pub(crate) fn before(&self, position: usize) -> Option<usize> {
        let mut word = position / 64;
        // Clears the bits from the position on: before position 3, 0b101101 becomes 0b101, whose highest
        // bit is the previous start.
        let mut bits = self.0[word] & !(u64::MAX << (position % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.0[word];
        }
        Some(word * 64 + 63 - bits.leading_zeros() as usize)
    }
}
