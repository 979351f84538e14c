//! Turns the program of a pattern into a table: for every state and class of characters, the next
//! state, and whether a match ends before the character.
//!
//! The threads of a program are ordered by preference: an alternative before
//! later ones, one more repetition before leaving the loop (or after, if lazy). A state of the
//! automaton is the list of instructions at which threads wait after a character. A step runs all
//! threads, in order, with the next character already known:
//!
//! 1. A thread is dropped if a preferred thread has already reached the same instruction.
//! 2. A thread that reaches the end of the program is a match that ends *before* the next
//!    character. All later threads are dropped. Earlier threads continue; if one of them matches,
//!    its match replaces this one.
//!
//! So the last match that is reported before all threads have ended is the match that backtracking
//! would find first. Since the next character is known, lookahead by one character is exact; the
//! end of the text counts as a character.

use std::collections::HashMap;

use crate::pretokenize::table::classes::Classes;
use crate::pretokenize::table::program::{Instruction, Program};

const MAX_STATES: usize = 4096;
/// The largest number of instructions that are run to build the states: about 20 ms.
const MAX_RUN_INSTRUCTIONS: usize = 2_000_000;

/// The automaton of a pattern over classes of characters.
#[derive(Debug)]
pub(super) struct Automaton {
    /// The transitions by state and symbol. A symbol is a class, or the number of classes for the
    /// end of the text.
    steps: Vec<Transition>,
    symbols: usize,
}

/// The effect of a symbol in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transition {
    /// The next state.
    pub(super) next: usize,
    /// Whether a match ends before the symbol.
    pub(super) matched: bool,
}

impl Automaton {
    /// The state without threads.
    pub(super) const DEAD: usize = 0;
    /// The state before the first character; no other position has it.
    pub(super) const START: usize = 1;

    /// Build the automaton; `None` if it would be too large.
    pub(super) fn of(program: &Program, classes: &Classes) -> Option<Self> {
        let symbols = classes.count() + 1;
        let mut run = Threads::new(program, classes);
        let mut states = vec![Vec::new(), vec![program.start]];
        let mut numbers = HashMap::from([(Vec::new(), Self::DEAD)]);
        let mut steps = Vec::new();
        // States are numbered when they are first reached, so `states` is also the queue of those
        // whose transitions are missing.
        while steps.len() < states.len() * symbols {
            let state = states[steps.len() / symbols].clone();
            for symbol in 0..symbols {
                let (next, matched) = run.step(&state, symbol);
                let next = *numbers.entry(next).or_insert_with_key(|next| {
                    states.push(next.clone());
                    states.len() - 1
                });
                steps.push(Transition { next, matched });
            }
            if states.len() > MAX_STATES || run.steps > MAX_RUN_INSTRUCTIONS {
                return None;
            }
        }
        Some(Self { steps, symbols })
    }

    pub(super) fn step(&self, state: usize, symbol: usize) -> Transition {
        self.steps[state * self.symbols + symbol]
    }

    /// The transition at the end of the text.
    pub(super) fn end(&self, state: usize) -> Transition {
        self.step(state, self.symbols - 1)
    }

    /// The number of states.
    pub(super) fn count(&self) -> usize {
        self.steps.len() / self.symbols
    }
}

/// Runs the threads of a program.
struct Threads<'p> {
    instructions: &'p [Instruction],
    /// For each set, the symbols in it as bits.
    members: &'p [u64],
    /// For each instruction, the last round in which it was reached, and the last round in which a
    /// thread waited at it.
    reached: Vec<usize>,
    waited: Vec<usize>,
    round: usize,
    stack: Vec<u32>,
    /// The number of instructions that were run.
    steps: usize,
}

impl<'p> Threads<'p> {
    fn new(program: &'p Program, classes: &'p Classes) -> Self {
        let (instructions, members) = (&program.instructions[..], &classes.members[..]);
        let [reached, waited] = [0, 0].map(|never| vec![never; instructions.len()]);
        Self { instructions, members, reached, waited, round: 0, stack: vec![], steps: 0 }
    }

    /// The threads that remain after `symbol`, and whether a match ends before it.
    fn step(&mut self, threads: &[u32], symbol: usize) -> (Vec<u32>, bool) {
        self.round += 1;
        // Marks hold the number of their round, so they need no clearing between rounds.
        let mut left = Vec::new();
        self.stack.clear();
        self.stack.extend(threads.iter().rev());
        while let Some(at) = self.stack.pop() {
            self.steps += 1;
            if std::mem::replace(&mut self.reached[at as usize], self.round) == self.round {
                continue;
            }
            match self.instructions[at as usize] {
                Instruction::Character(set, next) if self.members[set] >> symbol & 1 != 0 => {
                    let waited = &mut self.waited[next as usize];
                    if std::mem::replace(waited, self.round) != self.round {
                        left.push(next);
                    }
                }
                Instruction::Look(set, next) if self.members[set] >> symbol & 1 != 0 => {
                    self.stack.push(next);
                }
                // The stack returns the preferred thread first, and all that it forks before the
                // second.
                Instruction::Fork(first, second) => self.stack.extend([second, first]),
                Instruction::Match => return (left, true),
                Instruction::Character(..) | Instruction::Look(..) => (),
            }
        }
        (left, false)
    }
}

/// A pretoken ends before this character, which begins the next one.
pub(super) const EMIT: u32 = 1;
/// No match continues with this character, and [`EMIT`] does not apply.
pub(super) const STOP: u32 = 2;
/// A match ends before this character.
pub(super) const MATCH: u32 = 4;
/// The number of these bits.
pub(super) const FLAG_BITS: u32 = 3;
