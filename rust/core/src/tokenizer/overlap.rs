//! Names in, a text by which two of them may overlap out.

use std::collections::HashSet;

/// The modulus and the base of the hashes.
const PRIME: u128 = (1 << 61) - 1;
const BASE: u128 = 0x0123_4567;

/// A text that ends a name of one list and starts one of the other, or a whole name of the other that
/// one contains; `None` if there is none.
///
/// Time and memory are linear in the names: parts of them are compared by their hashes first.
pub(super) fn overlap<'n>(ends: &[&'n str], starts: &[&'n str]) -> Option<&'n str> {
    let prefixes: HashSet<u64> = starts.iter().flat_map(|name| prefix_hashes(name)).collect();
    let shared = ends.iter().find_map(|name| {
        let found = suffix_hashes(name).find(|(at, hash)| {
            prefixes.contains(hash) && starts.iter().any(|start| start.starts_with(&name[*at..]))
        });
        found.map(|(at, _)| &name[at..])
    });
    shared.or_else(|| starts.iter().copied().find(|name| ends.iter().any(|end| end.contains(name))))
}

/// The hash of each proper prefix of a name.
fn prefix_hashes(name: &str) -> impl Iterator<Item = u64> {
    let mut hash = 0;
    let proper = name.char_indices().take_while(|(at, c)| at + c.len_utf8() < name.len());
    proper.map(move |(_, c)| {
        hash = (hash * BASE + value(c)) % PRIME;
        lower(hash)
    })
}

/// The start and the hash of each proper suffix of a name, the shortest first.
fn suffix_hashes(name: &str) -> impl Iterator<Item = (usize, u64)> {
    let (mut hash, mut power) = (0, 1);
    let proper = name.char_indices().rev().take_while(|(at, _)| *at > 0);
    proper.map(move |(at, c)| {
        (hash, power) = ((hash + value(c) * power) % PRIME, power * BASE % PRIME);
        (at, lower(hash))
    })
}

fn value(character: char) -> u128 {
    u128::from(u32::from(character))
}

fn lower(hash: u128) -> u64 {
    u64::try_from(hash).expect("a remainder is below the modulus")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_starts_that_are_equal_are_found() {
        for (ends, starts, shared) in [
            (&["a<b"][..], &["<bc", "x"][..], Some("<b")),
            (&["ab"], &["bb", "c"], Some("b")),
            (&["x<y>z"], &["<y>"], Some("<y>")),
            (&["é€"], &["€é"], Some("€")),
            (&["<a>", "<b>"], &["<c>", "<d>"], None),
            (&["ab"], &["ab"], Some("ab")),
            (&["b"], &["ab"], None),
            (&[], &["a"], None),
        ] {
            assert_eq!(overlap(ends, starts), shared, "{ends:?} {starts:?}");
        }
    }

    #[test]
    fn long_names_take_linear_time() {
        let (ends, starts) = ("a".repeat(300_000) + "c", "ab".repeat(150_000));
        assert_eq!(overlap(&[&ends], &[&starts]), None);
        assert_eq!(overlap(&[&starts], &[&starts]).map(str::len), Some(2));
    }
}
