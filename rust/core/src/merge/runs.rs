//! Merges a pretoken of few runs, such as a line of dashes or a megabyte of spaces.
//!
//! Equal adjacent parts form one run of any length, and all pairs of a run merge in one step. So a
//! run takes about as many steps as its length has bits. Without this, 1 MB of `a`, spaces or
//! dashes takes 12 to 24 times as long.

use crate::machine::simd::Portable;
use crate::merge::pair_table::{NO_MERGE, Pairs};
use crate::merge::symbols::Symbols;

/// Pretokens with more runs are left to the other algorithms: each merge compares the pairs of all
/// runs, so 64 runs, nearly as many as the bytes of an identifier, would take three times as long.
const MAX_RUNS: usize = 16;

/// Equal adjacent parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    id: u32,
    count: usize,
}

/// Append the ids of a pretoken, each of whose bytes must have an id. Returns false and appends
/// nothing if the pretoken has many runs or merging would create many.
pub(crate) fn merge(
    pairs: &impl Pairs,
    symbols: &Symbols,
    pretoken: &[u8],
    out: &mut Vec<u32>,
) -> bool {
    let Some(mut runs) = runs(symbols, pretoken) else { return false };
    while let Some((rank, at, is_within)) = lowest(pairs, &runs) {
        if is_within {
            merge_within(pairs, &mut runs, at, rank);
        } else {
            // The new part takes the last part of one run and the first of the next; a run that
            // this empties is removed by `normalize`.
            runs[at].count -= 1;
            runs[at + 1].count -= 1;
            runs.insert(at + 1, Run { id: pairs.id(rank), count: 1 });
        }
        normalize(&mut runs);
        if runs.len() > MAX_RUNS {
            return false;
        }
    }
    out.extend(runs.iter().flat_map(|run| std::iter::repeat_n(run.id, run.count)));
    true
}

/// The runs of the initial parts; `None` if there are many.
fn runs(symbols: &Symbols, pretoken: &[u8]) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    for (_, id) in symbols.parts(pretoken) {
        if let Some(run) = runs.last_mut().filter(|run| run.id == id) {
            run.count += 1;
        } else if runs.len() == MAX_RUNS {
            return None;
        } else {
            runs.push(Run { id, count: 1 });
        }
    }
    Some(runs)
}

/// The lowest rank, the run of its leftmost merge, and whether that is within the run; otherwise it is
/// of the last part of the run with the first of the next run.
fn lowest(pairs: &impl Pairs, runs: &[Run]) -> Option<(u32, usize, bool)> {
    let merges = runs.iter().enumerate().flat_map(|(at, run)| {
        let rank = |right: u32| pairs.rank(run.id, right, Portable);
        let within = if run.count > 1 { rank(run.id) } else { NO_MERGE };
        let across = runs.get(at + 1).map_or(NO_MERGE, |next| rank(next.id));
        [(within, at, true), (across, at, false)]
    });
    merges.filter(|(rank, ..)| *rank != NO_MERGE).min_by_key(|(rank, ..)| *rank)
}

/// Merge the pairs of a run from left to right: all of them, or only the first if its merge creates
/// a pair of lower rank.
fn merge_within(pairs: &impl Pairs, runs: &mut Vec<Run>, at: usize, rank: u32) {
    let (Run { id: old, count }, new) = (runs[at], pairs.id(rank));
    let before = at.checked_sub(1).map(|before| runs[before].id);
    let new_pairs = [before.map(|before| (before, new)), Some((new, old)), Some((new, new))];
    let mut new_pairs = new_pairs.into_iter().flatten();
    let stays_lowest = new_pairs.all(|(left, right)| pairs.rank(left, right, Portable) > rank);
    let merges = if stays_lowest { count / 2 } else { 1 };
    // What is left over stands to the right: the odd part, or all but the first two.
    runs[at] = Run { id: new, count: merges };
    runs.insert(at + 1, Run { id: old, count: count - 2 * merges });
}

/// Remove empty runs, and join adjacent runs of the same id.
fn normalize(runs: &mut Vec<Run>) {
    runs.retain(|run| run.count > 0);
    runs.dedup_by(|right, left| {
        let same = left.id == right.id;
        if same {
            left.count += right.count;
        }
        same
    });
}
