//! Cuts long pretokens where no merge can join the two sides.
//!
//! A superword crosses spaces, so it is learnt from pretokens as long as lines, which rarely
//! repeat. But a merge can cross the point between two adjacent tokens only if their pair is
//! frequent. Let (a, b) be adjacent before the first of the new merges. A merge across the point
//! between them merges a token that ends with `a` and a token that begins with `b`, since a token
//! has the same parts wherever it occurs. Each occurrence of this merge contains a different
//! occurrence of (a, b), so its count is at most that of (a, b). So no merge crosses a pair whose
//! count is below the minimum of the training, and none crosses a pair whose token is vetoed.
//!
//! Cut at such pairs, pretokens become short segments that repeat, and equal segments are counted
//! together. This does not change the other pairs, their counts and the order in which they first
//! occur.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::count::{Counts, DistinctRows};
use crate::error::Result;
use crate::parallel;
use crate::tokenizer::Tokenizer;
use crate::train::TrainOptions;
use crate::train::options::falling;
use crate::train::pair_counts::PairCounts;
use crate::train::words::Seed;

/// Counts in files are read in pieces of about this many bytes; the pages of each are then
/// released.
const PIECE_BYTES: usize = 1 << 24;

/// The pretokens, cut at all pairs of `base` that are vetoed or occur fewer than `min_count` times; and
/// this count, which is [`likely_min_count`] if none is given. Segments of a single token are left out.
pub(super) fn segments(
    base: &Tokenizer,
    counts: &Counts,
    options: &TrainOptions,
    min_count: Option<NonZeroU64>,
) -> Result<(Counts, NonZeroU64)> {
    let pairs = allowed_pairs(base, counts, options)?;
    let min_count = min_count.map_or_else(|| likely_min_count(&pairs, options), Ok)?;
    let mergeable = pairs.frequent(min_count.get())?;
    let new = || Ok(DistinctRows::default());
    let parts = on_shares(base, counts, options, new, |segments, pretoken, ids, count| {
        // A segment ends between two ids whose pair no merge can cross.
        let mut start = 0;
        for segment in ids.chunk_by(|&left, &right| mergeable.find((left, right)).is_some()) {
            let bytes = segment.iter().map(|&id| base.vocabulary().token_length(id)).sum::<usize>();
            if segment.len() > 1 {
                segments.add(&pretoken[start..start + bytes], count)?;
            }
            start += bytes;
        }
        Ok(())
    })?;
    let mut all = DistinctRows::default();
    // Adding the segments of the ranges in order keeps the order of first occurrence.
    for part in parts {
        part.finish().iter().try_for_each(|(segment, count)| all.add(segment, count))?;
    }
    Ok((all.finish(), min_count))
}

/// The adjacent pairs before the new merges, with their counts; those that are vetoed have count 0.
fn allowed_pairs(base: &Tokenizer, counts: &Counts, options: &TrainOptions) -> Result<PairCounts> {
    let parts = on_shares(base, counts, options, PairCounts::new, |pairs, _, ids, count| {
        ids.windows(2).try_for_each(|pair| pairs.add((pair[0], pair[1]), count))
    })?;
    let mut pairs = PairCounts::sum(parts)?;
    if let Some(veto) = options.veto.as_ref().filter(|veto| !veto.is_empty()) {
        let bytes = |id| base.vocabulary().bytes(id).unwrap_or_default();
        for index in 0..pairs.len() {
            let (left, right) = pairs.pair(index);
            if !veto.allows(&[bytes(left), bytes(right)].concat()) {
                pairs.remove(index);
            }
        }
    }
    Ok(pairs)
}

/// A count below which no merge is likely to be: a quarter of the count of pair number
/// `options.merges` in falling order. If the guess is wrong, training only takes longer.
fn likely_min_count(pairs: &PairCounts, options: &TrainOptions) -> Result<NonZeroU64> {
    let last = falling(pairs.entries.iter().map(|&(_, count)| count), options.merges)?;
    Ok(options.min_count.max(NonZeroU64::new(last / 4).unwrap_or(NonZeroU64::MIN)))
}

/// For each thread, a new value, to which `add` adds the pretokens of a range, with their ids and
/// counts; the ranges are contiguous and in order.
fn on_shares<T: Send>(
    base: &Tokenizer,
    counts: &Counts,
    options: &TrainOptions,
    new: fn() -> Result<T>,
    add: impl Fn(&mut T, &[u8], &[u32], u64) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let on_share = |range: Range<usize>| {
        let (mut value, mut seed, mut ids) = (new()?, Seed::new(Some(base))?, Vec::new());
        for piece in counts.pieces(range, PIECE_BYTES) {
            for (pretoken, count) in counts.range(piece.clone()) {
                seed.ids(pretoken, &mut ids)?;
                add(&mut value, pretoken, &ids, count)?;
            }
            counts.release(&piece);
        }
        Ok(value)
    };
    let shares = counts.shares(options.threads.max(1)).into_iter();
    parallel::run(shares.map(|range| || on_share(range))).into_iter().collect()
}
