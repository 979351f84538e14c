//! Chooses the next merges, and how many of them may be made in one batch.
//!
//! A batch is the head of the queue, up to the first pair (c, d) for which an earlier pair (a, b)
//! has b = c or a = d, and up to and including the first pair of a token with itself. For the pairs
//! of a batch:
//!
//! - No merge changes the count of another pair of the batch: a merge of (a, b) removes only pairs
//!   (x, a) and (b, y).
//! - No merge creates a pair with a greater count than the last pair of the batch. The new pairs of
//!   (a, b) are created from occurrences of some (x, a) or (b, y), which follow the batch in the
//!   queue. (Only (a, a) creates pairs from its own occurrences, and it is the last of its batch.)
//!   Some pairs are not in the queue, because their tokens would be too long or are vetoed; the
//!   pairs that are created from them are not queued either, for the same reason.
//! - A new pair may have the same count as the last pair of the batch. The rules that prefer the
//!   smallest ids put the new pair later: (z, y) has a new id on the left; and (x, z) is created
//!   from (x, a), which comes after the last pair (c, d), so x ≥ c, and z > d. The other rules may
//!   put the new pair first. For them, a batch must contain all pairs of its smallest count: then
//!   no pair of that count is left from which a pair could be created. If it cannot contain them
//!   all, the batch ends before the first of them. A batch of a single merge is always correct.

use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use crate::error::Result;
use crate::memory;
use crate::train::order::{Position, TieKey, TokenOrder};
use crate::train::pair_counts::{PairCounts, TokenPair};

/// All pairs that may be merged, by count and then by the rule for ties.
///
/// Most pairs stay in the queue for long, and many are never merged. So pairs are divided into
/// classes by count, and only the class of the greatest counts is sorted. The pairs of a lower
/// class are unordered until its turn comes.
pub struct Queue {
    /// The pairs of class `current`; a count or key may have fallen since the pair was pushed.
    heap: BinaryHeap<QueueEntry>,
    current: usize,
    /// The indices of the pairs of each lower class; counts may have fallen since the pair was
    /// pushed.
    waiting: Vec<Vec<u32>>,
    /// A count with more pairs than fit in one batch; such pairs are merged one by one.
    single: Option<u64>,
}

/// A pair in the queue: count, key, index.
type QueueEntry = (u64, TieKey, u32);

impl Default for Queue {
    fn default() -> Self {
        let waiting = vec![Vec::new(); class(u64::MAX) + 1];
        Self { heap: BinaryHeap::new(), current: waiting.len(), waiting, single: None }
    }
}

impl Queue {
    /// Add a pair with its count and its index.
    pub fn push(
        &mut self,
        order: &TokenOrder,
        pair: TokenPair,
        count: u64,
        index: u32,
    ) -> Result<()> {
        match class(count) {
            // Most pairs end here: no key is computed for them and they are not sorted.
            class if class < self.current => memory::push(&mut self.waiting[class], index),
            _ => self.push_sorted((count, order.first_key(pair), index)),
        }
    }

    fn push_sorted(&mut self, entry: QueueEntry) -> Result<()> {
        let reserved = self.heap.try_reserve(1);
        reserved.map_err(|_| memory::out_of_memory::<QueueEntry>(self.heap.len() + 1))?;
        self.heap.push(entry);
        Ok(())
    }

    /// Sort the pairs of the next lower class; returns false if all lower classes are empty.
    fn next_class(&mut self, order: &TokenOrder, pairs: &PairCounts, floor: u64) -> Result<bool> {
        let Some(next) = self.waiting[..self.current].iter().rposition(|class| !class.is_empty())
        else {
            return Ok(false);
        };
        // Set first, so that `push` sorts the pairs that are still in this class and puts those
        // whose counts have fallen into their lower classes.
        self.current = next;
        for index in std::mem::take(&mut self.waiting[next]) {
            let (pair, count) = pairs.counted(index);
            if count >= floor {
                self.push(order, pair, count, index)?;
            }
        }
        Ok(true)
    }

    /// Take the indices of the next pairs to merge from the queue, at most `most`; none if all
    /// pairs are below `floor`. `position` finds the first position of a pair.
    pub(super) fn next_batch(
        &mut self,
        order: &TokenOrder,
        pairs: &PairCounts,
        floor: u64,
        most: usize,
        mut position: impl FnMut(u32) -> Position,
    ) -> Result<Vec<u32>> {
        let mut batch: Vec<QueueEntry> = Vec::new();
        let mut after = None;
        // The tokens on the left, and on the right, of the pairs in the batch.
        let (mut lefts, mut rights): (HashSet<u32, FixedState>, HashSet<u32, FixedState>) =
            Default::default();
        while let Some(entry) = self.pop(order, pairs, floor, &mut position)? {
            let (left, right) = pairs.pair(entry.2);
            // Each of these may be in a batch only as its last pair.
            let ends = |last: &QueueEntry| {
                let (left, right) = pairs.pair(last.2);
                left == right || self.single == Some(last.0)
            };
            // If an earlier pair ends with the token that begins this one, or begins with the one
            // that ends it, their occurrences may overlap.
            let full = batch.len() == most || batch.last().is_some_and(ends);
            if full || rights.contains(&left) || lefts.contains(&right) {
                after = Some(entry);
                break;
            }
            lefts.insert(left);
            rights.insert(right);
            batch.push(entry);
        }
        if let Some(after) = after {
            if order.new_precede() {
                self.cut_ties(&mut batch, after.0);
            }
            self.push_sorted(after)?;
        }
        Ok(batch.into_iter().map(|(_, _, index)| index).collect())
    }

    /// If the pair after the batch has the same count as the last pair, put all pairs of that count
    /// back into the queue, but keep at least one pair.
    fn cut_ties(&mut self, batch: &mut Vec<QueueEntry>, after: u64) {
        if batch.last().is_some_and(|last| last.0 == after) {
            let before = batch.iter().position(|entry| entry.0 == after).unwrap_or(0);
            if before == 0 {
                // Every pair of the batch has this count, and there are more. The next batches stop
                // after one pair instead of filling up and being cut again.
                self.single = Some(after);
            }
            self.heap.extend(batch.drain(before.max(1)..));
        }
    }

    /// Take the next pair from the queue; none if all pairs are below `floor`.
    pub(super) fn pop(
        &mut self,
        order: &TokenOrder,
        pairs: &PairCounts,
        floor: u64,
        position: &mut impl FnMut(u32) -> Position,
    ) -> Result<Option<QueueEntry>> {
        loop {
            let Some((count, key, index)) = self.heap.pop() else {
                if self.next_class(order, pairs, floor)? {
                    continue;
                }
                return Ok(None);
            };
            let (pair, now) = pairs.counted(index);
            // Counts never rise, so the pair is dropped.
            if now < floor {
                continue;
            }
            if now != count {
                self.push(order, pair, now, index)?;
                continue;
            }
            // The key is checked last: finding a position may visit many words, so it is done only
            // for a pair that has the greatest count.
            let current = order.key(pair, || position(index));
            if current == key {
                return Ok(Some((count, key, index)));
            }
            self.push_sorted((count, current, index))?;
        }
    }
}

/// The class of a count: the count itself up to 16, then eight classes for each power of two.
///
/// The upper four bits of a count, and how many bits follow them, make the class: 22 is `1011` and
/// one bit, class 8 · 1 + 11. Of these four bits the first is 1 for all counts from 8 on, so each
/// further bit raises the class by 8, and classes rise with counts.
fn class(count: u64) -> usize {
    let shift = 60u32.saturating_sub(count.leading_zeros());
    let upper = usize::try_from(count >> shift).expect("below 16");
    (shift as usize) * 8 + upper
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn classes_rise_with_counts() {
        let counts = (0..=1000).chain((10..64).flat_map(|bit| (1u64 << bit) - 2..=(1 << bit) + 2));
        let classes: Vec<usize> = counts.map(class).collect();
        assert!(classes.is_sorted());
        assert_eq!(classes[..=16], (0..=16).collect::<Vec<_>>());
        assert_eq!(class(u64::MAX), 495);
    }
}
