//! Several short pretokens merged side by side.
//!
//! To merge one pretoken is a chain: which pairs the next look-ups are about is known only when the
//! last ones have answered, and each waits for memory. So a few pretokens take turns: a turn reads the
//! answers that it asked for one round ago, makes a merge, and asks for the memory of the next two
//! pairs. The ids are those of [`merge`](super::merge).

use std::ops::Range;

use super::pairs::PairTable;
use super::parts::Parts;
use super::{Encoder, Pretokens};
use crate::key::{Key, LONGEST};
use crate::lanes::{self, Lanes, Work};
use crate::vocabulary::Vocabulary;

/// How many pretokens take turns.
pub(super) const TURNS: usize = 16;

/// The next pretokens of a text: the first begins at `start`, and each has an end, a key and a place
/// in the cache.
pub(super) struct Later<'a> {
    pub(super) text: &'a [u8],
    pub(super) start: usize,
    pub(super) ends: &'a [usize],
    pub(super) keys: &'a [(Key, usize)],
}

impl Later<'_> {
    /// The short pretokens: where they are, their keys and their places.
    fn short(&self) -> impl Iterator<Item = (Range<usize>, Key, usize)> {
        let mut start = self.start;
        let pretokens = self.ends.iter().zip(self.keys).map(move |(&end, &(key, place))| {
            let range = start..end;
            start = end;
            (range, key, place)
        });
        pretokens.filter(|(range, ..)| range.len() <= LONGEST)
    }
}

/// Short pretokens that are not in the cache and will soon be needed.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Where they are in the text, their keys and their places in the cache.
    missed: Vec<(Range<usize>, Key, usize)>,
    /// Those that are merged.
    parts: Vec<Parts<{ LONGEST + 1 }>>,
    /// Their keys and their places in the cache.
    keys: Vec<(Key, usize)>,
}

impl Ahead {
    /// Merge all side by side and put their ids into the cache.
    fn merge(&mut self, pairs: &PairTable, cache: &mut Pretokens, ids: &mut Vec<u32>) {
        merge(pairs, &mut self.parts);
        for (parts, (key, place)) in self.parts.drain(..).zip(self.keys.drain(..)) {
            ids.clear();
            parts.write(ids);
            cache.put(key, place, &[], ids);
        }
    }
}

impl Encoder {
    /// Put into the cache what of the next pretokens is short and not there.
    pub(super) fn foresee(
        &self,
        vocabulary: &Vocabulary,
        later: Later<'_>,
        cache: &mut Pretokens,
        ahead: &mut Ahead,
        ids: &mut Vec<u32>,
    ) {
        ahead.missed.extend(later.short().filter(|&(_, key, place)| {
            let missed = !cache.has(key, place);
            if missed {
                vocabulary.prefetch(key);
            }
            missed
        }));
        for &(_, key, _) in &ahead.missed {
            vocabulary.prefetch_row(key);
        }
        let mut missed = std::mem::take(&mut ahead.missed);
        for (range, key, place) in missed.drain(..) {
            let pretoken = &later.text[range];
            if let Some(id) = vocabulary.id_of_key(key).filter(|_| self.whole_first) {
                if !cache.has(key, place) {
                    cache.put(key, place, &[], &[id]);
                }
            } else if self.uncovered(pretoken).is_none() {
                ahead.parts.push(Parts::new(&self.pairs, &self.byte_ids, pretoken));
                ahead.keys.push((key, place));
            }
            if ahead.parts.len() == TURNS {
                ahead.merge(&self.pairs, cache, ids);
            }
        }
        ahead.merge(&self.pairs, cache, ids);
        ahead.missed = missed;
    }
}

/// Merge pretokens side by side, at most [`TURNS`].
pub(super) fn merge<const PLACES: usize>(pairs: &PairTable, all: &mut [Parts<PLACES>]) {
    lanes::run(Together { pairs, all });
}

struct Together<'a, const PLACES: usize> {
    pairs: &'a PairTable,
    all: &'a mut [Parts<PLACES>],
}

impl<const PLACES: usize> Work for Together<'_, PLACES> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "`Work` asks for it")]
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Self { pairs, all } = self;
        let mut at_work = (1u32 << all.len()) - 1;
        while at_work != 0 {
            let mut turns = at_work;
            while turns != 0 {
                let index = turns.trailing_zeros();
                if !all[index as usize].turn(pairs, lanes) {
                    at_work &= !(1 << index);
                }
                turns &= turns - 1;
            }
        }
    }
}
