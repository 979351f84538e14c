//! Files whose tokens are bytes: a `ByteLevel` maps the bytes of a text to GPT-2's characters, and the
//! decoder maps them back.
//!
//! Without a decoder, `tokenizers` joins the names of tokens by spaces, which is no text that anybody
//! reads. Here ids then become the text that they were made of; a note says that the file has none.

use std::collections::HashSet;

use super::file::File;
use super::json::unsupported;
use super::pre_tokenizer::{self, joins_numeric};
use crate::error::Result;
use crate::formats::rule_of_ranks::is_rule_of_ranks;
use crate::memory;
use crate::rules::byte_level::to_bytes;
use crate::rules::{AddedToken, DecoderStep, PreTokenizer, PreTokenizerStep, TextRules};
use crate::tokenizer::parts::{TokenizerParts, is_supported};
use crate::vocabulary::{MergeRule, TOKEN, Vocabulary};

impl File<'_> {
    /// Whether the file is meant to have the form *bytes*.
    pub(super) fn is_of_bytes(&self) -> bool {
        let (steps, decoder) = (&self.rules.steps, &self.rules.decoder);
        let is_named = steps.iter().any(pre_tokenizer::maps_bytes);
        *decoder == [DecoderStep::ByteLevel] || (is_named && !self.model.byte_fallback)
    }

    /// Fails if the file has not exactly the form *bytes*.
    pub(super) fn check_bytes(&self) -> Result<()> {
        self.model.check_affixes()?;
        let maps = self.rules.steps.iter().filter(|step| pre_tokenizer::maps_bytes(step)).count();
        if maps != 1 {
            let reason = format!(
                "it has {maps} steps of type ByteLevel; with one, the tokens of this file are bytes"
            );
            return Err(unsupported("pre_tokenizer", reason));
        }
        if !matches!(self.rules.decoder[..], [] | [DecoderStep::ByteLevel]) {
            return Err(unsupported("decoder", "it is not ByteLevel, as the pre-tokenizer is"));
        }
        self.check_unknown()?;
        self.check_lookalikes()
    }

    /// Fails if bytes without a token are replaced; here they are an error.
    fn check_unknown(&self) -> Result<()> {
        let model = &self.model;
        let replaces =
            [("unk_token", model.unknown.is_some()), ("byte_fallback", model.byte_fallback)];
        match replaces.iter().find(|(_, replaces)| *replaces) {
            Some((name, _)) if !self.has_all_bytes() => {
                let reason = "not all 256 bytes are tokens, and the others are replaced by it";
                Err(unsupported(format!("model.{name}"), reason))
            }
            _ => Ok(()),
        }
    }

    /// Fails if a pretoken between bytes may give other ids than the same bytes in a longer one. If
    /// merges make all tokens, it does not matter which pretokens are tokens as a whole.
    fn check_digits(&self, vocabulary: &Vocabulary, merges: &[(u32, u32)]) -> Result<()> {
        let Some(individual) = self.rules.splits_bytes else { return Ok(()) };
        let joins = |name: &str| to_bytes(name).is_some_and(|t| joins_numeric(&t, individual));
        let reason = if self.model.ignore_merges && !is_rule_of_ranks(vocabulary, merges, false)? {
            "ignore_merges".to_owned()
        } else if let Some((name, _)) = self.ordinary().find(|(name, _)| joins(name)) {
            format!("the token {name:?}, which crosses such a split,")
        } else {
            return Ok(());
        };
        let reason = format!(
            "Digits behind ByteLevel splits between bytes, which with {reason} is not supported; put it \
             in front of ByteLevel"
        );
        Err(unsupported("pre_tokenizer", reason))
    }

    /// Fails if the text of an added token that merges use or make too is not its name: a character
    /// such as U+0120, which stands for a space, is looked for in a text as that character.
    fn check_lookalikes(&self) -> Result<()> {
        let differs = |name: &str| to_bytes(name).filter(|bytes| bytes != name.as_bytes());
        let is_token =
            |token: &&AddedToken| self.is_ordinary(token) || self.in_merges.contains(&token.id);
        for token in self.added.iter().filter(is_token) {
            if let Some(bytes) = differs(&token.content) {
                let reason = format!(
                    "{:?} is also the token of {:?}, and would be found in texts by its characters; \
                     leave it out of the added tokens",
                    token.content,
                    String::from_utf8_lossy(&bytes)
                );
                return Err(unsupported("added_tokens", reason));
            }
        }
        Ok(())
    }

    fn has_all_bytes(&self) -> bool {
        let single = |(name, _): &(&str, u32)| to_bytes(name).is_some_and(|b| b.len() == 1);
        self.ordinary().filter(single).count() == 256
    }

    /// The parts of a tokenizer whose tokens are bytes. A token with a character that stands for no
    /// byte comes from no text; it is only decoded.
    /// With `lossy`, a normalizer that is not supported is ignored.
    pub(super) fn of_bytes(mut self, lossy: bool) -> Result<TokenizerParts> {
        if lossy && !is_supported(&self.rules.normalizer.steps) {
            self.rules.normalizer.steps.clear();
        }
        memory::check(self.entries.len().saturating_mul(2 * TOKEN))?;
        let (mut tokens, mut twins) = (Vec::with_capacity(self.entries.len()), Vec::new());
        let added: HashSet<u32> = self.added.iter().map(|token| token.id).collect();
        for (name, id) in self.ordinary() {
            match to_bytes(name) {
                Some(token) => tokens.push((token, id)),
                None if added.contains(&id) => {}
                None => twins.push((name.as_bytes().to_vec(), id)),
            }
        }
        let known: HashSet<u32> = tokens.iter().map(|(_, id)| *id).collect();
        let usable = self.merges.iter().filter(|merge| merge.iter().all(|id| known.contains(id)));
        let merges: Vec<(u32, u32)> = usable.map(|&[left, right, _]| (left, right)).collect();
        let added = std::mem::take(&mut self.added);
        let vocabulary = Vocabulary::with_added(tokens, twins, added)?;
        let ignore_merges = self.model.ignore_merges;
        self.check_digits(&vocabulary, &merges)?;
        let ranks = self.may_be_ranks && is_rule_of_ranks(&vocabulary, &merges, ignore_merges)?;
        let mut steps = std::mem::take(&mut self.rules.steps);
        // Tokens of bytes imply it.
        steps.pop_if(|step| {
            *step == PreTokenizerStep::ByteLevel { add_prefix_space: false, use_regex: false }
        });
        let rules = TextRules {
            normalizer: std::mem::take(&mut self.rules.normalizer),
            pre_tokenizer: PreTokenizer { steps },
            ..TextRules::default()
        };
        if ranks {
            return Ok(self.finish(vocabulary, MergeRule::Ranks, Vec::new(), rules));
        }
        Ok(self.finish(vocabulary, MergeRule::Merges { ignore_merges }, merges, rules))
    }
}
