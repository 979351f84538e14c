//! One token: how it is merged, what is merged from it, and tokens that look like it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::error::ViewResult;
use crate::explored::{Explored, hex};
use crate::steps::MAX_PRETOKEN_BYTES;

/// The largest number of tokens that are listed as merged from a token.
const MAX_CHILDREN: usize = 40;

/// The number of neighbours that are listed on each side.
const NEIGHBOURS: u32 = 4;

/// All about a token. Fails if the id is unknown.
pub(crate) fn token(one: &Explored, id: u32) -> ViewResult<Value> {
    let bytes = one.core.token_bytes(id)?;
    let special = one.is_special(id);
    let near = id.saturating_sub(NEIGHBOURS)..one.ids().min(id.saturating_add(NEIGHBOURS + 1));
    let near = near.filter(|&other| other != id && !one.bytes(other).is_empty());
    let children = if special { &[] } else { one.children(id) };
    let has_tree = !special && bytes.len() <= MAX_PRETOKEN_BYTES; // a larger one is unreadable
    let alike = if special { Vec::new() } else { alike(one, bytes) };
    Ok(json!({
        "id": id,
        "hex": hex(bytes),
        "special": special,
        "rank": if special { None } else { one.rank(id) },
        "tree": has_tree.then(|| tree(one, id)),
        "near": near.map(|other| one.named(other)).collect::<Vec<_>>(),
        "alike": alike,
        "children": children.iter().take(MAX_CHILDREN).map(|&c| one.named(c)).collect::<Vec<_>>(),
        "children_count": children.len(),
    }))
}

/// A token above the two that merge into it, down to the tokens that no merge creates.
fn tree(one: &Explored, id: u32) -> Value {
    let mut node = one.named(id);
    if let Some((left, right)) = one.parts(id) {
        node["parts"] = json!([tree(one, left), tree(one, right)]);
    }
    node
}

/// The same word with or without a leading space, and with other capitalization.
fn alike(one: &Explored, token: &[u8]) -> Vec<Value> {
    let Ok(text) = std::str::from_utf8(token) else { return Vec::new() };
    let word = text.strip_prefix(' ').unwrap_or(text);
    let forms = [word.to_owned(), word.to_lowercase(), word.to_uppercase(), capitalized(word)];
    let spaced: BTreeSet<String> =
        forms.into_iter().flat_map(|form| [format!(" {form}"), form]).collect();
    let ids = spaced.iter().filter(|form| form.as_bytes() != token);
    ids.filter_map(|form| one.core.vocabulary().id(form.as_bytes()))
        .map(|id| one.named(id))
        .collect()
}

/// A word with a capital first letter.
fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.as_str().to_lowercase().chars()).collect()
}

/// Some tokens and all that they are merged from, once each; `parts` are the bytes of two others.
///
/// A token beyond the maximum length has no parts.
pub(crate) fn built(one: &Explored, ids: &[u32]) -> ViewResult<Vec<Value>> {
    let ids: BTreeSet<u32> = ids.iter().copied().collect();
    let (special, mut waiting): (Vec<u32>, Vec<u32>) =
        ids.into_iter().partition(|&id| one.is_special(id));
    let (mut seen, mut tokens) = (BTreeSet::new(), Vec::new());
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let bytes = one.core.token_bytes(id)?;
        let parts = one.parts(id).filter(|_| bytes.len() <= MAX_PRETOKEN_BYTES);
        waiting.extend(parts.iter().flat_map(|&(left, right)| [left, right]));
        tokens.push(json!({
            "id": id,
            "hex": hex(bytes),
            "rank": one.rank(id),
            "parts": parts.map(|(left, right)| [left, right].map(|part| hex(one.bytes(part)))),
        }));
    }
    let named = special
        .into_iter()
        .map(|id| json!({ "id": id, "hex": hex(one.bytes(id)), "rank": null, "special": true }));
    Ok(tokens.into_iter().chain(named).collect())
}
