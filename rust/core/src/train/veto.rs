//! Vetoes pairs that are never merged: those whose token would have too many words or contain a
//! forbidden text.
//!
//! Every token that contains a vetoed token is itself vetoed. So a vetoed pair can be left out of
//! the queue: no allowed token is ever created from it.

use crate::error::Result;
use crate::memory;
use crate::train::pair::TokenPair;

/// Limits on tokens that cross spaces: the rules of `SuperBPE` (arXiv 2503.13423).
///
/// ```
/// let veto = bytepair::Veto { max_words: Some(2), never: vec![": ".to_owned()] };
/// assert!(veto.allows(b" by the"));
/// assert!(!veto.allows(b" by the way"));
/// assert!(!veto.allows(b"note: a"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Veto {
    /// The largest number of words in a token; words are its non-empty parts between spaces.
    pub max_words: Option<usize>,
    /// Texts that no token contains.
    pub never: Vec<String>,
}

impl Veto {
    /// Whether a token is allowed.
    pub fn allows(&self, token: &[u8]) -> bool {
        let words = || token.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).count();
        let contains = |text: &String| {
            !text.is_empty() && token.windows(text.len()).any(|part| part == text.as_bytes())
        };
        self.max_words.is_none_or(|most| words() <= most) && !self.never.iter().any(contains)
    }

    /// Whether the veto allows every token.
    pub(super) fn is_empty(&self) -> bool {
        self.max_words.is_none() && self.never.iter().all(String::is_empty)
    }
}

/// Applies a veto to pairs of ids.
pub(super) struct PairVeto<'a> {
    veto: &'a Veto,
    /// The bytes of each token.
    tokens: Vec<Vec<u8>>,
    /// A buffer for the bytes of a pair.
    joined: Vec<u8>,
}

impl<'a> PairVeto<'a> {
    /// `tokens` are the existing tokens, in the order of their ids.
    pub(super) fn new(veto: &'a Veto, tokens: Vec<Vec<u8>>) -> Self {
        Self { veto, tokens, joined: Vec::new() }
    }

    /// Whether a pair may be merged.
    pub(super) fn allows(&mut self, pair: TokenPair) -> Result<bool> {
        self.join(pair)?;
        Ok(self.veto.allows(&self.joined))
    }

    /// Record that the token of this pair was created, with the next id.
    pub(super) fn created(&mut self, pair: TokenPair) -> Result<()> {
        self.join(pair)?;
        memory::push(&mut self.tokens, memory::copy(&self.joined)?)
    }

    fn join(&mut self, (left, right): TokenPair) -> Result<()> {
        self.joined.clear();
        memory::extend(&mut self.joined, &self.tokens[left as usize])?;
        memory::extend(&mut self.joined, &self.tokens[right as usize])
    }
}
