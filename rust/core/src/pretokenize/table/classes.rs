//! Divides characters into classes: two characters have the same class if every set contains both
//! or neither.
//!
//! The table has two stages, like that of [`unicode`](super::super::unicode): the upper bits of a
//! code point select a block of 256 characters, the lower bits a class in it.

use std::collections::HashMap;

use crate::pretokenize::table::parse::Set;

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
