//! What the merges of a batch change in one shard.
//!
//! A merge of (a, b) into z ends pairs (x, a) and (b, y) and bears pairs (x, z) and (z, y). All of
//! them share a token with the merge, so the other token and its side name each: that is the
//! *slot*. The changes of a merge are summed in arrays indexed by slot, so that a pair is looked up
//! once a merge and not once an occurrence.

use std::ops::Range;

use super::pairs::{Merge, Pair, Pairs};
use super::words::Word;

/// A neighbour and its side: twice the id, plus one if it stands on the right.
pub(super) type Slot = u32;

/// Changes of the merges of a batch, those of each merge together.
pub(super) struct Changes {
    merge: Merge,
    /// How many times each pair is merged.
    made: Vec<u64>,
    /// The first id of the batch; pairs with such an id are not yet known to all.
    first_new: u32,
    /// What the merge that was begun last changes, and which slots it has touched.
    balances: Vec<Balance>,
    touched: Vec<Slot>,
    /// Pairs that may be known, and how often they end; then those that are, by index.
    ended: Vec<(Pair, u64)>,
    pub(super) known: Vec<(u32, u64)>,
    late: Vec<(Pair, u64)>,
    born: Vec<(Slot, u64)>,
    /// In which words pairs are born.
    places: Vec<(Slot, Word)>,
    /// Where the parts of each merge end in `born` and `places`.
    bounds: Vec<[usize; 2]>,
}

/// How often the pair of a slot ends and the new one is born.
#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    ended: u64,
    born: u64,
}

impl Changes {
    /// For ids below `vocab_size`.
    pub(super) fn new(vocab_size: usize) -> Self {
        Self {
            merge: Merge::default(),
            made: Vec::new(),
            first_new: 0,
            balances: vec![Balance::default(); 2 * vocab_size],
            touched: Vec::new(),
            ended: Vec::new(),
            known: Vec::new(),
            late: Vec::new(),
            born: Vec::new(),
            places: Vec::new(),
            bounds: Vec::new(),
        }
    }

    /// Forget the changes of the batch before.
    pub(super) fn begin_batch(&mut self, batch: &[Merge]) {
        self.first_new = batch.first().map_or(0, |merge| merge.new);
        self.made.clear();
        self.ended.clear();
        self.known.clear();
        self.late.clear();
        self.born.clear();
        self.places.clear();
        self.bounds.clear();
        self.bounds.push([0; 2]);
    }

    pub(super) fn begin_merge(&mut self, merge: Merge) {
        self.merge = merge;
        self.made.push(0);
    }

    /// Add that the pair of the merge was merged so many times.
    pub(super) fn add_made(&mut self, count: u64) {
        if let Some(made) = self.made.last_mut() {
            *made += count;
        }
    }

    /// How many times the pair of a merge of the batch was merged. That is its count, but for a pair
    /// of two equal tokens, whose occurrences may overlap.
    pub(super) fn made(&self, merge: usize) -> u64 {
        self.made[merge]
    }

    /// The id that the pair is merged into.
    pub(super) fn new_id(&self) -> u32 {
        self.merge.new
    }

    /// The pair is merged between `before`, which is already rewritten, and `after`, which is not.
    #[inline]
    pub(super) fn add(&mut self, before: Option<u32>, after: Option<u32>, word: Word, count: u64) {
        let Merge { pair: (left, _), new, .. } = self.merge;
        if let Some(before) = before {
            if before == new {
                // The merge before this one counted its right neighbour, which is merged now.
                self.balances[on_right(left) as usize].born -= count;
                self.change(on_left(before), 0, count);
            } else {
                self.change(on_left(before), count, count);
            }
            self.places.push((on_left(before), word));
        }
        if let Some(after) = after {
            self.change(on_right(after), count, count);
            self.places.push((on_right(after), word));
        }
    }

    #[inline]
    fn change(&mut self, slot: Slot, ended: u64, born: u64) {
        let balance = &mut self.balances[slot as usize];
        if balance.ended == 0 && balance.born == 0 {
            self.touched.push(slot);
        }
        balance.ended += ended;
        balance.born += born;
    }

    /// Sum up the merge that was begun last.
    pub(super) fn end_merge(&mut self) {
        let Merge { pair: (left, right), .. } = self.merge;
        for slot in self.touched.drain(..) {
            let Balance { ended, born } = std::mem::take(&mut self.balances[slot as usize]);
            if ended > 0 {
                let other = slot / 2;
                let pair = if slot % 2 == 0 { (other, left) } else { (right, other) };
                let late = other >= self.first_new;
                if late { &mut self.late } else { &mut self.ended }.push((pair, ended));
            }
            if born > 0 {
                self.born.push((slot, born));
            }
        }
        self.bounds.push([self.born.len(), self.places.len()]);
    }

    /// Find out which of the pairs that end are known.
    pub(super) fn end_batch(&mut self, pairs: &Pairs) {
        pairs.find_all(&self.ended, &mut self.known);
    }

    /// How often pairs end that are born in this batch.
    pub(super) fn late(&self) -> &[(Pair, u64)] {
        &self.late
    }

    /// How often pairs are born by a merge of the batch.
    pub(super) fn born(&self, merge: usize) -> &[(Slot, u64)] {
        &self.born[self.part(merge, 0)]
    }

    /// The words in which they are born, in order; those of other pairs come between.
    pub(super) fn places(&self, merge: usize) -> &[(Slot, Word)] {
        &self.places[self.part(merge, 1)]
    }

    fn part(&self, merge: usize, which: usize) -> Range<usize> {
        self.bounds[merge][which]..self.bounds[merge + 1][which]
    }
}

fn on_left(id: u32) -> Slot {
    2 * id
}

fn on_right(id: u32) -> Slot {
    2 * id + 1
}

/// The pair of the new token and what a slot names.
pub(super) fn born_pair(slot: Slot, new: u32) -> Pair {
    if slot.is_multiple_of(2) { (slot / 2, new) } else { (new, slot / 2) }
}

/// A sum for each slot, and which slots have one.
pub(super) struct Sums {
    of: Vec<u64>,
    touched: Vec<Slot>,
}

impl Sums {
    pub(super) fn new(vocab_size: usize) -> Self {
        Self { of: vec![0; 2 * vocab_size], touched: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, slot: Slot, count: u64) {
        let sum = &mut self.of[slot as usize];
        if *sum == 0 {
            self.touched.push(slot);
        }
        *sum += count;
    }

    /// Hand out all sums that are not 0, and forget them.
    pub(super) fn drain(&mut self, mut each: impl FnMut(Slot, u64)) {
        for slot in self.touched.drain(..) {
            let sum = std::mem::take(&mut self.of[slot as usize]);
            if sum != 0 {
                each(slot, sum);
            }
        }
    }
}
