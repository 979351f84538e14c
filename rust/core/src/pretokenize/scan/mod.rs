//! Splitting by a [`PatternShape`], without a regular-expression engine.
//!
//! [`step`] finds the end of one pretoken, character by character; it is the readable reference.
//! [`blocks`] finds the pretokens of 64 bytes at once, from the masks of [`classify`], and leaves
//! rare cases to [`step`].

mod blocks;
mod classify;
mod non_ascii;
mod step;

use crate::machine::simd::SimdLevel;
use crate::pretokenize::ends::PretokenEnds;
use crate::pretokenize::pattern_shape::PatternShape;

/// Push the ends of the pretokens from `start` on, until `ends` is full or the text ends. Without a
/// level, the text is read character by character.
pub(super) fn fill(
    shape: PatternShape,
    level: Option<SimdLevel>,
    text: &str,
    start: usize,
    ends: &mut PretokenEnds,
) {
    match level {
        Some(level) => blocks::fill(level, shape, text, start, ends),
        None => step::fill(shape, text, start, ends),
    }
}
