//! Operations on a few numbers at once, with vector instructions where the processor has them.
//!
//! [`run`] runs a [`LaneWork`] with the operations of the current level. They halve the time of
//! merging.

#![expect(
    clippy::inline_always,
    reason = "the code must be compiled for the instructions of the caller"
)]

pub(crate) use crate::machine::simd::Portable;
use crate::machine::simd::SimdLevel;
#[cfg(target_arch = "x86_64")]
use crate::machine::simd::{self, Avx2};

/// Work that uses lanes.
pub(crate) trait LaneWork {
    type Output;

    /// Do the work. This function, and all functions that it passes `lanes` to, must be
    /// `#[inline(always)]`.
    fn run(self, lanes: impl Lanes) -> Self::Output;
}

/// Operations on a few numbers; all implementations give the same results.
pub(crate) trait Lanes: Copy {
    /// The lowest of `COUNT` numbers; `COUNT` is a multiple of eight.
    fn lowest<const COUNT: usize>(self, numbers: &[u32; COUNT]) -> u32;

    /// The word that equals `key` under `mask`, or zero if there is none. At most one word other
    /// than zero may equal `key`.
    fn find(self, words: &[u64; 8], mask: u64, key: u64) -> u64;
}

/// Do the work with the widest lanes of the current level.
#[inline]
pub(crate) fn run<W: LaneWork>(work: W) -> W::Output {
    run_on(SimdLevel::current(), work)
}

#[inline]
fn run_on<W: LaneWork>(level: SimdLevel, work: W) -> W::Output {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512(_, avx2) | SimdLevel::Avx2(avx2) => avx2.run(WithLanes(work, avx2)),
        _ => work.run(Portable),
    }
}

#[cfg(target_arch = "x86_64")]
struct WithLanes<W, L>(W, L);

#[cfg(target_arch = "x86_64")]
impl<W: LaneWork, L: Lanes> simd::Work for WithLanes<W, L> {
    type Output = W::Output;

    #[inline(always)]
    fn run(self) -> W::Output {
        self.0.run(self.1)
    }
}

impl Lanes for Portable {
    #[inline(always)]
    fn lowest<const COUNT: usize>(self, numbers: &[u32; COUNT]) -> u32 {
        numbers.iter().copied().fold(u32::MAX, u32::min)
    }

    #[inline(always)]
    fn find(self, words: &[u64; 8], mask: u64, key: u64) -> u64 {
        words.iter().copied().find(|word| word & mask == key).unwrap_or(0)
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod avx2 {
    use std::arch::x86_64::{
        _mm_cvtsi128_si32, _mm_cvtsi128_si64, _mm_min_epu32, _mm_or_si128, _mm_shuffle_epi32,
        _mm_unpackhi_epi64, _mm256_and_si256, _mm256_castsi256_si128, _mm256_cmpeq_epi64,
        _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_min_epu32, _mm256_or_si256,
        _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256,
    };

    use super::{Avx2, Lanes};

    impl Lanes for Avx2 {
        #[inline(always)]
        fn lowest<const COUNT: usize>(self, numbers: &[u32; COUNT]) -> u32 {
            // SAFETY: `self` proves that the processor has AVX2.
            unsafe { lowest(numbers.as_chunks().0) }
        }

        #[inline(always)]
        fn find(self, words: &[u64; 8], mask: u64, key: u64) -> u64 {
            // SAFETY: as above.
            unsafe { find(words, mask, key) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn lowest(eights: &[[u32; 8]]) -> u32 {
        let mut lowest = _mm256_set1_epi32(-1);
        for eight in eights {
            // SAFETY: eight numbers are 32 bytes, and the load needs no alignment.
            let eight = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
            lowest = _mm256_min_epu32(lowest, eight);
        }
        // The halves are compared until one number is left: eight, four, two, one. The shuffles
        // exchange the two halves of four numbers, then the two numbers of each half.
        let low = _mm256_castsi256_si128(lowest);
        let four = _mm_min_epu32(low, _mm256_extracti128_si256::<1>(lowest));
        let two = _mm_min_epu32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        let one = _mm_min_epu32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
        _mm_cvtsi128_si32(one).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn find(words: &[u64; 8], mask: u64, key: u64) -> u64 {
        let mask = _mm256_set1_epi64x(mask.cast_signed());
        let key = _mm256_set1_epi64x(key.cast_signed());
        let mut hit = _mm256_setzero_si256();
        for four in words.as_chunks::<4>().0 {
            // SAFETY: four words are 32 bytes, and the load needs no alignment.
            let words = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
            // Words that differ become zero, so `or` collects the one that equals, without a
            // branch.
            let equal = _mm256_cmpeq_epi64(_mm256_and_si256(words, mask), key);
            hit = _mm256_or_si256(hit, _mm256_and_si256(words, equal));
        }
        let low = _mm256_castsi256_si128(hit);
        let two = _mm_or_si128(low, _mm256_extracti128_si256::<1>(hit));
        let one = _mm_or_si128(two, _mm_unpackhi_epi64(two, two));
        _mm_cvtsi128_si64(one).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Lowest<'a>(&'a [u32; 16]);

    impl LaneWork for Lowest<'_> {
        type Output = u32;

        #[inline(always)]
        fn run(self, lanes: impl Lanes) -> u32 {
            lanes.lowest(self.0)
        }
    }

    struct Find<'a>(&'a [u64; 8], u64, u64);

    impl LaneWork for Find<'_> {
        type Output = u64;

        #[inline(always)]
        fn run(self, lanes: impl Lanes) -> u64 {
            lanes.find(self.0, self.1, self.2)
        }
    }

    proptest! {
        #[test]
        fn vector_instructions_equal_portable_code(
            numbers in any::<[u32; 16]>(),
            words in any::<[u64; 8]>(),
            at in 0usize..8,
            bits in 8u32..60,
        ) {
            let mask = (1 << bits) - 1;
            let mut words = words;
            for (number, word) in (0..).zip(&mut words) {
                *word = *word & !7 | number;
            }
            for level in SimdLevel::all() {
                prop_assert_eq!(run_on(level, Lowest(&numbers)), Portable.lowest(&numbers));
                for key in [words[at] & mask, 1 << bits] {
                    let fast = run_on(level, Find(&words, mask, key));
                    prop_assert_eq!(fast, Portable.find(&words, mask, key));
                }
            }
        }
    }
}
