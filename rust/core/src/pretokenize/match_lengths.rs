//! How many characters the matches of a regular expression have.
//!
//! A pretoken has at least one character. Other programs also split where a pattern matches no
//! characters, so formats have to know whether it may.

use fancy_regex::Expr;

/// The fewest and the most characters that a match may have; `usize::MAX` for any number. Where the
/// expression is not understood, the fewest are 0 and the most any number.
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

/// The lengths of an expression, or `None` if it has a part that is not understood.
fn lengths(expr: &Expr) -> Option<(usize, usize)> {
    match expr {
        Expr::Empty | Expr::Assertion(_) => Some((0, 0)),
        // What a look-around matches is not part of the match.
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
    fn matches_have_these_lengths() {
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
    fn what_is_not_understood_may_have_any_length() {
        for regex in [r"a\Kb", r"(a)\1", "(", r"(a)(?(1)b|c)"] {
            assert_eq!(match_lengths(regex), (0, usize::MAX), "{regex}");
        }
    }

    #[test]
    fn published_patterns_match_characters() {
        for name in Pattern::names().chain(Pattern::encodings()) {
            assert!(match_lengths(Pattern::new(name).unwrap().regex()).0 > 0, "{name}");
        }
    }
}
