//! Finds the points between characters that no token crosses.
//!
//! Each merge creates a token, so if no token of the vocabulary crosses the point between two
//! characters, no merge crosses it either, and both sides merge independently: cutting a pretoken
//! there does not change its ids. Chinese and Thai do not separate words by spaces, so their
//! pretokens are long and rarely repeat; the short sections between split points repeat often.
//!
//! The filter may report "perhaps crossed" for a point that no token crosses, never the reverse.
//! Only points before non-ASCII characters are considered: nearly every pair of ASCII letters
//! occurs in some token.

use std::ops::Range;

use crate::error::Result;
use crate::machine::array::Array;
use crate::machine::simd::prefetch;
use crate::memory;
use crate::vocabulary::Vocabulary;

/// Bits for each id in the filter of character pairs; its size is rounded up to a power of two and
/// clamped. Vocabularies contain up to a few hundred thousand pairs.
const BITS_PER_ID: usize = 16;
const MIN_BITS: usize = 1 << 12;
const MAX_BITS: usize = 1 << 21;

/// The number of bytes that are scanned at once.
const RUN_BYTES: usize = 64;

/// The number of points whose filter bits are prefetched together.
const PREFETCHED_POINTS: usize = 16;

/// The number of words of the byte filter, which has one bit for each pair of bytes.
const BYTE_FILTER: usize = 1 << 10;

/// A filter for the points that tokens cross.
#[derive(Debug, Clone)]
pub(crate) struct SplitPoints {
    /// First the byte filter, for tokens that start or end within one of the two characters at a
    /// point: a bit for each pair of the last byte before and the first byte after the point. Then
    /// the character filter, whose number of bits is a power of two: the hash of each pair of whole
    /// characters in a token selects a bit.
    pub(crate) bits: Array<u64>,
    /// The number of low hash bits that are dropped.
    shift: u32,
}

impl SplitPoints {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let filter = (vocabulary.len() * BITS_PER_ID).next_power_of_two();
        let mut bits: Vec<u64> =
            memory::zeros(BYTE_FILTER + filter.clamp(MIN_BITS, MAX_BITS) / 64)?;
        let shift = shift(bits.len());
        for (token, _) in vocabulary.ordinary_tokens() {
            for at in (1..token.len()).filter(|&at| is_point(token[at])) {
                let bit = pair_before_and_at(token, at)
                    .map_or_else(|| byte_bit(token, at), |pair| character_bit(pair, shift));
                bits[bit >> 6] |= 1 << (bit & 63);
            }
        }
        Ok(Self { bits: Array::new(bits), shift })
    }

    /// The filter in an array from a file; `None` if its size is invalid.
    pub(crate) fn from_array(bits: Array<u64>) -> Option<Self> {
        let is_valid = bits.len().checked_sub(BYTE_FILTER).is_some_and(usize::is_power_of_two);
        is_valid.then(|| Self { shift: shift(bits.len()), bits })
    }

    #[inline]
    fn has(&self, bit: usize) -> bool {
        self.bits[bit >> 6] >> (bit & 63) & 1 != 0
    }

    /// The ends of the sections of UTF-8 text: all points that no token crosses, and the end of the
    /// text.
    pub(crate) fn ends<'a>(&'a self, text: &'a [u8]) -> SectionEnds<'a> {
        let last = (!text.is_empty()).then(|| Character::at(text, 0));
        SectionEnds { points: self, text, last, batch: [(0, 0); PREFETCHED_POINTS], pending: 0..0 }
    }
}

/// The ends of the sections of a text.
pub(crate) struct SectionEnds<'a> {
    points: &'a SplitPoints,
    text: &'a [u8],
    /// The character after the last point that was read; `None` at the end.
    last: Option<Character>,
    /// Points and the indices of their filter bits, which were prefetched.
    batch: [(usize, usize); PREFETCHED_POINTS],
    /// The entries of `batch` that have not been checked yet.
    pending: Range<usize>,
}

impl Iterator for SectionEnds<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            if self.pending.is_empty() {
                self.read_ahead();
            }
            let (at, bit) = self.batch[self.pending.next()?];
            if at == self.text.len() || !self.points.has(bit) {
                return Some(at);
            }
        }
    }
}

impl SectionEnds<'_> {
    /// Read the next batch of points, or the end, and prefetch their filter bits.
    fn read_ahead(&mut self) {
        let Self { points, text, last, batch, pending } = self;
        let mut count = 0;
        while count < PREFETCHED_POINTS
            && let Some(before) = *last
        {
            let at = next_point(text, before.end);
            if at == text.len() {
                (batch[count], *last) = ((at, 0), None);
                count += 1;
                break;
            }
            // All other characters between two points are ASCII.
            let left = if at == before.end { before.number } else { u32::from(text[at - 1]) };
            let right = Character::at(text, at);
            let bit = character_bit(pair(left, right.number), points.shift);
            prefetch(&points.bits, bit >> 6);
            (batch[count], *last) = ((at, bit), Some(right));
            // If a token may cross according to the byte filter, the next point overwrites this
            // entry.
            count += usize::from(!points.has(byte_bit(text, at)));
        }
        *pending = 0..count;
    }
}

/// A character as a number, and its end.
#[derive(Debug, Clone, Copy)]
struct Character {
    number: u32,
    end: usize,
}

impl Character {
    /// The character that starts at `at` in UTF-8.
    #[inline]
    fn at(text: &[u8], at: usize) -> Self {
        let end = at + length(text[at]);
        let number = match text[at..].first_chunk() {
            Some(four) => u32::from_be_bytes(*four) >> (32 - 8 * (end - at)),
            None => number(&text[at..end]),
        };
        Self { number, end }
    }
}

/// Whether a byte starts a non-ASCII character.
#[inline]
fn is_point(byte: u8) -> bool {
    byte >= 0xC0
}

/// The next point from `start` on, or the end of the text. It is usually either within a few bytes
/// or far away, so after a few bytes, whole blocks are scanned.
#[inline]
fn next_point(text: &[u8], start: usize) -> usize {
    let find = |start: usize, end: usize| (start..end).find(|&at| is_point(text[at]));
    let close = text.len().min(start + 4);
    find(start, close).unwrap_or_else(|| {
        let highest =
            |bytes: &[u8; RUN_BYTES]| bytes.iter().fold(0, |highest, &byte| byte.max(highest));
        let runs = text[close..].as_chunks().0.iter();
        let without = RUN_BYTES * runs.take_while(|&run| !is_point(highest(run))).count();
        find(close + without, text.len()).unwrap_or(text.len())
    })
}

/// The bit of the two bytes at a point, in the byte filter.
#[inline]
fn byte_bit(text: &[u8], at: usize) -> usize {
    usize::from(text[at - 1]) << 8 | usize::from(text[at])
}

/// The characters before and after a point, as one number, if both are complete.
#[inline]
fn pair_before_and_at(text: &[u8], at: usize) -> Option<u64> {
    character_before(text, at).zip(character_at(text, at)).map(|(left, right)| pair(left, right))
}

/// Two characters as one number.
#[inline]
fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// The character that ends before `at`, as a number, if it is complete.
#[inline]
fn character_before(text: &[u8], at: usize) -> Option<u32> {
    let start = (at.saturating_sub(4)..at).rev().find(|&start| text[start] & 0xC0 != 0x80)?;
    (length(text[start]) == at - start).then(|| number(&text[start..at]))
}

/// The character that starts at `at`, as a number, if it is complete.
#[inline]
fn character_at(text: &[u8], at: usize) -> Option<u32> {
    let bytes = text.get(at..at + length(text[at]))?;
    bytes[1..].iter().all(|byte| byte & 0xC0 == 0x80).then(|| number(bytes))
}

/// The length in bytes of the character that starts with this byte.
#[inline]
fn length(first: u8) -> usize {
    match first {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

#[inline]
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// The number of hash bits to drop for a filter of this many words.
fn shift(words: usize) -> u32 {
    64 - (64 * (words - BYTE_FILTER)).ilog2()
}

/// The bit of a pair of characters, in the character filter.
#[inline]
fn character_bit(pair: u64, shift: u32) -> usize {
    let product = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = (product ^ product >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    64 * BYTE_FILTER + usize::try_from(hash >> shift).expect("a small number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl SplitPoints {
        /// Whether a token may cross a point according to the filter.
        fn is_crossed(&self, text: &[u8], at: usize) -> bool {
            let pair = pair_before_and_at(text, at).expect("characters are whole");
            self.has(byte_bit(text, at)) || self.has(character_bit(pair, self.shift))
        }
    }

    /// Whether a token crosses a point, by comparing all tokens at every position.
    fn crossed(vocabulary: &Vocabulary, text: &[u8], at: usize) -> bool {
        vocabulary.ordinary_tokens().any(|(token, _)| {
            (1..token.len()).any(|within| {
                let start = at.checked_sub(within);
                start.is_some_and(|start| text[start..].starts_with(token))
            })
        })
    }

    proptest! {
        /// No token crosses a point that is returned; tokens are arbitrary bytes and substrings of
        /// the text.
        #[test]
        fn no_token_crosses_a_cut(
            text in "[a中文字éя😀😁 ]{1,40}",
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 1..8usize), 0..6),
            others in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..5), 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
            tokens.extend(others);
            for (index, length) in cuts {
                let start = index.index(bytes.len());
                tokens.push(bytes[start..bytes.len().min(start + length)].to_vec());
            }
            let mut seen = std::collections::HashSet::new();
            tokens.retain(|token| seen.insert(token.clone()));
            let vocabulary = Vocabulary::new(tokens.into_iter().zip(0u32..), []).unwrap();
            let points = SplitPoints::new(&vocabulary).unwrap();
            for end in points.ends(bytes) {
                prop_assert!(end == bytes.len() || !crossed(&vocabulary, bytes, end));
            }
            let plain = (1..bytes.len()).filter(|&at| is_point(bytes[at]) && !points.is_crossed(bytes, at));
            prop_assert!(points.ends(bytes).eq(plain.chain([bytes.len()])));
        }
    }

    #[test]
    fn points_that_no_token_crosses_are_found() {
        let tokens = ["中文", "é", "字"].map(|token| token.as_bytes().to_vec());
        let bytes = (0..=255).map(|byte| vec![byte]);
        let all = bytes.chain(tokens).zip(0u32..);
        let points = SplitPoints::new(&Vocabulary::new(all, []).unwrap()).unwrap();
        let ends = |text: &str| points.ends(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(ends("中文字中文é"), [6, 9, 15, 17]);
        assert_eq!(ends(&"中文字".repeat(20)).len(), 40);
        assert!(ends("").is_empty());
    }
}
