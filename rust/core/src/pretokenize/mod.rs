//! Splits text into pretokens: the pieces of text that a token never crosses.
//!
//! A [`Pattern`] defines how to split; a [`Splitter`] does it. There are several implementations of
//! splitting (*tiers*), which give exactly the same pretokens. Only [`Splitter::new`] chooses among
//! them. A caller can distinguish the tiers only by their speed and by [`Splitter::tier`].
//!
//! Every byte of the text is in exactly one pretoken, in order: text between two matches of the
//! pattern is a pretoken of its own.
//!
//! A pattern may have several steps: each splits the pieces of the previous step, and treats each
//! piece as a separate text. `pieces` does what a pattern cannot say: steps that drop, join or add
//! text.

mod ends;
mod pattern;
pub(crate) mod pattern_shape;
pub(crate) mod pieces;
mod scan;
mod splitter;
mod table;
#[cfg(test)]
mod tests;
mod unicode;

pub use crate::search::match_lengths;
pub use ends::PretokenEnds;
pub use pattern::{Pattern, UNICODE_VERSION};
pub use splitter::Splitter;
#[cfg(feature = "json")]
pub(crate) use table::{is_of_ascii, matches_all};
