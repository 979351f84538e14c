//! Files of all other forms: symbols have the names of the vocabulary.
//!
//! Nothing is turned into bytes: pretokens are the characters that the pre-tokenizer gives, the tokens
//! are their names, and decoding takes the steps of the decoder. This is exact for every model of type
//! BPE, and slower than the two usual forms.

use super::file::File;
use super::pre_tokenizer::maps_bytes;
use super::tables::MergeIds;
use crate::error::{Error, Reason, Result, WayOut};
use crate::rules::byte_level::to_bytes;
use crate::rules::spaces::META;
use crate::rules::{AddedToken, Decoder, PreTokenizer, StartSymbols, TextRules};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MergeRule, Vocabulary};

/// The ways out of merges that make a special token.
const UNMAKE: &[WayOut] = &[
    WayOut::plain("write \"special\": false there"),
    WayOut::plain("remove the merges that make it"),
];

/// The parts of a tokenizer of this form.
pub(super) fn parts(mut file: File<'_>) -> Result<TokenizerParts> {
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
    let pair = |&[left, right, _]: &MergeIds| (left, right);
    let merges = file.merges.iter().map(pair).collect();
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
    let is_merge_result = |token: &&AddedToken| {
        token.special && file.merge_results.contains(&token.id) && !file.is_ordinary(token)
    };
    match file.added.iter().filter(is_merge_result).find(|token| is_other(&token.content)) {
        None => Ok(()),
        Some(token) => Err(Error::Unsupported {
            place: "added_tokens".to_owned(),
            reason: Reason::new(
                format!(
                    "merges make the special token {:?} of other text than its name",
                    token.content
                ),
                UNMAKE,
            ),
        }),
    }
}
