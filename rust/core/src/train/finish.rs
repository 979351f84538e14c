//! Turns the merges of a training into a tokenizer.

use crate::error::{Error, Result};
use crate::memory;
use crate::rules::TextRules;
use crate::tokenizer::{Tokenizer, tokens_of};
use crate::train::Trained;
use crate::vocabulary::Vocabulary;

impl Trained {
    /// The tokenizer of these merges: the 256 bytes, one token per merge, then the special tokens.
    /// It merges by rank. The rules are usually the pattern by which the text was counted.
    ///
    /// Fails if a special token is given twice, the pattern does not compile, or there is not
    /// enough memory for the tokens.
    pub fn to_tokenizer(
        &self,
        special: &[String],
        rules: impl Into<TextRules>,
    ) -> Result<Tokenizer> {
        let tokens = tokens_of(&self.merges, (0..=255).map(|byte| vec![byte]).collect())?;
        let special: Vec<_> = special.iter().cloned().zip(first_special(tokens.len())?..).collect();
        let vocabulary = Vocabulary::new(tokens.into_iter().zip(0..), special)?;
        let tokenizer = Tokenizer::from_ranks(vocabulary, rules)?;
        let tokenizer =
            tokenizer.with_merges(memory::copy(&self.merges)?, memory::copy(&self.replacements)?);
        Ok(tokenizer.with_note("exhausted", &self.exhausted))
    }
}

fn first_special(tokens: usize) -> Result<u32> {
    u32::try_from(tokens)
        .map_err(|_| Error::Vocabulary { reason: format!("{tokens} tokens are too many").into() })
}
