//! Resolves the pretokens of a window that missed the cache.
//!
//! A miss may be a token as a whole; the others are merged, interleaved ([`short`]). The ids go
//! into the cache. Misses that are too long for that, or have user-defined tokens or bytes that are
//! left out, are left to the caller, as are all where symbols have names.

use crate::encode::lookup::{Lookup, Miss};
use crate::encode::pretoken::{PretokenEncoder, UserDefined};
use crate::error::Result;
use crate::hash::key::Key;
use crate::merge::merger::Merger;
use crate::merge::short::{self, ShortMerge};
use crate::vocabulary::Vocabulary;

/// Misses whose merges are interleaved.
#[derive(Debug, Default)]
pub(crate) struct Misses {
    merges: Vec<ShortMerge>,
    /// The pretoken of each merge.
    pretokens: Vec<Miss>,
    /// The ids of one pretoken.
    ids: Vec<u32>,
}

impl Misses {
    /// Resolve the misses of a window, except those that are left to the caller.
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
        misses.retain(|miss| miss.range.len() <= ShortMerge::MAX_BYTES);
        if *whole_first {
            prefetch_tokens(vocabulary, text, &mut misses);
        }
        for miss in misses.drain(..) {
            let pretoken = &text[miss.range.clone()];
            let is_user_defined = |tokens: &UserDefined| tokens.is_in(pretoken);
            if user_defined.as_ref().is_some_and(is_user_defined) || encoder.drops_from(pretoken) {
                continue;
            }
            let token = match (whole_first, miss.is_long()) {
                (false, _) => None,
                (true, false) => vocabulary.id_of_key(miss.key),
                (true, true) => miss.candidate.filter(|id| vocabulary.bytes(*id) == Some(pretoken)),
            };
            if let Some(id) = token {
                lookup.resolve(&miss, text, &[id]);
            } else if merger.covers(pretoken) {
                self.add(miss, merger, text, lookup);
            }
        }
        self.finish(merger, text, lookup);
        lookup.copy_duplicates();
        // The next window reuses the memory of the list.
        lookup.misses = misses;
        Ok(())
    }

    fn add(&mut self, miss: Miss, merger: &Merger, text: &[u8], lookup: &mut Lookup) {
        let pretoken = &text[miss.range.clone()];
        self.merges.push(ShortMerge::new(&merger.pairs, &merger.symbols, pretoken));
        self.pretokens.push(miss);
        if self.merges.len() == short::MAX_PRETOKENS {
            self.finish(merger, text, lookup);
        }
    }

    /// Merge all, interleaved, and add their ids to the cache.
    fn finish(&mut self, merger: &Merger, text: &[u8], lookup: &mut Lookup) {
        if self.merges.is_empty() {
            return;
        }
        short::merge_interleaved(&merger.pairs, &mut self.merges);
        for (merge, miss) in self.merges.drain(..).zip(self.pretokens.drain(..)) {
            self.ids.clear();
            merge.write(&mut self.ids);
            lookup.resolve(&miss, text, &self.ids);
        }
    }
}

/// Prefetch what the lookup of each miss in the vocabulary reads, and set the only token that each long
/// miss may be.
fn prefetch_tokens(vocabulary: &Vocabulary, text: &[u8], misses: &mut [Miss]) {
    for miss in &mut *misses {
        if miss.is_long() {
            miss.token_key = Key::of_token(text, miss.range.clone());
        }
        vocabulary.prefetch_key(miss.token_key);
    }
    for miss in misses.iter_mut().filter(|miss| miss.is_long()) {
        miss.candidate = vocabulary.id_of_key(miss.token_key);
        vocabulary.prefetch_range(miss.candidate.unwrap_or_default());
    }
    for id in misses.iter().filter_map(|miss| miss.candidate) {
        vocabulary.prefetch_bytes(id);
    }
}
