//! A short pretoken as a number: what tables of pretokens are indexed by.
//!
//! Most pretokens are shorter than 16 bytes. Such a one fits two words together with its length, so
//! that comparing and hashing it takes a few instructions, however long it is.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;

/// Longer pretokens (in bytes) have no key.
pub(crate) const LONGEST: usize = 15;

/// Numbers whose bits look random.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
const OTHER_ODD: u64 = 0xC2B2_AE3D_27D4_EB4F;

/// How many bytes of a longer pretoken its name depends on.
const NAMED: usize = 128;

/// A pretoken of at most [`LONGEST`] bytes as two words, with its length in the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
// One word behind the other, as `keys` writes them.
#[repr(C)]
pub(crate) struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// The key of the pretoken at `range`, which has at most [`LONGEST`] bytes.
    #[inline]
    pub(crate) fn new(text: &[u8], range: Range<usize>) -> Self {
        let length = range.end - range.start;
        let rest = &text[range.start..];
        let word = match rest.first_chunk::<16>() {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => last(text, rest.len()),
        };
        let word = word & MASKS[length];
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
        let (low, high) = (word as u64, (word >> 64) as u64);
        Self { low, high: high | (length as u64) << 56 }
    }

    /// The key of the pretoken at `range`; a name that others may share if it is longer than
    /// [`LONGEST`].
    #[expect(clippy::inline_always, reason = "for each pretoken that is encoded")]
    #[inline(always)]
    pub(crate) fn of(text: &[u8], range: Range<usize>) -> Self {
        if range.end - range.start <= LONGEST {
            Self::new(text, range)
        } else {
            Self::of_long(&text[range])
        }
    }

    /// A name for a longer text, which other texts may share.
    #[cold]
    fn of_long(text: &[u8]) -> Self {
        let low = FixedState::default().hash_one(&text[..text.len().min(NAMED)]);
        Self { low, high: u64::MAX >> 4 }
    }

    /// The key with these words.
    pub(crate) fn of_words(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The two words. The upper four bits of the second are zero, and it is never zero as a whole.
    #[inline]
    pub(crate) fn words(self) -> (u64, u64) {
        (self.low, self.high)
    }

    /// Append the bytes of the pretoken.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let word = u128::from(self.low) | u128::from(self.high) << 64;
        let length = usize::from((self.high >> 56).to_le_bytes()[0]);
        out.extend_from_slice(&word.to_le_bytes()[..length]);
    }

    /// A place in a table that has 2 to the power of `64 - shift` places, in units: the high bits of a sum of
    /// products (multiply-shift; Thorup 2015, "High Speed Hashing for Integers and Strings"). Unlike
    /// [`hash`](Self::hash), vector instructions can do this for many keys at once.
    #[expect(
        clippy::inline_always,
        reason = "it must be compiled for the instructions of the caller"
    )]
    #[inline(always)]
    pub(crate) fn place<const UNIT: usize>(self, shift: u32) -> usize {
        let (low, high) = (self.low.wrapping_mul(ODD), self.high.wrapping_mul(OTHER_ODD));
        #[expect(clippy::cast_possible_truncation, reason = "tables fit memory")]
        let place = (low.wrapping_add(high) >> shift) as usize;
        place * UNIT
    }

    /// A number that depends on all bits of the key, the more so the higher its own bits.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        fold(self.low ^ ODD, self.high ^ OTHER_ODD)
    }
}

/// The two halves of a product, folded.
#[inline]
pub(crate) fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a product")]
    let folded = (product as u64) ^ (product >> 64) as u64;
    folded
}

/// The lower bytes of a word, by how many.
static MASKS: [u128; 16] = {
    let mut masks = [0; 16];
    let mut length = 1;
    while length < 16 {
        masks[length] = u128::MAX >> (128 - 8 * length);
        length += 1;
    }
    masks
};

/// The last bytes of a text as a word, fewer than 16 of them. A text of a message ends soon, so this is
/// done for every fifth of its pretokens.
#[inline]
fn last(text: &[u8], count: usize) -> u128 {
    let chunk = text.last_chunk::<16>().map_or_else(|| padded(text), |chunk| *chunk);
    #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
    let before = (text.len().min(16) - count) as u32;
    u128::from_le_bytes(chunk).unbounded_shr(8 * before)
}

/// A text shorter than 16 bytes, with zeros behind it.
#[cold]
fn padded(text: &[u8]) -> [u8; 16] {
    let mut chunk = [0; 16];
    chunk[..text.len()].copy_from_slice(text);
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_tell_pretokens_apart() {
        let text = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let keys: Vec<Key> = (1..=LONGEST).map(|length| Key::new(text, 2..2 + length)).collect();
        for (length, &one) in (1..).zip(&keys) {
            let mut bytes = Vec::new();
            one.write(&mut bytes);
            assert_eq!(bytes, text[2..2 + length]);
            assert_eq!(one, Key::new(&text[..length], 0..length), "what follows does not count");
            assert_eq!(keys.iter().filter(|&&other| other == one).count(), 1);
        }
    }

    proptest! {
        /// The key is that of the bytes, whatever is around them and wherever the text ends.
        #[test]
        fn what_is_around_does_not_count(
            text in prop::collection::vec(any::<u8>(), 0..40),
            start in 0usize..40,
            length in 0..=LONGEST,
        ) {
            let start = start.min(text.len());
            let end = text.len().min(start + length);
            let mut alone = text[start..end].to_vec();
            alone.resize(64, 0);
            prop_assert_eq!(Key::new(&text, start..end), Key::new(&alone, 0..end - start));
        }
    }
}
