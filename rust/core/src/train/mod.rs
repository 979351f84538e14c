//! Learns ordered merges from counts, exactly.
//!
//! The reference algorithm: count every adjacent pair in every distinct pretoken, weighted by the
//! count of the pretoken; merge the most frequent pair everywhere; count again. A named rule breaks
//! ties. The trainer produces the same merges in the same order, with five differences:
//!
//! 1. **Counts are updated, not recounted.** A merge changes only the pretokens that contain the
//!    pair, and each pair has a list of them (its *postings*). The changes of one merge are summed
//!    in arrays indexed by the neighbour, so each pair is looked up once per merge and not once per
//!    occurrence.
//! 2. **All occurrences of a pair appear in one step.** All occurrences of a token are created in a
//!    single step. So all occurrences of a pair appear in the step that creates the newer of its
//!    two tokens: its postings are written once, and its count only falls afterwards.
//! 3. **The queue is lazy.** Counts only fall, so the count in a queue entry is never too small.
//!    The top entry is compared with the current count. If the count has fallen, the entry goes
//!    back with the current count; otherwise it is the maximum.
//! 4. **Rare pairs are not kept.** A new pair with a count below the floor stays below it. While
//!    there are pairs above the floor, no rare pair can be the maximum. When the queue is empty,
//!    the floor is lowered and all pairs are counted again.
//! 5. **Merges are made in batches, on all threads.** Merges of pairs at the head of the queue do
//!    not change each other's counts if no pair begins with the token with which another ends;
//!    `queue` explains when no new pair can precede one of them. Each thread owns a contiguous
//!    range of the words and makes all merges of a batch there; then the changes are added up. The
//!    result does not depend on the number of threads.
//!
//! `words` turns pretokens into ids, `postings` lists the words of each pair, and `changes` records what
//! a batch changes in them. `pair_counts` has the counts of all pairs, `queue` chooses the next batch,
//! `order` breaks ties, and `trainer` runs the training. For tokens that cross spaces, [`Veto`] says
//! which are allowed, and `segments` cuts long pretokens.

mod changes;
pub mod grow;
pub mod merged_text;
mod options;
pub mod order;
mod pair_counts;
mod postings;
pub mod queue;
mod segments;
#[cfg(test)]
mod tests;
mod trainer;
mod words;

use std::num::NonZeroU64;

use crate::count::Counts;
use crate::error::Result;
use crate::tokenizer::Tokenizer;
pub use changes::Changes;
use merged_text::MergedText;
use options::Tuning;
pub use options::{Mismatch, Ties, TrainOptions, Trained, Veto};
pub use pair_counts::TokenPair;
use segments::segments;
use trainer::learn;
pub use words::Seed;

pub use crate::vocabulary::check_size;

/// Learn merges from `counts`. `on_progress` is called from time to time with the number of merges
/// made.
///
/// Fails with [`Error::CountOverflow`](crate::Error::CountOverflow) if the corpus has more than
/// 2^64 adjacent pairs, and with any error of `on_progress`.
///
/// ```
/// use bytepair::{Counts, TrainOptions, train};
/// let counts = Counts::new([(&b"aaabdaaabac"[..], 1)]);
/// let options = TrainOptions { merges: 3, ..TrainOptions::default() };
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
    learn_on(None, counts, options, on_progress)
}

/// Learn more merges on top of those of a tokenizer, which do not change.
///
/// The pretokens are first merged by the merges of `base`. The result uses the ids of `base`; new
/// tokens have the ids after its vocabulary.
///
/// With `options.veto`, pretokens may be as long as lines: they are cut at points that no merge can
/// cross.
///
/// Fails as [`train`] does, and if no token of `base` covers a byte of the corpus.
pub fn train_more(
    base: &Tokenizer,
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    if options.veto.is_none() {
        return learn_on(Some(base), counts, options, on_progress);
    }
    let mut min_count = None;
    loop {
        let (segments, least) = segments(base, counts, options, min_count)?;
        let rare = TrainOptions { min_count: least, ..options.clone() };
        let trained = learn_on(Some(base), &segments, &rare, on_progress)?;
        if !trained.exhausted || least == options.min_count {
            return Ok(trained);
        }
        // Merges with smaller counts are needed, so fewer points may be cut. Pairs are counted
        // again, because keeping their counts would take more memory than the segments.
        let lower = NonZeroU64::new(least.get() / 4).unwrap_or(NonZeroU64::MIN);
        min_count = Some(options.min_count.max(lower));
    }
}

/// Learn merges from these counts, without cutting pretokens; see [`learn`].
fn learn_on(
    base: Option<&Tokenizer>,
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    let before = base.map_or(0, |base| base.merges().len());
    let tuning = Tuning::new(counts, options.merges.saturating_add(before))?;
    learn(counts, options, base, tuning, on_progress)
}

/// Check that training would make each merge of a list, in this order: as [`train_more`] on top of
/// those of `base`, or without a base as [`train`]. Returns the first merge that it would not make.
///
/// The ids are those of the training; without a base those of [`Trained`]. The whole list is checked;
/// `options.merges` is ignored.
pub fn verify(
    base: Option<&Tokenizer>,
    merges: &[(u32, u32)],
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Option<Mismatch>> {
    let segments = base.map(|base| segments(base, counts, options, Some(NonZeroU64::MIN)));
    let segments = segments.transpose()?;
    let counts = segments.as_ref().map_or(counts, |(segments, _)| segments);
    let options = TrainOptions { merges: merges.len(), ..options.clone() };
    let learnt = learn_on(base, counts, &options, on_progress)?;
    let step = merges.iter().zip(&learnt.merges).take_while(|(one, other)| one == other).count();
    let Some(&pair) = merges.get(step) else { return Ok(None) };
    // Making the merges before it again, one by one, gives the count that the pair had.
    let ids = base.map_or(256, |base| base.vocabulary().len());
    let mut text = MergedText::new(counts, base, ids + merges.len())?;
    let mut changes = Changes::default();
    for (new, &merge) in (0u32..).skip(ids).zip(&merges[..step]) {
        if let Some(index) = text.find(merge) {
            text.merge(index, new, &mut changes)?;
        }
        on_progress(merges.len())?;
    }
    let count = text.find(pair).map_or(0, |index| text.counted(index).1);
    let best = learnt.merges.get(step).copied().zip(learnt.counts.get(step).copied());
    Ok(Some(Mismatch { step, pair: (pair, count), best }))
}
