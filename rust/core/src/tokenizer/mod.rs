//! The finished tokenizer: four values and derived tables.
//!
//! The four values are the vocabulary, the added tokens, the merge rule and the text rules with their
//! Unicode version. They are compared, saved and fingerprinted together. Notes on the
//! origin of a tokenizer are saved with it, but do not affect equality.

pub mod decode_stream;
mod encode;
mod lossless;
pub(crate) mod merges;
pub mod offsets;
pub mod parts;
pub mod session;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::decode::{self, Number};
use crate::encode::encoder::Encoder;
use crate::encode::pretoken::{MergeTables, PretokenEncoder, get_or_build};
use crate::encode::special::special_id;
use crate::error::{Error, Result};
use crate::hash::hexadecimal;
use crate::memory;
use crate::merge::pair_table::PairTable;
use crate::pretokenize::{Pattern, Splitter, UNICODE_VERSION};
use crate::rules::growth::TextGrowth;
use crate::rules::pre_tokenizer::to_characters;
use crate::rules::{AddedToken, Decoder, NormalizerStep, SpacePrefix, TextRules};
use crate::search::Expression;
use crate::vocabulary::{MergeRule, NO_ID, PairLookup, TOKEN_OVERHEAD_BYTES, Vocabulary};
use merges::Merges;

/// Upper bound on the bytes that the merges, their counts and their ranks take per id.
const DERIVED_BYTES_PER_ID: usize = 32;

/// Free memory is checked once per this many bytes of tokens.
const CHECK_BYTES: usize = 1 << 20;

/// An immutable tokenizer, which threads may share. Clones share the large tables and the caches.
///
/// ```
/// use bytepair::{Pattern, Tokenizer, Vocabulary};
/// let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// let tokens = bytes.chain([(b"He".to_vec(), 256), (b"ll".to_vec(), 257)]);
/// let vocabulary = Vocabulary::new(tokens, [])?;
/// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
/// let ids = tokenizer.encode("Hello")?;
/// assert_eq!(ids, [256, 257, 111]); // He, ll, o
/// assert_eq!(tokenizer.decode_bytes(&ids)?, b"Hello");
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tokenizer {
    encoder: Arc<Encoder>,
    rule: MergeRule,
    merges: Merges,
    notes: BTreeMap<String, String>,
    fingerprint: OnceLock<String>,
    /// The regular expressions of the decoder's steps, built for the first decoding with them.
    expressions: OnceLock<Arc<[Option<Expression>]>>,
    /// The names of the `normalized` added tokens once they are normalized, by the indices of the tokens.
    normalized_names: OnceLock<Arc<[Option<String>]>>,
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.vocabulary() == other.vocabulary()
            && self.rule == other.rule
            && (self.rule == MergeRule::Ranks || self.merges() == other.merges())
            && self.rules() == other.rules()
    }
}

impl Eq for Tokenizer {}

impl Tokenizer {
    /// Build a tokenizer that merges by rank. The rules are usually a [`Pattern`]. Fails if a regular
    /// expression does not compile, or if the rules are contradictory: symbols with names merge by
    /// listed pairs only.
    pub fn from_ranks(vocabulary: Vocabulary, rules: impl Into<TextRules>) -> Result<Self> {
        Self::by_rule(vocabulary, MergeRule::Ranks, rules.into(), Merges::default())
    }

    /// Build a tokenizer that merges listed pairs of ids, in list order. With `ignore_merges`, a
    /// pretoken that is a token is encoded as that token, without merging.
    ///
    /// Fails if a regular expression does not compile, if a merge contains an unknown id, or if the
    /// bytes of a merge are not a token. [`MergeRule`] has an example.
    pub fn from_merges(
        vocabulary: Vocabulary,
        merges: Vec<(u32, u32)>,
        ignore_merges: bool,
        rules: impl Into<TextRules>,
    ) -> Result<Self> {
        let merges = Merges::of_pairs(merges, Vec::new());
        Self::by_rule(vocabulary, MergeRule::Merges { ignore_merges }, rules.into(), merges)
    }

    /// Build a tokenizer that merges by this rule. Under that of ranks, the merges only tell the history.
    pub(crate) fn by_rule(
        vocabulary: Vocabulary,
        rule: MergeRule,
        rules: TextRules,
        merges: Merges,
    ) -> Result<Self> {
        Self::with_tables(vocabulary, rule, rules, merges, MergeTables::default())
    }

    /// Build a tokenizer with the tables that exist. Fails as [`from_ranks`](Self::from_ranks) and
    /// [`from_merges`](Self::from_merges) do.
    pub(crate) fn with_tables(
        vocabulary: Vocabulary,
        rule: MergeRule,
        rules: TextRules,
        merges: Merges,
        tables: MergeTables,
    ) -> Result<Self> {
        check_rules(rule, &vocabulary, &rules)?;
        let pairs = if rule == MergeRule::Ranks { &[] } else { merges.pairs(Vec::new) };
        let pretokens = PretokenEncoder::new(vocabulary, rule, &rules, pairs, tables)?;
        let encoder = Arc::new(Encoder::new(pretokens, rules)?);
        let (notes, fingerprint, expressions, normalized_names) = Default::default();
        Ok(Self { encoder, rule, merges, notes, fingerprint, expressions, normalized_names })
    }

    /// The vocabulary with the special tokens.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.encoder.pretokens.vocabulary
    }

    /// Which adjacent tokens merge, and in which order.
    pub fn rule(&self) -> MergeRule {
        self.rule
    }

    /// What happens to a text before its pretokens are merged, and to ids after that.
    pub fn rules(&self) -> &TextRules {
        &self.encoder.rules
    }

    /// The split pattern; `None` if the text is split in another way than by regular expressions whose
    /// matches are kept.
    pub fn pattern(&self) -> Option<Pattern> {
        self.rules().pre_tokenizer.pattern()
    }

    /// The compiled pattern.
    #[doc(hidden)]
    pub fn splitter(&self) -> &Splitter {
        &self.encoder.splitter
    }

    /// The encoder with its tables and caches.
    #[inline]
    pub(crate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Notes on the origin of this tokenizer, as keys and values. They do not affect equality.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// This tokenizer with other notes.
    #[must_use]
    pub fn with_notes(mut self, notes: BTreeMap<String, String>) -> Self {
        self.notes = notes;
        self
    }

    /// This tokenizer with one more note.
    #[doc(hidden)]
    #[must_use]
    pub fn with_note(mut self, key: &str, value: &impl ToString) -> Self {
        self.notes.insert(key.to_owned(), value.to_string());
        self
    }

    /// A tokenizer with the same ordinary tokens and other special tokens. Those that this tokenizer
    /// has too keep their flags. Fails if a special token has the id or the name of another token.
    ///
    /// ```
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// let plain = Tokenizer::from_ranks(Vocabulary::new(bytes, [])?, Pattern::new("gpt2")?)?;
    /// let more = plain.with_special_tokens(vec![("<|end|>".to_owned(), 256)])?;
    /// assert_eq!((more.special_id("<|end|>")?, more.encode("a")?), (256, vec![97]));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn with_special_tokens(&self, special: Vec<(String, u32)>) -> Result<Self> {
        let added_tokens = self.vocabulary().added_tokens();
        let with_flags = |(content, id): (String, u32)| {
            let same = added_tokens.iter().find(|token| token.content == content && token.id == id);
            same.cloned().unwrap_or_else(|| AddedToken::special(content, id))
        };
        let added: Vec<AddedToken> = special.into_iter().map(with_flags).collect();
        self.make_tables()?;
        let vocabulary = self.vocabulary();
        let tokens = vocabulary.ordinary_tokens().map(|(token, id)| (token.to_vec(), id));
        let twins = vocabulary.twins().iter().filter_map(|&id| Some((vocabulary.bytes(id)?, id)));
        let twins = twins.map(|(token, id)| (token.to_vec(), id));
        let vocabulary = Vocabulary::with_added(tokens, twins, added)?;
        self.rebuilt(vocabulary, self.rules().clone())
    }

    /// A tokenizer that leaves out what no token covers, or that fails on it: another value of
    /// [`TextRules::drops_uncovered`]. Fails if merges are ignored.
    ///
    /// ```
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// let vocabulary = Vocabulary::new([(b"a".to_vec(), 0), (b"aa".to_vec(), 1)], [])?;
    /// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::from_regex(".+"))?;
    /// assert!(tokenizer.encode("aba").is_err());
    /// assert_eq!(tokenizer.with_uncovered_dropped(true)?.encode("aba")?, [1]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn with_uncovered_dropped(&self, drops: bool) -> Result<Self> {
        self.make_tables()?;
        let rules = TextRules { drops_uncovered: drops, ..self.rules().clone() };
        self.rebuilt(self.vocabulary().clone(), rules)
    }

    /// A tokenizer with the same merges and notes.
    fn rebuilt(&self, vocabulary: Vocabulary, rules: TextRules) -> Result<Self> {
        let counts = memory::copy(self.merge_counts())?;
        let merges = Merges::of_pairs(memory::copy(self.merges())?, counts);
        let tokenizer = Self::by_rule(vocabulary, self.rule, rules, merges)?;
        tokenizer.with_notes(self.notes.clone()).with_repeats_of(self)
    }

    /// This tokenizer with empty caches. The cache of repeated text, which keeps copies of text
    /// that was encoded more than once, takes at most `bytes` (32 MiB by default); 0 switches it
    /// off.
    pub fn with_repeats(mut self, bytes: usize) -> Result<Self> {
        self.encoder = Arc::new(self.encoder.with_repeats(bytes)?);
        Ok(self)
    }

    /// The limit in bytes on the cache of repeated text; 0 if it is switched off.
    pub fn repeats(&self) -> usize {
        self.encoder.repeats()
    }

    /// This tokenizer with the limit on the cache of repeated text of `other`.
    pub(crate) fn with_repeats_of(self, other: &Self) -> Result<Self> {
        if self.repeats() == other.repeats() {
            Ok(self)
        } else {
            self.with_repeats(other.repeats())
        }
    }

    /// Whether the tables for encoding exist.
    #[doc(hidden)]
    pub fn has_tables(&self) -> bool {
        self.encoder.pretokens.has_tables()
    }

    /// The pairs of ids that merge, in rank order.
    ///
    /// These are the merges that training chose or that a merge list contained. A vocabulary of
    /// ranks alone has one merge per token, the only pair that ever merges into it; a token that no
    /// merge creates has none.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the tables from which merges are derived; call
    /// [`make_tables`](Self::make_tables) first to get an error instead.
    pub fn merges(&self) -> &[(u32, u32)] {
        self.merges.pairs(|| self.pairs().expect("memory for the tables").buckets.in_order())
    }

    /// How often training made each merge in its corpus; empty, or shorter than the merges, if
    /// unknown.
    pub fn merge_counts(&self) -> &[u64] {
        self.merges.counts(self.merges().len())
    }

    /// For each id, the index in [`merges`](Self::merges) of the first merge that creates its token.
    #[doc(hidden)]
    pub fn ranks(&self) -> Vec<Option<u32>> {
        let mut ranks = vec![None; self.vocabulary().len()];
        let mut joined = PairLookup::new(self.vocabulary());
        for (rank, &(left, right)) in (0..).zip(self.merges()) {
            if let Some(id) = joined.id(left, right) {
                ranks[id as usize].get_or_insert(rank);
            }
        }
        ranks
    }

    /// Build the tables from which merges are derived, or check the merges of a file. If this is not
    /// called first, [`merges`](Self::merges) and [`ranks`](Self::ranks) build the tables on their
    /// first call, and panic if there is not enough memory.
    pub fn make_tables(&self) -> Result<()> {
        if !self.merges.are_ready() {
            self.pairs()?;
        }
        self.merges.check(self.vocabulary())?;
        memory::check(self.vocabulary().len() * DERIVED_BYTES_PER_ID)
    }

    /// The ids, in ascending order, of the tokens that only a whole pretoken becomes; none unless whole
    /// pretokens come first. Fails if there is not enough memory.
    #[doc(hidden)]
    pub fn whole_only_ids(&self) -> Result<Vec<u32>> {
        memory::copy(self.encoder.pretokens.whole_only()?)
    }

    /// The pairs that merge, in the form that encoding uses. Fails if there is not enough memory
    /// for the table.
    pub(crate) fn pairs(&self) -> Result<&PairTable> {
        Ok(&self.encoder.pretokens.merger()?.pairs)
    }

    /// A hash of the four values, stable between versions and machines: 64 hexadecimal digits.
    pub fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            let mut hash = Sha256::new();
            hash.update(b"bytepair tokenizer 3\n");
            let mut part = |part: &[u8]| {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            };
            let (vocabulary, (arena, offsets)) = (self.vocabulary(), self.vocabulary().arrays());
            part(arena);
            part(&offsets.to_bytes());
            for token in vocabulary.added_tokens() {
                part(token.content.as_bytes());
                part(&token.id.to_le_bytes());
                part(&[token.flags()]);
            }
            part(&self.rules().to_bytes());
            part(UNICODE_VERSION.as_bytes());
            match self.rule {
                MergeRule::Ranks => return hexadecimal(&hash.finalize()),
                MergeRule::Merges { ignore_merges } => part(&[1, u8::from(ignore_merges)]),
                MergeRule::Characters => part(&[2]),
            }
            let merges = self.merges().iter().flat_map(|(left, right)| [*left, *right]);
            part(&merges.flat_map(u32::to_le_bytes).collect::<Vec<_>>());
            let twins = vocabulary.twins().iter().copied();
            let twins: Vec<u8> = twins.flat_map(u32::to_le_bytes).collect();
            if !twins.is_empty() {
                part(&twins);
            }
            hexadecimal(&hash.finalize())
        })
    }

    /// The text of `ids`. Bytes that are not UTF-8, such as half a character, become U+FFFD;
    /// [`decode_bytes`](Self::decode_bytes) keeps them. Fails at the first id without a token.
    ///
    /// ```
    /// # use bytepair::{Error, Pattern, Tokenizer, Vocabulary};
    /// # let tokens = [(b"caf".to_vec(), 0), (b"\xC3".to_vec(), 1), (b"\xA9".to_vec(), 2)];
    /// # let vocabulary = Vocabulary::new(tokens, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// assert_eq!(tokenizer.decode(&[0, 1, 2])?, "café");
    /// assert_eq!(tokenizer.decode(&[0, 1])?, "caf\u{FFFD}");
    /// assert!(matches!(tokenizer.decode(&[3]), Err(Error::UnknownId { vocab_size: 3, .. })));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        decode::lossy(self.decode_bytes(ids)?)
    }

    /// The concatenated bytes of `ids`, without the space that encoding may put before a text; or, if
    /// the decoder has steps, the UTF-8 of the text that they give. Fails at the first id without a
    /// token.
    pub fn decode_bytes<N: Number>(&self, ids: &[N]) -> Result<Vec<u8>> {
        let length = decode::decoded_length(self.vocabulary(), ids)?;
        if let Decoder::Steps(steps) = &self.rules().decoder {
            let ids = ids.iter().filter_map(|number| number.id());
            let names = ids.map(|id| self.token_name(id));
            let expressions =
                get_or_build(&self.expressions, || Ok(decode::expressions(steps)?.into()))?;
            return Ok(decode::by_steps(names, length, steps, expressions)?.into_bytes());
        }
        let mut bytes = memory::zeros(length)?;
        decode::write(self.vocabulary(), ids, &mut bytes)?;
        if self.drops_space() && bytes.first() == Some(&b' ') {
            bytes.remove(0);
        }
        Ok(bytes)
    }

    /// Whether the tokens of ids are decoded one by one, each to its bytes.
    #[doc(hidden)]
    pub fn decodes_bytes(&self) -> bool {
        self.rules().decoder == Decoder::Bytes
    }

    /// Whether decoding removes a space at the start of a text, because encoding adds one there.
    #[doc(hidden)]
    pub fn drops_space(&self) -> bool {
        let normalizer = &self.rules().normalizer.steps[..];
        matches!(normalizer, [NormalizerStep::Spaces(prefix)] if *prefix != SpacePrefix::Never)
            && self.decodes_bytes()
    }

    /// The name of a token, as decoders see it: bytes in GPT-2's characters, unless tokens have names
    /// of their own. The name of a `normalized` added token is normalized.
    fn token_name(&self, id: u32) -> String {
        let vocabulary = self.vocabulary();
        let bytes = vocabulary.bytes(id).unwrap_or_default();
        let added = vocabulary.added_tokens();
        if let Ok(at) = added.binary_search_by_key(&id, |token| token.id) {
            // If there is not enough memory to normalize it, the name is that of the file.
            let names = self.normalized_names().ok();
            let name = names.and_then(|names| names[at].as_ref());
            return name.unwrap_or(&added[at].content).clone();
        }
        let is_name =
            self.rules().symbols.is_some() || vocabulary.twins().binary_search(&id).is_ok();
        if is_name { String::from_utf8_lossy(bytes).into_owned() } else { to_characters(bytes) }
    }

    /// The names of the `normalized` added tokens. They are normalized once, which may take long.
    fn normalized_names(&self) -> Result<&[Option<String>]> {
        let names = get_or_build(&self.normalized_names, || {
            let added = self.vocabulary().added_tokens();
            let mut growth = TextGrowth::of(added.iter().map(|token| token.content.len()).sum());
            let aligner = self.encoder.aligner()?;
            let names = added.iter().map(|AddedToken { content, normalized, .. }| {
                normalized.then(|| aligner.normalized(content, &mut growth)).transpose()
            });
            names.collect()
        });
        Ok(names?)
    }

    /// The id of a special token; the error lists the special tokens of the vocabulary.
    pub fn special_id(&self, name: &str) -> Result<u32> {
        special_id(self.vocabulary(), name)
    }

    /// The bytes of one id.
    pub fn token_bytes(&self, id: u32) -> Result<&[u8]> {
        self.vocabulary().bytes(id).ok_or_else(|| decode::unknown_id(self.vocabulary(), id))
    }
}

/// Fails if the rules contradict the merge rule, or name ids that do not exist.
fn check_rules(rule: MergeRule, vocabulary: &Vocabulary, rules: &TextRules) -> Result<()> {
    let broken = |reason: String| Err(Error::Vocabulary { reason: reason.into() });
    if rules.symbols.is_some() && !matches!(rule, MergeRule::Merges { .. }) {
        return broken("symbols with names merge by listed pairs only".to_owned());
    }
    let byte = vocabulary.byte_ids().iter().position(|&id| id == NO_ID);
    if let Some(byte) = byte.filter(|_| rule == MergeRule::Characters) {
        return broken(format!(
            "byte {byte} has no token, but characters without a token need one per byte"
        ));
    }
    let ignores = rule == MergeRule::Merges { ignore_merges: true };
    if rules.drops_uncovered && ignores && byte.is_some() && rules.symbols.is_none() {
        return broken("no bytes are left out where merges are ignored".to_owned());
    }
    let unknown = rules.symbols.iter().filter_map(|symbols| symbols.unknown);
    let mut ids = unknown.chain(rules.post_processor.ids());
    match ids.find(|&id| vocabulary.bytes(id).is_none()) {
        Some(id) => broken(format!("the rules name the id {id}, which has no token")),
        None => Ok(()),
    }
}

/// The bytes of `tokens`, followed by the bytes of the token that each merge creates.
pub(crate) fn tokens_of(merges: &[(u32, u32)], mut tokens: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let mut unchecked = 0;
    memory::reserve(&mut tokens, merges.len())?;
    for &(left, right) in merges {
        let parts = [&*tokens[left as usize], &*tokens[right as usize]];
        unchecked += parts[0].len() + parts[1].len() + TOKEN_OVERHEAD_BYTES;
        if unchecked > CHECK_BYTES {
            memory::check(std::mem::take(&mut unchecked))?;
        }
        tokens.push(parts.concat());
    }
    Ok(tokens)
}
