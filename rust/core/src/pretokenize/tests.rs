//! Every tier against the regular-expression engine.

use super::*;
use proptest::prelude::*;

/// The named patterns, and variations of them that are recognised.
fn patterns() -> Vec<Pattern> {
    let mut patterns: Vec<Pattern> = Pattern::names().filter_map(Pattern::named).collect();
    let llama3 = Pattern::named("llama3").unwrap();
    patterns.push(Pattern::new(&llama3.regex().replace("{1,3}", "+")));
    patterns.push(Pattern::new(&llama3.regex().replace("{1,3}", "{1,5}")));
    patterns
}

fn split(splitter: &Splitter, text: &str) -> Vec<usize> {
    let (mut all, mut ends, mut start) = (Vec::new(), Ends::default(), 0);
    while start < text.len() {
        splitter.fill(text, start, &mut ends).unwrap();
        all.extend_from_slice(ends.as_slice());
        start = *all.last().unwrap();
    }
    all
}

/// Pairs of the fast and the slow splitter of each pattern.
fn splitters() -> Vec<(Pattern, Splitter, Splitter)> {
    patterns()
        .into_iter()
        .map(|pattern| {
            let fast = Splitter::new(&pattern).unwrap();
            let slow = Splitter::by_regex(&pattern).unwrap();
            assert_eq!(fast.tier(), "scan");
            (pattern, fast, slow)
        })
        .collect()
}

/// One character of every kind that a pattern can tell apart, and twins of other lengths.
const KINDS: [char; 28] = [
    'a', 'Z', 'é', 'Ñ', 'ǅ', 'ʰ', '中', '\u{301}', '\u{94D}', '7', '٣', '½', ' ', '\t', '\u{A0}',
    '\u{3000}', '\n', '\r', '\'', 's', 'L', 'v', 'e', 'ſ', '/', '!', '…', '😀',
];

#[test]
fn all_short_strings_of_every_kind() {
    let splitters = splitters();
    // Of length three over all kinds; of length four over those that rules are about.
    let few: Vec<char> = "aZ中\u{301}7 \n'sl/!".chars().collect();
    for (kinds, length) in [(&KINDS[..], 3), (&few[..], 4)] {
        for number in 0..kinds.len().pow(length) {
            let text: String = (0..length)
                .map(|place| kinds[number / kinds.len().pow(place) % kinds.len()])
                .collect();
            for (pattern, fast, slow) in &splitters {
                assert_eq!(split(fast, &text), split(slow, &text), "{text:?} {pattern:?}");
            }
        }
    }
}

fn hard_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(&KINDS[..]).prop_map(String::from),
        2 => (prop::sample::select(&KINDS[..]), 1usize..80)
            .prop_map(|(c, n)| c.to_string().repeat(n)),
        2 => prop::sample::select(vec![
            "don't", "I'LL", "we've", " the", "HTTPServer", "\r\n", "   ", "\n    ", " \n\t\n ",
            "//\n/", "...", "(\"", "1234567", "it's's", "'sam", " 's", "''s", "你好，世界",
        ]).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn random_texts(text in hard_text()) {
        for (pattern, fast, slow) in &splitters() {
            prop_assert_eq!(split(fast, &text), split(slow, &text), "{:?} {:?}", text, pattern);
        }
    }
}

#[test]
fn runs_without_a_split_point_are_linear() {
    for (_, fast, _) in &splitters() {
        for piece in [" ", "a", "A", "\n", " \n", "'", "7", "中", "\u{301}", "aB", "\u{A0}"] {
            let text = piece.repeat(1 << 20) + "x";
            assert_eq!(split(fast, &text).last(), Some(&text.len()));
        }
    }
}

/// One pretoken for every code point: nothing behaves unlike the representatives of its class.
#[test]
fn every_code_point_in_context() {
    let all: Vec<char> = (0..0x11_0000).filter_map(char::from_u32).collect();
    for (pattern, fast, slow) in &splitters() {
        for context in ["aXb A", " X1", "!X\n"] {
            for part in all.chunks(4096) {
                let text: String =
                    part.iter().map(|c| context.replace('X', &c.to_string()) + "\n.\n").collect();
                let place = part[0] as u32;
                assert!(
                    split(fast, &text) == split(slow, &text),
                    "U+{place:04X}.. in {context:?}, {pattern:?}"
                );
            }
        }
    }
}
