//! Where no token goes on from one character to the next.
//!
//! A merge makes a token, so where no token of the vocabulary crosses the border between two
//! characters, no merge does, and what stands on both sides is merged alone: a pretoken may be cut
//! there without changing its ids. Long pretokens of Chinese or Thai, where words are not divided
//! by spaces, fall into short pieces that occur again and again; a pretoken as a whole hardly ever
//! does.
//!
//! What is looked up may say "perhaps crossed" of a border that no token crosses, never the other
//! way round. Only borders before characters beyond ASCII are looked at: within words of ASCII
//! letters there is hardly a pair of letters that no token holds.

use std::ops::Range;

use crate::error::Result;
use crate::machine::array::Array;
use crate::machine::prefetch::prefetch;
use crate::memory;
use crate::vocabulary::Vocabulary;

/// The filter of pairs of characters has so many bits for each id, and of these the next power of
/// two between a least and a most. Vocabularies hold up to some hundred thousand pairs.
const BITS_AN_ID: usize = 16;
const LEAST_BITS: usize = 1 << 12;
const MOST_BITS: usize = 1 << 21;

/// So many bytes are looked at together.
const RUN: usize = 64;

/// The bits of so many borders are asked for together.
const AHEAD: usize = 16;

/// A bit for each pair of bytes, in words.
const PARTS: usize = 1 << 10;

/// Which borders tokens cross.
#[derive(Debug, Clone)]
pub(crate) struct SplitPoints {
    /// First a bit for each last byte before a border and first byte behind it: tokens that begin
    /// or end within one of the two characters. Then a bit for the hash of each pair of whole
    /// characters that stands in a token; a power of two.
    bits: Array<u64>,
    /// So many bits of the hash of a pair are not used.
    shift: u32,
}

impl SplitPoints {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let filter = (vocabulary.len() * BITS_AN_ID).next_power_of_two();
        let mut bits: Vec<u64> = memory::zeros(PARTS + filter.clamp(LEAST_BITS, MOST_BITS) / 64)?;
        let shift = shift(bits.len());
        for (token, _) in vocabulary.ordinary_tokens() {
            for at in (1..token.len()).filter(|&at| is_border(token[at])) {
                let bit = pair_before_and_at(token, at)
                    .map_or_else(|| part(token, at), |pair| place(pair, shift));
                bits[bit >> 6] |= 1 << (bit & 63);
            }
        }
        Ok(Self { bits: Array::new(bits), shift })
    }

    /// The bits in a file; `None` if they are not as many as there can be.
    pub(crate) fn from_array(bits: Array<u64>) -> Option<Self> {
        let whole = bits.len().checked_sub(PARTS).is_some_and(usize::is_power_of_two);
        whole.then(|| Self { shift: shift(bits.len()), bits })
    }

    /// The bits, as a file holds them.
    pub(crate) fn array(&self) -> &Array<u64> {
        &self.bits
    }

    #[inline]
    fn has(&self, bit: usize) -> bool {
        self.bits[bit >> 6] >> (bit & 63) & 1 != 0
    }

    /// Where the pieces of a text end, which is UTF-8: at all borders that no token crosses, and at
    /// its own end.
    pub(crate) fn ends<'a>(&'a self, text: &'a [u8]) -> SectionEnds<'a> {
        let last = (!text.is_empty()).then(|| Character::at(text, 0));
        SectionEnds { borders: self, text, last, few: [(0, 0); AHEAD], waiting: 0..0 }
    }
}

/// The ends of the pieces of a text.
pub(crate) struct SectionEnds<'a> {
    borders: &'a SplitPoints,
    text: &'a [u8],
    /// The character behind the last border that was seen; `None` behind the end.
    last: Option<Character>,
    /// Split points with their bits, whose memory was prefetched.
    few: [(usize, usize); AHEAD],
    /// Which of these are still to be looked at.
    waiting: Range<usize>,
}

impl Iterator for SectionEnds<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            if self.waiting.is_empty() {
                self.see();
            }
            let (at, bit) = self.few[self.waiting.next()?];
            if at == self.text.len() || !self.borders.has(bit) {
                return Some(at);
            }
        }
    }
}

impl SectionEnds<'_> {
    /// See the next few borders, or the end.
    fn see(&mut self) {
        let Self { borders, text, last, few, waiting } = self;
        let mut count = 0;
        while count < AHEAD
            && let Some(before) = *last
        {
            let at = next_border(text, before.end);
            if at == text.len() {
                (few[count], *last) = ((at, 0), None);
                count += 1;
                break;
            }
            // Between borders there is ASCII.
            let left = if at == before.end { before.number } else { u32::from(text[at - 1]) };
            let right = Character::at(text, at);
            let bit = place(pair(left, right.number), borders.shift);
            prefetch(&borders.bits, bit >> 6);
            (few[count], *last) = ((at, bit), Some(right));
            // If a token may cross, whatever that bit says, the next border takes this place.
            count += usize::from(!borders.has(part(text, at)));
        }
        *waiting = 0..count;
    }
}

/// A character as a number, and where it ends.
#[derive(Debug, Clone, Copy)]
struct Character {
    number: u32,
    end: usize,
}

impl Character {
    /// The one that begins at a place of some UTF-8.
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

/// Whether a byte begins a character beyond ASCII.
#[inline]
fn is_border(byte: u8) -> bool {
    byte >= 0xC0
}

/// The first border from a place on, or the end of the text: mostly one of the next few places, or
/// else far, so then many are looked at together.
#[inline]
fn next_border(text: &[u8], start: usize) -> usize {
    let find = |start: usize, end: usize| (start..end).find(|&at| is_border(text[at]));
    let near = text.len().min(start + 4);
    find(start, near).unwrap_or_else(|| {
        let highest = |bytes: &[u8; RUN]| bytes.iter().fold(0, |highest, &byte| byte.max(highest));
        let runs = text[near..].as_chunks().0.iter();
        let without = RUN * runs.take_while(|&run| !is_border(highest(run))).count();
        find(near + without, text.len()).unwrap_or(text.len())
    })
}

/// The bit of the two bytes at a border.
#[inline]
fn part(text: &[u8], at: usize) -> usize {
    usize::from(text[at - 1]) << 8 | usize::from(text[at])
}

/// The characters before and behind a border, as one number, if both are whole.
#[inline]
fn pair_before_and_at(text: &[u8], at: usize) -> Option<u64> {
    character_before(text, at).zip(character_at(text, at)).map(|(left, right)| pair(left, right))
}

/// Two characters as one number.
#[inline]
fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// The character that ends before `at`, as a number, if it is whole.
#[inline]
fn character_before(text: &[u8], at: usize) -> Option<u32> {
    let start = (at.saturating_sub(4)..at).rev().find(|&start| text[start] & 0xC0 != 0x80)?;
    (length(text[start]) == at - start).then(|| number(&text[start..at]))
}

/// The character that begins at `at`, as a number, if it is whole.
#[inline]
fn character_at(text: &[u8], at: usize) -> Option<u32> {
    let bytes = text.get(at..at + length(text[at]))?;
    bytes[1..].iter().all(|byte| byte & 0xC0 == 0x80).then(|| number(bytes))
}

/// How many bytes the character has that begins with this byte.
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

/// How many bits of a hash are too many for the pairs among so many words.
fn shift(words: usize) -> u32 {
    64 - (64 * (words - PARTS)).ilog2()
}

/// The bit of a pair of characters.
#[inline]
fn place(pair: u64, shift: u32) -> usize {
    let product = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = (product ^ product >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    64 * PARTS + usize::try_from(hash >> shift).expect("a small number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl SplitPoints {
        /// Whether a token may cross a border.
        fn is_crossed(&self, text: &[u8], at: usize) -> bool {
            let pair = pair_before_and_at(text, at).expect("characters are whole");
            self.has(part(text, at)) || self.has(place(pair, self.shift))
        }
    }

    /// Whether a token crosses a border, by looking at all of them at every place.
    fn crossed(vocabulary: &Vocabulary, text: &[u8], at: usize) -> bool {
        vocabulary.ordinary_tokens().any(|(token, _)| {
            (1..token.len()).any(|within| {
                let start = at.checked_sub(within);
                start.is_some_and(|start| text[start..].starts_with(token))
            })
        })
    }

    proptest! {
        /// No border is named that a token crosses; tokens are any bytes, cut out of text or not.
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
            let borders = SplitPoints::new(&vocabulary).unwrap();
            for end in borders.ends(bytes) {
                prop_assert!(end == bytes.len() || !crossed(&vocabulary, bytes, end));
            }
            let plain = (1..bytes.len()).filter(|&at| is_border(bytes[at]) && !borders.is_crossed(bytes, at));
            prop_assert!(borders.ends(bytes).eq(plain.chain([bytes.len()])));
        }
    }

    #[test]
    fn borders_that_no_token_crosses_are_found() {
        let tokens = ["中文", "é", "字"].map(|token| token.as_bytes().to_vec());
        let bytes = (0..=255).map(|byte| vec![byte]);
        let all = bytes.chain(tokens).zip(0u32..);
        let borders = SplitPoints::new(&Vocabulary::new(all, []).unwrap()).unwrap();
        let ends = |text: &str| borders.ends(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(ends("中文字中文é"), [6, 9, 15, 17]);
        assert_eq!(ends(&"中文字".repeat(20)).len(), 40);
        assert!(ends("").is_empty());
    }
}
