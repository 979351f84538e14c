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

/// Splits texts by the shape of a pattern.
#[derive(Debug)]
pub(super) struct Scanner {
    shape: PatternShape,
    /// The vector instructions; `None` for character by character.
    level: Option<SimdLevel>,
}

impl Scanner {
    pub(super) fn new(shape: PatternShape) -> Self {
        Self { shape, level: Some(SimdLevel::current()) }
    }

    /// A scanner for each level of this processor, then one that works character by character.
    #[cfg(test)]
    pub(super) fn on_all_levels(shape: PatternShape) -> Vec<Self> {
        let blocks = SimdLevel::all().into_iter().map(Some).chain([None]);
        blocks.map(|level| Self { shape, level }).collect()
    }

    /// Push the ends of the pretokens from `start` on, until `ends` is full or the text ends.
    pub(super) fn fill(&self, text: &str, start: usize, ends: &mut PretokenEnds) {
        match self.level {
            Some(level) => blocks::fill(level, self.shape, text, start, ends),
            None => step::fill(self.shape, text, start, ends),
        }
    }

    /// The name of the instructions, or `"scalar"`.
    pub(super) fn name(&self) -> &'static str {
        self.level.map_or("scalar", SimdLevel::name)
    }
}
