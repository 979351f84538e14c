//! Finds the pretokens in 64 bytes at once.
//!
//! The plain reference is [`step`], which walks from the start of a pretoken to its end. Here, the
//! starts of all pretokens in a block are computed as bits, by shifting and combining the masks of
//! the classes. Three decisions keep that simple:
//!
//! 1. **A block begins where a pretoken begins.** No pattern looks back beyond that, so a block
//!    needs no state from the previous one. The last pretoken of a block, whose end is not in the
//!    block, becomes the first one of the next block.
//! 2. **Rare cases end the block early.** Some decisions need more than the adjacent character: a
//!    newline after spaces changes how the spaces are divided, a mark may belong to a word or not.
//!    Starts up to that position are used, and one plain step continues from there.
//! 3. **White space is divided once its end is known**, so starts are certain only up to the last
//!    character of the block that is not white space.
//!
//! In the comments below, a *run* is a maximal sequence of bytes in one mask.

#![expect(
    clippy::inline_always,
    reason = "the code must be compiled for the instructions of the caller"
)]

use crate::machine::simd::{Portable, SimdLevel, Work, prefetch};
use crate::pretokenize::ends::PretokenEnds;
use crate::pretokenize::pattern_shape::{Contraction, PatternShape, Prefix, Tail};
#[cfg(target_arch = "x86_64")]
use crate::pretokenize::scan::classify::ByRows;
use crate::pretokenize::scan::classify::Classify;
use crate::pretokenize::scan::non_ascii::{BLOCK_BYTES, Masks};
use crate::pretokenize::scan::step::{self, contraction, step};

/// The number of plain steps after a block without certain starts, because the next blocks would
/// likely have none either.
const PLAIN_STEPS: usize = 4;

/// The text is prefetched this many bytes ahead: between two calls, encoding uses the caches, and
/// the hardware prefetcher has to start again.
const PREFETCH_BYTES: usize = 1024;

/// Push the ends of the pretokens from `start` on, until the text ends or `ends` is almost full.
pub(super) fn fill(
    level: SimdLevel,
    shape: PatternShape,
    text: &str,
    start: usize,
    ends: &mut PretokenEnds,
) {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512(level, _) => {
            level.run(Fill { shape, text, start, ends, classify: &ByRows::new(level) });
        }
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2(level) => level.run(Fill { shape, text, start, ends, classify: &level }),
        #[cfg(target_arch = "aarch64")]
        SimdLevel::Neon(level) => level.run(Fill { shape, text, start, ends, classify: &level }),
        SimdLevel::Portable => Fill { shape, text, start, ends, classify: &Portable }.run(),
    }
}

struct Fill<'a, C> {
    shape: PatternShape,
    text: &'a str,
    start: usize,
    ends: &'a mut PretokenEnds,
    classify: &'a C,
}

impl<C: Classify> Work for Fill<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { shape, text, start, ends, classify } = self;
        // Constants instead of values: the loop is compiled for each kind of pattern, so it does
        // not test the kind in each block.
        match (shape.prefix, shape.is_cased()) {
            (Prefix::Space, _) => fill_as::<false, false>(shape, text, start, ends, classify),
            (Prefix::Any, false) => fill_as::<true, false>(shape, text, start, ends, classify),
            (Prefix::Any, true) => fill_as::<true, true>(shape, text, start, ends, classify),
        }
    }
}

#[inline(always)]
fn fill_as<const ANY: bool, const CASED: bool>(
    shape: PatternShape,
    text: &str,
    mut start: usize,
    ends: &mut PretokenEnds,
    classify: &impl Classify,
) {
    let bytes = text.as_bytes();
    while start < bytes.len() && ends.spare_capacity() >= BLOCK_BYTES {
        // Each block begins at a start of a pretoken, so nothing before it matters.
        prefetch(bytes, start + PREFETCH_BYTES);
        let mut masks = masks_of(&bytes[start..], classify);
        if CASED {
            masks = with_marks(masks);
        }
        let starts = starts::<ANY, CASED>(shape, &masks, text, start);
        // Bit 0 is the start of this block. Without another one, the pretoken may be longer than
        // the block, or its end is not certain.
        if starts != 1 {
            let is_last = bytes.len() - start <= BLOCK_BYTES;
            start = take(starts, start, ends, classify);
            if is_last {
                // Little more than one pretoken remains, and a block takes three times as long as a
                // step.
                return step::fill(shape, text, start, ends);
            }
        } else if let Some(end) = long_word::<ANY, CASED>(&masks, text, start, classify) {
            start = end;
            ends.push(start);
        } else {
            for _ in 0..PLAIN_STEPS {
                start = step(shape, text, start);
                ends.push(start);
                if start == bytes.len() {
                    return;
                }
            }
        }
    }
}

/// The end of a word that begins with this block and fills it, as in scripts without spaces. `None`
/// if the block is not such a word, or if only plain steps can find its end.
#[cold]
fn long_word<const ANY: bool, const CASED: bool>(
    block: &Masks,
    text: &str,
    start: usize,
    classify: &impl Classify,
) -> Option<usize> {
    if !is_word::<ANY, CASED>(block) {
        return None;
    }
    // `valid` has a bit for each byte of the text, so this is the length of the block.
    let mut end = start + block.valid.count_ones() as usize;
    while end < text.len() {
        let masks = masks_of(&text.as_bytes()[end..], classify);
        // The bytes from the start of the block on that continue the word.
        let length = body::<CASED>(&masks).trailing_ones();
        end += length as usize;
        // A block whose text is all word says nothing about the end; the word goes on. Otherwise,
        // `length` is below 64, so the shift cannot overflow.
        if length < masks.valid.count_ones() {
            let is_cased = (masks.upper | masks.lower) >> length & 1 != 0;
            // Where case counts, a letter with case may belong to this word or begin the next one,
            // and a contraction may follow. Elsewhere, the word ends at the first byte that is no
            // letter.
            return match CASED {
                false => Some(end),
                true if is_cased => None,
                true => Some(contraction(text, end, true).unwrap_or(end)),
            };
        }
    }
    Some(end)
}

/// Whether a whole block is a word of several characters, or the start of one.
#[inline(always)]
fn is_word<const ANY: bool, const CASED: bool>(m: &Masks) -> bool {
    // The bytes of the first character: the block begins at a character.
    let first = with_continuation(1, m.continuation);
    let no_prefix = m.upper | m.lower | m.uncased | m.number | m.newline;
    let prefix = first & if ANY { !no_prefix } else { m.blank };
    // All bytes continue a word, except those of a first character that may be a prefix. There must
    // be a second character: a prefix alone is no word.
    m.valid & !body::<CASED>(m) & !prefix == 0 && m.valid & !first != 0
}

/// The characters that continue a long word: letters; where case counts, letters without case and
/// marks.
#[inline(always)]
fn body<const CASED: bool>(m: &Masks) -> u64 {
    m.uncased | if CASED { m.mark } else { m.upper | m.lower }
}

/// The masks of the next block; `rest` is not empty.
#[inline(always)]
fn masks_of(rest: &[u8], classify: &impl Classify) -> Masks {
    if let Some(block) = rest.first_chunk() {
        return classify.masks(block, BLOCK_BYTES);
    }
    // The last block of a text is shorter; `valid` excludes the zeros that fill it up.
    classify.masks(&classify.padded(rest), rest.len())
}

/// Push all starts except the first as ends. Returns the last start, at which to continue.
#[inline(always)]
fn take(starts: u64, start: usize, ends: &mut PretokenEnds, classify: &impl Classify) -> usize {
    // Removes the lowest bit, the start of the first pretoken, which ends none in this block.
    let left = starts & (starts - 1);
    let count = left.count_ones() as usize;
    let positions = classify.positions(left);
    // The caller has checked that 64 more ends fit. In groups of eight, the inner loop has a fixed
    // length and no branch.
    let spare = ends.spare::<BLOCK_BYTES>().as_chunks_mut::<8>().0;
    let eights = spare.iter_mut().zip(positions.as_chunks::<8>().0);
    // Writing a few superfluous ends costs less than a branch misprediction.
    for (ends, positions) in eights.take(count.div_ceil(8)) {
        for (end, &position) in ends.iter_mut().zip(positions) {
            *end = start + usize::from(position);
        }
    }
    ends.add(count);
    // The highest bit: the last pretoken may go on in the next block.
    start + 63 - starts.leading_zeros() as usize
}

/// The certain starts of pretokens in a block; the first byte is always one.
#[inline(always)]
fn starts<const ANY: bool, const CASED: bool>(
    shape: PatternShape,
    m: &Masks,
    text: &str,
    start: usize,
) -> u64 {
    let letter = m.upper | m.lower | m.uncased | if CASED { m.mark } else { 0 };
    let white = m.space | m.newline;
    let other = m.valid & !(letter | m.number | white);
    // Bit i of a mask is byte i, so a shift to the left marks the bytes after those of the mask.
    let after_blank = m.blank << 1;

    // Punctuation begins a pretoken, unless a space precedes it and begins the pretoken.
    let other_starts = first(other) & !after_blank;
    let number_starts = first(m.number) & if ANY { u64::MAX } else { !after_blank };
    let mut all = 1 | other_starts | number_starts;
    if ANY {
        // A word includes one character before it, unless that belongs to another pretoken: a
        // longer run of punctuation, or punctuation after a space.
        let prefix = with_continuation(other_starts, m.continuation) | m.space;
        all |= first(letter) & !(prefix << 1);
        // The last space of several goes with what follows: `a···b` is `a`, `··`, `·b`. A single
        // space is the first and the last of its run, so one bit is set twice.
        all |= first(m.space) | last(m.space, white, m.continuation);
        // A newline continues the white space or the punctuation before it.
        all |= first(m.newline) & !(white << 1) & !(other << 1);
    } else {
        // Newlines are white space like any other here. Only U+0020 goes with the next word, so a
        // word after other white space begins at its first letter.
        all |= first(letter) & !after_blank;
        all |= first(white) | last(white, white, m.continuation);
    }
    if let Some(most) = shape.digits {
        all |= digit_groups(m.number, m.continuation, most);
    }
    if CASED {
        // `camelCase` is two pretokens: an upper-case letter after a lower-case one begins the
        // second.
        all |= m.upper & (m.lower << 1);
        // Only an apostrophe after a letter can begin a suffix of a word.
        all = suffixes(all, m.apostrophe & (letter << 1), text, start);
    } else if m.apostrophe & other_starts != 0 {
        // Only an apostrophe that begins a pretoken can begin a contraction.
        let any_case = shape.contraction == Contraction::AnyCase;
        all = contractions::<ANY>(all, m.apostrophe & other_starts, any_case, text, start);
    }
    all & certain::<ANY, CASED>(shape, m, all, white)
}

/// The same masks, with marks after lower-case letters counted as lower case: both end a word in
/// the same way. A block with an apostrophe is unchanged, because the word may have ended before
/// the mark.
#[inline(always)]
fn with_marks(m: Masks) -> Masks {
    if m.mark == 0 || m.apostrophe != 0 {
        return m;
    }
    // The carry of the sum runs from the first mark of a run to the bit after its last mark. Marks
    // in bits 1 and 2 after a lower-case letter in bit 0: 0b0110 + 0b0010 = 0b1000, which has
    // neither. A run after anything else adds nothing and stays in the sum.
    let marks = m.mark & !m.mark.wrapping_add(m.lower << 1 & m.mark);
    Masks { lower: m.lower | marks, mark: m.mark & !marks, ..m }
}

/// The bits up to which starts are certain.
#[inline(always)]
fn certain<const ANY: bool, const CASED: bool>(
    shape: PatternShape,
    m: &Masks,
    starts: u64,
    white: u64,
) -> u64 {
    // Up to the last character that is not white space. All of its bytes may be included, since
    // starts are only at first bytes.
    let solid = m.valid & !white;
    let mut certain = if solid == 0 { 1 } else { u64::MAX >> solid.leading_zeros() };
    // In white space with a newline after a space, only the start of the first pretoken is certain.
    let before_newline = m.space & (m.newline >> 1);
    if ANY && before_newline != 0 {
        let at = before_newline.trailing_zeros();
        // The white space that contains it begins after the last other byte before it; the first
        // start from there on is the last certain one.
        let before = !white & !(u64::MAX << at);
        // `before` has only bits below `at`, so `run` is at most `at`, and the shifts do not
        // overflow. Without a start from there on, all 64 bits stay.
        let run = 64 - before.leading_zeros();
        let first_start = (starts & (u64::MAX << run)).trailing_zeros();
        certain &= u64::MAX >> (63 - first_start.min(63));
    }
    let mut stop = 0;
    if CASED {
        // A letter without case may belong to the upper-case or the lower-case part of a word. A
        // mark after such a letter belongs to the word.
        let (cased, uncased) = (m.upper | m.lower, m.uncased | m.mark);
        stop |= uncased & (cased << 1) | cased & (uncased << 1) | m.mark & !(uncased << 1);
    }
    if shape.tail == Tail::NewlinesAndSlashes {
        stop |= m.slash & (m.newline << 1);
    }
    if stop != 0 {
        // From the first doubtful byte on, nothing is certain.
        certain &= !(u64::MAX << stop.trailing_zeros());
    }
    certain | 1
}

/// The first bytes of runs: of `0b0111_0110`, the bits of `0b0001_0010`.
#[inline(always)]
fn first(mask: u64) -> u64 {
    mask & !(mask << 1)
}

/// The first bytes of the last characters of the runs of `mask` that are not followed by a byte of
/// `follower`.
#[inline(always)]
fn last(mask: u64, follower: u64, continuation: u64) -> u64 {
    // A shift to the right marks the bytes before those of the mask. The last bit has no byte after
    // it in the block, so it counts as not followed; `certain` removes such a start, because the
    // white space may go on.
    let mut last = mask & !(follower >> 1);
    // From the last byte of a character back to its first, at most three steps for all at once.
    while last & continuation != 0 {
        last = last & !continuation | (last & continuation) >> 1;
    }
    last
}

/// All bytes of the characters whose first bytes are `firsts`.
#[inline(always)]
fn with_continuation(firsts: u64, continuation: u64) -> u64 {
    let mut all = firsts;
    if continuation != 0 {
        // A character has at most four bytes: each step adds the next byte of every character.
        for _ in 0..3 {
            all |= all << 1 & continuation;
        }
    }
    all
}

/// The starts of the groups of `most` digits into which runs of digits are divided, except the
/// first group of each run.
#[inline(always)]
fn digit_groups(number: u64, continuation: u64, most: u8) -> u64 {
    if number & continuation != 0 {
        return wide_digit_groups(number, continuation, most);
    }
    // Digits that follow `most` other digits: for three, of 12345678 the digits from 4 on. The
    // first of them begins a group, and so does every third after it: 123, 456, 78.
    let full = (1..=most).fold(number, |full, before| full & (number << before));
    // Each pass adds the next group of all runs at once. A group that `full` does not continue is
    // the last of its run.
    let (mut groups, mut last) = (0, first(number) << most & full);
    while last != 0 {
        groups |= last;
        last = last << most & full;
    }
    groups
}

/// The same as [`digit_groups`] if some digits have several bytes.
#[cold]
fn wide_digit_groups(number: u64, continuation: u64, most: u8) -> u64 {
    let (mut groups, mut left) = (0, number & !continuation);
    let (mut previous, mut count) = (u32::MAX, 0);
    while left != 0 {
        let at = left.trailing_zeros();
        // Each pass takes one digit, by its first byte; `left & (left - 1)` removes it.
        // Two digits are in one run if all bytes between them belong to digits.
        let gap = previous == u32::MAX || !number >> previous & ((1 << (at - previous)) - 1) != 0;
        count = if gap { 0 } else { count + 1 };
        if count == u32::from(most) {
            groups |= 1 << at;
            count = 0;
        }
        previous = at;
        left &= left - 1;
    }
    groups
}

/// Contractions as separate pretokens: add a start after each. If only a space may precede a word,
/// remove the start at the letters of the contraction.
fn contractions<const ANY: bool>(
    mut starts: u64,
    mut apostrophes: u64,
    any_case: bool,
    text: &str,
    start: usize,
) -> u64 {
    while apostrophes != 0 {
        let at = apostrophes.trailing_zeros() as usize;
        if let Some(end) = contraction(text, start + at, any_case) {
            // Two shifts: the bit after bit 63 is none, and a shift by 64 would overflow.
            if !ANY {
                starts &= !(1u64 << at << 1);
            }
            // Of all bits from the end on, the lowest; no bit if the end is beyond the block.
            starts |= first(bits_from(end - start));
        }
        apostrophes &= apostrophes - 1;
    }
    starts
}

/// Contractions at the end of a word: remove the starts at and after the apostrophe, and add one
/// after the contraction. A word has at most one.
fn suffixes(mut starts: u64, mut apostrophes: u64, text: &str, start: usize) -> u64 {
    let mut after_suffix = usize::MAX;
    while apostrophes != 0 {
        let at = apostrophes.trailing_zeros() as usize;
        // An apostrophe right after a suffix begins the next pretoken.
        if at != after_suffix
            && let Some(end) = contraction(text, start + at, true)
        {
            after_suffix = end - start;
            // `from & !after` are the bytes of the contraction: `'ll` in `we'll` has no start
            // inside.
            let (from, after) = (u64::MAX << at, bits_from(after_suffix));
            starts = starts & !(from & !after) | first(after);
        }
        apostrophes &= apostrophes - 1;
    }
    starts
}

/// The bits from a position on, which may be beyond the block.
#[inline(always)]
fn bits_from(position: usize) -> u64 {
    if position < BLOCK_BYTES { u64::MAX << position } else { 0 }
}
