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

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::count::{Counts, DistinctRows};
use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;
use crate::train::TrainOptions;
use crate::train::options::{Veto, falling};
use crate::train::pair_counts::TokenPair;
use crate::train::words::Seed;
use crate::{memory, parallel};

/// Counts in files are read in pieces of about this many bytes; the pages of each are then
/// released.
const PIECE_BYTES: usize = 1 << 24;

/// Counts of pairs, divided among several maps: when a map grows, only its own entries are copied,
/// and when the counts of another thread are added, its maps are freed one by one.
struct PairSums(Vec<HashMap<TokenPair, u64, FixedState>>);

impl PairSums {
    const MAPS: usize = 16;

    fn new() -> Self {
        Self((0..Self::MAPS).map(|_| HashMap::default()).collect())
    }

    fn add(&mut self, pair: TokenPair, count: u64) -> Result<()> {
        // (a, b) and (b, a) share a map: the division need only be about even.
        let map = &mut self.0[(pair.0 ^ pair.1) as usize % Self::MAPS];
        memory::reserve_entry(map)?;
        let sum = map.entry(pair).or_insert(0);
        *sum = sum.checked_add(count).ok_or(Error::CountOverflow)?;
        Ok(())
    }

    fn add_all(&mut self, other: Self) -> Result<()> {
        let mut pairs = other.0.into_iter().flatten();
        pairs.try_for_each(|(pair, count)| self.add(pair, count))
    }

    fn retain(&mut self, mut keep: impl FnMut(TokenPair) -> bool) {
        self.0.iter_mut().for_each(|map| map.retain(|&pair, _| keep(pair)));
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|map| map.values().copied())
    }

    fn into_pairs(self) -> impl Iterator<Item = (TokenPair, u64)> {
        self.0.into_iter().flatten()
    }
}

/// Counts of adjacent pairs before the new merges.
pub(super) struct AdjacentPairs<'a> {
    base: &'a Tokenizer,
    counts: &'a Counts,
    threads: usize,
    /// The count of each pair that is not vetoed.
    pairs: PairSums,
}

impl<'a> AdjacentPairs<'a> {
    /// Count the pairs in `counts` after the merges of `base`.
    pub(super) fn count(
        base: &'a Tokenizer,
        counts: &'a Counts,
        veto: &Veto,
        threads: usize,
    ) -> Result<Self> {
        let ranges = counts.shares(threads.max(1)).into_iter();
        let parts = parallel::run(ranges.map(|range| move || count_share(base, counts, range)));
        let mut pairs = PairSums::new();
        for part in parts {
            pairs.add_all(part?)?;
        }
        if !veto.is_empty() {
            let bytes = |id| base.vocabulary().bytes(id).unwrap_or_default();
            pairs.retain(|(left, right)| veto.allows(&[bytes(left), bytes(right)].concat()));
        }
        Ok(Self { base, counts, threads, pairs })
    }

    /// A count below which no merge is likely to be: a quarter of the count of pair number
    /// `options.merges` in falling order. If the guess is wrong, training only takes longer.
    pub(super) fn likely_min_count(&self, options: &TrainOptions) -> Result<NonZeroU64> {
        let last = falling(self.pairs.counts(), options.merges)?;
        Ok(options.min_count.max(NonZeroU64::new(last / 4).unwrap_or(NonZeroU64::MIN)))
    }

    /// The pretokens, cut at all pairs that occur fewer than `min_count` times or are vetoed.
    /// Segments of a single token are left out.
    pub(super) fn segments(self, min_count: NonZeroU64) -> Result<Counts> {
        let frequent = self.pairs.into_pairs().filter(|&(_, count)| count >= min_count.get());
        let mut mergeable: HashSet<TokenPair, FixedState> = HashSet::default();
        mergeable.extend(frequent.map(|(pair, _)| pair));
        let ranges = self.counts.shares(self.threads.max(1)).into_iter();
        let parts = parallel::run(
            ranges.map(|range| || cut_share(self.base, self.counts, range, &mergeable)),
        );
        let mut all = DistinctRows::default();
        // Threads cut contiguous ranges, so adding their segments in order keeps the order of first
        // occurrence.
        for part in parts {
            for (segment, count) in part?.iter() {
                all.add(segment, count)?;
            }
        }
        Ok(all.finish())
    }
}

/// Call `each` with the pretokens of a range, their ids and their counts.
fn for_each_pretoken(
    base: &Tokenizer,
    counts: &Counts,
    range: Range<usize>,
    mut each: impl FnMut(&[u8], &[u32], u64) -> Result<()>,
) -> Result<()> {
    let (mut seed, mut ids) = (Seed::new(Some(base))?, Vec::new());
    for piece in counts.pieces(range, PIECE_BYTES) {
        for (pretoken, count) in counts.range(piece.clone()) {
            seed.ids(pretoken, &mut ids)?;
            each(pretoken, &ids, count)?;
        }
        counts.release(&piece);
    }
    Ok(())
}

/// Count the adjacent pairs in a range of the pretokens.
fn count_share(base: &Tokenizer, counts: &Counts, range: Range<usize>) -> Result<PairSums> {
    let mut pairs = PairSums::new();
    for_each_pretoken(base, counts, range, |_, ids, count| {
        ids.windows(2).try_for_each(|pair| pairs.add((pair[0], pair[1]), count))
    })?;
    Ok(pairs)
}

/// Cut the pretokens of a range at all pairs that are not in `mergeable`.
fn cut_share(
    base: &Tokenizer,
    counts: &Counts,
    range: Range<usize>,
    mergeable: &HashSet<TokenPair, FixedState>,
) -> Result<Counts> {
    let mut segments = DistinctRows::default();
    for_each_pretoken(base, counts, range, |pretoken, ids, count| {
        // A segment ends between two ids whose pair no merge can cross.
        let mut start = 0;
        for segment in ids.chunk_by(|&left, &right| mergeable.contains(&(left, right))) {
            let bytes = segment.iter().map(|&id| base.vocabulary().token_length(id)).sum::<usize>();
            if segment.len() > 1 {
                segments.add(&pretoken[start..start + bytes], count)?;
            }
            start += bytes;
        }
        Ok(())
    })?;
    Ok(segments.finish())
}
