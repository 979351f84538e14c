//! Ids and the bytes they stand for: checked once, then immutable.
//!
//! A [`Vocabulary`] stores the bytes of all tokens end to end in one arena, in id order, so the
//! bytes of an id are a slice, and finding an id takes one hash table lookup. All three arrays may
//! belong to a mapped file. Special tokens have ids and names like other tokens, but they are never
//! found by their bytes: ordinary text cannot produce them. A *shared* token is the exception: it is
//! an ordinary token that merges produce, and its name is found like that of a special token. An id
//! may be unused; published vocabularies have such holes. A *twin* has the bytes of another token,
//! which is found instead; it is only decoded.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::{Error, Hint, Reason, Result};
use crate::hash::key::{Key, MAX_KEY_BYTES};
use crate::hash::tables::KeyTable;
use crate::machine::array::Array;
use crate::machine::simd::prefetch;
use crate::memory;
use crate::rules::AddedToken;
use crate::rules::normalizer::META;

/// A vocabulary has fewer ids than this, so that a damaged file cannot ask for all memory.
pub(crate) const MAX_VOCAB_SIZE: usize = (1 << 21) - 1;

/// The bytes of the name of an added token at most; published ones have fewer than 100.
pub(crate) const MAX_NAME_BYTES: usize = 1 << 12;

/// The characters of a long name that its error shows.
const SHOWN_CHARS: usize = 60;

/// Bytes of memory for a token in a vector of its own, beside its bytes.
pub(crate) const TOKEN_OVERHEAD_BYTES: usize = 64;

/// Fails if a vocabulary cannot have this number of ids.
pub fn check_size(requested: usize) -> Result<()> {
    let largest = MAX_VOCAB_SIZE - 1;
    if requested <= largest {
        return Ok(());
    }
    let text = format!(
        "the vocabulary size {requested} is too large: a vocabulary has at most {largest} ids"
    );
    Err(Error::vocabulary(text, const { &Hint::new("pass a smaller one") }))
}

/// The id of each single byte, or [`NO_ID`].
pub(crate) type ByteIds = [u32; 256];

/// The id of a byte that is no token.
pub(crate) const NO_ID: u32 = u32::MAX;

/// Which neighbours merge, and in which order.
///
/// ```
/// use bytepair::{MergeRule, Pattern, Tokenizer, Vocabulary};
/// let tokens = [(b"a".to_vec(), 0), (b"b".to_vec(), 1), (b"ab".to_vec(), 2)];
/// let vocabulary = Vocabulary::new(tokens, [])?;
/// let pattern = Pattern::new("gpt2")?;
/// let ranks = Tokenizer::from_ranks(vocabulary.clone(), pattern.clone())?;
/// assert_eq!((ranks.rule(), ranks.encode("ab")?), (MergeRule::Ranks, vec![2]));
/// let merges = Tokenizer::from_merges(vocabulary, vec![], false, pattern)?;
/// assert_eq!(merges.rule(), MergeRule::Merges { ignore_merges: false });
/// assert_eq!(merges.encode("ab")?, [0, 1]); // no pair is listed
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeRule {
    /// A pretoken that is a token is encoded as that token. Otherwise, any two neighbours whose
    /// joined bytes are a token merge, the lowest id first, the leftmost among equals. This is
    /// tiktoken's rule.
    Ranks,
    /// Only listed pairs of ids merge, in the order of the list, the leftmost among equals. This is
    /// the rule of Hugging Face tokenizers.
    Merges {
        /// Whether a pretoken that is a token is encoded as that token, without merging.
        ignore_merges: bool,
    },
    /// Only listed pairs of ids merge, as with `Merges`, but merging starts with characters: a
    /// character that is a token is one part, and any other character is one part for each byte. This
    /// is the rule of vocabularies with byte fallback, which SentencePiece trains.
    Characters,
}

/// Maps ids to bytes and back, and holds the special tokens.
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
    arena: Array<u8>,
    /// The start of each id in `arena`, then the end of the last.
    offsets: Array<u32>,
    /// The ids of the ordinary tokens, by [`Key::of_token`].
    pub(crate) index: KeyTable,
    /// The ids of special tokens that are ordinary tokens as well, in order.
    shared: Vec<u32>,
    /// The ids of tokens that are not in the index, because another token has the same bytes; in
    /// order.
    twins: Vec<u32>,
    /// The special tokens with their flags, in id order, with the shared ones.
    added: Vec<AddedToken>,
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.offsets == other.offsets
            && self.arena == other.arena
            && self.added == other.added
            && self.shared == other.shared
            && self.twins == other.twins
    }
}

impl Eq for Vocabulary {}

impl Vocabulary {
    /// Build a vocabulary from ordinary tokens and special tokens, each with its id.
    ///
    /// Fails if an id occurs twice or is too large, if a token is empty, if two tokens have the
    /// same bytes, or if two special tokens have the same name.
    ///
    /// A special token may have the id of an ordinary token if its name is the text of that token,
    /// or that text with U+2581 for spaces; then it is shared.
    pub fn new(
        tokens: impl IntoIterator<Item = (Vec<u8>, u32)>,
        special: impl IntoIterator<Item = (String, u32)>,
    ) -> Result<Self> {
        let added = special.into_iter().map(|(name, id)| AddedToken::special(name, id));
        Self::with_added(tokens, [], added.collect())
    }

    /// As [`new`](Self::new), with the flags of the added tokens, and with tokens that have the bytes
    /// of another token and are only decoded.
    pub fn with_added(
        tokens: impl IntoIterator<Item = (Vec<u8>, u32)>,
        twins: impl IntoIterator<Item = (Vec<u8>, u32)>,
        mut added: Vec<AddedToken>,
    ) -> Result<Self> {
        let mut tokens: Vec<(Vec<u8>, u32)> = memory::collect(tokens)?;
        added.sort_by_key(|token| token.id);
        check_special(&added)?;
        let first_twin = tokens.len();
        tokens.extend(twins);
        let mut twins = memory::collect(tokens[first_twin..].iter().map(|(_, id)| *id))?;
        twins.sort_unstable();
        let shared = shared(&tokens[..first_twin], &added);
        memory::reserve(&mut tokens, added.len())?;
        let pure = added.iter().filter(|token| shared.binary_search(&token.id).is_err());
        tokens.extend(pure.map(|token| (token.content.clone().into_bytes(), token.id)));
        // Sorting takes as much memory again.
        memory::check(size_of_val(&*tokens))?;
        tokens.sort_by_key(|(_, id)| *id);
        let (arena, offsets) = lay_out(&tokens)?;
        let (arena, offsets) = (Array::new(arena), Array::new(offsets));
        let index = KeyTable::empty();
        Self { arena, offsets, index, shared, twins, added }.indexed()
    }

    /// Take over the arrays of a file. `offsets` has one entry more than there are ids. The bytes
    /// of the ids in `special` are their names; those of the ids in `shared`, which `special` has
    /// too, have spaces for U+2581. `flags` are as [`flags`](Self::flags) gives them. The ids in
    /// `twins` are not in the index.
    ///
    /// A given index is trusted: a wrong one leads to wrong ids, but nothing worse. Without an
    /// index, one is built, and duplicate tokens are found.
    pub(crate) fn from_arrays(
        arena: Array<u8>,
        offsets: Array<u32>,
        special: &[u32],
        flags: &[u8],
        shared: &[u32],
        twins: &[u32],
        index: Option<KeyTable>,
    ) -> Result<Self> {
        // Counting without an early exit is vectorized.
        let falls = offsets.windows(2).filter(|pair| pair[0] > pair[1]).count() > 0;
        let whole = offsets.first() == Some(&0)
            && offsets.last().is_some_and(|&end| end as usize == arena.len());
        if falls || !whole || offsets.len() > MAX_VOCAB_SIZE {
            return Err(broken("the offsets of the tokens do not cover their bytes in order"));
        }
        // Ascending ids rule out duplicates, which could make the names longer than the arena.
        if [special, shared, twins].iter().any(|ids| !ids.is_sorted_by(|one, next| one < next)) {
            return Err(broken("the ids of the special tokens or of the twins are not ascending"));
        }
        if shared.iter().any(|id| special.binary_search(id).is_err()) {
            return Err(broken("a shared token is not a special token"));
        }
        let named = special.iter().zip(flags).map(|(&id, &bits)| {
            let name = range(&offsets, id as usize).map(|range| &arena[range]);
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            let name = name.ok_or_else(|| broken(format!("id {id} has no name in UTF-8")))?;
            let has_meta = bits & SPACED == 0 && shared.binary_search(&id).is_ok();
            let name = if has_meta { name_of(name) } else { name.to_owned() };
            Ok(AddedToken::with_flags(name, id, bits))
        });
        let added = named.collect::<Result<Vec<_>>>()?;
        check_special(&added)?;
        let (shared, twins) = (memory::copy(shared)?, memory::copy(twins)?);
        if let Some(index) = index {
            return Ok(Self { arena, offsets, index, shared, twins, added });
        }
        let index = KeyTable::empty();
        Self { arena, offsets, index, shared, twins, added }.indexed()
    }

    /// Build the index. Fails if two ordinary tokens have the same bytes, or bytes of the same hash.
    fn indexed(mut self) -> Result<Self> {
        let range = |id: u32| range(&self.offsets, id as usize).unwrap_or_default();
        let ids: Vec<u32> = memory::collect(self.ordinary_tokens().map(|(_, id)| id))?;
        let key = |&id: &u32| (Key::of_token(&self.arena, range(id)), id);
        self.index = KeyTable::new(ids.len(), ids.iter().map(key), |other, id| {
            let token = &self.arena[range(id)];
            broken(if token == &self.arena[range(other)] {
                let token = token.escape_ascii();
                format!("ids {other} and {id} both stand for the token b\"{token}\"")
            } else {
                format!("the tokens of the ids {other} and {id} have the same hash")
            })
        })?;
        Ok(self)
    }

    /// The number of ids, including holes and special tokens: all ids are below it.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of an id; `None` for a hole or an unknown id.
    #[inline]
    pub fn bytes(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let (&start, &end) = (self.offsets.get(id)?, self.offsets.get(id + 1)?);
        (start < end).then(|| self.arena.get(start as usize..end as usize)).flatten()
    }

    /// The number of bytes of an id; 0 for a hole or an unknown id.
    #[inline]
    pub fn token_length(&self, id: u32) -> usize {
        range(&self.offsets, id as usize).map_or(0, |range| range.len())
    }

    /// The id of an ordinary token.
    #[inline]
    pub fn id(&self, token: &[u8]) -> Option<u32> {
        if token.is_empty() {
            return None;
        }
        let id = self.id_of_key(Key::of_token(token, 0..token.len()))?;
        (token.len() <= MAX_KEY_BYTES || self.bytes(id) == Some(token)).then_some(id)
    }

    /// The id of the ordinary token with this key, which is not that of an empty token; of a longer
    /// token, the only one that it may be.
    #[inline]
    pub(crate) fn id_of_key(&self, key: Key) -> Option<u32> {
        // A file may contain any number.
        self.index.find(key).filter(|&id| (id as usize) < self.len())
    }

    /// Prefetch what [`id_of_key`](Self::id_of_key) reads first.
    #[inline]
    pub(crate) fn prefetch_key(&self, key: Key) {
        self.index.prefetch(key);
    }

    /// Prefetch the offsets of an id.
    #[inline]
    pub(crate) fn prefetch_range(&self, id: u32) {
        prefetch(&self.offsets, id as usize);
    }

    /// Prefetch the bytes of an id.
    #[inline]
    pub(crate) fn prefetch_bytes(&self, id: u32) {
        if let Some(&start) = self.offsets.get(id as usize) {
            prefetch(&self.arena, start as usize);
        }
    }

    /// The id of a special token.
    pub fn special(&self, name: &str) -> Option<u32> {
        self.added.iter().find(|token| token.content == name).map(|token| token.id)
    }

    /// The special tokens and their ids, in id order.
    pub fn special_tokens(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.added.iter().map(|token| (&*token.content, token.id))
    }

    /// The flags of the added tokens as bits, in id order: those of the token, and [`SPACED`].
    pub(crate) fn flags(&self) -> Vec<u8> {
        let is_spaced = |token: &AddedToken| {
            token.content.contains(' ')
                && self.shared.binary_search(&token.id).is_ok()
                && self.bytes(token.id) == Some(token.content.as_bytes())
        };
        let bits = |token: &AddedToken| token.flags() | if is_spaced(token) { SPACED } else { 0 };
        self.added.iter().map(bits).collect()
    }

    /// The added tokens with their flags, in id order.
    pub fn added_tokens(&self) -> &[AddedToken] {
        &self.added
    }

    /// Whether an id is a special token, and no ordinary one.
    pub fn is_special(&self, id: u32) -> bool {
        self.added.binary_search_by_key(&id, |token| token.id).is_ok()
            && self.shared.binary_search(&id).is_err()
    }

    /// The ids of special tokens that are ordinary tokens as well, in order.
    pub fn shared(&self) -> &[u32] {
        &self.shared
    }

    /// The ids of tokens that have the bytes of another token and are only decoded, in order.
    pub fn twins(&self) -> &[u32] {
        &self.twins
    }

    /// The ordinary tokens and their ids, in id order; no twins.
    pub fn ordinary_tokens(&self) -> impl Iterator<Item = (&[u8], u32)> {
        (0u32..)
            .take(self.len())
            .filter(|&id| !self.is_special(id) && self.twins.binary_search(&id).is_err())
            .filter_map(|id| Some((self.bytes(id)?, id)))
    }

    /// The bytes of every id, in order; empty for a hole.
    pub(crate) fn all_bytes(&self) -> Result<Vec<Vec<u8>>> {
        memory::check(self.arena.len() + self.len() * TOKEN_OVERHEAD_BYTES)?;
        let bytes = |id| self.bytes(id).unwrap_or_default().to_vec();
        Ok((0u32..).take(self.len()).map(bytes).collect())
    }

    /// The id of each single byte.
    pub(crate) fn byte_ids(&self) -> ByteIds {
        std::array::from_fn(|byte| self.id(&[byte.to_le_bytes()[0]]).unwrap_or(NO_ID))
    }

    /// The arena and the offsets, in the form of a file.
    pub(crate) fn arrays(&self) -> (&Array<u8>, &Array<u32>) {
        (&self.arena, &self.offsets)
    }
}

/// Finds the token whose bytes are those of a pair of tokens.
///
/// A file may name the same pair of long tokens any number of times, so results for long pairs are
/// cached.
pub(crate) struct PairLookup<'v> {
    vocabulary: &'v Vocabulary,
    token: Vec<u8>,
    long: HashMap<(u32, u32), Option<u32>, FixedState>,
}

impl<'v> PairLookup<'v> {
    /// Pairs with more bytes than this are long.
    const LONG_BYTES: usize = 64;

    pub(crate) fn new(vocabulary: &'v Vocabulary) -> Self {
        Self { vocabulary, token: Vec::new(), long: HashMap::default() }
    }

    /// The id of the ordinary token whose bytes are those of `left` and `right`.
    pub(crate) fn id(&mut self, left: u32, right: u32) -> Option<u32> {
        if let Some(&cached) = self.long.get(&(left, right)) {
            return cached;
        }
        self.token.clear();
        for id in [left, right] {
            self.token.extend_from_slice(self.vocabulary.bytes(id).unwrap_or_default());
        }
        let id = self.vocabulary.id(&self.token);
        if self.token.len() > Self::LONG_BYTES {
            self.long.insert((left, right), id);
        }
        id
    }
}

/// The flag of a shared token whose name has the spaces of its bytes, not U+2581; the highest of all.
pub(crate) const SPACED: u8 = 1 << 5;

/// The name of a shared token: its text with U+2581 for spaces.
fn name_of(text: &str) -> String {
    text.chars().map(|c| if c == ' ' { META } else { c }).collect()
}

/// The ids of the special tokens that are ordinary tokens too.
fn shared(tokens: &[(Vec<u8>, u32)], added: &[AddedToken]) -> Vec<u32> {
    let place = |id| added.binary_search_by_key(&id, |token| token.id).ok();
    let name = |id| place(id).map(|at| &added[at].content);
    let is_shared = |token: &[u8], id| {
        let (name, text) = (name(id)?, std::str::from_utf8(token).ok()?);
        Some(name == text || *name == name_of(text))
    };
    let ids = tokens.iter().filter(|(token, id)| is_shared(token, *id) == Some(true));
    let mut ids: Vec<u32> = ids.map(|(_, id)| *id).collect();
    ids.sort_unstable();
    ids
}

/// The range of the bytes of an id; `None` if there is no such id.
#[inline]
fn range(offsets: &[u32], id: usize) -> Option<Range<usize>> {
    let [start, end] = *offsets.get(id..)?.first_chunk()?;
    Some(start as usize..end as usize)
}

/// Check special tokens in id order: no empty name, no duplicate name or id.
fn check_special(added: &[AddedToken]) -> Result<()> {
    if let Some(pair) = added.windows(2).find(|pair| pair[0].id >= pair[1].id) {
        return Err(broken(format!(
            "the special tokens {:?} and {:?} have the same id {}",
            pair[0].content, pair[1].content, pair[1].id
        )));
    }
    let mut names: Vec<&str> = added.iter().map(|token| &*token.content).collect();
    names.iter().try_for_each(|name| check_name(name))?;
    names.sort_unstable();
    if names.first() == Some(&"") {
        return Err(broken("a special token has an empty name"));
    }
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(broken(format!("the special token {:?} is given twice", pair[0]))),
        None => Ok(()),
    }
}

/// Fails if the name of an added token is too long: the search for names takes at most its length for
/// each byte of a text.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let beginning: String = name.chars().take(SHOWN_CHARS).collect();
    let bytes = name.len();
    Err(broken(format!(
        "the name of an added token has {bytes} bytes; {MAX_NAME_BYTES} are possible: {beginning:?}..."
    )))
}

/// Concatenate tokens sorted by id; ids that are missing get no bytes.
fn lay_out(tokens: &[(Vec<u8>, u32)]) -> Result<(Vec<u8>, Vec<u32>)> {
    let bytes = tokens.iter().map(|(token, _)| token.len()).sum();
    let (mut arena, mut offsets) = (memory::with_capacity(bytes)?, memory::filled(0, 1)?);
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
        let holes = id + 1 - offsets.len();
        memory::reserve(&mut offsets, holes + 1)?;
        offsets.resize(id + 1, offsets[offsets.len() - 1]);
        arena.extend_from_slice(token);
        let end = u32::try_from(arena.len())
            .map_err(|_| broken("the tokens have more than 4 GiB of bytes"))?;
        offsets.push(end);
    }
    Ok((arena, offsets))
}

fn broken(reason: impl Into<Reason>) -> Error {
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
    fn a_special_token_may_share_the_id_of_an_ordinary_one() {
        let v = vocabulary(&[("ab", 0), ("  ", 1)], &[("ab", 0), ("\u{2581}\u{2581}", 1)]).unwrap();
        assert_eq!((v.id(b"ab"), v.special("ab"), v.shared()), (Some(0), Some(0), &[0, 1][..]));
        assert_eq!((v.is_special(0), v.bytes(1)), (false, Some(&b"  "[..])));
        assert_eq!(v.ordinary_tokens().count(), 2);
        assert_eq!(vocabulary(&[(" ", 0)], &[(" ", 0)]).unwrap().shared(), [0]);
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
