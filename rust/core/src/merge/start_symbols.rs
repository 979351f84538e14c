//! Merges the characters of a pretoken into ids, where symbols have names, prefixes and suffixes.
//!
//! This is the general way, for vocabularies such as CLIP's (`</w>` ends words) or those with an
//! unknown token. A symbol of the pretoken is looked up by its name; listed pairs then merge, the
//! first of the list first, the leftmost among equals. A queue holds the pairs that may merge, so the
//! time is nearly linear in the pretoken. Source: `BPE::merge_word` of Hugging Face `tokenizers` 0.23.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::memory;
use crate::rules::symbols::name_of_byte;
use crate::rules::{StartSymbols, TextRules};
use crate::vocabulary::Vocabulary;

/// Bytes of memory for each byte of a pretoken while it is merged.
const BYTES_PER_BYTE: usize = 64;

/// In place of the id of a part that was joined into another.
const GONE: u32 = u32::MAX;

/// An id, and the number of bytes of the pretoken that it stands for.
pub(crate) type SizedId = (u32, usize);

/// The symbols and pairs of one vocabulary.
#[derive(Debug, Clone)]
pub(crate) struct SymbolMerger {
    symbols: StartSymbols,
    /// Whether a symbol without a token is left out, if none stands for it.
    drops_uncovered: bool,
    /// The id of the token of each byte, if there is one.
    byte_ids: Vec<Option<u32>>,
    /// The rank of each pair of ids, and the id that it becomes.
    pairs: HashMap<(u32, u32), (usize, u32), FixedState>,
}

/// A place where a pair may merge: its rank, the place of its left part, and the two ids, by which an
/// entry that is out of date is known.
type Candidate = Reverse<(usize, usize, u32, u32)>;

/// The parts of a pretoken, linked to their neighbours.
struct Parts {
    ids: Vec<SizedId>,
    before: Vec<usize>,
    /// The next part, or the number of parts.
    after: Vec<usize>,
}

impl SymbolMerger {
    /// Fails if a merge has an id without a token, or if its result is not in the vocabulary.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        rules: &TextRules,
        merges: &[(u32, u32)],
    ) -> Result<Self> {
        let symbols = rules.symbols.clone().unwrap_or_default();
        let mut pairs = HashMap::default();
        for (rank, &(left, right)) in merges.iter().enumerate() {
            let broken = |what: &str| Error::Vocabulary {
                reason: format!("merge {rank} (ids {left} and {right}) {what}").into(),
            };
            let parts = vocabulary.bytes(left).zip(vocabulary.bytes(right));
            let (one, other) = parts.ok_or_else(|| broken("has an id without a token"))?;
            // Every symbol but the first of a pretoken has the prefix; the joined token has it once.
            let rest = other.strip_prefix(symbols.prefix.as_bytes());
            let rest = rest.ok_or_else(|| broken("has a right part without the prefix"))?;
            let id = vocabulary.id(&[one, rest].concat());
            let id = id.ok_or_else(|| broken("makes what is not in the vocabulary"))?;
            pairs.insert((left, right), (rank, id));
        }
        let byte_ids = (0..=u8::MAX).map(|byte| vocabulary.id(name_of_byte(byte).as_bytes()));
        let byte_ids = if symbols.byte_fallback { byte_ids.collect() } else { vec![None; 256] };
        Ok(Self { symbols, drops_uncovered: rules.drops_uncovered, byte_ids, pairs })
    }

    /// The ids of a pretoken, which is not empty. Fails if no token covers one of its characters, or
    /// if there is not enough memory.
    pub(crate) fn merge(&self, vocabulary: &Vocabulary, pretoken: &str) -> Result<Vec<SizedId>> {
        memory::check(pretoken.len().saturating_mul(BYTES_PER_BYTE))?;
        let mut parts = Parts::new(self.start(vocabulary, pretoken)?);
        let mut queue: BinaryHeap<Candidate> = BinaryHeap::new();
        for at in 1..parts.ids.len() {
            queue.extend(self.candidate(&parts, at - 1));
        }
        while let Some(Reverse((_, at, left, right))) = queue.pop() {
            let next = parts.after[at];
            // A part that was joined into another has no id of the vocabulary, so it equals none here.
            let is_current = parts.id(at) == Some(left) && parts.id(next) == Some(right);
            if !is_current {
                continue;
            }
            parts.join(at, self.pairs[&(left, right)].1);
            queue.extend(self.candidate(&parts, at));
            if at > 0 {
                queue.extend(self.candidate(&parts, parts.before[at]));
            }
        }
        Ok(parts.remaining())
    }

    /// The place at which a part may merge with the next one.
    fn candidate(&self, parts: &Parts, at: usize) -> Option<Candidate> {
        let pair = (parts.id(at)?, parts.id(parts.after[at])?);
        let (rank, _) = self.pairs.get(&pair)?;
        Some(Reverse((*rank, at, pair.0, pair.1)))
    }

    /// The ids before the first merge.
    ///
    /// A run of unknown characters ends at the next character with a token. The bytes of characters
    /// without one do not end it, so its id comes after theirs, as in `tokenizers`.
    fn start(&self, vocabulary: &Vocabulary, pretoken: &str) -> Result<Vec<SizedId>> {
        let StartSymbols { prefix, suffix, unknown, fuse_unknown, .. } = &self.symbols;
        let (mut ids, mut pending, mut name) = (Vec::<SizedId>::new(), 0, String::new());
        let mut dropped = 0; // belongs to the next symbol
        for (at, character) in pretoken.char_indices() {
            let size = character.len_utf8();
            name.clear();
            name.push_str(if at > 0 { prefix } else { "" });
            name.push(character);
            name.push_str(if at + size == pretoken.len() { suffix } else { "" });
            if let Some(id) = vocabulary.id(name.as_bytes()) {
                let run = unknown.filter(|_| pending > 0).map(|unknown| (unknown, pending));
                ids.extend(run);
                ids.push((id, size + std::mem::take(&mut dropped)));
                pending = 0;
            } else if self.push_bytes(&name, size, &mut ids) {
            } else if self.drops_uncovered && unknown.is_none() {
                dropped += size;
            } else {
                let uncovered = || Error::UncoveredText { text: name.clone() };
                let unknown = unknown.ok_or_else(uncovered)?;
                if pending > 0 && !fuse_unknown {
                    ids.push((unknown, pending));
                    pending = 0;
                }
                pending += size;
            }
        }
        ids.extend(unknown.filter(|_| pending > 0).map(|unknown| (unknown, pending)));
        if let Some((_, size)) = ids.last_mut() {
            *size += dropped;
        }
        Ok(ids)
    }

    /// Append the tokens of the bytes of a symbol, if all exist; each stands for one byte of the text,
    /// as far as it has any.
    fn push_bytes(&self, name: &str, size: usize, ids: &mut Vec<SizedId>) -> bool {
        let of_bytes: Option<Vec<u32>> =
            name.bytes().map(|byte| self.byte_ids[usize::from(byte)]).collect();
        let is_covered = of_bytes.is_some();
        for (number, id) in of_bytes.into_iter().flatten().enumerate() {
            ids.push((id, usize::from(number < size)));
        }
        is_covered
    }
}

impl Parts {
    fn new(ids: Vec<SizedId>) -> Self {
        let before = (0..ids.len()).map(|at: usize| at.saturating_sub(1)).collect();
        let after = (1..=ids.len()).collect();
        Self { ids, before, after }
    }

    /// The id of a part; `None` behind the last one.
    fn id(&self, at: usize) -> Option<u32> {
        self.ids.get(at).map(|(id, _)| *id)
    }

    /// Join a part with the next one.
    fn join(&mut self, at: usize, id: u32) {
        let next = self.after[at];
        self.ids[at] = (id, self.ids[at].1 + self.ids[next].1);
        self.ids[next].0 = GONE;
        self.after[at] = self.after[next];
        if let Some(before) = self.before.get_mut(self.after[at]) {
            *before = at;
        }
    }

    fn remaining(self) -> Vec<SizedId> {
        let mut at = 0;
        let next = || {
            let part = *self.ids.get(at)?;
            at = self.after[at];
            Some(part)
        };
        std::iter::from_fn(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The plain algorithm.
    fn slow(merger: &SymbolMerger, vocabulary: &Vocabulary, pretoken: &str) -> Vec<SizedId> {
        let mut ids = merger.start(vocabulary, pretoken).unwrap();
        loop {
            let pairs = ids.windows(2).enumerate();
            let ranked = pairs.filter_map(|(at, pair)| {
                let (rank, id) = merger.pairs.get(&(pair[0].0, pair[1].0))?;
                Some((*rank, at, *id))
            });
            let Some((_, at, id)) = ranked.min() else { return ids };
            ids[at] = (id, ids[at].1 + ids[at + 1].1);
            ids.remove(at + 1);
        }
    }

    fn merger() -> (Vocabulary, SymbolMerger) {
        let names = [
            "a",
            "b",
            "##a",
            "##b",
            "a</w>",
            "##a</w>",
            "##b</w>",
            "ab",
            "aba",
            "##ab</w>",
            "abab</w>",
            "<unk>",
            "<0x63>",
            "##ba",
            "abb",
            "##bab</w>",
        ];
        let tokens = names.iter().zip(0..).map(|(name, id)| (name.as_bytes().to_vec(), id));
        let vocabulary = Vocabulary::new(tokens, []).unwrap();
        let id =
            |name: &str| u32::try_from(names.iter().position(|n| *n == name).unwrap()).unwrap();
        let symbols = Some(StartSymbols {
            prefix: "##".to_owned(),
            suffix: "</w>".to_owned(),
            unknown: Some(id("<unk>")),
            fuse_unknown: true,
            byte_fallback: true,
        });
        let rules = TextRules { symbols, ..TextRules::default() };
        let pairs =
            [("##b", "##a"), ("a", "##b"), ("##a", "##b</w>"), ("ab", "##a"), ("ab", "##ab</w>")];
        let pairs: Vec<_> = pairs.iter().map(|(l, r)| (id(l), id(r))).collect();
        let merger = SymbolMerger::new(&vocabulary, &rules, &pairs).unwrap();
        (vocabulary, merger)
    }

    proptest! {
        #[test]
        fn the_queue_equals_the_plain_algorithm(pretoken in "[abcé]{1,14}") {
            let (vocabulary, merger) = merger();
            let expected = slow(&merger, &vocabulary, &pretoken);
            prop_assert_eq!(merger.merge(&vocabulary, &pretoken).unwrap(), expected);
        }
    }

    #[test]
    fn symbols_have_prefixes_and_suffixes() {
        let (vocabulary, merger) = merger();
        assert_eq!(merger.merge(&vocabulary, "abab").unwrap(), [(0, 1), (13, 2), (6, 1)]);
        assert_eq!(merger.merge(&vocabulary, "abb").unwrap(), [(7, 2), (6, 1)]);
        assert_eq!(merger.merge(&vocabulary, "a").unwrap(), [(4, 1)]);
        assert_eq!(merger.merge(&vocabulary, "aééb").unwrap(), [(0, 1), (11, 4), (6, 1)]);
        assert_eq!(merger.merge(&vocabulary, "ac").unwrap(), [(0, 1), (11, 1)]);
    }
}
