//! Several short pretokens merged side by side.
//!
//! To merge one pretoken is a chain: which pairs the next look-ups are about is known only when the
//! last ones have answered, and each waits for memory. So a few pretokens take turns: a turn reads the
//! answers that it asked for one round ago, makes a merge, and asks for the memory of the next two
//! pairs. The ids are those of [`merge`](super::merge).

use super::Encoder;
use super::known::{Far, Known, Pretokens};
use super::merge::ByteIds;
use super::pairs::{PairTable, Pairs};
use super::parts::Parts;
use crate::key::LONGEST;
use crate::lanes::{self, Lanes, Work};
use crate::vocabulary::Vocabulary;

/// How many pretokens take turns.
pub(super) const TURNS: usize = 16;

/// Pretokens that are not in the cache and will soon be needed, and those of them that are merged, by
/// how many places they take.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    missed: Vec<Far>,
    short: Turns<16>,
    middle: Turns<32>,
    long: Turns<64>,
}

/// Pretokens that take turns.
#[derive(Debug, Default)]
struct Turns<const PLACES: usize> {
    parts: Vec<Parts<PLACES>>,
    missed: Vec<Far>,
}

/// What every step needs.
struct Context<'a> {
    pairs: &'a PairTable,
    byte_ids: &'a ByteIds,
    text: &'a [u8],
    cache: &'a mut Pretokens,
    ids: &'a mut Vec<u32>,
}

impl<const PLACES: usize> Turns<PLACES> {
    /// Let a pretoken wait for its turn.
    fn add(&mut self, missed: Far, context: &mut Context<'_>) {
        let pretoken = &context.text[missed.range.clone()];
        self.parts.push(Parts::new(context.pairs, context.byte_ids, pretoken));
        self.missed.push(missed);
        if self.parts.len() == TURNS {
            self.finish(context);
        }
    }

    /// Merge all side by side and put their ids into the cache.
    fn finish(&mut self, context: &mut Context<'_>) {
        merge(context.pairs, &mut self.parts);
        for (parts, Far { range, key, place, .. }) in
            self.parts.drain(..).zip(self.missed.drain(..))
        {
            context.ids.clear();
            parts.write(context.ids);
            context.cache.put(key, place, &context.text[range], context.ids);
        }
    }
}

impl Encoder {
    /// Put into the cache what of the next pretokens is not there, but for long ones that fall into
    /// pieces.
    pub(super) fn foresee(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        known: &mut Known,
        ahead: &mut Ahead,
        ids: &mut Vec<u32>,
    ) {
        let Ahead { missed, short, middle, long } = ahead;
        let (pairs, byte_ids) = (&self.pairs, &self.byte_ids);
        let Known { cache, unknown, .. } = known;
        unknown.retain(|far| far.range.len() <= Parts::<64>::MOST);
        missed.extend(unknown.drain(..).filter(|&Far { key, place, .. }| {
            let missed = !cache.has(key, place);
            if missed && let Some(remembered) = &self.remembered {
                remembered.prefetch(key);
            }
            missed
        }));
        self.recall(vocabulary, text, missed, cache);
        for Far { key, .. } in &*missed {
            vocabulary.prefetch(*key);
        }
        for Far { key, .. } in &*missed {
            vocabulary.prefetch_range(*key);
        }
        for Far { key, .. } in &*missed {
            vocabulary.prefetch_bytes(*key);
        }
        let mut context = Context { pairs, byte_ids, text, cache, ids };
        for missed in missed.drain(..) {
            let Far { range, key, place, .. } = missed.clone();
            let pretoken = &text[range];
            let id = if pretoken.len() <= LONGEST {
                vocabulary.id_of_key(key)
            } else {
                vocabulary.id(pretoken)
            };
            if let Some(id) = id.filter(|_| self.whole_first) {
                if !context.cache.has(key, place) {
                    context.cache.put(key, place, pretoken, &[id]);
                }
            } else if self.is_whole(vocabulary, pretoken) {
                match pretoken.len() {
                    ..16 => short.add(missed, &mut context),
                    16..32 => middle.add(missed, &mut context),
                    _ => long.add(missed, &mut context),
                }
            }
        }
        short.finish(&mut context);
        middle.finish(&mut context);
        long.finish(&mut context);
    }

    /// Put into the cache what is remembered of the missed, and take it from them.
    fn recall(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        missed: &mut Vec<Far>,
        cache: &mut Pretokens,
    ) {
        let Some(remembered) = &self.remembered else { return };
        missed.retain(|Far { range, key, place, .. }| {
            let known = remembered.get(*key, vocabulary.len());
            if let Some((ids, count)) = known
                && !cache.has(*key, *place)
            {
                cache.put(*key, *place, &text[range.clone()], &ids[..count]);
            }
            known.is_none()
        });
    }

    /// Whether all bytes of a pretoken have ids, and it does not fall into pieces.
    fn is_whole(&self, vocabulary: &Vocabulary, pretoken: &[u8]) -> bool {
        self.uncovered(pretoken).is_none()
            && (pretoken.len() <= LONGEST
                || self.borders(vocabulary).next(pretoken, 0) == pretoken.len())
    }
}

/// Merge pretokens side by side, at most [`TURNS`].
pub(super) fn merge<const PLACES: usize>(pairs: &impl Pairs, all: &mut [Parts<PLACES>]) {
    lanes::run(Together { pairs, all });
}

struct Together<'a, P, const PLACES: usize> {
    pairs: &'a P,
    all: &'a mut [Parts<PLACES>],
}

impl<P: Pairs, const PLACES: usize> Work for Together<'_, P, PLACES> {
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
