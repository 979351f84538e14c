//! Sets of characters in a pattern, and the classes that they divide characters into: two characters
//! have the same class if every set contains both or neither.
//!
//! The end of the text counts as one more character, [`END`].

use std::collections::HashMap;

use fancy_regex::{Assertion, Expr};
use regex_syntax::hir::{Class, HirKind};

/// Characters as ranges of code points, both ends included; sorted, without overlap.
pub(super) type Set = Vec<(u32, u32)>;

/// The code point of the end of the text.
const END: u32 = 0x11_0000;

/// The characters that an expression matches, if it always matches exactly one.
pub(super) fn characters(expr: &Expr) -> Option<Set> {
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
        Expr::Group(child) => characters(child),
        _ => None,
    }
}

/// The next characters at which a lookahead matches; `None` if it needs more than one character.
pub(super) fn next(expr: &Expr) -> Option<Set> {
    match expr {
        Expr::Assertion(Assertion::EndText) => Some(vec![(END, END)]),
        Expr::Assertion(Assertion::EndLine { crlf: false }) => Some(vec![(10, 10), (END, END)]),
        Expr::Group(child) => next(child),
        Expr::Alt(children) => {
            Some(union(children.iter().map(next).collect::<Option<Vec<_>>>()?.concat()))
        }
        _ => characters(expr),
    }
}

pub(super) fn literal(c: char, any_case: bool) -> Option<Set> {
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

/// The characters and the end of the text that are not in a set.
pub(super) fn complement(set: &[(u32, u32)]) -> Set {
    let starts = [0].into_iter().chain(set.iter().map(|&(_, last)| last + 1));
    let ends = set.iter().map(|&(first, _)| first).chain([END + 1]);
    let gaps = starts.zip(ends).filter(|(start, end)| start < end);
    gaps.map(|(start, end)| (start, end - 1)).collect()
}

// The table of classes has two stages, like that of `unicode`: the upper bits of a code point select a
// block of 256 characters, the lower bits a class in it.

/// The largest number of classes: each class, and the end of the text after them, is a bit of a word.
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
    /// For each set, the classes in it as bits; the bit after the last class is the end of the text.
    pub(super) members: Vec<u64>,
}

impl Classes {
    /// `None` if there are too many sets or classes.
    pub(super) fn of(sets: &[Set]) -> Option<Self> {
        if sets.len() > MAX_SETS {
            return None;
        }
        let mut numbers: HashMap<u128, u8> = HashMap::new();
        let mut all = vec![0; END as usize];
        let mut samples = Vec::new();
        let mut members = vec![0; sets.len()];
        let mut add = |class: usize, within: u128| {
            for (set, members) in members.iter_mut().enumerate() {
                *members |= u64::from(within >> set & 1 != 0) << class;
            }
        };
        // All characters of an interval are in the same sets. Intervals in the same sets share a
        // class.
        for (first, last, within) in intervals(sets) {
            if first == END {
                add(samples.len(), within);
                continue;
            }
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
            add(class.into(), within);
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

/// All code points in order, cut wherever a range of a set begins or ends, and before [`END`]: the
/// first and the last code point of each interval, and a bit for each set that contains it.
fn intervals(sets: &[Set]) -> Vec<(u32, u32, u128)> {
    let mut edges = vec![(0, 0), (END, 0), (END + 1, 0)];
    for (number, set) in sets.iter().enumerate() {
        let edge = |at| (at, 1u128 << number);
        edges.extend(set.iter().flat_map(|&(first, last)| [edge(first), edge(last + 1)]));
    }
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
