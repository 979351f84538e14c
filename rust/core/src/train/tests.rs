//! The trainer against a reference algorithm that counts again before every merge.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZeroU64;

use proptest::prelude::*;

use crate::count::Counts;
use crate::error::Error;
use crate::pretokenize::Pattern;
use crate::train::options::Tuning;
use crate::train::trainer::learn;
use crate::train::{Mismatch, Ties, TrainOptions, Trained, train, train_more, verify};

/// The reference algorithm: count, merge the best pair everywhere, repeat.
fn reference(counts: &Counts, options: &TrainOptions) -> Trained {
    let mut words: Vec<(Vec<u32>, u64)> =
        counts.iter().map(|(p, n)| (p.iter().map(|&b| u32::from(b)).collect(), n)).collect();
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut trained = Trained::default();
    while trained.merges.len() < options.merges {
        let Some((pair, count)) = best(&words, &tokens, options) else {
            trained.exhausted = true;
            break;
        };
        let new = u32::try_from(tokens.len()).unwrap();
        tokens.push([&*tokens[pair.0 as usize], &*tokens[pair.1 as usize]].concat());
        let mut replacements = 0;
        for (ids, count) in &mut words {
            let replaced = replace(ids, pair, new);
            replacements += (ids.len() - replaced.len()) as u64 * *count;
            *ids = replaced;
        }
        trained.replacements.push(replacements);
        trained.merges.push(pair);
        trained.counts.push(count);
    }
    trained
}

fn best(
    words: &[(Vec<u32>, u64)],
    tokens: &[Vec<u8>],
    options: &TrainOptions,
) -> Option<((u32, u32), u64)> {
    let mut pairs: HashMap<(u32, u32), (u64, usize)> = HashMap::new();
    for (ids, count) in words {
        for pair in ids.windows(2) {
            let order = pairs.len();
            pairs.entry((pair[0], pair[1])).or_insert((0, order)).0 += count;
        }
    }
    let bytes = |id: u32| &tokens[id as usize];
    let fits = |pair: (u32, u32)| {
        let length = bytes(pair.0).len() + bytes(pair.1).len();
        options.max_token_bytes.is_none_or(|most| length <= most)
    };
    let rank = |id: u32| (id < 256 && !is_printable(id), id);
    let candidates = pairs
        .into_iter()
        .filter(|&(pair, (count, _))| fits(pair) && count >= options.min_count.get());
    let winner = match options.ties {
        Ties::RustBpe => candidates.max_by_key(|&(pair, (count, _))| (count, Reverse(pair))),
        Ties::FirstSeen => candidates.max_by_key(|&(_, (count, order))| (count, Reverse(order))),
        Ties::CharactersMax => candidates.max_by_key(|&((l, r), (count, _))| {
            let ranks = |id| bytes(id).iter().map(|&b| rank(b.into())).collect::<Vec<_>>();
            (count, ranks(l), ranks(r))
        }),
        Ties::BytesMax => candidates
            .max_by_key(|&((l, r), (count, _))| (count, bytes(l).clone(), bytes(r).clone())),
        Ties::Hf => candidates.max_by_key(|&((l, r), (count, _))| {
            // Merged tokens follow all bytes.
            let key = |id: u32| (id >= 256, rank(id));
            (count, Reverse((key(l), key(r))))
        }),
    };
    winner.map(|(pair, (count, _))| (pair, count))
}

fn is_printable(byte: u32) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

fn replace(ids: &[u32], pair: (u32, u32), new: u32) -> Vec<u32> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < ids.len() {
        let matches = ids.get(at + 1).is_some_and(|&next| (ids[at], next) == pair);
        out.push(if matches { new } else { ids[at] });
        at += if matches { 2 } else { 1 };
    }
    out
}

/// Threads, floor and batch size, which must not change the result.
const TUNINGS: [(usize, u64, usize); 6] =
    [(1, 0, 1), (1, 40, 256), (1, u64::MAX, 3), (2, 2, 256), (3, u64::MAX, 256), (8, 0, 256)];

fn check(counts: &Counts, merges: usize, min_count: u64, max_token_bytes: Option<usize>) {
    for (_, ties) in Ties::NAMED {
        let options = TrainOptions { max_token_bytes, ..options(merges, ties, min_count) };
        let expected = reference(counts, &options);
        for (threads, floor, batch) in TUNINGS {
            let options = TrainOptions { threads, ..options.clone() };
            let tuning = Tuning { floor, batch, bytes_per_thread: 1 };
            let trained = learn(counts, &options, None, tuning, &mut |_| Ok(()));
            assert_eq!(trained.as_ref(), Ok(&expected), "{tuning:?} {options:?} {counts:?}");
        }
    }
}

fn options(merges: usize, ties: Ties, min_count: u64) -> TrainOptions {
    let min_count = NonZeroU64::new(min_count).unwrap();
    TrainOptions { merges, ties, min_count, ..TrainOptions::default() }
}

/// Distinct pretokens over a small alphabet that mixes printable and other bytes.
fn corpus() -> impl Strategy<Value = Counts> {
    let letters = prop::sample::select(vec![b'a', b'b', 0x80, b' ', 0xFF]);
    let pretoken = prop_oneof![
        prop::collection::vec(letters.clone(), 1..20),
        (letters, 1usize..24).prop_map(|(letter, n)| vec![letter; n]),
    ];
    let count = prop_oneof![1u64..4, Just(1 << 31), Just((1 << 40) + 1)];
    prop::collection::btree_map(pretoken, count, 0..25)
        .prop_map(|rows| rows.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(|rows| Counts::new(rows.iter().map(|(pretoken, count)| (&**pretoken, *count))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn equals_the_reference_algorithm(
        counts in corpus(),
        min_count in prop::sample::select(vec![1u64, 1, 2, 5]),
        longest in prop::option::weighted(0.3, 2usize..6),
    ) {
        check(&counts, 60, min_count, longest);
    }

    /// No merged pair is below the floor of the default tuning, so pairs are counted only once.
    #[test]
    fn the_floor_is_not_too_high(counts in corpus(), merges in 1usize..40) {
        let trained = train(&counts, &options(merges, Ties::RustBpe, 1), &mut |_| Ok(())).unwrap();
        let last = trained.counts.last().copied().unwrap_or(0);
        prop_assert!(trained.exhausted || Tuning::new(&counts, merges).unwrap().floor <= last);
    }

    /// Continuing a shorter training equals one long training, whose merges all verify.
    #[test]
    fn a_continued_training_equals_a_single_one(counts in corpus(), cut in 0usize..30) {
        for (_, ties) in Ties::NAMED {
            let options = |merges| options(merges, ties, 1);
            let quiet = &mut |_| Ok(());
            let long = train(&counts, &options(40), quiet).unwrap();
            let mut short = train(&counts, &options(cut), quiet).unwrap();
            let base = short.to_tokenizer(&[], Pattern::new("gpt2").unwrap()).unwrap();
            let more = train_more(&base, &counts, &options(40 - cut), quiet).unwrap();
            short.merges.extend(more.merges);
            short.counts.extend(more.counts);
            short.replacements.extend(more.replacements);
            prop_assert_eq!(&short.merges, &long.merges);
            prop_assert_eq!(&short.counts, &long.counts);
            prop_assert_eq!(&short.replacements, &long.replacements);
            prop_assert_eq!(verify(None, &long.merges, &counts, &options(0), quiet), Ok(None));
        }
    }

    /// A list with one wrong merge is rejected at that merge, and the right merge is reported.
    #[test]
    fn a_wrong_merge_is_reported(
        counts in corpus(),
        step in 0usize..20,
        wrong in (0u32..256, 0u32..256),
    ) {
        let options = options(20, Ties::RustBpe, 1);
        let trained = train(&counts, &options, &mut |_| Ok(())).unwrap();
        let mut merges = trained.merges.clone();
        if step < merges.len() && merges[step] != wrong {
            let best = Some((merges[step], trained.counts[step]));
            merges[step] = wrong;
            let mismatch = verify(None, &merges, &counts, &options, &mut |_| Ok(())).unwrap();
            let Some(Mismatch { step: at, pair: (pair, count), best: right }) = mismatch else {
                panic!("verified")
            };
            prop_assert_eq!((at, pair, right), (step, wrong, best));
            prop_assert!(count <= trained.counts[step]);
        }
    }

    /// The first merges of a long training are those of a short one.
    #[test]
    fn a_shorter_training_is_a_prefix(counts in corpus(), cut in 0usize..40) {
        let options = |merges| options(merges, Ties::RustBpe, 1);
        let long = train(&counts, &options(40), &mut |_| Ok(())).unwrap();
        let short = train(&counts, &options(cut), &mut |_| Ok(())).unwrap();
        let cut = cut.min(long.merges.len());
        prop_assert_eq!(&short.merges[..], &long.merges[..cut]);
    }
}

#[test]
fn runs_merge_from_left_to_right_without_overlap() {
    for length in 1..40 {
        check(&Counts::new([(&vec![b'a'; length][..], 3)]), 50, 1, None);
    }
}

#[test]
fn a_corpus_without_pairs_is_not_an_error() {
    for pretokens in [vec![], vec![(&b"a"[..], 5)]] {
        check(&Counts::new(pretokens), 10, 1, None);
    }
}

#[test]
fn a_corpus_with_more_than_2_to_64_pairs_is_an_error() {
    let options = options(1, Ties::RustBpe, 1);
    let counts = Counts::new([(&b"abc"[..], u64::MAX / 2 + 1)]);
    assert_eq!(train(&counts, &options, &mut |_| Ok(())), Err(Error::CountOverflow));
    let counts = Counts::new([(&b"abc"[..], u64::MAX / 2)]);
    assert_eq!(train(&counts, &options, &mut |_| Ok(())).unwrap().counts, [u64::MAX / 2]);
}

#[test]
fn an_error_of_the_progress_function_stops_training() {
    let options = options(9, Ties::RustBpe, 1);
    let counts = Counts::new([(&b"abcdefgh"[..], 2)]);
    let mut stop_at_two = |done| if done >= 2 { Err(Error::Interrupted) } else { Ok(()) };
    assert_eq!(train(&counts, &options, &mut stop_at_two), Err(Error::Interrupted));
}
