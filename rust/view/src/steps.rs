//! The merges of one word, step by step, and the merges that a training has learned.
//!
//! The steps are found as `bytepair.reference` finds them, in quadratic time, so only short
//! words are accepted. The shortcut for pretokens that are tokens is not used: it gives the same
//! token without steps, or a token that no steps produce.

use bytepair::MergeRule;
use serde_json::{Value, json};

use crate::error::{ViewResult, wrong};
use crate::explored::{Explored, hex};
use crate::question::Question;

/// The length of the longest pretoken whose merges are shown: nobody looks at more steps.
pub const MAX_PRETOKEN_BYTES: usize = 400;

/// The largest number of learned merges in an answer.
const MAX_MERGES: usize = 500;

/// The merges of a word, one by one: its parts, the index of the part that the last merge produced,
/// and the rank of that merge. The word is split into pretokens first, and no merge crosses their
/// borders. Fails if the word is too long.
pub(crate) fn steps(one: &Explored, word: &[u8]) -> ViewResult<Value> {
    check(word.len())?;
    let pretokens = pretokens(one, word)?;
    check(pretokens.iter().map(Vec::len).sum())?; // a normalizer may make more of a word
    let mut ids = Vec::new();
    let mut parts = Vec::new();
    for (number, pretoken) in pretokens.iter().enumerate() {
        ids.extend(one.core.encode_pretoken(pretoken)?);
        parts
            .extend(first_parts(one, pretoken).into_iter().map(|bytes| WordPart { number, bytes }));
    }
    let mut steps = vec![step(one, &parts, None)];
    while let Some((rank, at)) = lowest(one, &parts) {
        let right = parts.remove(at + 1);
        parts[at].bytes.extend(right.bytes);
        steps.push(step(one, &parts, Some((at, rank))));
    }
    Ok(json!({ "steps": steps, "ids": ids }))
}

fn check(bytes: usize) -> ViewResult<()> {
    if bytes <= MAX_PRETOKEN_BYTES {
        return Ok(());
    }
    Err(wrong(format!(
        "the pretoken has {bytes} bytes; steps are shown for at most {MAX_PRETOKEN_BYTES}"
    )))
}

/// A part of a word, and the number of the pretoken that it belongs to.
struct WordPart {
    number: usize,
    bytes: Vec<u8>,
}

/// The pretokens of a word; bytes that are no text are one pretoken, as those of a token are.
fn pretokens(one: &Explored, word: &[u8]) -> ViewResult<Vec<Vec<u8>>> {
    let mut pretokens = Vec::new();
    match std::str::from_utf8(word) {
        Ok(text) => one.core.for_each_pretoken(text, |piece| pretokens.push(piece.to_vec()))?,
        Err(_) => pretokens.push(word.to_vec()),
    }
    Ok(pretokens)
}

fn step(one: &Explored, parts: &[WordPart], merge: Option<(usize, u32)>) -> Value {
    let part = |WordPart { number, bytes }: &WordPart| json!({ "hex": hex(bytes), "id": one.core.vocabulary().id(bytes), "pretoken": number });
    json!({
        "parts": parts.iter().map(part).collect::<Vec<_>>(),
        "merged": merge.map(|(at, _)| at),
        "rank": merge.map(|(_, rank)| rank),
    })
}

/// The parts that merging starts from: bytes, or characters that are tokens.
fn first_parts(one: &Explored, pretoken: &[u8]) -> Vec<Vec<u8>> {
    let bytes = |part: &[u8]| part.iter().map(|&byte| vec![byte]).collect::<Vec<_>>();
    if one.core.rule() != MergeRule::Characters {
        return bytes(pretoken);
    }
    let is_token = |part: &[u8]| one.core.vocabulary().id(part).is_some();
    let mut parts = Vec::new();
    for chunk in pretoken.utf8_chunks() {
        for character in chunk.valid().chars().map(|c| c.to_string().into_bytes()) {
            parts.extend(if is_token(&character) { vec![character] } else { bytes(&character) });
        }
        parts.extend(bytes(chunk.invalid()));
    }
    parts
}

/// The lowest rank of two neighbours in a pretoken, and the index of the left one; of equal ranks
/// the leftmost.
fn lowest(one: &Explored, parts: &[WordPart]) -> Option<(u32, usize)> {
    let id = |part: &[u8]| one.core.vocabulary().id(part);
    let rank = |left: &[u8], right: &[u8]| match one.core.rule() {
        MergeRule::Ranks => id(&[left, right].concat()),
        _ => one.place((id(left)?, id(right)?)),
    };
    let of_pair = |(at, pair): (usize, &[WordPart])| {
        let [left, right] = pair else { return None };
        (left.number == right.number)
            .then(|| rank(&left.bytes, &right.bytes))
            .flatten()
            .map(|rank| (rank, at))
    };
    (0..).zip(parts.windows(2)).filter_map(of_pair).min()
}

/// Some merges in rank order, from the one numbered `from`: the parts, the token, and how often
/// training made the merge, if that is known.
pub(crate) fn learned(one: &Explored, question: &Question<'_>) -> ViewResult<Value> {
    let (merges, counts) = (one.core.merges(), one.core.merge_counts());
    let from = question.number_or("from", 0)? as usize;
    let merge = |(rank, &(left, right)): (usize, &(u32, u32))| {
        let token = [one.bytes(left), one.bytes(right)].concat();
        json!({
            "rank": rank,
            "id": one.core.vocabulary().id(&token),
            "hex": hex(&token),
            "parts": [hex(one.bytes(left)), hex(one.bytes(right))],
            "count": counts.get(rank),
        })
    };
    let some = merges.iter().enumerate().skip(from).take(MAX_MERGES);
    Ok(json!({ "all": merges.len(), "merges": some.map(merge).collect::<Vec<_>>() }))
}
