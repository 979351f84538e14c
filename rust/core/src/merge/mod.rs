//! Merges the bytes of one pretoken into ids: the pair of lowest rank first, until no pair merges.
//!
//! The plain algorithm, which the tests use, compares all adjacent pairs, merges the pair of lowest
//! rank, leftmost among equals, and repeats. Five faster algorithms give the same ids:
//!
//! 1. [`short`]: up to 63 bytes, the next merge is the minimum of an array. Many such
//!    merges are interleaved, to overlap their waits for memory.
//! 2. [`runs`]: in a pretoken of a few runs of equal bytes, a whole run merges in one step.
//! 3. [`blocks`]: up to 4,096 bytes, the minimum is taken in two levels.
//! 4. [`merger`]: beyond that, one window of 4,096 bytes at a time.
//! 5. [`heap`]: where a window must be larger, a heap holds the pairs that may merge.
//!
//! [`merger`] chooses among them, and builds the [`pair_table`] of the pairs that merge. [`symbols`]
//! are the parts that merging starts with: bytes or characters. The heap also merges symbols that
//! have names, prefixes and suffixes. Nothing here depends on text, caches or threads.

mod blocks;
pub(crate) mod heap;
pub(crate) mod merger;
pub(crate) mod pair_table;
pub(crate) mod runs;
pub(crate) mod short;
pub(crate) mod symbols;
#[cfg(test)]
mod tests;
