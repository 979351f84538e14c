//! Makes a trained vocabulary smaller or larger.
//!
//! Training makes one merge after another, so the vocabularies of one run are nested: a smaller one
//! is a prefix of a larger one. [`truncate`] takes a prefix, [`resume`] continues the run,
//! [`extend`] adds tokens learnt from other text, and [`train_with`] starts with initial tokens.
//! Resuming with the counts of a coarser pattern and a veto learns superwords. A finished training
//! becomes a tokenizer here.

use std::num::NonZeroU64;

use crate::count::Counts;
use crate::error::{Error, Hint, Result};
use crate::memory;
use crate::pretokenize::{Pattern, Splitter};
use crate::rules::TextRules;
use crate::tokenizer::merges::Merges;
use crate::tokenizer::{Tokenizer, tokens_of};
use crate::train::{TrainOptions, Trained, train, train_more};
use crate::vocabulary::{MAX_VOCAB_SIZE, MergeRule, Vocabulary, check_size};

/// The name of the note with the number of bytes that a tokenizer was trained on.
pub const TEXT_BYTES: &str = "text_bytes";

/// The name of the note that tells how the merges across spaces were learnt.
const SUPERWORDS: &str = "superwords";

/// Truncate a tokenizer to `vocab_size` ids, special tokens included. The result is what training
/// for that size produces.
///
/// Fails if there are fewer ids, or if `tokenizer` does not come from a training.
pub fn truncate(tokenizer: &Tokenizer, vocab_size: usize) -> Result<Tokenizer> {
    let special = special(tokenizer);
    let merges = trained_merges(tokenizer)?;
    let keep = merges_for(vocab_size, special.len())?;
    if keep > merges.len() {
        let text = format!(
            "the vocabulary size {vocab_size} is larger than the vocabulary of {} ids",
            tokenizer.vocabulary().len()
        );
        let hint = const { &Hint::new("resume training to enlarge it") };
        return Err(Error::vocabulary(text, hint));
    }
    let replacements = tokenizer.merge_counts();
    let trained = Trained {
        merges: memory::copy(&merges[..keep])?,
        replacements: replacements[..keep.min(replacements.len())].to_vec(),
        ..Trained::default()
    };
    let truncated = trained.to_tokenizer(&special, tokenizer.rules().clone())?;
    let truncated = truncated.with_repeats_of(tokenizer)?;
    let notes = [TEXT_BYTES, SUPERWORDS].into_iter();
    let notes = notes.filter_map(|key| Some((key, tokenizer.notes().get(key)?)));
    Ok(notes.fold(truncated, |truncated, (key, value)| truncated.with_note(key, value)))
}

/// Continue a training up to `vocab_size` ids, special tokens included.
///
/// With the counts and options of the training, the result is that of a single run;
/// `options.merges` is ignored. The result has the pattern `pattern`, with which the text was
/// counted.
///
/// Fails if there are more ids already, or if `tokenizer` does not come from a training.
pub fn resume(
    tokenizer: &Tokenizer,
    counts: &Counts,
    pattern: &Pattern,
    vocab_size: usize,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Tokenizer> {
    let special = special(tokenizer);
    let merges = trained_merges(tokenizer)?;
    let total = merges_for(vocab_size, special.len())?;
    let more = total.checked_sub(merges.len()).ok_or_else(|| {
        let text = format!(
            "the vocabulary size {vocab_size} is smaller than the vocabulary of {} ids",
            tokenizer.vocabulary().len()
        );
        Error::vocabulary(text, const { &Hint::new("truncate it with with_vocab_size") })
    })?;
    let options = TrainOptions { merges: more, ..options.clone() };
    tokenizer.make_tables()?;
    let learnt = train_more(tokenizer, counts, &options, on_progress)?;
    // New tokens have the ids after the special tokens; the special tokens move to the end.
    let first_special = 256 + merges.len();
    let shift = id(special.len());
    let renumber = |id: u32| if (id as usize) < first_special { id } else { id - shift };
    let renumbered = learnt.merges.iter().map(|&(l, r)| (renumber(l), renumber(r)));
    let trained = Trained {
        merges: merges.iter().copied().chain(renumbered).collect(),
        replacements: [tokenizer.merge_counts(), &learnt.replacements].concat(),
        exhausted: learnt.exhausted,
        ..Trained::default()
    };
    trained.to_tokenizer(&special, pattern.clone())
}

/// Learn up to `options.merges` tokens from other counts, and keep all existing ids and merges.
///
/// New tokens get the ids after the vocabulary, special tokens included. Fails as [`train_more`]
/// does, and if a new token has the bytes of an existing one, which happens only in vocabularies
/// with tokens that no merge creates.
pub fn extend(
    tokenizer: &Tokenizer,
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Tokenizer> {
    if tokenizer.rule() == MergeRule::Characters || tokenizer.rules().symbols.is_some() {
        let text = "training merges bytes, and this vocabulary merges characters";
        let hint = const { &Hint::new("train a vocabulary of bytes, or add special tokens") };
        return Err(Error::vocabulary(text, hint));
    }
    tokenizer.make_tables()?;
    let learnt = train_more(tokenizer, counts, options, on_progress)?;
    let vocabulary = tokenizer.vocabulary();
    let all = tokens_of(&learnt.merges, vocabulary.all_bytes()?)?;
    let ordinary = all.into_iter().zip(0u32..);
    let ordinary = ordinary.filter(|(token, id)| !token.is_empty() && !vocabulary.is_special(*id));
    let added = vocabulary.added_tokens().to_vec();
    let mut merges = memory::copy(tokenizer.merges())?;
    memory::extend(&mut merges, &learnt.merges)?;
    let (vocabulary, rules) =
        (Vocabulary::with_added(ordinary, [], added)?, tokenizer.rules().clone());
    let merges = Merges::of_pairs(merges, Vec::new());
    Tokenizer::by_rule(vocabulary, tokenizer.rule(), rules, merges)
}

/// Learn merges from `counts`, after the merges that create the `initial` tokens.
///
/// The first merges are those of a training on the initial tokens alone, each with count 1, until
/// each is a single token. The intermediate tokens count towards `options.merges`. The merges after
/// that are exact, given the first ones. The counts of the first merges in the corpus are unknown,
/// so `counts` and `replacements` of the result are empty.
///
/// Fails as [`train`] does, if an initial token is not one pretoken, and if the initial tokens take
/// more than `options.merges` merges.
///
/// ```
/// use bytepair::{Counts, Pattern, TrainOptions, train::grow::train_with};
/// let counts = Counts::new([(&b"aab"[..], 9)]);
/// let options = TrainOptions { merges: 3, ..TrainOptions::default() };
/// let (initial, pattern) = (["xyz".to_owned()], Pattern::new("gpt2")?);
/// let trained = train_with(&initial, &counts, &pattern, &options, &mut |_| Ok(()))?;
/// let [a, x, y, z] = [b'a', b'x', b'y', b'z'].map(u32::from);
/// assert_eq!(trained.merges, [(x, y), (256, z), (a, a)]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn train_with(
    initial: &[String],
    counts: &Counts,
    pattern: &Pattern,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    if initial.is_empty() {
        return train(counts, options, on_progress);
    }
    let first = train_initial(initial, pattern, options)?;
    let initial = first.merges.len();
    let base = first.to_tokenizer(&[], pattern.clone())?;
    let rest = TrainOptions { merges: options.merges - initial, ..options.clone() };
    let learnt = train_more(&base, counts, &rest, &mut |done| on_progress(initial + done))?;
    Ok(Trained {
        merges: [first.merges, learnt.merges].concat(),
        exhausted: learnt.exhausted,
        ..Trained::default()
    })
}

/// The merges that create the initial tokens. Fails as [`train_with`] does.
pub fn train_initial(
    initial: &[String],
    pattern: &Pattern,
    options: &TrainOptions,
) -> Result<Trained> {
    let splitter = Splitter::new(pattern)?;
    initial.iter().try_for_each(|token| check_pretoken(token, &splitter))?;
    let mut once = initial.to_vec();
    once.sort_unstable();
    once.dedup();
    let counts = Counts::new(once.iter().map(|token| (token.as_bytes(), 1)));
    // There are fewer merges than bytes, so without the cap, training stops when no pair is left.
    let merges = counts.distinct_bytes().min(MAX_VOCAB_SIZE - 1 - 256);
    let all = TrainOptions {
        merges,
        max_token_bytes: None,
        min_count: NonZeroU64::MIN,
        ..options.clone()
    };
    let first = train(&counts, &all, &mut |_| Ok(()))?;
    if first.merges.len() > options.merges || !first.exhausted {
        let text = format!(
            "the initial tokens take at least {} merges, but there is room for {}",
            first.merges.len(),
            options.merges
        );
        let hint = const {
            &Hint::new("raise the vocabulary size, or pass fewer or shorter initial tokens")
        };
        return Err(Error::vocabulary(text, hint));
    }
    Ok(first)
}

/// Fails if an initial token is not one pretoken.
fn check_pretoken(token: &str, splitter: &Splitter) -> Result<()> {
    let mut pretokens = Vec::new();
    splitter.for_each(token, |pretoken| pretokens.push(pretoken))?;
    if pretokens.len() == 1 {
        return Ok(());
    }
    let reason = format!(
        "the initial token {token:?} is not one pretoken, so no text contains it as a token: the \
         pattern splits it into {pretokens:?}"
    );
    Err(Error::Vocabulary { reason: reason.into() })
}

/// The names of the special tokens, in the order of their ids.
fn special(tokenizer: &Tokenizer) -> Vec<String> {
    tokenizer.vocabulary().special_tokens().map(|(name, _)| name.to_owned()).collect()
}

/// The number of merges in a vocabulary: the ids that are neither bytes nor special tokens.
///
/// Fails if `vocab_size` is too small for the bytes and special tokens, or larger than the limit.
///
/// ```
/// assert_eq!(bytepair::train::grow::merges_for(300, 10)?, 34);
/// assert!(bytepair::train::grow::merges_for(1_000_000_000, 10).is_err());
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn merges_for(vocab_size: usize, special: usize) -> Result<usize> {
    check_size(vocab_size)?;
    let smallest = 256 + special;
    vocab_size.checked_sub(smallest).ok_or_else(|| {
        let reason = format!(
            "the vocabulary size {vocab_size} is too small for the 256 bytes and the special tokens; \
             pass at least {smallest}"
        );
        Error::Vocabulary { reason: reason.into() }
    })
}

/// The merges of a tokenizer, whose ids must be numbered as training does: bytes, then one id per
/// merge, then the special tokens.
fn trained_merges(tokenizer: &Tokenizer) -> Result<&[(u32, u32)]> {
    tokenizer.make_tables()?;
    let (vocabulary, merges) = (tokenizer.vocabulary(), tokenizer.merges());
    let bytes = (0..=255u8).all(|byte| vocabulary.id(&[byte]) == Some(byte.into()));
    let is_result = |id: u32, (left, right): (u32, u32)| {
        let joined = [vocabulary.bytes(left)?, vocabulary.bytes(right)?].concat();
        Some(vocabulary.bytes(id)? == joined)
    };
    let in_order = (256u32..).zip(merges).all(|(id, &pair)| is_result(id, pair) == Some(true));
    let whole = vocabulary.len() == 256 + merges.len() + vocabulary.special_tokens().len();
    if bytes && in_order && whole && tokenizer.rule() == MergeRule::Ranks {
        return Ok(merges);
    }
    Err(Error::Vocabulary {
        reason:
            "only a vocabulary trained by bytepair can be truncated or resumed: the 256 bytes, \
                 one id for each merge, then the special tokens; `extend` works for any"
                .into(),
    })
}

/// A number as an id.
fn id(number: usize) -> u32 {
    u32::try_from(number).expect("vocabularies are below 2^21 ids")
}

impl Trained {
    /// The tokenizer of these merges: the 256 bytes, one token per merge, then the special tokens.
    /// It merges by rank. The rules are usually the pattern by which the text was counted.
    ///
    /// Fails if a special token is given twice, the pattern does not compile, or there is not
    /// enough memory for the tokens.
    pub fn to_tokenizer(
        &self,
        special: &[String],
        rules: impl Into<TextRules>,
    ) -> Result<Tokenizer> {
        let tokens = tokens_of(&self.merges, (0..=255).map(|byte| vec![byte]).collect())?;
        let first_special = id(tokens.len());
        let special: Vec<_> = special.iter().cloned().zip(first_special..).collect();
        let vocabulary = Vocabulary::new(tokens.into_iter().zip(0..), special)?;
        let counts = memory::copy(&self.replacements)?;
        let merges = Merges::of_pairs(memory::copy(&self.merges)?, counts);
        let tokenizer = Tokenizer::by_rule(vocabulary, MergeRule::Ranks, rules.into(), merges)?;
        Ok(tokenizer.with_note("exhausted", &self.exhausted))
    }
}
