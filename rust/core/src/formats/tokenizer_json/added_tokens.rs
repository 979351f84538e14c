//! The field `added_tokens`, and the values that it becomes.
//!
//! `tokenizers` ignores the ids of the file and assigns them itself: that of the vocabulary, or else
//! the next free one after it. A file whose ids differ from those is refused.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::json::JsonNode;
use super::tables::IdsByName;
use crate::error::Result;
use crate::rules::AddedToken;

/// The added tokens of a file, in the order of the file.
///
/// `ids` are those of the vocabulary. Of two entries with the same content the last one counts, and
/// an empty one never does, as in `tokenizers`.
pub(super) fn read(node: Option<JsonNode<'_>>, ids: &IdsByName<'_>) -> Result<Vec<AddedToken>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut tokens: Vec<AddedToken> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let behind: HashMap<u32, &str> =
        ids.iter().filter(|(_, id)| **id >= next).map(|(name, id)| (*id, *name)).collect();
    for entry in node.list()? {
        let token = token(&entry)?;
        if token.content.is_empty() {
            continue;
        }
        let earlier_id = places.get(&token.content).map(|&at| tokens[at].id);
        let assigned = earlier_id.or_else(|| ids.get(token.content.as_str()).copied());
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
        if let Some(&at) = places.get(&token.content) {
            tokens[at] = token;
        } else {
            places.insert(token.content.clone(), tokens.len());
            tokens.push(token);
        }
    }
    Ok(tokens)
}

fn token(node: &JsonNode<'_>) -> Result<AddedToken> {
    let content = node.get("content")?.text()?;
    Ok(AddedToken {
        id: node.get("id")?.number()?,
        content: content.to_owned(),
        special: node.flag("special", true)?,
        lstrip: node.flag("lstrip", false)?,
        rstrip: node.flag("rstrip", false)?,
        single_word: node.flag("single_word", false)?,
        normalized: node.flag("normalized", false)?,
    })
}

/// Without a normalizer, `normalized` only tells which tokens are found first. Where it is the same
/// for all of them, it tells nothing: then no token has it, and the result are the contents of those
/// that had it.
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
/// they come from, although it tells nothing.
pub(super) fn write(tokens: &[AddedToken], normalized: &HashSet<String>) -> Value {
    let entry = |token: &AddedToken| {
        let normalized = token.normalized || normalized.contains(&token.content);
        json!(AddedToken { normalized, ..token.clone() })
    };
    tokens.iter().map(entry).collect()
}
