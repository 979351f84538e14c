//! Splits text into pretokens: the pieces of text that a token never crosses.
//!
//! A [`Pattern`] says how to split; a [`Splitter`] does it. There are several ways to split
//! (*tiers*), which must agree to the byte. Only [`Splitter::new`] chooses among them. A caller can
//! tell the tiers apart only by their speed and by [`Splitter::tier`].
//!
//! Every byte of the text is in exactly one pretoken, in order: text between two matches of the
//! pattern is a pretoken of its own.
//!
//! A pattern may have several steps, divided by `(?#then)`: each splits the pieces of the previous
//! step, and sees nothing beyond the piece.

mod ends;

mod match_lengths;

mod normalize;

mod pattern;

mod pattern_shape;

mod regex;

mod scan;

mod spaces;

mod splitter;

mod table;

#[cfg(test)]
mod tests;

mod unicode;

pub use ends::PretokenEnds;
pub use match_lengths::match_lengths;
pub use pattern::{Pattern, UNICODE_VERSION};
pub(crate) use spaces::META;
pub use spaces::PartStart;
pub use splitter::Splitter;
