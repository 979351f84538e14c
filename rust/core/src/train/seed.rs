//! The tokens before the first merge: the 256 bytes, or the tokens and merges of a tokenizer.

use crate::error::{Error, Result};
use crate::memory;
use crate::merge::build;
use crate::merge::merger::Merger;
use crate::merge::whole::MergeScratch;
use crate::tokenizer::Tokenizer;

/// The tokens before the first merge, and the ids of pretokens in them.
pub struct Seed<'a> {
    base: Option<Base<'a>>,
}

struct Base<'a> {
    tokenizer: &'a Tokenizer,
    /// Merges as training does, by the list of merges only.
    merger: Merger,
    scratch: MergeScratch,
}

impl<'a> Seed<'a> {
    /// The tokens of `base`, or without a base the 256 bytes, whose ids are their values.
    pub fn new(base: Option<&'a Tokenizer>) -> Result<Self> {
        let Some(tokenizer) = base else { return Ok(Self { base: None }) };
        let vocabulary = tokenizer.vocabulary();
        let pairs = build::by_merges(vocabulary, tokenizer.merges())?;
        let merger = Merger::new(vocabulary, tokenizer.rule(), pairs)?;
        Ok(Self { base: Some(Base { tokenizer, merger, scratch: MergeScratch::default() }) })
    }

    /// The bytes of every token, in the order of ids; empty for an id without a token.
    pub fn tokens(&self) -> Result<Vec<Vec<u8>>> {
        let Some(base) = &self.base else { return Ok((0..=255).map(|byte| vec![byte]).collect()) };
        base.tokenizer.vocabulary().all_bytes()
    }

    /// The length in bytes of every token.
    pub fn token_lengths(&self) -> Result<Vec<u32>> {
        let length = |token: &Vec<u8>| u32::try_from(token.len());
        let lengths = self.tokens()?.iter().map(length).collect::<std::result::Result<_, _>>();
        lengths.map_err(|_| Error::TooManyPretokens)
    }

    /// Replace `ids` by the ids of a pretoken.
    pub(super) fn ids(&mut self, pretoken: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        match &mut self.base {
            None => {
                memory::reserve(ids, pretoken.len())?;
                ids.extend(pretoken.iter().map(|&byte| u32::from(byte)));
            }
            Some(Base { merger, scratch, .. }) => {
                memory::reserve(ids, pretoken.len())?;
                merger.merge(pretoken, scratch, ids)?;
            }
        }
        Ok(())
    }
}
