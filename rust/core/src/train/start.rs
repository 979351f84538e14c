//! Where a training starts: from bare bytes, or from the tokens and merges of a tokenizer.

use crate::encode::{Encoder, Scratch};
use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::MergeRule;

/// The tokens that exist before the first merge, and the ids that pretokens have then.
pub(super) struct Start<'a> {
    base: Option<Base<'a>>,
}

struct Base<'a> {
    tokenizer: &'a Tokenizer,
    /// Merges by the list of merges and nothing else, as training did.
    encoder: Encoder,
    scratch: Scratch,
}

impl<'a> Start<'a> {
    /// From the tokens of a tokenizer, where new ones get the ids behind them; or from the 256 bytes,
    /// whose ids are their values.
    pub(super) fn new(base: Option<&'a Tokenizer>) -> Result<Self> {
        let Some(tokenizer) = base else { return Ok(Self { base: None }) };
        let rule = MergeRule::Merges { merges: tokenizer.merges().to_vec(), ignore_merges: false };
        let encoder = Encoder::new(tokenizer.vocabulary(), &rule)?;
        Ok(Self { base: Some(Base { tokenizer, encoder, scratch: Scratch::default() }) })
    }

    /// The bytes of every token, in the order of the ids; nothing for a hole.
    pub(super) fn tokens(&self) -> Vec<Vec<u8>> {
        let Some(base) = &self.base else { return (0..=255).map(|byte| vec![byte]).collect() };
        let vocabulary = base.tokenizer.vocabulary();
        let bytes = |id| vocabulary.bytes(id).unwrap_or_default().to_vec();
        (0u32..).take(vocabulary.len()).map(bytes).collect()
    }

    /// The length in bytes of every token.
    pub(super) fn token_lengths(&self) -> Result<Vec<u32>> {
        let length = |token: &Vec<u8>| u32::try_from(token.len());
        let lengths = self.tokens().iter().map(length).collect::<std::result::Result<_, _>>();
        lengths.map_err(|_| Error::TooManyPretokens)
    }

    /// Put the ids of a pretoken into `ids`.
    pub(super) fn ids(&mut self, pretoken: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        match &mut self.base {
            None => ids.extend(pretoken.iter().map(|&byte| u32::from(byte))),
            Some(Base { tokenizer, encoder, scratch }) => {
                ids.extend(encoder.encode_alone(tokenizer.vocabulary(), pretoken, scratch)?);
            }
        }
        Ok(())
    }
}
