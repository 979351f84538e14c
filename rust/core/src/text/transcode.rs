//! Transcodes text from units of one, two or four bytes to UTF-8.
//!
//! Sixteen units are converted together. ASCII is narrowed. Other characters below U+10000 become
//! words of four bytes that begin with their UTF-8, and the used bytes are then packed: by a
//! compress instruction where the processor has it, else by overlapping stores, without branches.
//! Surrogates and characters from U+10000 on are converted one by one.

use crate::error::Result;
use crate::machine::simd::{Portable, SimdLevel, Work};
use crate::memory;

/// How many units are converted together.
pub(super) const RUN_UNITS: usize = 16;

/// How many bytes are written for a run: four per unit, although at most three of them are used.
const RUN_BYTES: usize = 4 * RUN_UNITS;

/// Bytes are collected in a buffer of this size before they are appended.
const BUFFER_BYTES: usize = 8 * RUN_BYTES;

/// Write units as UTF-8 into an empty buffer. A lone surrogate becomes U+FFFD; a pair of surrogates
/// becomes its character.
#[expect(unsafe_code, reason = "validating the UTF-8 takes half as long as writing it")]
pub(crate) fn write<U: Copy + Into<u32>>(units: &[U], buffer: &mut String) -> Result<()> {
    let mut bytes = std::mem::take(buffer).into_bytes();
    memory::reserve(&mut bytes, units.len() + units.len() / 2 + RUN_BYTES)?;
    let written = write_units(SimdLevel::current(), units, &mut bytes);
    // SAFETY: `Write` appends whole characters in UTF-8 only.
    *buffer = unsafe { String::from_utf8_unchecked(bytes) };
    written
}

fn write_units<U: Copy + Into<u32>>(
    level: SimdLevel,
    units: &[U],
    bytes: &mut Vec<u8>,
) -> Result<()> {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512(level, _) => level.run(Write { units, bytes, pack: level }),
        _ => Write { units, bytes, pack: Portable }.run(),
    }
}

/// Packs the UTF-8 of a run; all implementations write the same bytes.
trait Pack: Copy {
    /// Write characters below U+10000, none of them a surrogate; returns how many bytes are used.
    fn pack(self, run: &[u32; RUN_UNITS], out: &mut [u8; RUN_BYTES]) -> usize;
}

/// Units to be appended as UTF-8.
struct Write<'a, U, P> {
    units: &'a [U],
    bytes: &'a mut Vec<u8>,
    pack: P,
}

impl<U: Copy + Into<u32>, P: Pack> Work for Write<'_, U, P> {
    type Output = Result<()>;

    #[expect(clippy::inline_always, reason = "`Work` requires it")]
    #[inline(always)]
    fn run(self) -> Result<()> {
        let Self { units: mut rest, bytes, pack } = self;
        let (mut buffer, mut filled) = ([0; BUFFER_BYTES], 0);
        while let Some((run, after)) = rest.split_first_chunk::<RUN_UNITS>() {
            let run = run.map(Into::into);
            rest = after;
            if filled > BUFFER_BYTES - RUN_BYTES {
                memory::extend(bytes, &buffer[..filled])?;
                filled = 0;
            }
            let free = buffer[filled..].first_chunk_mut().expect("a run fits in the buffer");
            // Folds over all sixteen units have no early exit, so that the compiler can vectorize
            // them. A bit above the lowest seven in any unit is also in the union.
            if run.iter().fold(0, |all, unit| all | unit) < 0x80 {
                free[..RUN_UNITS].copy_from_slice(&run.map(|unit| unit.to_le_bytes()[0]));
                filled += RUN_UNITS;
            } else if run.iter().fold(true, |all, &unit| all & is_single_unit(unit)) {
                filled += pack.pack(&run, free);
            } else {
                // Room for the buffer, and for this run and one more unit, of at most four bytes
                // each.
                memory::reserve(bytes, filled + 2 * RUN_BYTES)?;
                bytes.extend_from_slice(&buffer[..filled]);
                filled = 0;
                // The run must not end between the halves of a surrogate pair.
                let low = after.first().filter(|&&unit| (0xDC00..0xE000).contains(&unit.into()));
                write_any(run.into_iter().chain(low.map(|&unit| unit.into())), bytes);
                rest = &after[usize::from(low.is_some())..];
            }
        }
        memory::reserve(bytes, filled + RUN_BYTES)?;
        bytes.extend_from_slice(&buffer[..filled]);
        write_any(rest.iter().map(|&unit| unit.into()), bytes);
        Ok(())
    }
}

/// Whether a unit is a character below U+10000, so not a surrogate.
#[inline]
fn is_single_unit(unit: u32) -> bool {
    // The surrogates, D800 to DFFF, are all numbers with these upper five of sixteen bits.
    unit < 0x1_0000 && unit & 0xF800 != 0xD800
}

/// Append units of any kind; the caller has reserved memory for their UTF-8.
fn write_any(units: impl Iterator<Item = u32>, bytes: &mut Vec<u8>) {
    let halves = units.flat_map(|unit| match (u16::try_from(unit), char::from_u32(unit)) {
        (Ok(unit), _) => [Some(unit), None],
        (_, Some(character)) => {
            let mut pair = [0; 2];
            character.encode_utf16(&mut pair);
            pair.map(Some)
        }
        _ => [Some(0xFFFD), None],
    });
    for character in char::decode_utf16(halves.flatten()) {
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

impl Pack for Portable {
    #[inline]
    fn pack(self, run: &[u32; RUN_UNITS], out: &mut [u8; RUN_BYTES]) -> usize {
        let mut done = 0;
        for &unit in run {
            // Each word has the UTF-8 in the order of little-endian memory: the first byte,
            // 110aaaaa of two or 1110aaaa of three, in the lowest bits, then 10bbbbbb for each six
            // bits that follow.
            let (middle, last) = (unit >> 6 & 0x3F | 0x80, unit & 0x3F | 0x80);
            let two = unit >> 6 | 0xC0 | last << 8;
            let three = unit >> 12 | 0xE0 | middle << 8 | last << 16;
            let (is_two, is_three) = (unit >= 0x80, unit >= 0x800);
            let character = if is_three {
                three
            } else if is_two {
                two
            } else {
                unit
            };
            // Always four bytes, so no copy has a variable length; the next word overwrites what is
            // not used. At most three bytes of each word count, so sixteen words end within `out`.
            *out[done..].first_chunk_mut().expect("four bytes per unit") = character.to_le_bytes();
            done += 1 + usize::from(is_two) + usize::from(is_three);
        }
        done
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions: a tenth of encoding texts of two-byte units")]
mod avx512 {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_cmpge_epu32_mask, _mm512_loadu_si512, _mm512_mask_blend_epi32,
        _mm512_maskz_compress_epi8, _mm512_or_si512, _mm512_set1_epi32, _mm512_slli_epi32,
        _mm512_srli_epi32, _mm512_storeu_si512, _mm512_test_epi8_mask,
    };

    use super::{Pack, RUN_BYTES, RUN_UNITS};
    use crate::machine::simd::Avx512;

    impl Pack for Avx512 {
        #[inline]
        fn pack(self, run: &[u32; RUN_UNITS], out: &mut [u8; RUN_BYTES]) -> usize {
            // SAFETY: `self` proves that the processor has these instructions.
            unsafe { pack(run, out) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn pack(run: &[u32; RUN_UNITS], out: &mut [u8; RUN_BYTES]) -> usize {
        let all = |word: i32| _mm512_set1_epi32(word);
        // SAFETY: the run is sixteen numbers of 4 bytes, and the load needs no alignment.
        let units = unsafe { _mm512_loadu_si512(run.as_ptr().cast()) };
        // A continuation byte: 10 and the lowest six bits.
        let six = |bits| _mm512_or_si512(_mm512_and_si512(bits, all(0x3F)), all(0x80));
        let (last, higher) = (six(units), _mm512_srli_epi32::<6>(units));
        let two = _mm512_or_si512(higher, _mm512_slli_epi32::<8>(last));
        let two = _mm512_or_si512(two, all(0xC0));
        let tail = _mm512_or_si512(six(higher), _mm512_slli_epi32::<8>(last));
        let first = _mm512_or_si512(_mm512_srli_epi32::<12>(units), all(0xE0));
        let three = _mm512_or_si512(first, _mm512_slli_epi32::<8>(tail));
        // All three forms were computed for all units; the masks choose by the size of each unit.
        let words = _mm512_mask_blend_epi32(_mm512_cmpge_epu32_mask(units, all(0x80)), units, two);
        let words =
            _mm512_mask_blend_epi32(_mm512_cmpge_epu32_mask(units, all(0x800)), words, three);
        // The first byte of a word is always used, even if it is zero (U+0000); the other bytes
        // are used unless they are zero.
        let count = _mm512_test_epi8_mask(words, words) | 0x1111_1111_1111_1111;
        // Moves the used bytes together, in order; the rest of the vector becomes zeros.
        let packed = _mm512_maskz_compress_epi8(count, words);
        // SAFETY: `out` has 64 bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), packed) };
        count.count_ones() as usize
    }
}

// ---------------------------------------------------------------------------- characters
//
// Counts characters in UTF-8, and finds surrogates: lone ones, and pairs that are one character.
//
// A `str` of Python and a string of JavaScript may hold halves of a pair. UTF-8 cannot, so a lone
// one is an error where a corpus is read strictly, and becomes U+FFFD elsewhere. Two halves side
// by side become their character, also where the string holds them as two units of four bytes.

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
pub(super) struct Surrogate {
    /// The index of its first unit.
    pub(super) at: usize,
    pub(super) code: u32,
    pub(super) is_pair: bool,
}

/// The surrogates among units, in order.
pub(super) fn surrogates<U: Copy + Into<u32>>(units: &[U]) -> impl Iterator<Item = Surrogate> {
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

/// The largest number of bytes for which a sum of one byte cannot overflow. Such a sum is
/// vectorized.
pub(super) const BLOCK_BYTES: usize = u8::MAX as usize;

/// Whether a byte of UTF-8 is the first one of a character.
pub(crate) fn starts_char(byte: u8) -> bool {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Text;

    proptest! {
        /// Every level packs characters of one unit.
        #[test]
        fn characters_of_one_unit_are_packed(
            run in prop::collection::vec(prop_oneof![
                0u32..0x80, 0x80u32..0x800, 0x800u32..0xD800, 0xE000u32..0x1_0000,
            ], 0..80),
        ) {
            let text: String = run.iter().filter_map(|&unit| char::from_u32(unit)).collect();
            for level in SimdLevel::all() {
                let mut bytes = Vec::new();
                write_units(level, &run, &mut bytes).unwrap();
                prop_assert_eq!(&bytes, text.as_bytes(), "{}", level.name());
            }
        }

        #[test]
        fn every_level_writes_the_same_utf8_as_the_standard_library(
            units in prop::collection::vec(prop_oneof![0u16..0x80, any::<u16>()], 0..80),
        ) {
            let expected = String::from_utf16_lossy(&units).into_bytes();
            for level in SimdLevel::all() {
                let mut bytes = Vec::new();
                write_units(level, &units, &mut bytes).unwrap();
                prop_assert_eq!(&bytes, &expected, "{}", level.name());
            }
        }

        #[test]
        fn single_unit_characters_agree_with_the_standard_library(unit in 0u32..0x11_0000) {
            let expected = unit < 0x1_0000 && char::from_u32(unit).is_some();
            prop_assert_eq!(is_single_unit(unit), expected);
        }
    }

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
            for text in [Text::Utf16(&units), Text::Utf32(&wide)] {
                prop_assert_eq!(text.lone_surrogate(), lone);
                prop_assert_eq!(&text.pairs().unwrap(), &pairs);
            }
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
