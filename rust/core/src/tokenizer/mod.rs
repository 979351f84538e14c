//! The finished tokenizer: four values, and what is derived from them.
//!
//! The four are the vocabulary with its special tokens, the merge rule, the split pattern (with the
//! version of Unicode its classes come from), and with them a tokenizer is compared, saved and
//! fingerprinted. Notes on its origin travel along but do not count.

mod encode;

pub(crate) mod merges;

pub mod offsets;

pub mod token;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::decode::{self, Number};
use crate::encode::encoder::Encoder;
use crate::encode::pretoken::PretokenEncoder;
use crate::encode::special::special_id;
use crate::encode::split_points::SplitPoints;
use crate::error::Result;
use crate::hash::fingerprint::hexadecimal;
use crate::machine::array::Array;
use crate::memory;
use crate::merge::build;
use crate::merge::pair_table::PairTable;
use crate::pretokenize::{Pattern, Splitter, UNICODE_VERSION};
use crate::vocabulary::{MergeRule, TOKEN, Vocabulary};
use merges::Merges;

/// What the merges, their counts and the marks take at most for each id, in bytes.
const DERIVED: usize = 32;

/// Tokens of so many bytes together are made between two checks of memory.
const CHECKED: usize = 1 << 20;

/// An immutable tokenizer; share it freely between threads. Clones share what is large, and what
/// they have encoded.
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
    /// For each id what it is; see [`token`].
    marks: OnceLock<Array<u32>>,
    fingerprint: OnceLock<String>,
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.vocabulary() == other.vocabulary()
            && self.rule == other.rule
            && (self.rule == MergeRule::Ranks || self.merges() == other.merges())
            && self.pattern() == other.pattern()
    }
}

impl Eq for Tokenizer {}

impl Tokenizer {
    /// A tokenizer that merges by rank. Fails if the pattern does not compile.
    pub fn from_ranks(vocabulary: Vocabulary, pattern: Pattern) -> Result<Self> {
        let encoder = Encoder::new(PretokenEncoder::by_rank(vocabulary), pattern)?;
        Ok(Self::assemble(encoder, MergeRule::Ranks, Merges::default()))
    }

    /// A tokenizer that merges listed pairs of ids, in the order of the list. With `ignore_merges`,
    /// a pretoken that is a token wins outright.
    ///
    /// Fails if the pattern does not compile, or if a merge names an id that does not exist or
    /// makes bytes that are no token.
    pub fn from_merges(
        vocabulary: Vocabulary,
        merges: Vec<(u32, u32)>,
        ignore_merges: bool,
        pattern: Pattern,
    ) -> Result<Self> {
        let rule = MergeRule::Merges { ignore_merges };
        let pairs = build::listed(&vocabulary, &merges)?;
        let merges = Merges::known(merges, Vec::new());
        Self::with_tables(vocabulary, rule, pattern, merges, pairs, None)
    }

    /// A tokenizer whose tables were made before. Fails if the pattern does not compile.
    pub(crate) fn with_tables(
        vocabulary: Vocabulary,
        rule: MergeRule,
        pattern: Pattern,
        merges: Merges,
        pairs: PairTable,
        split_points: Option<SplitPoints>,
    ) -> Result<Self> {
        let pretokens = PretokenEncoder::with_tables(vocabulary, rule, pairs, split_points);
        Ok(Self::assemble(Encoder::new(pretokens, pattern)?, rule, merges))
    }

    fn assemble(encoder: Encoder, rule: MergeRule, merges: Merges) -> Self {
        Self {
            encoder: Arc::new(encoder),
            rule,
            merges,
            notes: BTreeMap::new(),
            marks: OnceLock::new(),
            fingerprint: OnceLock::new(),
        }
    }

    /// The tokens.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.encoder.pretokens().vocabulary
    }

    /// Which neighbours merge, and in which order.
    pub fn rule(&self) -> MergeRule {
        self.rule
    }

    /// How text is split.
    pub fn pattern(&self) -> &Pattern {
        self.encoder.pattern()
    }

    /// The compiled pattern.
    pub fn splitter(&self) -> &Splitter {
        self.encoder.splitter()
    }

    /// What encodes.
    #[inline]
    pub(crate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Where this tokenizer comes from, as keys and values. They do not count when tokenizers are
    /// compared.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// The same tokenizer with other notes.
    #[must_use]
    pub fn with_notes(mut self, notes: BTreeMap<String, String>) -> Self {
        self.notes = notes;
        self
    }

    /// The same tokenizer with one note more.
    #[must_use]
    pub fn with_note(mut self, key: &str, value: &impl ToString) -> Self {
        self.notes.insert(key.to_owned(), value.to_string());
        self
    }

    /// The same tokenizer with merges, and the counts of training, that are known beside the ranks.
    #[must_use]
    pub(crate) fn with_merges(mut self, pairs: Vec<(u32, u32)>, counts: Vec<u64>) -> Self {
        self.merges = Merges::known(pairs, counts);
        self
    }

    /// The same tokenizer with the marks of a file.
    #[must_use]
    pub(crate) fn with_marks(mut self, marks: Option<Array<u32>>) -> Self {
        self.marks = marks.map_or_else(OnceLock::new, OnceLock::from);
        self
    }

    /// The same tokenizer with empty caches, of which that of repeated text takes at most `bytes`;
    /// 0 switches it off. It keeps copies of text that was encoded more than once, 32 MiB by
    /// default.
    pub fn with_repeats(mut self, bytes: usize) -> Result<Self> {
        self.encoder = Arc::new(self.encoder.with_repeats(bytes)?);
        Ok(self)
    }

    /// Whether the tables for encoding are made.
    pub fn has_tables(&self) -> bool {
        self.encoder.pretokens().has_tables()
    }

    /// The pairs of ids that merge, in order of rank.
    ///
    /// Those that training chose, or those that a merge list gave; for a vocabulary that came as
    /// bare ranks, the one pair that ever merges into each token. A token that no merge makes has
    /// no entry.
    ///
    /// # Panics
    ///
    /// If there is no memory for the tables that the merges are derived from;
    /// [`make_tables`](Self::make_tables) makes them before.
    pub fn merges(&self) -> &[(u32, u32)] {
        self.merges.pairs(|| self.pairs().expect("memory for the tables").in_order())
    }

    /// How many times training made each merge in its text; shorter than the merges, or empty,
    /// where that is not known.
    pub fn merge_counts(&self) -> &[u64] {
        self.merges.counts(self.merges().len())
    }

    /// Make the tables that the merges are derived from, unless these are known. Else
    /// [`merges`](Self::merges) and [`token`](Self::token) make them when first called, and panic
    /// if there is no memory for them.
    pub fn make_tables(&self) -> Result<()> {
        if !self.merges.are_known() {
            self.pairs()?;
        }
        memory::check(self.vocabulary().len() * DERIVED)
    }

    /// Which pairs merge, as encoding looks them up. Fails if there is no memory for the table.
    pub(crate) fn pairs(&self) -> Result<&PairTable> {
        Ok(self.encoder.pretokens().merger()?.pairs())
    }

    /// A hash of the four values, stable between versions and machines: 64 hexadecimal digits.
    pub fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            let mut hash = Sha256::new();
            hash.update(b"bytepair tokenizer 1\n");
            self.hash_values(&mut |part: &[u8]| {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            });
            hexadecimal(&hash.finalize())
        })
    }

    /// Every value once, in a fixed order, each as bytes.
    fn hash_values(&self, part: &mut impl FnMut(&[u8])) {
        let (arena, offsets) = self.vocabulary().arrays();
        part(arena);
        part(&offsets.to_bytes());
        for (name, id) in self.vocabulary().special_tokens() {
            part(name.as_bytes());
            part(&id.to_le_bytes());
        }
        part(self.pattern().regex().as_bytes());
        part(UNICODE_VERSION.as_bytes());
        if let MergeRule::Merges { ignore_merges } = self.rule {
            part(&[1, u8::from(ignore_merges)]);
            let flat = self.merges().iter().flat_map(|(left, right)| [*left, *right]);
            part(&flat.flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        }
    }

    /// The bytes of `ids`, end to end. Fails at the first id that stands for nothing.
    pub fn decode_bytes<N: Number>(&self, ids: &[N]) -> Result<Vec<u8>> {
        let mut bytes = memory::zeros(decode::decoded_length(self.vocabulary(), ids)?)?;
        decode::write(self.vocabulary(), ids, &mut bytes);
        Ok(bytes)
    }

    /// The id of a special token; the error lists those that exist.
    pub fn special_id(&self, name: &str) -> Result<u32> {
        special_id(self.vocabulary(), name)
    }

    /// The bytes of one id; the error names it.
    pub fn token_bytes(&self, id: u32) -> Result<&[u8]> {
        self.vocabulary().bytes(id).ok_or_else(|| decode::unknown_id(self.vocabulary(), id))
    }
}

/// The bytes of some tokens, followed by those of the tokens that merges make.
pub(crate) fn tokens_of(merges: &[(u32, u32)], mut tokens: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let mut unchecked = 0;
    memory::reserve(&mut tokens, merges.len())?;
    for &(left, right) in merges {
        let parts = [&*tokens[left as usize], &*tokens[right as usize]];
        unchecked += parts[0].len() + parts[1].len() + TOKEN;
        if unchecked > CHECKED {
            memory::check(std::mem::take(&mut unchecked))?;
        }
        tokens.push(parts.concat());
    }
    Ok(tokens)
}
