//! Whether one search finds all added tokens, or two passes are needed.
//!
//! `tokenizers` first finds the tokens without `normalized` in the original text, then the others in
//! what is left, normalized. One search from left to right finds the same if normalization does not
//! change what it looks for, and if no token of the second pass can overlap one of the first that
//! begins later, or is special.

use std::collections::HashSet;

use crate::rules::normalizer::META;
use crate::rules::{AddedToken, Normalizer, NormalizerStep, SpacePrefix};

/// Whether one search in the original text finds all added tokens.
pub(crate) fn one_is_enough(added: &[AddedToken], normalizer: &Normalizer) -> bool {
    let names = |normalized: bool| -> Vec<&str> {
        let tokens = added.iter().filter(|token| token.normalized == normalized);
        tokens.map(|token| &*token.content).collect()
    };
    let (first, then) = (names(false), names(true));
    if then.iter().any(|name| may_change(&normalizer.steps, name)) {
        return false;
    }
    if then.is_empty() || first.is_empty() {
        return true;
    }
    // The first pass may take white space, or divide words, that others need.
    let strips_in = |normalized: bool| {
        let mut tokens = added.iter().filter(|token| token.normalized == normalized);
        tokens.any(|token| token.lstrip || token.rstrip)
    };
    let [strips_first, strips_then] = [false, true].map(strips_in);
    let strips = strips_first || strips_then;
    let is_spaced = |token: &AddedToken| strips && token.content.trim() != token.content;
    // A special token that is not asked for is text, but hides no token of the other pass.
    let special = added.iter().filter(|token| token.special && !token.normalized);
    let hiding: Vec<&str> = special.map(|token| &*token.content).collect();
    let interferes = (strips_first && strips_then)
        || added.iter().any(|token| token.single_word || is_spaced(token));
    !interferes && overlap(&then, &first).is_none() && overlap(&hiding, &then).is_none()
}

/// Whether a normalizer may change where a token is found: it changes its name, or characters beside
/// it. The spaces that are put before a text do not count: those of [`SpacePrefix::Missing`] and
/// [`SpacePrefix::First`] are put when the tokens are cut out.
fn may_change(steps: &[NormalizerStep], name: &str) -> bool {
    match steps {
        [] | [NormalizerStep::Spaces(SpacePrefix::Missing | SpacePrefix::First)] => false,
        [NormalizerStep::Spaces(SpacePrefix::Never)] => name.contains([' ', META]),
        [NormalizerStep::Nfc] => !(name.is_ascii() && name.trim().is_empty()),
        _ => true,
    }
}

/// The modulus and the base of the hashes.
const PRIME: u128 = (1 << 61) - 1;
const BASE: u128 = 0x0123_4567;

/// A text that ends a name of one list and starts one of the other, or a whole name of the other that
/// one contains; `None` if there is none.
///
/// Time and memory are linear in the names: parts of them are compared by their hashes first.
pub(crate) fn overlap<'n>(ends: &[&'n str], starts: &[&'n str]) -> Option<&'n str> {
    let prefixes: HashSet<u64> = starts.iter().flat_map(|name| prefix_hashes(name)).collect();
    let shared = ends.iter().find_map(|name| {
        let suffix = suffix_hashes(name).find(|(at, hash)| {
            prefixes.contains(hash) && starts.iter().any(|start| start.starts_with(&name[*at..]))
        });
        suffix.map(|(at, _)| &name[at..])
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
