//! Leaves the spaces at the ends of tokens out of their spans, as Hugging Face `tokenizers` does after a
//! `ByteLevel` or `RobertaProcessing` with `trim_offsets`.
//!
//! What counts is the name that `tokenizers` has for a token: the spaces of an ordinary token are
//! written as U+0120 or U+2581 there, and the name of an added token is the text that it stands for.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::Result;
use crate::rules::normalize::CompiledNormalizer;
use crate::rules::{AddedToken, Normalizer, NormalizerStep, SpacePrefix};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::MergeRule;

/// What `ByteLevel` writes for a space in a name.
const SPACE: char = '\u{120}';

/// The spaces at one end of a name: the bytes and the characters of the text that they stand for.
type Spaces = [i64; 2];

/// The names of the tokens of a tokenizer.
pub(super) struct Trim<'a> {
    tokenizer: &'a Tokenizer,
    /// What the normalizer does to the names of added tokens, wherever they are found.
    normalizer: CompiledNormalizer,
    added: HashMap<u32, &'a AddedToken>,
}

impl<'a> Trim<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Result<Self> {
        let steps = tokenizer.rules().normalizer.steps.iter().filter_map(within);
        let normalizer = CompiledNormalizer::new(&Normalizer { steps: steps.collect() })?;
        let added = tokenizer.vocabulary().added_tokens().iter();
        Ok(Self { tokenizer, normalizer, added: added.map(|token| (token.id, token)).collect() })
    }

    /// Trim the spans of the ids of a text, in bytes and in characters. With `keeps_first`, a single
    /// space at the start of the text stays.
    pub(super) fn apply(
        &self,
        text: &str,
        ids: &[u32],
        [bytes, chars]: [&mut [[i64; 2]]; 2],
        keeps_first: bool,
    ) -> Result<()> {
        for (index, &id) in ids.iter().enumerate() {
            let span = bytes[index].map(|at| usize::try_from(at).unwrap_or_default());
            // A token of some bytes of a character is not an added one.
            let own = text.get(span[0]..span[1]).unwrap_or_default();
            let (mut before, after) = self.spaces(id, own)?;
            if keeps_first && before[1] == 1 && (index == 0 || span[0] == 0) {
                before = [0; 2];
            }
            for (span, unit) in [(&mut bytes[index], 0), (&mut chars[index], 1)] {
                span[0] = span[1].min(span[0] + before[unit]);
                if span[1] >= after[unit] {
                    span[1] = span[0].max(span[1] - after[unit]);
                }
            }
        }
        Ok(())
    }

    /// The spaces at the start and at the end of the name of a token that stands for a text.
    fn spaces(&self, id: u32, text: &str) -> Result<(Spaces, Spaces)> {
        let name = self.added.get(&id).map(|token| self.name(token, text)).transpose()?.flatten();
        let is_space = |c: char| c == SPACE || c.is_whitespace();
        Ok(name
            .map_or_else(|| self.spaces_of_model(id), |name| ends(&name, is_space, char::len_utf8)))
    }

    /// The name of an added token that was found in a text: the text, normalized if the token was
    /// found in normalized text; `None` if the model made the id.
    fn name<'t>(&self, token: &AddedToken, text: &'t str) -> Result<Option<Cow<'t, str>>> {
        if !token.normalized {
            return Ok(text.contains(&*token.content).then_some(Cow::Borrowed(text)));
        }
        let [name, content] = [text, &token.content].map(|text| self.normalizer.normalized(text));
        Ok(Some(name?)
            .filter(|name| name.contains(content.as_deref().unwrap_or("").trim()))
            .map(Cow::Owned))
    }

    /// The spaces at the ends of the name that the model has for a token.
    fn spaces_of_model(&self, id: u32) -> (Spaces, Spaces) {
        let name =
            String::from_utf8_lossy(self.tokenizer.vocabulary().bytes(id).unwrap_or_default());
        let is_space = |c: char| match self.tokenizer.rule() {
            _ if self.tokenizer.rules().symbols.is_some() => c == SPACE || c.is_whitespace(),
            MergeRule::Characters => c != ' ' && c.is_whitespace(),
            MergeRule::Ranks | MergeRule::Merges { .. } => c == ' ',
        };
        ends(&name, is_space, |c| if c == SPACE { 1 } else { c.len_utf8() })
    }
}

/// What a step of a normalizer does to the name of an added token, wherever it is found.
fn within(step: &NormalizerStep) -> Option<NormalizerStep> {
    match step {
        NormalizerStep::Strip { .. } => None,
        NormalizerStep::Spaces(_) => Some(NormalizerStep::Spaces(SpacePrefix::Never)),
        step => Some(step.clone()),
    }
}

/// The spaces at the start and at the end of a name; each stands for `size` bytes.
fn ends(
    name: &str,
    is_space: impl Fn(char) -> bool,
    size: impl Fn(char) -> usize,
) -> (Spaces, Spaces) {
    let add = |[bytes, chars]: Spaces, c| [bytes + i64::try_from(size(c)).unwrap_or(0), chars + 1];
    let start = name.chars().take_while(|&c| is_space(c)).fold([0; 2], add);
    (start, name.chars().rev().take_while(|&c| is_space(c)).fold([0; 2], add))
}
