//! Counts in, ordered merges out, exactly.
//!
//! The plain algorithm: count every pair of neighbours in every distinct pretoken, each as often as
//! the pretoken occurs; merge the most frequent pair everywhere; count again. Ties are broken by a
//! named rule. The result below is the same merge for merge, with five departures:
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
//!    them. Should the queue run dry, the floor is lowered and all pairs are counted anew.
//! 5. **Merges are made in batches, on all threads.** The pairs at the head of the queue that share
//!    no token end to end do not change each other's counts, and [`batch`] shows when nothing that
//!    they bear can come between them. Each thread owns a contiguous share of the words and makes
//!    all merges of a batch there; the changes are then added up. The result does not depend on the
//!    number of threads.
//!
//! [`start`] says what is there before the first merge. [`shard`] is what a thread owns: its
//! [`words`], and what merges change in them ([`changes`]). [`pairs`] has the counts of all pairs,
//! [`batch`] says which merges come next, [`order`] breaks ties, [`trainer`] leads.

mod batch;

mod changes;

mod order;

mod pairs;

mod shard;

mod start;

mod trainer;

mod words;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::num::NonZeroU64;

use crate::count::Counts;
use crate::error::Result;
use crate::tokenizer::Tokenizer;
use trainer::with_trainer;

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
    /// How many threads to use at most; they do not change the result.
    pub threads: usize,
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

/// Learn merges from `counts`; `on_progress` is called from time to time with the number of merges
/// so far.
///
/// Fails with [`Error::CountOverflow`](crate::Error::CountOverflow) if the corpus has more than
/// 2^64 pairs of neighbours, and with whatever `on_progress` fails with.
///
/// ```
/// use std::num::NonZeroU64;
/// use bytepair::{Counts, Ties, TrainOptions, train};
/// let counts = Counts::new([(&b"aaabdaaabac"[..], 1)]);
/// let options = TrainOptions { merges: 3, ties: Ties::RustBpe, min_count: NonZeroU64::MIN, max_token_bytes: None, threads: 2 };
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
    let mode = Mode::new(counts, options.merges);
    with_trainer(counts, options, None, mode, &mut |trainer| trainer.run(on_progress))
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
    let mode = Mode::new(counts, options.merges + base.merges().len());
    with_trainer(counts, options, Some(base), mode, &mut |trainer| trainer.run(on_progress))
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
    let mode = Mode::new(counts, merges.len());
    with_trainer(counts, &options, None, mode, &mut |trainer| trainer.verify(merges, on_progress))
}

/// What changes how fast a training is and nothing else.
#[derive(Debug, Clone, Copy)]
struct Mode {
    /// Pairs that are born less often are not kept, to begin with.
    floor: u64,
    /// How many merges a batch has at most.
    batch: usize,
    /// For how many bytes of distinct pretokens a thread is worth starting.
    bytes_a_thread: usize,
}

impl Mode {
    /// The fastest one for so many merges.
    ///
    /// The floor is the count of the pretoken that is number `merges` by frequency, of those of more
    /// than one byte. The last merge occurs at least so often: before it, one of these pretokens is
    /// not yet a single token, and any pair in it occurs as often as it does.
    fn new(counts: &Counts, merges: usize) -> Self {
        let long = counts.iter().filter(|(pretoken, _)| pretoken.len() > 1);
        let mut numbers: Vec<u64> = long.map(|(_, count)| count).collect();
        let last = merges.saturating_sub(1);
        let floor = if last < numbers.len() {
            *numbers.select_nth_unstable_by_key(last, |&count| Reverse(count)).1
        } else {
            1
        };
        Self { floor, batch: BATCH, bytes_a_thread: BYTES_A_THREAD }
    }
}

/// More merges in a batch do not make it faster.
const BATCH: usize = 256;

/// Less work than this is done by one thread before another has started.
const BYTES_A_THREAD: usize = 1 << 18;
