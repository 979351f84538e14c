//! Merges the parts of a pretoken of any length in nearly linear time.
//!
//! A heap holds the pairs that may merge: the lowest rank is on top, the leftmost among equals. The
//! parts are linked to their neighbours, so a merge moves nothing, and adds at most two pairs. An
//! entry of the heap is stale if its part has another rank by now, or was merged into another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::machine::simd::Portable;
use crate::memory;
use crate::merge::pair_table::{NO_MERGE, Pairs};
use crate::merge::symbols::Symbols;
use crate::rules::{StartSymbols, TextRules, name_of_byte};
use crate::vocabulary::Vocabulary;

/// The approximate bytes of memory for each byte of a pretoken.
const SCRATCH_BYTES: usize = 64;

/// The buffers of a pretoken with more parts than this are freed after use.
const MAX_KEPT_PARTS: usize = 1 << 16;

/// Fails if there is not enough memory to merge a pretoken of this many bytes.
#[inline]
pub(crate) fn check(bytes: usize) -> Result<()> {
    memory::check(bytes.saturating_mul(SCRATCH_BYTES))
}

/// A part of a pretoken.
#[derive(Debug, Clone, Copy)]
struct LinkedPart {
    id: u32,
    /// The rank of the pair with the next part, or [`NO_MERGE`].
    rank: u32,
    /// Where it starts in the pretoken.
    start: usize,
    /// The index of the part before; that of the part itself, if it is the first.
    before: usize,
    /// The index of the next part; behind the last one stands the end of the pretoken.
    after: usize,
}

/// The parts and the heap, in buffers that the next pretoken reuses.
#[derive(Debug, Default)]
pub(crate) struct HeapMerge {
    parts: Vec<LinkedPart>,
    heap: BinaryHeap<Reverse<(u32, usize)>>,
}

impl HeapMerge {
    /// Append the ids of a pretoken; each of its bytes must have an id.
    pub(crate) fn append(
        &mut self,
        pairs: &impl Pairs,
        symbols: &Symbols,
        pretoken: &[u8],
        out: &mut Vec<u32>,
    ) {
        let rank = |left, right| pairs.rank(left, right, Portable);
        self.merge(rank, |rank| pairs.id(rank), symbols.parts(pretoken), pretoken.len());
        out.extend(self.parts().map(|(_, id)| id));
        if self.parts.len() > MAX_KEPT_PARTS {
            *self = Self::default();
        }
    }

    /// Merge parts, of which the start and the id are given, in a pretoken that ends at `end`.
    /// [`parts`](Self::parts) are then those that remain. `rank` is the rank of two adjacent parts, or
    /// [`NO_MERGE`], and `merged` the id that the merge with a rank creates.
    pub(crate) fn merge(
        &mut self,
        rank: impl Fn(u32, u32) -> u32,
        merged: impl Fn(u32) -> u32,
        parts: impl Iterator<Item = (usize, u32)>,
        end: usize,
    ) {
        self.parts.clear();
        let new = |(at, (start, id)): (usize, (usize, u32))| LinkedPart {
            id,
            rank: NO_MERGE,
            start,
            before: at.saturating_sub(1),
            after: at + 1,
        };
        self.parts.extend(parts.chain([(end, 0)]).enumerate().map(new));
        self.heap.clear();
        let count = self.parts.len() - 1;
        (0..count).for_each(|at| self.look_up(&rank, at));
        while let Some(Reverse((lowest, at))) = self.heap.pop() {
            if self.parts[at].rank != lowest {
                continue; // stale
            }
            let LinkedPart { after: gone, before, .. } = self.parts[at];
            let after = self.parts[gone].after;
            self.parts[gone].rank = NO_MERGE;
            self.parts[after].before = at;
            self.parts[at] = LinkedPart { id: merged(lowest), after, ..self.parts[at] };
            self.look_up(&rank, at);
            if before != at {
                self.look_up(&rank, before);
            }
        }
    }

    /// The start and the id of each part in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, u32)> {
        let end = self.parts.len() - 1;
        let next = |part: &&LinkedPart| self.parts.get(part.after);
        let all = std::iter::successors(self.parts.first(), next);
        all.take_while(move |part| part.after <= end).map(|part| (part.start, part.id))
    }

    /// Look up the rank of a part with the next one.
    fn look_up(&mut self, rank: &impl Fn(u32, u32) -> u32, at: usize) {
        let LinkedPart { id, after, .. } = self.parts[at];
        let is_last = after + 1 == self.parts.len();
        let rank = if is_last { NO_MERGE } else { rank(id, self.parts[after].id) };
        self.parts[at].rank = rank;
        if rank != NO_MERGE {
            self.heap.push(Reverse((rank, at)));
        }
    }
}

// ---------------------------------------------------------------------------- symbols with names
//
// Merges the characters of a pretoken into ids, where symbols have names, prefixes and suffixes.
//
// This is the general way, for vocabularies such as CLIP's (`</w>` ends words) or those with an
// unknown token. A symbol of the pretoken is looked up by its name; listed pairs then merge, the
// first of the list first, the leftmost among equals. Source: `BPE::merge_word` of Hugging Face
// `tokenizers` 0.23.

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
    ranks: HashMap<(u32, u32), u32, FixedState>,
    /// The id that each merge creates, by rank.
    ids: Vec<u32>,
}

impl SymbolMerger {
    /// Fails if a merge has an id without a token, or if its result is not in the vocabulary.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        rules: &TextRules,
        merges: &[(u32, u32)],
    ) -> Result<Self> {
        let symbols = rules.symbols.clone().unwrap_or_default();
        let mut ranks = HashMap::default();
        let mut ids = Vec::with_capacity(merges.len());
        for (rank, &(left, right)) in (0..).zip(merges) {
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
            ranks.insert((left, right), rank);
            ids.push(id);
        }
        let byte_ids = (0..=u8::MAX).map(|byte| vocabulary.id(name_of_byte(byte).as_bytes()));
        let byte_ids = if symbols.byte_fallback { byte_ids.collect() } else { vec![None; 256] };
        Ok(Self { symbols, drops_uncovered: rules.drops_uncovered, byte_ids, ranks, ids })
    }

    /// The ids of a pretoken, which is not empty. Fails if no token covers one of its characters, or
    /// if there is not enough memory.
    pub(crate) fn merge(&self, vocabulary: &Vocabulary, pretoken: &str) -> Result<Vec<SizedId>> {
        check(pretoken.len())?;
        let mut end = 0;
        let parts = self.start(vocabulary, pretoken)?.into_iter().map(|(id, size)| {
            end += size;
            (end - size, id)
        });
        let mut heap = HeapMerge::default();
        let rank = |left, right| self.ranks.get(&(left, right)).copied().unwrap_or(NO_MERGE);
        heap.merge(rank, |rank| self.ids[rank as usize], parts, pretoken.len());
        let (starts, ids): (Vec<usize>, Vec<u32>) = heap.parts().unzip();
        let ends = starts.iter().skip(1).copied().chain([pretoken.len()]);
        let sizes = starts.iter().zip(ends).map(|(start, end)| end - start);
        Ok(ids.into_iter().zip(sizes).collect())
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
                let uncovered = || Error::Uncovered { part: format!("{name:?}") };
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
                let rank = *merger.ranks.get(&(pair[0].0, pair[1].0))?;
                Some((rank, at, merger.ids[rank as usize]))
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
        fn the_heap_equals_the_plain_algorithm(pretoken in "[abcé]{1,14}") {
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
