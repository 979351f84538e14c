//! A trained vocabulary made smaller or larger.
//!
//! Training makes one merge after another, so the vocabularies of one run are nested: the smaller is
//! the beginning of the larger. [`truncate`] cuts one down, [`resume`] goes on as if the run had
//! never stopped, and [`extend`] learns from other text behind what is there. [`train_with`] begins
//! with tokens that somebody wants, whatever the text.

use std::num::NonZeroU64;

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::pretokenize::{Pattern, Splitter};
use crate::tokenizer::Tokenizer;
use crate::train::{TrainOptions, Trained, train, train_more};
use crate::vocabulary::{MergeRule, Rule, Vocabulary};

/// The note that says how many bytes a tokenizer was trained on.
pub const TEXT_BYTES: &str = "text_bytes";

/// The tokenizer that training for `vocab_size` ids, special tokens included, would have given.
///
/// Fails if there are fewer ids, or if `tokenizer` does not come from a training.
pub fn truncate(tokenizer: &Tokenizer, vocab_size: usize) -> Result<Tokenizer> {
    let special = special(tokenizer);
    let merges = trained_merges(tokenizer)?;
    let keep = merges_for(vocab_size, special.len())?;
    if keep > merges.len() {
        return Err(Error::Vocabulary {
            reason: format!(
                "vocab_size {vocab_size} is larger than the {} ids there are; resume training to \
                 get more",
                tokenizer.vocabulary().len()
            ),
        });
    }
    let made = tokenizer.merges_made();
    let trained = Trained {
        merges: merges[..keep].to_vec(),
        made: made[..keep.min(made.len())].to_vec(),
        ..Trained::default()
    };
    let truncated = Tokenizer::from_training(&trained, &special, tokenizer.pattern().clone())?;
    Ok(match tokenizer.notes().get(TEXT_BYTES) {
        Some(bytes) => truncated.with_note(TEXT_BYTES, bytes),
        None => truncated,
    })
}

/// Go on to `vocab_size` ids, special tokens included, with the counts that the training had.
///
/// The result is that of a single training with the same options; `options.merges` does not count.
/// Fails if there are more ids already, or if `tokenizer` does not come from a training.
pub fn resume(
    tokenizer: &Tokenizer,
    counts: &Counts,
    vocab_size: usize,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Tokenizer> {
    let special = special(tokenizer);
    let merges = trained_merges(tokenizer)?;
    let wanted = merges_for(vocab_size, special.len())?;
    let more = wanted.checked_sub(merges.len()).ok_or_else(|| Error::Vocabulary {
        reason: format!(
            "vocab_size {vocab_size} is smaller than the {} ids there are; truncate instead",
            tokenizer.vocabulary().len()
        ),
    })?;
    let options = TrainOptions { merges: more, ..options.clone() };
    let learnt = train_more(tokenizer, counts, &options, on_progress)?;
    // New tokens were numbered behind the special ones, which now move behind them.
    let first_special = 256 + merges.len();
    let shift = id(special.len());
    let renumber = |id: u32| if (id as usize) < first_special { id } else { id - shift };
    let renumbered = learnt.merges.iter().map(|&(l, r)| (renumber(l), renumber(r)));
    let trained = Trained {
        merges: merges.iter().copied().chain(renumbered).collect(),
        made: [tokenizer.merges_made(), &learnt.made].concat(),
        exhausted: learnt.exhausted,
        ..Trained::default()
    };
    Tokenizer::from_training(&trained, &special, tokenizer.pattern().clone())
}

/// Learn up to `options.merges` tokens from other counts, and keep every id and every merge there is.
///
/// New tokens get the ids behind the vocabulary, special tokens included. Fails as
/// [`train_more`] does, and if a new token has the bytes of one that is there already, which
/// happens only in vocabularies with tokens that no merge makes.
pub fn extend(
    tokenizer: &Tokenizer,
    counts: &Counts,
    options: &TrainOptions,
    on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Tokenizer> {
    let learnt = train_more(tokenizer, counts, options, on_progress)?;
    let vocabulary = tokenizer.vocabulary();
    let mut all: Vec<Vec<u8>> = (0..id(vocabulary.len()))
        .map(|id| vocabulary.bytes(id).unwrap_or_default().to_vec())
        .collect();
    for &(left, right) in &learnt.merges {
        all.push([&*all[left as usize], &*all[right as usize]].concat());
    }
    let ordinary = all.into_iter().zip(0u32..);
    let ordinary = ordinary.filter(|(token, id)| !token.is_empty() && !vocabulary.is_special(*id));
    let special = vocabulary.special_tokens().to_vec();
    let merges = [tokenizer.merges(), &learnt.merges].concat();
    let rule = match tokenizer.rule() {
        Rule::Ranks => MergeRule::Ranks,
        Rule::Merges { ignore_merges } => {
            MergeRule::Merges { merges: merges.clone(), ignore_merges }
        }
    };
    let vocabulary = Vocabulary::new(ordinary, special)?;
    Ok(Tokenizer::new(vocabulary, rule, tokenizer.pattern().clone())?.with_merges(merges))
}

/// Learn merges from `counts`, after those that make the `initial` tokens.
///
/// The merges that come first are those of a training on the initial tokens alone, each once, up to
/// where each is a single token; the tokens on the way count among `options.merges` like all others.
/// The rest is exact, given these. How often the first merges are made in the corpus is not known,
/// so `counts` and `made` of the result are empty.
///
/// Fails as [`train`] does, if an initial token is not one pretoken, and if there is no room for the
/// merges of all.
///
/// ```
/// use std::num::NonZeroU64;
/// use bytepair::{Counts, Pattern, Ties, TrainOptions, grow::train_with};
/// let counts = Counts::new([(&b"aab"[..], 9)]);
/// let options = TrainOptions { merges: 3, ties: Ties::RustBpe, min_count: NonZeroU64::MIN, max_token_bytes: None, threads: 1 };
/// let trained = train_with(&["xyz".to_owned()], &counts, &Pattern::new("gpt2"), &options, &mut |_| Ok(()))?;
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
    let first = wanted(initial, pattern, options)?;
    let made = first.merges.len();
    let base = Tokenizer::from_training(&first, &[], pattern.clone())?;
    let rest = TrainOptions { merges: options.merges - made, ..options.clone() };
    let learnt = train_more(&base, counts, &rest, &mut |done| on_progress(made + done))?;
    Ok(Trained {
        merges: [first.merges, learnt.merges].concat(),
        exhausted: learnt.exhausted,
        ..Trained::default()
    })
}

/// The merges that make each of some tokens.
fn wanted(initial: &[String], pattern: &Pattern, options: &TrainOptions) -> Result<Trained> {
    let splitter = Splitter::new(pattern)?;
    for token in initial {
        let mut pretokens = Vec::new();
        splitter.for_each(token, |pretoken| pretokens.push(pretoken.to_owned()))?;
        if pretokens.len() != 1 {
            let reason = format!(
                "the initial token {token:?} is not one pretoken, so no text could hold it: the \
                 pattern splits it into {pretokens:?}"
            );
            return Err(Error::Vocabulary { reason });
        }
    }
    let mut once = initial.to_vec();
    once.sort_unstable();
    once.dedup();
    let counts = Counts::new(once.iter().map(|token| (token.as_bytes(), 1)));
    let merges = counts.distinct_bytes();
    let all =
        TrainOptions { merges, max_token_bytes: None, min_count: NonZeroU64::MIN, ..*options };
    let first = train(&counts, &all, &mut |_| Ok(()))?;
    if first.merges.len() > options.merges {
        let reason = format!(
            "the initial tokens take {} merges and there is room for {}; ask for a larger \
             vocabulary, or for fewer or shorter initial tokens",
            first.merges.len(),
            options.merges
        );
        return Err(Error::Vocabulary { reason });
    }
    Ok(first)
}

/// The names of the special tokens, in the order of their ids.
fn special(tokenizer: &Tokenizer) -> Vec<String> {
    tokenizer.vocabulary().special_tokens().iter().map(|(name, _)| name.clone()).collect()
}

/// How many merges there are room for beside the bytes and the special tokens.
fn merges_for(vocab_size: usize, special: usize) -> Result<usize> {
    let smallest = 256 + special;
    vocab_size
        .checked_sub(smallest)
        .ok_or(Error::VocabularyTooSmall { asked: vocab_size, smallest })
}

/// The merges of a tokenizer whose ids are laid out as training does it: bytes, then one id a merge,
/// then the special tokens.
fn trained_merges(tokenizer: &Tokenizer) -> Result<&[(u32, u32)]> {
    let (vocabulary, merges) = (tokenizer.vocabulary(), tokenizer.merges());
    let bytes = (0..=255u8).all(|byte| vocabulary.id(&[byte]) == Some(byte.into()));
    let made = |id: u32, (left, right): (u32, u32)| {
        let joined = [vocabulary.bytes(left)?, vocabulary.bytes(right)?].concat();
        Some(vocabulary.bytes(id)? == joined)
    };
    let in_order = (256u32..).zip(merges).all(|(id, &pair)| made(id, pair) == Some(true));
    let whole = vocabulary.len() == 256 + merges.len() + vocabulary.special_tokens().len();
    if bytes && in_order && whole && tokenizer.rule() == Rule::Ranks {
        return Ok(merges);
    }
    Err(Error::Vocabulary {
        reason:
            "only a vocabulary as bytepair trains it can be cut down or resumed: the 256 bytes, \
                 one id for each merge, then the special tokens; `extend` works for any"
                .to_owned(),
    })
}

/// A number of ids as an id.
fn id(number: usize) -> u32 {
    u32::try_from(number).expect("vocabularies are below 2^21 ids")
}
