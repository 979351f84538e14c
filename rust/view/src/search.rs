//! The vocabulary, searched by text, regular expression, bytes or id.

use bytepair::Error;
use bytepair::search::Expression;
use serde_json::{Value, json};

use crate::error::{ViewResult, wrong};
use crate::explored::Explored;
use crate::question::Question;

/// The longest query, in bytes: it is compared with each place of each token.
const MAX_QUERY_BYTES: usize = 1000;

/// The largest number of tokens in an answer.
const MAX_TOKENS: usize = 300;

/// How often an expression may step back within one token; a search tries all tokens.
const MAX_STEPS_BACK: usize = 2000;

type Fits = Box<dyn Fn(u32, &[u8]) -> ViewResult<bool>>;

/// The tokens that fit the body under the `kind` of search, from the one numbered `from`, with the
/// number of all that fit and of the vocabulary. Fails if the body is no query of this kind.
pub(crate) fn search(one: &Explored, question: &Question<'_>) -> ViewResult<Value> {
    let query = question.text()?;
    if query.len() > MAX_QUERY_BYTES {
        return Err(wrong(format!("a query has at most {MAX_QUERY_BYTES} bytes")));
    }
    let fits = match question.word("kind")? {
        "text" => by_text(query),
        "regex" => by_expression(query)?,
        "bytes" => by_bytes(query)?,
        "id" => by_id(query)?,
        other => return Err(wrong(format!("there is no search by {other:?}"))),
    };
    let mut ids = Vec::new();
    for id in (0..one.ids()).filter(|&id| !one.bytes(id).is_empty()) {
        if fits(id, one.bytes(id))? {
            ids.push(id);
        }
    }
    if query.is_empty() {
        ids.sort_by_key(|&id| place(one, id)); // stable: by id within a group
    }
    let from = question.number_or("from", 0)? as usize;
    let tokens = ids.iter().skip(from).take(MAX_TOKENS).map(|&id| one.named(id));
    let tokens: Vec<Value> = tokens.collect();
    Ok(json!({ "count": ids.len(), "all": one.ids(), "tokens": tokens }))
}

/// Without a query merges come first, then special tokens, then single bytes.
fn place(one: &Explored, id: u32) -> u8 {
    match (one.is_special(id), one.bytes(id).len()) {
        (true, _) => 1,
        (false, 1) => 2,
        (false, _) => 0,
    }
}

/// Capitals count if the query has any.
fn by_text(query: &str) -> Fits {
    let query = query.to_owned();
    let exact = query != query.to_lowercase();
    Box::new(move |_, token| {
        let text = String::from_utf8_lossy(token);
        Ok(if exact { text.contains(&query) } else { text.to_lowercase().contains(&query) })
    })
}

fn by_expression(query: &str) -> ViewResult<Fits> {
    let expression = Expression::with_backtrack_limit(query, MAX_STEPS_BACK);
    let expression = expression.map_err(|error| match error {
        Error::Pattern { reason, .. } => wrong(format!("invalid regular expression: {reason}")),
        other => other.into(),
    })?;
    Ok(Box::new(move |_, token| {
        let result = expression.is_in(String::from_utf8_lossy(token).as_ref());
        result.map_err(|_| wrong("This takes too long; a simpler expression may not."))
    }))
}

fn by_bytes(query: &str) -> ViewResult<Fits> {
    let reason = || wrong("bytes are pairs of the digits 0 to f, as in e4 bd");
    let query = query.to_ascii_lowercase().replace("0x", "");
    let is_between = |c: char| c == ',' || c.is_whitespace();
    let digits: Vec<char> = query.chars().filter(|&c| !is_between(c)).collect();
    let byte = |pair: &[char]| {
        let digits: String = pair.iter().collect();
        let is_pair = pair.len() == 2 && pair.iter().all(char::is_ascii_hexdigit);
        is_pair.then(|| u8::from_str_radix(&digits, 16).ok()).flatten().ok_or_else(reason)
    };
    let bytes = digits.chunks(2).map(byte).collect::<ViewResult<Vec<u8>>>()?;
    Ok(Box::new(move |_, token| {
        Ok(bytes.is_empty() || token.windows(bytes.len()).any(|part| part == bytes))
    }))
}

fn by_id(query: &str) -> ViewResult<Fits> {
    let digits = query.trim().to_owned();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("an id is a whole number"));
    }
    Ok(Box::new(move |id, _| Ok(id.to_string().starts_with(&digits))))
}
