//! When a list of merges is the rule of ranks, and the rule of ranks as a list of merges.
//!
//! Hugging Face `tokenizers` merges listed pairs in the order of the list. Under the rule of ranks,
//! any two neighbours whose joined bytes are a token merge, the lowest rank first, the leftmost among
//! equals. A tokenizer with that rule is written as one pair for each token, in the order of ranks.
//! This gives the same ids for every text. Proof:
//!
//! 1. Consider any sequence of adjacent parts while the rule of ranks is applied to a text. No merge
//!    so far crossed the ends of the sequence, since parts only grow. Each merge within it was the
//!    first candidate of the whole text, and so also the first candidate of the sequence. So the
//!    parts are an intermediate state of merging the bytes of the sequence alone.
//! 2. Let two neighbours join to a token. By 1, they are the intermediate state with two parts of
//!    merging the bytes of that token alone. There is only one such state: the listed pair.
//! 3. So at each step, the candidates of the rule of ranks are exactly the listed pairs, in the same
//!    order. Both rules make the same merge.
//!
//! By 2, other pairs that produce a token never occur. So a list that contains the pairs above in
//! this order gives the same merges as the rule of ranks, whatever other pairs it contains. The rule
//! of ranks also turns a pretoken that is a token into that token, as `ignore_merges` does. Without
//! `ignore_merges`, merging does the same if every token of two or more bytes has a listed pair: by
//! 1, merging the bytes of the token alone leads to the pair, and then to the token.

use crate::error::Result;
use crate::merge::build;
use crate::vocabulary::Vocabulary;

/// Whether merges are proved to give the ids of the rule of ranks for every text.
pub fn is_rule_of_ranks(
    vocabulary: &Vocabulary,
    merges: &[(u32, u32)],
    ignore_merges: bool,
) -> Result<bool> {
    let longer = || vocabulary.ordinary_tokens().filter(|(token, _)| token.len() > 1).count();
    let needed = if ignore_merges { 0 } else { longer() };
    if merges.len() < needed {
        return Ok(false);
    }
    let pairs = pairs_of_ranks(vocabulary)?;
    Ok(pairs.len() >= needed && has_in_order(merges, &pairs))
}

/// The rule of ranks as a list of merges: for each token, in the order of ranks, the pair that
/// merges into it. Tokens that no merge produces have none.
pub fn pairs_of_ranks(vocabulary: &Vocabulary) -> Result<Vec<(u32, u32)>> {
    Ok(build::by_rank(vocabulary)?.in_order())
}

/// Whether a list contains all of `pairs` in their order.
fn has_in_order(merges: &[(u32, u32)], pairs: &[(u32, u32)]) -> bool {
    let mut rest = pairs.iter().peekable();
    for pair in merges {
        rest.next_if_eq(&pair);
    }
    rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(more: &[(&str, u32)]) -> Vocabulary {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let more = more.iter().map(|(token, id)| (token.as_bytes().to_vec(), *id));
        Vocabulary::new(bytes.chain(more), []).unwrap()
    }

    #[test]
    fn a_list_is_the_rule_of_ranks_if_it_has_its_pairs_in_order() {
        let vocabulary = vocabulary(&[("ab", 256), (" \"", 257), ("ab \"", 300)]);
        assert_eq!(pairs_of_ranks(&vocabulary).unwrap(), [(97, 98), (32, 34), (256, 257)]);
        for (merges, same) in [
            (vec![(97, 98), (32, 34), (256, 257)], true),
            (vec![(97, 98), (32, 34), (97, 258), (256, 257), (258, 34)], true),
            (vec![(258, 34), (97, 98), (32, 34), (256, 257)], true),
            (vec![(32, 34), (97, 98), (256, 257)], false),
            (vec![(97, 98), (32, 34), (258, 34)], false),
            (vec![], false),
        ] {
            assert_eq!(is_rule_of_ranks(&vocabulary, &merges, true).unwrap(), same, "{merges:?}");
        }
    }

    #[test]
    fn without_ignore_merges_every_token_needs_a_merge() {
        for (more, ignore_merges, same) in [
            (&[("ab", 256)][..], false, true),
            (&[("ab", 256), ("xyz", 257)], false, false),
            (&[("ab", 256), ("xyz", 257)], true, true),
        ] {
            let merges = [(97, 98), (97, 98)];
            let is_same = is_rule_of_ranks(&vocabulary(more), &merges, ignore_merges).unwrap();
            assert_eq!(is_same, same, "{more:?} {ignore_merges}");
        }
    }
}
