//! Splits by any pattern with a backtracking regular-expression engine: slow and general. Tests
//! compare all faster tiers with it.
//!
//! An empty match is ignored. Text that no match covers is a pretoken of its own, so no byte is
//! lost.

use std::time::Duration;

use fancy_regex::{Error as RegexError, Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::pretokenize::budget::Budget;
use crate::pretokenize::ends::PretokenEnds;
use crate::pretokenize::pattern::Pattern;

/// The number of times that one search may backtrack: enough for white space of several megabytes,
/// and few enough that a search that would take forever fails within a second. The searches of a
/// text have a limit of time together ([`Budget`]).
const BACKTRACK_LIMIT: usize = 10_000_000;
/// The size in bytes of an automaton that the engine uses for a part of a pattern. A search takes at
/// most the length of the text times this size. Parts of published patterns have some tens of kB.
const AUTOMATON_LIMIT: usize = 4 << 20;
/// A lower limit, for comparing a few short texts with another tier.
const LOW_LIMIT: usize = 2_000;

/// A compiled regular expression.
#[derive(Debug)]
pub(super) struct RegexSplitter {
    regex: Regex,
}

impl RegexSplitter {
    pub(super) fn new(pattern: &Pattern) -> Result<Self> {
        Self::with_limit(pattern, BACKTRACK_LIMIT)
    }

    /// A splitter with the lower limit on backtracking.
    pub(super) fn with_low_limit(pattern: &Pattern) -> Result<Self> {
        Self::with_limit(pattern, LOW_LIMIT)
    }

    fn with_limit(pattern: &Pattern, limit: usize) -> Result<Self> {
        RegexBuilder::new(pattern.expression())
            .backtrack_limit(limit)
            .delegate_size_limit(AUTOMATON_LIMIT)
            .build()
            .map(|regex| Self { regex })
            .map_err(|error| pattern_error(pattern.expression(), &error))
    }

    /// Push the ends of the pretokens from `start` on, until `ends` is full or the text ends.
    pub(super) fn fill(&self, text: &str, start: usize, ends: &mut PretokenEnds) -> Result<()> {
        let (mut done, mut from) = (start, start);
        let spent = if start == 0 { Duration::ZERO } else { ends.searched };
        let mut budget = Budget::new(text.len(), spent);
        // One match may push two ends.
        while done < text.len() && ends.spare_capacity() >= 2 {
            budget.count(done)?;
            let found = self.regex.find_from_pos(text, from);
            let found = found.map_err(|e| Error::Split { at: done, reason: e.to_string() })?;
            let Some(found) = found else {
                ends.push(text.len());
                break;
            };
            if found.start() > done && found.end() > found.start() {
                ends.push(found.start());
            }
            if found.end() > found.start() {
                ends.push(found.end());
                done = found.end();
            }
            // After an empty match, the search continues one character later.
            let next = text[found.end()..].chars().next().map_or(1, char::len_utf8);
            from = found.end() + if found.end() > found.start() { 0 } else { next };
            if from > text.len() {
                ends.push(text.len());
                break;
            }
        }
        ends.searched = spent + budget.spent();
        Ok(())
    }
}

/// The error for an invalid pattern, with the position in the pattern if the engine reports it.
fn pattern_error(pattern: &str, error: &RegexError) -> Error {
    let (at, reason) = match error {
        RegexError::ParseError(at, error) => (Some((*at).min(pattern.len())), error.to_string()),
        RegexError::CompileError(error) => (None, error.to_string()),
        other => (None, other.to_string()),
    };
    Error::Pattern { pattern: pattern.to_owned(), at, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretokenize::Splitter;

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
    fn the_error_of_an_invalid_pattern_has_a_position() {
        let error = RegexSplitter::new(&Pattern::from_regex(r"(ab")).unwrap_err();
        assert!(matches!(error, Error::Pattern { at: Some(_), .. }), "{error}");
    }

    #[test]
    fn endless_backtracking_is_an_error() {
        let splitter = Splitter::by_regex(&Pattern::from_regex(r"(a*)*\1b")).unwrap();
        let error = splitter.for_each(&"a".repeat(40), |_| ()).unwrap_err();
        assert!(matches!(error, Error::Split { .. }));
    }
}
