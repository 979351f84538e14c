//! Several short pretokens merged side by side.
//!
//! To merge one pretoken is a chain: which pairs the next look-ups are about is known only when the
//! last ones have answered, and each waits for memory. So a few pretokens take turns: a turn reads the
//! answers that it asked for one round ago, makes a merge, and asks for the memory of the next two
//! pairs. The ids are those of [`merge`](super::merge).

use super::Encoder;
use super::known::{Far, Known};
use super::pairs::Pairs;
use super::parts::Parts;
use crate::key::LONGEST;
use crate::lanes::{self, Lanes, Work};
use crate::vocabulary::{self, Vocabulary};

/// How many pretokens take turns.
pub(super) const TURNS: usize = 32;

/// Pretokens that are not known and are merged, by how many places they take.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    short: Turns<16>,
    middle: Turns<32>,
    long: Turns<64>,
    /// The ids of one pretoken.
    ids: Vec<u32>,
}

/// Pretokens that take turns.
#[derive(Debug, Default)]
struct Turns<const PLACES: usize> {
    parts: Vec<Parts<PLACES>>,
    unknown: Vec<Far>,
}

/// What every step needs.
struct Context<'a> {
    encoder: &'a Encoder,
    text: &'a [u8],
    known: &'a mut Known,
    ids: &'a mut Vec<u32>,
}

impl<const PLACES: usize> Turns<PLACES> {
    /// Let a pretoken wait for its turn.
    fn add(&mut self, far: Far, context: &mut Context<'_>) {
        let Encoder { pairs, byte_ids, .. } = context.encoder;
        self.parts.push(Parts::new(pairs, byte_ids, &context.text[far.range.clone()]));
        self.unknown.push(far);
        if self.parts.len() == TURNS {
            self.finish(context);
        }
    }

    /// Merge all side by side; then their ids are known.
    fn finish(&mut self, context: &mut Context<'_>) {
        if self.parts.is_empty() {
            return;
        }
        merge(&context.encoder.pairs, &mut self.parts);
        for (parts, far) in self.parts.drain(..).zip(self.unknown.drain(..)) {
            context.ids.clear();
            parts.write(context.ids);
            context.known.learn(&far, context.text, context.ids);
        }
    }
}

impl Encoder {
    /// Let the pretokens of a window be known that are not, but for long ones that fall into pieces.
    pub(super) fn foresee(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        known: &mut Known,
        ahead: &mut Ahead,
    ) {
        if known.unknown.is_empty() {
            return;
        }
        let mut unknown = std::mem::take(&mut known.unknown);
        unknown.retain(|far| far.range.len() <= Parts::<64>::MOST);
        self.recall(vocabulary, text, &mut unknown, known);
        lanes::run(Candidates { vocabulary, text, unknown: &mut unknown });
        let Ahead { short, middle, long, ids } = ahead;
        let mut context = Context { encoder: self, text, known, ids };
        for far in unknown.drain(..) {
            let pretoken = &text[far.range.clone()];
            let candidate = far.candidate.filter(|_| self.whole_first);
            if let Some(id) = candidate.and_then(|_| vocabulary.id(pretoken)) {
                context.known.learn(&far, text, &[id]);
            } else if self.is_one_piece(vocabulary, pretoken) {
                match pretoken.len() {
                    ..16 => short.add(far, &mut context),
                    16..32 => middle.add(far, &mut context),
                    _ => long.add(far, &mut context),
                }
            }
        }
        short.finish(&mut context);
        middle.finish(&mut context);
        long.finish(&mut context);
        known.repeat();
        // Its room is for the next window.
        known.unknown = unknown;
    }

    /// Let those be known that are remembered, and take them from the unknown.
    fn recall(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        unknown: &mut Vec<Far>,
        known: &mut Known,
    ) {
        let Some(remembered) = &self.remembered else { return };
        for far in &*unknown {
            remembered.prefetch(far.key);
        }
        unknown.retain(|far| {
            let recalled = remembered.get(far.key, vocabulary.len());
            if let Some((ids, count)) = recalled {
                known.learn(far, text, &ids[..count]);
            }
            recalled.is_none()
        });
    }

    /// Whether all bytes of a pretoken have ids, and it does not fall into pieces.
    fn is_one_piece(&self, vocabulary: &Vocabulary, pretoken: &[u8]) -> bool {
        (self.covers_all || self.uncovered(pretoken).is_none())
            && (pretoken.len() <= LONGEST
                || self.borders(vocabulary).ends(pretoken).next() == Some(pretoken.len()))
    }
}

/// Finds which tokens some pretokens may be as a whole; the memory of the tokens is asked for.
struct Candidates<'a> {
    vocabulary: &'a Vocabulary,
    text: &'a [u8],
    unknown: &'a mut [Far],
}

impl Work for Candidates<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "`Work` asks for it")]
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Self { vocabulary, text, unknown } = self;
        for far in &mut *unknown {
            far.hash = vocabulary::hash(text, far.range.clone());
            vocabulary.prefetch(far.hash);
        }
        for far in &mut *unknown {
            far.candidate = vocabulary.candidate(far.hash, lanes);
            vocabulary.prefetch_range(far.candidate.unwrap_or_default());
        }
        for far in &*unknown {
            vocabulary.prefetch_bytes(far.candidate.unwrap_or_default());
        }
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
        let mut at_work = (1u64 << all.len()) - 1;
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
