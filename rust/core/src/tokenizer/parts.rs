//! The values of a tokenizer, before they are put together.

use std::collections::{BTreeMap, HashSet};

use crate::error::Result;
use crate::memory;
use crate::rules::{AddedToken, TextRules};
use crate::tokenizer::Tokenizer;
use crate::tokenizer::merges::Merges;
use crate::vocabulary::{MergeRule, Vocabulary};

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
        let merges = match rule {
            MergeRule::Ranks => Merges::default(),
            _ => Merges::of_pairs(merges, Vec::new()),
        };
        Ok(Self::by_rule(vocabulary, rule, rules, merges)?.with_notes(notes))
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
