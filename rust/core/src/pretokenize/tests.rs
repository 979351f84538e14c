//! Compares every tier with the regular-expression engine.

use std::sync::LazyLock;

use super::ends::{Boundary, PretokenEnds};
use super::*;
use crate::text::Text;
use proptest::prelude::*;

/// The named patterns, and recognised variations of them.
fn patterns() -> Vec<Pattern> {
    let names = Pattern::names().filter(|name| *name != "kimi"); // which has no scanner
    let mut patterns: Vec<Pattern> = names.filter_map(Pattern::named).collect();
    let llama3 = Pattern::named("llama3").unwrap();
    patterns.push(Pattern::from_regex(&llama3.steps()[0].replace("{1,3}", "+")));
    patterns.push(Pattern::from_regex(&llama3.steps()[0].replace("{1,3}", "{1,5}")));
    patterns
}

fn split(splitter: &Splitter, text: &str) -> Vec<usize> {
    let (mut all, mut ends, mut start) = (Vec::new(), PretokenEnds::default(), 0);
    while start < text.len() {
        splitter.fill(text, start, &mut ends).unwrap();
        all.extend_from_slice(ends.as_slice());
        start = *all.last().unwrap();
    }
    all
}

/// All faster splitters of each pattern, with the slow one.
static SPLITTERS: LazyLock<Vec<(Pattern, Vec<Splitter>, Splitter)>> = LazyLock::new(|| {
    let all = patterns().into_iter().map(|pattern| {
        let mut fast = Splitter::every_scanner(&pattern.steps()[0]);
        assert!(fast.len() > 1 && fast.iter().any(|splitter| splitter.tier() == "scalar"));
        fast.push(
            Splitter::by_table(&pattern.steps()[0]).unwrap().expect("supported by an automaton"),
        );
        let slow = Splitter::by_regex(&pattern).unwrap();
        (pattern, fast, slow)
    });
    all.collect()
});

/// Check that all splitters of each pattern agree on a text.
fn check(text: &str) {
    for (pattern, fast, slow) in &*SPLITTERS {
        let expected = split(slow, text);
        for fast in fast {
            let name = pattern.name().unwrap_or(&pattern.steps()[0]);
            assert!(split(fast, text) == expected, "{} {name} {text:?}", fast.tier());
        }
    }
}

/// One character of every kind that a pattern can distinguish, in every length of UTF-8.
const KINDS: [char; 28] = [
    'a', 'Z', 'é', 'Ñ', 'ǅ', 'ʰ', '中', '\u{301}', '\u{94D}', '7', '٣', '½', ' ', '\t', '\u{A0}',
    '\u{3000}', '\n', '\r', '\'', 's', 'L', 'v', 'e', 'ſ', '/', '!', '…', '😀',
];

#[test]
fn all_short_strings_of_every_kind() {
    // All kinds in texts of length three; the kinds that the rules mention in texts of length four.
    let few: Vec<char> = "aZ中\u{301}7 \n'sl/!".chars().collect();
    for (kinds, length) in [(&KINDS[..], 3), (&few[..], 4)] {
        for number in 0..kinds.len().pow(length) {
            let text: String = (0..length)
                .map(|digit| kinds[number / kinds.len().pow(digit) % kinds.len()])
                .collect();
            check(&text);
        }
    }
}

/// A word of letters and marks of a few kinds, longer than a block.
fn long_word() -> impl Strategy<Value = String> {
    let letter = |kind: usize| prop::sample::select(vec![KINDS[kind], '中', '\u{94D}']);
    let letters =
        (0usize..9).prop_flat_map(move |kind| prop::collection::vec(letter(kind), 15..80));
    letters.prop_map(String::from_iter)
}

fn hard_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(&KINDS[..]).prop_map(String::from),
        2 => (prop::sample::select(&KINDS[..]), 1usize..80)
            .prop_map(|(c, n)| c.to_string().repeat(n)),
        2 => long_word(),
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
        check(&text);
    }
}

/// Check that cutting a text where a pretoken always ends does not change its pretokens.
fn check_cuts(splitter: &Splitter, text: &str) {
    let whole = split(splitter, text);
    let mut characters = text.char_indices().peekable();
    while let Some((_, before)) = characters.next() {
        let Some(&(cut, at)) = characters.peek() else { continue };
        if splitter.boundary(before, at) == Boundary::End {
            let (left, right) = text.split_at(cut);
            let mut parts = split(splitter, left);
            parts.extend(split(splitter, right).iter().map(|end| end + cut));
            assert_eq!(parts, whole, "{} on {text:?} at {cut}", splitter.tier());
        }
    }
}

/// All texts of `length` of the given characters.
fn texts(characters: &[char], length: u32) -> impl Iterator<Item = String> {
    let count = characters.len();
    (0..count.pow(length)).map(move |number| {
        (0..length).map(|digit| characters[number / count.pow(digit) % count]).collect()
    })
}

#[test]
fn cuts_change_no_pretoken_in_all_short_strings() {
    let few: Vec<char> = "aZ中\u{301}7 \n'sl/!".chars().collect();
    for (_, fast, _) in &*SPLITTERS {
        let (plain, table) = (&fast[fast.len() - 2], &fast[fast.len() - 1]);
        assert_eq!((plain.tier(), table.tier()), ("scalar", "table"));
        for text in texts(&few, 5).chain(texts(&KINDS, 3)) {
            check_cuts(plain, &text);
        }
        texts(&few, 4).for_each(|text| check_cuts(table, &text));
    }
}

/// An automaton considers all states at a position, so it proves that the cuts of the scanners are
/// right for any surrounding text.
#[test]
fn cuts_of_scanners_are_proved_by_automata() {
    let all: Vec<char> = (0..0x11_0000).filter_map(char::from_u32).collect();
    for (_, fast, _) in &*SPLITTERS {
        let (scanner, table) = (&fast[0], &fast[fast.len() - 1]);
        let check = |before, at| {
            let proved = table.boundary(before, at) == Boundary::End;
            assert!(proved || scanner.boundary(before, at) != Boundary::End, "{before:?} {at:?}");
        };
        for kind in KINDS {
            for &c in &all {
                check(kind, c);
                check(c, kind);
            }
        }
    }
}

proptest! {
    #[test]
    fn cuts_change_no_pretoken(text in hard_text()) {
        for (_, fast, _) in &*SPLITTERS {
            for splitter in fast {
                check_cuts(splitter, &text);
            }
        }
    }
}

fn in_steps(steps: &[&str]) -> Pattern {
    Pattern::in_steps(steps.to_vec()).unwrap()
}

/// Patterns in steps: some of published models, and other hard ones.
const STEPS: [&[&str]; 8] = [
    &[
        r"\p{N}{1,3}",
        r"[一-龥぀-ゟ゠-ヿ]+",
        r"[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥]+", r"\p{N}"],
    &[r"\p{N}", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"],
    &[r"\s+(?!\S)|\n", r"a+$|a", r"\p{L}+"],
    &[r"a !|7", r"\p{L}+|\s"],
    &[r"\p{L}+", r"(?s:.)+"],
    &[r"a(?=!)|l!", r"\p{L}+|!"],
    &[r"'", r"s$|\p{L}+", r"!"],
];

#[test]
fn cuts_change_no_pretoken_of_patterns_in_steps() {
    let few: Vec<char> = "aZ中\u{301}7 \n'sl/!".chars().collect();
    for steps in STEPS {
        for splitter in [Splitter::new, Splitter::unjoined] {
            let splitter = splitter(&in_steps(steps)).unwrap();
            texts(&few, 4).chain(texts(&KINDS, 3)).for_each(|text| check_cuts(&splitter, &text));
        }
    }
}

#[test]
fn every_script_has_cuts() {
    let patterns = Pattern::names().filter_map(Pattern::named);
    for pattern in patterns.chain(STEPS[..2].iter().map(|steps| in_steps(steps))) {
        let splitter = Splitter::new(&pattern).unwrap();
        for text in [
            "words and words",
            "中文字符，没有空格。",
            "ไทย ไทย",
            "日本語、です。",
            "слово, слово",
            "हिन्दी में",
            "한국어 텍스트",
            "f(x)",
            "1\n2",
            "λόγος·",
            "عربي، نص",
        ] {
            assert!(splitter.cut(text, 0).is_some(), "{text:?} {:?}", pattern.regex());
        }
    }
}

/// A long text is cut at the first possible position, even if that is far away.
#[test]
fn long_texts_are_cut_at_a_distant_position() {
    let text = ["中".repeat(10_000), "a b".to_owned(), "中".repeat(10_000)].concat();
    let expected = text.find(" b");
    for (_, fast, _) in &*SPLITTERS {
        let scanner = &fast[0];
        assert_eq!(scanner.cut_long(&Text::Utf8(&text), 1000), expected);
        assert_eq!(scanner.cut_long(&Text::Utf8(&text), text.len() / 2 + 5), None);
    }
}

/// Check that all pretokens of a text except the last two stay the same, whatever follows.
fn check_certain(text: &str) {
    for (pattern, fast, _) in &*SPLITTERS {
        let whole = split(&fast[0], text);
        for (cut, _) in text.char_indices() {
            let part = split(&fast[0], &text[..cut]);
            let certain = &part[..part.len().saturating_sub(2)];
            assert!(whole.starts_with(certain), "{:?} {text:?} at {cut}", pattern.name());
            for splitter in [&fast[0], &fast[fast.len() - 1]] {
                let certain = splitter.certain(&text[..cut]).unwrap();
                assert!(certain == 0 || whole.contains(&certain));
            }
        }
    }
}

#[test]
fn a_continuation_changes_at_most_two_pretokens() {
    let few: Vec<char> = "aZ中\u{301}7 \n'sl/!".chars().collect();
    texts(&few, 4).for_each(|text| check_certain(&text));
}

proptest! {
    #[test]
    fn a_continuation_changes_at_most_two_pretokens_of_random_texts(text in hard_text()) {
        check_certain(&text);
    }
}

/// Each hard case at every position of a block, after words and after spaces.
#[test]
fn every_alignment() {
    let spots = [
        "it's's",
        "  \n  x",
        "don'T",
        "12345",
        "\u{A0}\u{3000}x",
        "。。你",
        "!\n\n x",
        "aB",
        "ÀB",
        "\n//\n/",
        "e\u{301}X",
        "'re",
        "\t\t",
        "x \u{3000}",
        "½½½½",
        " 'll",
        "\r\n \r\n",
    ];
    for spot in spots {
        for filler in ["a", " ", "é", "\n", "7", "!", "中"] {
            for length in 0..=70 {
                check(&(filler.repeat(length) + spot + " tail of the text, 12 more's"));
            }
        }
    }
}

#[test]
fn runs_without_a_split_point_are_linear() {
    for (_, fast, _) in &*SPLITTERS {
        for piece in [" ", "a", "A", "\n", " \n", "'", "7", "中", "\u{301}", "aB", "\u{A0}"] {
            let text = piece.repeat(1 << 18) + "x";
            for fast in fast {
                assert_eq!(split(fast, &text).last(), Some(&text.len()));
            }
        }
    }
}

/// One pretoken for every code point: each behaves like the representatives of its class.
#[test]
fn every_code_point_in_context() {
    let all: Vec<char> = (0..0x11_0000).filter_map(char::from_u32).collect();
    for context in ["aXb A", " X1", "!X\n"] {
        for part in all.chunks(1024) {
            let in_context = |c: &char| context.replace('X', &c.to_string()) + "\n.\n";
            check(&part.iter().map(in_context).collect::<String>());
        }
    }
}

#[test]
fn other_patterns_are_split_by_an_automaton_or_the_engine() {
    let tier = |pattern: &str| Splitter::new(&Pattern::from_regex(pattern)).unwrap().tier();
    assert_eq!(tier(r"\w+|[^\w\s]+|\s+"), "table");
    assert_eq!(tier(r"\w++(?!x)|."), "table");
    assert_eq!(tier(r"\w+(?!xy)|."), "regex");
    assert_eq!(tier(r"\b\w+"), "regex");
}

/// Each step splits the pieces of the previous one as separate texts.
#[test]
fn patterns_in_steps() {
    let pretokens = |steps: &[&str], text: &str| {
        let splitter = Splitter::new(&in_steps(steps)).unwrap();
        let unjoined = Splitter::unjoined(&in_steps(steps)).unwrap();
        let slow = Splitter::by_regex(&in_steps(steps)).unwrap();
        assert_eq!(split(&splitter, text), split(&slow, text));
        assert_eq!(split(&unjoined, text), split(&slow, text));
        let mut all = Vec::new();
        splitter.for_each(text, |pretoken| all.push(pretoken.to_owned())).unwrap();
        (splitter.tier(), all)
    };
    let found = ["ab", "1", "2", " ", "c"].map(str::to_owned).to_vec();
    assert_eq!(pretokens(&[r"\d", r"\w+|\s"], "ab12 c"), ("table", found));
    // The second step sees the end of a text where the first one cut.
    let found = ["a", "  ", "1", " ", "b"].map(str::to_owned).to_vec();
    assert_eq!(pretokens(&[r"\d", r"\s+(?!\S)|\s"], "a  1 b"), ("table", found));
    let found = ["a", ".", "1", ".", "b"].map(str::to_owned).to_vec();
    assert_eq!(pretokens(&[r"\.", r"\d", r"x"], "a.1.b"), ("table", found));
    // More than the next character decides where the first step ends.
    let found = ["aab", "a", "a", "c"].map(str::to_owned).to_vec();
    assert_eq!(pretokens(&["a+b", "c|a+b|a"], "aabaac"), ("steps", found));
    let long = "ab1 ".repeat(5000);
    assert_eq!(pretokens(&[r"(?s:.)+", r"\d", r"[a-z]+"], &long).1.len(), 15_000);
}

#[test]
fn an_automaton_determines_where_a_text_may_be_cut() {
    let cut = |pattern: &str, text: &str, from| {
        Splitter::by_table(pattern).unwrap().unwrap().cut(text, from)
    };
    let words = r" ?\p{L}+|\p{N}+|\s+(?!\S)|\s";
    assert_eq!(cut(words, "eins zwei drei", 5), Some(9));
    assert_eq!(cut(words, "éé zwei", 1), Some(4));
    assert_eq!(cut(words, "a  b", 1), None);
    assert_eq!(cut(words, "abc", 3), None);
    assert_eq!(cut(words, "abc", 9), None);
    assert_eq!(cut(r"(?s).+", "eins zwei drei", 0), None);
    // Text without a match stays in one pretoken, and so does text that a longer match may include.
    assert_eq!(cut(r"a+", "a..b..", 1), None);
    assert_eq!(cut(r"ab ab|a|b| ", "ab ab ab", 0), None);
}

/// Backtracking would take longer than the age of the universe.
#[test]
fn no_pattern_backtracks_forever() {
    let text = "a".repeat(50);
    for pattern in [r"(a+)+$|(a+)+b", r"(?:a|a)*(?:a|a)*(?:a|a)*b|a+", r"(?:a+)+(?!a)x|a+"] {
        let splitter = Splitter::new(&Pattern::from_regex(pattern)).unwrap();
        assert_eq!(splitter.tier(), "table");
        assert_eq!(split(&splitter, &text), [50], "{pattern}");
    }
    for pattern in [r"(a*)*\1b", r"(?:a|aa)+(?!a|$|xy)b?", r"(\w+\s?)+\b(?!\w|$)"] {
        let splitter = Splitter::new(&Pattern::from_regex(pattern)).unwrap();
        assert_eq!(splitter.tier(), "regex");
        let error = splitter.for_each(&text, |_| ()).unwrap_err();
        assert!(matches!(error, crate::Error::Split { at: 0, .. }), "{error}");
        assert!(error.to_string().contains("backtrack"), "{error}");
    }
    let splitter = Splitter::new(&in_steps(&["x", r"(a*)*\1b"])).unwrap();
    let error = splitter.for_each(&format!("xx{text}"), |_| ()).unwrap_err();
    assert!(matches!(error, crate::Error::Split { at: 2, .. }), "{error}");
}
