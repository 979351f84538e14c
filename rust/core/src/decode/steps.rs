//! Decodes the names of tokens to text, by the steps of a decoder.
//!
//! Most tokenizers need no steps: their tokens are bytes, one after the other. Source: the decoders of
//! Hugging Face `tokenizers` 0.23.

use crate::error::{Error, Result};
use crate::memory;
use crate::rules::DecoderStep;
use crate::rules::byte_level::to_bytes;
use crate::rules::growth::TextGrowth;
use crate::rules::normalizer::ReplacePattern;
use crate::search::Expression;

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

/// The text of tokens with these names, which are at most `bytes` long. Without steps, spaces are
/// between them.
///
/// Fails if a step makes too much of them, if a regular expression does not compile or takes too long,
/// or if there is not enough memory.
pub(crate) fn decode(
    names: impl Iterator<Item = String>,
    bytes: usize,
    steps: &[DecoderStep],
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
    for (number, step) in steps.iter().enumerate() {
        growth.begin("decoder", number, step.kind());
        names = apply(step, names, &mut growth)?;
    }
    concatenated(&names)
}

fn apply(step: &DecoderStep, names: Vec<String>, growth: &mut TextGrowth) -> Result<Vec<String>> {
    let last = names.len().saturating_sub(1);
    let one = |text: String, growth: &mut TextGrowth| growth.add(text.len()).map(|()| vec![text]);
    match step {
        DecoderStep::ByteLevel => one(of_bytes(&names)?, growth),
        DecoderStep::ByteFallback => fallen_back(&names, growth),
        DecoderStep::Fuse => one(concatenated(&names)?, growth),
        DecoderStep::Replace { pattern: ReplacePattern::Literal(text), content } => {
            each(names, |_, name| replaced_literal(&name, text, content, growth))
        }
        DecoderStep::Replace { pattern: ReplacePattern::Regex(regex), content } => {
            let expression = Expression::new(regex)?;
            each(names, |_, name| replaced(&name, &expression, content, growth))
        }
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
    let mut bytes = memory::with_room(names.iter().map(String::len).sum())?;
    for name in names {
        match to_bytes(name) {
            Some(of_name) => bytes.extend_from_slice(&of_name),
            None => bytes.extend_from_slice(name.as_bytes()),
        }
    }
    // A byte that is not UTF-8 becomes a character of three bytes.
    memory::check(3 * bytes.len())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs of names of bytes become their text, or U+FFFD for each if they are not UTF-8.
fn fallen_back(names: &[String], growth: &mut TextGrowth) -> Result<Vec<String>> {
    let (mut result, mut run) = (memory::with_room(names.len())?, Vec::new());
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

/// A name behind a space, unless it continues a word.
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
    use super::*;

    fn text(steps: &[DecoderStep], names: &[&str]) -> String {
        let bytes = names.iter().map(|name| name.len()).sum();
        decode(names.iter().map(|name| (*name).to_owned()), bytes, steps).unwrap()
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
