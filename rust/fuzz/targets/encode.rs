//! Encoding against a simple reference: any vocabulary, either rule, any text.
#![no_main]

use std::collections::HashMap;
use std::sync::LazyLock;

use bytepair::{Pattern, Splitter, Text, Tokenizer, Vocabulary};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Case<'a> {
    pattern: u8,
    /// The tokens of a vocabulary of ranks, used if there is no list of merges.
    tokens: Vec<&'a [u8]>,
    /// A list of merges: the indices of two tokens each; see `listed`.
    merges: Option<Vec<(u8, u8)>>,
    ignore_merges: bool,
    texts: Vec<&'a [u8]>,
}

/// Patterns, each with its reference splitter. Only patterns that have a scanner: compiling others
/// would take most of the time.
static PATTERNS: LazyLock<Vec<(Pattern, Splitter)>> = LazyLock::new(|| {
    let patterns = ["gpt2", "gpt4", "gpt4o", "qwen2"].map(|name| Pattern::new(name).unwrap());
    patterns.map(|pattern| (pattern.clone(), Splitter::by_regex(&pattern).unwrap())).into()
});

type Ids = HashMap<Vec<u8>, u32>;

/// The ids of a pretoken. Before each merge, all adjacent pairs are searched for the lowest rank.
fn merged(pretoken: &[u8], ids: &Ids, rank: impl Fn(&[u8], &[u8]) -> Option<u32>) -> Vec<u32> {
    let mut parts: Vec<Vec<u8>> = pretoken.iter().map(|&byte| vec![byte]).collect();
    let best = |parts: &[Vec<u8>]| {
        let ranks = parts.windows(2).enumerate();
        ranks.filter_map(|(at, two)| Some((rank(&two[0], &two[1])?, at))).min()
    };
    while let Some((_, at)) = best(&parts) {
        let right = parts.remove(at + 1);
        parts[at].extend(right);
    }
    parts.iter().map(|part| ids[part]).collect()
}

/// The tokens, and the merges as pairs of indices into the tokens.
fn listed(case: &Case<'_>) -> (Vec<Vec<u8>>, Vec<(u32, u32)>) {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut merges = Vec::new();
    match &case.merges {
        None => {
            for token in &case.tokens {
                if token.len() > 1 && !tokens.iter().any(|other| other == token) {
                    tokens.push(token.to_vec());
                }
            }
        }
        Some(pairs) => {
            for &(left, right) in pairs {
                // Half of the values select one of the newest tokens, so that these merge again.
                let [left, right] = [left, right].map(|at| match usize::from(at) {
                    at @ 0..128 => at,
                    at => tokens.len() - 1 - (at - 128),
                });
                let token = [&*tokens[left], &*tokens[right]].concat();
                let pair = (left as u32, right as u32);
                if token.len() <= 100 && !merges.contains(&pair) {
                    merges.push(pair);
                    if !tokens.contains(&token) {
                        tokens.push(token);
                    }
                }
            }
        }
    }
    (tokens, merges)
}

fuzz_target!(|case: Case<'_>| {
    let (tokens, merges) = listed(&case);
    let ids: Ids = tokens.iter().cloned().zip(0..).collect();
    let vocabulary = Vocabulary::new(tokens.iter().cloned().zip(0..), []).unwrap();
    let whole = case.merges.is_none() || case.ignore_merges;
    let ranks: HashMap<(u32, u32), u32> = merges.iter().copied().zip(0..).collect();
    let rank = |left: &[u8], right: &[u8]| match case.merges {
        None => ids.get(&[left, right].concat()).copied(),
        Some(_) => ranks.get(&(ids[left], ids[right])).copied(),
    };
    let (pattern, reference) = &PATTERNS[usize::from(case.pattern) % PATTERNS.len()];
    let tokenizer = match case.merges {
        None => Tokenizer::from_ranks(vocabulary, pattern.clone()),
        Some(_) => Tokenizer::from_merges(vocabulary, merges.clone(), whole, pattern.clone()),
    };
    let tokenizer = tokenizer.unwrap();
    for text in case.texts {
        let text = String::from_utf8_lossy(text);
        let mut expected = Vec::new();
        let sink = |pretoken: &str| match ids.get(pretoken.as_bytes()) {
            Some(&id) if whole => expected.push(id),
            _ => expected.extend(merged(pretoken.as_bytes(), &ids, rank)),
        };
        reference.for_each(&text, sink).unwrap();
        check(&tokenizer, &text, &expected);
    }
});

/// Check encoding with cold and warm caches and with the text itself cached, counting the ids of
/// UTF-16, and decoding.
fn check(tokenizer: &Tokenizer, text: &str, expected: &[u32]) {
    for time in ["the first time", "the second time", "the third time"] {
        assert_eq!(tokenizer.encode(text).unwrap(), expected, "{time}");
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    let count = tokenizer.count_text(&Text::Utf16(&units), tokenizer.plain());
    assert_eq!(count.unwrap(), expected.len());
    assert_eq!(tokenizer.decode_bytes(expected).unwrap(), text.as_bytes());
}
