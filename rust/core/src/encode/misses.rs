//! Resolves the pretokens of a window that missed the cache.
//!
//! A miss may be a token as a whole; the others are merged, interleaved with misses of similar
//! length ([`interleave`]). The ids go into the cache. Misses that are too long for that, or have
//! user-defined tokens, are left to the caller, as are all where symbols have names.

use crate::encode::lookup::{Lookup, Miss};
use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::hash::key::{LONGEST, hash_bytes};
use crate::machine::lanes::{self, LaneWork, Lanes};
use crate::merge::interleave;
use crate::merge::merger::Merger;
use crate::merge::short::ShortMerge;
use crate::merge::whole::MergeScratch;
use crate::vocabulary::Vocabulary;

/// Misses, grouped by the number of places that their merge takes. With a single size, the first
/// pass over English takes 1.5 % longer; a third size gains nothing.
#[derive(Debug, Default)]
pub(crate) struct Misses {
    short: Group<{ LONGEST + 1 }>,
    long: Group<64>,
    /// The ids of one pretoken.
    ids: Vec<u32>,
}

/// Misses whose merges are interleaved.
#[derive(Debug, Default)]
struct Group<const PLACES: usize> {
    merges: Vec<ShortMerge<PLACES>>,
    misses: Vec<Miss>,
}

/// The arguments of finishing a group.
struct Context<'a> {
    merger: &'a Merger,
    text: &'a [u8],
    lookup: &'a mut Lookup,
    ids: &'a mut Vec<u32>,
}

impl<const PLACES: usize> Group<PLACES> {
    fn add(&mut self, miss: Miss, context: &mut Context<'_>) {
        self.merges.push(context.merger.start(&context.text[miss.range.clone()]));
        self.misses.push(miss);
        if self.merges.len() == interleave::MOST {
            self.finish(context);
        }
    }

    /// Merge all, interleaved, and add their ids to the cache.
    fn finish(&mut self, context: &mut Context<'_>) {
        if self.merges.is_empty() {
            return;
        }
        context.merger.interleave(&mut self.merges);
        for (merge, miss) in self.merges.drain(..).zip(self.misses.drain(..)) {
            context.ids.clear();
            merge.write(context.ids);
            context.lookup.resolve(&miss, context.text, context.ids);
        }
    }
}

impl Misses {
    /// Resolve the misses of a window, except the longest and those with user-defined tokens.
    pub(crate) fn resolve(
        &mut self,
        encoder: &PretokenEncoder,
        text: &[u8],
        lookup: &mut Lookup,
    ) -> Result<()> {
        if lookup.misses.is_empty() {
            return Ok(());
        }
        if encoder.has_symbols() {
            lookup.misses.clear();
            lookup.copy_duplicates();
            return Ok(());
        }
        let merger = encoder.merger()?;
        let PretokenEncoder { vocabulary, whole_first, user_defined, .. } = encoder;
        let mut misses = std::mem::take(&mut lookup.misses);
        misses.retain(|miss| miss.range.len() <= ShortMerge::<64>::MAX_BYTES);
        if *whole_first {
            lanes::run(Candidates { vocabulary, text, misses: &mut misses });
        }
        let Self { short, long, ids } = self;
        let mut context = Context { merger, text, lookup, ids };
        for miss in misses.drain(..) {
            let pretoken = &text[miss.range.clone()];
            if user_defined.as_ref().is_some_and(|tokens| tokens.is_in(pretoken)) {
                continue;
            }
            let token = match (whole_first, miss.is_long()) {
                (false, _) => None,
                (true, false) => vocabulary.id_of_key(miss.key),
                (true, true) => miss.candidate.and_then(|_| vocabulary.id(pretoken)),
            };
            if let Some(id) = token {
                context.lookup.resolve(&miss, text, &[id]);
            } else if merger.covers(pretoken) {
                if miss.is_long() {
                    long.add(miss, &mut context);
                } else {
                    short.add(miss, &mut context);
                }
            }
        }
        short.finish(&mut context);
        long.finish(&mut context);
        lookup.copy_duplicates();
        // The next window reuses the memory of the list.
        lookup.misses = misses;
        Ok(())
    }
}

/// Append the ids of a pretoken that has none in the window, and add them to the cache.
pub(crate) fn append_one(
    lookup: &mut Lookup,
    encoder: &PretokenEncoder,
    pretoken: &[u8],
    merge: &mut MergeScratch,
    out: &mut Vec<u32>,
) -> Result<()> {
    if !lookup.append_one(pretoken, out) {
        let before = out.len();
        encoder.encode(pretoken, merge, out)?;
        // The cache has room for as many ids as bytes; a symbol with a prefix may have more.
        if out.len() - before <= pretoken.len() {
            lookup.put(pretoken, &out[before..]);
        }
    }
    Ok(())
}

/// Finds the only token that each long miss may be, and prefetches what the lookup of all misses in
/// the vocabulary reads.
struct Candidates<'a> {
    vocabulary: &'a Vocabulary,
    text: &'a [u8],
    misses: &'a mut [Miss],
}

impl LaneWork for Candidates<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "`LaneWork` asks for it")]
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let Self { vocabulary, text, misses } = self;
        for miss in &mut *misses {
            if miss.is_long() {
                miss.hash = hash_bytes(&text[miss.range.clone()]);
                vocabulary.prefetch_hash(miss.hash);
            } else {
                vocabulary.prefetch_key(miss.key);
            }
        }
        for miss in misses.iter_mut().filter(|miss| miss.is_long()) {
            miss.candidate = vocabulary.candidate(miss.hash, lanes);
            vocabulary.prefetch_range(miss.candidate.unwrap_or_default());
        }
        for id in misses.iter().filter_map(|miss| miss.candidate) {
            vocabulary.prefetch_bytes(id);
        }
    }
}
