//! Splits text into pretokens: the pieces of text that a token never crosses.
//!
//! A [`Pattern`] defines how to split; a [`Splitter`] does it. There are several implementations of
//! splitting (*tiers*), which give exactly the same pretokens. Only [`Splitter::new`] chooses among
//! them. A caller can distinguish the tiers only by their speed and by [`Splitter::tier`].
//!
//! Every byte of the text is in exactly one pretoken, in order: text between two matches of the
//! pattern is a pretoken of its own.
//!
//! A pattern may have several steps, separated by `(?#then)`: each step splits the pieces of the
//! previous step, and treats each piece as a separate text.

mod budget;

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

pub use budget::with_poll;
pub use ends::PretokenEnds;
pub use match_lengths::match_lengths;
pub(crate) use pattern::THEN;
pub use pattern::{Pattern, UNICODE_VERSION};
pub(crate) use spaces::META;
pub use spaces::PartStart;
pub use splitter::Splitter;
