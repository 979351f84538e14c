//! The possible lengths, in characters, of the matches of a regular expression and of its parts.
//!
//! A pretoken has at least one character. Other programs also split at empty matches of a pattern,
//! so converters to their formats must know whether there are any. And engines disagree on a
//! repetition whose part tries to match no characters before it tries others, as in `(?:a|b?|c)+`: some
//! leave the repetition then, this one goes on.

use fancy_regex::Expr;

use crate::error::{Error, Result};

/// The bytes that the expressions of one tokenizer may have, if their repetitions are written out.
pub(crate) const MAX_WRITTEN_BYTES: usize = 1 << 16;
/// What a look-around, a group or a reference counts beside what is in it: it may have an automaton of
/// its own.
const PART_BYTES: usize = 16;
/// The characters of a long expression that its error shows.
const SHOWN_CHARS: usize = 100;

/// The bytes of an expression if its repetitions are written out. An automaton takes up to about a
/// kilobyte of memory for each.
pub(crate) fn written_bytes(regex: &str) -> usize {
    parsed(regex).map_or(regex.len(), |expr| written(&expr))
}

/// An expression as a tree; `None` if it is not valid, or too long.
pub(crate) fn parsed(regex: &str) -> Option<Expr> {
    if regex.len() > MAX_WRITTEN_BYTES {
        return None; // the tree might take too much memory
    }
    Expr::parse_tree(regex).ok().map(|tree| tree.expr)
}

fn written(expr: &Expr) -> usize {
    let times = match expr {
        Expr::Literal { val, .. } => return val.len(),
        Expr::Delegate { inner, .. } => return inner.len(),
        Expr::Repeat { lo, hi: usize::MAX, .. } => lo.saturating_add(1),
        Expr::Repeat { hi, .. } => *hi,
        _ => 1,
    };
    let inside = expr.children_iter().map(written).fold(0, usize::saturating_add);
    inside.saturating_mul(times).saturating_add(PART_BYTES)
}

/// Fails with [`Error::Pattern`] if an expression is too long.
pub(super) fn check_length(regex: &str) -> Result<()> {
    let bytes = written_bytes(regex);
    if bytes <= MAX_WRITTEN_BYTES {
        return Ok(());
    }
    let reason = format!(
        "it has {bytes} bytes, if repetitions are written out; {MAX_WRITTEN_BYTES} are possible"
    );
    let beginning = regex.chars().take(SHOWN_CHARS).collect();
    Err(Error::Pattern { pattern: beginning, at: None, reason })
}

/// Fails with [`Error::Pattern`] if an expression repeats a part that tries to match no characters before
/// it tries others.
pub(super) fn check_repetitions(regex: &str) -> Result<()> {
    let Some(expr) = parsed(regex) else { return Ok(()) };
    if !repeats_early_end(&expr) {
        return Ok(());
    }
    let reason = "it repeats a part that may match no characters before it tries to match some, and \
                  engines disagree on when such a repetition ends";
    Err(Error::Pattern { pattern: regex.to_owned(), at: None, reason: reason.to_owned() })
}

/// Whether a part that is repeated may end early.
fn repeats_early_end(expr: &Expr) -> bool {
    let is_early = match expr {
        Expr::Repeat { child, hi, .. } => *hi > 1 && ends_early(child),
        _ => false,
    };
    is_early || expr.children_iter().any(repeats_early_end)
}

/// Whether an expression may match no characters although it has not tried all others.
fn ends_early(expr: &Expr) -> bool {
    let may_be_empty = |expr: &Expr| lengths(expr).is_none_or(|(fewest, _)| fewest == 0);
    may_be_empty(expr)
        && match expr {
            Expr::Alt(parts) => {
                let (last, others) = parts.split_last().expect("an alternative");
                others.iter().any(may_be_empty) || ends_early(last)
            }
            Expr::Repeat { child, greedy, .. } => !greedy || ends_early(child),
            // Text around the place does not change while an expression tries others.
            Expr::LookAround(..) => false,
            _ => expr.children_iter().any(ends_early),
        }
}

/// The smallest and the largest number of characters of a match; `usize::MAX` if there is no
/// maximum. If the expression has an unsupported part, the result is 0 and `usize::MAX`.
///
/// ```
/// use bytepair::pretokenize::match_lengths;
/// assert_eq!(match_lengths(r" ?\p{L}{2,3}|[0-9]{2}"), (2, 4));
/// assert_eq!(match_lengths(r"(?=\d)|\b"), (0, 0));
/// assert_eq!(match_lengths(r"\s*"), (0, usize::MAX));
/// ```
pub fn match_lengths(regex: &str) -> (usize, usize) {
    parsed(regex).and_then(|expr| lengths(&expr)).unwrap_or((0, usize::MAX))
}

/// The lengths of an expression; `None` if it has an unsupported part.
fn lengths(expr: &Expr) -> Option<(usize, usize)> {
    match expr {
        Expr::Empty | Expr::Assertion(_) => Some((0, 0)),
        // The characters of a look-around are not part of the match.
        Expr::LookAround(child, _) => lengths(child).map(|_| (0, 0)),
        Expr::Any { .. } | Expr::Delegate { .. } => Some((1, 1)),
        Expr::GeneralNewline { .. } => Some((1, 2)),
        Expr::Literal { val, .. } => Some((val.chars().count(), val.chars().count())),
        Expr::Group(child) => lengths(child),
        Expr::AtomicGroup(child) => lengths(child),
        Expr::Concat(parts) => {
            parts.iter().try_fold((0, 0), |(fewest, most): (usize, usize), part| {
                let (low, high) = lengths(part)?;
                Some((fewest.saturating_add(low), most.saturating_add(high)))
            })
        }
        Expr::Alt(parts) => {
            let all: Option<Vec<_>> = parts.iter().map(lengths).collect();
            all?.into_iter().reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
        }
        Expr::Repeat { child, lo, hi, .. } => {
            let (low, high) = lengths(child)?;
            Some((low.saturating_mul(*lo), high.saturating_mul(*hi)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fancy_regex::Regex;

    use super::*;
    use crate::pretokenize::Pattern;

    #[test]
    fn all_matches_are_within_the_lengths() {
        let text = "ab  12345 bb\r\n\n中文c,x_y 1,000 b";
        for regex in [
            r"a|bb",
            r"(?=\d)",
            r"\b",
            r"x*",
            r"\d{1,3}",
            r"(?:\s*[\r\n])?",
            r"(?=(\d{3})+(?!\d))",
            "",
            r"(?>b+)|c",
            r"\R",
            r"(?i:BB)",
            r"(a)|\s",
            r"[^ ]+?",
            r"\p{L}+(?:,|)",
            r"(?<=b)",
        ] {
            let (fewest, most) = match_lengths(regex);
            for found in Regex::new(regex).unwrap().find_iter(text) {
                let length = found.unwrap().as_str().chars().count();
                assert!((fewest..=most).contains(&length), "{regex}: {length}");
            }
        }
    }

    #[test]
    fn repetitions_are_written_out() {
        assert_eq!(written_bytes("ab"), 2 + PART_BYTES);
        let once = written_bytes("(?:ab|cd)");
        assert_eq!(written_bytes("(?:ab|cd){3}"), 3 * once + PART_BYTES);
        assert_eq!(written_bytes("(?:ab|cd){2,}"), 3 * once + PART_BYTES);
        assert!(written_bytes("(?:(?:a{9999}){9999}){9999}") > 1 << 39);
        for name in Pattern::names() {
            let pattern = Pattern::named(name).unwrap();
            assert!(written_bytes(pattern.regex().unwrap()) < MAX_WRITTEN_BYTES / 50, "{name}");
        }
        let long = "a".repeat(MAX_WRITTEN_BYTES + 1);
        for regex in [r"(?!\p{L}{20})a".repeat(5000), long, r"\p{L}{99999}".to_owned()] {
            assert!(matches!(check_length(&regex), Err(Error::Pattern { .. })));
        }
    }

    #[test]
    fn repetitions_of_parts_that_end_early_are_errors() {
        for regex in [
            r"(?:a|b?|c)+",
            r"(?:a*?)*b",
            r"x(?:(?:|a)b*){2,}",
            r"(?:a??b?)+",
            r"(?>(?:(?=a)|b)*+)",
            r"(?:\d|\b|x)+",
            r"(a)(?:\1|b)+",
            r"(?!(?:a??)+b)",
        ] {
            assert!(matches!(check_repetitions(regex), Err(Error::Pattern { .. })), "{regex}");
        }
        for regex in [
            r"(?:a|b?)+",
            r"(?:a*)*b",
            r"(?:a?b?)+",
            r"(?:a??)?b",
            r"(?:|a)b",
            r"(?:a|(?=b)b|\b)*",
            r"(?:a|(?=(?:|b))a)+",
            r"(?:a+?|b)+",
            r"(a*)*\1b",
        ] {
            assert_eq!(check_repetitions(regex), Ok(()), "{regex}");
        }
        let names = Pattern::names().filter_map(Pattern::named);
        assert!(names.into_iter().all(|it| check_repetitions(it.regex().unwrap()).is_ok()));
    }

    #[test]
    fn unsupported_expressions_may_have_any_length() {
        for regex in [r"a\Kb", r"(a)\1", "(", r"(a)(?(1)b|c)"] {
            assert_eq!(match_lengths(regex), (0, usize::MAX), "{regex}");
        }
    }

    #[test]
    fn published_patterns_have_no_empty_matches() {
        for name in Pattern::names().chain(Pattern::encodings()) {
            assert!(match_lengths(&Pattern::new(name).unwrap().steps()[0]).0 > 0, "{name}");
        }
    }
}
