//! A question: an object of JSON with the name of what is asked (`what`), and a body of bytes.

use serde_json::{Map, Value};

use crate::error::{ViewResult, not_json, wrong};

/// The largest text of a question, in bytes: an answer has up to 80 bytes for each.
pub(crate) const MAX_TEXT_BYTES: usize = 1 << 22;

/// A question; its numbers may be written as strings, as in an address.
pub(crate) struct Question<'q> {
    members: Map<String, Value>,
    pub(crate) body: &'q [u8],
}

impl<'q> Question<'q> {
    /// Read a question. Fails if it is no object.
    pub(crate) fn new(question: &str, body: &'q [u8]) -> ViewResult<Self> {
        let value: Value =
            serde_json::from_str(question).map_err(|error| not_json("the question", &error))?;
        match value {
            Value::Object(members) => Ok(Self { members, body }),
            _ => Err(wrong("a question is an object of JSON")),
        }
    }

    /// A member that is a string. Fails if there is none.
    pub(crate) fn word(&self, name: &str) -> ViewResult<&str> {
        let word = self.members.get(name).and_then(Value::as_str);
        word.ok_or_else(|| wrong(format!("the question has no string {name:?}")))
    }

    /// A member that is a string, or nothing.
    pub(crate) fn word_or_none(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str).filter(|word| !word.is_empty())
    }

    /// A member that is a number of 32 bits. Fails if there is none.
    pub(crate) fn number(&self, name: &str) -> ViewResult<u32> {
        let number = match self.members.get(name) {
            Some(Value::Number(number)) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
            Some(Value::String(digits)) => digits.parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| wrong(format!("the question has no number {name:?} below 2^32")))
    }

    /// A member that is a number, or what to take instead.
    pub(crate) fn number_or(&self, name: &str, instead: u32) -> ViewResult<u32> {
        if self.members.contains_key(name) { self.number(name) } else { Ok(instead) }
    }

    /// A member that is a list of numbers, written with commas between them.
    pub(crate) fn numbers(&self, name: &str) -> ViewResult<Vec<u32>> {
        let reason = || wrong(format!("the question has no numbers {name:?}, as \"0,1\""));
        self.word(name)?.split(',').map(|one| one.parse().map_err(|_| reason())).collect()
    }

    /// Whether special tokens in a text become their ids.
    pub(crate) fn special(&self) -> ViewResult<bool> {
        Ok(self.number_or("special", 0)? != 0)
    }

    /// The body as a text. Fails if it is not UTF-8, or longer than [`MAX_TEXT_BYTES`].
    pub(crate) fn text(&self) -> ViewResult<&'q str> {
        check_length(self.body.len())?;
        std::str::from_utf8(self.body).map_err(|error| {
            wrong(format!("the text is not UTF-8 at byte {}", error.valid_up_to()))
        })
    }
}

/// Fails if a text would have more than [`MAX_TEXT_BYTES`].
pub(crate) fn check_length(bytes: usize) -> ViewResult<()> {
    if bytes <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(wrong(format!("that is {bytes} bytes of text; the page takes at most {MAX_TEXT_BYTES}")))
}
