//! The shape of the patterns that a scanner splits without a regular-expression engine.
//!
//! The published patterns are alternations of a few kinds of parts with small variations: which
//! characters may precede a word, how many digits form a pretoken, whether case divides words. A
//! [`PatternShape`] lists these variations. A pattern is recognised part by part, in order, so
//! unpublished combinations are recognised too. All other patterns are left to the other tiers.

use crate::pretokenize::unicode::{Class, class_of};

/// The variations among the recognised patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternShape {
    /// The characters that may precede a word.
    pub(super) prefix: Prefix,
    /// How contractions such as `'s` and `'ll` are split.
    pub(super) contraction: Contraction,
    /// The largest number of digits in a pretoken; `None` for no limit.
    pub(super) digits: Option<u8>,
    /// The characters after punctuation that belong to its pretoken.
    pub(super) tail: Tail,
    /// Whether white space at the end of the text is one pretoken despite newlines: `\s+$`.
    pub(super) whole_end: bool,
}

/// The character that may precede a word in its pretoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// A space, which may precede digits as well.
    Space,
    /// One character other than a letter, digit or newline. White space is then divided after its
    /// last newline: `\s*[\r\n]+`.
    Any,
}

/// How contractions are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contraction {
    /// As separate pretokens, in lower case only.
    Lower,
    /// As separate pretokens, in any case.
    AnyCase,
    /// At the end of a word, in any case. A word then ends before an upper-case letter that follows a
    /// lower-case one.
    Suffix,
}

/// The characters after punctuation that belong to its pretoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing.
    None,
    /// `[\r\n]*`.
    Newlines,
    /// `[\r\n/]*`.
    NewlinesAndSlashes,
}

const CASED: [&str; 2] = [
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
];

impl PatternShape {
    /// Whether case divides words.
    pub(super) fn is_cased(self) -> bool {
        self.contraction == Contraction::Suffix
    }

    /// The shape of a pattern, if it is recognised.
    pub(crate) fn of(pattern: &str) -> Option<Self> {
        let mut rest = alternatives(pattern).into_iter().peekable();
        let contraction = contraction(&mut rest);
        let (prefix, contraction) = match (rest.next()?, contraction) {
            (first, None) if first == CASED[0] && rest.next()? == CASED[1] => {
                (Prefix::Any, Contraction::Suffix)
            }
            (first, Some(contraction)) => match &*greedy(first) {
                r" ?\p{L}+" => (Prefix::Space, contraction),
                r"[^\r\n\p{L}\p{N}]?\p{L}+" => (Prefix::Any, contraction),
                _ => return None,
            },
            _ => return None,
        };
        let digits = digits(&greedy(rest.next()?), prefix)?;
        let tail = match &*greedy(rest.next()?) {
            r" ?[^\s\p{L}\p{N}]+" => Tail::None,
            r" ?[^\s\p{L}\p{N}]+[\r\n]*" => Tail::Newlines,
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*" => Tail::NewlinesAndSlashes,
            _ => return None,
        };
        let whole_end = rest.next_if(|part| greedy(part) == r"\s+$").is_some();
        let newlines = rest.next_if(|part| [r"\s*[\r\n]+", r"\s*[\r\n]"].contains(part)).is_some();
        // A final `\s` is equivalent to `\s+`: an earlier alternative matches a longer run.
        let ends = rest.next()? == r"\s+(?!\S)"
            && [r"\s+", r"\s"].contains(&&*greedy(rest.next()?))
            && rest.next().is_none();
        // A tail takes newlines that would otherwise match the rule for newlines. The published
        // patterns have both or neither, and both only with `Prefix::Any`; nothing else is tested.
        let is_tested = newlines == (tail != Tail::None) && newlines == (prefix == Prefix::Any);
        let whole_end = whole_end && newlines;
        let shape = Self { prefix, contraction, digits, tail, whole_end };
        (ends && is_tested).then_some(shape)
    }
}

/// Whether, for every shape, a pretoken ends between two characters, and neither side changes how
/// the other is split. This holds before white space that follows another kind of character, and
/// before punctuation that follows a letter or number; but not before a newline that follows
/// punctuation, nor before an apostrophe.
///
/// White space other than newlines occurs only in pretokens that begin with it or consist of it. A
/// newline may also be in the tail of punctuation. Within a pretoken, punctuation never follows a
/// letter or number, except for the apostrophe of a contraction. So no pretoken continues from the
/// first character to the second; the second character has the same effect as the end of the text;
/// and no rule looks back.
pub(super) fn ends_between(before: char, at: char) -> bool {
    let (before, class) = (class_of(before.into()), class_of(at.into()));
    let word = before.is_letter() || before == Class::Number;
    match class {
        Class::Space => !before.is_space(),
        Class::Newline => word,
        Class::Other => word && at != '\'',
        _ => false,
    }
}

/// Contractions as separate pretokens, in one of the published spellings.
fn contraction<'a>(
    rest: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
) -> Option<Contraction> {
    let single = rest.next_if(|part| {
        [r"'(?i:[sdmt]|ll|ve|re)", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"'(?:[sdmt]|ll|ve|re)"]
            .contains(part)
    });
    if let Some(part) = single {
        let any_case = part.contains("(?i:");
        return Some(if any_case { Contraction::AnyCase } else { Contraction::Lower });
    }
    let each = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];
    let is_lower = each.iter().all(|part| rest.next_if_eq(part).is_some());
    is_lower.then_some(Contraction::Lower)
}

/// A scanner counts digits within a word of this many bits.
const MAX_DIGITS: u8 = 63;

/// The largest number of digits in a pretoken; the outer `None` if the part has another form, or a
/// bound that the scanner cannot count.
#[expect(clippy::option_option, reason = "the inner one is a value of `PatternShape::digits`")]
fn digits(part: &str, prefix: Prefix) -> Option<Option<u8>> {
    match (part, prefix) {
        (r" ?\p{N}+", Prefix::Space) | (r"\p{N}+", Prefix::Any) => Some(None),
        (r"\p{N}", Prefix::Any) => Some(Some(1)),
        (part, Prefix::Any) => {
            let most = part.strip_prefix(r"\p{N}{1,")?;
            let most = most.strip_suffix("}+").or(most.strip_suffix('}'))?;
            most.parse().ok().filter(|most| (1..=MAX_DIGITS).contains(most)).map(Some)
        }
        _ => None,
    }
}

/// The top-level alternatives of a pattern. Parentheses in classes or escaped are counted like others:
/// no recognised pattern has them.
fn alternatives(pattern: &str) -> Vec<&str> {
    let mut depth = 0;
    let ends = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == '|' && depth == 0
    };
    pattern.split(ends).collect()
}

/// A part with possessive repetitions made greedy. Both are equivalent where the text after a
/// repetition never starts with the repeated characters, so that backtracking never helps.
fn greedy(part: &str) -> String {
    part.replace("++", "+").replace("*+", "*").replace("?+", "?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;

    #[test]
    fn every_named_pattern_is_recognised() {
        for name in Pattern::names() {
            let pattern = Pattern::named(name).unwrap();
            // The automaton splits by sets within sets.
            assert_eq!(PatternShape::of(&pattern.steps()[0]).is_some(), name != "kimi", "{name}");
        }
    }

    #[test]
    fn older_spellings_have_the_same_shape() {
        let of = |name| PatternShape::of(&Pattern::named(name).unwrap().steps()[0]);
        let gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
        assert_eq!(PatternShape::of(gpt2), of("gpt2"));
        let cl100k = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
        assert_eq!(PatternShape::of(cl100k), of("llama3"));
        assert_eq!(
            PatternShape::of(cl100k).map(|f| PatternShape { whole_end: true, ..f }),
            of("gpt4")
        );
        let digits = |most: &str| PatternShape::of(&cl100k.replace("{1,3}", most)).unwrap().digits;
        assert_eq!(digits(""), Some(1));
        assert_eq!(digits("+"), None);
        assert_eq!(digits("{1,7}"), Some(7));
    }

    #[test]
    fn other_patterns_are_not_recognised() {
        let cl100k = Pattern::named("gpt4").unwrap();
        for (from, to) in [
            (r"\p{L}++", r"[\p{L}\p{M}]++"),
            (r"{1,3}", r"{2,3}"),
            (r"{1,3}", r"{1,0}"),
            // Here, backtracking matters.
            (r"\s+(?!\S)", r"\s++(?!\S)"),
            (r"\s*[\r\n]", r"\s*+[\r\n]"),
            (r"|\s+(?!\S)", ""),
            (r"'(?i", r"`(?i"),
            (r" ?[^\s", r"[^\s"),
        ] {
            let pattern = cl100k.steps()[0].replace(from, to);
            assert_ne!(pattern, cl100k.steps()[0]);
            assert_eq!(PatternShape::of(&pattern), None, "{pattern}");
        }
        for pattern in ["", "|", r"\S+|\s+", r"(?s).+"] {
            assert_eq!(PatternShape::of(pattern), None);
        }
    }
}
