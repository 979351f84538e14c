//! Counts the characters of UTF-8 without decoding: it counts their first bytes.

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
    use super::*;
    use proptest::prelude::*;

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
