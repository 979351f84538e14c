//! A pair of adjacent tokens, and the merge that replaces it by one token.

/// Two adjacent tokens.
pub type TokenPair = (u32, u32);

/// A word, identified by the index of its first cell in [`Cells`](super::words::Cells).
pub(super) type Word = u32;

/// A pair to be merged, its index, and the id of the token that it becomes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Merge {
    pub(super) pair: TokenPair,
    pub(super) index: u32,
    pub(super) new: u32,
}
