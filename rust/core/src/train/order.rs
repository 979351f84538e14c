//! Breaking ties: among pairs of equal count, the one with the greatest key is merged first.

use std::cmp::Reverse;
use std::rc::Rc;

use super::pairs::Pair;

/// A rule that breaks ties.
pub(super) trait TieOrder {
    /// What pairs of equal count are compared by; the greatest goes first. The key of a pair never
    /// grows, so that a queue of old keys is never too pessimistic.
    type Key: Ord + Clone;

    /// Whether a pair that a merge bears may precede pairs of the same count that are already there,
    /// if none of them is a part of what it is born from.
    const NEW_PRECEDE: bool;

    /// The greatest key that the pair can have.
    fn first_key(&self, pair: Pair) -> Self::Key;

    /// The key of a pair as the corpus stands; `place` gives the first place of the pair.
    fn key(&self, pair: Pair, place: impl FnOnce() -> Place) -> Self::Key;

    /// The token of this pair has just been created, with the next id.
    fn created(&mut self, _pair: Pair) {}
}

/// Where something first stands: the shard, and a number that grows with the place in it.
pub(super) type Place = (usize, u64);

/// The smallest pair of ids, where the 256 bytes may stand in another order.
///
/// A pair that is born goes after all others of its count from which it is not made, as its new id
/// is the greatest.
pub(super) struct SmallestPair {
    /// The place of each byte in the order.
    places: [u32; 256],
}

impl SmallestPair {
    /// Bytes by their value.
    pub(super) fn by_bytes() -> Self {
        let mut places = [0; 256];
        places.iter_mut().zip(0..).for_each(|(place, byte)| *place = byte);
        Self { places }
    }

    /// Bytes by the character that GPT-2 writes for them: first the printable ones, which stand for
    /// themselves, then all others, which are moved behind them.
    pub(super) fn by_characters() -> Self {
        let printable = |byte: &u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let (first, then): (Vec<u8>, Vec<u8>) = (0..=255).partition(printable);
        let mut places = [0; 256];
        for (place, byte) in (0..).zip(first.into_iter().chain(then)) {
            places[usize::from(byte)] = place;
        }
        Self { places }
    }

    fn place(&self, id: u32) -> u32 {
        self.places.get(id as usize).copied().unwrap_or(id)
    }
}

impl TieOrder for SmallestPair {
    type Key = Reverse<Pair>;

    const NEW_PRECEDE: bool = false;

    fn first_key(&self, (left, right): Pair) -> Self::Key {
        Reverse((self.place(left), self.place(right)))
    }

    fn key(&self, pair: Pair, _place: impl FnOnce() -> Place) -> Self::Key {
        self.first_key(pair)
    }
}

/// The pair that occurs first in the corpus as it stands.
///
/// Its key is the place of that occurrence among the bytes of the distinct pretokens, which stand in
/// the order in which the corpus first shows them. Occurrences only ever vanish, so the place of the
/// first one never comes earlier. It is looked up only when the pair may be next.
pub(super) struct FirstSeen;

impl TieOrder for FirstSeen {
    type Key = Reverse<Place>;

    const NEW_PRECEDE: bool = true;

    fn first_key(&self, _pair: Pair) -> Self::Key {
        Reverse((0, 0))
    }

    fn key(&self, _pair: Pair, place: impl FnOnce() -> Place) -> Self::Key {
        Reverse(place())
    }
}

/// The greatest pair of byte strings.
pub(super) struct BytesMax {
    tokens: Vec<Rc<[u8]>>,
}

impl BytesMax {
    /// The tokens that exist, in the order of their ids.
    pub(super) fn new(tokens: Vec<Vec<u8>>) -> Self {
        Self { tokens: tokens.into_iter().map(Rc::from).collect() }
    }
}

impl TieOrder for BytesMax {
    type Key = (Rc<[u8]>, Rc<[u8]>);

    const NEW_PRECEDE: bool = true;

    fn first_key(&self, (left, right): Pair) -> Self::Key {
        (Rc::clone(&self.tokens[left as usize]), Rc::clone(&self.tokens[right as usize]))
    }

    fn key(&self, pair: Pair, _place: impl FnOnce() -> Place) -> Self::Key {
        self.first_key(pair)
    }

    fn created(&mut self, (left, right): Pair) {
        let token = [&*self.tokens[left as usize], &*self.tokens[right as usize]].concat();
        self.tokens.push(token.into());
    }
}
