//! Cuts long pretokens where no merge can join the two sides.
//!
//! A superword crosses spaces, so it is learnt from pretokens as long as lines, which hardly ever
//! repeat. But two neighbouring tokens join only as long as their pair is frequent: let (a, b) be
//! neighbours before the first of the new merges. A merge across the point between them is a merge
//! of two tokens of which the left one ends with `a` and the right one begins with `b`, since each
//! token is made of the same parts everywhere. Each of its occurrences lies at another occurrence
//! of (a, b), so its count is not greater than that of (a, b). So a pair below the least count that
//! is asked for is never joined, and nor is a pair whose token is vetoed.
//!
//! Cut there, pretokens become short segments that repeat, and equal segments are counted together.
//! The pairs in them, their counts and the order in which they first occur stay what they were.

use std::num::NonZeroU64;
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::tokenizer::Tokenizer;
use crate::train::TrainOptions;
use crate::train::pair::TokenPair;
use crate::train::seed::Seed;
use crate::train::veto::{PairVeto, Veto};

type PairMap = HashMap<TokenPair, u64, FixedState>;

/// Pairs of neighbours, before the merges that are to be learnt.
pub(super) struct Neighbours<'a> {
    base: &'a Tokenizer,
    counts: &'a Counts,
    threads: usize,
    /// How often each pair occurs that is not vetoed.
    pairs: PairMap,
}

impl<'a> Neighbours<'a> {
    /// Count the pairs in `counts` after the merges of `base`.
    pub(super) fn count(
        base: &'a Tokenizer,
        counts: &'a Counts,
        veto: &Veto,
        threads: usize,
    ) -> Result<Self> {
        let ranges = counts.shares(threads.max(1)).into_iter();
        let parts = parallel::run(ranges.map(|range| move || count_share(base, counts, range)));
        let mut pairs = PairMap::default();
        for part in parts {
            let part = part?;
            memory::reserve_entries(&mut pairs, part.len())?;
            for (pair, count) in part {
                let sum = pairs.entry(pair).or_insert(0);
                *sum = sum.checked_add(count).ok_or(Error::CountOverflow)?;
            }
        }
        if !veto.is_empty() {
            let mut veto = PairVeto::new(veto, Seed::new(Some(base))?.tokens()?);
            let mut vetoed = Ok(());
            pairs.retain(|&pair, _| match veto.allows(pair) {
                Ok(allowed) => allowed,
                Err(error) => {
                    vetoed = Err(error);
                    false
                }
            });
            vetoed?;
        }
        Ok(Self { base, counts, threads, pairs })
    }

    /// A count that no merge is likely to fall below: the quarter of that of pair number
    /// `options.merges` in falling order. Only the time of the training depends on it.
    pub(super) fn likely_least(&self, options: &TrainOptions) -> Result<NonZeroU64> {
        let mut counts: Vec<u64> = memory::collect(self.pairs.values().copied())?;
        if options.merges >= counts.len() {
            return Ok(options.min_count);
        }
        let order = |one: &u64, other: &u64| other.cmp(one);
        let last = *counts.select_nth_unstable_by(options.merges, order).1;
        Ok(options.min_count.max(NonZeroU64::new(last / 4).unwrap_or(NonZeroU64::MIN)))
    }

    /// The pretokens, cut at all pairs that occur fewer than `least` times or are vetoed. Segments
    /// of a single token are left out.
    pub(super) fn segments(&self, least: NonZeroU64) -> Result<Counts> {
        let joined = self.pairs.iter().filter(|&(_, &count)| count >= least.get());
        let mut kept: HashSet<TokenPair, FixedState> = HashSet::default();
        kept.extend(joined.map(|(&pair, _)| pair));
        let ranges = self.counts.shares(self.threads.max(1)).into_iter();
        let parts =
            parallel::run(ranges.map(|range| || cut_share(self.base, self.counts, range, &kept)));
        let mut all = Segments::default();
        for part in parts {
            for (segment, count) in part?.rows {
                all.add(segment, count)?;
            }
        }
        Ok(Counts::new(all.rows))
    }
}

/// Count the pairs of neighbours in a range of the pretokens.
fn count_share(base: &Tokenizer, counts: &Counts, range: Range<usize>) -> Result<PairMap> {
    let (mut seed, mut ids) = (Seed::new(Some(base))?, Vec::new());
    let mut pairs = PairMap::default();
    for (pretoken, count) in counts.range(range) {
        seed.ids(pretoken, &mut ids)?;
        for pair in ids.windows(2) {
            memory::reserve_entry(&mut pairs)?;
            let sum = pairs.entry((pair[0], pair[1])).or_insert(0);
            *sum = sum.checked_add(count).ok_or(Error::CountOverflow)?;
        }
    }
    Ok(pairs)
}

/// Cut a range of the pretokens, where the pair at the point is not `kept`.
fn cut_share<'a>(
    base: &Tokenizer,
    counts: &'a Counts,
    range: Range<usize>,
    kept: &HashSet<TokenPair, FixedState>,
) -> Result<Segments<'a>> {
    let mut seed = Seed::new(Some(base))?;
    let lengths = seed.token_lengths()?;
    let (mut ids, mut rows) = (Vec::new(), Segments::default());
    for (pretoken, count) in counts.range(range) {
        seed.ids(pretoken, &mut ids)?;
        let mut start = 0;
        for segment in ids.chunk_by(|&left, &right| kept.contains(&(left, right))) {
            let end =
                start + segment.iter().map(|&id| lengths[id as usize] as usize).sum::<usize>();
            if segment.len() > 1 {
                rows.add(&pretoken[start..end], count)?;
            }
            start = end;
        }
    }
    Ok(rows)
}

/// Distinct segments with their counts, in order of first occurrence.
#[derive(Default)]
struct Segments<'a> {
    rows: Vec<(&'a [u8], u64)>,
    places: HashMap<&'a [u8], usize, FixedState>,
}

impl<'a> Segments<'a> {
    fn add(&mut self, segment: &'a [u8], count: u64) -> Result<()> {
        memory::reserve_entry(&mut self.places)?;
        let place = *self.places.entry(segment).or_insert(self.rows.len());
        match self.rows.get_mut(place) {
            None => memory::push(&mut self.rows, (segment, count)),
            Some((_, sum)) => {
                *sum = sum.checked_add(count).ok_or(Error::CountOverflow)?;
                Ok(())
            }
        }
    }
}
