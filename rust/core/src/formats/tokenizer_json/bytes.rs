//! Files whose tokens are bytes: a `ByteLevel` maps the bytes of a text to GPT-2's characters, and the
//! decoder maps them back.
//!
//! Without a decoder, `tokenizers` joins the names of tokens by spaces, which gives no readable text.
//! Here, ids become the text that was encoded even so; a note says that the file has no decoder.
//!
//! Files that have neither this form nor that of `spaces` keep the names of tokens: [`parts_of_names`].

use std::collections::HashSet;

use super::file::File;
use super::json::unsupported;
use super::pre_tokenizer::{joins_numeric, maps_bytes};
use crate::error::{Hint, Reason, Result};
use crate::formats::ranks::is_rule_of_ranks;
use crate::memory;
use crate::rules::growth::TextGrowth;
use crate::rules::normalize::CompiledNormalizer;
use crate::rules::normalizer::META;
use crate::rules::pre_tokenizer::to_bytes;
use crate::rules::{AddedToken, Decoder, DecoderStep, PreTokenizerStep};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MergeRule, TOKEN_OVERHEAD_BYTES};

/// For special tokens that merges make.
const NOT_SPECIAL: &Hint =
    &Hint::new("write \"special\": false there, or remove the merges that make it");

/// The pattern that splits nothing.
const WHOLE: &str = "(?s:.)+";

impl File<'_> {
    /// Whether the file has the form *bytes*: its tokens are the bytes of text, and nothing that it
    /// asks for depends on their names.
    pub(super) fn is_of_bytes(&self) -> bool {
        let steps = &self.rules.pre_tokenizer.steps;
        let Some(at) = steps.iter().position(maps_bytes) else { return false };
        let marks = |step: &PreTokenizerStep| {
            matches!(step, PreTokenizerStep::ByteLevel { .. } | PreTokenizerStep::Metaspace { .. })
        };
        let replaces = self.symbols.unknown.is_some() || self.symbols.byte_fallback;
        !self.has_affixes()
            && !steps[at + 1..].iter().any(marks)
            && (!replaces || self.has_all_bytes())
            && !self.has_lookalikes()
    }

    /// Whether the text of an added token that merges use or make too is not its name: a character
    /// such as U+0120, which stands for a space, is looked for in a text as that character.
    fn has_lookalikes(&self) -> bool {
        let mut others = self.added.iter().filter(|token| is_of_other_bytes(&token.content));
        let ids: HashSet<u32> = others.clone().map(|token| token.id).collect();
        others.any(|token| self.is_ordinary(token))
            || (!ids.is_empty() && self.merges.iter().flatten().any(|id| ids.contains(id)))
    }

    fn has_all_bytes(&self) -> bool {
        let single = |(name, _): &(&str, u32)| to_bytes(name).is_some_and(|b| b.len() == 1);
        self.ordinary().filter(single).count() == 256
    }

    /// The parts of a tokenizer whose tokens are bytes. A token with a character that stands for no
    /// byte comes from no text; it is only decoded.
    pub(super) fn of_bytes(mut self) -> Result<TokenizerParts> {
        memory::check(self.entries.len().saturating_mul(2 * TOKEN_OVERHEAD_BYTES))?;
        let (mut tokens, mut twins) = (Vec::with_capacity(self.entries.len()), Vec::new());
        for (name, id) in self.ordinary() {
            match to_bytes(name) {
                Some(token) => tokens.push((token, id)),
                None => twins.push((name.as_bytes().to_vec(), id)),
            }
        }
        self.hidden.extend(twins.iter().map(|(_, id)| *id));
        let added: HashSet<u32> = self.added.iter().map(|token| token.id).collect();
        twins.retain(|(_, id)| !added.contains(id));
        let digits = self.rules.pre_tokenizer.steps.iter().find_map(|step| match step {
            PreTokenizerStep::Digits { individual } => Some(*individual),
            _ => None,
        });
        let joins = |individual| tokens.iter().any(|(token, _)| joins_numeric(token, individual));
        let mut digits_matter = digits.is_some_and(joins);
        let (ignore_merges, may_be_ranks) = (self.ignore_merges, self.may_be_ranks);
        let splits = without_implied(std::mem::take(&mut self.splits));
        let mut parts = self.finish(tokens, twins, MergeRule::Merges { ignore_merges })?;
        let are_ranks = |ignored| is_rule_of_ranks(&parts.vocabulary, &parts.merges, ignored);
        // If merges make all tokens, it does not matter which pretokens are tokens as a whole.
        digits_matter |= digits.is_some() && ignore_merges && !are_ranks(false)?;
        if may_be_ranks && are_ranks(ignore_merges)? {
            (parts.rule, parts.merges) = (MergeRule::Ranks, Vec::new());
        }
        parts.rules.decoder = decoder_of_bytes(&parts)?;
        let are_splits = splits.iter().all(|step| step.isolated_regex().is_some());
        parts.rules.pre_tokenizer.steps = if are_splits && !digits_matter {
            splits
        } else {
            without_implied(parts.rules.pre_tokenizer.steps)
        };
        Ok(parts)
    }
}

/// Whether a name consists of characters that stand for the bytes of another text.
pub(super) fn is_of_other_bytes(name: &str) -> bool {
    to_bytes(name).is_some_and(|bytes| bytes != name.as_bytes())
}

/// The decoder: tokens become their bytes, unless the name of an added token is normalized to
/// another, or consists of characters that stand for bytes.
fn decoder_of_bytes(parts: &TokenizerParts) -> Result<Decoder> {
    parts.rules.check_bounds()?;
    let normalizer = CompiledNormalizer::new(&parts.rules.normalizer)?;
    let added = parts.vocabulary.added_tokens();
    let mut is_plain = true;
    let mut growth = TextGrowth::of(added.iter().map(|token| token.content.len()).sum());
    for AddedToken { content, normalized, .. } in added {
        let name = match normalized {
            true => normalizer.normalized(content, &mut growth)?,
            false => content.clone(),
        };
        let bytes = to_bytes(&name).unwrap_or(name.into_bytes());
        is_plain &= bytes == content.as_bytes();
    }
    let steps = parts.rules.decoder.steps();
    let is_plain = steps.is_empty() || (is_plain && *steps == [DecoderStep::ByteLevel]);
    Ok(if is_plain { Decoder::Bytes } else { parts.rules.decoder.clone() })
}

/// The steps without a last `ByteLevel` that tokens of bytes imply.
fn without_implied(mut steps: Vec<PreTokenizerStep>) -> Vec<PreTokenizerStep> {
    let implied = PreTokenizerStep::ByteLevel { add_prefix_space: false, use_regex: false };
    let is_last = steps.iter().position(maps_bytes) == Some(steps.len() - 1);
    steps.pop_if(|step| is_last && *step == implied);
    if steps.is_empty() {
        steps.push(PreTokenizerStep::isolated(WHOLE));
    }
    steps
}

/// The parts of a tokenizer of this form.
///
/// Nothing is turned into bytes: pretokens are the characters that the pre-tokenizer gives, the tokens
/// are their names, and decoding takes the steps of the decoder. This is exact for every model of type
/// BPE, and slower than the two usual forms.
pub(super) fn parts_of_names(mut file: File<'_>) -> Result<TokenizerParts> {
    check_special(&file)?;
    let tokens = file.ordinary().map(|(name, id)| (name.as_bytes().to_vec(), id)).collect();
    file.rules.symbols = Some(std::mem::take(&mut file.symbols));
    let rule = MergeRule::Merges { ignore_merges: file.ignore_merges };
    file.finish(tokens, Vec::new(), rule)
}

/// Fails if merges make a special token of other text than its name, since special tokens come from
/// their names alone: `Ġthe` is made of " the", and `▁▁` of two spaces.
fn check_special(file: &File<'_>) -> Result<()> {
    let maps = file.rules.pre_tokenizer.steps.iter().any(maps_bytes);
    let is_other = |name: &str| if maps { is_of_other_bytes(name) } else { name.contains(META) };
    let results: HashSet<u32> = file.merges.iter().map(|merge| merge[2]).collect();
    let is_result = |token: &&AddedToken| {
        token.special && results.contains(&token.id) && !file.is_ordinary(token)
    };
    let mut results = file.added.iter().filter(is_result);
    let Some(token) = results.find(|token| is_other(&token.content)) else { return Ok(()) };
    let name = &token.content;
    let text = format!("merges make the special token {name:?} of other text than its name");
    Err(unsupported("added_tokens", Reason::new(text, NOT_SPECIAL)))
}
