//! Which merges come next, and how many of them may be made together.
//!
//! The head of the queue is a batch, up to the first pair (c, d) for which an earlier one (a, b) has
//! b = c or a = d, and not beyond a pair of a token with itself. Then, of the pairs of a batch:
//!
//! - None changes the count of another: a merge of (a, b) ends only pairs (x, a) and (b, y).
//! - None bears a pair that occurs more often than the last of the batch. What (a, b) bears is made
//!   from occurrences of some (x, a) or (b, y), which stands behind the batch in the queue. (Only
//!   (a, a) bears pairs made from itself; it comes last.) A pair that is not in the queue because
//!   its token would be too long bears only pairs of which that is true as well.
//! - A pair that is born may occur exactly as often as the last of the batch. By the rules that
//!   take the smallest ids it goes behind: (z, y) has a new id on the left; and (x, z) is made from
//!   (x, a), which comes behind the last, (c, d), so that x ≥ c, and z > d. By the other rules it
//!   may go before; so there all pairs of the least count in a batch must be in it, for then there
//!   is none of that count from which a pair could be born. If they are not, the batch ends before
//!   the first of them. One single merge is always right.

use std::collections::BinaryHeap;

use super::order::{Place, TieOrder};
use super::pairs::{Pair, Pairs};

/// All pairs that may be merged, by count and then by the rule for ties.
///
/// Most pairs wait long, and many of them in vain. So only those of the greatest counts, which are
/// of one class, are in order; the others are dealt to classes and not looked at before their class
/// is next.
pub(super) struct Queue<O: TieOrder> {
    pub(super) order: O,
    /// Count, key and index of pairs of the class `current`; a count or a key may have fallen since.
    heap: BinaryHeap<(u64, O::Key, u32)>,
    current: usize,
    /// The indices of the pairs of each lower class; their counts may have fallen since.
    waiting: Vec<Vec<u32>>,
    /// A count that more pairs have than fit one batch, where single merges are made.
    single: Option<u64>,
    /// Which ids stand on the left, and which on the right, in the batch that is being made.
    left: Vec<bool>,
    right: Vec<bool>,
}

/// A pair that is next, as it stands in the queue.
type Entry<O> = (u64, <O as TieOrder>::Key, u32);

impl<O: TieOrder> Queue<O> {
    /// For ids below `vocab_size`.
    pub(super) fn new(order: O, vocab_size: usize) -> Self {
        let (left, right) = (vec![false; vocab_size], vec![false; vocab_size]);
        let waiting = vec![Vec::new(); class(u64::MAX) + 1];
        let current = waiting.len();
        Self { order, heap: BinaryHeap::new(), current, waiting, single: None, left, right }
    }

    pub(super) fn push(&mut self, pair: Pair, count: u64, index: u32) {
        match class(count) {
            class if class < self.current => self.waiting[class].push(index),
            _ => self.heap.push((count, self.order.first_key(pair), index)),
        }
    }

    /// Put the pairs of the next class in order; false if there is none.
    fn next_class(&mut self, pairs: &Pairs, floor: u64) -> bool {
        let Some(next) = self.waiting[..self.current].iter().rposition(|class| !class.is_empty())
        else {
            return false;
        };
        self.current = next;
        for index in std::mem::take(&mut self.waiting[next]) {
            let (pair, count) = pairs.counted(index);
            if count >= floor {
                self.push(pair, count, index);
            }
        }
        true
    }

    /// The indices of the pairs to be merged next, at most `most`; none if all pairs are below
    /// `floor`. `place` gives the first place of a pair.
    pub(super) fn next_batch(
        &mut self,
        pairs: &Pairs,
        floor: u64,
        most: usize,
        mut place: impl FnMut(u32) -> Place,
    ) -> Vec<u32> {
        let mut batch: Vec<Entry<O>> = Vec::new();
        let mut behind = None;
        while let Some(entry) = self.pop(pairs, floor, &mut place) {
            let (left, right) = pairs.pair(entry.2);
            let ends = |last: &Entry<O>| is_self(pairs, last.2) || self.single == Some(last.0);
            let full = batch.len() == most || batch.last().is_some_and(ends);
            if full || self.right[left as usize] || self.left[right as usize] {
                behind = Some(entry);
                break;
            }
            self.left[left as usize] = true;
            self.right[right as usize] = true;
            batch.push(entry);
        }
        for entry in &batch {
            let (left, right) = pairs.pair(entry.2);
            self.left[left as usize] = false;
            self.right[right as usize] = false;
        }
        if let Some(behind) = behind {
            self.cut_ties(&mut batch, behind.0);
            self.heap.push(behind);
        }
        batch.into_iter().map(|(_, _, index)| index).collect()
    }

    /// If the pair behind the batch has the same count as the last, take back all of that count but
    /// not the whole batch.
    fn cut_ties(&mut self, batch: &mut Vec<Entry<O>>, behind: u64) {
        if O::NEW_PRECEDE && batch.last().is_some_and(|last| last.0 == behind) {
            let before = batch.iter().position(|entry| entry.0 == behind).unwrap_or(0);
            if before == 0 {
                self.single = Some(behind);
            }
            self.heap.extend(batch.drain(before.max(1)..));
        }
    }

    /// Take the pair to be merged next from the queue.
    fn pop(
        &mut self,
        pairs: &Pairs,
        floor: u64,
        place: &mut impl FnMut(u32) -> Place,
    ) -> Option<Entry<O>> {
        loop {
            let Some((count, key, index)) = self.heap.pop() else {
                if self.next_class(pairs, floor) {
                    continue;
                }
                return None;
            };
            let (pair, now) = pairs.counted(index);
            if now < floor {
                continue;
            }
            if now != count {
                self.push(pair, now, index);
                continue;
            }
            let fresh = self.order.key(pair, || place(index));
            if fresh == key {
                return Some((count, key, index));
            }
            self.heap.push((count, fresh, index));
        }
    }
}

/// The class of a count: itself up to 16, and above eight classes for each power of two.
fn class(count: u64) -> usize {
    let shift = 60u32.saturating_sub(count.leading_zeros());
    let upper = usize::try_from(count >> shift).expect("below 16");
    (shift as usize) * 8 + upper
}

fn is_self(pairs: &Pairs, index: u32) -> bool {
    let (left, right) = pairs.pair(index);
    left == right
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
