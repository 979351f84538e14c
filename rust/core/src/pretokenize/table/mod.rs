//! Splits by any pattern whose matches an automaton can find, without a regular-expression engine.
//!
//! [`program`] compiles the pattern, or rejects it; [`classes`] computes the classes of characters
//! that it distinguishes; [`automaton`] builds the table. This file runs the table, in two ways:
//!
//! - [`TableSplitter::step`] is the plain reference: it reads from the start of a pretoken until no
//!   match can follow, and returns to the end of the last match.
//! - [`TableSplitter::run`] needs one lookup per character and rarely a branch. Nearly always, a
//!   pretoken ends just before the character that reveals its end. The entry of that character then
//!   has the bit `EMIT`, and its next state is the state *after this character as the first of the
//!   next pretoken*. Text that no match covers has states too. In all other cases, the entry has the
//!   bit `STOP`: the run returns to the end of the last match, or, if there is none, one plain step
//!   from the start of the pretoken follows.
//!
//! As with regular expressions, text that no match covers is a pretoken, and an empty match is
//! ignored. The automata of the steps of a pattern are joined to one.

mod automaton;
mod classes;
mod program;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::error::Result;
use crate::pretokenize::ends::{Boundary, PretokenEnds};
use crate::search::Budget;
use automaton::Automaton;
use classes::Classes;
use program::Program;

/// Splits texts with the automaton of a pattern.
#[derive(Debug)]
pub(super) struct TableSplitter {
    classes: Classes,
    automaton: Automaton,
    /// By state and class: the index of the row of the next state, shifted left, and three flags.
    entries: Vec<u32>,
    /// By the classes of two characters: the kind of the position between them.
    boundaries: Vec<Boundary>,
    /// Whether the search at each position may read any length of text in vain, as for `a+b|a`.
    pub(super) reads_far: bool,
}

/// A flag of an entry: a pretoken ends before this character, which begins the next one.
const EMIT: u32 = 1;
/// A plain step must follow: no match continues with this character, and [`EMIT`] does not apply.
const STOP: u32 = 2;
/// A match, or text that no match covers, ends before this character.
const MATCH: u32 = 4;
/// The number of these flags.
const FLAG_BITS: u32 = 3;

/// The automata of more steps are not joined.
const MAX_STEPS: usize = 8;
/// The fast run needs spare capacity for this many ends.
const MIN_SPARE_ENDS: usize = 64;
/// This many bytes after the start of a pretoken, the plain code takes over, because it never scans
/// the same text repeatedly.
const MAX_RUN_BYTES: usize = 1024;

impl TableSplitter {
    /// The splitter of a pattern with these steps. `None` if the automaton would not be exact, or would be
    /// too large.
    pub(super) fn new(regexes: &[impl AsRef<str>]) -> Option<Self> {
        if regexes.len() > MAX_STEPS {
            return None;
        }
        let (mut programs, mut sets) = (Vec::new(), Vec::new());
        for regex in regexes {
            let mut program = Program::of(regex.as_ref(), sets)?;
            sets = std::mem::take(&mut program.sets);
            programs.push(program);
        }
        let classes = Classes::of(&sets)?;
        let automata = programs.iter().map(|program| Automaton::of(program, &classes));
        let automata = automata.collect::<Option<Vec<_>>>()?;
        let (last, others) = automata.split_last()?;
        let product = others.iter().rev().try_fold(last.clone(), |later, step| step.then(&later));
        let (automaton, count) = (product?, classes.count());
        let entries = entries(&automaton, count)?;
        let pairs = (0..count).flat_map(|before| (0..count).map(move |at| (before, at)));
        let kind = |(before, at)| {
            Boundary::of_steps(automata.iter().map(|step| boundary(step, before, at)))
        };
        let boundaries = pairs.map(kind).collect();
        let reads_far = reads_far(&automaton, count);
        Some(Self { classes, automaton, entries, boundaries, reads_far })
    }

    /// Push the ends of the pretokens from `start` on, until the text ends or `ends` is almost
    /// full. Fails if the time for the text is used up, or if the work has to stop.
    pub(super) fn fill(
        &self,
        text: &str,
        mut start: usize,
        ends: &mut PretokenEnds,
        budget: Option<&mut Budget>,
    ) -> Result<()> {
        let mut dead_ends = DeadEnds { budget, ..DeadEnds::default() };
        while start < text.len() && ends.spare_capacity() >= MIN_SPARE_ENDS {
            start = self.run(text, start, ends);
            if start < text.len() && !ends.is_full() {
                start = self.step(text, start, &mut dead_ends)?;
                ends.push(start);
            }
        }
        Ok(())
    }

    /// Push ends for as long as no plain step is needed. Returns the start of the current pretoken.
    #[inline]
    fn run(&self, text: &str, start: usize, ends: &mut PretokenEnds) -> usize {
        let bytes = text.as_bytes();
        let first = Automaton::START * self.classes.count();
        // The position of the next character, the row of the state, the start of the pretoken, and
        // the end of its last match.
        let (mut at, mut row, mut done, mut last) = (start, first, start, start);
        // Each round ends with the text, when `ends` may be full, or at an entry with `STOP`.
        while at < bytes.len()
            && ends.spare_capacity() >= MIN_SPARE_ENDS
            && at - done <= MAX_RUN_BYTES
        {
            // There is at most one end per byte, so the ends fit.
            let limit = bytes.len().min(at + ends.spare_capacity());
            let before = ends.length;
            while at < limit {
                let byte = bytes[at];
                let (class, next) = if byte < 0x80 {
                    (self.classes.ascii[usize::from(byte)], at + 1)
                } else {
                    let c = text[at..].chars().next().unwrap_or_default();
                    (self.classes.class_of(c), at + c.len_utf8())
                };
                let entry = self.entries[row + usize::from(class)];
                // A selection instead of a branch: matches come every few characters, at places
                // that are hard to predict.
                last = if entry & MATCH != 0 { at } else { last };
                if entry & STOP != 0 {
                    break;
                }
                // Every position is written, but the next one overwrites it unless `EMIT`, which is
                // 1, adds it to the length. So ends need no branch.
                ends.buffer[ends.length] = at;
                ends.length += (entry & EMIT) as usize;
                row = (entry >> FLAG_BITS) as usize;
                at = next;
            }
            done = if ends.length > before { ends.buffer[ends.length - 1] } else { done };
            if at < limit {
                // The automaton stopped: the pretoken ends where its last match does. Without a
                // match since its start, a plain step must follow.
                if last == done {
                    break;
                }
                ends.push(last);
                (at, row, done) = (last, first, last);
            }
        }
        let end = self.automaton.end(row / self.classes.count());
        if at == bytes.len() && end.matched && !ends.is_full() {
            ends.push(at);
            done = at;
        }
        done
    }

    /// The end of the pretoken that starts at `start`, which must be inside the text.
    fn step(&self, text: &str, start: usize, dead_ends: &mut DeadEnds) -> Result<usize> {
        let mut state = Automaton::START;
        for (offset, c) in text[start..].char_indices() {
            let (at, step) =
                (start + offset, self.automaton.step(state, self.classes.class_of(c).into()));
            if step.divides {
                return Ok(at);
            }
            // Most characters of long text without a match begin no match either.
            if step.next != Automaton::DEAD
                && let Some(end) = self.find(text, at, state, dead_ends)?
            {
                return Ok(if offset == 0 { end } else { at });
            }
            state = step.skipped;
        }
        Ok(text.len())
    }

    /// The end of the match at `start`, if there is one, from a state before the first character.
    fn find(
        &self,
        text: &str,
        start: usize,
        mut state: usize,
        dead_ends: &mut DeadEnds,
    ) -> Result<Option<usize>> {
        let mut end = None;
        let mut block = start / DeadEnds::BLOCK_BYTES;
        for (offset, c) in text[start..].char_indices() {
            let at = start + offset;
            // One test for each block of text, so the set stays small and most characters cost
            // nothing.
            if at / DeadEnds::BLOCK_BYTES != block {
                block = at / DeadEnds::BLOCK_BYTES;
                if !dead_ends.may_match(at, state)? {
                    break;
                }
            }
            let step = self.automaton.step(state, self.classes.class_of(c).into());
            if step.matched {
                // A match follows the pending positions, so they are no dead ends.
                end = Some(at);
                dead_ends.pending.clear();
            }
            state = step.next;
            if state == Automaton::DEAD {
                break;
            }
            if at + c.len_utf8() == text.len() && self.automaton.end(state).matched {
                end = Some(text.len());
                dead_ends.pending.clear();
            }
        }
        // No match followed the pending positions and states.
        dead_ends.recorded.extend(dead_ends.pending.drain(..));
        Ok(end)
    }

    /// The kind of the position between two characters.
    pub(super) fn boundary(&self, before: char, at: char) -> Boundary {
        let (before, at) = (self.classes.class_of(before), self.classes.class_of(at));
        self.boundaries[usize::from(before) * self.classes.count() + usize::from(at)]
    }

    /// A text that another engine splits in another way, among short texts of one sample character
    /// per class and some longer ones. `ends` returns the ends of the pretokens of a text, or `None`
    /// for a text on which that engine fails.
    pub(super) fn difference(&self, ends: impl Fn(&str) -> Option<Vec<usize>>) -> Option<String> {
        let samples: Vec<char> = self.classes.samples.iter().map(|sample| sample[0]).collect();
        let mut texts = short_texts(&samples).chain(long_texts(samples.clone()));
        texts.find(|text| ends(text).is_some_and(|ends| ends != self.ends(text)))
    }

    /// The ends of the pretokens of a text that is shorter than a buffer.
    fn ends(&self, text: &str) -> Vec<usize> {
        let mut ends = PretokenEnds::default();
        self.fill(text, 0, &mut ends, None).expect("nothing limits the time");
        ends.as_slice().to_vec()
    }
}

/// Whether a pattern is known to match all of every text.
#[cfg(any(test, feature = "json"))]
pub(crate) fn matches_all(regex: &str) -> bool {
    TableSplitter::new(&[regex]).is_some_and(|table| table.automaton.covers_all())
}

/// Whether a pattern is known to match printable characters of ASCII only, and to look at no others.
#[cfg(any(test, feature = "json"))]
pub(crate) fn is_of_ascii(regex: &str) -> bool {
    let is_printable = |&(first, last): &(u32, u32)| first > 0x20 && last < 0x7F;
    let program = Program::of(regex, Vec::new());
    program.is_some_and(|program| program.sets.iter().flatten().all(is_printable))
}

/// Positions and states after which no match follows.
///
/// Without recording them, a pattern such as `[0-9]+x|[0-9]` would scan a long number again for
/// each of its digits. One position per block of text is recorded.
#[derive(Debug, Default)]
struct DeadEnds<'b> {
    recorded: HashSet<(usize, usize)>,
    /// The positions and states since the last match.
    pending: Vec<(usize, usize)>,
    /// What is left of the time for the text, if it is limited.
    budget: Option<&'b mut Budget>,
}

impl DeadEnds<'_> {
    /// The size of a block in bytes.
    const BLOCK_BYTES: usize = 64;

    /// Whether a match may follow. If so, the position and state become pending.
    fn may_match(&mut self, at: usize, state: usize) -> Result<bool> {
        self.budget.as_mut().map_or(Ok(()), |budget| budget.count(at))?;
        let may_match = !self.recorded.contains(&(at, state));
        if may_match {
            self.pending.push((at, state));
        }
        Ok(may_match)
    }
}

/// Whether the automaton has a cycle of steps at none of which a match has ended.
///
/// Steps are removed from states that no other step leads to, until none or only cycles are left.
fn reads_far(automaton: &Automaton, classes: usize) -> bool {
    let steps = |state| {
        let steps = (0..classes).map(move |class| automaton.step(state, class));
        steps.filter(|step| !step.matched && step.next != Automaton::DEAD).map(|step| step.next)
    };
    let mut before = vec![0usize; automaton.count()];
    (0..automaton.count()).flat_map(steps).for_each(|next| before[next] += 1);
    let mut removed: Vec<usize> = (0..automaton.count()).filter(|&s| before[s] == 0).collect();
    let mut at = 0;
    while at < removed.len() {
        for next in steps(removed[at]) {
            before[next] -= 1;
            if before[next] == 0 {
                removed.push(next);
            }
        }
        at += 1;
    }
    removed.len() < automaton.count()
}

/// The entries of all states; `None` if there are too many.
fn entries(automaton: &Automaton, classes: usize) -> Option<Vec<u32>> {
    let fails = automaton.states_that_may_fail();
    let uncovered = automaton.uncovered_states(&fails);
    let entry = |state: usize, class: usize| {
        let step = automaton.step(state, class);
        let start = if step.first == Automaton::DEAD { step.skipped } else { step.first };
        let is_uncovered = state != Automaton::START && uncovered[state];
        // In text that no match covers, a match may begin; if it may fail, a plain step must follow.
        let (next, bits) = if is_uncovered && step.first != Automaton::DEAD && !step.divides {
            if fails[start] { (0, STOP) } else { (start, EMIT | MATCH) }
        } else if is_uncovered {
            (start, if step.divides { EMIT | MATCH } else { 0 })
        } else if step.next != Automaton::DEAD {
            (step.next, if step.matched { MATCH } else { 0 })
        } else if step.matched {
            (start, EMIT | MATCH)
        } else if state == Automaton::START {
            (start, 0)
        } else {
            (0, STOP)
        };
        // An entry has 29 bits for a row; a larger automaton is rejected here.
        Some(u32::try_from(next * classes).ok()?.checked_mul(1 << FLAG_BITS)? | bits)
    };
    let each =
        (0..automaton.count()).flat_map(|state| (0..classes).map(move |class| (state, class)));
    each.map(|(state, class)| entry(state, class)).collect()
}

/// The kind of the position between characters of two classes.
///
/// The position is free if, in each state after the first character, no match continues with the
/// second character, and the second character has the same effect as the end of the text. Then no
/// match spans the position, and each match begins where it would without the other side. If,
/// besides, there is a match of the first character alone, a pretoken ends there: an earlier match
/// either ends at the position, or ends before the first character, and then the next match begins
/// with that character.
fn boundary(automaton: &Automaton, before: usize, at: usize) -> Boundary {
    let next = |state| automaton.step(state, before).next;
    let is_free =
        (0..automaton.count()).map(next).filter(|&state| state != Automaton::DEAD).all(|state| {
            let step = automaton.step(state, at);
            step.next == Automaton::DEAD && step.matched == automaton.end(state).matched
        });
    let alone = next(Automaton::START);
    let ends = alone != Automaton::DEAD && automaton.step(alone, at).matched;
    match (is_free, ends) {
        (true, true) => Boundary::End,
        (true, false) => Boundary::Free,
        (false, _) => Boundary::Unknown,
    }
}

/// The number and size of the texts that are compared with the engine.
const MAX_SHORT_TEXTS: usize = 1200;
const LONG_TEXTS: usize = 48;
const MIN_LONG_CHARACTERS: usize = 48;

/// All texts of these characters, up to the length at which there would be too many.
fn short_texts(samples: &[char]) -> impl Iterator<Item = String> {
    let count = samples.len();
    let lengths =
        (1..=8).take_while(move |&length| count.pow(length) <= MAX_SHORT_TEXTS || length < 2);
    lengths.flat_map(move |length| {
        (0..count.pow(length)).map(move |number| {
            // The digits of the number in base `count` choose the characters, so all texts differ.
            (0..length).map(|digit| samples[number / count.pow(digit) % count]).collect()
        })
    })
}

/// Reproducible texts with runs of these characters.
fn long_texts(samples: Vec<char>) -> impl Iterator<Item = String> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    (0..LONG_TEXTS).map(move |_| {
        let (mut text, mut length) = (String::new(), 0);
        while length < MIN_LONG_CHARACTERS {
            let c = samples[random.below(samples.len())];
            let run = if random.below(3) == 0 { random.below(6) } else { 1 };
            text.extend(std::iter::repeat_n(c, run));
            length += run;
        }
        text
    })
}

/// Pseudo-random numbers (xorshift); the state must not be 0.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // 31 bits fit in a `usize` of any machine.
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }
}
