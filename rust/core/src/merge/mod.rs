//! The bytes of ONE pretoken in, ids out: merge the pair of lowest rank until no pair merges.
//!
//! The plain algorithm, which the tests keep: look at all neighbours, merge the pair of the lowest
//! rank, the leftmost among equals, and look again. Four faster algorithms give the same ids:
//!
//! 1. [`short`]: up to 63 bytes, the next merge is the minimum of an array. [`interleave`] merges
//!    many such pretokens in turns, so that their waits for memory overlap.
//! 2. [`runs`]: where a pretoken is a few runs of equal bytes, a whole run merges in one step.
//! 3. [`queue`]: places wait in a list for each rank, and the ranks in a queue.
//! 4. [`streaming`]: beyond 64 KiB, a window at a time, so that memory stays bounded.
//!
//! [`whole`] chooses between the first three. [`pair_table`] says which pairs merge, and [`build`]
//! makes it. Nothing here knows of text, caches or threads.

pub(crate) mod buckets;

pub(crate) mod build;

pub(crate) mod interleave;

pub(crate) mod merger;

pub(crate) mod pair_table;

pub(crate) mod queue;

pub(crate) mod runs;

pub(crate) mod short;

pub(crate) mod streaming;

#[cfg(test)]
mod tests;

pub(crate) mod whole;
