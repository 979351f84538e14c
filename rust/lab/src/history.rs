//! The counts of pairs in several texts at each merge of a list, to estimate the mixture of these
//! texts from which the list was learnt.
//!
//! At each step, training merges the pair with the greatest count. So if the merges were learnt from
//! a mixture, then at each step the weighted count of the merged pair is at least that of any other
//! pair. A pair that contradicts given weights is a *rival*: [`PairHistory::rivals`] finds the
//! greatest rivals at each step (Hayase et al., arXiv 2407.16607).
//!
//! The merges are made once in each text, and every changed count is recorded; then the steps can
//! be replayed any number of times with other weights.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use bytepair::train::Changes;
use bytepair::train::TokenPair;
use bytepair::train::check_size;
use bytepair::train::merged_text::MergedText;
use bytepair::{Counts, Error, Result, memory};

/// The counts of pairs in several texts at each merge.
///
/// ```
/// use bytepair::Counts;
/// use bytepair_lab::history::PairHistory;
/// let texts = [Counts::new([(&b"ab"[..], 3)]), Counts::new([(&b"cd"[..], 2)])];
/// let history = PairHistory::new(&[(97, 98)], &texts.each_ref(), 1, &mut |_| Ok(()))?;
/// assert_eq!(history.merged(0), [3, 0]);
/// // With the weights 1 and 2, the text has cd four times, and ab three times.
/// let rivals = history.rivals(&[1.0, 2.0], &[0.0], &[], 1, 0.0);
/// assert_eq!(rivals.len(), 1);
/// assert_eq!((rivals[0].step, &rivals[0].counts[..]), (0, &[0, 2][..]));
/// assert!(history.rivals(&[1.0, 1.0], &[0.0], &[], 1, 0.0).is_empty());
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct PairHistory {
    texts: usize,
    pairs: usize,
    /// For each merge the index of its pair, if it is recorded for a text, and its count in each
    /// text.
    merged_pairs: Vec<Option<u32>>,
    merged: Vec<u64>,
    /// The changed counts, and where those before each step end. The first ones are all counts of
    /// the texts before any merge.
    changes: Vec<CountChange>,
    ends: Vec<usize>,
}

/// The new count of a pair in a text.
#[derive(Debug, Clone, Copy)]
struct CountChange {
    pair: u32,
    text: u32,
    count: u64,
}

/// A pair that should have been merged in place of the pair of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// The index of the merge.
    pub step: usize,
    /// The index of the pair in the history; the same pair has the same index at every step.
    pub pair: u32,
    /// Its count in each text at this step.
    pub counts: Vec<u64>,
}

impl PairHistory {
    /// Make the merges in the texts, and record the counts. The ids are those of a training: ids
    /// below 256 are bytes, and merge `i` creates id `256 + i`. A pair that occurs fewer than
    /// `least` times in every text when it first appears there cannot become a rival.
    ///
    /// Fails if a text has more than 2^64 adjacent pairs, or there is not enough memory.
    pub fn new(
        merges: &[TokenPair],
        texts: &[&Counts],
        least: u64,
        on_progress: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Self> {
        let vocab_size = 256 + merges.len();
        check_size(vocab_size)?;
        let mut history = Self {
            texts: texts.len(),
            pairs: 0,
            merged_pairs: Vec::new(),
            merged: memory::zeros(merges.len() * texts.len())?,
            changes: Vec::new(),
            ends: Vec::new(),
        };
        let mut recorder = Recorder { numbers: HashMap::default(), least };
        let mut merged_texts = Vec::new();
        for (text, counts) in texts.iter().enumerate() {
            let merged_text = MergedText::new(counts, None, vocab_size)?;
            recorder.record(
                &mut history,
                &merged_text,
                text,
                (0..merged_text.pair_count()).collect(),
            )?;
            merged_texts.push(merged_text);
        }
        let mut buffer = Changes::default();
        for (step, &pair) in merges.iter().enumerate() {
            memory::push(&mut history.ends, history.changes.len())?;
            let new = u32::try_from(256 + step).map_err(|_| Error::CountOverflow)?;
            for (text, merged_text) in merged_texts.iter_mut().enumerate() {
                let Some(index) = merged_text.find(pair) else { continue };
                history.merged[step * texts.len() + text] = merged_text.counted(index).1;
                let first = merged_text.pair_count();
                merged_text.merge(index, new, &mut buffer)?;
                // The merge lowered the counts of some pairs and set its own to 0; the pairs from
                // `first` on are new.
                let changed =
                    buffer.lowered().chain([index]).chain(first..merged_text.pair_count());
                recorder.record(&mut history, merged_text, text, changed.collect())?;
            }
            memory::push(&mut history.merged_pairs, recorder.numbers.get(&pair).copied())?;
            on_progress(step + 1)?;
        }
        history.pairs = recorder.numbers.len();
        Ok(history)
    }

    /// The number of merges.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no merges.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The count of the pair of a merge in each text when it was merged.
    pub fn merged(&self, step: usize) -> &[u64] {
        &self.merged[step * self.texts..(step + 1) * self.texts]
    }

    /// The rivals for given weights of the texts: at each step up to `most` pairs with the greatest
    /// weighted counts, minus their slack. A rival exceeds the weighted count of the merged pair by
    /// more than the sum of the slack of the step (`slack`), the slack of the rival (`pair_slack`,
    /// pairs of index and slack, default 0) and `tolerance`.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer weights than texts, or fewer slacks than merges.
    pub fn rivals(
        &self,
        weights: &[f64],
        slack: &[f64],
        pair_slack: &[(u32, f64)],
        most: usize,
        tolerance: f64,
    ) -> Vec<Rival> {
        let mut scan = StepScan::new(self, weights, pair_slack);
        let mut rivals = Vec::new();
        let mut start = 0;
        for (step, &end) in self.ends.iter().enumerate() {
            scan.apply(&self.changes[start..end]);
            start = end;
            let merged = weighted(self.merged(step), weights);
            let limit = merged + slack[step] + tolerance;
            let over = scan.over(limit, self.merged_pairs[step], most);
            rivals.extend(over.into_iter().map(|pair| Rival {
                step,
                pair,
                counts: scan.counts_of(pair).to_vec(),
            }));
        }
        rivals
    }
}

/// Gives each pair an index, and records counts.
struct Recorder {
    numbers: HashMap<TokenPair, u32, FixedState>,
    least: u64,
}

impl Recorder {
    /// Record the current counts of pairs of a text, by their indices there. A pair whose count is
    /// too small is recorded only if it has an index already, from this text or another one.
    fn record(
        &mut self,
        history: &mut PairHistory,
        merged_text: &MergedText,
        text: usize,
        indices: Vec<u32>,
    ) -> Result<()> {
        let text = u32::try_from(text).map_err(|_| Error::CountOverflow)?;
        for index in indices {
            let (pair, count) = merged_text.counted(index);
            let next = u32::try_from(self.numbers.len()).map_err(|_| Error::CountOverflow)?;
            let number = match self.numbers.get(&pair) {
                Some(&number) => number,
                None if count < self.least => continue,
                None => {
                    memory::reserve_entry(&mut self.numbers)?;
                    self.numbers.insert(pair, next);
                    next
                }
            };
            memory::push(&mut history.changes, CountChange { pair: number, text, count })?;
        }
        Ok(())
    }
}

/// The counts at one step, and the pairs by their weighted count.
struct StepScan<'a> {
    weights: &'a [f64],
    counts: Vec<u64>,
    /// The slack of each pair.
    slack: Vec<f64>,
    /// Pairs with their value when they were pushed. A pair is pushed again whenever a count of it
    /// rises, so its greatest value here is never less than its current value.
    queue: BinaryHeap<Weighted>,
    risen: Vec<u32>,
}

impl<'a> StepScan<'a> {
    fn new(history: &PairHistory, weights: &'a [f64], pair_slack: &[(u32, f64)]) -> Self {
        let mut slack = vec![0.0; history.pairs];
        for &(pair, value) in pair_slack {
            if let Some(slack) = slack.get_mut(pair as usize) {
                *slack = value;
            }
        }
        let counts = vec![0; history.pairs * history.texts];
        Self { weights, counts, slack, queue: BinaryHeap::new(), risen: Vec::new() }
    }

    fn counts_of(&self, pair: u32) -> &[u64] {
        let texts = self.weights.len();
        &self.counts[pair as usize * texts..(pair as usize + 1) * texts]
    }

    /// The weighted count of a pair minus its slack.
    fn value(&self, pair: u32) -> f64 {
        weighted(self.counts_of(pair), self.weights) - self.slack[pair as usize]
    }

    fn apply(&mut self, changes: &[CountChange]) {
        for &CountChange { pair, text, count } in changes {
            let index = pair as usize * self.weights.len() + text as usize;
            if count > self.counts[index] {
                self.risen.push(pair);
            }
            self.counts[index] = count;
        }
        self.risen.sort_unstable();
        self.risen.dedup();
        // Only a rise needs a push; a value that fell is corrected when it is at the top.
        for pair in std::mem::take(&mut self.risen) {
            let value = self.value(pair);
            self.queue.push(Weighted { value, pair });
        }
    }

    /// Up to `most` pairs other than `except` whose value exceeds `limit`, the greatest first.
    fn over(&mut self, limit: f64, except: Option<u32>, most: usize) -> Vec<u32> {
        let (mut top_pairs, mut popped) = (Vec::new(), Vec::new());
        while top_pairs.len() < most && self.queue.peek().is_some_and(|top| top.value > limit) {
            let Some(Weighted { value, pair }) = self.queue.pop() else { break };
            // Counts may have fallen since the push; the entry goes back with the current value, as
            // in the queue of a training.
            let now = self.value(pair);
            if now < value {
                self.queue.push(Weighted { value: now, pair });
                continue;
            }
            popped.push(Weighted { value, pair });
            // A pair whose counts rose twice is in the queue twice.
            if except != Some(pair) && !top_pairs.contains(&pair) {
                top_pairs.push(pair);
            }
        }
        // The next step needs these pairs again.
        self.queue.extend(popped);
        top_pairs
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn weighted(counts: &[u64], weights: &[f64]) -> f64 {
    counts.iter().zip(weights).map(|(&count, weight)| count as f64 * weight).sum()
}

/// A pair in the queue; the greatest value comes first.
struct Weighted {
    value: f64,
    pair: u32,
}

impl Ord for Weighted {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(other.pair.cmp(&self.pair))
    }
}

impl PartialOrd for Weighted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Weighted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Weighted {}
