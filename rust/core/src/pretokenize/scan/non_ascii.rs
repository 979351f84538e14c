//! Classifies the non-ASCII characters of a block: a mask for each of their classes.
//!
//! The plain code decodes and looks up one character at a time. But most texts are in one script,
//! and the code points of a script are close together. Characters that differ only in their last
//! byte form a *row* of 64, and one instruction looks up all characters of a row. Consecutive rows
//! whose characters all have the same class, such as thousands of Chinese characters, are looked up
//! together. The rows of recent blocks are looked up first, independently of each other; usually
//! they contain all characters.

use crate::pretokenize::unicode::class_of;

/// The number of bytes that are classified together.
pub(super) const BLOCK_BYTES: usize = 64;

/// The bytes of each class. Bytes after the last complete character are only in `high` and
/// `continuation`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) upper: u64,
    pub(super) lower: u64,
    /// Letters without case.
    pub(super) uncased: u64,
    pub(super) mark: u64,
    pub(super) number: u64,
    /// White space other than newlines.
    pub(super) space: u64,
    pub(super) newline: u64,
    /// The character U+0020; its bytes are also in `space`.
    pub(super) blank: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Bytes that are not ASCII.
    pub(super) high: u64,
    /// Bytes that continue a character.
    pub(super) continuation: u64,
    /// Bytes of complete characters.
    pub(super) valid: u64,
}

/// The classes of the characters that are not ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NonAscii {
    /// The bytes of complete characters, ASCII or not.
    pub(super) valid: u64,
    /// The bytes of the characters of each class, by the number of the class. The mask of class
    /// `Other` may be incomplete.
    pub(super) classes: [u64; 8],
}

/// Look up one character at a time. The bytes in `valid` are text. Its non-ASCII characters begin
/// at `leads`; the last one may be incomplete.
pub(super) fn one_by_one(block: &[u8; BLOCK_BYTES], mut leads: u64, valid: u64) -> NonAscii {
    let mut masks = NonAscii { valid, classes: [0; 8] };
    while leads != 0 {
        let at = leads.trailing_zeros() as usize;
        let (code_point, length) = decode(block, at);
        let bits = ((1 << length) - 1) << at;
        // Only the last character can be cut: by the end of the block, or by the end of the text in
        // it.
        if at + length > BLOCK_BYTES || bits & !valid != 0 {
            masks.valid = valid & !(u64::MAX << at);
            break;
        }
        masks.classes[class_of(code_point) as usize] |= bits;
        // Removes the lowest bit, the character that is done.
        leads &= leads - 1;
    }
    masks
}

/// The code point and length of the character at `at`. If the end of the block cuts the character,
/// the length is right and the code point is meaningless.
#[inline]
fn decode(block: &[u8; BLOCK_BYTES], at: usize) -> (u32, usize) {
    // The index wraps around at the end of the block instead of being checked.
    let byte = |index: usize| u32::from(block[(at + index) & (BLOCK_BYTES - 1)]);
    let tail = |index: usize| byte(index) & 0x3F;
    let code_point = match byte(0) {
        0xC0..=0xDF => return ((byte(0) & 0x1F) << 6 | tail(1), 2),
        0xE0..=0xEF => return ((byte(0) & 0x0F) << 12 | tail(1) << 6 | tail(2), 3),
        first => (first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
    };
    // Four bytes hold 21 bits, so bytes that are not UTF-8 could exceed the table of classes.
    (code_point.min(0x10_FFFF), 4)
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{RecentRows, row_by_row};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m512i, __mmask64, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epu8_mask, _mm512_cmple_epu8_mask,
        _mm512_loadu_si512, _mm512_mask_permutexvar_epi8, _mm512_set1_epi8, _mm512_setzero_si512,
    };

    use std::cell::Cell;

    use super::{BLOCK_BYTES, NonAscii, one_by_one};
    use crate::machine::simd::Avx512;
    use crate::pretokenize::unicode::{ROW, row};

    /// The most recent rows, which the next block looks up first.
    #[derive(Debug, Default)]
    pub(in super::super) struct RecentRows {
        rows: [Cell<usize>; 4],
        /// The index of the oldest entry.
        oldest: Cell<usize>,
    }

    impl RecentRows {
        #[inline]
        pub(super) fn record(&self, number: usize) {
            let oldest = self.oldest.get();
            self.rows[oldest].set(number);
            self.oldest.set((oldest + 1) % self.rows.len());
        }
    }

    /// Up to this number of characters, looking up one at a time is faster.
    const MAX_CHARACTERS_ONE_BY_ONE: u32 = 6;

    /// The same as [`one_by_one`]; the recent rows change only the time.
    #[expect(clippy::inline_always, reason = "compiled for the instructions of the caller")]
    #[expect(unsafe_code, reason = "vector instructions")]
    #[inline(always)]
    pub(in super::super) fn row_by_row(
        block: &[u8; BLOCK_BYTES],
        leads: u64,
        valid: u64,
        recent: &RecentRows,
        _: Avx512,
    ) -> NonAscii {
        // SAFETY: an `Avx512` proves that the processor has these instructions.
        unsafe { by_rows(block, leads, valid, recent) }
    }

    /// Look up all characters of a row together; or one at a time if they are few, or if the bytes
    /// are not UTF-8.
    #[expect(unsafe_code, reason = "loads of vectors")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
    fn by_rows(block: &[u8; BLOCK_BYTES], leads: u64, valid: u64, recent: &RecentRows) -> NonAscii {
        if leads.count_ones() <= MAX_CHARACTERS_ONE_BY_ONE {
            return one_by_one(block, leads, valid);
        }
        // SAFETY: a block has 64 bytes, and the load needs no alignment.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        let whole = whole(block, leads, valid);
        let from = |byte: u8| _mm512_cmpge_epu8_mask(bytes, set(byte));
        // The first bytes of characters, by length.
        let (all, three, four) =
            (leads & whole, leads & whole & from(0xE0), leads & whole & from(0xF0));
        let (two, three) = (all & !three, three & !four);
        let continuation = all << 1 | (three | four) << 2 | four << 3;
        // The lookups below find last bytes by the leads, so all bytes must be as the leads say.
        if continuation != from(0x80) & !from(0xC0) & whole {
            return one_by_one(block, leads, valid);
        }
        // `classes` gets the class of each character at its last byte; `left` has the leads of
        // those that were not looked up yet. Characters of four bytes are rare and have no rows.
        let (mut classes, mut left) = (_mm512_setzero_si512(), two | three);
        let look_up = |classes, in_row, number: usize| {
            let ends = (in_row & two) << 1 | (in_row & three) << 2;
            // SAFETY: a row has 64 bytes, and the load needs no alignment.
            let row = unsafe { _mm512_loadu_si512(row(number).as_ptr().cast()) };
            // The low bits of the last byte are the position in the row; the instruction ignores
            // the high bits.
            _mm512_mask_permutexvar_epi8(classes, ends, bytes, row)
        };
        // These lookups are independent of each other, unlike those below. A row without characters
        // in this block selects no bytes and changes nothing, so no branch is needed.
        for number in recent.rows.each_ref().map(Cell::get) {
            let in_row = left & SPANS[number].find(bytes);
            classes = look_up(classes, in_row, number);
            left &= !in_row;
        }
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            // The first character that is left chooses the row. Its second byte is in the block,
            // so the remainder changes nothing but saves a bounds check.
            let number = row_of(block[at], block[(at + 1) % BLOCK_BYTES]);
            let in_row = left & SPANS[number].find(bytes);
            // Not UTF-8, such as an overlong form: it would stay in `left` forever.
            if in_row & 1 << at == 0 {
                return one_by_one(block, leads, valid);
            }
            classes = look_up(classes, in_row, number);
            left &= !in_row;
            recent.record(number);
        }
        let mut masks = NonAscii { valid: whole, classes: [0; 8] };
        if four != 0 {
            masks = one_by_one(block, four, whole);
        }
        for class in 1..8u8 {
            // From the last byte of each character back to its others. `Other`, 0, needs no mask.
            let ends = _mm512_cmpeq_epi8_mask(classes, set(class));
            masks.classes[usize::from(class)] |= ends | ends >> 1 | (ends & three << 2) >> 2;
        }
        masks
    }

    /// The valid bytes without the last character, if it is incomplete.
    #[inline]
    fn whole(block: &[u8; BLOCK_BYTES], leads: u64, valid: u64) -> u64 {
        // The highest bit is the last character, and the ones at the top of a lead are its length.
        // There are leads: a block with few was not looked up by rows.
        let at = leads.ilog2() as usize;
        let length = block[at].leading_ones().min(4);
        let bits = ((1 << length) - 1) << at;
        let is_whole = at + length as usize <= BLOCK_BYTES && bits & !valid == 0;
        if is_whole { valid } else { valid & !(u64::MAX << at) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn set(byte: u8) -> __m512i {
        _mm512_set1_epi8(byte.cast_signed())
    }

    /// The number of rows of characters of two and three bytes.
    const ROWS: usize = 0x1_0000 / ROW;

    /// The row of a character of two or three bytes, from its first two bytes.
    #[inline]
    const fn row_of(lead: u8, next: u8) -> usize {
        let high = if lead < 0xE0 { 0 } else { (lead & 0x0F) as usize };
        let low = if lead < 0xE0 { lead & 0x1F } else { next & 0x3F };
        high << 6 | low as usize
    }

    /// For each row, the span of rows that are looked up together with it.
    static SPANS: [RowSpan; ROWS] = spans();

    /// Consecutive rows, as the first two bytes of their first and last characters.
    #[derive(Clone, Copy)]
    struct RowSpan {
        first: [u8; 2],
        last: [u8; 2],
    }

    impl RowSpan {
        /// A bit for the first byte of each character in these rows.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        fn find(self, bytes: __m512i) -> __mmask64 {
            let equals = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, set(byte));
            let from = |byte: u8| _mm512_cmpge_epu8_mask(bytes, set(byte));
            let to = |byte: u8| _mm512_cmple_epu8_mask(bytes, set(byte));
            let Self { first, last } = self;
            // The first two bytes are compared as one number: the first decides, and if it is
            // equal, the second. The shift moves the result for a second byte to the bit of its
            // lead.
            let not_before = from(first[0]) & (!equals(first[0]) | from(first[1]) >> 1);
            let not_after = to(last[0]) & (!equals(last[0]) | to(last[1]) >> 1);
            not_before & not_after
        }
    }

    /// Join consecutive rows if all their characters have one class and the same length in bytes.
    const fn spans() -> [RowSpan; ROWS] {
        let mut spans = [RowSpan { first: [0; 2], last: [0; 2] }; ROWS];
        let mut start = 0;
        while start < ROWS {
            let mut end = start + 1;
            // Characters of two and of three bytes are never in one span: the last byte has another
            // place.
            while end < ROWS
                && end != 0x800 / ROW
                && is_one_class(start)
                && is_one_class(end)
                && row(start)[0] == row(end)[0]
            {
                end += 1;
            }
            let span = RowSpan { first: bytes(start, 0x80), last: bytes(end - 1, 0xBF) };
            while start < end {
                spans[start] = span;
                start += 1;
            }
        }
        spans
    }

    /// Whether all characters of a row have one class.
    const fn is_one_class(number: usize) -> bool {
        let (row, mut at) = (row(number), 1);
        while at < ROW && row[at] == row[0] {
            at += 1;
        }
        at == ROW
    }

    /// The first two bytes of a character of a row. `last` is the last byte of the character; for a
    /// character of two bytes, it is the second.
    #[expect(clippy::cast_possible_truncation, reason = "a few bits")]
    const fn bytes(number: usize, last: u8) -> [u8; 2] {
        if number < 0x800 / ROW {
            [0xC0 | number as u8, last]
        } else {
            [0xE0 | (number >> 6) as u8, 0x80 | (number & 0x3F) as u8]
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::machine::simd::SimdLevel;

    /// Characters of a few scripts and of every length, and from both sides of boundaries of
    /// classes.
    fn character() -> impl Strategy<Value = char> {
        let near =
            |c: u32| (c.saturating_sub(70)..c + 70).prop_filter_map("a surrogate", char::from_u32);
        let boundaries =
            [0x80, 0x7FF, 0x3000, 0x4DC0, 0x4E00, 0x9FFF, 0xAC00, 0xD7A3, 0xFFFF, 0x1_F600];
        prop_oneof![any::<char>(), prop::sample::select(boundaries.to_vec()).prop_flat_map(near)]
    }

    proptest! {
        #[test]
        fn lookups_by_rows_equal_lookups_of_characters(
            scripts in prop::collection::vec((character(), 1u32..200), 1..5),
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0u32..200), 64),
            length in 1..=BLOCK_BYTES,
            recorded in prop::collection::vec(0usize..0x400, 0..6),
        ) {
            let text: String = steps.iter().filter_map(|(script, step)| {
                let &(first, width) = script.get(&scripts);
                char::from_u32(first as u32 + step % width)
            }).collect();
            let mut block = [0; BLOCK_BYTES];
            for (byte, text) in block.iter_mut().zip(text.bytes()) {
                *byte = text;
            }
            let valid = u64::MAX >> (BLOCK_BYTES - length);
            let leads = (0..length).filter(|&at| block[at] >= 0xC0);
            let leads = leads.fold(0, |bits, at| bits | 1 << at);
            for level in SimdLevel::all() {
                let SimdLevel::Avx512(level, _) = level else { continue };
                let (plain, recent) = (one_by_one(&block, leads, valid), RecentRows::default());
                let by_rows = || row_by_row(&block, leads, valid, &recent, level);
                for &number in &recorded {
                    recent.record(number);
                }
                for rows in [by_rows(), by_rows()] {
                    let classes = &rows.classes[1..];
                    prop_assert_eq!((rows.valid, classes), (plain.valid, &plain.classes[1..]));
                }
            }
        }
    }
}
