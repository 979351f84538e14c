//! Breaks ties: of the pairs of equal count, the one with the greatest key is merged first.

use std::cmp::Reverse;
use std::rc::Rc;

use crate::error::Result;
use crate::memory;
use crate::rules::pre_tokenizer::character;
use crate::train::Ties;
use crate::train::pair_counts::TokenPair;

/// A rule that breaks ties.
pub trait TieOrder {
    /// Pairs of equal count are compared by their keys; the greatest is merged first. The key of a
    /// pair never grows, so an old key in the queue is never too small.
    type Key: Ord + Clone;

    /// Whether a new pair may precede older pairs of the same count, other than those from whose
    /// occurrences it was created.
    const NEW_PRECEDE: bool;

    /// The greatest key that the pair can have.
    fn first_key(&self, pair: TokenPair) -> Self::Key;

    /// The current key of the pair; `position` gives its first position in the corpus.
    fn key(&self, pair: TokenPair, _position: impl FnOnce() -> Position) -> Self::Key {
        self.first_key(pair)
    }

    /// Record that the token of this pair was created, with the next id.
    fn created(&mut self, _pair: TokenPair) -> Result<()> {
        Ok(())
    }
}

/// Evaluate an expression with `$order` = the order of the rule `$ties`. `$tokens` gives the
/// existing tokens, in the order of their ids.
#[doc(hidden)]
#[macro_export]
macro_rules! with_order {
    ($ties:expr, $tokens:expr, $order:ident => $action:expr) => {{
        use $crate::Ties;
        use $crate::train::order::{BytesMax, FirstSeen, SmallestPair};
        match $ties {
            ties @ (Ties::RustBpe | Ties::Hf) => {
                let $order = SmallestPair::new(ties);
                $action
            }
            Ties::FirstSeen => {
                let $order = FirstSeen;
                $action
            }
            ties @ (Ties::BytesMax | Ties::CharactersMax) => {
                let $order = BytesMax::new(ties, $tokens);
                $action
            }
        }
    }};
}

/// A position in the corpus: the worker, and a number that increases along its words.
pub type Position = (usize, u64);

/// The smallest pair of ids, with the 256 bytes in any order.
///
/// A new pair contains the greatest id, so it follows all older pairs of the same count, except
/// possibly those from whose occurrences it was created.
pub struct SmallestPair {
    /// The rank of each byte in the order.
    ranks: [u8; 256],
}

impl SmallestPair {
    /// The order of a rule, which orders bytes by value or by GPT-2's characters.
    pub fn new(ties: Ties) -> Self {
        Self { ranks: byte_ranks(ties) }
    }

    fn rank(&self, id: u32) -> u32 {
        self.ranks.get(id as usize).map_or(id, |&rank| rank.into())
    }
}

impl TieOrder for SmallestPair {
    type Key = Reverse<TokenPair>;

    const NEW_PRECEDE: bool = false;

    fn first_key(&self, (left, right): TokenPair) -> Self::Key {
        // The greatest key is merged first, so the smallest pair has the greatest key.
        Reverse((self.rank(left), self.rank(right)))
    }
}

/// The pair that occurs first in the corpus in its current state.
///
/// The key is the position of the first occurrence in the distinct pretokens, which are in order of
/// their own first occurrence. Occurrences are only removed, so the first position only increases.
/// It is looked up only when the pair may be next.
pub struct FirstSeen;

impl TieOrder for FirstSeen {
    type Key = Reverse<Position>;

    const NEW_PRECEDE: bool = true;

    fn first_key(&self, _pair: TokenPair) -> Self::Key {
        // No position is before the first, so this is never too small.
        Reverse((0, 0))
    }

    fn key(&self, _pair: TokenPair, position: impl FnOnce() -> Position) -> Self::Key {
        Reverse(position())
    }
}

/// The rank of each byte under a rule: by value, or by the character that GPT-2 writes for it.
fn byte_ranks(ties: Ties) -> [u8; 256] {
    let mut bytes: [u8; 256] = std::array::from_fn(|byte| byte.to_le_bytes()[0]);
    if matches!(ties, Ties::Hf | Ties::CharactersMax) {
        bytes.sort_unstable_by_key(|&byte| character(byte));
    }
    let mut ranks = [0; 256];
    for (rank, byte) in (0..=255).zip(bytes) {
        ranks[usize::from(byte)] = rank;
    }
    ranks
}

/// The greatest pair of byte strings, with the 256 bytes in any order.
pub struct BytesMax {
    /// The tokens; each byte is replaced by its rank in the order.
    tokens: Vec<Rc<[u8]>>,
}

impl BytesMax {
    /// The order of a rule, which orders bytes by value or by GPT-2's characters. `tokens` are the
    /// existing tokens, in the order of their ids.
    pub fn new(ties: Ties, mut tokens: Vec<Vec<u8>>) -> Self {
        let ranks = byte_ranks(ties);
        tokens.iter_mut().flatten().for_each(|byte| *byte = ranks[usize::from(*byte)]);
        Self { tokens: tokens.into_iter().map(Rc::from).collect() }
    }
}

impl TieOrder for BytesMax {
    type Key = (Rc<[u8]>, Rc<[u8]>);

    const NEW_PRECEDE: bool = true;

    fn first_key(&self, (left, right): TokenPair) -> Self::Key {
        // The queue holds a key for each pair, so the bytes are shared and not copied.
        (Rc::clone(&self.tokens[left as usize]), Rc::clone(&self.tokens[right as usize]))
    }

    fn created(&mut self, (left, right): TokenPair) -> Result<()> {
        let parts = [&*self.tokens[left as usize], &*self.tokens[right as usize]];
        // The joined bytes, and their copy in shared memory.
        memory::check(2 * (parts[0].len() + parts[1].len()))?;
        let token = parts.concat().into();
        memory::push(&mut self.tokens, token)
    }
}
