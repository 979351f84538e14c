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
//!
//! A pattern in steps has one automaton, the product of those of its steps ([`Automaton::then`]). A later
//! step splits the pieces of the earlier ones: where such a piece ends, the text ends for the later step.

use std::collections::HashMap;

use crate::pretokenize::table::classes::Classes;
use crate::pretokenize::table::program::{Instruction, Program};

const MAX_STATES: usize = 4096;
/// The largest number of instructions that are run to build the states: about 20 ms.
const MAX_RUN_INSTRUCTIONS: usize = 2_000_000;

/// The automaton of a pattern over classes of characters.
#[derive(Debug, Clone)]
pub(super) struct Automaton {
    /// The transitions by state and symbol. A symbol is a class, or the number of classes for the
    /// end of the text.
    steps: Vec<Transition>,
    symbols: usize,
}

/// The effect of a symbol in a state. In a product, the matches are those of the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transition {
    /// The next state.
    pub(super) next: usize,
    /// Whether a match that is not empty ends before the symbol.
    pub(super) matched: bool,
    /// The next state if a pretoken begins with the symbol; dead if no match begins with it.
    pub(super) first: usize,
    /// The next state if no match covers the symbol.
    pub(super) skipped: usize,
    /// In a product: whether a piece of the earlier steps ends before the symbol.
    pub(super) divides: bool,
}

impl Automaton {
    /// The state without threads.
    pub(super) const DEAD: usize = 0;
    /// The state before the first character; no other position has it.
    pub(super) const START: usize = 1;
    /// The state after characters that no match covers, in the automaton of one step.
    const SKIPPED: usize = 2;

    /// Build the automaton of one step; `None` if it would be too large.
    pub(super) fn of(program: &Program, classes: &Classes) -> Option<Self> {
        let symbols = classes.count() + 1;
        let mut run = Threads::new(program, classes);
        let mut states = vec![Vec::new(), vec![program.start], vec![program.start]];
        let mut numbers = HashMap::from([(Vec::new(), Self::DEAD)]);
        let mut steps: Vec<Transition> = Vec::new();
        // States are numbered when they are first reached, so `states` is also the queue of those
        // whose transitions are missing.
        while steps.len() < states.len() * symbols {
            let number = steps.len() / symbols;
            let state = states[number].clone();
            for symbol in 0..symbols {
                let (next, matched) = run.step(&state, symbol);
                let next = *numbers.entry(next).or_insert_with_key(|next| {
                    states.push(next.clone());
                    states.len() - 1
                });
                // An empty match is ignored.
                let matched = matched && number > Self::SKIPPED;
                let skipped = Self::SKIPPED;
                steps.push(Transition { next, matched, first: next, skipped, divides: false });
            }
            if states.len() > MAX_STATES || run.steps > MAX_RUN_INSTRUCTIONS {
                return None;
            }
        }
        for at in 0..steps.len() {
            steps[at].first = steps[Self::START * symbols + at % symbols].next;
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

    /// Whether a match covers every character of every text.
    #[cfg(any(test, feature = "json"))]
    pub(super) fn covers_all(&self) -> bool {
        let fails = self.states_that_may_fail();
        let mut starts = (0..self.symbols - 1).map(|symbol| self.step(Self::START, symbol).next);
        starts.all(|next| next != Self::DEAD && !fails[next])
    }

    /// The states from which the text may go on so that no further match ends.
    pub(super) fn states_that_may_fail(&self) -> Vec<bool> {
        self.states_with(|step, fails| {
            !step.matched && (step.next == Self::DEAD || fails[step.next])
        })
    }

    /// The states with a transition that satisfies a condition. The condition also gets the states that
    /// are in the result so far, and is tested until no state is added.
    fn states_with(&self, condition: impl Fn(&Transition, &[bool]) -> bool) -> Vec<bool> {
        let mut states = vec![false; self.count()];
        loop {
            let before = states.clone();
            // Most transitions lead to a state with a higher number, so few rounds are needed.
            for (state, steps) in self.steps.chunks(self.symbols).enumerate().rev() {
                states[state] = states[state] || steps.iter().any(|step| condition(step, &states));
            }
            if states == before {
                return states;
            }
        }
    }
}

// ---------------------------------------------------------------------------- the product of steps

/// The states of two automata.
type Pair = (usize, usize);

impl Automaton {
    /// The automaton that splits by this one, which is of a single step, and the pieces by `later`.
    ///
    /// `None` if the product would be too large, or if more than the next character decides whether a
    /// piece ends. Also `None` if a pretoken may start within a piece at a place where the state of this
    /// automaton depends on the text before it: the splitter always starts at [`START`](Self::START).
    pub(super) fn then(&self, later: &Self) -> Option<Self> {
        let symbols = self.symbols;
        let mut states: Vec<Pair> = vec![(Self::DEAD, Self::DEAD), (Self::START, Self::START)];
        let mut numbers: HashMap<Pair, usize> = states.iter().copied().zip(0..).collect();
        let dead = Transition { next: 0, matched: false, first: 0, skipped: 0, divides: false };
        // For each transition, whether a splitter that starts before its symbol is in the right state.
        let (mut steps, mut may_start) = (vec![dead; symbols], vec![true; symbols]);
        while steps.len() < states.len() * symbols {
            let (piece, state) = states[steps.len() / symbols];
            for symbol in 0..symbols {
                let (next_piece, ends) = self.piece(piece, symbol)?;
                let (start_of_piece, _) = self.piece(Self::START, symbol)?;
                let step = later.within(state, symbol, ends);
                let [next, first, skipped] = [step.next, step.first, step.skipped].map(|state| {
                    let dead = state == Self::DEAD;
                    let pair = if dead { (Self::DEAD, Self::DEAD) } else { (next_piece, state) };
                    *numbers.entry(pair).or_insert_with(|| {
                        states.push(pair);
                        states.len() - 1
                    })
                });
                steps.push(Transition { next, first, skipped, ..step });
                may_start.push(ends || next_piece == start_of_piece);
            }
            if states.len() > MAX_STATES {
                return None;
            }
        }
        let product = Self { steps, symbols }.pruned();
        let mut starts = product.starts_of_pretokens().into_iter().zip(may_start);
        starts.all(|(starts, may)| may || !starts).then_some(product)
    }

    /// The state after a symbol, and whether a piece ends before the symbol. `None` if the characters
    /// after the symbol decide that.
    fn piece(&self, state: usize, symbol: usize) -> Option<(usize, bool)> {
        let step = self.step(state, symbol);
        let is_match = step.first != Self::DEAD;
        let first = if is_match { step.first } else { Self::SKIPPED };
        match state {
            Self::START => Some((first, false)),
            Self::SKIPPED => Some((first, is_match)),
            _ if step.next != Self::DEAD => Some((step.next, false)),
            _ => step.matched.then_some((first, true)),
        }
    }

    /// The effect of a symbol in the pieces of another automaton. `ends`: whether a piece ends before it.
    fn within(&self, state: usize, symbol: usize, ends: bool) -> Transition {
        if !ends {
            return self.step(state, symbol);
        }
        let matched = self.end(state).matched;
        Transition { next: Self::DEAD, matched, divides: true, ..self.step(Self::START, symbol) }
    }

    /// The same automaton, which is dead as soon as no match can follow.
    fn pruned(mut self) -> Self {
        let live = self.states_with(|step, live| step.matched || live[step.next]);
        for step in &mut self.steps {
            let pruned = |state| if live[state] { state } else { Self::DEAD };
            (step.next, step.first) = (pruned(step.next), pruned(step.first));
        }
        self
    }

    /// For each transition, whether a pretoken may start before its symbol.
    fn starts_of_pretokens(&self) -> Vec<bool> {
        let fails = self.states_that_may_fail();
        let uncovered = self.uncovered_states(&fails);
        let each = self.steps.iter().enumerate();
        each.map(|(at, step)| {
            let is_last_match = step.matched && (step.next == Self::DEAD || fails[step.next]);
            let ends_uncovered = step.divides || step.first != Self::DEAD;
            is_last_match || (ends_uncovered && uncovered[at / self.symbols])
        })
        .collect()
    }

    /// The states in which it may be that no match covers the text before; the start is one of them.
    /// `fails` are the [states that may fail](Self::states_that_may_fail).
    pub(super) fn uncovered_states(&self, fails: &[bool]) -> Vec<bool> {
        let (mut uncovered, mut queue) = (vec![false; self.count()], vec![Self::START]);
        while let Some(state) = queue.pop() {
            if std::mem::replace(&mut uncovered[state], true) {
                continue;
            }
            let steps = &self.steps[state * self.symbols..][..self.symbols];
            let is_covered =
                |step: &Transition| step.divides || (step.next != Self::DEAD && !fails[step.next]);
            queue.extend(steps.iter().filter(|step| !is_covered(step)).map(|step| step.skipped));
        }
        uncovered
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
