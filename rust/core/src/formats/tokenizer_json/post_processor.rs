//! The field `post_processor`, and the value that it becomes.

use serde_json::{Map, Value, json};

use super::json::{JsonNode, sequence};
use super::pre_tokenizer;
use crate::error::Result;
use crate::rules::{PostProcessor, TemplatePiece};

/// The entries of a list of a template at most: each piece of a token has all ids of the token.
const MAX_ENTRIES: usize = 64;

/// The value of a post-processor.
pub(super) fn read(node: &JsonNode<'_>) -> Result<PostProcessor> {
    let mut processor = PostProcessor::default();
    for node in node.flat("processors")? {
        let one = match node.kind()? {
            "ByteLevel" => {
                PostProcessor { trim_offsets: trims(&node, false)?, ..PostProcessor::default() }
            }
            "TemplateProcessing" => template(&node)?,
            "RobertaProcessing" => roberta(&node)?,
            "BertProcessing" => bert(&node)?,
            other => {
                return Err(node.unsupported(format!(
                    "{other} is not supported; supported are TemplateProcessing, \
                     RobertaProcessing, BertProcessing, ByteLevel and Sequence"
                )));
            }
        };
        add(&mut processor, one, &node)?;
    }
    Ok(processor)
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

/// Whether offsets are trimmed, and then whether the first space counts as added.
fn trims(node: &JsonNode<'_>, required: bool) -> Result<Option<bool>> {
    let trims = if required {
        node.get("trim_offsets")?.boolean()?
    } else {
        node.flag("trim_offsets", true)?
    };
    let adds = node.flag("add_prefix_space", true)?;
    Ok(trims.then_some(adds))
}

/// The name and the id of a token, in a list.
fn named(node: &JsonNode<'_>) -> Result<(String, u32)> {
    match &node.list()?[..] {
        [name, id] => Ok((name.text()?.to_owned(), id.number()?)),
        _ => Err(node.invalid("expected the name and the id of a token")),
    }
}

fn ids((name, id): &(String, u32), type_id: u32) -> TemplatePiece {
    TemplatePiece::Ids { name: name.clone(), ids: vec![*id], type_id }
}

const fn text(which: u8, type_id: u32) -> TemplatePiece {
    TemplatePiece::Text { which, type_id }
}

fn roberta(node: &JsonNode<'_>) -> Result<PostProcessor> {
    let (begin, end) = (named(&node.get("cls")?)?, named(&node.get("sep")?)?);
    let [begin, end] = [ids(&begin, 0), ids(&end, 0)];
    let single = vec![begin, text(0, 0), end.clone()];
    let pair = [single.clone(), vec![end.clone(), text(1, 0), end]].concat();
    Ok(PostProcessor { single, pair, trim_offsets: trims(node, true)? })
}

fn bert(node: &JsonNode<'_>) -> Result<PostProcessor> {
    let (begin, end) = (named(&node.get("cls")?)?, named(&node.get("sep")?)?);
    let single = vec![ids(&begin, 0), text(0, 0), ids(&end, 0)];
    let pair = [single.clone(), vec![text(1, 1), ids(&end, 1)]].concat();
    Ok(PostProcessor { single, pair, trim_offsets: None })
}

/// The value of a template; that of none for one that adds nothing, as `transformers` writes it.
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
        let which = match id.text()? {
            "A" => 0,
            "B" => 1,
            other => return Err(id.invalid(format!("{other:?} is neither A nor B"))),
        };
        return Ok(text(which, sequence.get("type_id")?.number()?));
    }
    let special = node.get("SpecialToken")?;
    let name = special.get("id")?;
    let token = tokens
        .find(name.text()?)?
        .ok_or_else(|| name.invalid(format!("{:?} is not one of special_tokens", name.value)))?;
    let ids = entries(&token.get("ids")?)?.iter().map(JsonNode::number).collect::<Result<_>>()?;
    let name = name.text()?.to_owned();
    Ok(TemplatePiece::Ids { name, ids, type_id: special.get("type_id")?.number()? })
}

/// The field for a post-processor; null if it does nothing.
pub(super) fn write(processor: &PostProcessor) -> Value {
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
