//! Files whose tokens are bytes: a `ByteLevel` maps the bytes of a text to GPT-2's characters, and the
//! decoder maps them back.
//!
//! Without a decoder, `tokenizers` joins the names of tokens by spaces, which is no text that anybody
//! reads. Here ids then become the text that they were made of; a note says that the file has none.
//!
//! Files of all other forms than this and that of spaces keep their names: [`parts_of_names`].

use std::collections::HashSet;

use super::file::File;
use super::json::unsupported;
use super::pre_tokenizer::{self, joins_numeric, maps_bytes};
use crate::error::{Hint, Reason, Result};
use crate::formats::ranks::is_rule_of_ranks;
use crate::memory;
use crate::rules::growth::TextGrowth;
use crate::rules::normalize::CompiledNormalizer;
use crate::rules::normalizer::META;
use crate::rules::pre_tokenizer::to_bytes;
use crate::rules::{
    AddedToken, Decoder, DecoderStep, PreTokenizer, PreTokenizerStep, StartSymbols, TextRules,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MergeRule, TOKEN_OVERHEAD_BYTES, Vocabulary};

/// For special tokens that merges make.
const NOT_SPECIAL: &Hint =
    &Hint::new("write \"special\": false there, or remove the merges that make it");

/// The pattern that splits nothing.
const WHOLE: &str = "(?s:.)+";

impl File<'_> {
    /// Whether the file has the form *bytes*: its tokens are the bytes of text, and nothing that it
    /// asks for depends on their names.
    pub(super) fn is_of_bytes(&self) -> bool {
        let Some(at) = self.rules.as_written.iter().position(pre_tokenizer::maps_bytes) else {
            return false;
        };
        let marks = |step: &PreTokenizerStep| {
            matches!(step, PreTokenizerStep::ByteLevel { .. } | PreTokenizerStep::Metaspace { .. })
        };
        let replaces = self.model.unknown.is_some() || self.model.byte_fallback;
        !self.model.has_affixes()
            && !self.rules.as_written[at + 1..].iter().any(marks)
            && (!replaces || self.has_all_bytes())
            && !self.has_lookalikes()
    }

    /// Whether a pretoken between bytes may give other ids than the same bytes in a longer one. If
    /// merges make all tokens, it does not matter which pretokens are tokens as a whole.
    fn digits_matter(&self, vocabulary: &Vocabulary, merges: &[(u32, u32)]) -> Result<bool> {
        let digits = self.rules.as_written.iter().find_map(|step| match step {
            PreTokenizerStep::Digits { individual } => Some(*individual),
            _ => None,
        });
        let Some(individual) = digits else { return Ok(false) };
        if self.model.ignore_merges && !is_rule_of_ranks(vocabulary, merges, false)? {
            return Ok(true);
        }
        let joins = |name: &str| to_bytes(name).is_some_and(|t| joins_numeric(&t, individual));
        Ok(self.ordinary().any(|(name, _)| joins(name)))
    }

    /// Whether the text of an added token that merges use or make too is not its name: a character
    /// such as U+0120, which stands for a space, is looked for in a text as that character.
    fn has_lookalikes(&self) -> bool {
        let differs = |name: &str| to_bytes(name).is_some_and(|bytes| bytes != name.as_bytes());
        let mut others = self.added.iter().filter(|token| differs(&token.content));
        let ids: HashSet<u32> = others.clone().map(|token| token.id).collect();
        others.any(|token| self.is_ordinary(token))
            || (!ids.is_empty() && self.merges.iter().flatten().any(|id| ids.contains(id)))
    }

    fn has_all_bytes(&self) -> bool {
        let single = |(name, _): &(&str, u32)| to_bytes(name).is_some_and(|b| b.len() == 1);
        self.ordinary().filter(single).count() == 256
    }

    /// The decoder: tokens become their bytes, unless the name of an added token is normalized to
    /// another, or consists of characters that stand for bytes.
    fn decoder_of_bytes(&mut self, added: &[AddedToken]) -> Result<Decoder> {
        let normalizer = CompiledNormalizer::new(&self.rules.normalizer)?;
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
        Ok(match std::mem::take(&mut self.rules.decoder) {
            steps if steps.is_empty() => Decoder::Bytes,
            steps if is_plain && steps == [DecoderStep::ByteLevel] => Decoder::Bytes,
            steps => Decoder::Steps(steps),
        })
    }

    /// The steps of the pre-tokenizer: those that a splitter does, if they do the same.
    fn steps_of_bytes(&mut self, digits_matter: bool) -> Vec<PreTokenizerStep> {
        let implied = PreTokenizerStep::ByteLevel { add_prefix_space: false, use_regex: false };
        let without = |mut steps: Vec<PreTokenizerStep>| {
            let is_last = steps.iter().position(pre_tokenizer::maps_bytes) == Some(steps.len() - 1);
            // Tokens of bytes imply it.
            steps.pop_if(|step| is_last && *step == implied);
            if steps.is_empty() {
                steps.push(PreTokenizerStep::isolated(WHOLE));
            }
            steps
        };
        let steps = without(std::mem::take(&mut self.rules.steps));
        let are_splits = steps.iter().all(|step| step.isolated_regex().is_some());
        if are_splits && !digits_matter {
            steps
        } else {
            without(std::mem::take(&mut self.rules.as_written))
        }
    }

    /// The parts of a tokenizer whose tokens are bytes. A token with a character that stands for no
    /// byte comes from no text; it is only decoded.
    pub(super) fn of_bytes(mut self) -> Result<TokenizerParts> {
        memory::check(self.entries.len().saturating_mul(2 * TOKEN_OVERHEAD_BYTES))?;
        let (mut tokens, mut twins) = (Vec::with_capacity(self.entries.len()), Vec::new());
        let added: HashSet<u32> = self.added.iter().map(|token| token.id).collect();
        for (name, id) in self.ordinary() {
            match to_bytes(name) {
                Some(token) => tokens.push((token, id)),
                None if added.contains(&id) => {}
                None => twins.push((name.as_bytes().to_vec(), id)),
            }
        }
        let token_ids: HashSet<u32> = tokens.iter().map(|(_, id)| *id).collect();
        let usable =
            self.merges.iter().filter(|merge| merge.iter().all(|id| token_ids.contains(id)));
        let merges: Vec<(u32, u32)> = usable.map(|&[left, right, _]| (left, right)).collect();
        let added = std::mem::take(&mut self.added);
        let vocabulary = Vocabulary::with_added(tokens, twins, added)?;
        let ignore_merges = self.model.ignore_merges;
        let digits_matter = self.digits_matter(&vocabulary, &merges)?;
        let ranks = self.may_be_ranks && is_rule_of_ranks(&vocabulary, &merges, ignore_merges)?;
        let steps = self.steps_of_bytes(digits_matter);
        let decoder = self.decoder_of_bytes(vocabulary.added_tokens())?;
        let rules = TextRules {
            normalizer: std::mem::take(&mut self.rules.normalizer),
            pre_tokenizer: PreTokenizer { steps },
            decoder,
            ..TextRules::default()
        };
        if ranks {
            return Ok(self.finish(vocabulary, MergeRule::Ranks, Vec::new(), rules));
        }
        Ok(self.finish(vocabulary, MergeRule::Merges { ignore_merges }, merges, rules))
    }
}

/// The parts of a tokenizer of this form.
///
/// Nothing is turned into bytes: pretokens are the characters that the pre-tokenizer gives, the tokens
/// are their names, and decoding takes the steps of the decoder. This is exact for every model of type
/// BPE, and slower than the two usual forms.
pub(super) fn parts_of_names(mut file: File<'_>) -> Result<TokenizerParts> {
    check_special(&file)?;
    let tokens = file.ordinary().map(|(name, id)| (name.as_bytes().to_vec(), id));
    let vocabulary = Vocabulary::with_added(tokens.collect::<Vec<_>>(), [], file.added.clone())?;
    let model = &file.model;
    let symbols = StartSymbols {
        prefix: model.prefix.clone(),
        suffix: model.suffix.clone(),
        unknown: model.unknown.as_deref().and_then(|name| file.ids.get(name).copied()),
        fuse_unknown: model.fuse_unknown,
        byte_fallback: model.byte_fallback,
    };
    let rule = MergeRule::Merges { ignore_merges: model.ignore_merges };
    let rules = TextRules {
        normalizer: std::mem::take(&mut file.rules.normalizer),
        pre_tokenizer: PreTokenizer { steps: std::mem::take(&mut file.rules.as_written) },
        symbols: Some(symbols),
        decoder: Decoder::Steps(std::mem::take(&mut file.rules.decoder)),
        ..TextRules::default()
    };
    let merges = file.ordinary_merges().map(|&[left, right, _]| (left, right)).collect();
    Ok(file.finish(vocabulary, rule, merges, rules))
}

/// Fails if merges make a special token of other text than its name, since special tokens come from
/// their names alone: `Ġthe` is made of " the", and `▁▁` of two spaces.
fn check_special(file: &File<'_>) -> Result<()> {
    let maps = file.rules.as_written.iter().any(maps_bytes);
    let is_other = |name: &str| {
        let bytes = to_bytes(name).filter(|_| maps);
        bytes.is_some_and(|bytes| bytes != name.as_bytes()) || (!maps && name.contains(META))
    };
    let results: HashSet<u32> = file.merges.iter().map(|merge| merge[2]).collect();
    let is_result = |token: &&AddedToken| {
        token.special && results.contains(&token.id) && !file.is_ordinary(token)
    };
    match file.added.iter().filter(is_result).find(|token| is_other(&token.content)) {
        None => Ok(()),
        Some(AddedToken { content, .. }) => {
            let text =
                format!("merges make the special token {content:?} of other text than its name");
            Err(unsupported("added_tokens", Reason::new(text, NOT_SPECIAL)))
        }
    }
}
