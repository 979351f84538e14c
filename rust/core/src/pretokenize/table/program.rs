//! Compiles a pattern to a program, if it consists of characters, alternatives and repetitions.
//!
//! The parser of the engine reads the pattern, so both give it the same meaning. Constructs that an
//! automaton over characters cannot implement are rejected: lookbehind, backreferences, and
//! lookahead by more than one character. Three constructs need a proof:
//!
//! - **Lookahead by one character** (`(?!\S)`, `(?=[a-z]|$)`, `$`) is a set of possible next
//!   characters; the end of the text counts as one more character.
//! - **A possessive repetition of one character**, `X*+`, ends only where no `X` follows, so it is
//!   equivalent to the greedy repetition followed by `(?!X)`. If it has a maximum, `(?!X)` applies
//!   only when it ends before the maximum.
//! - **An atomic group at the end of the pattern** is never backtracked into, because nothing after
//!   it can fail; and a group without a choice inside has nothing to backtrack into. All other
//!   atomic groups are rejected.
//!
//! A repetition of a part that may match the empty text is rejected too, since engines differ in
//! when they leave the loop.

use std::collections::HashMap;
use std::ptr;

use fancy_regex::{Expr, LookAround};

use crate::pretokenize::table::classes::{Set, characters, complement, literal, next};
use crate::search::{lengths, parsed};

const MAX_INSTRUCTIONS: usize = 4096;

/// An instruction of a program. A `usize` is the index of a set, a `u32` that of an instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    /// Wait for a character of the set.
    Character(usize, u32),
    /// Continue if the next character, or the end of the text, is in the set.
    Look(usize, u32),
    /// Continue at both; the first is preferred.
    Fork(u32, u32),
    /// The end of the program.
    Match,
}

/// What to do at the start of a match, in order of preference.
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) start: u32,
    pub(super) sets: Vec<Set>,
    /// The sets of parts of the pattern: those of a repetition are added more than once.
    known: HashMap<*const Expr, usize>,
}

impl Program {
    /// The program of a pattern; its sets are added to `sets`. `None` if it is too long, or if the
    /// automaton does not support all of the pattern.
    pub(super) fn of(pattern: &str, sets: Vec<Set>) -> Option<Self> {
        let instructions = vec![Instruction::Match];
        let mut program = Self { instructions, start: 0, sets, known: HashMap::new() };
        program.start = program.add(&parsed(pattern)?, true, 0)?;
        Some(program)
    }

    fn push(&mut self, instruction: Instruction) -> Option<u32> {
        if self.instructions.len() == MAX_INSTRUCTIONS {
            return None;
        }
        self.instructions.push(instruction);
        u32::try_from(self.instructions.len() - 1).ok()
    }

    /// Add an expression that continues at `next`; returns its first instruction. `at_end`: whether the
    /// expression ends the pattern.
    fn add(&mut self, expr: &Expr, at_end: bool, next: u32) -> Option<u32> {
        match expr {
            Expr::Empty => Some(next),
            Expr::Any { .. } | Expr::Delegate { .. } => {
                let set = self.set(expr, characters)?;
                self.push(Instruction::Character(set, next))
            }
            // From the last part to the first, because each must know where it continues.
            Expr::Literal { val, casei } => val.chars().rev().try_fold(next, |next, c| {
                let set = self.index(literal(c, *casei)?);
                self.push(Instruction::Character(set, next))
            }),
            Expr::Concat(parts) => {
                parts.iter().enumerate().rev().try_fold(next, |next, (at, part)| {
                    self.add(part, at_end && at + 1 == parts.len(), next)
                })
            }
            Expr::Alt(parts) => {
                let (final_part, others) = parts.split_last()?;
                let start = self.add(final_part, at_end, next)?;
                others.iter().rev().try_fold(start, |others, part| {
                    let first = self.add(part, at_end, next)?;
                    self.push(Instruction::Fork(first, others))
                })
            }
            Expr::Assertion(_)
            | Expr::LookAround(_, LookAround::LookAhead | LookAround::LookAheadNeg) => {
                let set = self.set(expr, ahead)?;
                self.push(Instruction::Look(set, next))
            }
            Expr::Group(child) => self.add(child, at_end, next),
            Expr::Repeat { child, lo, hi, greedy } => {
                if *hi > 1 && lengths(child)?.0 == 0 {
                    return None;
                }
                self.repeat(child, [*lo, *hi], *greedy, at_end, next)
            }
            Expr::AtomicGroup(child) => self.add_atomic(child, at_end, next),
            _ => None,
        }
    }

    /// Add a part that is repeated between `least` and `most` times: as often as possible if `greedy`,
    /// else as rarely as possible.
    fn repeat(
        &mut self,
        part: &Expr,
        [least, most]: [usize; 2],
        greedy: bool,
        at_end: bool,
        next: u32,
    ) -> Option<u32> {
        // If the part may be repeated, another repetition may follow it, so it does not end the pattern.
        let at_end = at_end && most <= 1;
        let fork = |inner| {
            let [first, second] = if greedy { [inner, next] } else { [next, inner] };
            Instruction::Fork(first, second)
        };
        let mut at = next;
        if most == usize::MAX {
            // The part continues at the fork, so the fork is added first and set when the part is known.
            at = self.push(Instruction::Match)?;
            let inner = self.add(part, false, at)?;
            self.instructions[at as usize] = fork(inner);
        } else {
            for _ in least..most {
                let inner = self.add(part, at_end, at)?;
                at = self.push(fork(inner))?;
            }
        }
        (0..least).try_fold(at, |at, _| self.add(part, at_end, at))
    }

    /// Add a group that is not backtracked into.
    fn add_atomic(&mut self, group: &Expr, at_end: bool, next: u32) -> Option<u32> {
        // At the end of the pattern, nothing can fail after the group, and a part with only one way to
        // match has no other to try: there, it changes nothing.
        if at_end || is_fixed(group) {
            return self.add(group, at_end, next);
        }
        match group {
            Expr::Group(child) => self.add_atomic(child, at_end, next),
            Expr::Repeat { child, lo, hi, greedy: true } => {
                // The run ends where the next character is not in the set, or at the maximum.
                let stop = self.set(group, |_| characters(child).map(|set| complement(&set)))?;
                let stop = self.push(Instruction::Look(stop, next))?;
                if *hi == usize::MAX {
                    return self.repeat(child, [*lo, *hi], true, false, stop);
                }
                let longest = self.repeat(child, [*hi; 2], true, false, next)?;
                let shorter = self.repeat(child, [*lo, hi - 1], true, false, stop)?;
                self.push(Instruction::Fork(longest, shorter))
            }
            _ => None,
        }
    }

    /// The index of the set that `of` finds for an expression.
    fn set(&mut self, expr: &Expr, of: impl Fn(&Expr) -> Option<Set>) -> Option<usize> {
        if let Some(&index) = self.known.get(&ptr::from_ref(expr)) {
            return Some(index);
        }
        let index = self.index(of(expr)?);
        self.known.insert(expr, index);
        Some(index)
    }

    /// The index of a set, which is added if it is new.
    fn index(&mut self, set: Set) -> usize {
        self.sets.iter().position(|other| *other == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })
    }
}

/// The next characters at which an assertion or a lookahead holds.
fn ahead(expr: &Expr) -> Option<Set> {
    match expr {
        Expr::LookAround(child, LookAround::LookAhead) => next(child),
        Expr::LookAround(child, _) => next(child).map(|set| complement(&set)),
        _ => next(expr),
    }
}

/// Whether there is only one way to match an expression.
fn is_fixed(expr: &Expr) -> bool {
    match expr {
        Expr::LookAround(..) => true,
        Expr::Alt(_) => false,
        Expr::Repeat { lo, hi, .. } if lo != hi => false,
        _ => expr.children_iter().all(is_fixed),
    }
}
