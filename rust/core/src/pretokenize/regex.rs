//! Splits by any pattern with a backtracking regular-expression engine: slow and general. Tests
//! compare all faster tiers with it.
//!
//! An empty match is ignored. Text that no match covers is a pretoken of its own, so no byte is
//! lost.

use crate::error::Result;
use crate::pretokenize::ends::PretokenEnds;
use crate::search::{Budget, Expression};

/// A lower limit on backtracking, for comparing a few short texts with another tier.
const LOW_LIMIT: usize = 2_000;

/// Splits by a compiled regular expression.
#[derive(Debug)]
pub(super) struct RegexSplitter {
    expression: Expression,
}

impl RegexSplitter {
    pub(super) fn new(regex: &str) -> Result<Self> {
        Ok(Self { expression: Expression::new(regex)? })
    }

    /// A splitter with the lower limit on backtracking.
    pub(super) fn with_low_limit(regex: &str) -> Result<Self> {
        Ok(Self { expression: Expression::with_backtrack_limit(regex, LOW_LIMIT)? })
    }

    /// The ends of the pretokens of a text that is shorter than a buffer.
    pub(super) fn ends(&self, text: &str) -> Result<Vec<usize>> {
        let mut ends = PretokenEnds::default();
        self.fill(text, 0, &mut ends, &mut Budget::new(text.len()))?;
        Ok(ends.as_slice().to_vec())
    }

    /// Push the ends of the pretokens from `start` on, until `ends` is full or the text ends.
    pub(super) fn fill(
        &self,
        text: &str,
        start: usize,
        ends: &mut PretokenEnds,
        budget: &mut Budget,
    ) -> Result<()> {
        let (mut done, mut from) = (start, start);
        // One match may push two ends.
        while done < text.len() && ends.spare_capacity() >= 2 {
            budget.count(done)?;
            let Some(range) = self.expression.find(text, from, done)? else {
                ends.push(text.len());
                break;
            };
            if range.start > done && !range.is_empty() {
                ends.push(range.start);
            }
            if !range.is_empty() {
                ends.push(range.end);
                done = range.end;
            }
            // After an empty match, the search continues one character later.
            let next = text[range.end..].chars().next().map_or(1, char::len_utf8);
            from = range.end + if range.is_empty() { next } else { 0 };
            if from > text.len() {
                ends.push(text.len());
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::pretokenize::{Pattern, Splitter};

    fn split(pattern: &str, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        let splitter = Splitter::by_regex(&Pattern::from_regex(pattern)).unwrap();
        splitter.for_each(text, |pretoken| out.push(pretoken.to_owned())).unwrap();
        out
    }

    #[test]
    fn text_without_a_match_is_a_pretoken() {
        assert_eq!(split(r"\d+", "ab12cd"), ["ab", "12", "cd"]);
        assert_eq!(split(r"x*", "aaxxb"), ["aa", "xx", "b"]);
        assert_eq!(split(r"\d+", ""), Vec::<String>::new());
    }

    #[test]
    fn endless_backtracking_is_an_error() {
        let splitter = Splitter::by_regex(&Pattern::from_regex(r"(a*)*\1b")).unwrap();
        let error = splitter.for_each(&"a".repeat(40), |_| ()).unwrap_err();
        assert!(matches!(error, Error::Split { .. }));
    }
}
