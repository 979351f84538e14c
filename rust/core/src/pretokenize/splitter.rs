//! A compiled pattern, and the choice of the tier that splits by it.

use std::ops::Range;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::machine::Instant;
use crate::machine::simd::SimdLevel;
use crate::memory;
use crate::parallel::interrupt;
use crate::pretokenize::ends::{Boundary, PretokenEnds};
use crate::pretokenize::pattern::Pattern;
use crate::pretokenize::pattern_shape::{PatternShape, ends_between};
use crate::pretokenize::scan;
use crate::pretokenize::table::TableSplitter;
use crate::search::{Budget, Expression};
use crate::text::Text;

/// The number of units in which a cut is searched.
const CUT_WINDOW: usize = if cfg!(test) { 32 } else { 4096 };

/// How long an automaton is compared with the engine; for published patterns it takes milliseconds.
const MAX_COMPARISON: Duration = Duration::from_secs(2);

/// A lower limit on backtracking, for comparing a few short texts with another tier.
pub(super) const LOW_LIMIT: usize = 2_000;

/// The number of pretokens at the end of a text among which a position without a cut is searched.
const LAST_PRETOKENS: usize = 10;

/// Splits text into pretokens with one compiled pattern; threads may share it.
///
/// ```
/// use bytepair::{Pattern, Splitter};
/// let splitter = Splitter::new(&Pattern::named("gpt2").unwrap())?;
/// let mut pretokens = Vec::new();
/// splitter.for_each("Hello world", |pretoken| pretokens.push(pretoken))?;
/// assert_eq!(pretokens, ["Hello", " world"]);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct Splitter {
    tier: Tier,
}

/// The implementations of splitting.
#[derive(Debug)]
enum Tier {
    /// The published patterns and their variations. Only tests scan without vector instructions.
    Scan(PatternShape, Option<SimdLevel>),
    /// Other patterns whose matches an automaton finds.
    Table(Box<TableSplitter>),
    /// Any pattern; the reference for the other tiers.
    Regex(Box<Expression>),
    /// Several steps; each splits the pieces of the previous one.
    Steps(Vec<Splitter>),
    /// Splits nothing.
    Whole,
}

impl Splitter {
    /// Compile `pattern`. The error for an invalid pattern has the position in it.
    pub fn new(pattern: &Pattern) -> Result<Self> {
        let splitter = Self::unjoined(pattern)?;
        Ok(splitter.joined(pattern.steps()).unwrap_or(splitter))
    }

    /// The splitter that applies one step after the other.
    pub(super) fn unjoined(pattern: &Pattern) -> Result<Self> {
        Self::in_steps(pattern, Self::of_step)
    }

    /// The same splits as these steps in one pass, if an automaton can do them.
    fn joined(&self, steps: &[String]) -> Option<Self> {
        let Tier::Steps(_) = self.tier else { return None };
        let table = TableSplitter::new(steps)?;
        let ends = |text: &str| {
            let mut ends = PretokenEnds::default();
            self.fill(text, 0, &mut ends).ok().map(|()| ends.as_slice().to_vec())
        };
        table.difference(ends).is_none().then(|| Self { tier: Tier::Table(Box::new(table)) })
    }

    /// A splitter that splits nothing, and knows no place where a text may be cut.
    pub(crate) fn whole() -> Self {
        Self { tier: Tier::Whole }
    }

    /// Compile each step of a pattern; most have one.
    fn in_steps(pattern: &Pattern, of_step: impl Fn(&str) -> Result<Self>) -> Result<Self> {
        if let Some(regex) = pattern.regex() {
            return of_step(regex);
        }
        let steps = pattern.steps().iter().map(|regex| of_step(regex));
        Ok(Self { tier: Tier::Steps(steps.collect::<Result<_>>()?) })
    }

    fn of_step(regex: &str) -> Result<Self> {
        match PatternShape::of(regex) {
            Some(shape) => Ok(Self { tier: Tier::Scan(shape, Some(SimdLevel::current())) }),
            None => Self::by_table(regex)?.map_or_else(|| Self::by_regex_of(regex), Ok),
        }
    }

    /// Compile a regular expression to an automaton over classes of characters. `None` if the
    /// automaton would not be exact, or would be too large, or takes too long to compare.
    ///
    /// The automaton is compared with the regular-expression engine on sample texts. Where they
    /// disagree, neither is believed: `regex-automata` decides. Fails with [`Error::Pattern`] if it
    /// does not know the expression, or finds both wrong.
    pub fn by_table(regex: &str) -> Result<Option<Self>> {
        let Some(table) = TableSplitter::new(&[regex]) else { return Ok(None) };
        let engine = Expression::with_backtrack_limit(regex, LOW_LIMIT)?;
        let started = Instant::now();
        let is_late = || started.elapsed() >= MAX_COMPARISON;
        let difference = table
            .difference(|text| if is_late() { None } else { ends_by_search(&engine, text).ok() });
        if is_late() {
            return Ok(None);
        }
        let Some(text) = difference else {
            return Ok(Some(Self { tier: Tier::Table(Box::new(table)) }));
        };
        let judge = regex_automata::meta::Regex::new(regex).ok();
        let judged = |text: &str| judge.as_ref().map(|judge| ends_of_matches(judge, text));
        if judge.is_some() && table.difference(judged).is_none() {
            return Ok(Some(Self { tier: Tier::Table(Box::new(table)) }));
        }
        if judge.is_some() && judged(&text) == ends_by_search(&engine, &text).ok() {
            return Ok(None);
        }
        let reason = format!("the engines for regular expressions split {text:?} differently");
        Err(Error::Pattern { pattern: regex.to_owned(), at: None, reason })
    }

    /// Compile any `pattern` for the regular-expression engine: the slow reference.
    pub fn by_regex(pattern: &Pattern) -> Result<Self> {
        Self::in_steps(pattern, Self::by_regex_of)
    }

    fn by_regex_of(regex: &str) -> Result<Self> {
        Ok(Self { tier: Tier::Regex(Box::new(Expression::new(regex)?)) })
    }

    /// Whether [`fill`](Self::fill) may fail, or take long for a short text.
    pub fn may_fail(&self) -> bool {
        match &self.tier {
            Tier::Scan(..) | Tier::Whole => false,
            Tier::Table(table) => table.reads_far,
            Tier::Regex(_) => true,
            Tier::Steps(steps) => steps.iter().any(Self::may_fail),
        }
    }

    /// Replace `ends` by the ends of the pretokens from `start` on, until it is full or the text
    /// ends. Each end is a byte offset in the text.
    ///
    /// `start` must be 0 or the last end of the previous call.
    /// Fails if the regular-expression engine fails on the text, or if the work of this thread has to
    /// stop.
    pub fn fill(&self, text: &str, start: usize, ends: &mut PretokenEnds) -> Result<()> {
        interrupt::poll()?;
        if !self.may_fail() {
            return self.fill_within(text, start, ends, None);
        }
        let budget = ends.budget.take().filter(|_| start > 0);
        let mut budget = budget.map_or_else(|| Budget::new(text.len()), Budget::resumed);
        let result = self.fill_within(text, start, ends, Some(&mut budget));
        ends.budget = Some(budget);
        result
    }

    /// The same with the budget of the whole text, which only patterns that may fail need.
    fn fill_within(
        &self,
        text: &str,
        start: usize,
        ends: &mut PretokenEnds,
        budget: Option<&mut Budget>,
    ) -> Result<()> {
        ends.clear();
        match &self.tier {
            Tier::Scan(shape, level) => scan::fill(*shape, *level, text, start, ends),
            Tier::Table(table) => table.fill(text, start, ends, budget)?,
            Tier::Regex(expression) => {
                let budget = budget.expect("a pattern that may fail has a budget");
                fill_by_search(expression, text, start, ends, budget)?;
            }
            Tier::Steps(steps) => ends.more = Self::fill_by(steps, text, start, budget)?,
            Tier::Whole => ends.push(text.len()),
        }
        Ok(())
    }

    /// The ends of all pretokens in the next pieces of the first step.
    fn fill_by(
        steps: &[Self],
        text: &str,
        start: usize,
        mut budget: Option<&mut Budget>,
    ) -> Result<Vec<usize>> {
        let Some((first, later)) = steps.split_first() else { return Ok(vec![text.len()]) };
        let mut buffer = PretokenEnds::default();
        first.fill_within(text, start, &mut buffer, budget.as_deref_mut())?;
        let mut ends = memory::copy(buffer.as_slice())?;
        for step in later {
            let (mut new_ends, mut begin) = (memory::with_capacity(ends.len())?, start);
            for end in ends {
                let (piece, mut done) = (&text[begin..end], 0);
                // The buffer may be full before the piece ends; the next call continues after the
                // last end.
                while done < piece.len() {
                    step.fill_within(piece, done, &mut buffer, budget.as_deref_mut())
                        .map_err(|error| error.shifted(begin))?;
                    memory::reserve(&mut new_ends, buffer.as_slice().len())?;
                    new_ends.extend(buffer.as_slice().iter().map(|at| begin + at));
                    done = buffer.as_slice().last().map_or(piece.len(), |&at| at);
                }
                begin = end;
            }
            ends = new_ends;
        }
        Ok(ends)
    }

    /// Call `sink` with each pretoken of `text` in order; their concatenation is `text`.
    pub fn for_each<'t>(&self, text: &'t str, mut sink: impl FnMut(&'t str)) -> Result<()> {
        let (mut ends, mut start) = (PretokenEnds::default(), 0);
        while start < text.len() {
            self.fill(text, start, &mut ends)?;
            for &end in ends.as_slice() {
                sink(&text[start..end]);
                start = end;
            }
        }
        Ok(())
    }

    /// Compile a published pattern for every scanner that this processor can run.
    #[cfg(test)]
    pub(super) fn every_scanner(regex: &str) -> Vec<Self> {
        let levels = SimdLevel::all().into_iter().map(Some).chain([None]);
        let tiers = levels.filter_map(|level| Some(Tier::Scan(PatternShape::of(regex)?, level)));
        tiers.map(|tier| Self { tier }).collect()
    }

    /// A position after `from` where `text` may be cut in two without changing its pretokens, if
    /// there is one within a few thousand bytes.
    ///
    /// Under the published patterns, such positions are before white space, and between a letter or
    /// digit of any script and punctuation. For other patterns, the automaton determines them;
    /// patterns that only the regular-expression engine can split have none.
    ///
    /// ```
    /// use bytepair::{Pattern, Splitter};
    /// let splitter = Splitter::new(&Pattern::named("gpt4").unwrap())?;
    /// assert_eq!(splitter.cut("中文字符，没有空格。", 0), Some("中文字符".len()));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn cut(&self, text: &str, from: usize) -> Option<usize> {
        self.cut_text(&Text::Utf8(text), from)
    }

    /// The same as [`cut`](Self::cut) for a text in any encoding; positions are in its units.
    pub(crate) fn cut_text(&self, text: &Text<'_>, from: usize) -> Option<usize> {
        let is_cut = |before, at| self.boundary(before, at) == Boundary::End;
        text.find_boundary(from, CUT_WINDOW, is_cut)
    }

    /// The last position within `range` of `text` at which [`cut`](Self::cut) may cut and for which
    /// `condition` holds. `condition` gets the character before the position and the two characters
    /// after it.
    pub(crate) fn last_cut(
        &self,
        text: &str,
        range: Range<usize>,
        condition: impl Fn(char, char, Option<char>) -> bool,
    ) -> Option<usize> {
        let (mut at, mut next): (Option<(usize, char)>, _) = (None, None);
        // From the last character to the first, so the first cut that satisfies the condition is
        // the last one in the range.
        for (offset, before) in text[range.clone()].char_indices().rev() {
            if let Some((cut, after)) = at
                && self.boundary(before, after) == Boundary::End
                && condition(before, after, next)
            {
                return Some(cut);
            }
            next = at.map(|(_, after)| after);
            at = Some((range.start + offset, before));
        }
        None
    }

    /// The kind of the position between two characters.
    pub(super) fn boundary(&self, before: char, at: char) -> Boundary {
        match &self.tier {
            Tier::Scan(..) if ends_between(before, at) => Boundary::End,
            Tier::Scan(..) | Tier::Regex(_) | Tier::Whole => Boundary::Unknown,
            Tier::Table(table) => table.boundary(before, at),
            Tier::Steps(steps) => {
                Boundary::of_steps(steps.iter().map(|step| step.boundary(before, at)))
            }
        }
    }

    /// The first position at which a long text may be cut so that about `size` units or more are on
    /// each side.
    pub(crate) fn cut_long(&self, text: &Text<'_>, size: usize) -> Option<usize> {
        if matches!(self.tier, Tier::Regex(_) | Tier::Whole) {
            return None; // no position is one, and the search would read the whole text
        }
        let last = text.len().checked_sub(size)?;
        (size..last).step_by(CUT_WINDOW).find_map(|from| self.cut_text(text, from))
    }

    /// The number of bytes of `text` whose pretokens no continuation of the text can change, and
    /// which have the same pretokens if the text ends there.
    ///
    /// Under a published pattern, a continuation changes at most the last two pretokens; the tests
    /// check all short strings. Under other patterns, only the text before a cut is certain, which
    /// [`last_cut`](Self::last_cut) finds.
    pub(crate) fn certain(&self, text: &str) -> Result<usize> {
        let Tier::Scan(..) = self.tier else { return Ok(0) };
        // The starts of the last pretokens and the end of the text, once all are split.
        let mut last = [0; LAST_PRETOKENS + 1];
        self.for_each(text, |pretoken| {
            last.rotate_left(1);
            last[LAST_PRETOKENS] = last[LAST_PRETOKENS - 1] + pretoken.len();
        })?;
        // A continuation may change the last two pretokens. Before them, the text may end where it
        // splits in the same way as without its rest: the spaces of `  1` are two pretokens, but
        // alone they are one. The end of a text changes few pretokens, so the last five show it.
        for at in (5..=LAST_PRETOKENS - 2).rev() {
            let (first, mut next) = (last[at - 5], last[at - 5]);
            let mut ends = last[at - 4..=at].iter().filter(|&&end| end > first);
            let mut is_same = true;
            self.for_each(&text[first..last[at]], |pretoken| {
                next += pretoken.len();
                is_same &= ends.next() == Some(&next);
            })?;
            if is_same && ends.next().is_none() {
                return Ok(last[at]);
            }
        }
        Ok(0)
    }

    /// Whether the pattern has a published shape, for which [`certain`](Self::certain) finds the
    /// most.
    pub(crate) fn is_scan(&self) -> bool {
        matches!(self.tier, Tier::Scan(..))
    }

    /// The name of the tier: `"regex"`, `"table"`, `"steps"`, `"whole"`, or, for a scanner, the name of its
    /// instructions: `"avx512"`, `"avx2"`, `"neon"`, `"portable"`.
    pub fn tier(&self) -> &'static str {
        match &self.tier {
            Tier::Scan(_, level) => level.map_or("scalar", SimdLevel::name),
            Tier::Table(_) => "table",
            Tier::Regex(_) => "regex",
            Tier::Steps(_) => "steps",
            Tier::Whole => "whole",
        }
    }
}

/// The ends of the pretokens of a text, as `regex-automata` finds them.
fn ends_of_matches(regex: &regex_automata::meta::Regex, text: &str) -> Vec<usize> {
    let matches = regex.find_iter(text).filter(|hit| !hit.is_empty());
    let mut ends: Vec<usize> = matches.flat_map(|hit| [hit.start(), hit.end()]).collect();
    ends.push(text.len());
    ends.dedup();
    ends.retain(|&end| end > 0);
    ends
}

/// The ends of the pretokens of a text that is shorter than a buffer, as the engine finds them.
pub(super) fn ends_by_search(expression: &Expression, text: &str) -> Result<Vec<usize>> {
    let mut ends = PretokenEnds::default();
    fill_by_search(expression, text, 0, &mut ends, &mut Budget::new(text.len()))?;
    Ok(ends.as_slice().to_vec())
}

/// Push the ends of the pretokens from `start` on, until `ends` is full or the text ends.
///
/// The engine backtracks: it is slow and general, and tests compare all faster tiers with it. An
/// empty match is ignored. Text that no match covers is a pretoken of its own, so no byte is lost.
pub(super) fn fill_by_search(
    expression: &Expression,
    text: &str,
    start: usize,
    ends: &mut PretokenEnds,
    budget: &mut Budget,
) -> Result<()> {
    let mut done = start;
    // One match may push two ends.
    while done < text.len() && ends.spare_capacity() >= 2 {
        let next = expression.next(text, done, budget)?;
        let next = next.unwrap_or(text.len()..text.len());
        if next.start > done {
            ends.push(next.start);
        }
        if !next.is_empty() {
            ends.push(next.end);
        }
        done = next.end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use crate::error::Error;
    use crate::parallel::with_poll;
    use crate::pretokenize::{Pattern, PretokenEnds, Splitter};
    use crate::search::Budget;

    /// Only the engine splits by this expression.
    const BY_ENGINE: &str = r"(a)\1|.";

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
    fn the_first_alternative_that_matches_is_taken_after_a_common_repetition() {
        for (pattern, text, pretokens) in [
            (r"\p{L}+ab|\p{L}+.", "xabyab z", vec!["xabyab", " z"]),
            (r"\d{1,3}\d{3}|\d{1,3}[a-z]?", "12345", vec!["12345"]),
        ] {
            assert_eq!(split(pattern, text), pretokens);
            let mut out = Vec::new();
            let splitter = Splitter::new(&Pattern::from_regex(pattern)).unwrap();
            splitter.for_each(text, |pretoken| out.push(pretoken.to_owned())).unwrap();
            assert_eq!(out, pretokens);
        }
    }

    #[test]
    fn endless_backtracking_is_an_error() {
        let splitter = Splitter::by_regex(&Pattern::from_regex(r"(a*)*\1b")).unwrap();
        let error = splitter.for_each(&"a".repeat(40), |_| ()).unwrap_err();
        assert!(matches!(error, Error::Split { .. }));
    }

    #[test]
    fn the_windows_and_pieces_of_a_text_have_one_limit_of_time() {
        let text = "ab".repeat(PretokenEnds::CAPACITY);
        for steps in [vec![BY_ENGINE], vec!["b", BY_ENGINE]] {
            let splitter = Splitter::new(&Pattern::in_steps(steps).unwrap()).unwrap();
            let mut ends = PretokenEnds::default();
            splitter.fill(&text, 0, &mut ends).unwrap();
            let start = *ends.as_slice().last().unwrap();
            assert!(start < text.len());
            ends.budget = Some(Budget::used_up());
            let result = splitter.fill(&text, start, &mut ends);
            assert!(matches!(result, Err(Error::Split { .. })), "{result:?}");
            assert_eq!(splitter.fill(&text, 0, &mut ends), Ok(()));
        }
    }

    #[test]
    fn work_stops_among_pieces_of_few_characters() {
        let steps = Pattern::in_steps([r"\s", BY_ENGINE]).unwrap();
        let splitter = Splitter::new(&steps).unwrap();
        let text = "aa ".repeat(PretokenEnds::CAPACITY / 4);
        let work = || {
            thread::sleep(Duration::from_millis(100)); // now it is time to ask
            splitter.for_each(&text, |_| ())
        };
        assert_eq!(with_poll(|| true, work), Err(Error::Interrupted));
    }
}
