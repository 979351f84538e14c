//! Counts in, ordered merges out, exactly.
//!
//! The plain algorithm: count every pair of neighbours in every distinct pretoken, each as often as
//! the pretoken occurs; merge the most frequent pair everywhere; count again. Ties are broken by a
//! named rule. The result below is the same merge for merge, with four departures:
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
//! 4. **Rare pairs are not kept.** A pair that is born below some floor stays below it. As long as
//!    there are pairs above the floor, no other can be the maximum, so nothing is remembered of
//!    them. When the queue runs dry the floor is lowered and all pairs are counted anew, once or
//!    twice in a training.
//!
//! [`start`] says what is there before the first merge, [`words`] holds the pretokens and rewrites
//! them, [`pairs`] holds counts and postings, [`order`] breaks ties.

mod order;

mod pairs;

mod start;

mod words;

#[cfg(test)]
mod tests;

use std::collections::BinaryHeap;
use std::num::NonZeroU64;

use crate::count::Counts;
use crate::error::Result;
use crate::tokenizer::Tokenizer;
use order::{BytesMax, FirstSeen, SmallestPair, TieOrder};
use pairs::Pairs;
use start::Start;
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
    /// How many times each merge was made, which is by how much the text got shorter: the count,
    /// but for pairs of two equal tokens, whose occurrences may overlap.
    pub made: Vec<u64>,
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
    let floor = first_floor(counts, options.merges);
    let mut run = |trainer: &mut dyn Merging| trainer.run(on_progress);
    with_trainer(counts, options, Start::bytes(), floor, &mut run)
}

/// Learn more merges on top of those of a tokenizer, which all stay as they are.
///
/// The pretokens are merged by the merges of `base` first. The ids in the result are those of
/// `base`, and new tokens have the ids behind its vocabulary.
///
/// Fails as [`train`] does, and if no token of `base` covers a byte of the corpus.
pub fn train_more(
    base: &Tokenizer,
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    let floor = first_floor(counts, options.merges + base.merges().len());
    let mut run = |trainer: &mut dyn Merging| trainer.run(on_progress);
    with_trainer(counts, options, Start::of(base)?, floor, &mut run)
}

/// A merge that was not the one to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The number of the merge, from 0 on.
    pub step: usize,
    /// The pair of ids in the list, and how often it occurred.
    pub listed: ((u32, u32), u64),
    /// The pair that was to be merged, and how often it occurred; `None` if there was none.
    pub best: Option<((u32, u32), u64)>,
}

/// Check that each merge of a list was the one to make: of the pairs with the greatest count, the
/// one that the rule for ties puts first. Returns the first that was not.
///
/// The ids are those of [`Trained`]. `options.merges` does not count: the list is checked whole.
pub fn verify(
    merges: &[(u32, u32)],
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Option<Mismatch>> {
    let options = TrainOptions { merges: merges.len(), ..options.clone() };
    let floor = first_floor(counts, merges.len());
    let mut check = |trainer: &mut dyn Merging| trainer.verify(merges, on_progress);
    with_trainer(counts, &options, Start::bytes(), floor, &mut check)
}

/// Make the trainer of the rule for ties and let it work. The floor changes how fast it is and
/// nothing else.
fn with_trainer<T>(
    counts: &Counts,
    options: &TrainOptions,
    mut start: Start,
    floor: u64,
    work: &mut dyn FnMut(&mut dyn Merging) -> Result<T>,
) -> Result<T> {
    let words = Words::new(counts, &mut start)?;
    match options.ties {
        Ties::RustBpe => work(&mut Trainer::new(words, options, SmallestPair::by_bytes(), floor)),
        Ties::Hf => work(&mut Trainer::new(words, options, SmallestPair::by_characters(), floor)),
        Ties::FirstSeen => work(&mut Trainer::new(words, options, FirstSeen, floor)),
        Ties::BytesMax => {
            work(&mut Trainer::new(words, options, BytesMax::new(start.tokens()), floor))
        }
    }
}

/// A trainer under any rule for ties.
trait Merging {
    /// Learn as many merges as the options ask for.
    fn run(&mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained>;

    /// Follow a list of merges as long as each is the one to make.
    fn verify(
        &mut self,
        merges: &[(u32, u32)],
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Mismatch>>;
}

/// A guess, on the low side, of how often the last merge occurs: counts fall about as one over the
/// number of the merge, so the last has a share of all pretokens that falls with it.
fn first_floor(counts: &Counts, merges: usize) -> u64 {
    let total = counts.total().unwrap_or(u64::MAX);
    total / (merges.max(1) as u64).saturating_mul(9 * FLOOR_MARGIN)
}

/// A first floor is so many times lower than the count that the last merge may have.
const FLOOR_MARGIN: u64 = 4;

/// Each further floor is so many times lower.
const FLOOR_STEP: u64 = 16;

/// The state of a training under one rule for ties.
struct Trainer<'a, O: TieOrder> {
    options: &'a TrainOptions,
    order: O,
    words: Words,
    /// Those that occur at least `floor` times, or did when they were born.
    pairs: Pairs,
    floor: u64,
    /// Count, tie key and index of each pair; the greatest is next unless it is out of date.
    queue: BinaryHeap<(u64, O::Key, u32)>,
}

impl<'a, O: TieOrder> Trainer<'a, O> {
    fn new(words: Words, options: &'a TrainOptions, order: O, floor: u64) -> Self {
        let floor = floor.max(options.min_count.get());
        let pairs = Pairs::of_words(&words, floor);
        let mut trainer = Self { options, order, words, pairs, floor, queue: BinaryHeap::new() };
        trainer.enqueue_from(0);
        trainer
    }

    /// The pair to merge now, whatever the floor must be.
    fn best(&mut self) -> Option<u32> {
        loop {
            let next = self.next();
            if next.is_some() || !self.lower_floor() {
                return next;
            }
        }
    }

    fn changes(&self) -> Changes {
        Changes::new(self.words.vocab_size() + self.options.merges)
    }

    /// Count the pairs anew that were too rare; false if no pair is.
    fn lower_floor(&mut self) -> bool {
        if self.floor == self.options.min_count.get() {
            return false;
        }
        self.floor = (self.floor / FLOOR_STEP).max(self.options.min_count.get());
        self.pairs = Pairs::of_words(&self.words, self.floor);
        self.enqueue_from(0);
        true
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
            } else if current >= self.floor {
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
        self.words.merge_all(self.pairs.postings(index), changes);
        self.pairs.remove(index);
        let first = self.pairs.len();
        self.pairs.take_over(changes, self.floor);
        self.enqueue_from(first);
    }

    /// Put the pairs from an index on into the queue, except those that may not be merged.
    fn enqueue_from(&mut self, first: u32) {
        for index in first..self.pairs.len() {
            let length = self.words.joined_length(self.pairs.pair(index));
            let fits = self.options.max_token_bytes.is_none_or(|most| length as usize <= most);
            let count = self.pairs.count(index);
            if fits {
                let key = self.order.key(&mut self.pairs, &self.words, index);
                self.queue.push((count, key, index));
            }
        }
    }
}

impl<O: TieOrder> Merging for Trainer<'_, O> {
    fn run(&mut self, on_progress: &mut dyn FnMut(usize) -> Result<()>) -> Result<Trained> {
        let mut trained = Trained::default();
        let mut changes = self.changes();
        while trained.merges.len() < self.options.merges {
            let Some(index) = self.best() else {
                trained.exhausted = true;
                break;
            };
            trained.merges.push(self.pairs.pair(index));
            trained.counts.push(self.pairs.count(index));
            self.merge(index, &mut changes);
            trained.made.push(changes.made());
            on_progress(trained.merges.len())?;
        }
        Ok(trained)
    }

    fn verify(
        &mut self,
        merges: &[(u32, u32)],
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Mismatch>> {
        let mut changes = self.changes();
        for (step, &pair) in merges.iter().enumerate() {
            let best = self.best();
            if let Some(index) = best
                && self.pairs.pair(index) == pair
            {
                self.merge(index, &mut changes);
                on_progress(step + 1)?;
                continue;
            }
            let best = best.map(|index| (self.pairs.pair(index), self.pairs.count(index)));
            let listed = (pair, self.words.count_pair(pair));
            return Ok(Some(Mismatch { step, listed, best }));
        }
        Ok(None)
    }
}
