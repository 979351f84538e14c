//! Parses a pattern into a tree, if it consists of characters, alternatives and repetitions.
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
//! A repetition of a node that may match the empty text is rejected too, since engines differ in
//! when they leave the loop.

use std::collections::HashMap;

use fancy_regex::{Assertion, Expr, LookAround};
use regex_syntax::hir::{Class, HirKind};

use crate::search::parsed;

/// Characters as ranges of code points, both ends included; sorted, without overlap.
pub(super) type Set = Vec<(u32, u32)>;

/// The constructs that the automaton supports. Sets are given by their index.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// One character of the set.
    Character(usize),
    /// The empty text, if the next character is in the set (if it is not, with `negated`). `end`:
    /// whether it also matches at the end of the text.
    Look { set: usize, negated: bool, end: bool },
    /// All nodes in order; the empty text if there are none.
    Concat(Vec<Self>),
    /// The first node that leads to a match.
    Alternation(Vec<Self>),
    /// The node at least `least` and at most `most` times; as often as possible if `greedy`, else
    /// as rarely as possible.
    Repeat { node: Box<Self>, least: usize, most: Option<usize>, greedy: bool },
}

impl Node {
    const EMPTY: Self = Self::Concat(Vec::new());

    /// Whether the node may match the empty text.
    fn is_nullable(&self) -> bool {
        match self {
            Self::Character(_) => false,
            Self::Look { .. } => true,
            Self::Concat(nodes) => nodes.iter().all(Self::is_nullable),
            Self::Alternation(nodes) => nodes.iter().any(Self::is_nullable),
            Self::Repeat { node, least, .. } => *least == 0 || node.is_nullable(),
        }
    }

    /// Whether there is only one way to match the node.
    fn is_fixed(&self) -> bool {
        match self {
            Self::Character(_) | Self::Look { .. } => true,
            Self::Concat(nodes) => nodes.iter().all(Self::is_fixed),
            Self::Alternation(_) => false,
            Self::Repeat { node, least, most, .. } => Some(*least) == *most && node.is_fixed(),
        }
    }
}

/// The tree of a pattern, and its sets; `None` if the automaton does not support all of it.
pub(super) fn parse(pattern: &str) -> Option<(Node, Vec<Set>)> {
    let tree = parsed(pattern)?;
    let mut parser = Parser { sets: Vec::new() };
    let node = parser.node(&tree, true)?;
    Some((node, parser.sets))
}

struct Parser {
    sets: Vec<Set>,
}

impl Parser {
    /// The node of an expression. `last`: whether the expression ends the pattern.
    fn node(&mut self, expr: &Expr, last: bool) -> Option<Node> {
        Some(match expr {
            Expr::Empty => Node::EMPTY,
            Expr::Any { .. } | Expr::Delegate { .. } => self.character(characters(expr)?),
            Expr::Literal { val, casei } => {
                let each = val.chars().map(|c| Some(self.character(literal(c, *casei)?)));
                let mut each = each.collect::<Option<Vec<_>>>()?;
                if each.len() == 1 { each.remove(0) } else { Node::Concat(each) }
            }
            Expr::Assertion(_) => self.look(next(expr)?, false),
            Expr::LookAround(child, LookAround::LookAhead) => self.look(next(child)?, false),
            Expr::LookAround(child, LookAround::LookAheadNeg) => self.look(next(child)?, true),
            Expr::Group(child) => self.node(child, last)?,
            Expr::Concat(children) => {
                let count = children.len();
                let each = children.iter().enumerate();
                let each = each.map(|(at, child)| self.node(child, last && at + 1 == count));
                Node::Concat(each.collect::<Option<_>>()?)
            }
            Expr::Alt(children) => {
                let each = children.iter().map(|child| self.node(child, last));
                Node::Alternation(each.collect::<Option<_>>()?)
            }
            Expr::Repeat { child, lo, hi, greedy } => {
                // If the child may be repeated, another repetition may follow it, so it does not
                // end the pattern.
                let node = Box::new(self.node(child, last && *hi <= 1)?);
                if *hi > 1 && node.is_nullable() {
                    return None;
                }
                let most = (*hi != usize::MAX).then_some(*hi);
                Node::Repeat { node, least: *lo, most, greedy: *greedy }
            }
            Expr::AtomicGroup(child) => self.atomic(child, last)?,
            _ => return None,
        })
    }

    fn atomic(&mut self, child: &Expr, last: bool) -> Option<Node> {
        let node = self.node(child, last)?;
        // Backtracking into an atomic group is impossible. At the end of the pattern, nothing can
        // fail after it, and a node with only one way to match has no other to try: there, it
        // changes nothing.
        if last || node.is_fixed() {
            return Some(node);
        }
        let Node::Repeat { node, least, most, greedy: true } = node else { return None };
        let Node::Character(set) = *node else { return None };
        Some(possessive(set, least, most))
    }

    fn character(&mut self, set: Set) -> Node {
        Node::Character(self.index(set))
    }

    fn look(&mut self, (set, end): (Set, bool), negated: bool) -> Node {
        Node::Look { set: self.index(set), negated, end: end != negated }
    }

    /// The index of a set, which is added if it is new.
    fn index(&mut self, set: Set) -> usize {
        self.sets.iter().position(|other| *other == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })
    }
}

/// The longest run of characters of a set, up to `most`, without backtracking.
fn possessive(set: usize, least: usize, most: Option<usize>) -> Node {
    let repeat = |least, most| {
        let node = Box::new(Node::Character(set));
        Node::Repeat { node, least, most, greedy: true }
    };
    // A run without backtracking ends where the next character is not in the set, or at `most`.
    let stop = Node::Look { set, negated: true, end: true };
    match most {
        None => Node::Concat(vec![repeat(least, None), stop]),
        Some(most) if most <= least => repeat(least, Some(most)),
        Some(most) => Node::Alternation(vec![
            repeat(most, Some(most)),
            Node::Concat(vec![repeat(least, Some(most - 1)), stop]),
        ]),
    }
}

/// The characters that an expression matches, if it always matches exactly one.
fn characters(expr: &Expr) -> Option<Set> {
    match expr {
        Expr::Any { newline, crlf } => fragment(match (newline, crlf) {
            (true, _) => "(?s:.)",
            (false, false) => ".",
            (false, true) => r"[^\r\n]",
        }),
        Expr::Delegate { inner, casei: false } => fragment(inner),
        Expr::Delegate { inner, casei: true } => fragment(&format!("(?i:{inner})")),
        Expr::Literal { val, casei } => {
            let mut each = val.chars();
            let (first, None) = (each.next()?, each.next()) else { return None };
            literal(first, *casei)
        }
        _ => None,
    }
}

/// The next characters at which a lookahead matches, and whether it matches at the end of the text;
/// `None` if it needs more than one character.
fn next(expr: &Expr) -> Option<(Set, bool)> {
    match expr {
        Expr::Assertion(Assertion::EndText) => Some((Set::new(), true)),
        Expr::Assertion(Assertion::EndLine { crlf: false }) => Some((literal('\n', false)?, true)),
        Expr::Group(child) => next(child),
        Expr::Alt(children) => {
            let all = children.iter().map(next).collect::<Option<Vec<_>>>()?;
            let end = all.iter().any(|(_, end)| *end);
            Some((union(all.into_iter().flat_map(|(set, _)| set).collect()), end))
        }
        _ => Some((characters(expr)?, false)),
    }
}

fn literal(c: char, any_case: bool) -> Option<Set> {
    let exact = || Some(vec![(c.into(), c.into())]);
    if any_case { fragment(&format!(r"(?i:\x{{{:x}}})", u32::from(c))) } else { exact() }
}

/// The characters that a piece of a pattern matches, if it always matches exactly one.
fn fragment(piece: &str) -> Option<Set> {
    let hir = regex_syntax::parse(piece).ok()?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            Some(class.iter().map(|range| (range.start().into(), range.end().into())).collect())
        }
        HirKind::Literal(literal) => {
            let mut each = std::str::from_utf8(&literal.0).ok()?.chars();
            let (c, None) = (u32::from(each.next()?), each.next()) else { return None };
            Some(vec![(c, c)])
        }
        _ => None,
    }
}

/// The union of ranges, in order and without overlap.
fn union(mut ranges: Set) -> Set {
    ranges.sort_unstable();
    let mut all = Set::new();
    for (first, last) in ranges {
        match all.last_mut() {
            // Adjacent ranges are joined too: equal sets must have equal ranges.
            Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
            _ => all.push((first, last)),
        }
    }
    all
}

// ---------------------------------------------------------------------------- classes
//
// Divides characters into classes: two characters have the same class if every set contains both
// or neither.
//
// The table has two stages, like that of `unicode`: the upper bits of a
// code point select a block of 256 characters, the lower bits a class in it.

/// The largest number of classes: each class, and the end of the text, is a bit of a word.
const MAX_CLASSES: usize = 63;
const MAX_SETS: usize = 128;

/// The class of every character.
#[derive(Debug)]
pub(super) struct Classes {
    /// The class of each ASCII character.
    pub(super) ascii: [u8; 128],
    /// For every 256 characters, the index of their block.
    index: Vec<u16>,
    blocks: Vec<[u8; 256]>,
    /// The smallest and the largest character of each class.
    pub(super) samples: Vec<[char; 2]>,
    /// For each set, the classes in it as bits.
    pub(super) members: Vec<u64>,
}

impl Classes {
    /// `None` if there are too many sets or classes.
    pub(super) fn of(sets: &[Set]) -> Option<Self> {
        if sets.len() > MAX_SETS {
            return None;
        }
        let mut numbers: HashMap<u128, u8> = HashMap::new();
        let mut all = vec![0; 0x11_0000];
        let mut samples = Vec::new();
        let mut members = vec![0; sets.len()];
        // All characters of an interval are in the same sets. Intervals in the same sets share a
        // class.
        for (first, last, within) in intervals(sets) {
            let Some(sample) = sample(first, last) else { continue };
            let class = *numbers.entry(within).or_insert_with(|| {
                samples.push(sample);
                u8::try_from(samples.len() - 1).unwrap_or(u8::MAX)
            });
            if usize::from(class) >= MAX_CLASSES {
                return None;
            }
            samples[usize::from(class)][1] = sample[1];
            all[first as usize..=last as usize].fill(class);
            for (set, members) in members.iter_mut().enumerate() {
                *members |= u64::from(within >> set & 1 != 0) << class;
            }
        }
        let (index, blocks) = two_stages(&all);
        let ascii = std::array::from_fn(|byte| all[byte]);
        Some(Self { ascii, index, blocks, samples, members })
    }

    pub(super) fn count(&self) -> usize {
        self.samples.len()
    }

    /// The class of any character.
    #[inline]
    pub(super) fn class_of(&self, c: char) -> u8 {
        let c = c as usize;
        self.blocks[usize::from(self.index[c >> 8])][c & 0xFF]
    }
}

/// All code points in order, cut wherever a range of a set begins or ends: the first and the last
/// code point of each interval, and a bit for each set that contains it.
fn intervals(sets: &[Set]) -> Vec<(u32, u32, u128)> {
    let mut edges = vec![(0, 0)];
    for (number, set) in sets.iter().enumerate() {
        let edge = |at| (at, 1u128 << number);
        edges.extend(set.iter().flat_map(|&(first, last)| [edge(first), edge(last + 1)]));
    }
    edges.push((0x11_0000, 0));
    edges.sort_unstable();
    let mut within = 0;
    let mut intervals = Vec::new();
    for pair in edges.windows(2) {
        // Two edges of one set at the same code point cancel out.
        within ^= pair[0].1;
        if pair[0].0 < pair[1].0 {
            intervals.push((pair[0].0, pair[1].0 - 1, within));
        }
    }
    intervals
}

/// The first and last character between two code points; `None` if all are surrogates.
fn sample(first: u32, last: u32) -> Option<[char; 2]> {
    let first = (first..=last).find_map(char::from_u32)?;
    let last = (u32::from(first)..=last).rev().find_map(char::from_u32)?;
    Some([first, last])
}

/// For every 256 entries, the index of their block; and the distinct blocks.
fn two_stages(all: &[u8]) -> (Vec<u16>, Vec<[u8; 256]>) {
    let mut numbers: HashMap<&[u8; 256], u16> = HashMap::new();
    let (mut index, mut blocks) = (Vec::new(), Vec::new());
    for block in all.as_chunks().0 {
        let number = *numbers.entry(block).or_insert_with(|| {
            blocks.push(*block);
            u16::try_from(blocks.len() - 1).expect("there are 4,352 blocks")
        });
        index.push(number);
    }
    (index, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_in_the_sets_of_its_class() {
        let sets: Vec<Set> = vec![
            vec![(97, 122), (0xE0, 0xFF)],
            vec![(120, 300), (0xD700, 0xE001)],
            vec![],
            vec![(0, 0x10_FFFF)],
            vec![(0x10_0000, 0x10_FFFF)],
        ];
        let classes = Classes::of(&sets).unwrap();
        for c in (0..0x11_0000).filter_map(char::from_u32) {
            let class = classes.class_of(c);
            for (set, members) in sets.iter().zip(&classes.members) {
                let has = set.iter().any(|&(first, last)| (first..=last).contains(&c.into()));
                assert_eq!(members >> class & 1 != 0, has, "{c:?}");
            }
            if c.is_ascii() {
                assert_eq!(classes.ascii[c as usize], class);
            }
        }
        for (class, samples) in classes.samples.iter().enumerate() {
            assert!(samples.iter().all(|&c| usize::from(classes.class_of(c)) == class));
        }
    }

    #[test]
    fn too_many_classes_are_rejected() {
        let singles = |count: u32| (0..count).map(|c| vec![(c, c)]).collect::<Vec<Set>>();
        assert_eq!(Classes::of(&singles(62)).unwrap().count(), 63);
        assert!(Classes::of(&singles(63)).is_none());
        assert!(Classes::of(&singles(200)).is_none());
    }
}
