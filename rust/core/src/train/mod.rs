//! Counts in, ordered merges out, exactly.
//!
//! The plain algorithm: count every pair of neighbours in every distinct pretoken, each as often as
//! the pretoken occurs; merge the most frequent pair everywhere; count again. Ties are broken by a
//! named rule. The result below is the same merge for merge, with three departures:
//!
//! 1. **Counts are updated, not recounted.** A merge changes only the pretokens that hold the pair;
//!    each pair has a list of those (its *postings*). All changes of one merge are first summed in
//!    arrays indexed by the neighbour, so that a pair is looked up once a merge and not once an
//!    occurrence.
//! 2. **A pair is born once.** A token is created in a single step, at all its places. Hence all
//!    occurrences of a pair appear in the step that creates the younger of its two tokens, and never
//!    later: its postings are written once, and its count only falls from then on.
//! 3. **The queue is lazy.** Since counts only fall, an entry of the queue never promises too
//!    little. The top entry is compared with the current count; if that has fallen, the entry goes
//!    back with what is true now, else it is the maximum.
//!
//! [`words`] holds the pretokens and rewrites them, [`pairs`] holds counts and postings, [`order`]
//! breaks ties.

mod order;

mod pairs;

mod words;

#[cfg(test)]
mod tests;

use std::collections::BinaryHeap;
use std::num::NonZeroU64;

use crate::count::Counts;
use crate::error::Result;
use order::{BytesMax, FirstSeen, SmallestPair, TieOrder};
use pairs::Pairs;
use words::{Changes, Words};

/// Which of several pairs with the same count is merged first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The smallest pair of ids, as rustbpe does.
    #[default]
    RustBpe,
    /// The smallest pair of ids where the 256 bytes stand in the order of GPT-2's characters, as
    /// Hugging Face tokenizers do.
    Hf,
    /// The pair that occurs first in the corpus as it stands, as minbpe does.
    FirstSeen,
    /// The greatest pair of byte strings, as Stanford's CS336 does.
    BytesMax,
}

/// What to learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainOptions {
    /// How many merges to learn at most.
    pub merges: usize,
    /// Which of several pairs with the same count goes first.
    pub ties: Ties,
    /// Pairs that occur fewer times than this are not merged.
    pub min_count: NonZeroU64,
    /// Pairs whose token would be longer than this many bytes are not merged.
    pub max_token_bytes: Option<usize>,
}

/// What was learnt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trained {
    /// The merges in order: pairs of ids; ids below 256 are bytes, 256 + i is the token of merge i.
    pub merges: Vec<(u32, u32)>,
    /// How often the pair of each merge occurred when it was chosen.
    pub counts: Vec<u64>,
    /// Whether the text ran out of pairs before the asked number of merges.
    pub exhausted: bool,
}

/// Learn merges from `counts`; `on_progress` is called after each with the number of merges so far.
///
/// Fails with [`Error::CountOverflow`](crate::Error::CountOverflow) if the corpus has more than
/// 2^64 pairs of neighbours, and with whatever `on_progress` fails with.
///
/// ```
/// use std::num::NonZeroU64;
/// use bytepair::{Counts, Ties, TrainOptions, train};
/// let counts = Counts::new([(&b"aaabdaaabac"[..], 1)]);
/// let options = TrainOptions { merges: 3, ties: Ties::RustBpe, min_count: NonZeroU64::MIN, max_token_bytes: None };
/// let trained = train(&counts, &options, &mut |_| Ok(()))?;
/// let (a, b) = (u32::from(b'a'), u32::from(b'b'));
/// assert_eq!(trained.merges, [(a, a), (a, b), (256, 257)]);
/// assert_eq!(trained.counts, [4, 2, 2]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn train(
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    let words = Words::new(counts)?;
    match options.ties {
        Ties::RustBpe => Trainer::new(words, options, SmallestPair::by_bytes()).run(on_progress),
        Ties::Hf => Trainer::new(words, options, SmallestPair::by_characters()).run(on_progress),
        Ties::FirstSeen => Trainer::new(words, options, FirstSeen).run(on_progress),
        Ties::BytesMax => Trainer::new(words, options, BytesMax::default()).run(on_progress),
    }
}

/// The state of a training under one rule for ties.
struct Trainer<'a, O: TieOrder> {
    options: &'a TrainOptions,
    order: O,
    words: Words,
    pairs: Pairs,
    /// Count, tie key and index of each pair; the greatest is next unless it is out of date.
    queue: BinaryHeap<(u64, O::Key, u32)>,
}

impl<'a, O: TieOrder> Trainer<'a, O> {
    fn new(words: Words, options: &'a TrainOptions, order: O) -> Self {
        let pairs = Pairs::of_bytes(&words);
        let mut trainer = Self { options, order, words, pairs, queue: BinaryHeap::new() };
        trainer.enqueue_from(0);
        trainer
    }

    fn run(mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained> {
        let mut trained = Trained::default();
        let mut changes = Changes::new(256 + self.options.merges);
        while trained.merges.len() < self.options.merges {
            let Some(index) = self.next() else {
                trained.exhausted = true;
                break;
            };
            trained.merges.push(self.pairs.pair(index));
            trained.counts.push(self.pairs.count(index));
            self.merge(index, &mut changes);
            on_progress(trained.merges.len())?;
        }
        Ok(trained)
    }

    /// The pair to merge now.
    fn next(&mut self) -> Option<u32> {
        while let Some((count, key, index)) = self.queue.pop() {
            let current = self.pairs.count(index);
            if current == count {
                let fresh = self.order.key(&mut self.pairs, &self.words, index);
                if fresh == key {
                    return Some(index);
                }
                self.queue.push((count, fresh, index));
            } else if current >= self.options.min_count.get() {
                self.queue.push((current, key, index));
            }
        }
        None
    }

    /// Merge a pair everywhere and take over what that changes.
    fn merge(&mut self, index: u32, changes: &mut Changes) {
        let pair = self.pairs.pair(index);
        let new = self.words.create(pair);
        self.order.created(pair);
        changes.of_merge(pair, new);
        for &word in self.pairs.postings(index) {
            self.words.merge(word, changes);
        }
        self.pairs.remove(index);
        let first = self.pairs.len();
        self.pairs.take_over(changes, self.options.min_count.get());
        self.enqueue_from(first);
    }

    /// Put the pairs from an index on into the queue, except those that may not be merged.
    fn enqueue_from(&mut self, first: u32) {
        for index in first..self.pairs.len() {
            let length = self.words.joined_length(self.pairs.pair(index));
            let fits = self.options.max_token_bytes.is_none_or(|most| length as usize <= most);
            let count = self.pairs.count(index);
            if fits && count >= self.options.min_count.get() {
                let key = self.order.key(&mut self.pairs, &self.words, index);
                self.queue.push((count, key, index));
            }
        }
    }
}
