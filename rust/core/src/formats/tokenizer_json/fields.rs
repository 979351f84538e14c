//! The fields `normalizer`, `decoder`, `post_processor` and `added_tokens`, and the values that they
//! become.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::json::{JsonNode, sequence, steps};
use super::oniguruma::{from_oniguruma, to_oniguruma};
use super::pre_tokenizer;
use super::tables::IdsByName;
use crate::error::Result;
use crate::pretokenize::match_lengths;
use crate::rules::growth::MAX_ENTRIES;
use crate::rules::{
    AddedToken, DecoderStep, NormalizerStep, PostProcessor, ReplacePattern, SpacePrefix,
    TemplatePiece,
};

steps! { NormalizerStep, plain_step, write_plain_step:
    "NFC" => Nfc {}
    "NFD" => Nfd {}
    "NFKC" => Nfkc {}
    "NFKD" => Nfkd {}
    "Lowercase" => Lowercase {}
    "StripAccents" => StripAccents {}
    "Strip" => Strip { left: left = "strip_left", right: right = "strip_right" }
    "Prepend" => Prepend { 0: text = "prepend" }
}

/// The steps of a normalizer. Steps that change no text are left out.
pub(super) fn read_normalizer(node: &JsonNode<'_>) -> Result<Vec<NormalizerStep>> {
    let mut steps = Vec::new();
    for node in node.flat("normalizers")? {
        steps.extend(step(&node)?);
    }
    Ok(steps)
}

fn step(node: &JsonNode<'_>) -> Result<Option<NormalizerStep>> {
    Ok(match plain_step(node)? {
        Some(NormalizerStep::Strip { left: false, right: false }) => None,
        Some(NormalizerStep::Prepend(text)) if text.is_empty() => None,
        None if node.kind()? == "Replace" => {
            let (pattern, content) = replace(node)?;
            // Where several characters replace the same ones, their offsets change.
            let is_one = content.chars().count() == 1;
            let changes = !is_one || pattern != ReplacePattern::Literal(content.clone());
            changes.then_some(NormalizerStep::Replace { pattern, content })
        }
        None => {
            return Err(node.unsupported(format!(
                "{} is not supported; supported are NFC, NFD, NFKC, NFKD, Lowercase, \
                 StripAccents, Strip, Prepend, Replace and Sequence; take it out of the file, and \
                 normalize texts yourself",
                node.kind()?
            )));
        }
        step => step,
    })
}

/// The pattern and the content of a `Replace`, which is a normalizer or a decoder.
fn replace(node: &JsonNode<'_>) -> Result<(ReplacePattern, String)> {
    let pattern = node.get("pattern")?;
    let content = node.field("content", None)?;
    let pattern = match (pattern.find("String")?, pattern.find("Regex")?) {
        (Some(text), None) if text.value != "" => ReplacePattern::Literal(text.read()?),
        (None, Some(regex)) => {
            let expression = from_oniguruma(regex.read()?, &regex.place)?;
            if match_lengths(&expression).0 == 0 {
                // `tokenizers` then finds a match between any two characters.
                let reason = format!("{expression:?} may match no characters");
                return Err(regex.unsupported(reason));
            }
            ReplacePattern::Regex(expression)
        }
        (Some(text), None) => {
            return Err(text.unsupported("an empty text occurs between all characters"));
        }
        _ => return Err(pattern.invalid("it is neither a String nor a Regex")),
    };
    Ok((pattern, content))
}

/// The field for a normalizer; null if it has no steps. [`NormalizerStep::Spaces`] stands for two
/// steps of this format.
pub(super) fn write_normalizer(steps: &[NormalizerStep]) -> Value {
    sequence(steps.iter().filter_map(write_step).collect(), "normalizers")
}

fn write_step(step: &NormalizerStep) -> Option<Value> {
    match step {
        NormalizerStep::Replace { pattern, content } => Some(write_replace(pattern, content)),
        // The writer of spaces knows whether they are a normalizer or a pre-tokenizer.
        NormalizerStep::Spaces(_) => None,
        plain => Some(write_plain_step(plain)),
    }
}

/// A `Replace`, as a normalizer or a decoder.
fn write_replace(pattern: &ReplacePattern, content: &str) -> Value {
    let pattern = match pattern {
        ReplacePattern::Literal(text) => json!({"String": text}),
        ReplacePattern::Regex(regex) => json!({"Regex": to_oniguruma(regex)}),
    };
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

// ---------------------------------------------------------------------------- decoder

steps! { DecoderStep, plain_decoder, write_plain_decoder:
    "ByteFallback" => ByteFallback {}
    "Fuse" => Fuse {}
    "Strip" => Strip { content: content = "content", start: start = "start", stop: stop = "stop" }
    "BPEDecoder" => WordSuffix { 0: suffix = "suffix" }
    "WordPiece" => WordPiece { prefix: prefix = "prefix", cleanup: cleanup = "cleanup" }
}

/// The steps of a decoder.
pub(super) fn read_decoder(node: &JsonNode<'_>) -> Result<Vec<DecoderStep>> {
    node.flat("decoders")?.iter().map(decoder_step).collect()
}

fn decoder_step(node: &JsonNode<'_>) -> Result<DecoderStep> {
    if let Some(step) = plain_decoder(node)? {
        return Ok(step);
    }
    match node.kind()? {
        "ByteLevel" => Ok(DecoderStep::ByteLevel),
        "Replace" => {
            let (pattern, content) = replace(node)?;
            Ok(DecoderStep::Replace { pattern, content })
        }
        "Metaspace" => {
            let (replacement, prefix) = pre_tokenizer::metaspace(node)?;
            let drops_first = prefix != SpacePrefix::Never;
            Ok(DecoderStep::Metaspace { replacement, drops_first })
        }
        other => Err(node.unsupported(format!(
            "{other} is not supported; supported are ByteLevel, ByteFallback, Fuse, Replace, \
             Strip, Metaspace, BPEDecoder, WordPiece and Sequence"
        ))),
    }
}

/// The field for a decoder; null if it has no steps.
pub(super) fn write_decoder(steps: &[DecoderStep]) -> Value {
    sequence(steps.iter().map(write_decoder_step).collect(), "decoders")
}

fn write_decoder_step(step: &DecoderStep) -> Value {
    match step {
        DecoderStep::ByteLevel => pre_tokenizer::byte_level(false, true),
        DecoderStep::Replace { pattern, content } => write_replace(pattern, content),
        DecoderStep::Metaspace { replacement, drops_first } => {
            let prefix = if *drops_first { SpacePrefix::Missing } else { SpacePrefix::Never };
            pre_tokenizer::write_metaspace(*replacement, prefix, true)
        }
        plain => write_plain_decoder(plain),
    }
}

// ---------------------------------------------------------------------------- post-processor

/// The value of a post-processor.
pub(super) fn read_post_processor(node: &JsonNode<'_>) -> Result<PostProcessor> {
    let mut processor = PostProcessor::default();
    for node in node.flat("processors")? {
        add(&mut processor, self::processor(&node)?, &node)?;
    }
    Ok(processor)
}

fn processor(node: &JsonNode<'_>) -> Result<PostProcessor> {
    let trims = |default| -> Result<Option<bool>> {
        let trims: bool = node.field("trim_offsets", default)?;
        Ok(trims.then_some(node.field("add_prefix_space", Some(true))?))
    };
    let token = |name, type_id| -> Result<TemplatePiece> {
        let (name, id) = node.field(name, None)?;
        Ok(TemplatePiece::Ids { name, ids: vec![id], type_id })
    };
    match node.kind()? {
        "ByteLevel" => Ok(PostProcessor { trim_offsets: trims(Some(true))?, ..Default::default() }),
        "TemplateProcessing" => template(node),
        kind @ ("RobertaProcessing" | "BertProcessing") => {
            let single = vec![token("cls", 0)?, text(0, 0), token("sep", 0)?];
            let (second, trim_offsets) = match kind {
                "BertProcessing" => (vec![text(1, 1), token("sep", 1)?], None),
                _ => (vec![token("sep", 0)?, text(1, 0), token("sep", 0)?], trims(None)?),
            };
            let pair = [single.clone(), second].concat();
            Ok(PostProcessor { single, pair, trim_offsets })
        }
        other => Err(node.unsupported(format!(
            "{other} is not supported; supported are TemplateProcessing, RobertaProcessing, \
             BertProcessing, ByteLevel and Sequence"
        ))),
    }
}

/// Add one processor of a sequence.
fn add(all: &mut PostProcessor, one: PostProcessor, node: &JsonNode<'_>) -> Result<()> {
    if !all.single.is_empty() && !one.single.is_empty() {
        return Err(node.unsupported("two templates in a sequence"));
    }
    if all.trim_offsets.is_some()
        && one.trim_offsets.is_some()
        && all.trim_offsets != one.trim_offsets
    {
        return Err(node.unsupported("offsets are trimmed twice, in different ways"));
    }
    if all.single.is_empty() {
        (all.single, all.pair) = (one.single, one.pair);
    }
    all.trim_offsets = all.trim_offsets.or(one.trim_offsets);
    Ok(())
}

const fn text(which: u8, type_id: u32) -> TemplatePiece {
    TemplatePiece::Text { which, type_id }
}

/// The value of a template. One that adds nothing, as `transformers` writes it, is read as no template.
fn template(node: &JsonNode<'_>) -> Result<PostProcessor> {
    let tokens = node.get("special_tokens")?;
    let pieces = |name| -> Result<Vec<TemplatePiece>> {
        entries(&node.get(name)?)?.iter().map(|piece| self::piece(piece, &tokens)).collect()
    };
    let single = pieces("single")?;
    let texts = single.iter().filter(|piece| matches!(piece, TemplatePiece::Text { .. }));
    let count = texts.count();
    if count != 1 {
        let reason = format!("it has the text {count} times; supported is once");
        return Err(node.get("single")?.unsupported(reason));
    }
    let pair = pieces("pair")?;
    if single == [text(0, 0)] && pair == [text(0, 0), text(1, 1)] {
        return Ok(PostProcessor::default());
    }
    Ok(PostProcessor { single, pair, trim_offsets: None })
}

fn entries<'a>(node: &JsonNode<'a>) -> Result<Vec<JsonNode<'a>>> {
    let list = node.list()?;
    if list.len() <= MAX_ENTRIES {
        return Ok(list);
    }
    let reason = format!("it has {} entries; supported are {MAX_ENTRIES}", list.len());
    Err(node.unsupported(reason))
}

fn piece(node: &JsonNode<'_>, tokens: &JsonNode<'_>) -> Result<TemplatePiece> {
    if let Some(sequence) = node.find("Sequence")? {
        let id = sequence.get("id")?;
        let which = match id.read()? {
            "A" => 0,
            "B" => 1,
            other => return Err(id.invalid(format!("{other:?} is neither A nor B"))),
        };
        return Ok(text(which, sequence.field("type_id", None)?));
    }
    let special = node.get("SpecialToken")?;
    let place = special.get("id")?;
    let name: String = place.read()?;
    let missing = || place.invalid(format!("{name:?} is not one of special_tokens"));
    let token = tokens.find(&name)?.ok_or_else(missing)?;
    let ids = entries(&token.get("ids")?)?.iter().map(JsonNode::read).collect::<Result<_>>()?;
    Ok(TemplatePiece::Ids { name, ids, type_id: special.field("type_id", None)? })
}

/// The field for a post-processor; null if it does nothing.
pub(super) fn write_post_processor(processor: &PostProcessor) -> Value {
    let trims = processor.trim_offsets.map(|adds| pre_tokenizer::byte_level(adds, true));
    let template = (!processor.single.is_empty()).then(|| write_template(processor));
    sequence(trims.into_iter().chain(template).collect(), "processors")
}

fn write_template(processor: &PostProcessor) -> Value {
    let mut tokens = Map::new();
    for piece in processor.single.iter().chain(&processor.pair) {
        if let TemplatePiece::Ids { name, ids, .. } = piece {
            let names = vec![name; ids.len()];
            tokens.insert(name.clone(), json!({"id": name, "ids": ids, "tokens": names}));
        }
    }
    let write = |pieces: &[TemplatePiece]| -> Value { pieces.iter().map(write_piece).collect() };
    json!({"type": "TemplateProcessing", "single": write(&processor.single),
        "pair": write(&processor.pair), "special_tokens": tokens})
}

fn write_piece(piece: &TemplatePiece) -> Value {
    match piece {
        TemplatePiece::Text { which, type_id } => {
            let name = if *which == 0 { "A" } else { "B" };
            json!({"Sequence": {"id": name, "type_id": type_id}})
        }
        TemplatePiece::Ids { name, type_id, .. } => {
            json!({"SpecialToken": {"id": name, "type_id": type_id}})
        }
    }
}

// ---------------------------------------------------------------------------- added tokens
//
// `tokenizers` ignores the ids of the file and assigns them itself: that of the vocabulary, or else
// the next free one after it. A file whose ids differ from those is refused.

/// The added tokens of a file, in the order of their ids.
///
/// `ids` are those of the vocabulary. Of two entries with the same content the last one counts, and
/// an empty one never does, as in `tokenizers`.
pub(super) fn read_added_tokens(
    node: Option<JsonNode<'_>>,
    ids: &IdsByName<'_>,
) -> Result<Vec<AddedToken>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut tokens: HashMap<String, AddedToken> = HashMap::new();
    let mut next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let behind: HashMap<u32, &str> =
        ids.iter().filter(|(_, id)| **id >= next).map(|(name, id)| (*id, *name)).collect();
    for entry in node.list()? {
        let token = token(&entry)?;
        if token.content.is_empty() {
            continue;
        }
        let earlier = tokens.get(&token.content).map(|earlier| earlier.id);
        let assigned = earlier.or_else(|| ids.get(token.content.as_str()).copied());
        let id = assigned.unwrap_or(next);
        if id != token.id {
            return Err(entry.get("id")?.invalid(format!(
                "{:?} has the id {}, but tokenizers would assign {id}",
                token.content, token.id
            )));
        }
        if assigned.is_none() {
            next += 1;
            if let Some(name) = behind.get(&id) {
                let reason =
                    format!("{:?} has the id {id}, which is also that of {name:?}", token.content);
                return Err(entry.get("id")?.invalid(reason));
            }
        }
        tokens.insert(token.content.clone(), token);
    }
    let mut tokens: Vec<AddedToken> = tokens.into_values().collect();
    tokens.sort_unstable();
    Ok(tokens)
}

fn token(node: &JsonNode<'_>) -> Result<AddedToken> {
    Ok(AddedToken {
        content: node.field("content", None)?,
        id: node.field("id", None)?,
        special: node.field("special", Some(true))?,
        lstrip: node.field("lstrip", Some(false))?,
        rstrip: node.field("rstrip", Some(false))?,
        single_word: node.field("single_word", Some(false))?,
        normalized: node.field("normalized", Some(false))?,
    })
}

/// Clear the flag `normalized` if all tokens have it. Returns the contents of those that had it.
///
/// Without a normalizer, the flag only decides which tokens are found first, so it has no effect if it
/// is the same for all of them.
pub(super) fn without_normalized(tokens: &mut [AddedToken]) -> Vec<String> {
    if !tokens.iter().all(|token| token.normalized) {
        return Vec::new();
    }
    for token in tokens.iter_mut() {
        token.normalized = false;
    }
    tokens.iter().map(|token| token.content.clone()).collect()
}

/// The field for added tokens; `normalized` are the contents of those that had this flag in the file
/// that was read, where it had no effect.
pub(super) fn write_added_tokens(tokens: &[AddedToken], normalized: &HashSet<String>) -> Value {
    let entry = |token: &AddedToken| {
        let normalized = token.normalized || normalized.contains(&token.content);
        json!(AddedToken { normalized, ..token.clone() })
    };
    tokens.iter().map(entry).collect()
}
