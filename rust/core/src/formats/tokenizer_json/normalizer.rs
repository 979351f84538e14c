//! The fields `normalizer` and `decoder`, and the values that they become.

use serde_json::{Value, json};

use crate::error::Result;
use crate::formats::tokenizer_json::json::{JsonNode, sequence};
use crate::formats::tokenizer_json::oniguruma::{self, from_oniguruma};
use crate::formats::tokenizer_json::pre_tokenizer;
use crate::rules::{DecoderStep, NormalizerStep, ReplacePattern, SpacePrefix};

/// The steps without further values.
const PLAIN: [NormalizerStep; 6] = [
    NormalizerStep::Nfc,
    NormalizerStep::Nfd,
    NormalizerStep::Nfkc,
    NormalizerStep::Nfkd,
    NormalizerStep::Lowercase,
    NormalizerStep::StripAccents,
];

/// The steps of a normalizer. Steps that change no text are left out.
pub(super) fn read(node: &JsonNode<'_>) -> Result<Vec<NormalizerStep>> {
    let mut steps = Vec::new();
    for node in node.flat("normalizers")? {
        steps.extend(step(&node)?);
    }
    Ok(steps)
}

fn step(node: &JsonNode<'_>) -> Result<Option<NormalizerStep>> {
    let kind = node.kind()?;
    if let Some(step) = PLAIN.iter().find(|step| step.kind() == kind) {
        return Ok(Some(step.clone()));
    }
    match kind {
        "Strip" => {
            let (left, right) =
                (node.get("strip_left")?.boolean()?, node.get("strip_right")?.boolean()?);
            Ok((left || right).then_some(NormalizerStep::Strip { left, right }))
        }
        "Prepend" => {
            let text = node.get("prepend")?.text()?;
            Ok((!text.is_empty()).then(|| NormalizerStep::Prepend(text.to_owned())))
        }
        "Replace" => {
            let (pattern, content) = replace(node)?;
            // Where several characters replace the same ones, their offsets change.
            let is_one = content.chars().count() == 1;
            let changes = !is_one || pattern != ReplacePattern::Literal(content.clone());
            Ok(changes.then_some(NormalizerStep::Replace { pattern, content }))
        }
        other => Err(node.unsupported(format!(
            "{other} is not supported; supported are NFC, NFD, NFKC, NFKD, Lowercase, \
                 StripAccents, Strip, Prepend, Replace and Sequence; take it out of the file, and \
                 normalize texts yourself"
        ))),
    }
}

/// The pattern and the content of a `Replace`, which is a normalizer or a decoder.
pub(super) fn replace(node: &JsonNode<'_>) -> Result<(ReplacePattern, String)> {
    let pattern = node.get("pattern")?;
    let content = node.get("content")?.text()?.to_owned();
    let pattern = match (pattern.find("String")?, pattern.find("Regex")?) {
        (Some(text), None) if !text.text()?.is_empty() => {
            ReplacePattern::Literal(text.text()?.to_owned())
        }
        (None, Some(regex)) => {
            let expression = from_oniguruma(regex.text()?, &regex.place)?;
            oniguruma::check_not_empty(&expression, &regex.place)?;
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
pub(super) fn write(steps: &[NormalizerStep]) -> Value {
    sequence(steps.iter().filter_map(write_step).collect(), "normalizers")
}

fn write_step(step: &NormalizerStep) -> Option<Value> {
    Some(match step {
        NormalizerStep::Strip { left, right } => {
            json!({"type": "Strip", "strip_left": left, "strip_right": right})
        }
        NormalizerStep::Prepend(text) => json!({"type": "Prepend", "prepend": text}),
        NormalizerStep::Replace { pattern, content } => write_replace(pattern, content),
        // The writer of spaces knows whether they are a normalizer or a pre-tokenizer.
        NormalizerStep::Spaces(_) => return None,
        plain => json!({"type": plain.kind()}),
    })
}

/// A `Replace`, as a normalizer or a decoder.
pub(super) fn write_replace(pattern: &ReplacePattern, content: &str) -> Value {
    let pattern = match pattern {
        ReplacePattern::Literal(text) => json!({"String": text}),
        ReplacePattern::Regex(regex) => json!({"Regex": oniguruma::to_oniguruma(regex)}),
    };
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

// ---------------------------------------------------------------------------- decoder

/// The steps of a decoder.
pub(super) fn read_decoder(node: &JsonNode<'_>) -> Result<Vec<DecoderStep>> {
    node.flat("decoders")?.iter().map(decoder_step).collect()
}

fn decoder_step(node: &JsonNode<'_>) -> Result<DecoderStep> {
    Ok(match node.kind()? {
        "ByteLevel" => DecoderStep::ByteLevel,
        "ByteFallback" => DecoderStep::ByteFallback,
        "Fuse" => DecoderStep::Fuse,
        "Replace" => {
            let (pattern, content) = replace(node)?;
            DecoderStep::Replace { pattern, content }
        }
        "Strip" => DecoderStep::Strip {
            content: node.get("content")?.character()?,
            start: node.get("start")?.number()? as usize,
            stop: node.get("stop")?.number()? as usize,
        },
        "Metaspace" => {
            let (replacement, scheme) = pre_tokenizer::metaspace(node)?;
            DecoderStep::Metaspace { replacement, drops_first: scheme != "never" }
        }
        "BPEDecoder" => DecoderStep::WordSuffix(node.get("suffix")?.text()?.to_owned()),
        "WordPiece" => DecoderStep::WordPiece {
            prefix: node.get("prefix")?.text()?.to_owned(),
            cleanup: node.get("cleanup")?.boolean()?,
        },
        other => {
            return Err(node.unsupported(format!(
                "{other} is not supported; supported are ByteLevel, ByteFallback, Fuse, Replace, \
                 Strip, Metaspace, BPEDecoder, WordPiece and Sequence"
            )));
        }
    })
}

/// The field for a decoder; null if it has no steps.
pub(super) fn write_decoder(steps: &[DecoderStep]) -> Value {
    sequence(steps.iter().map(write_decoder_step).collect(), "decoders")
}

fn write_decoder_step(step: &DecoderStep) -> Value {
    match step {
        DecoderStep::ByteLevel => pre_tokenizer::byte_level(false, true),
        DecoderStep::ByteFallback | DecoderStep::Fuse => json!({"type": step.kind()}),
        DecoderStep::Replace { pattern, content } => write_replace(pattern, content),
        DecoderStep::Strip { content, start, stop } => {
            json!({"type": "Strip", "content": content, "start": start, "stop": stop})
        }
        DecoderStep::Metaspace { replacement, drops_first } => {
            let prefix = if *drops_first { SpacePrefix::Missing } else { SpacePrefix::Never };
            pre_tokenizer::write_metaspace(*replacement, prefix, true)
        }
        DecoderStep::WordSuffix(suffix) => json!({"type": "BPEDecoder", "suffix": suffix}),
        DecoderStep::WordPiece { prefix, cleanup } => {
            json!({"type": "WordPiece", "prefix": prefix, "cleanup": cleanup})
        }
    }
}
