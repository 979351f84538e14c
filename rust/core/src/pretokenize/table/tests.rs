//! Compares the automaton with the regular-expression engine, and its fast run with its plain
//! steps.

use super::*;
use crate::pretokenize::Pattern;
use crate::pretokenize::splitter::{LOW_LIMIT, ends_by_search, fill_by_search};
use crate::search::{Budget, Expression};

/// Patterns in which the order of preference decides, and others that are hard to get right.
const HARD: [&str; 54] = [
    r"a|ab",
    r"ab|a",
    r"(?:a|ab)(?:c|bcd)",
    r"(?:a|ab)(?:c|bcd)(?:d*)",
    r"(a|ab)(bcd|c)(d*)|d",
    r"a+?",
    r"a+?b|a",
    r"a*?b",
    r"a??b|.",
    r"(?:a??b)+|.",
    r"a{2,3}",
    r"a{2,3}?",
    r"a{2,3}?b|a",
    r"(?:ab){1,2}|a",
    r"(?:a|b){2,}c|.",
    r"(?:a*b)*c|.",
    r"\s+(?!\S)|\s+",
    r"\s+(?!\S)|\s+|\S+",
    r"\s+(?!\S)|[^\s]+",
    r"\S+|\s+(?!\S)",
    r"[^\s]+",
    r".",
    r"(?s).",
    r"(?s).+",
    r".+\n?|\n",
    r"x*",
    r"x*?",
    r"x*?y|x",
    r"",
    r"|a",
    r"a|",
    r"\d+",
    r"\d+x",
    r"\d+x|\d",
    r"\w+|[^\w\s]+",
    r"\w+|[^\w\s]|\s+(?=\S)|\s+",
    r"a+$|a",
    r"\s+$|\s",
    r"(?m)a+$|.",
    r"[a-c]++[cd]|.",
    r"[a-c]*+d|.",
    r"a?+ab|b",
    r"a{1,2}+b|.",
    r"a{2}+b|.",
    r"(?>ab)c|.",
    r"a(?>b|bc)|c",
    r"(?i)k+|ß+",
    r"(?i:'s|'t|'ll)|'|\p{L}+",
    r"a(?=b)|b(?!b)|.",
    r"(?=a)a+|(?!a)b+",
    r"a+(?=b|$)|.",
    r"(?!$)a*|b",
    r"[\p{L}--[a-c]]+|[a-c&&b-z]+|.",
    r"\p{Lu}\p{Ll}*|\p{Ll}+|\p{N}{1,3}(?=(?:\s|$))|.",
];

/// Patterns of the kinds that tokenizers use, which no scanner recognises.
const PUBLISHED: [&str; 5] = [
    // Like GPT-2, with single digits.
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    // Han characters separately, words divided by case.
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    // Words after punctuation, like DeepSeek.
    r"\p{N}{1,3}|[一-龥぀-ゟ゠-ヿ]+|[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    // A list of punctuation marks, like Bloom.
    r" ?[^\s|.,!?…。，、।۔،]+|[.,!?…。，、।۔،]|\s+",
    // Marks belong to letters.
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

fn table(pattern: &str) -> Option<TableSplitter> {
    TableSplitter::new(&[pattern])
}

fn all_ends(text: &str, fill: impl Fn(usize, &mut PretokenEnds)) -> Vec<usize> {
    let (mut all, mut ends, mut start) = (Vec::new(), PretokenEnds::default(), 0);
    while start < text.len() {
        fill(start, &mut ends);
        all.extend_from_slice(ends.as_slice());
        ends.clear();
        assert!(all.last() > Some(&start), "no progress at {start} of {text:?}");
        start = all[all.len() - 1];
    }
    all
}

/// Check that the fast run, the plain steps and the engine agree, unless the engine gives up.
fn check(pattern: &str, table: &TableSplitter, oracle: &Expression, text: &str) {
    let plain = all_ends(text, |start, ends| {
        ends.push(table.step(text, start, &mut DeadEnds::default()).unwrap());
    });
    let fast = all_ends(text, |start, ends| table.fill(text, start, ends, None).unwrap());
    assert_eq!(fast, plain, "{pattern:?} on {text:?}: fast and plain differ");
    let mut gave_up = false;
    let engine = std::cell::RefCell::new(&mut gave_up);
    let slow = all_ends(text, |start, ends| {
        if fill_by_search(oracle, text, start, ends, &mut Budget::new(text.len())).is_err() {
            **engine.borrow_mut() = true;
            ends.clear();
            ends.push(text.len());
        }
    });
    assert!(gave_up || plain == slow, "{pattern:?} on {text:?}: {plain:?}, engine {slow:?}");
}

/// All texts of `length` of the given characters.
fn texts(characters: &[char], length: u32) -> impl Iterator<Item = String> {
    let count = characters.len();
    (0..count.pow(length)).map(move |number| {
        (0..length).map(|digit| characters[number / count.pow(digit) % count]).collect()
    })
}

/// Check all short texts of the sample characters, at most `most` of each length, and random texts.
fn check_all(pattern: &str, most: usize) {
    let table = table(pattern).unwrap_or_else(|| panic!("{pattern:?} is rejected"));
    let oracle = Expression::with_backtrack_limit(pattern, LOW_LIMIT).unwrap();
    assert_eq!(table.difference(|text| ends_by_search(&oracle, text).ok()), None, "{pattern:?}");
    let samples: Vec<char> = table.classes.samples.iter().map(|sample| sample[0]).collect();
    for length in (1..=10).take_while(|&length| samples.len().pow(length) <= most) {
        texts(&samples, length).for_each(|text| check(pattern, &table, &oracle, &text));
    }
    let both = table.classes.samples.concat();
    for text in long_texts(both).chain([samples.iter().collect::<String>().repeat(200)]) {
        check(pattern, &table, &oracle, &text);
    }
}

#[test]
fn hard_patterns_on_all_short_texts() {
    for pattern in HARD {
        check_all(pattern, 30_000);
    }
}

#[test]
fn published_patterns_on_all_short_texts() {
    let named = Pattern::names().filter_map(Pattern::named);
    let named: Vec<String> = named.map(|pattern| pattern.steps()[0].clone()).collect();
    for pattern in named.iter().map(String::as_str).chain(PUBLISHED) {
        check_all(pattern, 5_000);
    }
}

/// Patterns whose matches are as long as lines: patterns of superwords, and similar ones.
const LINES: [&str; 5] = [
    concat!(
        r"\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]{2,}[\r\n/]*|\s*[\r\n]| +(?!\S)",
        r"|(?:[\p{L}\p{M}]| ?[^\s\p{L}\p{M}\p{N}](?![^\s\p{L}\p{M}\p{N}])",
        r"| (?=[\p{L}\p{M}\p{N}])|[^\S \r\n])+(?:\s*[\r\n])?",
    ),
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)",
    r"[^\n]*\n",
    r"(?:[A-Za-z]| [A-Za-z])+|[^A-Za-z]",
    r"(?:[a-z]+ )+q|[a-z ]{2}|.",
];

#[test]
fn long_matches_end_where_those_of_the_expression_do() {
    let parts = ["the way", " ", "of", ". ", ", ", "(so", "\"", "é", "/", "12", "\n", "q", "  "];
    let mut random = Random(7);
    for pattern in LINES {
        let table = table(pattern).unwrap_or_else(|| panic!("{pattern:?} is rejected"));
        let oracle = Expression::with_backtrack_limit(pattern, LOW_LIMIT).unwrap();
        for round in 0..400 {
            // With few different parts, there are long texts without ends.
            let kinds = 2 + round % (parts.len() - 1);
            let count = random.below(200);
            let text: String = (0..count).map(|_| parts[random.below(kinds)]).collect();
            check(pattern, &table, &oracle, &text);
        }
    }
}

#[test]
fn unsupported_patterns_are_rejected() {
    for pattern in [
        r"^a",
        r"(?m)^a",
        r"\Aa",
        r"\ba",
        r"a\Z",
        r"(?<=a)b",
        r"(?<!a)b",
        r"a(?=bc)",
        r"a(?!b+)",
        r"(a)\1",
        r"(?:a?)*b",
        r"(?:a*)+b",
        r"(?>a|ab)c",
        r"(?:ab)*+a",
        r"(?>a+?)b",
        r"a\Kb",
        r"\R",
        r"(?:[ab]*a[ab]{12})|.",
        r"a{5000}",
        "(",
    ] {
        assert!(table(pattern).is_none(), "{pattern:?}");
    }
}

#[test]
fn failed_searches_in_a_long_text_take_linear_time() {
    let text = "1".repeat(200_000);
    let ends = |pattern: &str| {
        let table = table(pattern).unwrap();
        all_ends(&text, |start, ends| table.fill(&text, start, ends, None).unwrap())
    };
    assert_eq!(ends(r"\d+x"), [text.len()]);
    assert_eq!(ends(r"\d+x|\d"), (1..=text.len()).collect::<Vec<_>>());
    assert_eq!(ends(r"\d+x|\d{2}x?"), (2..=text.len()).step_by(2).collect::<Vec<_>>());
    assert_eq!(ends(r"(?:\d+)+x|(?:\d+)+"), [text.len()]);
}

/// Random patterns: characters, alternatives, repetitions of every kind, lookahead.
mod random_patterns {
    use super::*;

    const ATOMS: [&str; 20] = [
        "a",
        "b",
        "ab",
        " ",
        r"\n",
        "é",
        "[ab]",
        "[^a]",
        r"\s",
        r"\S",
        r"\w",
        ".",
        r"\p{L}",
        "(?i:a)",
        "(?i:k)",
        "(?s:.)",
        r"\d",
        "[b-é]",
        r"[^\s\p{L}]",
        "中",
    ];
    const QUANTIFIERS: [&str; 14] = [
        "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{1,3}?", "{2,}", "*+", "++", "?+",
        "{1,2}+",
    ];
    const LOOKS: [&str; 8] =
        [r"(?!\S)", r"(?=\S)", "(?!a)", "(?=b)", "$", "(?!$)", r"(?=\s|$)", "(?m:$)"];

    fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
        from[random.below(from.len())]
    }

    fn pattern(random: &mut Random, depth: usize) -> String {
        let count = 1 + random.below(3);
        let parts: Vec<String> = (0..count).map(|_| concat(random, depth)).collect();
        parts.join("|")
    }

    fn concat(random: &mut Random, depth: usize) -> String {
        (0..=random.below(3)).map(|_| part(random, depth)).collect()
    }

    fn part(random: &mut Random, depth: usize) -> String {
        let atom = match random.below(10) {
            0 => return pick(random, &LOOKS).to_owned(),
            1 | 2 if depth > 0 => format!("(?:{})", pattern(random, depth - 1)),
            3 if depth > 0 => format!("({})", pattern(random, depth - 1)),
            4 if depth > 0 => return format!("(?>{})", pattern(random, depth - 1)),
            _ => pick(random, &ATOMS).to_owned(),
        };
        if random.below(2) == 0 {
            atom
        } else {
            format!("(?:{atom}){}", pick(random, &QUANTIFIERS))
        }
    }

    /// Check that the two parts of a text have the pretokens of the whole if they are divided at a
    /// position of kind `End`; and at one of kind `Free`, except for uncovered text that spans it.
    fn check_boundaries(pattern: &str, table: &TableSplitter, text: &str) {
        let ends =
            |text: &str| all_ends(text, |start, ends| table.fill(text, start, ends, None).unwrap());
        let whole = ends(text);
        let mut characters = text.char_indices().peekable();
        while let Some((_, before)) = characters.next() {
            let Some(&(cut, at)) = characters.peek() else { continue };
            let boundary = table.boundary(before, at);
            let mut parts = ends(&text[..cut]);
            if boundary == Boundary::Free && !whole.contains(&cut) {
                parts.pop();
            }
            parts.extend(ends(&text[cut..]).iter().map(|end| end + cut));
            assert!(
                boundary == Boundary::Unknown || parts == whole,
                "{pattern:?} on {text:?} at {cut}"
            );
        }
    }

    #[test]
    fn agree_with_the_engine() {
        let mut random = Random(0x2545_F491_4F6C_DD1D);
        let mut accepted = 0;
        for _ in 0..3000 {
            let pattern = pattern(&mut random, 2);
            let Some(table) = table(&pattern) else { continue };
            let Ok(oracle) = Expression::with_backtrack_limit(&pattern, LOW_LIMIT) else {
                continue;
            };
            accepted += 1;
            let samples: Vec<char> = table.classes.samples.iter().map(|s| s[0]).collect();
            for length in (1..=8).take_while(|&length| samples.len().pow(length) <= 600) {
                for text in texts(&samples, length) {
                    check(&pattern, &table, &oracle, &text);
                    check_boundaries(&pattern, &table, &text);
                }
            }
            for text in long_texts(table.classes.samples.concat()).take(12) {
                check(&pattern, &table, &oracle, &text);
                check_boundaries(&pattern, &table, &text);
            }
        }
        assert!(accepted > 1000, "{accepted}");
    }

    /// A step that an automaton for several may have: a run of one class, or two of them.
    fn cut(random: &mut Random) -> String {
        let run = |random: &mut Random| {
            pick(random, &ATOMS).to_owned()
                + pick(random, &["", "+", "{1,2}", "{1,3}", "{2}", "*+"])
        };
        let first = run(random);
        if random.below(3) == 0 { [&first, "|", &run(random)].concat() } else { first }
    }

    #[test]
    fn steps_agree_with_the_engine() {
        let mut random = Random(0x1234_5678_9ABC_DEF1);
        let mut accepted = 0;
        for round in 0..6000 {
            let mut steps: Vec<String> = (0..=round % 2).map(|_| cut(&mut random)).collect();
            steps.push(pattern(&mut random, 1));
            let Some(table) = TableSplitter::new(&steps) else { continue };
            let oracles =
                steps.iter().map(|step| Expression::with_backtrack_limit(step, LOW_LIMIT));
            let Ok(oracles) = oracles.collect::<crate::error::Result<Vec<_>>>() else { continue };
            accepted += 1;
            let samples: Vec<char> = table.classes.samples.iter().map(|s| s[0]).collect();
            let short = (1..=8).take_while(|&length| samples.len().pow(length) <= 600);
            let short = short.flat_map(|length| texts(&samples, length));
            for text in short.chain(long_texts(table.classes.samples.concat()).take(12)) {
                let plain = all_ends(&text, |start, ends| {
                    ends.push(table.step(&text, start, &mut DeadEnds::default()).unwrap());
                });
                assert_eq!(table.ends(&text), plain, "{steps:?} on {text:?}");
                let slow = oracles.iter().try_fold(vec![text.len()], |ends, oracle| {
                    let mut start = 0;
                    let pieces = ends.into_iter().map(|end| {
                        let piece = start..end;
                        start = end;
                        let inside = ends_by_search(oracle, &text[piece.clone()])?;
                        Ok(inside.into_iter().map(move |end| piece.start + end).collect::<Vec<_>>())
                    });
                    Ok::<_, crate::Error>(
                        pieces.collect::<crate::error::Result<Vec<_>>>()?.concat(),
                    )
                });
                assert!(slow.is_err() || slow == Ok(plain), "{steps:?} on {text:?}: {slow:?}");
                check_boundaries(&steps.join(" then "), &table, &text);
            }
        }
        assert!(accepted > 1500, "{accepted}");
    }
}

#[test]
fn an_automaton_of_steps_starts_anew_only_where_the_start_of_a_piece_does_not_matter() {
    for (steps, is_joined) in [
        (&[r"\p{N}{1,3}", r"\p{N}+|[^\p{N}]+"][..], true),
        (&[r"\p{N}{1,3}", r"\p{N}{1,3}|\s"], true),
        (&[r"\p{N}{1,3}", r"\p{N}{2}|[^\p{N}]+"], false),
        (&[r"\p{N}+", r"\p{N}{2}|[^\p{N}]+"], true),
        (&["[ab]+", "[bc]", "x"], true),
        (&["a+b", "x"], false),
        (&["x"; MAX_STEPS], true),
        (&["x"; MAX_STEPS + 1], false),
    ] {
        assert_eq!(TableSplitter::new(steps).is_some(), is_joined, "{steps:?}");
    }
}

#[test]
fn patterns_that_match_all_text_are_known() {
    let gpt2 = Pattern::named("gpt2").unwrap();
    for (regex, all) in [
        (&*gpt2.steps()[0], true),
        (r"\p{L}+|[^\p{L}]", true),
        (r"a?\s|\S+", true),
        (r"\p{L}+", false),
        (r"\s{2}|\S", false),
        (r"(?!a)\s|\S", true),
        (r"\s(?!a)|\S", false),
        (r"(\s)\1|\S", false),
    ] {
        assert_eq!(matches_all(regex), all, "{regex}");
    }
}

#[test]
fn patterns_of_ascii_are_known() {
    for (regex, is) in
        [("[0-9][0-9]", true), ("a+|b", true), (r"\d", false), ("a ", false), ("(?!a)b", false)]
    {
        assert_eq!(is_of_ascii(regex), is, "{regex}");
    }
}

/// Only patterns that read on without a match need a limit of time, and they have it.
#[test]
fn reading_far_for_each_pretoken_ends_in_time() {
    for (pattern, far) in [
        ("a+b|a", true),
        (r#""[^"]*"|."#, true),
        ("(?:a{1000})*b|a", true),
        (r"\p{L}+|\d{1,3}| ?[^\s\p{L}\d]+|\s+(?!\S)|\s+", false),
        (r"\s?\S+|\s+", false),
    ] {
        assert_eq!(table(pattern).unwrap().reads_far, far, "{pattern}");
    }
    let table = table("(?:a{1000})*b|a").unwrap();
    let (text, mut ends) = ("a".repeat(200_000), PretokenEnds::default());
    let mut budget = Budget::new(0);
    let (mut start, mut result) = (0, Ok(()));
    while start < text.len() && result.is_ok() {
        ends.clear();
        result = table.fill(&text, start, &mut ends, Some(&mut budget));
        start = ends.as_slice().last().copied().unwrap_or(start);
    }
    assert!(result.unwrap_err().to_string().contains("takes too long"));
}
