//! Writes a tokenizer as a `tokenizer.json` in the form that other programs know best, and names
//! what the format cannot hold.
//!
//! The file gives the same ids. A tokenizer with the rule of ranks is written as one pair for each
//! token (see [`rule_of_ranks`](crate::formats::ranks)). A split by GPT-2's pattern is
//! written as the `ByteLevel` that has it, and other patterns as their publishers spell them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::bytes::is_of_other_bytes;
use super::json::{JsonNode, OWN, sequence};
use super::oniguruma::means_the_same;
use super::spaces::BEFORE_SPACES;
use super::{fields, file, is_harmless, pre_tokenizer, spaces};
use crate::error::Result;
use crate::formats::ranks::{EMPTY_NOTE, is_rule_of_ranks, pairs_of_ranks};
use crate::memory;
use crate::pretokenize::{Splitter, match_lengths};
use crate::rules::normalizer::META;
use crate::rules::pre_tokenizer::{to_bytes, to_characters};
use crate::rules::{
    AddedToken, Decoder, DecoderStep, NormalizerStep, PreTokenizer, PreTokenizerStep, SpacePrefix,
    StartSymbols, TextRules, name_of_byte,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MAX_VOCAB_SIZE, MergeRule, TOKEN_OVERHEAD_BYTES};

/// Upper bound on memory: writing needs at most this many bytes for each byte of the tokens.
const MEMORY_PER_TOKEN_BYTE: usize = 4;

/// A file, with its fields in the order in which `tokenizers` writes them.
#[derive(Serialize)]
struct WrittenFile {
    #[serde(flatten, serialize_with = "in_order")]
    fields: Vec<(&'static str, Value)>,
    model: WrittenModel,
}

#[derive(Serialize)]
struct WrittenModel {
    #[serde(flatten, serialize_with = "in_order")]
    settings: Vec<(&'static str, Value)>,
    #[serde(serialize_with = "in_order")]
    vocab: Vec<(String, u32)>,
    merges: Vec<Value>,
}

/// Write an object with its fields in this order.
fn in_order<K: Serialize, V: Serialize, S: Serializer>(
    fields: &[(K, V)],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

/// The text of a file; an entry of the vocabulary, or a merge that is a string, on each line.
///
/// Fails if there is not enough memory.
pub fn write(parts: &TokenizerParts) -> Result<String> {
    let tokens = parts.vocabulary.arrays().0.len() + parts.vocabulary.len() * TOKEN_OVERHEAD_BYTES;
    memory::check(tokens.saturating_mul(MEMORY_PER_TOKEN_BYTE))?;
    let flagged = note(parts, file::NORMALIZED_NOTE);
    let flagged: HashSet<String> = serde_json::from_value(flagged).unwrap_or_default();
    let tokens = Tokens::of(parts);
    let (normalizer, pre_tokenizer) = around(parts);
    let fields = vec![
        ("version", json!("1.0")),
        ("truncation", note(parts, file::TRUNCATION_NOTE)),
        ("padding", note(parts, file::PADDING_NOTE)),
        ("added_tokens", fields::write_added_tokens(&tokens.added, &flagged)),
        ("normalizer", normalizer),
        ("pre_tokenizer", pre_tokenizer),
        ("post_processor", processor(parts)),
        ("decoder", decoder(parts)),
    ];
    let file = WrittenFile { fields, model: model(parts, tokens)? };
    let text = serde_json::to_string_pretty(&file).expect("every field can be written");
    Ok(text + "\n")
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
        let splits = *steps == [PreTokenizerStep::isolated(BEFORE_SPACES)];
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

/// The names of the tokens in a file, and the added tokens.
struct Tokens {
    /// By id, without the added tokens that are no ordinary ones.
    names: BTreeMap<u32, String>,
    added: Vec<AddedToken>,
    /// The added tokens that cannot be written, since their name is the name of another token.
    lookalikes: Vec<AddedToken>,
    /// The added tokens that are written to the vocabulary, although they are no ordinary tokens. Those
    /// whose ids follow it are not, since `tokenizers` numbers them so. But it does not find the unknown
    /// token among them, so this one is, with those before it.
    in_vocabulary: Vec<AddedToken>,
}

impl Tokens {
    fn of(parts: &TokenizerParts) -> Self {
        let names = names(parts);
        let ids: HashMap<&str, u32> = names.iter().map(|(id, name)| (name.as_str(), *id)).collect();
        let (added, lookalikes): (Vec<_>, Vec<_>) = added_tokens(parts)
            .into_iter()
            .partition(|token| ids.get(token.content.as_str()).is_none_or(|id| *id == token.id));
        let mut in_vocabulary = added.clone();
        in_vocabulary.retain(|token| !names.contains_key(&token.id));
        let size = names.len() + usize::from(empty_token(parts).is_some());
        let unknown = parts.rules.symbols.as_ref().and_then(|symbols| symbols.unknown);
        let last = in_vocabulary.iter().enumerate().rposition(|(place, token)| {
            token.id as usize != size + place || Some(token.id) == unknown
        });
        in_vocabulary.truncate(last.map_or(0, |place| place + 1));
        Self { names, added, lookalikes, in_vocabulary }
    }
}

/// The object of the model.
fn model(parts: &TokenizerParts, tokens: Tokens) -> Result<WrittenModel> {
    let pairs = match parts.rule {
        MergeRule::Ranks => Cow::Owned(pairs_of_ranks(&parts.vocabulary)?),
        MergeRule::Merges { .. } | MergeRule::Characters => Cow::Borrowed(&*parts.merges),
    };
    let settings = settings(parts, &tokens.in_vocabulary, &pairs)?;
    let merges = merges(&tokens.names, &pairs);
    let mut names = tokens.names;
    names.extend(empty_token(parts).map(|id| (id, String::new())));
    names.extend(tokens.in_vocabulary.into_iter().map(|token| (token.id, token.content)));
    let vocab = names.into_iter().map(|(id, name)| (name, id)).collect();
    Ok(WrittenModel { settings, vocab, merges })
}

/// Merges as strings with a space, the form that every version of `tokenizers` reads; as pairs if a
/// name has a space, or if a string starts with `#version`: `tokenizers` skips it as the first line
/// of a `merges.txt`.
fn merges(names: &BTreeMap<u32, String>, pairs: &[(u32, u32)]) -> Vec<Value> {
    let name = |id: &u32| names.get(id).map_or("", String::as_str);
    let pairs = pairs.iter().map(|(left, right)| [name(left), name(right)]);
    let is_text = |[left, right]: [&str; 2]| {
        !left.starts_with("#version") && !left.contains(' ') && !right.contains(' ')
    };
    let are_texts = pairs.clone().all(is_text);
    pairs.map(|pair| if are_texts { json!(pair.join(" ")) } else { json!(pair) }).collect()
}

/// The small fields of the model.
fn settings(
    parts: &TokenizerParts,
    in_vocabulary: &[AddedToken],
    merges: &[(u32, u32)],
) -> Result<Vec<(&'static str, Value)>> {
    let symbols = parts.rules.symbols.clone().unwrap_or_default();
    let affix = |affix: String| Some(affix).filter(|affix| !affix.is_empty());
    let unknown = symbols.unknown.and_then(|id| parts.vocabulary.bytes(id));
    let of_characters = parts.rule == MergeRule::Characters;
    let mut settings = vec![
        ("type", json!("BPE")),
        ("dropout", Value::Null),
        ("unk_token", json!(unknown.map(String::from_utf8_lossy))),
        ("continuing_subword_prefix", json!(affix(symbols.prefix))),
        ("end_of_word_suffix", json!(affix(symbols.suffix))),
        ("fuse_unk", json!(of_characters || symbols.fuse_unknown)),
        ("byte_fallback", json!(of_characters || symbols.byte_fallback)),
        ("ignore_merges", json!(ignores_merges(parts, in_vocabulary, merges)?)),
    ];
    if let (MergeRule::Merges { ignore_merges }, None) = (parts.rule, &parts.rules.symbols)
        && is_rule_of_ranks(&parts.vocabulary, merges, ignore_merges)?
    {
        settings.push((OWN, json!({"merge_rule": "merges"})));
    }
    Ok(settings)
}

/// The names of the tokens, by id, without the added tokens that are no ordinary ones.
fn names(parts: &TokenizerParts) -> BTreeMap<u32, String> {
    let vocabulary = &parts.vocabulary;
    let text = |token: &[u8]| String::from_utf8_lossy(token).into_owned();
    let twins = vocabulary.twins().iter().filter_map(|&id| Some((vocabulary.bytes(id)?, id)));
    let tokens = vocabulary.ordinary_tokens();
    if parts.rules.symbols.is_some() {
        return tokens.map(|(token, id)| (id, text(token))).collect();
    }
    if parts.rule != MergeRule::Characters {
        let tokens = tokens.map(|(token, id)| (id, to_characters(token)));
        return tokens.chain(twins.map(|(token, id)| (id, text(token)))).collect();
    }
    // Single bytes that are characters in the vocabulary, although they have no twin.
    let merged = parts.merges.iter().flat_map(|(left, right)| [*left, *right]);
    let plain = merged.chain(added_tokens(parts).into_iter().map(|token| token.id));
    let plain: HashSet<u32> = plain.collect();
    let covered: HashSet<u8> = twins.clone().map(|(token, _)| token[0]).collect();
    let tokens = tokens.map(|(token, id)| match token {
        [byte] if !covered.contains(byte) && !plain.contains(&id) => (id, name_of_byte(*byte)),
        _ => (id, text(token).replace(' ', &META.to_string())),
    });
    tokens.chain(twins.map(|(token, id)| (id, name_of_byte(token[0])))).collect()
}

/// Whether a pretoken that is a token becomes that token, whatever merges give: so has it the rule of
/// ranks. Where merges make all tokens this changes nothing, unless the vocabulary has added tokens
/// that are found in every text, which would become ordinary tokens as well.
fn ignores_merges(
    parts: &TokenizerParts,
    in_vocabulary: &[AddedToken],
    merges: &[(u32, u32)],
) -> Result<bool> {
    Ok(match parts.rule {
        MergeRule::Merges { ignore_merges } => ignore_merges,
        MergeRule::Characters => false,
        MergeRule::Ranks => {
            in_vocabulary.iter().all(|token| token.special)
                || !is_rule_of_ranks(&parts.vocabulary, merges, false)?
        }
    })
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
    let of_rules = losses_of_rules(parts).into_iter().filter(|(is_lost, _)| *is_lost);
    let of_rules = of_rules.map(|(_, what)| what.to_owned());
    losses_of_tokens(parts).into_iter().chain(of_rules).collect()
}

/// What is lost of the tokens, each with an example.
fn losses_of_tokens(parts: &TokenizerParts) -> Vec<String> {
    let (tokens, rules) = (Tokens::of(parts), &parts.rules);
    // `tokenizers` takes the characters of these for bytes.
    let decodes_bytes = rules.decoder == Decoder::Bytes && space_prefix(rules).is_none();
    let is_decoded = |token: &&AddedToken| decodes_bytes && is_of_other_bytes(&token.content);
    let added = added_tokens(parts);
    // Texts are merged to these, since they are in the vocabulary of the file.
    let is_merged = |token: &&AddedToken| is_merged(&token.content, parts);
    let examples = [
        ("special tokens equal to ordinary tokens,", tokens.lookalikes.first()),
        ("the decoded text of special tokens", added.iter().find(is_decoded)),
        ("that text is never merged to added tokens", tokens.in_vocabulary.iter().find(is_merged)),
    ];
    let loss = |(what, token): (&str, Option<&AddedToken>)| {
        Some(format!("{what} such as '{}'", token?.content))
    };
    examples.into_iter().filter_map(loss).collect()
}

/// What may be lost of rules, and whether it is.
fn losses_of_rules(parts: &TokenizerParts) -> [(bool, &'static str); 4] {
    let (rules, prefix) = (&parts.rules, space_prefix(&parts.rules));
    // Steps that are written as they were read have a known meaning.
    let is_known = steps_from_notes(parts).is_some();
    let regexes = rules.pre_tokenizer.steps.iter().filter_map(|step| match step {
        PreTokenizerStep::Split { regex, .. } if !is_known => Some(&**regex),
        _ => None,
    });
    let splits = |is_lost: &dyn Fn(&str) -> bool| regexes.clone().any(is_lost);
    let puts = !matches!(prefix, None | Some(SpacePrefix::Never));
    [
        (
            puts && !rules.user_defined.is_empty(),
            "that user-defined tokens are found behind the space before a text, and that no space \
             is put behind them: tokenizers encodes the text between added tokens by itself",
        ),
        (
            prefix.is_some() && splits(&|regex| regex != BEFORE_SPACES && !is_harmless(regex)),
            "the split pattern: with byte fallback there is only Metaspace",
        ),
        (
            prefix.is_none() && splits(&|regex| match_lengths(regex).0 == 0),
            "that matches of no characters split nothing: tokenizers splits there",
        ),
        (
            prefix.is_none() && splits(&|regex| !means_the_same(regex)),
            "the exact meaning of the split pattern: Oniguruma, the regex engine of tokenizers, \
             may interpret parts of it differently",
        ),
    ]
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
