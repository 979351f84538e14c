//! Compares every algorithm with the plain one, on random vocabularies and texts.

use proptest::prelude::*;

use super::blocks::{self, BlockMerge};
use super::heap::HeapMerge;
use super::merger::{self, MergeScratch, Merger, Streaming};
use super::pair_table::PairTable;
use super::runs;
use super::short::{self, ShortMerge};
use super::symbols::Symbols;
use crate::hash::key::MAX_KEY_BYTES;
use crate::vocabulary::{MergeRule, Vocabulary};

/// The listed pairs of the rule of merges; `None` for the rule of ranks.
type MergePairs<'a> = Option<&'a [(u32, u32)]>;

/// Bytes 0, 1, 2 with ids that are not their values, and random longer tokens over them.
fn vocabulary(tokens: &[Vec<u8>]) -> Vocabulary {
    let mut all: Vec<Vec<u8>> = vec![vec![2], vec![0], vec![1]];
    all.extend(tokens.iter().cloned());
    let mut seen = std::collections::HashSet::new();
    all.retain(|token| seen.insert(token.clone()));
    Vocabulary::new(all.into_iter().zip(0u32..), []).unwrap()
}

fn pairs(vocabulary: &Vocabulary, merges: MergePairs<'_>) -> PairTable {
    let pairs = merges.map_or_else(
        || merger::by_rank(vocabulary),
        |merges| merger::by_merges(vocabulary, merges),
    );
    pairs.unwrap()
}

/// The initial parts of a vocabulary whose merging starts with bytes.
fn bytes(vocabulary: &Vocabulary) -> Symbols {
    Symbols::new(vocabulary, MergeRule::Ranks).unwrap()
}

/// The initial parts: bytes; or characters that are tokens, and the bytes of other characters.
fn first_parts(vocabulary: &Vocabulary, symbols: &Symbols, text: &[u8]) -> Vec<Vec<u8>> {
    let single = |bytes: &[u8]| bytes.iter().map(|&byte| vec![byte]).collect::<Vec<_>>();
    if symbols.are_bytes() {
        return single(text);
    }
    let mut parts = Vec::new();
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            let bytes = character.to_string().into_bytes();
            let is_token = vocabulary.id(&bytes).is_some();
            parts.extend(if is_token { vec![bytes] } else { single(&bytes) });
        }
        parts.extend(single(chunk.invalid()));
    }
    parts
}

/// The plain algorithm: compare all adjacent pairs, merge the one of lowest rank, and repeat.
fn plain(
    vocabulary: &Vocabulary,
    merges: MergePairs<'_>,
    symbols: &Symbols,
    text: &[u8],
) -> Vec<u32> {
    let mut parts = first_parts(vocabulary, symbols, text);
    let rank = |left: &[u8], right: &[u8]| match merges {
        None => vocabulary.id(&[left, right].concat()),
        Some(merges) => {
            let pair = vocabulary.id(left).zip(vocabulary.id(right));
            let at = merges.iter().position(|&merge| Some(merge) == pair)?;
            u32::try_from(at).ok()
        }
    };
    loop {
        let pairs = parts.windows(2).enumerate();
        let ranked = pairs.filter_map(|(at, pair)| Some((rank(&pair[0], &pair[1])?, at)));
        let Some((_, at)) = ranked.min() else { break };
        let right = parts.remove(at + 1);
        parts[at].extend(right);
    }
    parts.iter().map(|part| vocabulary.id(part).unwrap()).collect()
}

/// Check all algorithms on one text.
fn check(vocabulary: &Vocabulary, merges: MergePairs<'_>, symbols: &Symbols, text: &[u8]) {
    let plain = |text| plain(vocabulary, merges, symbols, text);
    let pairs = pairs(vocabulary, merges);
    let mut out = Vec::new();
    HeapMerge::default().append(&pairs, symbols, text, &mut out);
    assert_eq!(out, plain(text), "the heap");
    out.clear();
    blocks::merge(&pairs, symbols, text, &mut BlockMerge::default(), &mut out);
    assert_eq!(out, plain(text), "the blocks");
    for (window, few) in [(1, 1), (7, 1), (20, 1), (20, 2), (40, 1)] {
        let (pairs, scratch, mut out) = (&pairs, &mut MergeScratch::default(), Vec::new());
        Streaming { pairs, symbols, scratch, out: &mut out, window, few }.merge(text).unwrap();
        assert_eq!(out, plain(text), "{window} {few}");
    }
    for length in [ShortMerge::MAX_BYTES, 31, MAX_KEY_BYTES] {
        for part in text.chunks(length) {
            let mut out = Vec::new();
            merger::merge(&pairs, symbols, part, &mut MergeScratch::default(), &mut out);
            assert_eq!(out, plain(part), "the array");
        }
    }
    let pretokens: Vec<&[u8]> = text.chunks(MAX_KEY_BYTES).collect();
    for group in pretokens.chunks(short::MAX_PRETOKENS) {
        let parts = group.iter().map(|pretoken| ShortMerge::new(&pairs, symbols, pretoken));
        let mut parts: Vec<ShortMerge> = parts.collect();
        short::merge_interleaved(&pairs, &mut parts);
        for (parts, pretoken) in parts.iter().zip(group) {
            let mut out = Vec::new();
            parts.write(&mut out);
            assert_eq!(out, plain(pretoken), "interleaved");
        }
    }
}

proptest! {
    #[test]
    fn all_algorithms_agree_on_ranks(
        tokens in prop::collection::vec(prop::collection::vec(0u8..3, 2..6), 0..30),
        text in prop::collection::vec(0u8..3, 1..200),
    ) {
        let vocabulary = vocabulary(&tokens);
        check(&vocabulary, None, &bytes(&vocabulary), &text);
    }

    /// Merges in any order: some use a token that only a later merge creates.
    #[test]
    fn all_algorithms_agree_on_merges(
        tokens in prop::collection::vec(prop::collection::vec(0u8..3, 2..6), 1..30),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        text in prop::collection::vec(0u8..3, 1..200),
    ) {
        let vocabulary = vocabulary(&tokens);
        let cuts: Vec<(u32, u32)> = vocabulary.ordinary_tokens().flat_map(|(token, _)| {
            (1..token.len())
                .filter_map(|at| vocabulary.id(&token[..at]).zip(vocabulary.id(&token[at..])))
                .collect::<Vec<_>>()
        }).collect();
        if !cuts.is_empty() {
            let merges: Vec<_> = order.iter().map(|index| *index.get(&cuts)).collect();
            check(&vocabulary, Some(&merges), &bytes(&vocabulary), &text);
        }
    }
}

proptest! {
    /// Characters of one to four bytes, one of which is not a token, and invalid UTF-8.
    #[test]
    fn all_algorithms_agree_on_characters(
        tokens in prop::collection::vec("[aé中😀字]{2,5}", 1..30),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        text in prop::collection::vec("[aé中😀字]{0,20}|中{30}", 1..12),
        cuts in (0usize..4, 0usize..4),
    ) {
        let mut all: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        all.extend(["é", "中", "😀"].map(|one| one.as_bytes().to_vec()));
        all.extend(tokens.iter().map(|token| token.as_bytes().to_vec()));
        let mut seen = std::collections::HashSet::new();
        all.retain(|token| seen.insert(token.clone()));
        let vocabulary = Vocabulary::new(all.into_iter().zip(0u32..), []).unwrap();
        let pairs: Vec<(u32, u32)> = tokens.iter().flat_map(|token| {
            let splits = token.char_indices().skip(1).map(|(at, _)| token.as_bytes().split_at(at));
            let ids = splits.map(|(one, other)| vocabulary.id(one).zip(vocabulary.id(other)));
            ids.flatten().collect::<Vec<_>>()
        }).collect();
        let index = |index: &prop::sample::Index| index.get(&pairs).to_owned();
        let merges: Vec<_> =
            if pairs.is_empty() { Vec::new() } else { order.iter().map(index).collect() };
        let symbols = Symbols::new(&vocabulary, MergeRule::Characters).unwrap();
        let text = text.concat().into_bytes();
        let end = text.len().saturating_sub(cuts.1).max(cuts.0.min(text.len()));
        check(&vocabulary, Some(&merges), &symbols, &text);
        check(&vocabulary, Some(&merges), &symbols, &text[cuts.0.min(end)..end]);
        let mut out = Vec::new();
        let (table, text) = (self::pairs(&vocabulary, Some(&merges)), &text);
        if runs::merge(&table, &symbols, text, &mut out) {
            prop_assert_eq!(out, plain(&vocabulary, Some(&merges), &symbols, text));
        }
    }

    #[test]
    fn merging_runs_equals_merging_their_bytes(
        tokens in prop::collection::vec(
            prop::collection::vec((0u8..3, 1usize..9), 1..3), 0..30),
        runs in prop::collection::vec((0u8..3, 1usize..60), 1..5),
    ) {
        let expand = |runs: &[(u8, usize)]| -> Vec<u8> {
            runs.iter().flat_map(|&(byte, count)| vec![byte; count]).collect()
        };
        let tokens: Vec<Vec<u8>> = tokens.iter().map(|token| expand(token)).collect();
        let (vocabulary, text) = (vocabulary(&tokens), expand(&runs));
        let mut out = Vec::new();
        if runs::merge(&pairs(&vocabulary, None), &bytes(&vocabulary), &text, &mut out) {
            prop_assert_eq!(out, plain(&vocabulary, None, &bytes(&vocabulary), &text));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Merges whose three parts are in one block, in two and in three, and a top of many blocks.
    #[test]
    fn blocks_equal_the_heap(
        tokens in prop::collection::vec(prop::collection::vec(0u8..3, 2..200), 0..40),
        pieces in prop::collection::vec(any::<prop::sample::Index>(), 1..200),
        noise in prop::collection::vec(0u8..3, 0..500),
    ) {
        // Tokens of all lengths arise only if their parts are tokens too.
        let halves = |token: &Vec<u8>| -> Vec<Vec<u8>> {
            let lengths = std::iter::successors(Some(token.len()), |&length| Some(length / 2));
            lengths.take_while(|&length| length > 1).map(|length| token[..length].to_vec()).collect()
        };
        let tokens: Vec<Vec<u8>> = tokens.iter().flat_map(halves).collect();
        let (vocabulary, mut text) = (vocabulary(&tokens), noise);
        if !tokens.is_empty() {
            text.extend(pieces.iter().flat_map(|piece| piece.get(&tokens).clone()));
        }
        text.truncate(blocks::MAX_BYTES);
        let (pairs, symbols) = (pairs(&vocabulary, None), bytes(&vocabulary));
        let (mut one, mut other) = (Vec::new(), Vec::new());
        blocks::merge(&pairs, &symbols, &text, &mut BlockMerge::default(), &mut one);
        HeapMerge::default().append(&pairs, &symbols, &text, &mut other);
        prop_assert_eq!(one, other);
    }
}

#[test]
fn a_megabyte_of_equal_bytes_is_merged() {
    let vocabulary = vocabulary(&[vec![0, 0], vec![0, 0, 0, 0]]);
    let merger = Merger::new(&vocabulary, MergeRule::Ranks, pairs(&vocabulary, None)).unwrap();
    let mut out = Vec::new();
    let text = vec![0; 1 << 20];
    merger.merge(&text, &mut MergeScratch::default(), &mut out).unwrap();
    assert_eq!(out, vec![4; 1 << 18]);
}
