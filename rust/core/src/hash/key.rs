//! A short pretoken as a number, by which tables of pretokens are indexed.
//!
//! Most pretokens are shorter than 16 bytes. Such a pretoken and its length fit two words, so
//! comparing and hashing it takes a few instructions, whatever its length.

use std::ops::Range;

/// Longer pretokens (in bytes) have no key.
pub(crate) const MAX_KEY_BYTES: usize = 15;

/// Odd numbers with random bits.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
const OTHER_ODD: u64 = 0xC2B2_AE3D_27D4_EB4F;

/// The key of a longer pretoken depends on this many bytes.
const HASHED_BYTES: usize = 128;

/// A pretoken of at most [`MAX_KEY_BYTES`] bytes as two words, with its length in the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
// `key_batch` writes the two words in this order.
#[repr(C)]
pub(crate) struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// The key of the pretoken at `range`, which has at most [`MAX_KEY_BYTES`] bytes.
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

    /// The key of the pretoken at `range`. Pretokens longer than [`MAX_KEY_BYTES`] may share a key.
    #[expect(clippy::inline_always, reason = "for each pretoken that is encoded")]
    #[inline(always)]
    pub(crate) fn of(text: &[u8], range: Range<usize>) -> Self {
        if range.end - range.start <= MAX_KEY_BYTES {
            Self::new(text, range)
        } else {
            Self::of_long(&text[range])
        }
    }

    /// The key of a token. That of a token longer than [`MAX_KEY_BYTES`] is a hash of all its bytes,
    /// which other bytes may share, but no shorter ones.
    #[inline]
    pub(crate) fn of_token(text: &[u8], range: Range<usize>) -> Self {
        if range.end - range.start <= MAX_KEY_BYTES {
            Self::new(text, range)
        } else {
            Self { low: hash_bytes(&text[range]), high: u64::MAX }
        }
    }

    /// The key of a longer pretoken, which others may share.
    #[cold]
    fn of_long(text: &[u8]) -> Self {
        // The length is 0, which no pretoken with an exact key has.
        Self { low: hash_bytes(&text[..text.len().min(HASHED_BYTES)]), high: u64::MAX >> 8 }
    }

    /// The key with these words.
    pub(crate) fn of_words(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The two words. The upper four bits of the second are zero, but not the whole word.
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

    /// A hash that depends on all bits of the key, most of all in its upper bits.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        fold(self.low ^ ODD, self.high ^ OTHER_ODD)
    }
}

/// A hash of any bytes, eight at a time. Files depend on it.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let add = |hash, word| fold(hash ^ u64::from_le_bytes(word), ODD);
    let (words, rest) = bytes.as_chunks();
    let hash = words.iter().fold(bytes.len() as u64, |hash, &word| add(hash, word));
    if rest.is_empty() {
        return hash;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    add(hash, last)
}

/// A hash of a number, most of all in its upper bits.
#[inline]
pub(crate) fn hash_number(number: u64) -> u64 {
    fold(number ^ ODD, OTHER_ODD)
}

/// The exclusive or of the two halves of a product.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a product")]
    let folded = (product as u64) ^ (product >> 64) as u64;
    folded
}

/// Masks of the lower bytes of a word, by their number.
static MASKS: [u128; 16] = {
    let mut masks = [0; 16];
    let mut length = 1;
    while length < 16 {
        masks[length] = u128::MAX >> (128 - 8 * length);
        length += 1;
    }
    masks
};

/// The last bytes of a text as a word; fewer than 16. In a short message, this makes one key in
/// five.
#[inline]
fn last(text: &[u8], count: usize) -> u128 {
    let chunk = text.last_chunk::<16>().map_or_else(|| padded(text), |chunk| *chunk);
    #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
    let before = (text.len().min(16) - count) as u32;
    u128::from_le_bytes(chunk).unbounded_shr(8 * before)
}

/// A text shorter than 16 bytes, padded with zeros.
#[cold]
fn padded(text: &[u8]) -> [u8; 16] {
    let mut chunk = [0; 16];
    chunk[..text.len()].copy_from_slice(text);
    chunk
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_tell_pretokens_apart() {
        let text = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let keys: Vec<Key> =
            (1..=MAX_KEY_BYTES).map(|length| Key::new(text, 2..2 + length)).collect();
        for (length, &one) in (1..).zip(&keys) {
            let mut bytes = Vec::new();
            one.write(&mut bytes);
            assert_eq!(bytes, text[2..2 + length]);
            assert_eq!(one, Key::new(&text[..length], 0..length), "what follows does not matter");
            assert_eq!(keys.iter().filter(|&&other| other == one).count(), 1);
        }
    }

    proptest! {
        /// The key depends on the bytes alone, not on the text around them.
        #[test]
        fn surrounding_text_does_not_matter(
            text in prop::collection::vec(any::<u8>(), 0..40),
            start in 0usize..40,
            length in 0..=MAX_KEY_BYTES,
        ) {
            let start = start.min(text.len());
            let end = text.len().min(start + length);
            let mut alone = text[start..end].to_vec();
            alone.resize(64, 0);
            prop_assert_eq!(Key::new(&text, start..end), Key::new(&alone, 0..end - start));
        }
    }
}
