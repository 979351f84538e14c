//! Splitting with the patterns of a [`Family`], without a regular-expression engine.
//!
//! [`step`] finds the end of one pretoken, character by character; it is the readable truth.
//! [`blocks`] finds the pretokens of 64 bytes at once and leaves what is rare to it.

mod step;

use super::Ends;
use super::family::Family;

/// Splits texts by a family of patterns.
#[derive(Debug)]
pub(super) struct Scanner {
    family: Family,
}

impl Scanner {
    pub(super) fn new(family: Family) -> Self {
        Self { family }
    }

    /// Push the ends of the pretokens from `start` on, until `ends` is full or the text is over.
    pub(super) fn fill(&self, text: &str, mut start: usize, ends: &mut Ends) {
        while start < text.len() && !ends.is_full() {
            start = step::step(self.family, text, start);
            ends.push(start);
        }
    }
}
