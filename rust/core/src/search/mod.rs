//! Searches texts with regular expressions, within limits.
//!
//! An expression may come from an untrusted file, so the backtracking of one search, the size of the
//! automata, and the time of all searches in a text (`Budget`) are limited.

use std::ops::Range;
use std::time::Duration;

use fancy_regex::{Error as RegexError, Expr, Regex, RegexBuilder};

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
pub struct Expression {
    regex: Regex,
}

impl Expression {
    /// Compile an expression. Fails with [`Error::Pattern`].
    pub(crate) fn new(regex: &str) -> Result<Self> {
        Self::with_backtrack_limit(regex, BACKTRACK_LIMIT)
    }

    /// The same with another limit on backtracking.
    ///
    /// ```
    /// let expression = bytepair::search::Expression::with_backtrack_limit(r"(?i)l{2}(?=o)", 100)?;
    /// assert!(expression.is_in("HELLO")? && !expression.is_in("hell")?);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn with_backtrack_limit(regex: &str, limit: usize) -> Result<Self> {
        check(regex)?;
        RegexBuilder::new(regex)
            .backtrack_limit(limit)
            .delegate_size_limit(AUTOMATON_LIMIT_BYTES)
            .build()
            .map(|regex| Self { regex })
            .map_err(|error| pattern_error(regex, &error))
    }

    /// Whether a text has a match. Fails with [`Error::Split`] if the search exceeds a limit.
    pub fn is_in(&self, text: &str) -> Result<bool> {
        self.regex.is_match(text).map_err(|e| Error::Split { at: 0, reason: e.to_string() })
    }

    /// The first match from a position on; matches of no characters are passed over. Fails with
    /// [`Error::Split`] if the search exceeds a limit or the budget is used up.
    #[inline]
    pub(crate) fn next(
        &self,
        text: &str,
        from: usize,
        budget: &mut Budget,
    ) -> Result<Option<Range<usize>>> {
        let mut at = from;
        while at <= text.len() {
            budget.count(from)?;
            let hit = self.regex.find_from_pos(text, at);
            let hit = hit.map_err(|e| Error::Split { at: from, reason: e.to_string() })?;
            let Some(range) = hit.map(|hit| hit.range()) else { break };
            if !range.is_empty() {
                return Ok(Some(range));
            }
            // After an empty match, the search continues one character later.
            at = range.end + text[range.end..].chars().next().map_or(1, char::len_utf8);
        }
        Ok(None)
    }

    /// The matches, and the parts between them, which cover the text in order; the flag says which
    /// are matches.
    ///
    /// Fails as [`next`](Self::next) does, or if there is not enough memory.
    pub(crate) fn parts(
        &self,
        text: &str,
        budget: &mut Budget,
    ) -> Result<Vec<(Range<usize>, bool)>> {
        let (mut parts, mut done) = (Vec::new(), 0);
        while let Some(range) = self.next(text, done, budget)? {
            if done < range.start {
                memory::push(&mut parts, (done..range.start, false))?;
            }
            done = range.end;
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
/// A pattern may come from an untrusted file, and some patterns take time that grows with the square
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

    /// A budget of which nothing is left.
    #[cfg(test)]
    pub(crate) fn used_up() -> Self {
        let budget = Self::new(0);
        Self { spent: budget.limit + Duration::from_secs(1), ..budget }
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

// ---------------------------------------------------------------------------- lengths of matches
//
// The possible lengths, in characters, of the matches of a regular expression and of its parts.
//
// A pretoken has at least one character. Other programs also split at empty matches of a pattern,
// so converters to their formats must know whether there are any. And engines disagree on a
// repetition whose part tries to match no characters before it tries others, as in `(?:a|b?|c)+`: some
// leave the repetition then, this one goes on.

/// The bytes that the expressions of one tokenizer may have, if their repetitions are written out.
pub(crate) const MAX_WRITTEN_BYTES: usize = 1 << 16;
/// What a look-around or a reference counts beside what is in it: it may have an automaton of its own.
const PART_BYTES: usize = 16;
/// What a group that captures counts: an automaton that tells where groups are takes time that grows
/// with the square of their number.
const CAPTURE_BYTES: usize = 1024;
/// What a class of characters counts at least, since `\p{L}` takes 50 kB in an automaton; and each byte
/// of one that ignores case: adding the other cases of a part such as `\w` takes up to 10 ms.
const CLASS_BYTES: usize = 32;
const CASELESS_CLASS_BYTES: usize = 128;
/// The memory that an automaton takes at most for each of these bytes.
const MEMORY_PER_BYTE: usize = 2048;
/// The characters of a long expression that its error shows.
const SHOWN_CHARS: usize = 100;

/// The bytes of an expression if its repetitions are written out, and classes count as above.
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
        Expr::Group(child) => return written(child).saturating_add(CAPTURE_BYTES),
        Expr::Delegate { inner, casei: false } => return inner.len().max(CLASS_BYTES),
        Expr::Delegate { inner, casei: true } => {
            return inner.len().saturating_mul(CASELESS_CLASS_BYTES);
        }
        Expr::Repeat { lo, hi: usize::MAX, .. } => lo.saturating_add(1),
        Expr::Repeat { hi, .. } => *hi,
        _ => 1,
    };
    let inside = expr.children_iter().map(written).fold(0, usize::saturating_add);
    inside.saturating_mul(times).saturating_add(PART_BYTES)
}

/// What errors say about expressions with too many bytes.
pub(crate) fn too_many(bytes: usize) -> String {
    format!(
        "{bytes} bytes, with repetitions written out, at least {CLASS_BYTES} for each class, and \
         {CAPTURE_BYTES} for each group that captures; {MAX_WRITTEN_BYTES} are possible"
    )
}

/// Fails with [`Error::Pattern`] if an expression is too long, if memory is short for its automaton, if
/// it repeats a part that tries to match no characters before it tries others, or if it has a part
/// without a limit.
fn check(regex: &str) -> Result<()> {
    let bytes = written_bytes(regex);
    if bytes > MAX_WRITTEN_BYTES {
        let reason = format!("it counts as {}", too_many(bytes));
        let beginning = regex.chars().take(SHOWN_CHARS).collect();
        return Err(Error::Pattern { pattern: beginning, at: None, reason });
    }
    memory::check(bytes * MEMORY_PER_BYTE)?;
    let Some(expr) = parsed(regex) else { return Ok(()) };
    let reason = if lengths(&expr).is_none() {
        "it has a part other than literals, classes, assertions, look-arounds, groups, repetitions, \
         alternatives, and references to groups that do not ignore case"
    } else if repeats_early_end(&expr) {
        "it repeats a part that may match no characters before it tries to match some, and engines \
         disagree on when such a repetition ends"
    } else {
        return Ok(());
    };
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

/// The lengths of an expression; `None` if it has an unsupported part, which no published pattern
/// has, and whose work the engine does not limit: a call of a group is compiled as often as it occurs,
/// and a reference that ignores case compiles an expression for each comparison.
pub(crate) fn lengths(expr: &Expr) -> Option<(usize, usize)> {
    match expr {
        Expr::Empty | Expr::Assertion(_) => Some((0, 0)),
        // The characters of a look-around are not part of the match.
        Expr::LookAround(child, _) => lengths(child).map(|_| (0, 0)),
        Expr::Any { .. } | Expr::Delegate { .. } => Some((1, 1)),
        Expr::GeneralNewline { .. } => Some((1, 2)),
        Expr::Backref { casei: false, .. } => Some((0, usize::MAX)),
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
        let mut late = Budget::used_up().resumed();
        let failed = (0..100).find_map(|at| late.count(at).err());
        assert!(matches!(failed, Some(Error::Split { at: 3, .. })), "{failed:?}");
    }

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
            r"(\d|b)\1+",
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
        assert_eq!(written_bytes(r"\p{L}{48}"), 48 * CLASS_BYTES + PART_BYTES);
        let once = written_bytes("(?:ab|cd)");
        assert_eq!(written_bytes("(?:ab|cd){3}"), 3 * once + PART_BYTES);
        assert_eq!(written_bytes("(?:ab|cd){2,}"), 3 * once + PART_BYTES);
        assert!(written_bytes("(?:(?:a{9999}){9999}){9999}") > 1 << 39);
        assert_eq!(written_bytes(r"(?i)[\w\W]{9}"), 9 * 6 * CASELESS_CLASS_BYTES + PART_BYTES);
        for name in Pattern::names() {
            let pattern = Pattern::named(name).unwrap();
            assert!(written_bytes(pattern.regex().unwrap()) < MAX_WRITTEN_BYTES / 20, "{name}");
        }
        let long = "a".repeat(MAX_WRITTEN_BYTES + 1);
        let groups = "(a)".repeat(64);
        for regex in [r"(?!\p{L}{20})a".repeat(5000), long, r"\p{L}{99999}".to_owned(), groups] {
            assert!(matches!(check(&regex), Err(Error::Pattern { .. })));
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
            assert!(matches!(check(regex), Err(Error::Pattern { .. })), "{regex}");
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
            assert_eq!(check(regex), Ok(()), "{regex}");
        }
        let names = Pattern::names().filter_map(Pattern::named);
        assert!(names.into_iter().all(|it| check(it.regex().unwrap()).is_ok()));
    }

    #[test]
    fn parts_without_a_limit_are_errors() {
        for regex in [
            r"(?<a>b)\g<a>",
            r"(?i)(a)\1",
            r"(a)(?(1)b|c)",
            r"a\Kb",
            r"a|\Gb",
            r"(?~a)",
            r"a(*FAIL)",
        ] {
            assert!(matches!(Expression::new(regex), Err(Error::Pattern { .. })), "{regex}");
        }
        assert!(Expression::new(r"(?i:b)(a)\1(?>\R|.)(?<!c)(?=d)\b").is_ok());
    }

    #[test]
    fn unsupported_expressions_may_have_any_length() {
        for regex in [r"a\Kb", r"(?i)(a)\1", "(", r"(a)(?(1)b|c)"] {
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
