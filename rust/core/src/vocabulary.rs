//! Ids and the bytes they stand for: checked once, then immutable.
//!
//! A [`Vocabulary`] lays the bytes of all tokens end to end in one arena, in the order of their
//! ids, so that the bytes of an id are a slice and finding an id needs one probe of a hash table.
//! Special tokens have ids and text like other tokens, but they are never found by their bytes:
//! ordinary text cannot produce them. An id may stand for nothing; published vocabularies have
//! such holes.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::index::Index;
use crate::key::{Key, LONGEST};
use crate::prefetch::prefetch;

/// A vocabulary has fewer ids than this, so that a damaged file cannot ask for all memory.
pub const MAX_VOCAB_SIZE: usize = (1 << 21) - 1;

/// Which neighbours merge, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeRule {
    /// A pretoken that is a token wins outright; otherwise any two neighbours whose joined bytes
    /// are a token merge, the lowest id first, the leftmost among equals. This is tiktoken's rule.
    Ranks,
    /// Only listed pairs of ids merge, in the order of the list, the leftmost among equals. This is
    /// the rule of Hugging Face tokenizers.
    Merges {
        /// The pairs in order.
        merges: Vec<(u32, u32)>,
        /// Whether a pretoken that is a token wins outright, before any merge.
        ignore_merges: bool,
    },
}

/// Ids ⇄ bytes, and the special tokens.
///
/// ```
/// use bytepair::Vocabulary;
/// let tokens = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// let vocabulary = Vocabulary::new(tokens, [("<|bos|>".to_owned(), 256)])?;
/// assert_eq!(vocabulary.bytes(65), Some(&b"A"[..]));
/// assert_eq!(vocabulary.id(b"A"), Some(65));
/// assert_eq!(vocabulary.id(b"<|bos|>"), None); // not by its bytes
/// assert_eq!(vocabulary.special("<|bos|>"), Some(256));
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Vocabulary {
    arena: Vec<u8>,
    /// Where each id starts in `arena`, and the end of the last one.
    offsets: Vec<u32>,
    /// For each id its bytes as a key.
    keys: Vec<Key>,
    /// Ids of the ordinary tokens by their keys.
    index: Index,
    /// In the order of their ids.
    special: Vec<(String, u32)>,
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.offsets == other.offsets && self.arena == other.arena && self.special == other.special
    }
}

impl Eq for Vocabulary {}

impl Vocabulary {
    /// Check and lay out ordinary tokens and special tokens, each with its id.
    ///
    /// Fails if an id is given twice or is too large, if a token is empty, if two tokens have the
    /// same bytes, or if two special tokens have the same name.
    pub fn new(
        tokens: impl IntoIterator<Item = (Vec<u8>, u32)>,
        special: impl IntoIterator<Item = (String, u32)>,
    ) -> Result<Self> {
        let mut tokens: Vec<(Vec<u8>, u32)> = tokens.into_iter().collect();
        let mut special: Vec<(String, u32)> = special.into_iter().collect();
        special.sort_by_key(|(_, id)| *id);
        check_special(&special)?;
        let ordinary = tokens.iter().map(|(_, id)| *id).collect();
        tokens.extend(special.iter().map(|(name, id)| (name.clone().into_bytes(), *id)));
        tokens.sort_by_key(|(_, id)| *id);
        let (arena, offsets) = lay_out(&tokens)?;
        Self::from_layout(arena, offsets, special, ordinary)
    }

    /// Take over the layout of a file: `offsets` has one entry more than there are ids. The names
    /// in `special` must stand in the arena at their ids.
    pub(crate) fn from_arrays(
        arena: Vec<u8>,
        offsets: Vec<u32>,
        special: Vec<(String, u32)>,
    ) -> Result<Self> {
        let rising = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let whole = offsets.first() == Some(&0)
            && offsets.last().is_some_and(|&end| end as usize == arena.len());
        if !rising || !whole || offsets.len() > MAX_VOCAB_SIZE {
            return Err(broken("the offsets of the tokens do not cover their bytes in order"));
        }
        check_special(&special)?;
        let slice = |id: usize| &arena[offsets[id] as usize..offsets[id + 1] as usize];
        for (name, id) in &special {
            let id = *id as usize;
            if id + 1 >= offsets.len() || slice(id) != name.as_bytes() {
                return Err(broken(format!("the special token {name:?} does not stand at its id")));
            }
        }
        let is_special = |id: u32| special.binary_search_by_key(&id, |(_, id)| *id).is_ok();
        let ordinary = (0u32..)
            .zip(offsets.windows(2))
            .filter(|(id, pair)| pair[0] < pair[1] && !is_special(*id))
            .map(|(id, _)| id)
            .collect();
        Self::from_layout(arena, offsets, special, ordinary)
    }

    fn from_layout(
        arena: Vec<u8>,
        offsets: Vec<u32>,
        special: Vec<(String, u32)>,
        ordinary: Vec<u32>,
    ) -> Result<Self> {
        let range = |id: usize| offsets[id] as usize..offsets[id + 1] as usize;
        let keys = (0..offsets.len() - 1).map(|id| key(&arena, range(id))).collect();
        let index = Index::of(std::iter::empty(), ordinary.len());
        let mut vocabulary = Self { arena, offsets, keys, index, special };
        for id in ordinary {
            vocabulary.add_to_index(id)?;
        }
        Ok(vocabulary)
    }

    fn add_to_index(&mut self, id: u32) -> Result<()> {
        let key = self.keys[id as usize];
        let token = self.bytes(id).unwrap_or_default();
        match self.find(key, token) {
            Ok(twin) => Err(broken(format!(
                "ids {twin} and {id} both stand for the token b\"{}\"",
                token.escape_ascii()
            ))),
            Err(slot) => {
                self.index.put(slot, id as usize);
                Ok(())
            }
        }
    }

    /// The id of an ordinary token with this key, or the slot for it.
    #[inline]
    fn find(&self, key: Key, token: &[u8]) -> std::result::Result<usize, usize> {
        self.index.find(key.hash(), |id| {
            self.keys[id] == key && (token.len() <= LONGEST || self.slice(id) == token)
        })
    }

    #[inline]
    fn slice(&self, id: usize) -> &[u8] {
        &self.arena[self.offsets[id] as usize..self.offsets[id + 1] as usize]
    }

    /// How many ids there are, holes and special tokens included: valid ids are below.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no id at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of an id; `None` for a hole or an id that does not exist.
    #[inline]
    pub fn bytes(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let (&start, &end) = (self.offsets.get(id)?, self.offsets.get(id + 1)?);
        (start < end).then(|| &self.arena[start as usize..end as usize])
    }

    /// How many bytes an id has; 0 for a hole or an id that does not exist.
    #[inline]
    pub fn token_length(&self, id: u32) -> usize {
        let id = id as usize;
        self.offsets
            .get(id..)
            .and_then(<[u32]>::first_chunk)
            .map_or(0, |[start, end]| (end - start) as usize)
    }

    /// The id of an ordinary token.
    #[inline]
    pub fn id(&self, token: &[u8]) -> Option<u32> {
        let key = key(token, 0..token.len());
        self.find(key, token).ok().and_then(|id| u32::try_from(id).ok())
    }

    /// The id of the ordinary token whose key this is.
    #[inline]
    pub(crate) fn find_key(&self, key: Key, token: &[u8]) -> Option<u32> {
        self.find(key, token).ok().and_then(|id| u32::try_from(id).ok())
    }

    /// Bring what [`find_key`](Self::find_key) looks at first without waiting for it.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key) {
        self.index.prefetch(key.hash());
    }

    /// Bring what [`find_key`](Self::find_key) looks at second.
    #[inline]
    pub(crate) fn prefetch_row(&self, key: Key) {
        if let Some(row) = self.index.likely(key.hash()) {
            prefetch(&self.keys, row);
        }
    }

    /// The id of a special token.
    pub fn special(&self, name: &str) -> Option<u32> {
        self.special.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// The special tokens with their ids, in the order of the ids.
    pub fn special_tokens(&self) -> &[(String, u32)] {
        &self.special
    }

    /// Whether an id is a special token.
    pub fn is_special(&self, id: u32) -> bool {
        self.special.binary_search_by_key(&id, |(_, id)| *id).is_ok()
    }

    /// The ordinary tokens with their ids, in the order of the ids.
    pub fn ordinary_tokens(&self) -> impl Iterator<Item = (&[u8], u32)> {
        (0u32..)
            .take(self.len())
            .filter(|&id| !self.is_special(id))
            .filter_map(|id| Some((self.bytes(id)?, id)))
    }

    /// The arena and the offsets, as a file holds them.
    pub(crate) fn arrays(&self) -> (&[u8], &[u32]) {
        (&self.arena, &self.offsets)
    }
}

/// The bytes at `range` as a key.
#[inline]
fn key(text: &[u8], range: Range<usize>) -> Key {
    if range.len() <= LONGEST { Key::new(text, range) } else { Key::of_long(&text[range]) }
}

/// Special tokens in the order of their ids: no name empty, no name and no id twice.
fn check_special(special: &[(String, u32)]) -> Result<()> {
    if let Some(pair) = special.windows(2).find(|pair| pair[0].1 >= pair[1].1) {
        return Err(broken(format!(
            "the special tokens {:?} and {:?} have the same id {}",
            pair[0].0, pair[1].0, pair[1].1
        )));
    }
    let mut names: Vec<&str> = special.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if names.first() == Some(&"") {
        return Err(broken("a special token has an empty name"));
    }
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(broken(format!("the special token {:?} is given twice", pair[0]))),
        None => Ok(()),
    }
}

/// Lay tokens sorted by id end to end; ids that are not given get no bytes.
fn lay_out(tokens: &[(Vec<u8>, u32)]) -> Result<(Vec<u8>, Vec<u32>)> {
    let (mut arena, mut offsets) = (Vec::new(), vec![0]);
    for (token, id) in tokens {
        let id = *id as usize;
        if id >= MAX_VOCAB_SIZE - 1 {
            let most = MAX_VOCAB_SIZE - 2;
            return Err(broken(format!("id {id} is too large: the largest id is {most}")));
        }
        if id + 1 < offsets.len() {
            return Err(broken(format!("id {id} stands for two tokens")));
        }
        if token.is_empty() {
            return Err(broken(format!("the token of id {id} is empty")));
        }
        offsets.resize(id + 1, offsets[offsets.len() - 1]);
        arena.extend_from_slice(token);
        let end = u32::try_from(arena.len())
            .map_err(|_| broken("the tokens have more than 4 GiB of bytes"))?;
        offsets.push(end);
    }
    Ok((arena, offsets))
}

fn broken(reason: impl Into<String>) -> Error {
    Error::Vocabulary { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(tokens: &[(&str, u32)], special: &[(&str, u32)]) -> Result<Vocabulary> {
        Vocabulary::new(
            tokens.iter().map(|(token, id)| (token.as_bytes().to_vec(), *id)),
            special.iter().map(|(name, id)| ((*name).to_owned(), *id)),
        )
    }

    #[test]
    fn holes_stand_for_nothing() {
        let v = vocabulary(&[("a", 0), ("b", 3)], &[("<s>", 6)]).unwrap();
        assert_eq!(v.len(), 7);
        assert_eq!(v.bytes(1), None);
        assert_eq!(v.bytes(6), Some(&b"<s>"[..]));
        assert_eq!(v.bytes(7), None);
        assert_eq!(v.ordinary_tokens().collect::<Vec<_>>(), [(&b"a"[..], 0), (&b"b"[..], 3)]);
    }

    #[test]
    fn an_ordinary_token_may_look_like_a_special_one() {
        let v = vocabulary(&[("<s>", 0)], &[("<s>", 1)]).unwrap();
        assert_eq!((v.id(b"<s>"), v.special("<s>")), (Some(0), Some(1)));
    }

    #[test]
    fn every_broken_rule_has_its_message() {
        let reason = |tokens, special| vocabulary(tokens, special).unwrap_err().to_string();
        assert!(reason(&[("a", 0), ("b", 0)], &[]).contains("id 0 stands for two tokens"));
        assert!(reason(&[("a", 0), ("a", 1)], &[]).contains("ids 0 and 1 both stand for"));
        assert!(reason(&[("", 0)], &[]).contains("is empty"));
        assert!(reason(&[("a", u32::MAX)], &[]).contains("too large"));
        assert!(reason(&[("a", 0)], &[("s", 0)]).contains("id 0 stands for two tokens"));
        assert!(reason(&[], &[("s", 0), ("s", 1)]).contains("given twice"));
        assert!(reason(&[], &[("s", 0), ("t", 0)]).contains("same id 0"));
        assert!(reason(&[], &[("", 0)]).contains("empty name"));
    }
}
