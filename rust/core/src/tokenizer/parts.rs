//! The values of a tokenizer, before they are put together.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::memory;
use crate::rules::TextRules;
use crate::tokenizer::Tokenizer;
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
    /// Fails as [`from_ranks`](Self::from_ranks), [`from_merges`](Self::from_merges) and
    /// [`from_characters`](Self::from_characters) do.
    pub fn from_parts(parts: TokenizerParts) -> Result<Self> {
        let TokenizerParts { vocabulary, rule, merges, rules, notes } = parts;
        let tokenizer = match rule {
            MergeRule::Ranks => Self::from_ranks(vocabulary, rules)?,
            MergeRule::Merges { ignore_merges } => {
                Self::from_merges(vocabulary, merges, ignore_merges, rules)?
            }
            MergeRule::Characters => Self::from_characters(vocabulary, merges, rules)?,
        };
        Ok(tokenizer.with_notes(notes))
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
