//! Text in, ids out.
//!
//! The text is split into pretokens; each pretoken is either a token as a whole or is merged from
//! its bytes. Special tokens are cut out of the text first, and only if the caller asks for it.

mod merge;

mod pairs;

mod special;

pub use special::Special;
pub(crate) use special::known;

use crate::error::{Error, Result};
use crate::pretokenize::Splitter;
use crate::vocabulary::{MergeRule, Vocabulary};
use merge::{ByteIds, MergeScratch};
use pairs::PairTable;
use special::SpecialFinder;

/// No byte has this id.
const NO_ID: u32 = u32::MAX;

/// What encoding needs beside the vocabulary, derived from it once.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// The id of each byte, or `NO_ID`.
    byte_ids: ByteIds,
    pairs: PairTable,
    /// Whether a pretoken that is a token wins outright.
    whole_first: bool,
}

/// What to do with special tokens, and which ids go before and after each text.
#[derive(Debug, Clone, Default)]
pub struct EncodeOptions {
    pub(crate) finder: Option<SpecialFinder>,
    pub(crate) prepend: Option<u32>,
    pub(crate) append: Option<u32>,
}

impl EncodeOptions {
    /// Prepare the options once for any number of texts.
    ///
    /// Fails if `special` names a special token that the vocabulary does not have.
    pub fn new(
        vocabulary: &Vocabulary,
        special: &Special,
        prepend: Option<u32>,
        append: Option<u32>,
    ) -> Result<Self> {
        let finder = SpecialFinder::new(vocabulary, special)?;
        Ok(Self { finder, prepend, append })
    }
}

/// Buffers that encoding fills and empties; one for each thread, reused between texts.
#[derive(Debug, Default)]
pub struct Scratch {
    merge: MergeScratch,
}

impl Encoder {
    /// Derive the tables of a vocabulary and a merge rule.
    ///
    /// Fails if a listed merge names an id that does not exist or makes bytes that are no token.
    pub fn new(vocabulary: &Vocabulary, rule: &MergeRule) -> Result<Self> {
        let byte_ids =
            std::array::from_fn(|byte| vocabulary.id(&[byte.to_le_bytes()[0]]).unwrap_or(NO_ID));
        let whole_first = match rule {
            MergeRule::Ranks => true,
            MergeRule::Merges { ignore_merges, .. } => *ignore_merges,
        };
        Ok(Self { byte_ids, pairs: PairTable::new(vocabulary, rule)?, whole_first })
    }

    /// Append the ids of `text` to `out`; special tokens in it are text.
    pub fn encode(
        &self,
        vocabulary: &Vocabulary,
        splitter: &Splitter,
        text: &str,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let mut uncovered = None;
        splitter.for_each(text, |pretoken| {
            let done = self.encode_pretoken(vocabulary, pretoken.as_bytes(), scratch, out);
            uncovered = uncovered.take().or(done.err());
        })?;
        uncovered.map_or(Ok(()), Err)
    }

    /// Append the ids of one pretoken to `out`.
    ///
    /// Fails, and appends nothing, if no token covers one of its bytes.
    pub fn encode_pretoken(
        &self,
        vocabulary: &Vocabulary,
        pretoken: &[u8],
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if self.whole_first
            && let Some(id) = vocabulary.id(pretoken)
        {
            out.push(id);
            return Ok(());
        }
        if let Some(&byte) = pretoken.iter().find(|&&b| self.byte_ids[usize::from(b)] == NO_ID) {
            return Err(Error::UncoveredByte { byte });
        }
        merge::merge(&self.pairs, &self.byte_ids, pretoken, &mut scratch.merge, out);
        Ok(())
    }

    /// The two ids that merge last when the bytes of token `id` are merged with lower ranks only,
    /// or `None` if they do not come down to two: then no merge makes this token.
    ///
    /// This is how the merges are recovered that a rank file does not hold.
    pub fn parents(&self, token: &[u8], id: u32) -> Option<(u32, u32)> {
        let byte_ids: Vec<u32> = token.iter().map(|&b| self.byte_ids[usize::from(b)]).collect();
        let parts = merge::merge_below(&self.pairs, byte_ids, id);
        <[u32; 2]>::try_from(parts).ok().map(|[left, right]| (left, right))
    }
}
