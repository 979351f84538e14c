//! Skips text in which no pretoken ends, testing 16 bytes at once.
//!
//! Patterns of superwords keep letters, single spaces and single punctuation marks together
//! (*plain* text). In plain text, the state depends only on the last byte, so the table is not
//! needed: a loop without lookups finds the end of the plain text, and the last byte determines the
//! state there.

use crate::pretokenize::table::automaton::{EMIT, FLAG_BITS, MATCH, STOP};

/// Bytes that are tested at once.
const BLOCK_BYTES: usize = 16;

/// After an attempt to skip, this many bytes are looked up in the table before the next attempt.
pub(super) const STRIDE_BYTES: usize = 4;

/// The kinds of plain bytes: letters, the space, and punctuation marks except the slash, which
/// belongs to line ends in many patterns.
const LETTER: usize = 0;
const SPACE: usize = 1;
const MARK: usize = 2;

/// The rows of an automaton in plain text.
#[derive(Debug)]
pub(super) struct Skip {
    /// The row after a byte of each kind.
    rows: [usize; 3],
    /// By the kinds of two adjacent bytes: whether a match ends between them.
    matched: [[bool; 3]; 3],
}

impl Skip {
    /// `None` if the last byte does not determine the state in plain text.
    pub(super) fn new(ascii: &[u8; 128], entries: &[u32], first: usize) -> Option<Self> {
        let classes = [b'a', b' ', b'.'].map(|byte| ascii[usize::from(byte)]);
        let has_class_of_kind = |byte: u8| match kind(byte) {
            Some(kind) => ascii[usize::from(byte)] == classes[kind],
            None => true,
        };
        if !(0..0x80).all(has_class_of_kind) {
            return None;
        }
        // One sample byte stands for its kind: all bytes of a kind have the same class.
        let entry = |row: usize, kind: usize| entries[row + usize::from(classes[kind])];
        let next = |row, kind| (entry(row, kind) >> FLAG_BITS) as usize;
        // The state after the first letter of a pretoken may differ from the state within a word.
        let letter = next(next(first, LETTER), LETTER);
        let rows = [letter, next(letter, SPACE), next(letter, MARK)];
        let mut matched = [[false; 3]; 3];
        for (before, at) in (0..9).map(|pair| (pair / 3, pair % 3)) {
            let transition = entry(rows[before], at);
            matched[before][at] = transition & MATCH != 0;
            let continues =
                transition & (EMIT | STOP) == 0 && (transition >> FLAG_BITS) as usize == rows[at];
            // Two spaces or two marks in sequence are not plain text.
            if !continues && (before != at || at == LETTER) {
                return None;
            }
        }
        Some(Self { rows, matched })
    }

    /// Skip plain text from `at` on; `row` is the row after the byte before `at`. Returns the next
    /// position, its row, and the end of the last match in the skipped text; `None` if nothing can
    /// be skipped or no match ends there.
    #[inline]
    pub(super) fn skip(&self, text: &[u8], at: usize, row: usize) -> Option<(usize, usize, usize)> {
        let before = at.checked_sub(1)?;
        if self.row_after(text[before]) != Some(row) {
            return None;
        }
        let mut last = before;
        // Blocks overlap by one byte: the last byte of a block is the one before the first of the
        // next.
        while let Some(block) = text[last..].first_chunk() {
            let plain = plain_bytes(block);
            last += plain;
            if plain < BLOCK_BYTES {
                break;
            }
        }
        let row = self.row_after(text[last]).filter(|_| last > before)?;
        // Searched backwards, the first end is that of the last match.
        let ends = |&end: &usize| {
            let kinds = kind(text[end - 1]).zip(kind(text[end]));
            kinds.is_some_and(|(before, at)| self.matched[before][at])
        };
        let end = (at..=last).rev().find(ends)?;
        Some((last + 1, row, end))
    }

    #[inline]
    fn row_after(&self, byte: u8) -> Option<usize> {
        kind(byte).map(|kind| self.rows[kind])
    }
}

/// The kind of a plain byte.
#[inline]
fn kind(byte: u8) -> Option<usize> {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => Some(LETTER),
        b' ' => Some(SPACE),
        b'/'..=b'9' => None,
        b'!'..=b'~' => Some(MARK),
        _ => None,
    }
}

/// The number of bytes after the first that continue plain text: plain bytes, without two spaces or
/// two marks in sequence. The first byte must be plain. There is no branch, so that the compiler
/// vectorizes the loop.
#[inline]
fn plain_bytes(block: &[u8; BLOCK_BYTES + 1]) -> usize {
    let mut is_end = [0; BLOCK_BYTES];
    for at in 0..BLOCK_BYTES {
        let (before, byte) = (block[at], block[at + 1]);
        let is_no_letter = |byte: u8| u8::from((byte | 0x20).wrapping_sub(b'a') >= 26);
        // Each subtraction wraps bytes below the range around to large numbers, so that one
        // comparison tests both ends. With bit 0x20 set, upper-case letters become lower-case ones.
        let is_other = u8::from(byte.wrapping_sub(b' ') > b'~' - b' ')
            | u8::from(byte.wrapping_sub(b'/') < 11);
        let is_same_kind = u8::from((before == b' ') == (byte == b' '));
        is_end[at] = is_other | is_no_letter(before) & is_no_letter(byte) & is_same_kind;
    }
    // Each byte is 0 or 1, so the lowest set bit is in the first byte that is 1. Without one, the
    // result is 128 / 8 = 16, the whole block.
    u128::from_le_bytes(is_end).trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn plain_bytes_are_counted_up_to_the_end_of_plain_text(
            block in prop::array::uniform17(
                prop::sample::select(b"aZz ., /09@`[{~\x7f\n\xc3".to_vec()),
            ),
        ) {
            let pairs = block.windows(2).map(|pair| (kind(pair[0]), kind(pair[1])));
            let continues = |pair: &_| matches!(
                *pair, (Some(before), Some(at)) if before != at || at == LETTER
            );
            if kind(block[0]).is_some() {
                prop_assert_eq!(plain_bytes(&block), pairs.take_while(continues).count());
            }
        }
    }
}
