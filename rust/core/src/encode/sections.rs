//! Divides long pretokens into sections that merge independently.
//!
//! Chinese, Japanese and Thai do not separate words by spaces, so their pretokens are long and
//! rarely repeat; the sections between their [`SplitPoints`] are short and repeat often. A section
//! is looked up, merged and cached as a pretoken is.

use std::ops::{Range, RangeInclusive};

use crate::encode::lookup::WINDOW_PRETOKENS;
use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::hash::key::MAX_KEY_BYTES;

/// Pretokens with more bytes are divided. Pretokens of Han and Kana are divided beyond
/// [`MAX_KEY_BYTES`] already; in other scripts, pretokens of that length are words, which repeat as a
/// whole.
const MAX_UNDIVIDED_BYTES: usize = 30;

/// The number of bytes that are compared at once.
const BLOCK_BYTES: usize = 32;

/// The first bytes of Han and Kana in UTF-8.
const HAN: RangeInclusive<u8> = 0xE3..=0xE9;

/// Whether a text may have pretokens to divide: whether it has characters of three or four bytes
/// other than the punctuation and symbols that start with 0xE2.
#[inline]
pub(crate) fn may_divide(text: &[u8]) -> bool {
    let highest = |bytes: &[u8]| {
        // Without an early exit, the compiler vectorizes the loop.
        bytes.iter().map(|&byte| if byte == 0xE2 { 0 } else { byte }).fold(0, u8::max)
    };
    let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
    !text.is_ascii() && (blocks.iter().any(|block| highest(block) >= 0xE0) || highest(rest) >= 0xE0)
}

/// Pass the ends of the pretokens, or of their sections if they are long, to `take`, at most
/// [`WINDOW_PRETOKENS`] at a time. The first pretoken starts at `start`; `sections` is a
/// buffer.
///
/// Fails as `take` does, or if a table must be built for the first long pretoken and there is
/// not enough memory.
pub(crate) fn divide(
    encoder: &PretokenEncoder,
    text: &[u8],
    mut start: usize,
    ends: &[usize],
    sections: &mut Vec<usize>,
    mut take: impl FnMut(&[usize]) -> Result<()>,
) -> Result<()> {
    sections.clear();
    let mut add = |end| {
        sections.push(end);
        if sections.len() == WINDOW_PRETOKENS {
            take(sections)?;
            sections.clear();
        }
        Ok(())
    };
    for &end in ends {
        let pretoken = &text[start..end];
        if is_long(pretoken) && !encoder.drops_from(pretoken) {
            divide_one(encoder, pretoken, |at| add(start + at))?;
        } else {
            add(end)?;
        }
        start = end;
    }
    take(sections)
}

/// Pass the ends of the sections of a pretoken to `add`. A section that is a token which
/// merging does not produce is joined to the section before it, or else to the section after
/// it. No token crosses the point between two sections, so the joined section is not a token,
/// and is merged.
fn divide_one(
    encoder: &PretokenEncoder,
    pretoken: &[u8],
    mut add: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let (points, whole_only) = (encoder.split_points()?, encoder.whole_only()?);
    if whole_only.is_empty() {
        return points.ends(pretoken).try_for_each(add);
    }
    let is_whole_only = |section: Range<usize>| {
        let id = encoder.vocabulary.id(&pretoken[section]);
        id.is_some_and(|id| whole_only.binary_search(&id).is_ok())
    };
    // The last section, which may still grow.
    let (mut start, mut end) = (0, 0);
    for next in points.ends(pretoken) {
        if start < end && !is_whole_only(start..end) && !is_whole_only(end..next) {
            add(end)?;
            start = end;
        }
        end = next;
    }
    add(end)
}

/// Whether a pretoken is divided.
#[inline]
fn is_long(pretoken: &[u8]) -> bool {
    let is_han = |at: usize| HAN.contains(&pretoken[at]);
    pretoken.len() > MAX_KEY_BYTES
        && (pretoken.len() > MAX_UNDIVIDED_BYTES || is_han(0) || is_han(pretoken.len() - 3))
}
