//! Text in, pretokens out: the pieces of text that a token never crosses.
//!
//! A [`Pattern`] says how to split; a [`Splitter`] does it. There are several ways to split
//! (tiers) that must agree to the byte, and one place, [`Splitter::new`], that chooses among them.
//! Callers cannot tell which one runs, except by its speed and by asking [`Splitter::tier`].
//!
//! Every byte of the text ends up in exactly one pretoken, in order: where the pattern matches
//! nothing, the text between two matches is a pretoken of its own.
//!
//! A pattern may have several steps, divided by `(?#then)`: each splits what the one before left,
//! and sees nothing beyond it.

mod pattern;

mod normalize;

mod family;

mod unicode;

mod scan;

mod table;

mod regex;

#[cfg(test)]
mod tests;

pub use pattern::{Pattern, UNICODE_VERSION};
pub(crate) use scan::vectors;

use crate::error::Result;
use crate::text::Text;
use family::Family;

/// How many units are tried for a cut.
const CUT_WINDOW: usize = 4096;

/// What is known of the place between two characters, whatever stands around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Border {
    /// A pretoken ends there, also if the text does.
    End,
    /// The matches on both sides are what they would be without the other side; but what no match
    /// covers may go over it.
    Free,
    /// Nothing.
    Unknown,
}

/// Splits text into pretokens with one compiled pattern; shared freely between threads.
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

/// One way to split; the only list of them.
#[derive(Debug)]
enum Tier {
    /// The published patterns and their variations.
    Scan(scan::Scanner),
    /// Other patterns whose matches an automaton finds.
    Table(Box<table::Table>),
    /// Any pattern, and the oracle of the others.
    Regex(Box<regex::RegexSplitter>),
    /// Several patterns, each for the pieces of the one before.
    Steps(Vec<Splitter>),
}

impl Splitter {
    /// Compile `pattern`; an error says where the pattern is wrong.
    pub fn new(pattern: &Pattern) -> Result<Self> {
        Self::in_steps(pattern, Self::of_step)
    }

    /// Compile each step of a pattern; most have one.
    fn in_steps(pattern: &Pattern, of_step: impl Fn(&Pattern) -> Result<Self>) -> Result<Self> {
        let mut steps = pattern.steps();
        match steps.len() {
            0 | 1 => of_step(&steps.pop().unwrap_or_else(|| pattern.clone())),
            _ => {
                let tier = Tier::Steps(steps.iter().map(of_step).collect::<Result<_>>()?);
                Ok(Self { tier })
            }
        }
    }

    fn of_step(pattern: &Pattern) -> Result<Self> {
        match Family::of(pattern.expression()) {
            Some(family) => Ok(Self { tier: Tier::Scan(scan::Scanner::new(family)) }),
            None => Self::by_table(pattern)?.map_or_else(|| Self::by_regex(pattern), Ok),
        }
    }

    /// Compile `pattern` to an automaton over classes of characters, whatever it is; `None` where
    /// that would not be exact, or too large, or where the engine splits a text differently.
    pub fn by_table(pattern: &Pattern) -> Result<Option<Self>> {
        if pattern.steps().len() > 1 {
            return Ok(None);
        }
        let Some(table) = table::Table::new(pattern) else { return Ok(None) };
        let agrees = table.agrees(&regex::RegexSplitter::impatient(pattern)?);
        Ok(agrees.then(|| Self { tier: Tier::Table(Box::new(table)) }))
    }

    /// Compile `pattern` for the regular-expression engine, whatever it is: the slow twin.
    pub fn by_regex(pattern: &Pattern) -> Result<Self> {
        Self::in_steps(pattern, |step| {
            Ok(Self { tier: Tier::Regex(Box::new(regex::RegexSplitter::new(step)?)) })
        })
    }

    /// Push the ends of the pretokens from `start` on, until `ends` is full or the text is over.
    ///
    /// `start` must be 0 or the last end of the call before. An end is an offset in bytes from the
    /// start of the text. Fails if the pattern gives up on the text.
    pub fn fill(&self, text: &str, start: usize, ends: &mut Ends) -> Result<()> {
        ends.clear();
        match &self.tier {
            Tier::Scan(scanner) => scanner.fill(text, start, ends),
            Tier::Table(table) => table.fill(text, start, ends),
            Tier::Regex(splitter) => splitter.fill(text, start, ends)?,
            Tier::Steps(steps) => ends.more = Self::fill_by(steps, text, start)?,
        }
        Ok(())
    }

    /// The ends of the pretokens in the next pieces of the first step, all of them.
    fn fill_by(steps: &[Self], text: &str, start: usize) -> Result<Vec<usize>> {
        let Some((first, later)) = steps.split_first() else { return Ok(vec![text.len()]) };
        let mut buffer = Ends::default();
        first.fill(text, start, &mut buffer)?;
        let mut ends = buffer.as_slice().to_vec();
        for step in later {
            let (mut finer, mut begin) = (Vec::with_capacity(ends.len()), start);
            for end in ends {
                let (piece, mut done) = (&text[begin..end], 0);
                while done < piece.len() {
                    step.fill(piece, done, &mut buffer).map_err(|error| error.behind(begin))?;
                    finer.extend(buffer.as_slice().iter().map(|at| begin + at));
                    done = buffer.as_slice().last().map_or(piece.len(), |&at| at);
                }
                begin = end;
            }
            ends = finer;
        }
        Ok(ends)
    }

    /// Call `sink` with each pretoken of `text` in order; their concatenation is `text`.
    pub fn for_each<'t>(&self, text: &'t str, mut sink: impl FnMut(&'t str)) -> Result<()> {
        let (mut ends, mut start) = (Ends::default(), 0);
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
    fn every_scanner(pattern: &Pattern) -> Vec<Self> {
        let scanners = Family::of(pattern.expression()).map(scan::Scanner::every_way);
        let scanners = scanners.into_iter().flatten();
        scanners.map(|scanner| Self { tier: Tier::Scan(scanner) }).collect()
    }

    /// A place behind `near` at which `text` may be cut in two without changing its pretokens, if
    /// there is one within a few thousand bytes.
    ///
    /// For the published patterns that is before white space, or between a letter or digit of any script
    /// and punctuation. An automaton knows its own places; for other patterns nothing is known.
    ///
    /// ```
    /// use bytepair::{Pattern, Splitter};
    /// let splitter = Splitter::new(&Pattern::named("gpt4").unwrap())?;
    /// assert_eq!(splitter.cut("中文字符，没有空格。", 0), Some("中文字符".len()));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn cut(&self, text: &str, near: usize) -> Option<usize> {
        self.cut_text(&Text::Utf8(text), near)
    }

    /// As [`cut`](Self::cut), for a text that is stored in any way; in units of it.
    pub(crate) fn cut_text(&self, text: &Text<'_>, near: usize) -> Option<usize> {
        let is_cut = |before, at| self.border(before, at) == Border::End;
        text.find_border(near, CUT_WINDOW, is_cut)
    }

    /// What is known of the place between two characters.
    ///
    /// With several steps, a text may be cut where one of them ends a pretoken, if to those before it
    /// the place is free: then these leave the same pieces but for the one around the place, which is
    /// in two parts, as that step will divide it anyhow. What later steps do no longer matters.
    fn border(&self, before: char, at: char) -> Border {
        match &self.tier {
            Tier::Scan(_) if family::ends_between(before, at) => Border::End,
            Tier::Scan(_) | Tier::Regex(_) => Border::Unknown,
            Tier::Table(table) => table.border(before, at),
            Tier::Steps(steps) => {
                let mut borders = steps.iter().map(|step| step.border(before, at));
                borders.find(|&border| border != Border::Free).unwrap_or(Border::Free)
            }
        }
    }

    /// The first place at which a long text may be cut that leaves about `size` units or more on both
    /// sides, however far it is.
    pub(crate) fn cut_long(&self, text: &Text<'_>, size: usize) -> Option<usize> {
        let last = text.len().checked_sub(size)?;
        (size..last).step_by(CUT_WINDOW).find_map(|near| self.cut_text(text, near))
    }

    /// How many bytes at the beginning of `text` have pretokens that nothing that follows can change.
    ///
    /// What follows a text can change its last two pretokens at most, under a published pattern; the
    /// tests go through all short strings. Under other patterns, what stands before a place where the
    /// text may be cut is certain.
    pub(crate) fn certain(&self, text: &str) -> Result<usize> {
        let mut near = text.len().saturating_sub(2048);
        if let Some(cut) = self.cut(text, near) {
            return Ok(cut);
        }
        let Tier::Scan(_) = self.tier else { return Ok(0) };
        // From somewhere in the middle on it is less to split, if there is a cut.
        near = self.cut(text, text.len() / 2).unwrap_or(0);
        let mut last = [near; 3];
        self.for_each(&text[near..], |pretoken| {
            last = [last[1], last[2], last[2] + pretoken.len()];
        })?;
        Ok(last[0])
    }

    /// The name of the way in which this pattern is split: `"regex"`, `"table"`, `"steps"`, or, for a
    /// scanner, the name of the instructions that it uses: `"avx512"`, `"avx2"`, `"neon"`, `"portable"`.
    pub fn tier(&self) -> &'static str {
        match &self.tier {
            Tier::Scan(scanner) => scanner.name(),
            Tier::Table(_) => "table",
            Tier::Regex(_) => "regex",
            Tier::Steps(_) => "steps",
        }
    }
}

/// A buffer of the ends of pretokens.
#[derive(Debug)]
pub struct Ends {
    few: [usize; Self::CAPACITY],
    length: usize,
    /// All ends, however many, where the pattern has steps; otherwise none.
    more: Vec<usize>,
}

impl Default for Ends {
    fn default() -> Self {
        Self { few: [0; Self::CAPACITY], length: 0, more: Vec::new() }
    }
}

impl Ends {
    /// How many ends fit; of a pattern with steps there may be more.
    pub const CAPACITY: usize = 1024;

    /// The ends, rising.
    pub fn as_slice(&self) -> &[usize] {
        if self.more.is_empty() { &self.few[..self.length] } else { &self.more }
    }

    fn clear(&mut self) {
        self.length = 0;
        self.more.clear();
    }

    fn is_full(&self) -> bool {
        self.length == Self::CAPACITY
    }

    fn room(&self) -> usize {
        Self::CAPACITY - self.length
    }

    /// Room for so many more ends, for [`add`](Self::add).
    #[inline]
    fn spare<const COUNT: usize>(&mut self) -> &mut [usize; COUNT] {
        self.few[self.length..].first_chunk_mut().expect("the caller asked for room")
    }

    /// Add so many ends, which are in the spare room.
    #[inline]
    fn add(&mut self, count: usize) {
        self.length += count;
    }

    #[inline]
    fn push(&mut self, end: usize) {
        self.few[self.length] = end;
        self.length += 1;
    }
}
