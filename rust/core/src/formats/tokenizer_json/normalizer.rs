//! The field `normalizer`, and the value that it becomes.

use serde_json::{Value, json};

use super::json::JsonNode;
use super::oniguruma::{self, from_oniguruma};
use crate::error::Result;
use crate::rules::{NormalizerStep, ReplacePattern};

/// The steps of a normalizer. Steps that change no text are left out.
pub(super) fn read(node: &JsonNode<'_>) -> Result<Vec<NormalizerStep>> {
    let mut steps = Vec::new();
    for node in node.flat("normalizers")? {
        steps.extend(step(&node)?);
    }
    Ok(steps)
}

fn step(node: &JsonNode<'_>) -> Result<Option<NormalizerStep>> {
    let step = match node.kind()? {
        "NFC" => NormalizerStep::Nfc,
        "NFD" => NormalizerStep::Nfd,
        "NFKC" => NormalizerStep::Nfkc,
        "NFKD" => NormalizerStep::Nfkd,
        "Lowercase" => NormalizerStep::Lowercase,
        "StripAccents" => NormalizerStep::StripAccents,
        "Strip" => {
            let (left, right) =
                (node.get("strip_left")?.boolean()?, node.get("strip_right")?.boolean()?);
            return Ok((left || right).then_some(NormalizerStep::Strip { left, right }));
        }
        "Prepend" => {
            let text = node.get("prepend")?.text()?;
            return Ok((!text.is_empty()).then(|| NormalizerStep::Prepend(text.to_owned())));
        }
        "Replace" => {
            let (pattern, content) = replace(node)?;
            // Where several characters replace the same ones, their offsets change.
            let is_one = content.chars().count() == 1;
            let changes = !is_one || pattern != ReplacePattern::Literal(content.clone());
            return Ok(changes.then_some(NormalizerStep::Replace { pattern, content }));
        }
        other => {
            return Err(node.unsupported(format!(
                "{other} is not supported; supported are NFC, NFD, NFKC, NFKD, Lowercase, \
                 StripAccents, Strip, Prepend, Replace and Sequence; take it out of the file, and \
                 normalize texts yourself"
            )));
        }
    };
    Ok(Some(step))
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
    let mut written: Vec<Value> = steps.iter().filter_map(write_step).collect();
    match written.len() {
        0 => Value::Null,
        1 => written.remove(0),
        _ => json!({"type": "Sequence", "normalizers": written}),
    }
}

fn write_step(step: &NormalizerStep) -> Option<Value> {
    Some(match step {
        NormalizerStep::Nfc => json!({"type": "NFC"}),
        NormalizerStep::Nfd => json!({"type": "NFD"}),
        NormalizerStep::Nfkc => json!({"type": "NFKC"}),
        NormalizerStep::Nfkd => json!({"type": "NFKD"}),
        NormalizerStep::Lowercase => json!({"type": "Lowercase"}),
        NormalizerStep::StripAccents => json!({"type": "StripAccents"}),
        NormalizerStep::Strip { left, right } => {
            json!({"type": "Strip", "strip_left": left, "strip_right": right})
        }
        NormalizerStep::Prepend(text) => json!({"type": "Prepend", "prepend": text}),
        NormalizerStep::Replace { pattern, content } => write_replace(pattern, content),
        // The writer of spaces knows whether they are a normalizer or a pre-tokenizer.
        NormalizerStep::Spaces(_) => return None,
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
