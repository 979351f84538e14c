//! Breaks ties: of the pairs of equal count, the one with the greatest key is merged first.

use std::cmp::Reverse;
use std::rc::Rc;

use crate::error::Result;
use crate::memory;
use crate::rules::pre_tokenizer::character;
use crate::train::Ties;
use crate::train::pair_counts::TokenPair;

/// The rule for ties, and the tokens so far, by which it compares pairs.
pub struct TokenOrder {
    ties: Ties,
    /// The 256 bytes in the order of the rule, by value or by GPT-2's characters; and the rank of
    /// each byte in it.
    bytes: [u8; 256],
    ranks: [u8; 256],
    /// The tokens in the order of their ids; each byte is replaced by its rank.
    tokens: Vec<Rc<[u8]>>,
}

/// A position in the corpus: the worker, and a number that increases along its words.
pub type Position = (u32, u64);

/// Pairs of equal count are compared by their keys; the greatest is merged first. The key of a pair
/// never grows, so an old key in the queue is never too small. It takes 16 bytes, since the queue
/// moves keys often.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TieKey {
    /// The smallest pair of ids, with the 256 bytes in the order of the rule.
    ///
    /// A new pair contains the greatest id, so it follows all older pairs of the same count, except
    /// possibly those from whose occurrences it was created.
    Ids(Reverse<TokenPair>),
    /// The position of the first occurrence in the distinct pretokens, which are in order of their
    /// own first occurrence. Occurrences are only removed, so the first position only increases. It
    /// is looked up only when the pair may be next.
    Position(Reverse<u32>, Reverse<u64>),
    /// The greatest pair of byte strings, with the 256 bytes in the order of the rule. The queue
    /// holds a key for each pair, so the bytes are shared and not copied.
    Bytes(Rc<[Rc<[u8]>; 2]>),
}

impl TokenOrder {
    /// The order of a rule. `tokens` are the existing tokens, in the order of their ids.
    pub fn new(ties: Ties, mut tokens: Vec<Vec<u8>>) -> Self {
        let mut bytes: [u8; 256] = std::array::from_fn(|byte| byte.to_le_bytes()[0]);
        if matches!(ties, Ties::Hf | Ties::CharactersMax) {
            bytes.sort_unstable_by_key(|&byte| character(byte));
        }
        let mut ranks = [0; 256];
        for (rank, byte) in (0..=255).zip(bytes) {
            ranks[usize::from(byte)] = rank;
        }
        tokens.iter_mut().flatten().for_each(|byte| *byte = ranks[usize::from(*byte)]);
        let tokens = tokens.into_iter().map(Rc::from).collect();
        Self { ties, bytes, ranks, tokens }
    }

    /// Whether a new pair may precede older pairs of the same count, other than those from whose
    /// occurrences it was created.
    pub(super) fn new_precede(&self) -> bool {
        !matches!(self.ties, Ties::RustBpe | Ties::Hf)
    }

    /// The greatest key that the pair can have.
    pub(super) fn first_key(&self, pair: TokenPair) -> TieKey {
        // No position is before the first, so this is never too small.
        self.key(pair, || (0, 0))
    }

    /// The current key of the pair; `position` gives its first position in the corpus.
    pub(super) fn key(
        &self,
        (left, right): TokenPair,
        position: impl FnOnce() -> Position,
    ) -> TieKey {
        match self.ties {
            Ties::RustBpe | Ties::Hf => TieKey::Ids(Reverse((self.rank(left), self.rank(right)))),
            Ties::FirstSeen => {
                let (worker, at) = position();
                TieKey::Position(Reverse(worker), Reverse(at))
            }
            Ties::BytesMax | Ties::CharactersMax => {
                let both = [left, right].map(|id| Rc::clone(&self.tokens[id as usize]));
                TieKey::Bytes(Rc::new(both))
            }
        }
    }

    fn rank(&self, id: u32) -> u32 {
        self.ranks.get(id as usize).map_or(id, |&rank| rank.into())
    }

    /// The number of ids.
    pub fn ids(&self) -> u32 {
        u32::try_from(self.tokens.len()).expect("vocabularies are below 2^21 ids")
    }

    /// The length in bytes of a token.
    #[inline]
    pub(super) fn length(&self, id: u32) -> usize {
        self.tokens[id as usize].len()
    }

    /// The length in bytes of the token of a pair.
    pub fn joined_length(&self, (left, right): TokenPair) -> usize {
        self.length(left) + self.length(right)
    }

    /// The bytes of the token of a pair.
    pub(super) fn joined(&self, (left, right): TokenPair) -> Result<Vec<u8>> {
        let mut bytes = memory::with_capacity(self.joined_length((left, right)))?;
        for id in [left, right] {
            let ranks = self.tokens[id as usize].iter();
            bytes.extend(ranks.map(|&rank| self.bytes[usize::from(rank)]));
        }
        Ok(bytes)
    }

    /// Record that the token of this pair was created, with the next id.
    pub fn created(&mut self, (left, right): TokenPair) -> Result<()> {
        // The joined bytes, and their copy in shared memory.
        memory::check(2 * self.joined_length((left, right)))?;
        let token = [&*self.tokens[left as usize], &*self.tokens[right as usize]].concat();
        memory::push(&mut self.tokens, token.into())
    }
}
