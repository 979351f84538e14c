//! The options of training, the pairs that are never merged, and the result.

use std::cmp::Reverse;
use std::num::NonZeroU64;

use crate::count::Counts;
use crate::error::Result;
use crate::memory;

/// The rule for ties: which of several pairs with the same count is merged first.
///
/// ```
/// use bytepair::{Counts, Ties, TrainOptions, train};
/// let counts = Counts::new([(&b"zyab"[..], 1)]); // zy, ya and ab occur once
/// let first = |ties| {
///     let options = TrainOptions { merges: 1, ties, ..TrainOptions::default() };
///     let (left, right) = train(&counts, &options, &mut |_| Ok(()))?.merges[0];
///     Ok::<_, bytepair::Error>([left, right].map(|id| char::from(id as u8)))
/// };
/// assert_eq!(first(Ties::RustBpe)?, ['a', 'b']);
/// assert_eq!(first(Ties::FirstSeen)?, ['z', 'y']);
/// assert_eq!(first(Ties::BytesMax)?, ['z', 'y']);
/// assert_eq!(first(Ties::CharactersMax)?, ['z', 'y']);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The smallest pair of ids, as in rustbpe.
    #[default]
    RustBpe,
    /// The smallest pair of ids with the 256 bytes in the order of GPT-2's characters, as in
    /// Hugging Face tokenizers.
    Hf,
    /// The pair that occurs first in the corpus in its current state, as in minbpe.
    FirstSeen,
    /// The greatest pair of byte strings, as in Stanford's CS336.
    BytesMax,
    /// The greatest pair of strings of GPT-2's characters, as in parity-aware trainers.
    CharactersMax,
}

impl Ties {
    /// All rules with their names, the default first.
    ///
    /// ```
    /// use bytepair::Ties;
    /// assert_eq!(Ties::NAMED[0], ("rustbpe", Ties::default()));
    /// ```
    pub const NAMED: [(&str, Self); 5] = [
        ("rustbpe", Self::RustBpe),
        ("hf", Self::Hf),
        ("first-seen", Self::FirstSeen),
        ("bytes-max", Self::BytesMax),
        ("characters-max", Self::CharactersMax),
    ];
}

/// Options of a training.
///
/// ```
/// use bytepair::{Ties, TrainOptions};
/// // 32,000 ids: the 256 bytes, 31,743 merges and a special token.
/// let options = TrainOptions { merges: 32_000 - 256 - 1, threads: 8, ..TrainOptions::default() };
/// assert_eq!((options.ties, options.min_count.get()), (Ties::RustBpe, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainOptions {
    /// The largest number of merges to learn.
    pub merges: usize,
    /// The rule for pairs with the same count.
    pub ties: Ties,
    /// Pairs with a smaller count are not merged.
    pub min_count: NonZeroU64,
    /// Pairs whose token would have more bytes are not merged.
    pub max_token_bytes: Option<usize>,
    /// Which tokens are not learnt, for a pattern that does not split at spaces; `None` for one
    /// that does. With a veto, even one that allows every token, `train_more` cuts pretokens first,
    /// so that long ones take less time and memory.
    pub veto: Option<Veto>,
    /// The largest number of threads; it does not change the result.
    pub threads: usize,
}

impl Default for TrainOptions {
    /// 65,280 merges, which with the 256 bytes make 65,536 ids, on one thread.
    fn default() -> Self {
        Self {
            merges: 65_536 - 256,
            ties: Ties::default(),
            min_count: NonZeroU64::MIN,
            max_token_bytes: None,
            veto: None,
            threads: 1,
        }
    }
}

/// The result of a training.
///
/// ```
/// use bytepair::{Counts, Pattern, TrainOptions, train};
/// let counts = Counts::new([(&b"abab"[..], 3)]);
/// let trained = train(&counts, &TrainOptions::default(), &mut |_| Ok(()))?;
/// assert_eq!(trained.merges, [(97, 98), (256, 256)]); // ab, abab
/// assert_eq!((&trained.counts[..], trained.exhausted), (&[6, 3][..], true));
/// let tokenizer = trained.to_tokenizer(&["<s>".to_owned()], Pattern::new("gpt2")?)?;
/// assert_eq!(tokenizer.encode("abab")?, [257]);
/// assert_eq!(tokenizer.special_id("<s>")?, 258);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trained {
    /// The merges in order: pairs of ids; ids below 256 are bytes, 256 + i is the token of merge i.
    pub merges: Vec<(u32, u32)>,
    /// The count of the pair of each merge when it was chosen.
    pub counts: Vec<u64>,
    /// The number of occurrences that each merge replaced, by which the number of tokens in the
    /// corpus decreased. This is the count, except for pairs of two equal tokens, whose occurrences
    /// may overlap.
    pub replacements: Vec<u64>,
    /// Whether no pairs were left before the requested number of merges was reached.
    pub exhausted: bool,
}

/// The first merge of a list that training would not have made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The index of the merge.
    pub step: usize,
    /// The pair of ids in the list, and its count.
    pub pair: ((u32, u32), u64),
    /// The pair that training would merge, and its count; `None` if no pair is left.
    pub best: Option<((u32, u32), u64)>,
}

/// Parameters that change the speed of a training, but not its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuning {
    /// New pairs with a smaller count are not kept at first.
    pub(super) floor: u64,
    /// The largest number of merges in a batch.
    pub(super) batch: usize,
    /// The number of bytes of distinct pretokens per thread.
    pub(super) bytes_per_thread: usize,
}

impl Tuning {
    /// The fastest parameters for this number of merges.
    ///
    /// With the pretokens of more than one byte sorted by falling count, the floor is the count of
    /// pretoken number `merges`. No merge has a smaller count: before the last merge, at least one
    /// of the first `merges` pretokens is not yet a single token, and every pair in it occurs at
    /// least as often as the pretoken.
    pub(super) fn new(counts: &Counts, merges: usize) -> Result<Self> {
        let long = counts.iter().filter(|(pretoken, _)| pretoken.len() > 1);
        let floor = falling(long.map(|(_, count)| count), merges.saturating_sub(1))?;
        Ok(Self { floor, batch: MAX_BATCH_MERGES, bytes_per_thread: BYTES_PER_THREAD })
    }
}

/// The count at an index among counts in falling order; 1 if there are not as many.
pub(super) fn falling(counts: impl Iterator<Item = u64>, index: usize) -> Result<u64> {
    let mut counts: Vec<u64> = memory::collect(counts)?;
    if index >= counts.len() {
        return Ok(1);
    }
    Ok(*counts.select_nth_unstable_by_key(index, |&count| Reverse(count)).1)
}

/// The largest number of merges in a batch; larger batches are not faster.
const MAX_BATCH_MERGES: usize = 256;

/// With fewer bytes, one thread finishes before a second one has started.
const BYTES_PER_THREAD: usize = 1 << 18;

/// Limits on tokens that cross spaces: the rules of `SuperBPE` (arXiv 2503.13423).
///
/// ```
/// let veto = bytepair::Veto { max_words: Some(2), never: vec![": ".to_owned()] };
/// assert!(veto.allows(b" by the"));
/// assert!(!veto.allows(b" by the way"));
/// assert!(!veto.allows(b"note: a"));
/// ```
///
/// Every token that contains a vetoed token is itself vetoed. So a vetoed pair can be left out of
/// the queue: no allowed token is ever created from it.
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
