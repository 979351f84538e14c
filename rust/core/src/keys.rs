//! Where pretokens end in, their keys out, many at a time.
//!
//! Pretokens stand one behind the other, and so do the bytes of their keys, only with zeros between them. So
//! where the processor has an instruction that moves bytes apart, it makes four keys at once.

use crate::key::Key;
#[cfg(target_arch = "x86_64")]
use crate::simd;

/// So many keys are made together.
const RUN: usize = 8;

/// Write the key or the name of each pretoken, as [`Key::of`] makes it. The first begins at `start`, each ends
/// at the next of the `ends`, and there are as many keys.
#[inline]
pub(crate) fn write(text: &[u8], start: usize, ends: &[usize], keys: &mut [Key]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(spread) = simd::Avx512::detect() {
        return x86_64::write(text, start, ends, keys, spread);
    }
    write_each(text, start, ends, keys);
}

/// The plain way.
#[inline]
fn write_each(text: &[u8], mut start: usize, ends: &[usize], keys: &mut [Key]) {
    for (&end, key) in ends.iter().zip(keys) {
        *key = Key::of(text, start..end);
        start = end;
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "wide instructions: making keys takes 0.6 instead of 1.3 ns each, of 7 for all of encoding"
)]
mod x86_64 {
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm512_alignr_epi64,
        _mm512_cmpgt_epu64_mask, _mm512_cvtepi64_epi16, _mm512_loadu_si512,
        _mm512_maskz_expand_epi8, _mm512_maskz_permutexvar_epi64, _mm512_or_si512,
        _mm512_set1_epi64, _mm512_setr_epi64, _mm512_slli_epi64, _mm512_sllv_epi64,
        _mm512_storeu_si512, _mm512_sub_epi64,
    };

    use super::{RUN, write_each};
    use crate::key::{Key, LONGEST};
    use crate::simd::Avx512;

    /// Half of a run: as many keys as a register holds.
    const HALF: usize = RUN / 2;

    /// The bytes of half of a run of pretokens, none of them longer than a key, and some behind.
    type Bytes = [u8; HALF * (LONGEST + 1)];

    #[inline]
    pub(super) fn write(text: &[u8], start: usize, ends: &[usize], keys: &mut [Key], _: Avx512) {
        // SAFETY: an `Avx512` is made only where the processor has these instructions.
        unsafe { write_runs(text, start, ends, keys) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn write_runs(text: &[u8], mut start: usize, ends: &[usize], keys: &mut [Key]) {
        let (runs, rest) = ends.as_chunks::<RUN>();
        let (runs_of_keys, rest_of_keys) = keys.as_chunks_mut::<RUN>();
        for (ends, keys) in runs.iter().zip(runs_of_keys) {
            if !write_run(text, start, ends, keys) {
                write_each(text, start, ends, keys);
            }
            start = ends[RUN - 1];
        }
        write_each(text, start, rest, rest_of_keys);
    }

    /// Write the keys of a run; false if one of the pretokens is long, or the text ends soon.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn write_run(text: &[u8], start: usize, ends: &[usize; RUN], keys: &mut [Key; RUN]) -> bool {
        let bytes_at = |at: usize| {
            text.get(at..).and_then(|rest| rest.first_chunk::<{ size_of::<Bytes>() }>())
        };
        let (Some(first), Some(second)) = (bytes_at(start), bytes_at(ends[HALF - 1])) else {
            return false;
        };
        let lengths = lengths(start, ends);
        let longest = _mm512_set1_epi64((LONGEST as u64).cast_signed());
        if _mm512_cmpgt_epu64_mask(lengths, longest) != 0 {
            return false;
        }
        // For each pretoken as many ones as it has bytes, of 16 bits.
        let one = _mm512_set1_epi64(1);
        let masks = _mm512_sub_epi64(_mm512_sllv_epi64(one, lengths), one);
        let masks = _mm512_cvtepi64_epi16(masks);
        let masks = [_mm_cvtsi128_si64(masks), _mm_extract_epi64::<1>(masks)];
        let highest = _mm512_slli_epi64::<56>(lengths);
        let (keys, _) = keys.as_chunks_mut::<HALF>();
        spread(first, masks[0], highest, _mm512_setr_epi64(0, 0, 0, 1, 0, 2, 0, 3), &mut keys[0]);
        spread(second, masks[1], highest, _mm512_setr_epi64(0, 4, 0, 5, 0, 6, 0, 7), &mut keys[1]);
        true
    }

    /// How long the pretokens are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn lengths(start: usize, ends: &[usize; RUN]) -> __m512i {
        const { assert!(RUN == 8) };
        // SAFETY: there are eight ends, and the load needs no alignment.
        let ends = unsafe { _mm512_loadu_si512(ends.as_ptr().cast()) };
        let start = _mm512_set1_epi64((start as u64).cast_signed());
        _mm512_sub_epi64(ends, _mm512_alignr_epi64::<7>(ends, start))
    }

    /// Write four keys: the bytes that a mask says of each, and in its highest byte its length, which stands in
    /// one of the words of `highest`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn spread(text: &Bytes, mask: i64, highest: __m512i, which: __m512i, keys: &mut [Key; HALF]) {
        // SAFETY: there are so many bytes, and the load needs no alignment.
        let text = unsafe { _mm512_loadu_si512(text.as_ptr().cast()) };
        let bytes = _mm512_maskz_expand_epi8(mask.cast_unsigned(), text);
        let lengths = _mm512_maskz_permutexvar_epi64(0b1010_1010, which, highest);
        let words = _mm512_or_si512(bytes, lengths);
        // SAFETY: a key is two words, the lower one first, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(keys.as_mut_ptr().cast(), words) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All ways write the same keys, wherever the text begins and ends and however long pretokens are.
        #[test]
        fn keys_are_those_of_the_plain_way(
            text in prop::collection::vec(any::<u8>(), 0..400),
            start in 0usize..8,
            lengths in prop::collection::vec(prop_oneof![9 => 1usize..=15, 1 => 16usize..40], 0..60),
        ) {
            let start = start.min(text.len());
            let ends = lengths.iter().scan(start, |end, length| {
                *end += length;
                (*end <= text.len()).then_some(*end)
            });
            let ends: Vec<usize> = ends.collect();
            let mut keys = [Key::default(); 60];
            let mut plain = keys;
            write(&text, start, &ends, &mut keys[..ends.len()]);
            write_each(&text, start, &ends, &mut plain[..ends.len()]);
            prop_assert_eq!(keys, plain);
        }
    }
}
