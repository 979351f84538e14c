//! Searches texts with regular expressions, within limits.
//!
//! An expression may come from a stranger's file, so the backtracking of one search, the size of the
//! automata, and the time of all searches in a text ([`Budget`]) are limited.

pub(crate) mod lengths;

use std::ops::Range;
use std::time::Duration;

use fancy_regex::{Error as RegexError, Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::machine::Instant;
use crate::memory;
use crate::parallel::interrupt;

/// The number of times that one search may backtrack: few enough that a search that would take forever
/// fails within 0.2 s, since nothing interrupts it. The searches of a text have a limit of time together
/// ([`Budget`]).
const BACKTRACK_LIMIT: usize = 5_000_000;
/// The size in bytes of an automaton that the engine uses for a part of a pattern. A search takes at
/// most the length of the text times this size. Parts of published patterns have some tens of kB.
const AUTOMATON_LIMIT_BYTES: usize = 4 << 20;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    regex: Regex,
}

impl Expression {
    /// Compile an expression. Fails with [`Error::Pattern`].
    pub(crate) fn new(regex: &str) -> Result<Self> {
        Self::with_backtrack_limit(regex, BACKTRACK_LIMIT)
    }

    /// The same with another limit on backtracking.
    pub(crate) fn with_backtrack_limit(regex: &str, limit: usize) -> Result<Self> {
        lengths::check_length(regex)?;
        lengths::check_repetitions(regex)?;
        RegexBuilder::new(regex)
            .backtrack_limit(limit)
            .delegate_size_limit(AUTOMATON_LIMIT_BYTES)
            .build()
            .map(|regex| Self { regex })
            .map_err(|error| pattern_error(regex, &error))
    }

    /// The first match from a position on. Fails with [`Error::Split`], at `done`, if the search
    /// exceeds a limit.
    #[inline]
    pub(crate) fn find(
        &self,
        text: &str,
        from: usize,
        done: usize,
    ) -> Result<Option<Range<usize>>> {
        let first = self.regex.find_from_pos(text, from);
        let first = first.map_err(|e| Error::Split { at: done, reason: e.to_string() })?;
        Ok(first.map(|hit| hit.range()))
    }

    /// The matches, and the parts between them, which cover the text in order; the flag says which
    /// are matches. Matches of no characters are passed over.
    ///
    /// Fails as [`find`](Self::find) does, if the budget is used up, or if there is not enough memory.
    pub(crate) fn parts(
        &self,
        text: &str,
        budget: &mut Budget,
    ) -> Result<Vec<(Range<usize>, bool)>> {
        let (mut parts, mut done, mut from) = (Vec::new(), 0, 0);
        while from <= text.len() {
            budget.count(done)?;
            let Some(range) = self.find(text, from, done)? else { break };
            if range.is_empty() {
                from = range.end + text[range.end..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            if done < range.start {
                memory::push(&mut parts, (done..range.start, false))?;
            }
            (done, from) = (range.end, range.end);
            memory::push(&mut parts, (range, true))?;
        }
        if done < text.len() {
            memory::push(&mut parts, (done..text.len(), false))?;
        }
        Ok(parts)
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

/// The time for any text, and for each byte of a text.
const TIME_PER_TEXT: Duration = Duration::from_secs(5);
const TIME_PER_BYTE: Duration = Duration::from_micros(20);

/// The clock is read after this many searches, or after each if they are slow.
const SEARCHES: u32 = 4;
const SLOW_SEARCH_TIME: Duration = Duration::from_millis(5);

/// The time of all searches in one text: in all its windows and pieces, by all steps.
///
/// A pattern may come from a stranger's file, and some patterns take time that grows with the square
/// of a text, or faster. The engine limits the backtracking of one search, but not the number of
/// searches, and not what it hands to automata, whose time is the length of the text times the size
/// of the pattern. So the searches of a text are timed together. The limit grows with the length of
/// the text, and is a hundred times what published patterns take.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Duration,
    spent: Duration,
    /// When the clock was last read, and the number of searches until it is read again.
    looked: Instant,
    left: u32,
}

impl Budget {
    /// The budget of a text of this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let limit = TIME_PER_TEXT + TIME_PER_BYTE * bytes;
        Self { limit, spent: Duration::ZERO, looked: Instant::now(), left: SEARCHES }
    }

    /// The budget after other work, whose time does not count.
    pub(crate) fn resumed(self) -> Self {
        Self { looked: Instant::now(), ..self }
    }

    /// Count a search at a position. Fails if the time is used up, or if the work has to stop.
    #[inline]
    pub(crate) fn count(&mut self, at: usize) -> Result<()> {
        self.left -= 1;
        if self.left == 0 { self.check(at) } else { Ok(()) }
    }

    fn check(&mut self, at: usize) -> Result<()> {
        let now = Instant::now();
        let time = now - self.looked;
        self.left = if time > SLOW_SEARCH_TIME { 1 } else { SEARCHES };
        self.looked = now;
        self.spent += time;
        if self.spent > self.limit {
            let reason = format!(
                "the split pattern takes too long for this text, more than {} s and {} \u{b5}s per \
                 byte",
                TIME_PER_TEXT.as_secs(),
                TIME_PER_BYTE.as_micros()
            );
            return Err(Error::Split { at, reason });
        }
        interrupt::poll_now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(regex: &str, text: &str) -> Vec<(String, bool)> {
        let parts = Expression::new(regex).unwrap().parts(text, &mut Budget::new(text.len()));
        parts.unwrap().into_iter().map(|(range, is)| (text[range].to_owned(), is)).collect()
    }

    #[test]
    fn matches_and_the_parts_between_them_cover_the_text() {
        let expected = [("ab", false), ("12", true), ("cd", false), ("3", true)];
        let expected = expected.map(|(part, is)| (part.to_owned(), is));
        assert_eq!(parts(r"\d+", "ab12cd3"), expected);
        assert_eq!(parts("x*", "aé"), [("aé".to_owned(), false)]);
        assert_eq!(parts("x", ""), []);
    }

    #[test]
    fn the_error_of_an_invalid_expression_has_a_position() {
        let error = Expression::new(r"(ab").unwrap_err();
        assert!(matches!(error, Error::Pattern { at: Some(_), .. }), "{error}");
    }

    #[test]
    fn time_is_limited_for_all_windows_together() {
        let mut fresh = Budget::new(1000);
        assert!((0..100).all(|at| fresh.count(at).is_ok()));
        let spent = Duration::from_secs(6);
        let mut late = Budget { spent, ..Budget::new(1000) }.resumed();
        let failed = (0..100).find_map(|at| late.count(at).err());
        assert!(matches!(failed, Some(Error::Split { at: 3, .. })), "{failed:?}");
    }
}
