//! Classifies 64 bytes of text: a bit mask for each class of characters.
//!
//! Vector instructions classify ASCII by comparing all bytes at once. Every other character is
//! decoded and looked up, and each of its bytes gets its class: a character of three bytes sets
//! three bits. If many characters are not ASCII, AVX-512 looks up characters with close code points
//! together.

#![cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(unsafe_code, reason = "vector instructions")
)]
#![expect(
    clippy::inline_always,
    reason = "the code must be compiled for the instructions of the caller"
)]

use crate::machine::simd::Portable;
use crate::pretokenize::scan::non_ascii::{BLOCK_BYTES, Masks, NonAscii, one_by_one};
use crate::pretokenize::unicode::Class;

/// Classifies the bytes of a block; all implementations give the same masks.
pub(super) trait Classify {
    /// A bit for each byte that is between `first` and `last`, both included.
    fn within(&self, block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64;

    /// The masks that single bytes determine: the classes of ASCII, and which bytes are not ASCII.
    #[inline(always)]
    fn ascii(&self, block: &[u8; BLOCK_BYTES]) -> Masks {
        let range = |first, last| self.within(block, first, last);
        let one = |byte| range(byte, byte);
        let (newline, blank) = (one(b'\n') | one(b'\r'), one(b' '));
        Masks {
            upper: range(b'A', b'Z'),
            lower: range(b'a', b'z'),
            number: range(b'0', b'9'),
            // Tab, line feed, vertical tab, form feed and carriage return are adjacent.
            space: range(b'\t', b'\r') & !newline | blank,
            newline,
            blank,
            apostrophe: one(b'\''),
            slash: one(b'/'),
            high: range(0x80, 0xFF),
            continuation: range(0x80, 0xBF),
            ..Masks::default()
        }
    }

    /// The same as [`one_by_one`].
    #[inline(always)]
    fn non_ascii(&self, block: &[u8; BLOCK_BYTES], leads: u64, valid: u64) -> NonAscii {
        one_by_one(block, leads, valid)
    }

    /// The masks of a block whose first `length` bytes are text, and whose other bytes are zeros.
    #[inline(always)]
    fn masks(&self, block: &[u8; BLOCK_BYTES], length: usize) -> Masks {
        // `length` is at least 1, so the shift is at most 63.
        let mut masks = Masks { valid: u64::MAX >> (BLOCK_BYTES - length), ..self.ascii(block) };
        if masks.high != 0 {
            let leads = masks.high & !masks.continuation;
            let NonAscii { valid, classes } = self.non_ascii(block, leads, masks.valid);
            masks.valid = valid;
            // No newline is beyond ASCII, and `Other` is what all other masks leave.
            masks.upper |= classes[Class::Upper as usize];
            masks.lower |= classes[Class::Lower as usize];
            masks.uncased |= classes[Class::Uncased as usize];
            masks.mark |= classes[Class::Mark as usize];
            masks.number |= classes[Class::Number as usize];
            masks.space |= classes[Class::Space as usize];
        }
        masks
    }

    /// Less than a block of text, filled up with zeros.
    #[inline(always)]
    fn padded(&self, rest: &[u8]) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        block[..rest.len()].copy_from_slice(rest);
        block
    }

    /// The positions of the set bits, in order; the rest of the array is unspecified.
    #[inline(always)]
    fn positions(&self, bits: u64) -> [u8; BLOCK_BYTES] {
        positions(bits)
    }
}

/// The plain reference for [`Classify::positions`].
#[inline(always)]
fn positions(mut bits: u64) -> [u8; BLOCK_BYTES] {
    let mut positions = [0; BLOCK_BYTES];
    // Writing a few superfluous positions costs less than a branch misprediction.
    for chunk in positions.as_chunks_mut::<8>().0 {
        for position in chunk {
            // After the last set bit, `bits` stays zero: 0 & (0 - 1) = 0, and the positions are 64.
            *position = bits.trailing_zeros().to_le_bytes()[0];
            bits &= bits.wrapping_sub(1);
        }
        if bits == 0 {
            break;
        }
    }
    positions
}

impl Classify for Portable {
    fn within(&self, block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64 {
        let bits = block.iter().map(|byte| u64::from((first..=last).contains(byte)));
        bits.rev().fold(0, |all, bit| all << 1 | bit)
    }

    /// The plain reference for the other implementations: looks at each byte once.
    fn ascii(&self, block: &[u8; BLOCK_BYTES]) -> Masks {
        let mut ascii = Masks::default();
        for (at, &byte) in block.iter().enumerate() {
            let mask = match byte {
                b'A'..=b'Z' => &mut ascii.upper,
                b'a'..=b'z' => &mut ascii.lower,
                b'0'..=b'9' => &mut ascii.number,
                b' ' => &mut ascii.blank,
                b'\t' | 0x0B | 0x0C => &mut ascii.space,
                b'\n' | b'\r' => &mut ascii.newline,
                b'\'' => &mut ascii.apostrophe,
                b'/' => &mut ascii.slash,
                0x80..=0xBF => &mut ascii.continuation,
                0xC0.. => &mut ascii.high,
                _ => continue,
            };
            *mask |= 1 << at;
        }
        ascii.space |= ascii.blank;
        ascii.high |= ascii.continuation;
        ascii
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::ByRows;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_set1_epi8, _mm256_sub_epi8, _mm512_cmple_epu8_mask, _mm512_loadu_si512,
        _mm512_maskz_compress_epi8, _mm512_maskz_loadu_epi8, _mm512_set1_epi8, _mm512_storeu_si512,
        _mm512_sub_epi8,
    };

    use super::{BLOCK_BYTES, Classify, NonAscii};
    use crate::machine::simd::{Avx2, Avx512};
    use crate::pretokenize::scan::non_ascii::{RecentRows, row_by_row};

    /// Classifies with AVX-512, and remembers the rows of recent characters.
    pub(in super::super) struct ByRows {
        level: Avx512,
        recent: RecentRows,
    }

    impl ByRows {
        pub(in super::super) fn new(level: Avx512) -> Self {
            Self { level, recent: RecentRows::default() }
        }
    }

    impl Classify for ByRows {
        #[inline(always)]
        fn within(&self, block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64 {
            // SAFETY: `self.level` proves that the processor has these instructions.
            unsafe { avx512(block, first, last) }
        }

        #[inline(always)]
        fn non_ascii(&self, block: &[u8; BLOCK_BYTES], leads: u64, valid: u64) -> NonAscii {
            row_by_row(block, leads, valid, &self.recent, self.level)
        }

        #[inline(always)]
        fn padded(&self, rest: &[u8]) -> [u8; BLOCK_BYTES] {
            // SAFETY: `self.level` proves that the processor has these instructions.
            unsafe { padded(rest) }
        }

        #[inline(always)]
        fn positions(&self, bits: u64) -> [u8; BLOCK_BYTES] {
            // SAFETY: `self.level` proves that the processor has these instructions.
            unsafe { compressed(bits) }
        }
    }

    impl Classify for Avx2 {
        #[inline(always)]
        fn within(&self, block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64 {
            // SAFETY: `self` proves that the processor has AVX2.
            unsafe { avx2(block, first, last) }
        }
    }

    /// 0 to 63.
    static POSITIONS: [u8; BLOCK_BYTES] = {
        let (mut positions, mut at) = ([0; BLOCK_BYTES], 0u8);
        while (at as usize) < BLOCK_BYTES {
            positions[at as usize] = at;
            at += 1;
        }
        positions
    };

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn avx512(block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64 {
        // SAFETY: a block has 64 bytes, and the load needs no alignment.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        // One comparison tests both ends of the range: bytes below `first` wrap around to large
        // numbers. For `a` to `z`, the byte before `a` becomes 255, and `z` becomes 25, the limit.
        let from_first = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first.cast_signed()));
        _mm512_cmple_epu8_mask(from_first, _mm512_set1_epi8((last - first).cast_signed()))
    }

    /// One load instead of a copy, which the loads of a block would wait for.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn padded(rest: &[u8]) -> [u8; BLOCK_BYTES] {
        let first = if rest.len() < BLOCK_BYTES { (1 << rest.len()) - 1 } else { u64::MAX };
        let mut block = [0; BLOCK_BYTES];
        // SAFETY: the mask reads no more bytes than there are, the store writes 64 to an array of 64,
        // and neither needs alignment.
        unsafe {
            let bytes = _mm512_maskz_loadu_epi8(first, rest.as_ptr().cast());
            _mm512_storeu_si512(block.as_mut_ptr().cast(), bytes);
        }
        block
    }

    /// The positions of the set bits: the bits select them from all positions.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn compressed(bits: u64) -> [u8; BLOCK_BYTES] {
        let mut positions = [0; BLOCK_BYTES];
        // SAFETY: both arrays have 64 bytes, and neither the load nor the store needs alignment.
        unsafe {
            let all = _mm512_loadu_si512(POSITIONS.as_ptr().cast());
            let selected = _mm512_maskz_compress_epi8(bits, all);
            _mm512_storeu_si512(positions.as_mut_ptr().cast(), selected);
        }
        positions
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn avx2(block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64 {
        let bits = |half: &[u8]| {
            // SAFETY: each half of a block has 32 bytes, and the load needs no alignment.
            let bytes = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
            // Bytes below `first` wrap around to large numbers, so one comparison tests both ends.
            let from_first = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first.cast_signed()));
            let most = _mm256_set1_epi8((last - first).cast_signed());
            // AVX2 compares bytes only as signed numbers. A number is at most `most` if it is the
            // smaller of both.
            let within = _mm256_cmpeq_epi8(_mm256_min_epu8(from_first, most), from_first);
            // The highest bit of each byte, which is all ones or all zeros.
            u64::from(_mm256_movemask_epi8(within).cast_unsigned())
        };
        bits(&block[..32]) | bits(&block[32..]) << 32
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use std::arch::aarch64::{
        uint8x16_t, vandq_u8, vcleq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vpaddq_u8,
        vreinterpretq_u64_u8, vsubq_u8,
    };

    use super::{BLOCK_BYTES, Classify};
    use crate::machine::simd::Neon;

    impl Classify for Neon {
        #[inline(always)]
        fn within(&self, block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64 {
            // SAFETY: `self` proves that the processor has NEON.
            unsafe { neon(block, first, last) }
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn neon(block: &[u8; BLOCK_BYTES], first: u8, last: u8) -> u64 {
        bits([0, 16, 32, 48].map(|at| {
            // SAFETY: the block has 16 bytes from each offset on, and the load needs no alignment.
            let bytes = unsafe { vld1q_u8(block[at..].as_ptr()) };
            // Bytes below `first` wrap around to large numbers, so one comparison tests both ends.
            vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(last - first))
        }))
    }

    /// One bit for each byte of four vectors whose bytes are all ones or all zeros.
    #[inline]
    #[target_feature(enable = "neon")]
    fn bits(quarters: [uint8x16_t; 4]) -> u64 {
        const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: there are 16 bytes, and the load needs no alignment.
        let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
        // NEON cannot extract one bit per byte. So each byte keeps the one bit that it will have in
        // its byte of the result; bits of eight neighbours differ, and their sum has no carries.
        let [a, b, c, d] = quarters.map(|quarter| vandq_u8(quarter, bits));
        // Adjacent bytes are added until eight bytes have become one.
        let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        let sums = vpaddq_u8(sums, sums);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(sums)).to_le()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::unicode::class_of;
    use super::*;
    use crate::machine::simd::SimdLevel;
    use proptest::prelude::*;

    /// The masks of a block and the positions of some bits, on one level.
    fn on_level(
        level: SimdLevel,
        block: &[u8; BLOCK_BYTES],
        length: usize,
        bits: u64,
    ) -> (Masks, [u8; BLOCK_BYTES]) {
        let both =
            |classify: &dyn Classify| (classify.masks(block, length), classify.positions(bits));
        match level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512(level, _) => both(&ByRows::new(level)),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2(level) => both(&level),
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon(level) => both(&level),
            SimdLevel::Portable => both(&Portable),
        }
    }

    proptest! {
        #[test]
        fn positions_are_those_of_the_set_bits(bits in any::<u64>(), fewer in any::<u64>()) {
            for bits in [bits, bits & fewer, 0, u64::MAX] {
                let set = (0u8..64).filter(|at| bits >> at & 1 == 1);
                for level in SimdLevel::all() {
                    let (_, positions) = on_level(level, &[0; BLOCK_BYTES], BLOCK_BYTES, bits);
                    let count = bits.count_ones() as usize;
                    prop_assert!(positions.into_iter().take(count).eq(set.clone()));
                }
            }
        }

        #[test]
        fn all_levels_agree(
            block in prop::array::uniform32(any::<[u8; 2]>()),
            length in 1..=BLOCK_BYTES,
        ) {
            let mut block: [u8; BLOCK_BYTES] = block.concat().try_into().unwrap();
            block[length..].fill(0);
            let portable = Portable.masks(&block, length);
            for level in SimdLevel::all() {
                let (masks, _) = on_level(level, &block, length, 0);
                prop_assert_eq!(masks, portable, "{}", level.name());
            }
        }

        #[test]
        fn each_character_has_its_class(text in "\\PC{1,30}|[a-zA-Z0-9 '/\n\r\t]{1,64}") {
            let most = text.len().min(BLOCK_BYTES);
            let length = (1..=most).rev().find(|&n| text.is_char_boundary(n));
            let length = length.unwrap_or(1);
            let mut block = [0; BLOCK_BYTES];
            block[..length].copy_from_slice(&text.as_bytes()[..length]);
            let (masks, _) = on_level(SimdLevel::Portable, &block, length, 0);
            prop_assert_eq!(masks.valid, u64::MAX >> (BLOCK_BYTES - length));
            for (at, c) in text[..length].char_indices() {
                let by_class = match class_of(c as u32) {
                    Class::Other => !(masks.upper | masks.lower | masks.uncased | masks.mark
                        | masks.number | masks.space | masks.newline),
                    Class::Upper => masks.upper,
                    Class::Lower => masks.lower,
                    Class::Uncased => masks.uncased,
                    Class::Mark => masks.mark,
                    Class::Number => masks.number,
                    Class::Space => masks.space,
                    Class::Newline => masks.newline,
                };
                let bits = ((1u64 << c.len_utf8()) - 1) << at;
                prop_assert_eq!(by_class & bits, bits, "{:?}", c);
                prop_assert_eq!(masks.continuation >> at & 1, 0);
            }
        }
    }
}
