//! Computes the keys of many pretokens at a time.
//!
//! Pretokens are contiguous, and so are the bytes of their keys, with zeros between them. The
//! expand instruction of AVX-512 inserts these zeros, which makes four keys at once.

use crate::hash::key::Key;
use crate::machine::simd::SimdLevel;

/// How many keys are made together: a register of AVX-512 holds this many lengths.
pub(crate) const RUN_KEYS: usize = 8;

/// Write the key of each pretoken, as [`Key::of`] makes it. The first pretoken begins at `start`,
/// and each ends at the next of the `ends`. `keys` has space for all; the rest of the last run is
/// unspecified, since whole runs are written faster than parts.
#[inline]
pub(crate) fn write(text: &[u8], start: usize, ends: &[usize], keys: &mut [[Key; RUN_KEYS]]) {
    write_on(SimdLevel::current(), text, start, ends, keys);
}

#[inline]
fn write_on(
    level: SimdLevel,
    text: &[u8],
    start: usize,
    ends: &[usize],
    keys: &mut [[Key; RUN_KEYS]],
) {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512(level, _) => avx512::write(text, start, ends, keys, level),
        _ => write_each(text, start, ends, keys.as_flattened_mut()),
    }
}

/// The plain reference for [`write`].
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
    reason = "vector instructions: a key takes 0.6 ns instead of 1.3, of 7 for encoding a pretoken"
)]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm512_alignr_epi64, _mm512_cvtepi64_epi16,
        _mm512_loadu_si512, _mm512_mask_cmpgt_epu64_mask, _mm512_maskz_expand_epi8,
        _mm512_maskz_loadu_epi8, _mm512_maskz_loadu_epi64, _mm512_maskz_permutexvar_epi64,
        _mm512_or_si512, _mm512_set1_epi64, _mm512_setr_epi64, _mm512_slli_epi64,
        _mm512_sllv_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    };

    use super::{RUN_KEYS, write_each};
    use crate::hash::key::{Key, MAX_KEY_BYTES};
    use crate::machine::simd::Avx512;

    const HALF_RUN_KEYS: usize = RUN_KEYS / 2;

    /// The longest text of half a run of short pretokens.
    type Bytes = [u8; HALF_RUN_KEYS * (MAX_KEY_BYTES + 1)];

    #[inline]
    pub(super) fn write(
        text: &[u8],
        start: usize,
        ends: &[usize],
        keys: &mut [[Key; RUN_KEYS]],
        _: Avx512,
    ) {
        // SAFETY: an `Avx512` proves that the processor has these instructions.
        unsafe { write_runs(text, start, ends, keys) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn write_runs(text: &[u8], mut start: usize, ends: &[usize], keys: &mut [[Key; RUN_KEYS]]) {
        let (runs, rest) = ends.as_chunks();
        let (run_keys, rest_keys) = keys.split_at_mut(runs.len());
        for (ends, keys) in runs.iter().zip(run_keys) {
            if !write_run(text, start, ends, keys) {
                write_few(text, start, ends, keys);
            }
            start = ends[RUN_KEYS - 1];
        }
        if !rest.is_empty() {
            write_few(text, start, rest, &mut rest_keys[0]);
        }
    }

    /// Write the keys of a run; false if a pretoken is long, or the text ends too soon.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn write_run(
        text: &[u8],
        start: usize,
        ends: &[usize; RUN_KEYS],
        keys: &mut [Key; RUN_KEYS],
    ) -> bool {
        let bytes_at = |at: usize| {
            text.get(at..).and_then(|rest| rest.first_chunk::<{ size_of::<Bytes>() }>())
        };
        let (Some(first), Some(second)) = (bytes_at(start), bytes_at(ends[HALF_RUN_KEYS - 1]))
        else {
            return false;
        };
        const { assert!(size_of::<[usize; RUN_KEYS]>() == size_of::<__m512i>()) }
        // SAFETY: `ends` has the size of the register, and the load needs no alignment.
        let lengths = lengths(start, unsafe { _mm512_loadu_si512(ends.as_ptr().cast()) });
        if has_long(lengths, RUN_KEYS) {
            return false;
        }
        // SAFETY: both have 64 bytes, and the loads need no alignment.
        let text = unsafe { [first, second].map(|text| _mm512_loadu_si512(text.as_ptr().cast())) };
        store(keys, spread(text, lengths));
        true
    }

    /// Write the keys of a run or less, whatever the pretokens.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn write_few(text: &[u8], start: usize, ends: &[usize], keys: &mut [Key; RUN_KEYS]) {
        // SAFETY: the mask reads no more ends than there are, and the load needs no alignment.
        let loaded = unsafe { _mm512_maskz_loadu_epi64(mask(ends.len()), ends.as_ptr().cast()) };
        let lengths = lengths(start, loaded);
        if has_long(lengths, ends.len()) {
            return write_each(text, start, ends, keys);
        }
        let second = ends.get(HALF_RUN_KEYS - 1).copied().unwrap_or(text.len());
        let text = [start, second].map(|at| {
            let rest = &text[at..];
            let first = if rest.len() < 64 { (1 << rest.len()) - 1 } else { u64::MAX };
            // SAFETY: the mask reads no more bytes than there are; the load needs no alignment.
            unsafe { _mm512_maskz_loadu_epi8(first, rest.as_ptr().cast()) }
        });
        store(keys, spread(text, lengths));
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(keys: &mut [Key; RUN_KEYS], words: [__m512i; 2]) {
        for (keys, words) in keys.as_chunks_mut::<HALF_RUN_KEYS>().0.iter_mut().zip(words) {
            // SAFETY: four keys of two words are 64 bytes, and the store needs no alignment.
            unsafe { _mm512_storeu_si512(keys.as_mut_ptr().cast(), words) };
        }
    }

    /// The lengths of pretokens of which the first begins at `start`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn lengths(start: usize, ends: __m512i) -> __m512i {
        let start = _mm512_set1_epi64((start as u64).cast_signed());
        _mm512_sub_epi64(ends, _mm512_alignr_epi64::<7>(ends, start))
    }

    /// Whether one of the first `count` pretokens is longer than a key.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn has_long(lengths: __m512i, count: usize) -> bool {
        let longest = _mm512_set1_epi64((MAX_KEY_BYTES as u64).cast_signed());
        _mm512_mask_cmpgt_epu64_mask(mask(count), lengths, longest) != 0
    }

    /// The keys of eight pretokens of these lengths; each of the two texts begins with four of
    /// them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
    fn spread(text: [__m512i; 2], lengths: __m512i) -> [__m512i; 2] {
        // For each pretoken 16 bits, of which as many are set as it has bytes.
        let one = _mm512_set1_epi64(1);
        let masks = _mm512_sub_epi64(_mm512_sllv_epi64(one, lengths), one);
        let masks = _mm512_cvtepi64_epi16(masks);
        let masks = [_mm_cvtsi128_si64(masks), _mm_extract_epi64::<1>(masks)];
        // The length is in the highest byte.
        let highest = _mm512_slli_epi64::<56>(lengths);
        let which =
            [_mm512_setr_epi64(0, 0, 0, 1, 0, 2, 0, 3), _mm512_setr_epi64(0, 4, 0, 5, 0, 6, 0, 7)];
        std::array::from_fn(|half| {
            let bytes = _mm512_maskz_expand_epi8(masks[half].cast_unsigned(), text[half]);
            let lengths = _mm512_maskz_permutexvar_epi64(0b1010_1010, which[half], highest);
            _mm512_or_si512(bytes, lengths)
        })
    }

    /// A mask of the first `count` of eight elements.
    #[inline]
    fn mask(count: usize) -> u8 {
        if count < 8 { (1 << count) - 1 } else { u8::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All levels write the same keys, wherever the text begins and ends and for any lengths.
        #[test]
        fn keys_are_those_of_plain_code(
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
            let mut plain = [Key::default(); 60];
            write_each(&text, start, &ends, &mut plain);
            for level in SimdLevel::all() {
                let mut keys = vec![[Key::default(); RUN_KEYS]; ends.len().div_ceil(RUN_KEYS)];
                write_on(level, &text, start, &ends, &mut keys);
                let keys = &keys.as_flattened()[..ends.len()];
                prop_assert_eq!(keys, &plain[..ends.len()], "{}", level.name());
            }
        }
    }
}
