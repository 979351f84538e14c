//! Extracts the text of one field from a line of JSON.
//!
//! The line must be one JSON object; all of it is checked, but only the text is decoded. `NaN`,
//! `Infinity` and `-Infinity` are accepted as values, since Python writes them. Nested values are
//! checked without recursion, so only the length of the line limits their depth.

use std::ops::Range;

use memchr::memchr_iter;

use crate::error::{Error, Hint, NO_HINT, RENDER, REPAIR, Reason, Result};
use crate::memory;
use crate::text::lone_surrogate;

/// The error for a line that is invalid; the caller knows its place.
pub(super) fn invalid(reason: impl Into<Reason>) -> Error {
    Error::Document { place: String::new(), reason: reason.into() }
}

/// The values that are words.
const LITERALS: [&[u8]; 5] = [b"true", b"false", b"null", b"NaN", b"Infinity"];

/// The keys that a message names.
const MAX_KEYS: usize = 20;
const MAX_KEY_BYTES: usize = 100;

/// U+FEFF in UTF-8, which some programs write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The lines of a block without their line ends, each with the number of lines before it in the
/// block. Blank lines are left out unless `with_blank` is set.
pub(super) fn lines(
    block: &[u8],
    begins_file: bool,
    with_blank: bool,
) -> impl Iterator<Item = (u64, &[u8])> {
    let mark = if begins_file { BYTE_ORDER_MARK } else { &[] };
    let block = block.strip_prefix(mark).unwrap_or(block);
    let ends = memchr_iter(b'\n', block).chain(std::iter::once(block.len()));
    let lines = ends.scan(0, |start, end| {
        let line = block.get(*start..end).filter(|_| *start < block.len())?;
        *start = end + 1;
        Some(line)
    });
    (0..).zip(lines).filter(move |(_, line)| with_blank || !is_blank(line))
}

/// Whether a line contains only white space.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Append the text in a field to `out`; returns false if the object does not have the field, or if
/// its value is `null`. After an error, a part of the text may have been appended.
///
/// The escape of a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD if `lossy`, or else is an
/// error. Invalid UTF-8 in the line is copied.
pub(super) fn read_field(
    line: &[u8],
    field: &[u8],
    lossy: bool,
    out: &mut Vec<u8>,
) -> Result<bool> {
    memory::reserve(out, line.len())?;
    let mut scanner = LineScanner { line, at: 0, open: Vec::new() };
    let (mut has_text, mut has_field) = (false, false);
    scanner.fields(|scanner, key| {
        if !is_key(line, &key, field)? {
            return scanner.value();
        }
        if std::mem::replace(&mut has_field, true) {
            return Err(invalid("the object has the field twice"));
        }
        has_text = scanner.text(lossy, out)?;
        Ok(())
    })?;
    scanner.skip_space();
    match scanner.peek() {
        None => Ok(has_text),
        Some(b'{') => {
            let text = format!("a second object begins at byte {} of the line", scanner.at);
            let hint = const { &Hint::new("give each object a line of its own") };
            Err(invalid(Reason::new(text, hint)))
        }
        Some(_) => Err(scanner.expected("the end of the line")),
    }
}

/// The first keys of an object that are short, as they are written; none if the line is invalid.
pub(super) fn keys(line: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let read = LineScanner { line, at: 0, open: Vec::new() }.fields(|scanner, name| {
        if names.len() < MAX_KEYS && name.len() <= MAX_KEY_BYTES {
            names.push(String::from_utf8_lossy(&line[name]).into_owned());
        }
        scanner.value()
    });
    read.map_or_else(|_| Vec::new(), |()| names)
}

/// The number of bytes before the first one that is not plain text: a quotation mark, a backslash
/// or a control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    /// 0x01 in each byte.
    const ONES: u64 = u64::MAX / 0xFF;
    // Sets the high bit of each byte below `bound`: 0x1F - 0x20 is 0xFF, and 0x41 - 0x20 is 0x21. A
    // byte of 0x80 or more is not below it and is masked out. A borrow begins only at a byte below
    // the bound and reaches only higher bytes, so the lowest set bit is right; higher ones may be
    // wrong.
    let below =
        |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & (ONES * 0x80);
    // The XOR makes a byte 0 where it is equal, and only 0 is below 1.
    let is = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let (words, _) = bytes.as_chunks::<8>();
    for (index, &word) in words.iter().enumerate() {
        // Little-endian, so the first byte of the text is the lowest, and the lowest set bit of any
        // of the three masks is the first byte that stops.
        let word = u64::from_le_bytes(word);
        let stops = is(word, b'"') | is(word, b'\\') | below(word, b' ');
        if stops != 0 {
            return 8 * index + stops.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..b' ');
    8 * words.len() + bytes[8 * words.len()..].iter().take_while(is_plain).count()
}

/// Append the character of a valid escape; returns the length of the escape in bytes.
fn unescape(raw: &[u8], lossy: bool, out: &mut Vec<u8>) -> Result<usize> {
    let byte = match raw[1] {
        b'b' => 0x08,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unescape_unicode(raw, lossy, out),
        other => other,
    };
    out.push(byte);
    Ok(2)
}

fn unescape_unicode(raw: &[u8], lossy: bool, out: &mut Vec<u8>) -> Result<usize> {
    // A character beyond U+FFFF is written as two surrogates.
    let second = raw[6..].strip_prefix(b"\\u").and_then(|rest| rest.get(..4)).map_or(0, unit);
    let decoded = char::decode_utf16([unit(&raw[2..6]), second]).next();
    let character = match decoded.expect("there are units") {
        Ok(character) => character,
        Err(_) if lossy => char::REPLACEMENT_CHARACTER,
        Err(lone) => {
            let text = lone_surrogate(lone.unpaired_surrogate().into());
            return Err(invalid(Reason::new(text, REPAIR)));
        }
    };
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(6 * character.len_utf16())
}

/// The value of four hexadecimal digits; 0 if they are not digits.
fn unit(digits: &[u8]) -> u16 {
    let digit = |&byte: &u8| u16::try_from(char::from(byte).to_digit(16)?).ok();
    digits.iter().try_fold(0, |unit, byte| Some(unit << 4 | digit(byte)?)).unwrap_or(0)
}

/// Whether the key in a range of the line, between its quotation marks, is `name`.
fn is_key(line: &[u8], key: &Range<usize>, name: &[u8]) -> Result<bool> {
    let raw = &line[key.clone()];
    if !raw.contains(&b'\\') {
        return Ok(raw == name);
    }
    // The key has escapes: "te\u0078t" is the field `text`.
    let (mut plain, quoted) = (Vec::new(), &line[key.start - 1..=key.end]);
    let mut scanner = LineScanner { line: quoted, at: 0, open: Vec::new() };
    match scanner.string_into(false, &mut plain) {
        Ok(()) => Ok(plain == name),
        // The key has a lone surrogate, which no name of a field has.
        Err(Error::Document { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A cursor in a line.
struct LineScanner<'a> {
    line: &'a [u8],
    at: usize,
    /// The open brackets of the value that is being skipped.
    open: Vec<u8>,
}

impl LineScanner<'_> {
    fn expected(&self, expected: &'static str) -> Error {
        let at = self.at;
        invalid(format!("the line is not a JSON object: expected {expected} at byte {at}"))
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        let rest = &self.line[self.at..];
        let space = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'\r' | b'\n');
        self.at += rest.iter().take_while(space).count();
    }

    /// Skip white space and this byte, which must follow.
    fn expect(&mut self, byte: u8, name: &'static str) -> Result<()> {
        self.skip_space();
        if self.skip(&[byte]) { Ok(()) } else { Err(self.expected(name)) }
    }

    /// Read an object; `value` reads the value of each key.
    fn fields(
        &mut self,
        mut value: impl FnMut(&mut Self, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.expect(b'{', "'{'")?;
        self.skip_space();
        let mut has_more = !self.skip(b"}");
        while has_more {
            let key = self.key()?;
            value(self, key)?;
            has_more = self.next_item(b'}', "',' or '}'")?;
        }
        Ok(())
    }

    /// Read a key and the colon after it; returns the range between its quotation marks.
    fn key(&mut self) -> Result<Range<usize>> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key"));
        }
        let name = self.string()?;
        self.expect(b':', "':'")?;
        Ok(name)
    }

    /// Read the value of the field: append a string to `out`, or return false for `null`.
    fn text(&mut self, lossy: bool, out: &mut Vec<u8>) -> Result<bool> {
        self.skip_space();
        let kind = match self.peek() {
            Some(b'"') => return self.string_into(lossy, out).map(|()| true),
            Some(b'n') => return self.literal().map(|()| false),
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b't' | b'f') => "true or false",
            _ => "a number",
        };
        self.value()?;
        let hint = if kind == "a list" { RENDER } else { NO_HINT };
        Err(invalid(Reason::new(format!("the field is {kind}, not a string"), hint)))
    }

    /// Skip the comma or the closing bracket after an item; returns whether it is a comma, so that
    /// another item follows.
    fn next_item(&mut self, close: u8, expected: &'static str) -> Result<bool> {
        self.skip_space();
        let has_more = self.skip(b",");
        if has_more || self.skip(&[close]) { Ok(has_more) } else { Err(self.expected(expected)) }
    }

    /// Skip a value of any kind.
    fn value(&mut self) -> Result<()> {
        loop {
            self.skip_space();
            let is_open = match self.peek() {
                Some(bracket @ (b'{' | b'[')) => self.enter(bracket)?,
                Some(b'"') => self.string().map(|_| false)?,
                Some(b'-' | b'0'..=b'9') => self.number().map(|()| false)?,
                _ => self.literal().map(|()| false)?,
            };
            if !is_open && !self.leave()? {
                return Ok(());
            }
        }
    }

    /// Skip an opening bracket; returns false if it closes at once, so that no value follows in it.
    fn enter(&mut self, bracket: u8) -> Result<bool> {
        self.at += 1;
        self.skip_space();
        // The code of a closing bracket is that of the opening one plus 2.
        if self.skip(&[bracket + 2]) {
            return Ok(false);
        }
        memory::push(&mut self.open, bracket)?;
        if bracket == b'{' {
            self.key()?;
        }
        Ok(true)
    }

    /// Skip commas, closing brackets and keys after a value, up to the next value; returns whether
    /// there is one.
    fn leave(&mut self) -> Result<bool> {
        while let Some(&bracket) = self.open.last() {
            let expected = if bracket == b'{' { "',' or '}'" } else { "',' or ']'" };
            if self.next_item(bracket + 2, expected)? {
                if bracket == b'{' {
                    self.key()?;
                }
                return Ok(true);
            }
            self.open.pop();
        }
        Ok(false)
    }

    /// Read a string, and append its text to `out`.
    fn string_into(&mut self, lossy: bool, out: &mut Vec<u8>) -> Result<()> {
        self.at += 1;
        // No escape is shorter than what it stands for, so the pushes below never allocate.
        memory::reserve(out, self.line.len() - self.at)?;
        loop {
            let rest = &self.line[self.at..];
            let plain = plain_length(rest);
            out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            if !self.is_at_escape()? {
                return Ok(());
            }
            self.at += unescape(&rest[plain..], lossy, out)?;
        }
    }

    /// Skip a string; returns the range between its quotation marks.
    fn string(&mut self) -> Result<Range<usize>> {
        let start = self.at + 1;
        self.at = start;
        loop {
            self.at += plain_length(&self.line[self.at..]);
            if !self.is_at_escape()? {
                return Ok(start..self.at - 1);
            }
            // Skips the second byte of the escape, which may be a quotation mark or a backslash.
            self.at += 2;
        }
    }

    /// After plain text: true at an escape, which must be valid; false at the closing quotation
    /// mark, which is skipped.
    fn is_at_escape(&mut self) -> Result<bool> {
        match self.line[self.at..] {
            [b'"', ..] => {
                self.at += 1;
                Ok(false)
            }
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok(true),
            [b'\\', b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(u8::is_ascii_hexdigit) => {
                Ok(true)
            }
            [b'\\', ..] => Err(self.expected("a valid escape")),
            [] => Err(self.expected("'\"'")),
            _ => Err(self.expected("an escape instead of a control character")),
        }
    }

    fn literal(&mut self) -> Result<()> {
        let rest = &self.line[self.at..];
        let literal = LITERALS.iter().find(|literal| rest.starts_with(literal));
        self.at += literal.ok_or_else(|| self.expected("a value"))?.len();
        Ok(())
    }

    fn number(&mut self) -> Result<()> {
        if self.skip(b"-") && self.peek() == Some(b'I') {
            return self.literal();
        }
        if !self.skip(b"0") {
            self.digits()?;
        }
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            self.digits()?;
        }
        Ok(())
    }

    /// Skip one of these bytes; returns whether one of them is next.
    fn skip(&mut self, bytes: &[u8]) -> bool {
        let is_next = self.peek().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(is_next);
        is_next
    }

    /// Skip one or more digits.
    fn digits(&mut self) -> Result<()> {
        let count = self.line[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.expected("a digit"));
        }
        self.at += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(line: &str) -> std::result::Result<Option<Vec<u8>>, String> {
        let mut out = Vec::new();
        match read_field(line.as_bytes(), b"text", false, &mut out) {
            Ok(has_text) => Ok(has_text.then_some(out)),
            Err(Error::Document { reason, .. }) => Err(reason.text().to_owned()),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_text_of_the_field_is_read() {
        let text = |line| text_of(line).unwrap();
        for line in ["{}", " { } \r", r#"{"a":{"text":"no"},"b":[{"text":1}]}"#, r#"{"text":null}"#]
        {
            assert_eq!(text(line), None, "{line}");
        }
        let every = r#"{"a": [1, -2.5e+7, true, false, null, NaN, -Infinity, [], {}, "\u00e9"],
                        "te\u0078t" : "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00", "b": {"c": {"d": []}}}"#;
        assert_eq!(text(every).unwrap(), "\"\\/\u{8}\u{c}\n\r\té😀".as_bytes());
        let deep = format!(r#"{{"a":{}{},"text":"x"}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(text(&deep).unwrap(), b"x");
        assert_eq!(text(r#"{"\ud800":"\ud800","text":"x"}"#).unwrap(), b"x");
    }

    #[test]
    fn a_lone_surrogate_is_refused_or_replaced() {
        for (text, code, replaced) in [
            (r"\ud83d", r"\ud83d", "\u{FFFD}"),
            (r"a\udc00\ud800", r"\udc00", "a\u{FFFD}\u{FFFD}"),
            (r"\uD83D\uDE00\uD83D", r"\ud83d", "😀\u{FFFD}"),
        ] {
            let line = format!("{{\"text\":\"{text}\"}}");
            let wrong = format!("the text has the lone surrogate {code}, half of a character");
            assert_eq!(text_of(&line), Err(wrong));
            let mut out = Vec::new();
            assert!(read_field(line.as_bytes(), b"text", true, &mut out).unwrap());
            assert_eq!(out, replaced.as_bytes());
        }
    }

    #[test]
    fn keys_are_listed() {
        assert_eq!(keys(br#"{"a": 1, "b": {"c": []}}"#), ["a", "b"]);
        assert_eq!(keys(b"{}"), Vec::<String>::new());
        assert_eq!(keys(b"{oops"), Vec::<String>::new());
    }

    #[test]
    fn invalid_lines_are_rejected() {
        for (line, wrong) in [
            ("[1]", "expected '{' at byte 0"),
            ("null", "expected '{' at byte 0"),
            ("{oops", "expected a key at byte 1"),
            (r#"{"a" 1}"#, "expected ':' at byte 5"),
            (r#"{"a":01}"#, "expected ',' or '}' at byte 6"),
            (r#"{"a":[1 2]}"#, "expected ',' or ']' at byte 8"),
            (r#"{"a":1,}"#, "expected a key at byte 7"),
            (r#"{"a":-}"#, "expected a digit at byte 6"),
            (r#"{"a":trial}"#, "expected a value at byte 5"),
            (r#"{"a":"x"#, "expected '\"' at byte 7"),
            (r#"{"a":"\x"}"#, "expected a valid escape at byte 6"),
            (r#"{"a":"\u00g0"}"#, "expected a valid escape at byte 6"),
            ("{\"a\":\"b\tc\"}", "an escape instead of a control character"),
            (r#"{"a":1} ]"#, "expected the end of the line at byte 8"),
            (r#"{"a":1} {}"#, "a second object begins at byte 8 of the line"),
            (r#"{"a":1}{"#, "a second object begins at byte 7 of the line"),
            (r#"{"text":5}"#, "the field is a number, not a string"),
            (r#"{"text":[{}]}"#, "the field is a list, not a string"),
            (r#"{"text":"a","text":"b"}"#, "the object has the field twice"),
        ] {
            let error = text_of(line).unwrap_err();
            assert!(error.contains(wrong), "{line}: {error}");
        }
    }

    /// Pieces of JSON in any order: mostly almost valid.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\"text\"",
            "\"a\"",
            "\"\\u00e9\\n\"",
            "\"é😀\"",
            "null",
            "true",
            "12",
            "-0.5e3",
            "0",
            "\"\\ud83d\\ude00\"",
            "\\",
            "\"",
            "{\"text\":",
            "\"b\"}",
        ]);
        prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
    }

    /// A valid object of any shape.
    fn object() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<i64>().prop_map(|n| n.to_string()),
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        let value = leaf.prop_recursive(4, 20, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4);
            let map = prop::collection::btree_map("[a-d]", inner, 0..4);
            prop_oneof![
                list.prop_map(|items| format!("[{}]", items.join(", "))),
                map.prop_map(|map| {
                    let fields =
                        map.into_iter().map(|(name, value)| format!("\"{name}\" : {value}"));
                    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
                }),
            ]
        });
        (any::<Option<String>>(), value).prop_map(|(text, other)| {
            let text = serde_json::to_string(&text).unwrap();
            format!("{{\"other\": {other}, \"text\":{text}}}")
        })
    }

    proptest! {
        #[test]
        fn plain_text_ends_at_the_first_special_byte(
            bytes in prop::collection::vec(
                prop_oneof![6 => 0x20u8..=0xFF, 1 => any::<u8>(), 1 => Just(b'"')], 0..60,
            ),
        ) {
            let special = |&byte: &u8| byte < b' ' || byte == b'"' || byte == b'\\';
            let plain = bytes.iter().position(special).unwrap_or(bytes.len());
            prop_assert_eq!(plain_length(&bytes), plain);
        }

        /// The result is that of another JSON parser.
        #[test]
        fn equals_serde_json(line in prop_oneof![pieces(), object()]) {
            let ours = text_of(&line);
            let is_twice = ours.as_ref().is_err_and(|wrong| wrong.contains("has the field twice"));
            let value = serde_json::from_str::<serde_json::Value>(&line);
            match value {
                Ok(serde_json::Value::Object(fields)) => match fields.get("text") {
                    _ if is_twice => {}
                    Some(serde_json::Value::String(text)) => {
                        prop_assert_eq!(ours, Ok(Some(text.clone().into_bytes())));
                    }
                    None | Some(serde_json::Value::Null) => prop_assert_eq!(ours, Ok(None)),
                    Some(_) => prop_assert!(ours.unwrap_err().contains("not a string")),
                },
                _ => prop_assert!(ours.is_err(), "{line}"),
            }
        }
    }
}
