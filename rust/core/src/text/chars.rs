//! Counts characters in UTF-8, and finds surrogates: lone ones, and pairs that are one character.
//!
//! A `str` of Python and a string of JavaScript may hold halves of a pair. UTF-8 cannot, so a lone
//! one is an error where a corpus is read strictly, and becomes U+FFFD elsewhere. Two halves side
//! by side become their character, also where the string holds them as two units of four bytes.

use crate::error::Result;
use crate::memory;

/// The message about a lone surrogate, as JSON and Python write it.
///
/// ```
/// let message = bytepair::text::lone_surrogate(0xD83D);
/// assert_eq!(message, r"the text has the lone surrogate \ud83d, half of a character");
/// ```
pub fn lone_surrogate(code: u32) -> String {
    format!("the text has the lone surrogate \\u{code:04x}, half of a character")
}

/// A surrogate, or two that are one character.
struct Surrogate {
    /// The index of its first unit.
    at: usize,
    code: u32,
    is_pair: bool,
}

/// The surrogates among units, in order.
fn surrogates<U: Copy + Into<u32>>(units: &[U]) -> impl Iterator<Item = Surrogate> {
    let unit = |at: usize| units.get(at).map_or(0, |&unit| unit.into());
    let mut next = 0;
    std::iter::from_fn(move || {
        let rest = units.get(next..)?;
        let at = next + rest.iter().position(|&unit| (0xD800..0xE000).contains(&unit.into()))?;
        let is_pair = unit(at) < 0xDC00 && (0xDC00..0xE000).contains(&unit(at + 1));
        next = at + 1 + usize::from(is_pair);
        Some(Surrogate { at, code: unit(at), is_pair })
    })
}

/// The first lone surrogate among units: its index and its code.
pub(super) fn first_lone<U: Copy + Into<u32>>(units: &[U]) -> Option<(usize, u32)> {
    surrogates(units)
        .find(|surrogate| !surrogate.is_pair)
        .map(|surrogate| (surrogate.at, surrogate.code))
}

/// The characters that are two units: the index of each among the characters of the text.
pub(super) fn pairs<U: Copy + Into<u32>>(units: &[U]) -> Result<Vec<i64>> {
    let starts =
        surrogates(units).filter(|surrogate| surrogate.is_pair).map(|surrogate| surrogate.at);
    let indices = starts.zip(0..).map(|(at, before)| at - before);
    memory::collect(indices.map(|index| i64::try_from(index).unwrap_or(i64::MAX)))
}

/// The largest number of bytes for which a sum of one byte cannot overflow. Such a sum is
/// vectorized.
const BLOCK_BYTES: usize = u8::MAX as usize;

/// Whether a byte of UTF-8 is the first one of a character.
///
/// ```
/// let starts: Vec<bool> = "aé".bytes().map(bytepair::text::starts_char).collect();
/// assert_eq!(starts, [true, true, false]);
/// ```
pub fn starts_char(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// The number of characters that start in some bytes of UTF-8.
///
/// ```
/// assert_eq!(bytepair::text::count_chars("café".as_bytes()), 4);
/// ```
pub fn count_chars(text: &[u8]) -> usize {
    text.chunks(BLOCK_BYTES).map(count_in_block).sum()
}

/// The number of bytes of the first `most` characters of a text in UTF-8, or of the whole text if
/// it has no more characters.
///
/// ```
/// assert_eq!(bytepair::text::first_chars("éaé".as_bytes(), 2), 3);
/// assert_eq!(bytepair::text::first_chars("éaé".as_bytes(), 9), 5);
/// ```
pub fn first_chars(text: &[u8], most: usize) -> usize {
    let mut left = most;
    for (index, block) in text.chunks(BLOCK_BYTES).enumerate() {
        let chars = count_in_block(block);
        if chars > left {
            let mut starts = block.iter().enumerate().filter(|(_, byte)| starts_char(**byte));
            // The first `left` characters end where the next one starts.
            let end = starts.nth(left).map_or(block.len(), |(at, _)| at);
            return index * BLOCK_BYTES + end;
        }
        left -= chars;
    }
    text.len()
}

/// [`count_chars`] of at most [`BLOCK_BYTES`] bytes.
pub(super) fn count_in_block(block: &[u8]) -> usize {
    debug_assert!(block.len() <= BLOCK_BYTES, "the sum has one byte");
    usize::from(block.iter().map(|&byte| u8::from(starts_char(byte))).sum::<u8>())
}

/// The blocks of a text for [`count_in_block`].
pub(super) fn blocks(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().chunks(BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The standard library finds the same characters and lone surrogates.
        #[test]
        fn equals_the_standard_library(
            units in prop::collection::vec(
                prop_oneof![Just(0x61u16), Just(0xD83D), Just(0xDE00), Just(0xE000)], 0..12,
            ),
        ) {
            let (mut at, mut lone, mut pairs) = (0, None, Vec::new());
            for (index, character) in char::decode_utf16(units.iter().copied()).enumerate() {
                match character {
                    Ok(character) if character.len_utf16() == 2 => {
                        pairs.push(i64::try_from(index).unwrap());
                        at += 2;
                    }
                    Ok(_) => at += 1,
                    Err(error) => {
                        lone = lone.or(Some((at, u32::from(error.unpaired_surrogate()))));
                        at += 1;
                    }
                }
            }
            let wide: Vec<u32> = units.iter().map(|&unit| u32::from(unit)).collect();
            prop_assert_eq!((first_lone(&units), first_lone(&wide)), (lone, lone));
            prop_assert_eq!(super::pairs(&units).unwrap(), pairs.clone());
            prop_assert_eq!(super::pairs(&wide).unwrap(), pairs);
        }
    }

    /// Texts shorter and longer than a block, with characters across its end.
    fn text() -> impl Strategy<Value = String> {
        let part = prop_oneof!["[ -~]{0,300}", "[aé中😀]{0,200}", "é{0,200}", "😀{0,99}"];
        prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn counts_equal_those_of_the_standard_library(text in text(), most in 0usize..900) {
            prop_assert_eq!(count_chars(text.as_bytes()), text.chars().count());
            for most in [0, 1, most, text.chars().count(), usize::MAX] {
                let plain = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
                prop_assert_eq!(first_chars(text.as_bytes(), most), plain);
            }
        }
    }
}
