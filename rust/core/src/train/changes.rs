//! The changes that the merges of a batch make to the pairs in the words of one worker.
//!
//! A merge of (a, b) into z removes occurrences of pairs (x, a) and (b, y), and creates pairs (x,
//! z) and (z, y). Each of these pairs shares a token with the merge, so the *neighbour* identifies
//! it: the other token and its side, left or right. The changes of a merge are summed in arrays
//! indexed by neighbour, so each pair is looked up once per merge and not once per occurrence.

use std::ops::Range;

use crate::error::Result;
use crate::memory;
use crate::train::pair_counts::{Merge, PairCounts, TokenPair, Word};

/// A token beside a merge: twice its id, plus one if it is on the right.
pub(super) type Neighbour = u32;

/// The changes of a batch, grouped by merge; the buffers may be reused for many texts.
#[derive(Default)]
pub struct Changes {
    /// The current merge.
    pub(super) merge: Merge,
    /// How many occurrences each merge replaced. This is the count of its pair, except for a pair of
    /// two equal tokens, whose occurrences may overlap.
    pub(super) replacements: Vec<u64>,
    /// The first id of the batch. A pair with such an id is created within the batch.
    first_new: u32,
    /// The changes of the current merge.
    balances: Balances,
    /// Removed occurrences of pairs that are older than the batch; for those that are kept in the
    /// counts also by index.
    removed: Vec<(TokenPair, u64)>,
    pub(super) removed_by_index: Vec<(u32, u64)>,
    /// Removed occurrences of pairs that are created within the batch.
    pub(super) removed_in_batch: Vec<(TokenPair, u64)>,
    /// The counts of created pairs, and the words that contain these pairs.
    created: Vec<(Neighbour, u64)>,
    created_in: Vec<(Neighbour, Word)>,
    /// Where the entries of each merge end in `created` and `created_in`.
    bounds: Vec<[usize; 2]>,
}

/// How many occurrences beside one neighbour a merge removes and creates.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Balance {
    removed: u64,
    pub(super) created: u64,
}

/// A balance for each neighbour, and the neighbours whose balance is not 0.
#[derive(Default)]
pub(super) struct Balances {
    of: Vec<Balance>,
    touched: Vec<Neighbour>,
}

impl Balances {
    /// Extend the balances to the neighbours of this number of ids.
    pub(super) fn grow(&mut self, ids: u32) -> Result<()> {
        grow(&mut self.of, ids)
    }

    /// Add to the balance of a neighbour.
    #[inline]
    pub(super) fn change(
        &mut self,
        neighbour: Neighbour,
        removed: u64,
        created: u64,
    ) -> Result<()> {
        let balance = &mut self.of[neighbour as usize];
        // Counts are positive, so the balance of a listed neighbour is not 0 again: `removed` only
        // rises, and `created` is lowered only where `removed` rose too. So no neighbour is listed
        // twice.
        if balance.removed == 0 && balance.created == 0 {
            memory::push(&mut self.touched, neighbour)?;
        }
        balance.removed += removed;
        balance.created += created;
        Ok(())
    }

    /// The number of balances that are not 0.
    pub(super) fn len(&self) -> usize {
        self.touched.len()
    }

    /// Take all balances that are not 0.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Neighbour, Balance)> {
        let of = &mut self.of;
        self.touched
            .drain(..)
            .map(|neighbour| (neighbour, std::mem::take(&mut of[neighbour as usize])))
    }
}

impl Changes {
    /// Clear the changes of the previous batch.
    pub(super) fn begin_batch(&mut self, batch: &[Merge]) -> Result<()> {
        self.balances.grow(batch.last().map_or(0, |merge| merge.new + 1))?;
        self.first_new = batch.first().map_or(0, |merge| merge.new);
        self.replacements.clear();
        self.removed.clear();
        self.removed_by_index.clear();
        self.removed_in_batch.clear();
        self.created.clear();
        self.created_in.clear();
        self.bounds.clear();
        self.bounds.push([0; 2]);
        Ok(())
    }

    pub(super) fn begin_merge(&mut self, merge: Merge) {
        self.merge = merge;
        self.replacements.push(0);
    }

    /// The current merge replaced this many occurrences.
    pub(super) fn add_replacements(&mut self, count: u64) {
        if let Some(replacements) = self.replacements.last_mut() {
            *replacements += count;
        }
    }

    /// Record that the pair is merged in a word with this count, between the tokens `before` and
    /// `after`: the word is already rewritten up to `before`, but not from `after` on.
    #[inline]
    pub(super) fn add(
        &mut self,
        before: Option<u32>,
        after: Option<u32>,
        word: Word,
        count: u64,
    ) -> Result<()> {
        let Merge { pair: (left, _), new, .. } = self.merge;
        if let Some(before) = before {
            if before == new {
                // In "abab", the first merge recorded that (b, a) disappears and (z, a) appears.
                // This merge takes the `a`: (b, a) is gone already, and (z, z) appears in place of
                // (z, a). Only the occurrence just before can leave the new id here, and it has
                // added at least `count`, so the difference is not negative.
                self.balances.of[on_right(left) as usize].created -= count;
                self.balances.change(on_left(before), 0, count)?;
            } else {
                self.balances.change(on_left(before), count, count)?;
            }
            memory::push(&mut self.created_in, (on_left(before), word))?;
        }
        if let Some(after) = after {
            self.balances.change(on_right(after), count, count)?;
            memory::push(&mut self.created_in, (on_right(after), word))?;
        }
        Ok(())
    }

    /// Sum up the current merge.
    pub(super) fn end_merge(&mut self) -> Result<()> {
        // Each neighbour adds at most one entry to each list, so the pushes below never reallocate.
        let touched = self.balances.len();
        memory::reserve(&mut self.removed_in_batch, touched)?;
        memory::reserve(&mut self.removed, touched)?;
        memory::reserve(&mut self.created, touched)?;
        let Merge { pair: (left, right), .. } = self.merge;
        for (neighbour, Balance { removed, created }) in self.balances.drain() {
            if removed > 0 {
                let other = neighbour / 2;
                let pair = if neighbour % 2 == 0 { (other, left) } else { (right, other) };
                // In "abcd", a batch with (a, b) and (c, d) creates (z, c) and removes it again.
                // Such a pair has no index before the end of the batch, so it is looked up later.
                let in_batch = other >= self.first_new;
                let list = if in_batch { &mut self.removed_in_batch } else { &mut self.removed };
                list.push((pair, removed));
            }
            if created > 0 {
                self.created.push((neighbour, created));
            }
        }
        self.bounds.push([self.created.len(), self.created_in.len()]);
        Ok(())
    }

    /// Look up which of the pairs with removed occurrences are kept.
    pub(super) fn end_batch(&mut self, pairs: &PairCounts) -> Result<()> {
        pairs.find_all(&self.removed, &mut self.removed_by_index)
    }

    /// The neighbours with which a merge of the batch creates pairs, and the counts of these pairs.
    pub(super) fn created(&self, merge: usize) -> &[(Neighbour, u64)] {
        &self.created[self.range(merge, 0)]
    }

    /// The words in which a merge creates pairs, with the neighbours. The words of each pair are in
    /// order, but those of different pairs are mixed.
    pub(super) fn created_in(&self, merge: usize) -> &[(Neighbour, Word)] {
        &self.created_in[self.range(merge, 1)]
    }

    /// The number of ids after the batch.
    pub(super) fn ids(&self) -> u32 {
        self.merge.new + 1
    }

    /// The indices of the pairs whose counts the batch lowered.
    pub fn lowered(&self) -> impl Iterator<Item = u32> {
        self.removed_by_index.iter().map(|&(index, _)| index)
    }

    fn range(&self, merge: usize, which: usize) -> Range<usize> {
        self.bounds[merge][which]..self.bounds[merge + 1][which]
    }
}

/// The neighbour that stands before a merge.
fn on_left(id: u32) -> Neighbour {
    2 * id
}

/// The neighbour that stands after a merge.
fn on_right(id: u32) -> Neighbour {
    2 * id + 1
}

/// The pair of a neighbour and the new token.
pub(super) fn new_pair(neighbour: Neighbour, new: u32) -> TokenPair {
    if neighbour.is_multiple_of(2) { (neighbour / 2, new) } else { (new, neighbour / 2) }
}

/// Make `values` long enough for each neighbour of this number of ids. Called as ids are created,
/// so that memory depends on the ids that exist, not on the requested vocabulary size.
pub(super) fn grow<T: Clone + Default>(values: &mut Vec<T>, ids: u32) -> Result<()> {
    resize(values, 2 * ids as usize)
}

/// Make `values` at least this long; new values are the default.
pub(super) fn resize<T: Clone + Default>(values: &mut Vec<T>, length: usize) -> Result<()> {
    memory::reserve(values, length.saturating_sub(values.len()))?;
    values.resize(length.max(values.len()), T::default());
    Ok(())
}
