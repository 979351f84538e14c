//! One text under some tokenizers: ids, lengths, and where the splits differ.
//!
//! For each tokenizer the answer has the number of ids, the ids, the length of each in bytes, and
//! for each 1 if others do not have this token at this place, else 0. For the first tokenizer the
//! others are all others; for another one it is the first.

use std::sync::Arc;

use bytepair::decode::decoded_length;
use serde_json::{Value, json};

use crate::error::{ViewResult, wrong};
use crate::explored::{Explored, hex};
use crate::question::{Question, check_length};

/// The answer about a text and the tokenizers `shown`.
pub(crate) fn compare(shown: &[Arc<Explored>], question: &Question<'_>) -> ViewResult<Vec<u8>> {
    let text = question.text()?;
    check_length(text.len() * shown.len() / 2)?; // for all together, twice the longest text
    let splits = splits(shown, text, question.special()?)?;
    Ok(packed(shown, &splits))
}

/// The ids of a text under each tokenizer.
pub(crate) fn splits(
    shown: &[Arc<Explored>],
    text: &str,
    special: bool,
) -> ViewResult<Vec<Vec<u32>>> {
    let mut count = 0;
    let ids = |one: &Arc<Explored>| {
        let ids = one.core.encode_with(text, one.options(special))?;
        count += ids.len();
        check_length(count / 2)?; // rules may make more of a text
        Ok(ids)
    };
    shown.iter().map(ids).collect()
}

/// Splits in the form of the answer.
pub(crate) fn packed(shown: &[Arc<Explored>], splits: &[Vec<u32>]) -> Vec<u8> {
    let lengths = |(one, ids): (&Arc<Explored>, &Vec<u32>)| {
        let length = |&id: &u32| one.core.vocabulary().token_length(id);
        ids.iter().map(length).collect::<Vec<_>>()
    };
    let lengths: Vec<Vec<usize>> = shown.iter().zip(splits).map(lengths).collect();
    let spans: Vec<Vec<[usize; 2]>> = lengths.iter().map(|one| spans(one)).collect();
    let mut numbers = Vec::new();
    for (n, ids) in splits.iter().enumerate() {
        numbers.push(ids.len());
        numbers.extend(ids.iter().map(|&id| id as usize));
        numbers.extend_from_slice(&lengths[n]);
        numbers.extend(different(&spans, n).into_iter().map(usize::from));
    }
    let small = |number| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    numbers.into_iter().flat_map(small).collect()
}

/// Where tokens of these lengths start and end.
fn spans(lengths: &[usize]) -> Vec<[usize; 2]> {
    let mut end = 0;
    let span = |&length: &usize| {
        let start = end;
        end += length;
        [start, end]
    };
    lengths.iter().map(span).collect()
}

/// For each span of split `n` whether others do not have it; no split differs from nothing.
fn different(all: &[Vec<[usize; 2]>], n: usize) -> Vec<bool> {
    let others = if n == 0 { &all[1..] } else { &all[..1] };
    let mut flags = vec![!others.is_empty(); all[n].len()];
    for other in others {
        let mut rest = other.iter().copied().peekable();
        for (flag, span) in flags.iter_mut().zip(&all[n]) {
            while rest.next_if(|next| next < span).is_some() {}
            *flag &= rest.peek() != Some(span);
        }
    }
    flags
}

/// The text of the ids in the body, and whether encoding it gives the same ids. Digits are ids, white
/// space, commas and brackets stand between them; fails if there is anything else, or if an id is
/// unknown.
pub(crate) fn decode(one: &Explored, question: &Question<'_>) -> ViewResult<Value> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
    let words = question.text()?.split(is_between).filter(|word| !word.is_empty());
    let id = |word: &str| word.parse().map_err(|_| wrong(format!("{word:?} is no id")));
    let ids = words.map(id).collect::<ViewResult<Vec<u32>>>()?;
    check_length(decoded_length(one.core.vocabulary(), &ids)?)?;
    let text = one.core.decode(&ids)?;
    let exact = [true, false].into_iter().any(|special| {
        one.core.encode_with(&text, one.options(special)).is_ok_and(|again| again == ids)
    });
    Ok(json!({ "text": text, "exact": exact }))
}

/// The pretoken that contains the byte `at` of a text: its start and its bytes.
pub(crate) fn pretoken(one: &Explored, question: &Question<'_>) -> ViewResult<Value> {
    let (text, at) = (question.text()?, question.number("at")? as usize);
    let (start, part) = if question.special()? { part(one, text, at)? } else { (0, text.into()) };
    let (mut end, mut hit) = (start, None);
    one.core.for_each_pretoken(&part, |pretoken| {
        let from = end;
        end += pretoken.len();
        if (from..end).contains(&at) {
            hit = Some((from, hex(pretoken)));
        }
    })?;
    let (start, pretoken) = hit.unwrap_or_else(|| (at, String::new()));
    Ok(json!({ "start": start, "hex": pretoken }))
}

/// The ordinary text around a byte, and its start; empty inside a special token.
fn part(one: &Explored, text: &str, at: usize) -> ViewResult<(usize, String)> {
    let ids = one.core.encode_with(text, one.options(true))?;
    let mut start = 0;
    for run in ids.chunk_by(|left, right| one.is_special(*left) == one.is_special(*right)) {
        let bytes = one.core.decode_bytes(run)?;
        if (start..start + bytes.len()).contains(&at) {
            let is_special = run.first().is_some_and(|&id| one.is_special(id));
            let text = if is_special { String::new() } else { one.core.decode(run)? };
            return Ok((start, text));
        }
        start += bytes.len();
    }
    Ok((at, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_differ_where_a_token_stands_alone() {
        let all = [vec![2, 1, 3], vec![1, 2, 3], vec![2, 4]].map(|lengths| spans(&lengths));
        assert_eq!(different(&all, 0), [false, true, false]);
        assert_eq!(different(&all, 1), [true, true, false]);
        assert_eq!(different(&all, 2), [false, true]);
        assert_eq!(different(&all[..1], 0), [false; 3]);
    }
}
