//! Decodes ids into bytes and text.
//!
//! The tokens are stored in one arena in id order, so two offsets locate the bytes of an id.
//! Decoding makes two passes: the first sums the lengths, the second copies the tokens into a
//! buffer of exactly that size. Most tokens have at most 16 bytes and are copied as a fixed 16
//! bytes, which is faster than a copy of variable length.
//!
//! When ids arrive one by one, the bytes so far may end within a character. A [`TextStream`]
//! buffers an incomplete character until its last byte arrives.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::memory;
use crate::rules::DecoderStep;
use crate::rules::growth::TextGrowth;
use crate::rules::normalizer::ReplacePattern;
use crate::rules::pre_tokenizer::to_bytes;
use crate::search::Expression;
use crate::vocabulary::Vocabulary;

/// Tokens of at most this many bytes are copied with a fixed size.
const COPY_BYTES: usize = 16;

/// An integer type in which ids may be given.
pub trait Number: Copy + Display + TryInto<u32> {
    /// The value as an id; `None` if it is out of range.
    fn id(self) -> Option<u32> {
        self.try_into().ok()
    }
}

impl<T: Copy + Display + TryInto<u32>> Number for T {}

/// The number of bytes of the ids.
///
/// Fails with [`Error::UnknownId`] at the first id without a token.
pub fn decoded_length<N: Number>(vocabulary: &Vocabulary, ids: &[N]) -> Result<usize> {
    let mut length = 0;
    for &number in ids {
        match number.id().map_or(0, |id| vocabulary.token_length(id)) {
            0 => return Err(unknown_id(vocabulary, number)),
            more => length += more,
        }
    }
    Ok(length)
}

/// Write the bytes of `ids` into `out`, whose length must be [`decoded_length`].
///
/// Fails with [`Error::Changed`] if the bytes do not fill `out` exactly, as when another thread
/// changes the ids in between; `out` then has any bytes.
pub fn write<N: Number>(vocabulary: &Vocabulary, ids: &[N], out: &mut [u8]) -> Result<()> {
    let (arena, offsets) = vocabulary.arrays();
    let mut done = 0;
    for id in ids.iter().filter_map(|number| number.id()) {
        // An id beyond the vocabulary was an error in the first pass, so the ids have changed
        // since.
        let Some(&[start, end]) = offsets.get(id as usize..).and_then(<[u32]>::first_chunk) else {
            return Err(Error::Changed);
        };
        let (start, end) = (start as usize, end as usize);
        let length = end - start;
        let from = arena[start..].first_chunk::<COPY_BYTES>().filter(|_| length <= COPY_BYTES);
        let rest = out.get_mut(done..).unwrap_or_default();
        // The copy may write bytes after the token; the next token overwrites them. `rest` has no
        // 16 bytes near its end, so there the copy is exact and nothing is left over.
        match (from, rest.first_chunk_mut::<COPY_BYTES>()) {
            (Some(from), Some(to)) => *to = *from,
            _ => rest.get_mut(..length).ok_or(Error::Changed)?.copy_from_slice(&arena[start..end]),
        }
        done += length;
    }
    if done == out.len() { Ok(()) } else { Err(Error::Changed) }
}

/// The ids that are not in `skipped`, which must be in order. A number that is no id stays, so that
/// decoding reports it.
///
/// ```
/// assert_eq!(bytepair::decode::without(&[7i32, 300, -1, 9, 301], &[300, 301])?, [7, -1, 9]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn without<N: Number>(ids: &[N], skipped: &[u32]) -> Result<Vec<N>> {
    let mut remaining = memory::with_capacity(ids.len())?;
    let stays = |number: &N| number.id().is_none_or(|id| skipped.binary_search(&id).is_err());
    remaining.extend(ids.iter().copied().filter(stays));
    Ok(remaining)
}

pub(crate) fn unknown_id(vocabulary: &Vocabulary, id: impl Display) -> Error {
    Error::UnknownId { id: id.to_string(), vocab_size: vocabulary.len() }
}

/// The text of bytes, with U+FFFD for each part that is not UTF-8.
pub(crate) fn lossy(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).or_else(|error| {
        // A byte that is not UTF-8 becomes a character of three bytes, in a string that doubles.
        memory::check(6 * error.as_bytes().len())?;
        Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

/// Converts bytes that arrive in pieces into text, without splitting characters.
///
/// Each maximal invalid part becomes U+FFFD. The output, concatenated, equals
/// [`String::from_utf8_lossy`] of all input.
///
/// ```
/// let mut stream = bytepair::decode::TextStream::default();
/// let mut text = String::new();
/// stream.push(b"caf\xc3", &mut text);
/// assert_eq!(text, "caf");
/// stream.push(b"\xa9", &mut text);
/// stream.push(b"\xe2\x82", &mut text);
/// stream.flush(&mut text);
/// assert_eq!(text, "café\u{fffd}");
/// ```
#[derive(Debug, Clone, Default)]
pub struct TextStream {
    /// The start of an incomplete character.
    pending: Vec<u8>,
}

impl TextStream {
    /// Take bytes and append all complete characters to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let pending = std::mem::take(&mut self.pending);
        let joined = if pending.is_empty() { Vec::new() } else { [&pending, bytes].concat() };
        let bytes = if pending.is_empty() { bytes } else { &joined };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let is_incomplete = |e: std::str::Utf8Error| e.error_len().is_none();
            if chunks.peek().is_none() && std::str::from_utf8(invalid).is_err_and(is_incomplete) {
                self.pending = invalid.to_vec();
            } else if !invalid.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// End the text: append U+FFFD if a character is incomplete. The stream can be used again.
    pub fn flush(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.pending).is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

// ---------------------------------------------------------------------------- steps
//
// Decodes the names of tokens to text, by the steps of a decoder.
//
// Most tokenizers need no steps: their tokens are bytes, one after the other. Source: the decoders of
// Hugging Face `tokenizers` 0.23.

/// What `WordPiece` writes otherwise if it cleans up.
const CLEANED: [(&str, &str); 11] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

/// The regular expression of each step of a decoder that has one. Fails if one does not compile.
pub(crate) fn expressions(steps: &[DecoderStep]) -> Result<Vec<Option<Expression>>> {
    memory::try_collect(steps.iter().map(|step| match step {
        DecoderStep::Replace { pattern: ReplacePattern::Regex(regex), .. } => {
            Expression::new(regex).map(Some)
        }
        _ => Ok(None),
    }))
}

/// The text of tokens with these names, which are at most `bytes` long, by steps and their
/// [`expressions`]. Without steps, spaces are between them.
///
/// Fails if a step makes too much of them, if a regular expression takes too long, or if there is not
/// enough memory.
pub(crate) fn by_steps(
    names: impl Iterator<Item = String>,
    bytes: usize,
    steps: &[DecoderStep],
    expressions: &[Option<Expression>],
) -> Result<String> {
    let mut growth = TextGrowth::of(bytes);
    growth.begin("decoder", 0, "names of tokens");
    let mut names = memory::try_collect(names.map(|name| {
        growth.add(name.len())?;
        Ok::<_, Error>(name)
    }))?;
    if steps.is_empty() {
        memory::check(names.len() + names.iter().map(String::len).sum::<usize>())?;
        return Ok(names.join(" "));
    }
    for (number, (step, expression)) in steps.iter().zip(expressions).enumerate() {
        growth.begin("decoder", number, step.kind());
        names = apply(step, expression.as_ref(), names, &mut growth)?;
    }
    concatenated(&names)
}

fn apply(
    step: &DecoderStep,
    expression: Option<&Expression>,
    names: Vec<String>,
    growth: &mut TextGrowth,
) -> Result<Vec<String>> {
    let last = names.len().saturating_sub(1);
    let one = |text: String, growth: &mut TextGrowth| growth.add(text.len()).map(|()| vec![text]);
    match step {
        DecoderStep::ByteLevel => one(of_bytes(&names)?, growth),
        DecoderStep::ByteFallback => fallen_back(&names, growth),
        DecoderStep::Fuse => one(concatenated(&names)?, growth),
        DecoderStep::Replace {
            pattern: ReplacePattern::Literal(text) | ReplacePattern::Regex(text),
            content,
        } => each(names, |_, name| match expression {
            Some(regex) => replaced(&name, regex, content, growth),
            None => replaced_literal(&name, text, content, growth),
        }),
        DecoderStep::Strip { content, start, stop } => {
            each(names, |_, name| Ok(stripped(&name, *content, *start, *stop)))
        }
        DecoderStep::Metaspace { replacement, drops_first } => each(names, |at, name| {
            let space = if at > 0 || !drops_first { " " } else { "" };
            replaced_literal(&name, replacement.encode_utf8(&mut [0; 4]), space, growth)
        }),
        DecoderStep::WordSuffix(suffix) => each(names, |at, name| {
            replaced_literal(&name, suffix, if at < last { " " } else { "" }, growth)
        }),
        DecoderStep::WordPiece { prefix, cleanup } => each(names, |at, name| {
            growth.add(name.len() + 1)?;
            Ok(word_piece(&name, prefix, *cleanup, at == 0))
        }),
    }
}

/// The names, each changed; `change` gets each with its number.
fn each(
    names: Vec<String>,
    mut change: impl FnMut(usize, String) -> Result<String>,
) -> Result<Vec<String>> {
    memory::try_collect(names.into_iter().enumerate().map(|(at, name)| change(at, name)))
}

/// The names, end to end.
fn concatenated(names: &[String]) -> Result<String> {
    memory::check(names.iter().map(String::len).sum())?;
    Ok(names.concat())
}

/// The text of names in GPT-2's characters; other names stand for themselves.
fn of_bytes(names: &[String]) -> Result<String> {
    let mut bytes = memory::with_capacity(names.iter().map(String::len).sum())?;
    for name in names {
        match to_bytes(name) {
            Some(of_name) => bytes.extend_from_slice(&of_name),
            None => bytes.extend_from_slice(name.as_bytes()),
        }
    }
    lossy(bytes)
}

/// Runs of names of bytes become their text, or U+FFFD for each if they are not UTF-8.
fn fallen_back(names: &[String], growth: &mut TextGrowth) -> Result<Vec<String>> {
    let (mut result, mut run) = (memory::with_capacity(names.len())?, Vec::new());
    for name in names {
        if let Some(byte) = byte_of(name) {
            memory::push(&mut run, byte)?;
            continue;
        }
        end_run(&mut run, &mut result);
        growth.add(name.len())?;
        result.push(name.clone());
    }
    end_run(&mut run, &mut result);
    Ok(result)
}

fn end_run(run: &mut Vec<u8>, result: &mut Vec<String>) {
    match String::from_utf8(std::mem::take(run)) {
        Ok(text) if text.is_empty() => {}
        Ok(text) => result.push(text),
        Err(error) => {
            let length = error.as_bytes().len();
            result.extend(std::iter::repeat_n(char::REPLACEMENT_CHARACTER.to_string(), length));
        }
    }
}

/// The byte that a name such as `<0x0A>` stands for, in letters of either case.
pub(crate) fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let are_digits = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn replaced(
    name: &str,
    expression: &Expression,
    content: &str,
    growth: &mut TextGrowth,
) -> Result<String> {
    let mut text = String::new();
    for (range, is_match) in expression.parts(name, &mut growth.time)? {
        let part = if is_match { content } else { &name[range] };
        growth.add(part.len())?;
        memory::reserve_text(&mut text, part.len())?;
        text.push_str(part);
    }
    Ok(text)
}

/// A name with `content` for each occurrence of a text.
fn replaced_literal(
    name: &str,
    text: &str,
    content: &str,
    growth: &mut TextGrowth,
) -> Result<String> {
    let most = name.len().saturating_add(name.matches(text).count().saturating_mul(content.len()));
    growth.add(most)?;
    memory::check(most)?;
    Ok(name.replace(text, content))
}

/// A name without up to `start` and `stop` of a character at its ends.
fn stripped(name: &str, content: char, start: usize, stop: usize) -> String {
    let leading = name.chars().take(start).take_while(|c| *c == content).count();
    let rest = &name[leading * content.len_utf8()..];
    let trailing = rest.chars().rev().take(stop).take_while(|c| *c == content).count();
    rest[..rest.len() - trailing * content.len_utf8()].to_owned()
}

/// A name after a space, unless it continues a word.
fn word_piece(name: &str, prefix: &str, cleanup: bool, is_first: bool) -> String {
    let mut text = match name.strip_prefix(prefix) {
        _ if is_first => name.to_owned(),
        Some(rest) => rest.to_owned(),
        None => format!(" {name}"),
    };
    for (written, meant) in CLEANED.iter().filter(|_| cleanup) {
        text = text.replace(written, meant);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode_bytes<N: Number>(vocabulary: &Vocabulary, ids: &[N]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; decoded_length(vocabulary, ids)?];
        write(vocabulary, ids, &mut bytes)?;
        Ok(bytes)
    }

    fn vocabulary() -> Vocabulary {
        let bytes = (0..=255u8).map(|byte| (vec![byte], u32::from(byte)));
        let longer = (0u8..40).map(|n| (vec![n; usize::from(n) + 2], 300 + u32::from(n)));
        Vocabulary::new(bytes.chain(longer), [("<s>".to_owned(), 400)]).unwrap()
    }

    proptest! {
        /// The slow reference concatenates the tokens one by one.
        #[test]
        fn decoding_equals_concatenating_tokens(ids in prop::collection::vec(
            prop_oneof![0u16..256, 300u16..340, Just(400)], 0..60)) {
            let vocabulary = vocabulary();
            let tokens = ids.iter().map(|&id| vocabulary.bytes(u32::from(id)).unwrap());
            let plain = tokens.collect::<Vec<_>>().concat();
            prop_assert_eq!(&decode_bytes(&vocabulary, &ids).unwrap(), &plain);
            let wide: Vec<i64> = ids.iter().map(|&id| i64::from(id)).collect();
            prop_assert_eq!(decode_bytes(&vocabulary, &wide).unwrap(), plain);
        }

        #[test]
        fn a_stream_equals_decoding_the_whole(
            parts in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..4),
                prop::collection::vec(prop::sample::select(
                    &[0x61, 0x80, 0xA0, 0xBF, 0xC3, 0xE0, 0xED, 0xF0, 0xF4, 0x90, 0xFF][..]), 0..6),
                any::<char>().prop_map(|c| c.to_string().into_bytes()),
            ], 0..20),
            cut in 1usize..4,
        ) {
            let whole = parts.concat();
            let expected = String::from_utf8_lossy(&whole);
            for pieces in [parts.clone(), whole.chunks(cut).map(<[u8]>::to_vec).collect()] {
                let (mut stream, mut text) = (TextStream::default(), String::new());
                for piece in &pieces {
                    stream.push(piece, &mut text);
                    prop_assert!(expected.starts_with(&text));
                }
                stream.flush(&mut text);
                prop_assert_eq!(&*text, &*expected);
            }
        }
    }

    #[test]
    fn the_error_names_the_first_unknown_id() {
        let vocabulary = vocabulary();
        for wrong in [-1, 256, 341, 401, 1 << 40] {
            let error = decode_bytes(&vocabulary, &[65i64, wrong, -7]).unwrap_err();
            assert_eq!(error, unknown_id(&vocabulary, wrong));
        }
    }

    fn text(steps: &[DecoderStep], names: &[&str]) -> String {
        let bytes = names.iter().map(|name| name.len()).sum();
        let names = names.iter().map(|name| (*name).to_owned());
        by_steps(names, bytes, steps, &expressions(steps).unwrap()).unwrap()
    }

    #[test]
    fn steps_change_names() {
        assert_eq!(text(&[], &["a", "b"]), "a b");
        assert_eq!(text(&[DecoderStep::ByteLevel], &["ĠÃ", "©", "中"]), " é中");
        let fallback = [DecoderStep::ByteFallback];
        assert_eq!(
            text(&fallback, &["a", "<0xC3>", "<0xa9>", "<0xFF>", "<0xC3>"]),
            "aé\u{FFFD}\u{FFFD}".replace("é\u{FFFD}\u{FFFD}", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}")
        );
        let strip = DecoderStep::Strip { content: ' ', start: 1, stop: 2 };
        assert_eq!(text(&[DecoderStep::Fuse, strip], &["  a", "b   "]), " ab ");
        let suffix = DecoderStep::WordSuffix("</w>".to_owned());
        assert_eq!(text(&[suffix], &["he", "y</w>", "you</w>"]), "hey you");
        let meta = DecoderStep::Metaspace { replacement: '\u{2581}', drops_first: true };
        assert_eq!(text(&[meta], &["\u{2581}a", "\u{2581}b"]), "a b");
        let piece = DecoderStep::WordPiece { prefix: "##".to_owned(), cleanup: true };
        assert_eq!(text(&[piece], &["un", "##do", "!", "it"]), "undo! it");
    }
}
