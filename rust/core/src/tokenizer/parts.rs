//! The values of a tokenizer, before they are put together.

use std::collections::{BTreeMap, HashSet};

use crate::error::Result;
use crate::machine::array::Array;
use crate::memory;
use crate::rules::{AddedToken, TextRules};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{MergeRule, PairLookup, Vocabulary};

/// What a tokenizer is made of.
#[derive(Debug, Clone)]
pub struct TokenizerParts {
    /// The tokens with their ids, and the added tokens.
    pub vocabulary: Vocabulary,
    /// Which neighbours merge. With [`TextRules::symbols`], merging starts from those symbols.
    pub rule: MergeRule,
    /// The pairs of ids that merge, in order; empty for [`MergeRule::Ranks`].
    pub merges: Vec<(u32, u32)>,
    /// What happens before and after merging.
    pub rules: TextRules,
    /// Notes on the origin.
    pub notes: BTreeMap<String, String>,
}

impl Tokenizer {
    /// Put a tokenizer together.
    ///
    /// Fails as [`from_ranks`](Self::from_ranks) and [`from_merges`](Self::from_merges) do, and if
    /// [`MergeRule::Characters`] lacks the token of a byte.
    pub fn from_parts(parts: TokenizerParts) -> Result<Self> {
        let TokenizerParts { vocabulary, rule, merges, rules, notes } = parts;
        Ok(Self::by_rule(vocabulary, merges, rule, rules)?.with_notes(notes))
    }

    /// The parts of this tokenizer; the inverse of [`from_parts`](Self::from_parts).
    ///
    /// Fails if there is not enough memory.
    pub fn parts(&self) -> Result<TokenizerParts> {
        self.make_tables()?;
        let merges = match self.rule() {
            MergeRule::Ranks => Vec::new(),
            _ => memory::copy(self.merges())?,
        };
        Ok(TokenizerParts {
            vocabulary: self.vocabulary().clone(),
            rule: self.rule(),
            merges,
            rules: self.rules().clone(),
            notes: self.notes().clone(),
        })
    }
}

// ---------------------------------------------------------------------------- tokens
//
// The bytes, the rank and the kind of an id.
//
// Each id has a *mark* of 32 bits. The low 22 bits hold the rank of the merge that creates the
// token, plus 1, or 0 if no merge does; the highest bit marks special tokens. So two array
// accesses give everything about an id.

const RANK: u32 = (1 << 22) - 1;
const SPECIAL: u32 = 1 << 31;

/// A token of a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// The bytes of the token; for a special token, its name in UTF-8.
    pub bytes: &'a [u8],
    /// The index in [`Tokenizer::merges`] of the merge that creates the token.
    pub rank: Option<u32>,
    /// Whether it is a special token.
    pub special: bool,
}

impl Tokenizer {
    /// The token of an id; `None` for a hole or an unknown id.
    ///
    /// ```
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// let vocabulary = Vocabulary::new(bytes.chain([(b"ab".to_vec(), 256)]), [])?;
    /// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let token = tokenizer.token(256).unwrap();
    /// assert_eq!((token.bytes, token.rank), (&b"ab"[..], Some(0)));
    /// assert_eq!(tokenizer.token(65).unwrap().rank, None);
    /// assert_eq!(tokenizer.token(257), None);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[inline]
    #[doc(hidden)]
    pub fn token(&self, id: u32) -> Option<Token<'_>> {
        let bytes = self.vocabulary().bytes(id)?;
        let mark = *self.marks().get(id as usize)?;
        let rank = (mark & RANK).checked_sub(1);
        Some(Token { bytes, rank, special: mark & SPECIAL != 0 })
    }

    /// The marks of all ids, computed on first use.
    #[inline]
    pub(crate) fn marks(&self) -> &Array<u32> {
        self.marks.get_or_init(|| self.make_marks())
    }

    fn make_marks(&self) -> Array<u32> {
        let vocabulary = self.vocabulary();
        let mut marks = vec![0; vocabulary.len()];
        for (_, id) in vocabulary.special_tokens().filter(|(_, id)| vocabulary.is_special(*id)) {
            marks[id as usize] = SPECIAL;
        }
        let mut joined = PairLookup::new(vocabulary);
        for (rank, &(left, right)) in (1..=RANK).zip(self.merges()) {
            let mark = joined.id(left, right).and_then(|id| marks.get_mut(id as usize));
            if let Some(mark) = mark.filter(|mark| **mark & RANK == 0) {
                *mark |= rank;
            }
        }
        Array::new(marks)
    }
}

impl Tokenizer {
    /// The ids of the special tokens, in order, without the added tokens that are ordinary text,
    /// such as runs of spaces.
    ///
    /// ```
    /// # use bytepair::{AddedToken, Pattern, Tokenizer, Vocabulary};
    /// let tokens = [(b"a".to_vec(), 0)];
    /// let added = vec![AddedToken::special("<s>", 1), AddedToken::ordinary("  ", 2)];
    /// let vocabulary = Vocabulary::with_added(tokens, [], added)?;
    /// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// assert_eq!(tokenizer.control_ids(), [1]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn control_ids(&self) -> Vec<u32> {
        let added = self.vocabulary().added_tokens();
        let special: HashSet<&str> =
            added.iter().filter(|token| token.special).map(|token| &*token.content).collect();
        // `tokenizers` skips tokens by their names, which normalization may have changed.
        let is_skipped = |token: &&AddedToken| {
            if token.normalized {
                special.contains(&*self.token_name(token.id))
            } else {
                token.special
            }
        };
        added.iter().filter(is_skipped).map(|token| token.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Pattern, Tokenizer, Vocabulary};

    #[test]
    fn the_rank_of_a_token_is_that_of_its_first_merge() {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let more = [(b"abc".to_vec(), 256), (b"ab".to_vec(), 257), (b"bc".to_vec(), 258)];
        let vocabulary = Vocabulary::new(bytes.chain(more), [("<s>".to_owned(), 300)]).unwrap();
        let [a, b, c] = [97, 98, 99];
        let merges = vec![(a, b), (b, c), (257, c), (a, 258)];
        let pattern = Pattern::new("gpt2").unwrap();
        let tokenizer = Tokenizer::from_merges(vocabulary, merges, false, pattern).unwrap();
        let ranks = [256, 257, 258, a, 300].map(|id| tokenizer.token(id).unwrap().rank);
        assert_eq!(ranks, [Some(2), Some(0), Some(1), None, None]);
        let token = tokenizer.token(300).unwrap();
        assert_eq!((token.bytes, token.special, token.rank), (&b"<s>"[..], true, None));
        assert_eq!(tokenizer.token(256).unwrap().rank, Some(2));
        assert_eq!(tokenizer.token(299), None);
    }
}
