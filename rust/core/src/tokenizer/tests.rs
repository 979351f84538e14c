//! All ways to the ids of a text give the ids of a slow twin, under every merge rule and kind of pattern.
//!
//! In tests, the windows, buffers, chunks and parts of the code are so small that a text of some hundred
//! bytes passes the threshold of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};
use std::{env, fs, process, thread};

use proptest::prelude::*;

use crate::bulk::conversations::Segment;
use crate::bulk::text_file::FileOptions;
use crate::encode::EncodeOptions;
use crate::rules::{AddedToken, Normalizer, NormalizerStep, PartStart, SpacePrefix, TextRules};
use crate::text::Text;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::merges::Merges;
use crate::tokenizer::offsets::Keep;
use crate::tokenizer::session::EncodeStream;
use crate::tokenizer::session::Session;
use crate::{MergeRule, Pattern, Special, Splitter, Vocabulary};

/// Patterns for each way of splitting: published patterns, an automaton, the regex engine, steps, and
/// lines, in which tokens cross spaces.
pub(super) const PATTERNS: [&[&str]; 11] = [
    &["gpt2"],
    &["gpt4"],
    &["gpt4o"],
    &["qwen2"],
    &["llama3"],
    &["nanochat"],
    &[r"\w+|\s+|[^\w\s]+"],
    &[r"\d{1,3}", r"[中文]+", r" ?\p{L}+|\s+(?!\S)|\s|."],
    &[r"(?=(.))\w+|(?<=a) b|\s+"],
    &[r"(?s).+"],
    &[r"[^\n]+|\n"],
];

/// The ways of text to pretokens, and the ids of the added tokens that take white space before or after
/// them, are found in normalized text, only as words, or in every text.
const WAYS: [(&[NormalizerStep], [&[u32]; 5]); 9] = [
    (&[], [&[], &[], &[], &[], &[]]),
    (&[NormalizerStep::Nfc], [&[], &[], &[], &[], &[]]),
    (&[NormalizerStep::Nfkc], [&[301, 303], &[302, 303], &[], &[], &[]]),
    (&[], [&[], &[301], &[302, 304], &[], &[300, 304]]),
    (&[NormalizerStep::Nfc], [&[], &[], &[301, 304], &[], &[304]]),
    (&[], [&[], &[], &[], &[300, 303], &[]]),
    (&[NormalizerStep::Lowercase], [&[], &[], &[302], &[], &[302]]),
    (&[NormalizerStep::Spaces(SpacePrefix::Always)], [&[], &[], &[], &[], &[]]),
    (&[NormalizerStep::Spaces(SpacePrefix::First)], [&[], &[], &[302], &[], &[302]]),
];

/// The names of the added tokens; their ids begin with 300.
const ADDED: [&str; 5] = ["<a>", "<a><b", "<b", "<c>", "c> "];

/// The tokens after those of bytes. No merge makes the last three.
const TOKENS: [&[u8]; 22] = [
    b"ab",
    b"  ",
    b" a",
    b"abab",
    b"'s",
    b"\xE4\xB8",
    "中".as_bytes(),
    b"\xE6\x96",
    "文".as_bytes(),
    "中文".as_bytes(),
    "é".as_bytes(),
    b"12",
    b"\n\n",
    b" \n",
    b"b a",
    b"ab a",
    b"<a",
    b"\xCC\x81",
    "e\u{301}".as_bytes(),
    "文文中".as_bytes(),
    b"c><",
    b"s l L",
];

/// The listed pairs, of tokens by their bytes.
const MERGES: [(&[u8], &[u8]); 13] = [
    (b"a", b"b"),
    (b"ab", b"ab"),
    (b" ", b" "),
    (b" ", b"a"),
    (b"'", b"s"),
    (b"\xE4", b"\xB8"),
    (b"\xE4\xB8", b"\xAD"),
    (b"\xE6", b"\x96"),
    (b"\xE6\x96", b"\x87"),
    ("中".as_bytes(), "文".as_bytes()),
    (b"b", b" a"),
    (b"\n", b"\n"),
    (b"1", b"2"),
];

/// How a tokenizer merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Ranks,
    Merges { ignore_merges: bool },
    Characters,
}

const RULES: [Rule; 4] = [
    Rule::Ranks,
    Rule::Merges { ignore_merges: false },
    Rule::Merges { ignore_merges: true },
    Rule::Characters,
];

fn pattern(steps: &[&str]) -> Pattern {
    match steps {
        [one] => Pattern::new(one).unwrap(),
        steps => Pattern::in_steps(steps.to_vec()).unwrap(),
    }
}

fn tokens() -> impl Iterator<Item = (Vec<u8>, u32)> {
    let bytes = (0..=255).map(|byte| vec![byte]);
    bytes.chain(TOKENS.map(<[u8]>::to_vec)).zip(0..)
}

fn listed() -> Vec<(u32, u32)> {
    let ids: HashMap<Vec<u8>, u32> = tokens().collect();
    MERGES.iter().map(|&(left, right)| (ids[left], ids[right])).collect()
}

pub(super) fn tokenizer(steps: &[&str], way: usize, rule: Rule) -> Arc<Tokenizer> {
    let (steps_before, [lstrip, rstrip, after_rules, single, ordinary]) = WAYS[way];
    let added = ADDED.iter().zip(300..).map(|(name, id)| AddedToken {
        lstrip: lstrip.contains(&id),
        rstrip: rstrip.contains(&id),
        normalized: after_rules.contains(&id),
        single_word: single.contains(&id),
        special: !ordinary.contains(&id),
        ..AddedToken::special(*name, id)
    });
    let vocabulary = Vocabulary::with_added(tokens(), [], added.collect()).unwrap();
    let normalizer = Normalizer { steps: steps_before.to_vec() };
    let rules = TextRules { normalizer, ..pattern(steps).into() };
    Arc::new(match rule {
        Rule::Ranks => Tokenizer::from_ranks(vocabulary, rules).unwrap(),
        Rule::Merges { ignore_merges } => {
            Tokenizer::from_merges(vocabulary, listed(), ignore_merges, rules).unwrap()
        }
        Rule::Characters => {
            let merges = Merges::of_pairs(listed(), Vec::new());
            Tokenizer::by_rule(vocabulary, MergeRule::Characters, rules, merges).unwrap()
        }
    })
}

/// A tokenizer for each pattern, way and rule, by their numbers; their caches fill as the tests run.
pub(super) static TOKENIZERS: LazyLock<BTreeMap<[usize; 3], Arc<Tokenizer>>> =
    LazyLock::new(|| {
        let rules = |at, way| (0..RULES.len()).map(move |rule| [at, way, rule]);
        let ways = |at| (0..WAYS.len()).flat_map(move |way| rules(at, way));
        let all = (0..PATTERNS.len()).flat_map(ways);
        all.map(|case| (case, tokenizer(PATTERNS[case[0]], case[1], RULES[case[2]]))).collect()
    });

/// The slow twin of a tokenizer that does not normalize: each step of the definition, one by one.
struct Twin {
    rule: Rule,
    splitter: Splitter,
    ids: HashMap<Vec<u8>, u32>,
    listed: HashMap<(u32, u32), u32>,
}

impl Twin {
    fn new(steps: &[&str], rule: Rule) -> Self {
        let splitter = Splitter::by_regex(&pattern(steps)).unwrap();
        let listed = listed().into_iter().zip(0..).collect();
        Self { rule, splitter, ids: tokens().collect(), listed }
    }

    /// The ids of a text in which these added tokens are found, the longest at each position.
    fn encode(&self, text: &str, names: &[String]) -> Vec<u32> {
        let (mut ids, mut start, mut at) = (Vec::new(), 0, 0);
        while at < text.len() {
            let here =
                names.iter().filter(|name| text.as_bytes()[at..].starts_with(name.as_bytes()));
            let Some(name) = here.max_by_key(|name| name.len()) else {
                at += 1;
                continue;
            };
            ids.extend(self.encode_ordinary(&text[start..at]));
            ids.extend(ADDED.iter().zip(300..).find(|(other, _)| *other == name).map(|(_, id)| id));
            at += name.len();
            start = at;
        }
        ids.extend(self.encode_ordinary(&text[start..]));
        ids
    }

    fn encode_ordinary(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        self.splitter.for_each(text, |pretoken| ids.extend(self.merged(pretoken))).unwrap();
        ids
    }

    /// The ids of a pretoken. Before each merge, all adjacent pairs are searched for the lowest rank.
    fn merged(&self, pretoken: &str) -> Vec<u32> {
        let is_whole = matches!(self.rule, Rule::Ranks | Rule::Merges { ignore_merges: true });
        if let Some(&id) = self.ids.get(pretoken.as_bytes()).filter(|_| is_whole) {
            return vec![id];
        }
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for character in pretoken.chars() {
            let bytes = character.to_string().into_bytes();
            if self.rule == Rule::Characters && self.ids.contains_key(&bytes) {
                parts.push(bytes);
            } else {
                parts.extend(bytes.into_iter().map(|byte| vec![byte]));
            }
        }
        let rank = |left: &[u8], right: &[u8]| match self.rule {
            Rule::Ranks => self.ids.get(&[left, right].concat()).copied(),
            _ => self.listed.get(&(self.ids[left], self.ids[right])).copied(),
        };
        let best = |parts: &[Vec<u8>]| {
            let pairs = parts.windows(2).enumerate();
            pairs.filter_map(|(at, pair)| Some((rank(&pair[0], &pair[1])?, at))).min()
        };
        while let Some((_, at)) = best(&parts) {
            let right = parts.remove(at + 1);
            parts[at].extend(right);
        }
        parts.iter().map(|part| self.ids[part]).collect()
    }
}

/// A way to the ids of a text that arrives in pieces.
type Way = fn(&Arc<Tokenizer>, &Special, &[String]) -> Vec<u32>;

const SINGLE: [(&str, Way); 11] = [
    ("UTF-16", |tok, special, pieces| of_text(tok, special, &Text::Utf16(&utf16(pieces)))),
    ("UTF-32", |tok, special, pieces| {
        let units: Vec<u32> = pieces.concat().chars().map(u32::from).collect();
        of_text(tok, special, &Text::Utf32(&units))
    }),
    ("bytes", |tok, special, pieces| {
        of_text(tok, special, &Text::Bytes(pieces.concat().as_bytes()))
    }),
    ("spans", |tok, special, pieces| {
        let (whole, options) = (pieces.concat(), options(tok, special));
        tok.encode_with_spans(&Text::Utf8(&whole), &options).unwrap().ids
    }),
    ("alignment", |tok, special, pieces| {
        let mut call = tok.encoder().call();
        let whole = pieces.concat();
        let aligned = call.encode_aligned(&whole, &options(tok, special), PartStart::Text);
        aligned.unwrap().into_iter().map(|aligned| aligned.id).collect()
    }),
    ("stream", in_stream),
    ("session", in_session),
    ("session of UTF-16", |tok, special, pieces| {
        let mut session = Session::new(tok, special, None).unwrap();
        for units in utf16(pieces).chunks(3) {
            session.append(&Text::Utf16(units)).unwrap();
        }
        session.ids().unwrap()
    }),
    ("batch on one thread", |tok, special, pieces| in_batch(tok, special, pieces, 1)),
    ("batch on three threads", |tok, special, pieces| in_batch(tok, special, pieces, 3)),
    ("file", |tok, special, pieces| in_file(tok, special, &pieces.concat())),
];

fn options(tok: &Tokenizer, special: &Special) -> EncodeOptions {
    tok.options(special, &[], &[]).unwrap()
}

fn utf16(pieces: &[String]) -> Vec<u16> {
    pieces.concat().encode_utf16().collect()
}

fn of_text(tok: &Tokenizer, special: &Special, text: &Text<'_>) -> Vec<u32> {
    let options = options(tok, special);
    let ids = tok.encode_text(text, &options, <[u32]>::to_vec).unwrap();
    assert_eq!(tok.count_text(text, &options).unwrap(), ids.len());
    ids
}

fn in_stream(tok: &Arc<Tokenizer>, special: &Special, pieces: &[String]) -> Vec<u32> {
    let (mut stream, mut ids) = (EncodeStream::new(tok, special).unwrap(), Vec::new());
    for piece in pieces {
        ids.extend(stream.push(&Text::Utf8(piece)).unwrap());
    }
    ids.extend(stream.flush().unwrap());
    ids
}

fn in_session(tok: &Arc<Tokenizer>, special: &Special, pieces: &[String]) -> Vec<u32> {
    let mut session = Session::new(tok, special, None).unwrap();
    for piece in pieces {
        session.append(&Text::Utf8(piece)).unwrap();
    }
    session.ids().unwrap()
}

/// The ids of the whole text in a batch of the pieces and the whole text, between others.
fn in_batch(tok: &Tokenizer, special: &Special, pieces: &[String], threads: usize) -> Vec<u32> {
    let (whole, options) = (pieces.concat(), options(tok, special));
    let texts: Vec<&str> =
        pieces.iter().map(String::as_str).chain(["", &whole, &whole, "x"]).collect();
    let ids = tok.encode_batch(&texts, &options, threads).unwrap();
    for (text, ids) in texts.iter().zip(&ids) {
        assert_eq!(*ids, tok.encode_with(text, &options).unwrap());
    }
    let as_text: Vec<_> = texts.iter().map(|text| Text::Utf8(text)).collect();
    let counts = tok.count_batch(&as_text, &options, threads).unwrap();
    assert!(counts.iter().zip(&ids).all(|(&count, ids)| usize::try_from(count) == Ok(ids.len())));
    ids[pieces.len() + 1].clone()
}

/// The ids of a text in a file of three documents, of which it is each.
#[expect(unsafe_code, reason = "nobody else writes to the file")]
fn in_file(tok: &Tokenizer, special: &Special, text: &str) -> Vec<u32> {
    let name = format!("bytepair-ways-{}-{:?}", process::id(), thread::current().id());
    let path = env::temp_dir().join(name);
    fs::write(&path, [text, text, text].join("\0")).unwrap();
    let file = FileOptions { separator: vec![0], ..FileOptions::default() };
    // SAFETY: only this thread writes to the file.
    let arrays = unsafe { tok.encode_file::<u32>(&path, &file, &options(tok, special), 2) };
    fs::remove_file(&path).unwrap();
    let arrays = arrays.unwrap();
    assert_eq!(arrays.offsets.len(), 4);
    let (documents, rest) = arrays.ids.split_at(2 * arrays.ids.len() / 3);
    assert_eq!(documents, [rest, rest].concat());
    rest.to_vec()
}

/// The ids of the pieces of one message, joined.
fn in_conversation(tok: &Tokenizer, pieces: &[String]) -> Vec<u32> {
    let segments: Vec<_> = pieces.iter().map(|piece| Segment::Text(piece)).collect();
    let trained: Vec<bool> = (0..segments.len()).map(|at| at % 2 == 0).collect();
    let both = [0..segments.len(), 0..segments.len()];
    let rendered = tok.render(&both, &segments, &trained, true, 2).unwrap();
    let (one, other) = rendered.ids.split_at(rendered.lengths[0]);
    assert_eq!(one, other);
    one.to_vec()
}

/// Characters of every kind that a pattern or an added token distinguishes.
const KINDS: [&str; 28] = [
    "<",
    "a",
    ">",
    "b",
    "c",
    "<a>",
    "<b",
    "<c>",
    "  ",
    "\n",
    " ",
    "'",
    "s",
    "l",
    "L",
    "1",
    "2",
    "中",
    "文",
    "é",
    "\u{301}",
    "e",
    "ﬁ",
    "\u{ac00}\u{11a8}",
    "\u{1ac0}\u{3000}",
    "!",
    "b a",
    "😀",
];

/// Pieces of runs of a few kinds or of all: texts of few kinds seldom have a position where a cut is
/// safe.
pub(super) fn pieces() -> impl Strategy<Value = Vec<String>> {
    let kinds = prop_oneof![prop::sample::subsequence(&KINDS[..], 2..5), Just(KINDS.to_vec()),];
    kinds.prop_flat_map(|kinds| {
        let lengths = prop_oneof![6 => 1..2usize, 2 => 2..9usize, 1 => 9..40usize];
        let run =
            (prop::sample::select(kinds), lengths).prop_map(|(kind, times)| kind.repeat(times));
        let piece = prop::collection::vec(run, 0..6).prop_map(|runs| runs.concat());
        prop::collection::vec(piece, 0..12)
    })
}

pub(super) fn special() -> impl Strategy<Value = Special> {
    let some = vec!["<a>".to_owned(), "c> ".to_owned()];
    prop::sample::select(vec![Special::Text, Special::All, Special::Only(some)])
}

proptest! {
    #[test]
    fn all_ways_give_the_ids_of_the_slow_twin(
        pieces in pieces(),
        at in 0..PATTERNS.len(),
        rule in 0..RULES.len(),
        special in special(),
    ) {
        let tok = &TOKENIZERS[&[at, 0, rule]];
        let names = match &special {
            Special::All => ADDED.map(str::to_owned).to_vec(),
            Special::Only(names) => names.clone(),
            _ => Vec::new(),
        };
        let twin = Twin::new(PATTERNS[at], RULES[rule]);
        let expected = twin.encode(&pieces.concat(), &names);
        check(tok, &special, &pieces, &expected)?;
        prop_assert_eq!(in_conversation(tok, &pieces), twin.encode(&pieces.concat(), &[]));
    }

    /// With normalizers and flags, `tests/test_reference_rules.py` has the twin.
    #[test]
    fn all_ways_of_rules_give_the_same_ids(
        pieces in pieces(),
        at in 0..PATTERNS.len(),
        way in 1..WAYS.len(),
        rule in 0..RULES.len(),
        special in special(),
    ) {
        let tok = &TOKENIZERS[&[at, way, rule]];
        let whole = pieces.concat();
        let expected = tok.encode_with(&whole, &options(tok, &special)).unwrap();
        check(tok, &special, &pieces, &expected)?;
        let message = options(tok, &Special::Message);
        prop_assert_eq!(in_conversation(tok, &pieces), tok.encode_with(&whole, &message).unwrap());
    }
}

/// Every text of three runs, each in a piece of its own: `  1xxxx` splits otherwise where it ends.
#[test]
fn short_texts_that_arrive_in_runs_have_the_ids_of_the_whole_text() {
    let kinds = ["a", "1", " ", "\n", "!", "中"];
    let runs = || kinds.iter().flat_map(|kind| [1, 2, 12].map(|times| kind.repeat(times)));
    for pattern in 0..PATTERNS.len() {
        let tok = &TOKENIZERS[&[pattern, 0, 0]];
        for first in runs() {
            for (second, third) in
                runs().flat_map(|one| runs().map(move |other| (one.clone(), other)))
            {
                let pieces = [first.clone(), second, third];
                let expected = tok.encode(&pieces.concat()).unwrap();
                assert_eq!(in_stream(tok, &Special::Text, &pieces), expected, "{pieces:?}");
                assert_eq!(in_session(tok, &Special::Text, &pieces), expected, "{pieces:?}");
            }
        }
    }
}

/// Whether all ways give these ids, also when the text has been encoded before.
fn check(
    tok: &Arc<Tokenizer>,
    special: &Special,
    pieces: &[String],
    expected: &[u32],
) -> Result<(), TestCaseError> {
    let (whole, options) = (pieces.concat(), options(tok, special));
    for time in 0..4 {
        prop_assert_eq!(&tok.encode_with(&whole, &options).unwrap(), expected, "time {}", time);
    }
    for (name, way) in SINGLE {
        prop_assert_eq!(&way(tok, special, pieces), expected, "{}", name);
    }
    let plain = tok.encode(&whole).unwrap().len();
    for keep in [Keep::Start, Keep::End] {
        prop_assert_eq!(tok.truncate_text(&whole, plain, keep).unwrap(), &whole);
    }
    Ok(())
}

/// Pretokens as long as lines, by vocabularies whose tokens cross spaces.
mod lines {
    use proptest::prelude::*;

    use crate::pretokenize::Pattern;
    use crate::tokenizer::Tokenizer;
    use crate::vocabulary::Vocabulary;

    /// Tokens that are concatenations of two earlier ones, so that each has a merge.
    fn tokens(parts: &[(usize, usize)]) -> Vec<Vec<u8>> {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut useful: Vec<Vec<u8>> = "ab \u{e9}\u{4e2d}".bytes().map(|byte| vec![byte]).collect();
        for &(left, right) in parts {
            let token = [&*useful[left % useful.len()], &useful[right % useful.len()]].concat();
            if !tokens.contains(&token) {
                tokens.push(token.clone());
                useful.push(token);
            }
        }
        tokens
    }

    fn check(tokens: Vec<Vec<u8>>, texts: &[String]) {
        let vocabulary = Vocabulary::new(tokens.into_iter().zip(0u32..), []).unwrap();
        let pattern = Pattern::from_regex(r"[^\n]*\n");
        let by_rank = Tokenizer::from_ranks(vocabulary.clone(), pattern.clone()).unwrap();
        let merges = by_rank.merges().to_vec();
        let by_merges = Tokenizer::from_merges(vocabulary, merges, false, pattern).unwrap();
        for tokenizer in [by_rank, by_merges] {
            for text in texts.iter().chain(texts) {
                let mut expected = Vec::new();
                for line in text.split_inclusive('\n') {
                    expected.extend(tokenizer.encode_pretoken(line.as_bytes()).unwrap());
                }
                assert_eq!(tokenizer.encode(text).unwrap(), expected, "{text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn lines_are_encoded_as_by_plain_merging(
            parts in prop::collection::vec((any::<usize>(), any::<usize>()), 0..60),
            texts in prop::collection::vec("[ab \n\u{e9}\u{4e2d}]{0,80}", 1..8),
        ) {
            check(tokens(&parts), &texts);
        }

        /// The same for repeated phrases, in lines longer than any run or window.
        #[test]
        fn long_lines_are_encoded_as_by_plain_merging(
            words in prop::collection::vec("[ab]{1,3}", 1..4),
            order in prop::collection::vec(0usize..4, 1..3000),
        ) {
            let text: String =
                order.iter().map(|&at| words[at % words.len()].clone() + " ").collect();
            let space = usize::MAX - usize::MAX % 6 - 6 + 2;
            let parts = [(0, 1), (1, 0), (2, 0), (2, 1), (2, 6), (2, 7), (8, 9), (10, 11), (8, 8)];
            let phrases = [(6, 8), (8, 10), (12, 12), (9, 9), (12, 9), (16, 16), (20, space)];
            check(tokens(&[&parts[..], &phrases].concat()), &[text]);
        }
    }
}

#[test]
fn the_rank_of_a_token_is_that_of_its_first_merge() {
    let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    let more = [(b"abc".to_vec(), 256), (b"ab".to_vec(), 257), (b"bc".to_vec(), 258)];
    let vocabulary = Vocabulary::new(bytes.chain(more), [("<s>".to_owned(), 300)]).unwrap();
    let [a, b, c] = [97, 98, 99];
    let merges = vec![(a, b), (b, c), (257, c), (a, 258)];
    let ranks = Tokenizer::from_merges(vocabulary, merges, false, pattern(&["gpt2"]));
    let ranks = ranks.unwrap().ranks();
    assert_eq!(
        [256, 257, 258, 97, 300].map(|id| ranks[id]),
        [Some(2), Some(0), Some(1), None, None]
    );
}
