//! The pretokens of 64 bytes at once.
//!
//! The plain way is [`step`](super::step): stand at the start of a pretoken and walk to its end.
//! Here the starts of all pretokens in a block are computed as bits, by shifting and combining the
//! masks of the classes. Three decisions keep that simple:
//!
//! 1. **A block begins where a pretoken begins.** No pattern looks back over a border, so a block
//!    needs to know nothing of what came before. The last pretoken of a block, whose end is not
//!    seen, is looked at again as the first of the next.
//! 2. **What is rare stops the block.** Some decisions need more than a neighbour: a newline behind
//!    spaces changes what happens to the spaces, a mark may belong to a word or not. Starts are
//!    taken up to there, and one step of the plain way goes on.
//! 3. **White space is decided when its end is seen**, so starts count only up to the last character
//!    of the block that is no white space.
//!
//! In the comments below, a *run* is a longest sequence of bytes of one mask.

#![expect(
    clippy::inline_always,
    reason = "all of it must be compiled for the instructions of the caller"
)]

use super::super::Ends;
use super::super::family::{Contraction, Family, Prefix, Tail};
use super::classify::{BLOCK, Classify, Masks, Work};
use super::step::{self, contraction, step};
use crate::prefetch::prefetch;

/// How many plain steps follow where a block gave nothing: there, blocks are likely to fail again.
const STEPS: usize = 4;

/// Text is asked for so many bytes before it is looked at. Between two calls others use the processor, and
/// what it guesses of a text by itself it guesses anew for each call.
const AHEAD: usize = 1024;

/// Fill `ends` with the ends of the pretokens from `start` on.
pub(super) struct Fill<'a> {
    pub(super) family: Family,
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) ends: &'a mut Ends,
}

impl Work for Fill<'_> {
    #[inline(always)]
    fn run(self, classify: &impl Classify) {
        let Self { family, text, start, ends } = self;
        match (family.prefix, family.cased) {
            (Prefix::Space, _) => fill::<false, false>(family, text, start, ends, classify),
            (Prefix::Any, false) => fill::<true, false>(family, text, start, ends, classify),
            (Prefix::Any, true) => fill::<true, true>(family, text, start, ends, classify),
        }
    }
}

#[inline(always)]
fn fill<const ANY: bool, const CASED: bool>(
    family: Family,
    text: &str,
    mut start: usize,
    ends: &mut Ends,
    classify: &impl Classify,
) {
    let bytes = text.as_bytes();
    while start < bytes.len() && ends.room() >= BLOCK {
        prefetch(bytes, start + AHEAD);
        let mut masks = masks_of(&bytes[start..], classify);
        if CASED {
            masks = with_marks(masks);
        }
        let starts = starts::<ANY, CASED>(family, &masks, text, start);
        if starts != 1 {
            let is_last = bytes.len() - start <= BLOCK;
            start = take(starts, start, ends, classify);
            if is_last {
                // What is left is one pretoken, or little more, and another block takes three times as long as a step.
                return step::fill(family, text, start, ends);
            }
        } else if let Some(end) = long_word::<ANY, CASED>(&masks, text, start, classify) {
            start = end;
            ends.push(start);
        } else {
            for _ in 0..STEPS {
                start = step(family, text, start);
                ends.push(start);
                if start == bytes.len() {
                    return;
                }
            }
        }
    }
}

/// The end of a word that begins where this block begins and fills it, as words do in scripts that put no
/// spaces between them. `None` if it is no such word, or one that only the plain way can end.
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
    let mut end = start + block.valid.count_ones() as usize;
    while end < text.len() {
        let masks = masks_of(&text.as_bytes()[end..], classify);
        let length = body::<CASED>(&masks).trailing_ones();
        end += length as usize;
        if length < masks.valid.count_ones() {
            let is_cased = (masks.upper | masks.lower) >> length & 1 != 0;
            return match CASED {
                false => Some(end),
                true if is_cased => None,
                true => Some(contraction(text, end, true).unwrap_or(end)),
            };
        }
    }
    Some(end)
}

/// Whether a block is a word of several characters, or the beginning of one.
#[inline(always)]
fn is_word<const ANY: bool, const CASED: bool>(m: &Masks) -> bool {
    let first = with_continuation(1, m.continuation);
    let no_prefix = m.upper | m.lower | m.uncased | m.number | m.newline;
    let prefix = first & if ANY { !no_prefix } else { m.blank };
    m.valid & !body::<CASED>(m) & !prefix == 0 && m.valid & !first != 0
}

/// What goes on in a long word: letters. Where case counts, those that have none, and marks.
#[inline(always)]
fn body<const CASED: bool>(m: &Masks) -> u64 {
    m.uncased | if CASED { m.mark } else { m.upper | m.lower }
}

/// The masks of the next block of a text that is not over.
#[inline(always)]
fn masks_of(rest: &[u8], classify: &impl Classify) -> Masks {
    if let Some(block) = rest.first_chunk() {
        return classify.masks(block, BLOCK);
    }
    let mut padded = [0; BLOCK];
    padded[..rest.len()].copy_from_slice(rest);
    classify.masks(&padded, rest.len())
}

/// Push all starts but the first as ends; the last is where to go on.
#[inline(always)]
fn take(starts: u64, start: usize, ends: &mut Ends, classify: &impl Classify) -> usize {
    let left = starts & (starts - 1);
    let count = left.count_ones() as usize;
    let places = classify.places(left);
    let eights =
        ends.spare::<BLOCK>().as_chunks_mut::<8>().0.iter_mut().zip(places.as_chunks::<8>().0);
    // A few too many cost less than a branch for each, which a processor would have to guess.
    for (ends, places) in eights.take(count.div_ceil(8)) {
        for (end, &place) in ends.iter_mut().zip(places) {
            *end = start + usize::from(place);
        }
    }
    ends.add(count);
    start + 63 - starts.leading_zeros() as usize
}

/// The starts of pretokens in a block, as far as they are sure; the first byte is one.
#[inline(always)]
fn starts<const ANY: bool, const CASED: bool>(
    family: Family,
    m: &Masks,
    text: &str,
    start: usize,
) -> u64 {
    let letter = m.upper | m.lower | m.uncased | if CASED { m.mark } else { 0 };
    let white = m.space | m.newline;
    let other = m.valid & !(letter | m.number | white);
    let behind_blank = m.blank << 1;

    // Punctuation begins a pretoken unless a space stands before it, and then the space does.
    let other_starts = first(other) & !behind_blank;
    let number_starts = first(m.number) & if ANY { u64::MAX } else { !behind_blank };
    let mut all = 1 | other_starts | number_starts;
    if ANY {
        // One character before a word goes with it, unless it is part of something else: a longer
        // run of punctuation, or punctuation behind a space.
        let prefix = with_continuation(other_starts, m.continuation) | m.space;
        all |= first(letter) & !(prefix << 1);
        all |= first(m.space) | last(m.space, white, m.continuation);
        all |= first(m.newline) & !(white << 1) & !(other << 1);
    } else {
        all |= first(letter) & !behind_blank;
        all |= first(white) | last(white, white, m.continuation);
    }
    if let Some(most) = family.digits {
        all |= digit_groups(m.number, m.continuation, most);
    }
    if CASED {
        all |= m.upper & (m.lower << 1);
        all = suffixes(all, m.apostrophe & (letter << 1), text, start);
    } else if m.apostrophe & other_starts != 0 {
        let any_case = family.contraction == Contraction::AnyCase;
        all = contractions::<ANY>(all, m.apostrophe & other_starts, any_case, text, start);
    }
    all & sure::<ANY, CASED>(family, m, all, white)
}

/// The same masks, with marks behind lower-case letters among these: both end a word in the same way. Where
/// there is an apostrophe, the word may have ended before the mark.
#[inline(always)]
fn with_marks(m: Masks) -> Masks {
    if m.mark == 0 || m.apostrophe != 0 {
        return m;
    }
    // A sum carries from the first mark of a run to behind its last.
    let marks = m.mark & !m.mark.wrapping_add(m.lower << 1 & m.mark);
    Masks { lower: m.lower | marks, mark: m.mark & !marks, ..m }
}

/// The bits up to which starts are sure.
#[inline(always)]
fn sure<const ANY: bool, const CASED: bool>(
    family: Family,
    m: &Masks,
    starts: u64,
    white: u64,
) -> u64 {
    // Up to the last character that is no white space. Its last byte will do: starts are at first
    // bytes.
    let solid = m.valid & !white;
    let mut sure = if solid == 0 { 1 } else { u64::MAX >> solid.leading_zeros() };
    // White space with a newline behind a space: only its first pretoken starts where it seems to.
    let before_newline = m.space & (m.newline >> 1);
    if ANY && before_newline != 0 {
        let at = before_newline.trailing_zeros();
        let before = !white & !(u64::MAX << at);
        let run = 64 - before.leading_zeros();
        let first_start = (starts & (u64::MAX << run)).trailing_zeros();
        sure &= u64::MAX >> (63 - first_start.min(63));
    }
    let mut stop = 0;
    if CASED {
        // What has no case may end either half of a word. Marks are part of a word behind a letter.
        let (cased, uncased) = (m.upper | m.lower, m.uncased | m.mark);
        stop |= uncased & (cased << 1) | cased & (uncased << 1) | m.mark & !(uncased << 1);
    }
    if family.tail == Tail::NewlinesAndSlashes {
        stop |= m.slash & (m.newline << 1);
    }
    if stop != 0 {
        sure &= !(u64::MAX << stop.trailing_zeros());
    }
    sure | 1
}

/// The first bytes of runs.
#[inline(always)]
fn first(mask: u64) -> u64 {
    mask & !(mask << 1)
}

/// The last characters of runs of `mask` that no `follower` follows, at their first bytes.
#[inline(always)]
fn last(mask: u64, follower: u64, continuation: u64) -> u64 {
    let mut last = mask & !(follower >> 1);
    while last & continuation != 0 {
        last = last & !continuation | (last & continuation) >> 1;
    }
    last
}

/// All bytes of the characters whose first bytes are given.
#[inline(always)]
fn with_continuation(firsts: u64, continuation: u64) -> u64 {
    let mut all = firsts;
    if continuation != 0 {
        for _ in 0..3 {
            all |= all << 1 & continuation;
        }
    }
    all
}

/// Where digits are divided, `most` of them going together, counted from the start of each run.
#[inline(always)]
fn digit_groups(number: u64, continuation: u64, most: u8) -> u64 {
    if number & continuation != 0 {
        return wide_digit_groups(number, continuation, most);
    }
    // Bytes that have so many digits before them.
    let full = (1..=most).fold(number, |full, before| full & (number << before));
    let (mut groups, mut last) = (0, first(number) << most & full);
    while last != 0 {
        groups |= last;
        last = last << most & full;
    }
    groups
}

/// The same for digits of which some take more than a byte.
#[cold]
fn wide_digit_groups(number: u64, continuation: u64, most: u8) -> u64 {
    let (mut groups, mut left) = (0, number & !continuation);
    let (mut place, mut count) = (u32::MAX, 0);
    while left != 0 {
        let at = left.trailing_zeros();
        // Digits go together if there are only bytes of numbers between them.
        let gap = place == u32::MAX || !number >> place & ((1 << (at - place)) - 1) != 0;
        count = if gap { 0 } else { count + 1 };
        if count == u32::from(most) {
            groups |= 1 << at;
            count = 0;
        }
        place = at;
        left &= left - 1;
    }
    groups
}

/// Contractions that are pretokens of their own: a start behind each. Where a word has no prefix
/// but a space, the start that its letters seem to be goes away.
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
            if !ANY {
                starts &= !(1u64 << at << 1);
            }
            starts |= first(bits_from(end - start));
        }
        apostrophes &= apostrophes - 1;
    }
    starts
}

/// Contractions that end a word: no start at the apostrophe or within, but one behind. A word has
/// one at most.
fn suffixes(mut starts: u64, mut apostrophes: u64, text: &str, start: usize) -> u64 {
    let mut after_suffix = usize::MAX;
    while apostrophes != 0 {
        let at = apostrophes.trailing_zeros() as usize;
        if at != after_suffix
            && let Some(end) = contraction(text, start + at, true)
        {
            after_suffix = end - start;
            let (from, behind) = (u64::MAX << at, bits_from(after_suffix));
            starts = starts & !(from & !behind) | first(behind);
        }
        apostrophes &= apostrophes - 1;
    }
    starts
}

/// The bits from a place on, which may be behind the block.
#[inline(always)]
fn bits_from(place: usize) -> u64 {
    if place < BLOCK { u64::MAX << place } else { 0 }
}
