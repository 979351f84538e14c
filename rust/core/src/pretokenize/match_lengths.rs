//! The possible lengths, in characters, of the matches of a regular expression.
//!
//! A pretoken has at least one character. Other programs also split at empty matches of a pattern,
//! so converters to their formats must know whether there are any.

use fancy_regex::Expr;

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
    let tree = Expr::parse_tree(regex).ok();
    tree.and_then(|tree| lengths(&tree.expr)).unwrap_or((0, usize::MAX))
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
