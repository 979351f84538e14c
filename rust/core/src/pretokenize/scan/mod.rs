//! Splitting with the patterns of a [`Family`], without a regular-expression engine.
//!
//! [`step`] finds the end of one pretoken, character by character; it is the readable truth.
//! [`blocks`] finds the pretokens of 64 bytes at once, from the masks of [`classify`], and leaves
//! what is rare to it.

mod blocks;

mod classify;

mod others;

mod step;

use super::Ends;
use super::family::Family;
use classify::Vectors;

/// The names of the vector instructions that this processor has, the widest first.
pub(crate) fn vectors() -> Vec<&'static str> {
    Vectors::all().into_iter().map(Vectors::name).collect()
}

/// Splits texts by a family of patterns.
#[derive(Debug)]
pub(super) struct Scanner {
    family: Family,
    /// `None` to go character by character.
    vectors: Option<Vectors>,
}

impl Scanner {
    pub(super) fn new(family: Family) -> Self {
        Self { family, vectors: Some(Vectors::detect()) }
    }

    /// The scanner in every way that this processor has, the plain one last.
    #[cfg(test)]
    pub(super) fn every_way(family: Family) -> Vec<Self> {
        let blocks = Vectors::all().into_iter().map(Some).chain([None]);
        blocks.map(|vectors| Self { family, vectors }).collect()
    }

    /// Push the ends of the pretokens from `start` on, until `ends` is full or the text is over.
    pub(super) fn fill(&self, text: &str, start: usize, ends: &mut Ends) {
        if let Some(vectors) = self.vectors {
            vectors.run(blocks::Fill { family: self.family, text, start, ends });
            return;
        }
        step::fill(self.family, text, start, ends);
    }

    /// How it goes: the name of the vector instructions, or `"scalar"`.
    pub(super) fn name(&self) -> &'static str {
        self.vectors.map_or("scalar", Vectors::name)
    }
}
