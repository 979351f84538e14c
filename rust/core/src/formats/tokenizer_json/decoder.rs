//! The field `decoder`, and the value that it becomes.

use serde_json::{Value, json};

use super::json::JsonNode;
use super::normalizer::{replace, write_replace};
use crate::error::Result;
use crate::rules::DecoderStep;

/// The steps of a decoder.
pub(super) fn read(node: &JsonNode<'_>) -> Result<Vec<DecoderStep>> {
    node.flat("decoders")?.iter().map(step).collect()
}

fn step(node: &JsonNode<'_>) -> Result<DecoderStep> {
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
            let (replacement, scheme) = super::pre_tokenizer::metaspace(node)?;
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
pub(super) fn write(steps: &[DecoderStep]) -> Value {
    let mut written: Vec<Value> = steps.iter().map(write_step).collect();
    match written.len() {
        0 => Value::Null,
        1 => written.remove(0),
        _ => json!({"type": "Sequence", "decoders": written}),
    }
}

fn write_step(step: &DecoderStep) -> Value {
    match step {
        DecoderStep::ByteLevel => json!({"type": "ByteLevel", "add_prefix_space": false,
            "trim_offsets": true, "use_regex": true}),
        DecoderStep::ByteFallback => json!({"type": "ByteFallback"}),
        DecoderStep::Fuse => json!({"type": "Fuse"}),
        DecoderStep::Replace { pattern, content } => write_replace(pattern, content),
        DecoderStep::Strip { content, start, stop } => {
            json!({"type": "Strip", "content": content, "start": start, "stop": stop})
        }
        DecoderStep::Metaspace { replacement, drops_first } => {
            let scheme = if *drops_first { "always" } else { "never" };
            json!({"type": "Metaspace", "replacement": replacement, "prepend_scheme": scheme,
                "split": true})
        }
        DecoderStep::WordSuffix(suffix) => json!({"type": "BPEDecoder", "suffix": suffix}),
        DecoderStep::WordPiece { prefix, cleanup } => {
            json!({"type": "WordPiece", "prefix": prefix, "cleanup": cleanup})
        }
    }
}
