//! Writes a tokenizer as a `tokenizer.json` in the form that other programs know best, and names
//! what the format cannot hold.
//!
//! A file gives the same ids. A tokenizer with the rule of ranks is written as one pair for each
//! token (see [`rule_of_ranks`](crate::formats::ranks)). A split by GPT-2's pattern is
//! written as the `ByteLevel` that has it, and other patterns as their publishers spell them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use super::json::{JsonNode, OWN, sequence};
use super::oniguruma::means_the_same;
use super::tables::{quote, write_merges, write_vocabulary};
use super::{fields, file, is_harmless, pre_tokenizer, spaces};
use crate::error::Result;
use crate::formats::ranks::{EMPTY_NOTE, is_rule_of_ranks, pairs_of_ranks};
use crate::memory;
use crate::pretokenize::{Splitter, match_lengths};
use crate::rules::normalizer::META;
use crate::rules::pre_tokenizer::{character, to_bytes};
use crate::rules::{
    AddedToken, Decoder, DecoderStep, NormalizerStep, PreTokenizer, PreTokenizerStep, SpacePrefix,
    StartSymbols, TextRules, name_of_byte,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MAX_VOCAB_SIZE, MergeRule, TOKEN_OVERHEAD_BYTES};

/// Upper bound on memory: writing needs at most this many bytes for each byte of the tokens.
const MEMORY_PER_TOKEN_BYTE: usize = 4;

/// The text of a file; an entry of the vocabulary or a merge on each line.
///
/// Fails if there is not enough memory.
pub fn write(parts: &TokenizerParts) -> Result<String> {
    let tokens = parts.vocabulary.arrays().0.len() + parts.vocabulary.len() * TOKEN_OVERHEAD_BYTES;
    memory::check(tokens.saturating_mul(MEMORY_PER_TOKEN_BYTE))?;
    let normalized = note(parts, file::NORMALIZED_NOTE);
    let normalized: HashSet<String> = serde_json::from_value(normalized).unwrap_or_default();
    let (before_split, split) = around(parts);
    let fields = [
        ("version", json!("1.0")),
        ("truncation", note(parts, file::TRUNCATION_NOTE)),
        ("padding", note(parts, file::PADDING_NOTE)),
        ("added_tokens", fields::write_added_tokens(&split_lookalikes(parts).0, &normalized)),
        ("normalizer", before_split),
        ("pre_tokenizer", split),
        ("post_processor", processor(parts)),
        ("decoder", decoder(parts)),
    ];
    let mut text = String::from("{\n");
    for (name, value) in &fields {
        text.extend(["  \"", name, "\": ", &pretty(value, 1), ",\n"]);
    }
    text.extend(["  \"model\": ", &model(parts)?, "\n}\n"]);
    Ok(text)
}

/// A value as JSON on several lines, at a depth of indentation.
fn pretty(value: &Value, depth: usize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &["\n", &"  ".repeat(depth)].concat())
}

/// The added tokens, with the user-defined ones, which `tokenizers` finds as added tokens in text with
/// U+2581 for spaces.
fn added_tokens(parts: &TokenizerParts) -> Vec<AddedToken> {
    let user_defined = parts.rules.user_defined.iter().filter_map(|&id| {
        let text = std::str::from_utf8(parts.vocabulary.bytes(id)?).ok()?;
        let token = AddedToken::ordinary(text.replace(' ', &META.to_string()), id);
        Some(AddedToken { normalized: true, ..token })
    });
    let mut all: Vec<AddedToken> =
        parts.vocabulary.added_tokens().iter().cloned().chain(user_defined).collect();
    all.sort_by_key(|token| token.id);
    all
}

/// The value in a note; null without it.
fn note(parts: &TokenizerParts, name: &str) -> Value {
    let note = parts.notes.get(name);
    note.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The post-processor in the notes, or else that of the rules.
fn processor(parts: &TokenizerParts) -> Value {
    match note(parts, file::PROCESSOR_NOTE) {
        Value::Null => fields::write_post_processor(&parts.rules.post_processor),
        from_notes => from_notes,
    }
}

// ---------------------------------------------------------------------------- around the model

/// Where a space is put, if the tokens have spaces for U+2581.
fn space_prefix(rules: &TextRules) -> Option<SpacePrefix> {
    match rules.normalizer.steps[..] {
        [NormalizerStep::Spaces(prefix)] => Some(prefix),
        _ => None,
    }
}

/// The normalizer and the pre-tokenizer.
fn around(parts: &TokenizerParts) -> (Value, Value) {
    let rules = &parts.rules;
    let steps = &rules.pre_tokenizer.steps;
    if let Some(prefix) = space_prefix(rules) {
        let splits = *steps == [PreTokenizerStep::isolated(spaces::BEFORE_SPACES)];
        let by_normalizer = matches!(prefix, SpacePrefix::Never | SpacePrefix::Always);
        if !splits && by_normalizer {
            let steps = spaces::normalizer(prefix);
            // Always a sequence, as `transformers` writes it.
            let steps: Vec<Value> = steps
                .iter()
                .map(|step| fields::write_normalizer(std::slice::from_ref(step)))
                .collect();
            return (json!({"type": "Sequence", "normalizers": steps}), Value::Null);
        }
        return (Value::Null, pre_tokenizer::write_metaspace(META, prefix, splits));
    }
    let normalizer = fields::write_normalizer(&rules.normalizer.steps);
    if let Some(from_notes) = steps_from_notes(parts) {
        return (normalizer, from_notes);
    }
    let mut written = pre_tokenizer::write(steps);
    if rules.symbols.is_none() && !steps.iter().any(pre_tokenizer::maps_bytes) {
        let by_gpt2 = steps.last().is_some_and(pre_tokenizer::is_gpt2);
        if by_gpt2 {
            written.pop();
        }
        written.push(pre_tokenizer::byte_level(false, by_gpt2));
    }
    (normalizer, sequence(written, "pretokenizers"))
}

/// The pre-tokenizer in the notes, if it is the one that the steps were read from.
fn steps_from_notes(parts: &TokenizerParts) -> Option<Value> {
    let from_notes = note(parts, file::STEPS_NOTE);
    let read = pre_tokenizer::read(&JsonNode::new(&from_notes, file::STEPS_NOTE)).ok()?;
    let mut steps = pre_tokenizer::of_text(read);
    steps.pop_if(|step| pre_tokenizer::maps_bytes(step));
    (steps == parts.rules.pre_tokenizer.steps).then_some(from_notes)
}

fn decoder(parts: &TokenizerParts) -> Value {
    if parts.notes.contains_key(file::DECODER_NOTE) {
        return Value::Null;
    }
    let rules = &parts.rules;
    match (&rules.decoder, space_prefix(rules)) {
        (Decoder::Steps(steps), _) => fields::write_decoder(steps),
        (Decoder::Bytes, Some(prefix)) => fields::write_decoder(&spaces::decoder(prefix)),
        (Decoder::Bytes, None) => fields::write_decoder(&[DecoderStep::ByteLevel]),
    }
}

// ---------------------------------------------------------------------------- the model

/// The object of the model.
fn model(parts: &TokenizerParts) -> Result<String> {
    let names = names(parts);
    let pairs = match parts.rule {
        MergeRule::Ranks => Cow::Owned(pairs_of_ranks(&parts.vocabulary)?),
        MergeRule::Merges { .. } | MergeRule::Characters => Cow::Borrowed(&*parts.merges),
    };
    let name = |id: &u32| names.get(id).map_or("\"\"", String::as_str);
    let merges = write_merges(pairs.iter().map(|(left, right)| [name(left), name(right)]));
    let mut text = String::from("{\n");
    for (name, value) in settings(parts, &pairs)? {
        text.extend(["    \"", name, "\": ", &pretty(&value, 2), ",\n"]);
    }
    let added = added_in_vocabulary(parts, &names);
    let added = added.into_iter().map(|token| (token.id, quote(token.content.chars())));
    let empty = empty_token(parts).map(|id| (id, quote([])));
    let entries = names.into_iter().chain(empty).chain(added).collect();
    text.extend(["    \"vocab\": ", &write_vocabulary(entries), ",\n"]);
    text.extend(["    \"merges\": ", &merges, "\n  }"]);
    Ok(text)
}

/// The small fields of the model.
fn settings(parts: &TokenizerParts, merges: &[(u32, u32)]) -> Result<Vec<(&'static str, Value)>> {
    let symbols = parts.rules.symbols.clone().unwrap_or_default();
    let affix = |affix: &String| Some(affix.clone()).filter(|affix| !affix.is_empty());
    let unknown = symbols.unknown.and_then(|id| parts.vocabulary.bytes(id));
    let of_characters = parts.rule == MergeRule::Characters;
    let mut settings = vec![
        ("type", json!("BPE")),
        ("dropout", Value::Null),
        ("unk_token", json!(unknown.map(String::from_utf8_lossy))),
        ("continuing_subword_prefix", json!(affix(&symbols.prefix))),
        ("end_of_word_suffix", json!(affix(&symbols.suffix))),
        ("fuse_unk", json!(of_characters || symbols.fuse_unknown)),
        ("byte_fallback", json!(of_characters || symbols.byte_fallback)),
        ("ignore_merges", json!(ignores_merges(parts, merges)?)),
    ];
    if let (MergeRule::Merges { ignore_merges }, None) = (parts.rule, &parts.rules.symbols)
        && is_rule_of_ranks(&parts.vocabulary, merges, ignore_merges)?
    {
        settings.push((OWN, json!({"merge_rule": "merges"})));
    }
    Ok(settings)
}

/// The quoted names of the tokens, by id, without the added tokens that are no ordinary ones.
fn names(parts: &TokenizerParts) -> BTreeMap<u32, String> {
    let vocabulary = &parts.vocabulary;
    let text = |token: &[u8]| String::from_utf8_lossy(token).into_owned();
    let twins = vocabulary.twins().iter().filter_map(|&id| Some((vocabulary.bytes(id)?, id)));
    let tokens = vocabulary.ordinary_tokens();
    if parts.rules.symbols.is_some() {
        return tokens.map(|(token, id)| (id, quote(text(token).chars()))).collect();
    }
    if parts.rule != MergeRule::Characters {
        let tokens = tokens.map(|(token, id)| (id, quote(token.iter().copied().map(character))));
        return tokens.chain(twins.map(|(token, id)| (id, quote(text(token).chars())))).collect();
    }
    let name_of_byte = |byte: u8| quote(name_of_byte(byte).chars());
    let plain = plain_bytes(parts);
    let covered: HashSet<u8> = twins.clone().map(|(token, _)| token[0]).collect();
    let tokens = tokens.map(|(token, id)| match token {
        [byte] if !covered.contains(byte) && !plain.contains(&id) => (id, name_of_byte(*byte)),
        _ => (id, quote(text(token).chars().map(|c| if c == ' ' { META } else { c }))),
    });
    tokens.chain(twins.map(|(token, id)| (id, name_of_byte(token[0])))).collect()
}

/// The ids of single bytes that are characters in the vocabulary, although they have no twin.
fn plain_bytes(parts: &TokenizerParts) -> HashSet<u32> {
    let merged = parts.merges.iter().flat_map(|(left, right)| [*left, *right]);
    merged.chain(added_tokens(parts).iter().map(|token| token.id)).collect()
}

/// Whether a pretoken that is a token becomes that token, whatever merges give: so has it the rule of
/// ranks. Where merges make all tokens this changes nothing, unless the vocabulary lists added tokens
/// that are found in every text, which would become ordinary tokens as well.
fn ignores_merges(parts: &TokenizerParts, merges: &[(u32, u32)]) -> Result<bool> {
    Ok(match parts.rule {
        MergeRule::Merges { ignore_merges } => ignore_merges,
        MergeRule::Characters => false,
        MergeRule::Ranks => {
            let are_special = |tokens: &[AddedToken]| tokens.iter().all(|token| token.special);
            are_special(&added_tokens(parts))
                || are_special(&added_in_vocabulary(parts, &names(parts)))
                || !is_rule_of_ranks(&parts.vocabulary, merges, false)?
        }
    })
}

/// The added tokens that are listed in the vocabulary, although they are no ordinary tokens. Those
/// that follow it are not, since `tokenizers` numbers them so; but it does not find the unknown token
/// among them, so that one is listed, with those before it.
fn added_in_vocabulary(parts: &TokenizerParts, names: &BTreeMap<u32, String>) -> Vec<AddedToken> {
    let (mut added, _) = split_lookalikes(parts);
    added.retain(|token| !names.contains_key(&token.id));
    let size = names.len() + usize::from(empty_token(parts).is_some());
    let unknown = parts.rules.symbols.as_ref().and_then(|symbols| symbols.unknown);
    let last = added
        .iter()
        .enumerate()
        .rposition(|(place, token)| token.id as usize != size + place || Some(token.id) == unknown);
    added.truncate(last.map_or(0, |place| place + 1));
    added
}

/// The id of the token without bytes, if the tokenizer was read from a file with one.
fn empty_token(parts: &TokenizerParts) -> Option<u32> {
    let id = parts.notes.get(EMPTY_NOTE)?.parse().ok()?;
    let vocabulary = &parts.vocabulary;
    let is_free = vocabulary.bytes(id).is_none() && (id as usize) < MAX_VOCAB_SIZE;
    is_free.then_some(id)
}

// ---------------------------------------------------------------------------- losses

/// What a `tokenizer.json` cannot hold of a tokenizer, in words; usually nothing.
pub fn losses(parts: &TokenizerParts) -> Vec<String> {
    let mut lost: Vec<String> =
        [lost_names(parts), lost_texts(parts), lost_symbols(parts), lost_user_defined(parts)]
            .into_iter()
            .flatten()
            .collect();
    let spaces = space_prefix(&parts.rules).is_some();
    // As written by others, its meaning there is known.
    let steps = match steps_from_notes(parts) {
        Some(_) => &[],
        None => &*parts.rules.pre_tokenizer.steps,
    };
    for step in steps {
        let PreTokenizerStep::Split { regex, .. } = step else { continue };
        if spaces && regex != spaces::BEFORE_SPACES && !is_harmless(regex) {
            lost.push("the split pattern: with byte fallback there is only Metaspace".to_owned());
        } else if !spaces && match_lengths(regex).0 == 0 {
            let reason = "that matches of no characters split nothing: tokenizers splits there";
            lost.push(reason.to_owned());
        }
        if !spaces && !means_the_same(regex) {
            let reason = "the exact meaning of the split pattern: Oniguruma, the regex engine of \
                          tokenizers, may interpret parts of it differently";
            lost.push(reason.to_owned());
        }
    }
    let mut seen = HashSet::new();
    lost.retain(|loss| seen.insert(loss.clone()));
    lost
}

/// The added tokens to write, and those whose name is the name of another token.
fn split_lookalikes(parts: &TokenizerParts) -> (Vec<AddedToken>, Vec<AddedToken>) {
    let quoted = names(parts);
    let ids: HashMap<&str, u32> = quoted.iter().map(|(id, name)| (name.as_str(), *id)).collect();
    added_tokens(parts).into_iter().partition(|token| {
        let name = quote(token.content.chars());
        ids.get(name.as_str()).is_none_or(|id| *id == token.id)
    })
}

/// Special tokens whose name is the name of another token.
fn lost_names(parts: &TokenizerParts) -> Option<String> {
    let (_, lost) = split_lookalikes(parts);
    Some(format!("special tokens equal to ordinary tokens, such as '{}'", lost.first()?.content))
}

/// Added tokens that would be decoded to other text: `tokenizers` takes their characters for bytes.
fn lost_texts(parts: &TokenizerParts) -> Option<String> {
    let rules = &parts.rules;
    if rules.decoder != Decoder::Bytes || space_prefix(rules).is_some() {
        return None;
    }
    let differs = |token: &&AddedToken| {
        to_bytes(&token.content).is_some_and(|bytes| bytes != token.content.as_bytes())
    };
    let added = added_tokens(parts);
    let lost = added.iter().find(differs)?;
    Some(format!("the decoded text of special tokens such as '{}'", lost.content))
}

/// Added tokens that texts are merged to, since the vocabulary lists them.
fn lost_symbols(parts: &TokenizerParts) -> Option<String> {
    let listed = added_in_vocabulary(parts, &names(parts));
    let lost = listed.iter().find(|token| is_merged(&token.content, parts))?;
    Some(format!("that text is never merged to added tokens such as '{}'", lost.content))
}

/// Whether merging a text gives the token of that name: merges start from bytes or characters, and a
/// pretoken may become its token as a whole.
fn is_merged(name: &str, parts: &TokenizerParts) -> bool {
    let of_whole = |text: &str| match parts.rule {
        MergeRule::Ranks | MergeRule::Merges { ignore_merges: true } => {
            is_whole(text, &parts.rules.pre_tokenizer)
        }
        _ => false,
    };
    if parts.rules.symbols.is_none() && parts.rule != MergeRule::Characters {
        let bytes = to_bytes(name).unwrap_or_default();
        return bytes.len() == 1 || str::from_utf8(&bytes).is_ok_and(of_whole);
    }
    let StartSymbols { prefix, suffix, .. } = parts.rules.symbols.clone().unwrap_or_default();
    let rest = name.strip_prefix(&*prefix).unwrap_or(name);
    let rest = rest.strip_suffix(&*suffix).unwrap_or(rest);
    rest.chars().count() == 1 || of_whole(name)
}

/// Whether a text may be a pretoken.
fn is_whole(text: &str, pre_tokenizer: &PreTokenizer) -> bool {
    let mut pretokens = 0;
    let splitter = pre_tokenizer.pattern().map(|pattern| Splitter::new(&pattern));
    let split = splitter.map(|splitter| splitter?.for_each(text, |_| pretokens += 1));
    !matches!(split, Some(Ok(()))) || pretokens == 1
}

/// User-defined tokens behind the space before a text.
fn lost_user_defined(parts: &TokenizerParts) -> Option<String> {
    let puts = !matches!(space_prefix(&parts.rules), None | Some(SpacePrefix::Never));
    (puts && !parts.rules.user_defined.is_empty()).then(|| {
        "that user-defined tokens are found behind the space before a text, and that no space is \
         put behind them: tokenizers encodes the text between added tokens by itself"
            .to_owned()
    })
}
