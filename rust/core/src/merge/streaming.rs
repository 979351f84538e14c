//! Merges a very long pretoken in bounded memory, one window at a time.
//!
//! The ids of some bytes depend on the bytes that follow, but rarely on bytes that follow far
//! behind. Below, a *prefix* is the start of the pretoken, and its ids are those of the prefix
//! encoded alone.
//!
//! 1. If a token of the pretoken ends at a place, the ids before this place are those of the prefix
//!    up to it: no merge crosses the place, so the merges before it are the same and in the same
//!    order, whatever follows.
//! 2. Among as many consecutive places as the longest token has bytes, a token of the pretoken ends
//!    at one. So the ids that all prefixes up to these places start with are the first ids of the
//!    pretoken.
//! 3. A sequence of ids is the encoding of its bytes if every two neighbouring ids are the encoding
//!    of their joined bytes: the first merge across a place between two ids would also have the
//!    lowest rank among the bytes of these two. So when a prefix grows by a byte, only its last few
//!    tokens are merged again, with the new byte; if the first of them is unchanged, all ids before
//!    it are unchanged as well.
//!
//! Where merging starts with characters, the places are those between characters.
//!
//! If the first of them changes, however many are merged again, the window grows. The next window
//! starts after the last final token.

use crate::error::Result;
use crate::merge::pair_table::PairTable;
use crate::merge::queue::{self, MergeScratch};
use crate::merge::symbols::Symbols;
use crate::merge::whole;

/// The sizes of windows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// The initial number of bytes of a window.
    pub(crate) window: usize,
    /// The number of last tokens that are merged again at first.
    pub(crate) few: usize,
}

/// These measured fastest: the buffers fit the inner caches, and merging the last tokens again
/// takes little time.
pub(crate) const SIZES: Sizes = Sizes { window: 1 << 16, few: 4 };

/// The maximal number of last tokens that are merged again.
const MOST: usize = 256;

/// The state of merging one pretoken.
pub(crate) struct Streaming<'a> {
    pub(crate) pairs: &'a PairTable,
    pub(crate) symbols: &'a Symbols,
    pub(crate) scratch: &'a mut MergeScratch,
    /// Ids are appended here.
    pub(crate) out: &'a mut Vec<u32>,
    pub(crate) sizes: Sizes,
}

impl Streaming<'_> {
    /// Append the ids of a pretoken, within the capacity of `out`.
    pub(crate) fn merge(&mut self, pretoken: &[u8]) -> Result<()> {
        let longest = self.pairs.longest();
        let mut window = self.sizes.window.max(longest);
        queue::check(window + longest)?;
        let mut rest = pretoken;
        while rest.len() > window + longest {
            let sure = self.merge_sure(rest, self.symbols.boundary(rest, window), longest);
            rest = &rest[sure..];
            if sure < window / 2 {
                window *= 2;
                queue::check(window + longest)?;
            }
        }
        whole::merge(self.pairs, self.symbols, rest, self.scratch, self.out);
        Ok(())
    }

    /// Append the ids of a window of `rest` that are final; returns the number of their bytes.
    fn merge_sure(&mut self, rest: &[u8], window: usize, longest: usize) -> usize {
        let first = self.out.len();
        whole::merge(self.pairs, self.symbols, &rest[..window], self.scratch, self.out);
        let (mut sure, mut end, mut again) = (self.out.len(), window, Vec::new());
        while end + 1 < window + longest && end < rest.len() {
            let before = end;
            end = self.symbols.boundary(rest, end + 1);
            let stays = self.merge_last(first, &rest[..end], before, &mut again);
            sure = sure.min(stays.unwrap_or(first));
            if sure == first {
                break;
            }
        }
        // In a damaged file, tokens may be longer than the bytes from which they were made.
        let behind = self.bytes_of(sure).min(end);
        self.out.truncate(sure);
        if sure == first { 0 } else { end - behind }
    }

    /// Update the ids after `first` from those of the prefix up to `before` to those of the whole
    /// prefix, which is a part longer. Returns the number of all ids that did not change, or `None`
    /// if too few of them.
    fn merge_last(
        &mut self,
        first: usize,
        prefix: &[u8],
        before: usize,
        again: &mut Vec<u32>,
    ) -> Option<usize> {
        let mut last = self.sizes.few;
        while last <= MOST {
            let from = self.out.len().checked_sub(last).filter(|&from| from >= first)?;
            let start = before.checked_sub(self.bytes_of(from))?;
            again.clear();
            whole::merge(self.pairs, self.symbols, &prefix[start..], self.scratch, again);
            if again.first() == self.out.get(from) {
                self.out.truncate(from);
                self.out.append(again);
                return Some(from + 1);
            }
            last *= 2;
        }
        None
    }

    /// The number of bytes of the ids from an index on.
    fn bytes_of(&self, from: usize) -> usize {
        self.out[from..].iter().map(|&id| self.pairs.length(id)).sum()
    }
}
