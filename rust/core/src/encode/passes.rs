//! Whether one search finds all added tokens, or two passes are needed.
//!
//! `tokenizers` first finds the tokens without `normalized` in the original text, then the others in
//! what is left, normalized. One search from left to right finds the same if normalization does not
//! change what it looks for, and if no token of the second pass can overlap one of the first that
//! begins later, or is special.

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
    !interferes && !may_overlap(&then, &first) && !may_overlap(&hiding, &then)
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

/// Names with more bytes are taken to overlap: to compare all of their ends would take quadratic time.
const MAX_COMPARED_BYTES: usize = 1 << 8;

/// Whether some text may end a name of one list and start one of the other, or whether a name of the
/// one list may contain a whole name of the other.
pub(crate) fn may_overlap(ends: &[&str], starts: &[&str]) -> bool {
    if ends.is_empty() || starts.is_empty() {
        return false;
    }
    let mut starts = starts.to_vec();
    starts.sort_unstable();
    let starts_a_name = |end: &str| {
        let next = starts.partition_point(|start| *start < end);
        starts.get(next).is_some_and(|start| start.starts_with(end))
    };
    let ends_at_a_start =
        |name: &str| name.char_indices().skip(1).any(|(at, _)| starts_a_name(&name[at..]));
    ends.iter().chain(&starts).any(|name| name.len() > MAX_COMPARED_BYTES)
        || ends.iter().any(|name| ends_at_a_start(name))
        || starts.iter().any(|start| ends.iter().any(|end| end.contains(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_starts_that_are_equal_are_found() {
        for (ends, starts, overlap) in [
            (&["a<b"][..], &["<bc", "x"][..], true),
            (&["ab"], &["bb", "c"], true),
            (&["x<y>z"], &["<y>"], true),
            (&["é€"], &["€é"], true),
            (&["<a>", "<b>"], &["<c>", "<d>"], false),
            (&["ab"], &["ab"], true),
            (&["b"], &["ab"], false),
            (&["b"], &["bc"], false),
            (&[], &["a"], false),
        ] {
            assert_eq!(may_overlap(ends, starts), overlap, "{ends:?} {starts:?}");
        }
    }

    #[test]
    fn long_names_take_linear_time() {
        let (ends, starts) = ("a".repeat(300_000) + "c", "ab".repeat(150_000));
        assert!(may_overlap(&[&ends], &[&starts]) && may_overlap(&["b"], &[&starts]));
        assert!(!may_overlap(&[], &[&starts]));
    }
}
