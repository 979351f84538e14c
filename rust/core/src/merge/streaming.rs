//! A long pretoken, merged a window at a time: however long it is, it takes no more memory.
//!
//! What becomes of some bytes depends on what follows them, but hardly ever on what follows far
//! behind. Here the beginning of a pretoken is a *prefix*, and its ids are those it has when it
//! stands alone.
//!
//! 1. Where a token of the pretoken ends, the ids up to there are those of the prefix: no merge
//!    crosses this place, so those before it are made in the same order whether anything follows or
//!    not.
//! 2. Of as many places in a row as the longest token has bytes, a token of the pretoken ends at
//!    one. So what the ids of all the prefixes up to these places begin with, the ids of the
//!    pretoken begin with.
//! 3. Ids are those of their bytes if each two neighbours are those of their joined bytes: the
//!    first merge across a place between two would be, among the bytes of these two, the lowest as
//!    well. So for a prefix that is one byte longer, the last few tokens are merged again with this
//!    byte; where the first of them stays as it was, so does all before it.
//!
//! Where it does not stay, however many are taken, the window becomes larger. What stands behind
//! the last sure token is the beginning of the next window.

use crate::error::Result;
use crate::merge::pair_table::PairTable;
use crate::merge::queue::{self, MergeScratch};
use crate::merge::whole;
use crate::vocabulary::ByteIds;

/// How long windows are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// So many bytes to begin with.
    pub(crate) window: usize,
    /// So many of the last tokens are merged again at first.
    pub(crate) few: usize,
}

/// As fast as any: the buffers fit the caches near the processor, and the last tokens take little
/// of it.
pub(crate) const SIZES: Sizes = Sizes { window: 1 << 16, few: 4 };

/// So many of the last tokens are merged again at most.
const MOST: usize = 256;

/// The windows of one pretoken.
pub(crate) struct Streaming<'a> {
    pub(crate) pairs: &'a PairTable,
    pub(crate) byte_ids: &'a ByteIds,
    pub(crate) scratch: &'a mut MergeScratch,
    /// Append ids here.
    pub(crate) out: &'a mut Vec<u32>,
    pub(crate) sizes: Sizes,
}

impl Streaming<'_> {
    /// Append the ids of a pretoken, for which there is room.
    pub(crate) fn merge(&mut self, pretoken: &[u8]) -> Result<()> {
        let longest = self.pairs.longest();
        let mut window = self.sizes.window.max(longest);
        queue::check(window + longest)?;
        let mut rest = pretoken;
        while rest.len() > window + longest {
            let sure = self.merge_sure(rest, window, longest);
            rest = &rest[sure..];
            if sure < window / 2 {
                window *= 2;
                queue::check(window + longest)?;
            }
        }
        whole::merge(self.pairs, self.byte_ids, rest, self.scratch, self.out);
        Ok(())
    }

    /// Append the ids that are sure after so many bytes of `rest`, and say how many bytes they
    /// have.
    fn merge_sure(&mut self, rest: &[u8], window: usize, longest: usize) -> usize {
        let first = self.out.len();
        whole::merge(self.pairs, self.byte_ids, &rest[..window], self.scratch, self.out);
        let (mut sure, mut end, mut again) = (self.out.len(), window, Vec::new());
        for _ in 1..longest {
            end += 1;
            let stays = self.merge_last(first, &rest[..end], &mut again);
            sure = sure.min(stays.unwrap_or(first));
            if sure == first {
                break;
            }
        }
        // In a damaged file, tokens may be longer than what they were made of.
        let behind = self.bytes_of(sure).min(end);
        self.out.truncate(sure);
        if sure == first { 0 } else { end - behind }
    }

    /// Make the ids behind `first`, those of a prefix but for its last byte, those of the whole
    /// prefix; say how many of all ids stay, or `None` if too few do.
    fn merge_last(&mut self, first: usize, prefix: &[u8], again: &mut Vec<u32>) -> Option<usize> {
        let mut last = self.sizes.few;
        while last <= MOST {
            let from = self.out.len().checked_sub(last).filter(|&from| from >= first)?;
            let start = (prefix.len() - 1).checked_sub(self.bytes_of(from))?;
            again.clear();
            whole::merge(self.pairs, self.byte_ids, &prefix[start..], self.scratch, again);
            if again.first() == self.out.get(from) {
                self.out.truncate(from);
                self.out.append(again);
                return Some(from + 1);
            }
            last *= 2;
        }
        None
    }

    /// How many bytes the ids from a place on have.
    fn bytes_of(&self, from: usize) -> usize {
        self.out[from..].iter().map(|&id| self.pairs.length(id)).sum()
    }
}
