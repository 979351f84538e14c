//! 64 bytes of text in, one word of 64 bits for each class of characters out.
//!
//! ASCII is classified by comparing all bytes at once, with the widest vectors that the processor
//! has; every other character is decoded and looked up, and its class is given to each of its
//! bytes. So a bit of a mask belongs to a byte, and a character of three bytes has three equal bits.
//! Where there are many others, the widest vectors look up all that stand near each other in Unicode.

#![expect(unsafe_code, reason = "vector instructions, and calls to what was compiled for them")]
#![expect(clippy::inline_always, reason = "it must be compiled for the instructions of the caller")]

use super::super::unicode::Class;
use super::others::{Others, one_by_one};
use crate::simd;

/// How many bytes are looked at together.
pub(super) const BLOCK: usize = 64;

/// Which bytes of a block belong to which class. Bytes behind the last whole character belong to
/// none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) upper: u64,
    pub(super) lower: u64,
    /// Letters without case.
    pub(super) uncased: u64,
    pub(super) mark: u64,
    pub(super) number: u64,
    /// White space but newlines.
    pub(super) space: u64,
    pub(super) newline: u64,
    /// The space itself, which is in `space` too.
    pub(super) blank: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Bytes that continue a character.
    pub(super) continuation: u64,
    /// Bytes of whole characters.
    pub(super) valid: u64,
}

/// What the vector instructions tell of a block: the classes of ASCII, and which bytes are not.
#[derive(Debug, Clone, Copy, Default)]
struct Ascii {
    upper: u64,
    lower: u64,
    number: u64,
    space: u64,
    newline: u64,
    blank: u64,
    apostrophe: u64,
    slash: u64,
    high: u64,
    continuation: u64,
}

/// A way to classify that this processor has. Only `detect` and `all` make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vectors(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl Vectors {
    /// Every way that this processor has, the fastest first.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("bmi2")
            {
                all.push(Self(Kind::Avx512));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                all.push(Self(Kind::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            all.push(Self(Kind::Neon));
        }
        all.push(Self(Kind::Portable));
        all
    }

    /// The way that was asked for, or else the fastest that this processor has.
    pub(super) fn detect() -> Self {
        let (all, asked) = (Self::all(), simd::asked());
        *all.iter().find(|way| Some(way.name()) == asked).unwrap_or(&all[0])
    }

    /// Run `work` with this way of classifying; it is compiled once for each.
    #[inline]
    pub(super) fn run<W: Work>(self, work: W) {
        match self.0 {
            // SAFETY: `detect` and `all` have found these instructions on this processor.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86_64::run_avx512(work) },
            // SAFETY: the same.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86_64::run_avx2(work) },
            // SAFETY: the same.
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { aarch64::run_neon(work) },
            Kind::Portable => work.run(&(portable, one_by_one, places)),
        }
    }

    /// The name of this way.
    pub(super) fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            Kind::Portable => "portable",
        }
    }
}

/// Work that needs a way to classify.
pub(super) trait Work {
    /// Do the work; `classify` tells the classes of ASCII. Must be `#[inline(always)]`, so that it
    /// is compiled for the instructions that `classify` uses.
    fn run(self, classify: &impl Classify);
}

/// Tells the classes of the bytes of a block, and the places of bits.
pub(super) trait Classify {
    /// The masks of a block of which the first `length` bytes are text.
    fn masks(&self, block: &[u8; BLOCK], length: usize) -> Masks;

    /// The places of the bits that are set, in order; what follows them means nothing.
    fn places(&self, bits: u64) -> [u8; BLOCK];
}

impl<F, O, P> Classify for (F, O, P)
where
    F: Fn(&[u8; BLOCK]) -> Ascii,
    O: Fn(&[u8; BLOCK], u64, u64) -> Others,
    P: Fn(u64) -> [u8; BLOCK],
{
    #[inline(always)]
    fn places(&self, bits: u64) -> [u8; BLOCK] {
        self.2(bits)
    }

    #[inline(always)]
    fn masks(&self, block: &[u8; BLOCK], length: usize) -> Masks {
        let ascii = self.0(block);
        let valid = u64::MAX >> (BLOCK - length);
        let mut masks = Masks {
            upper: ascii.upper & valid,
            lower: ascii.lower & valid,
            number: ascii.number & valid,
            space: ascii.space & valid,
            newline: ascii.newline & valid,
            blank: ascii.blank & valid,
            apostrophe: ascii.apostrophe & valid,
            slash: ascii.slash & valid,
            continuation: ascii.continuation,
            valid,
            ..Masks::default()
        };
        if ascii.high & valid != 0 {
            let leads = ascii.high & !ascii.continuation & valid;
            let Others { valid, classes } = self.1(block, leads, valid);
            masks.valid = valid;
            masks.upper |= classes[Class::Upper as usize];
            masks.lower |= classes[Class::Lower as usize];
            masks.uncased |= classes[Class::Uncased as usize];
            masks.mark |= classes[Class::Mark as usize];
            masks.number |= classes[Class::Number as usize];
            masks.space |= classes[Class::Space as usize];
        }
        masks
    }
}

/// The places of the bits that are set, one after the other.
#[inline(always)]
fn places(mut bits: u64) -> [u8; BLOCK] {
    let mut places = [0; BLOCK];
    // A few too many cost less than a branch for each, which a processor would have to guess.
    for few in places.as_chunks_mut::<8>().0 {
        for place in few {
            *place = bits.trailing_zeros().to_le_bytes()[0];
            bits &= bits.wrapping_sub(1);
        }
        if bits == 0 {
            break;
        }
    }
    places
}

/// Byte by byte.
fn portable(block: &[u8; BLOCK]) -> Ascii {
    let mut ascii = Ascii::default();
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

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256,
        _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_sub_epi8,
        _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask, _mm512_cmplt_epi8_mask, _mm512_loadu_si512,
        _mm512_maskz_compress_epi8, _mm512_movepi8_mask, _mm512_set1_epi8, _mm512_storeu_si512,
        _mm512_sub_epi8,
    };

    use super::super::others::{Lately, one_by_one, row_by_row};
    use super::{Ascii, BLOCK, Work, places};

    /// 0 to 63.
    static PLACES: [u8; BLOCK] = {
        let (mut places, mut at) = ([0; BLOCK], 0u8);
        while (at as usize) < BLOCK {
            places[at as usize] = at;
            at += 1;
        }
        places
    };

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn run_avx512(work: impl Work) {
        let lately = Lately::default();
        work.run(&(
            |block: &[u8; BLOCK]| avx512(block),
            |block: &[u8; BLOCK], leads, valid| row_by_row(block, leads, valid, &lately),
            |bits| compressed(bits),
        ));
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn run_avx2(work: impl Work) {
        work.run(&(|block: &[u8; BLOCK]| avx2(block), one_by_one, places));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn avx512(block: &[u8; BLOCK]) -> Ascii {
        // SAFETY: a block has 64 bytes, and the load needs no alignment.
        let bytes: __m512i = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        let range = |first: u8, last: u8| {
            let from_first = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first.cast_signed()));
            _mm512_cmple_epu8_mask(from_first, _mm512_set1_epi8((last - first).cast_signed()))
        };
        let one = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte.cast_signed()));
        let newline = one(b'\n') | one(b'\r');
        let blank = one(b' ');
        Ascii {
            upper: range(b'A', b'Z'),
            lower: range(b'a', b'z'),
            number: range(b'0', b'9'),
            space: range(b'\t', b'\r') & !newline | blank,
            newline,
            blank,
            apostrophe: one(b'\''),
            slash: one(b'/'),
            high: _mm512_movepi8_mask(bytes),
            continuation: _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(-64)),
        }
    }

    /// The places of the bits that are set: those of all places that the bits select.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn compressed(bits: u64) -> [u8; BLOCK] {
        let mut places = [0; BLOCK];
        // SAFETY: both arrays have 64 bytes, and neither the load nor the store needs alignment.
        unsafe {
            let all = _mm512_loadu_si512(PLACES.as_ptr().cast());
            let selected = _mm512_maskz_compress_epi8(bits, all);
            _mm512_storeu_si512(places.as_mut_ptr().cast(), selected);
        }
        places
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn avx2(block: &[u8; BLOCK]) -> Ascii {
        let (low, high) = (block[..32].as_ptr(), block[32..].as_ptr());
        // SAFETY: each half of a block has 32 bytes, and the loads need no alignment.
        let halves = unsafe { [_mm256_loadu_si256(low.cast()), _mm256_loadu_si256(high.cast())] };
        let both = |test: &dyn Fn(__m256i) -> __m256i| {
            let [low, high] =
                halves.map(|half| u64::from(_mm256_movemask_epi8(test(half)).cast_unsigned()));
            low | high << 32
        };
        let range = |first: u8, last: u8| {
            both(&|bytes| {
                let from_first = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first.cast_signed()));
                let most = _mm256_set1_epi8((last - first).cast_signed());
                _mm256_cmpeq_epi8(_mm256_min_epu8(from_first, most), from_first)
            })
        };
        let equal =
            |bytes, byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()));
        let one = |byte: u8| both(&|bytes| equal(bytes, byte));
        let newline = both(&|bytes| _mm256_or_si256(equal(bytes, b'\n'), equal(bytes, b'\r')));
        let blank = one(b' ');
        Ascii {
            upper: range(b'A', b'Z'),
            lower: range(b'a', b'z'),
            number: range(b'0', b'9'),
            space: range(b'\t', b'\r') & !newline | blank,
            newline,
            blank,
            apostrophe: one(b'\''),
            slash: one(b'/'),
            high: both(&|bytes| bytes),
            continuation: both(&|bytes| _mm256_cmpgt_epi8(_mm256_set1_epi8(-64), bytes)),
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use std::arch::aarch64::{
        uint8x16_t, vandq_u8, vceqq_u8, vcgeq_u8, vcleq_u8, vcltq_u8, vdupq_n_u8, vgetq_lane_u64,
        vld1q_u8, vorrq_u8, vpaddq_u8, vreinterpretq_u64_u8, vsubq_u8,
    };

    use super::super::others::one_by_one;
    use super::{Ascii, BLOCK, Work, places};

    #[target_feature(enable = "neon")]
    pub(super) fn run_neon(work: impl Work) {
        work.run(&(|block: &[u8; BLOCK]| neon(block), one_by_one, places));
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn neon(block: &[u8; BLOCK]) -> Ascii {
        let quarters = [0, 16, 32, 48].map(|at| {
            // SAFETY: 16 bytes from each of these places on are in the block, and the load needs no
            // alignment.
            unsafe { vld1q_u8(block[at..].as_ptr()) }
        });
        let all = |test: &dyn Fn(uint8x16_t) -> uint8x16_t| bits(quarters.map(test));
        let range = |first: u8, last: u8| {
            all(&|bytes| vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(last - first)))
        };
        let one = |byte: u8| all(&|bytes| vceqq_u8(bytes, vdupq_n_u8(byte)));
        let newline = all(&|bytes| {
            vorrq_u8(vceqq_u8(bytes, vdupq_n_u8(b'\n')), vceqq_u8(bytes, vdupq_n_u8(b'\r')))
        });
        let blank = one(b' ');
        let high = all(&|bytes| vcgeq_u8(bytes, vdupq_n_u8(0x80)));
        Ascii {
            upper: range(b'A', b'Z'),
            lower: range(b'a', b'z'),
            number: range(b'0', b'9'),
            space: range(b'\t', b'\r') & !newline | blank,
            newline,
            blank,
            apostrophe: one(b'\''),
            slash: one(b'/'),
            high,
            continuation: high & all(&|bytes| vcltq_u8(bytes, vdupq_n_u8(0xC0))),
        }
    }

    /// One bit for each byte of four vectors whose bytes are all ones or all zeros.
    #[inline]
    #[target_feature(enable = "neon")]
    fn bits(quarters: [uint8x16_t; 4]) -> u64 {
        const PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: there are 16 bytes, and the load needs no alignment.
        let places = unsafe { vld1q_u8(PLACES.as_ptr()) };
        let [a, b, c, d] = quarters.map(|quarter| vandq_u8(quarter, places));
        // Neighbours are added until eight bytes have become one.
        let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        let sums = vpaddq_u8(sums, sums);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(sums)).to_le()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::unicode::class_of;
    use super::*;
    use proptest::prelude::*;

    /// The masks of a block by one way.
    struct Take<'a>(&'a [u8; BLOCK], usize, &'a mut Masks);

    impl Work for Take<'_> {
        #[inline(always)]
        fn run(self, classify: &impl Classify) {
            *self.2 = classify.masks(self.0, self.1);
        }
    }

    fn masks(vectors: Vectors, block: &[u8; BLOCK], length: usize) -> Masks {
        let mut masks = Masks::default();
        vectors.run(Take(block, length, &mut masks));
        masks
    }

    /// The places of some bits by one way.
    struct Places<'a>(u64, &'a mut [u8; BLOCK]);

    impl Work for Places<'_> {
        #[inline(always)]
        fn run(self, classify: &impl Classify) {
            *self.1 = classify.places(self.0);
        }
    }

    proptest! {
        #[test]
        fn bits_are_where_they_are_set(bits in any::<u64>(), fewer in any::<u64>()) {
            for bits in [bits, bits & fewer, 0, u64::MAX] {
                let set = (0u8..64).filter(|at| bits >> at & 1 == 1);
                for vectors in Vectors::all() {
                    let mut places = [0; BLOCK];
                    vectors.run(Places(bits, &mut places));
                    let count = bits.count_ones() as usize;
                    prop_assert!(places.into_iter().take(count).eq(set.clone()));
                }
            }
        }

        #[test]
        fn all_ways_agree(block in prop::array::uniform32(any::<[u8; 2]>()), length in 1..=BLOCK) {
            let block: [u8; BLOCK] = block.concat().try_into().unwrap();
            let portable = masks(Vectors(Kind::Portable), &block, length);
            for vectors in Vectors::all() {
                prop_assert_eq!(masks(vectors, &block, length), portable, "{}", vectors.name());
            }
        }

        #[test]
        fn each_character_has_its_class(text in "\\PC{1,30}|[a-zA-Z0-9 '/\n\r\t]{1,64}") {
            let length = (1..=text.len().min(BLOCK)).rev().find(|&n| text.is_char_boundary(n));
            let length = length.unwrap_or(1);
            let mut block = [0; BLOCK];
            block[..length].copy_from_slice(&text.as_bytes()[..length]);
            let masks = masks(Vectors::detect(), &block, length);
            prop_assert_eq!(masks.valid, u64::MAX >> (BLOCK - length));
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
