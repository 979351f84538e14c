//! The names of tokens in, text out, by the steps of a decoder.
//!
//! Most tokenizers need no steps: their tokens are bytes, one after the other. Source: the decoders of
//! Hugging Face `tokenizers` 0.23.

use crate::error::Result;
use crate::rules::DecoderStep;
use crate::rules::byte_level::to_bytes;
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

/// The text of tokens with these names. Without steps, spaces are between them.
///
/// Fails if a regular expression does not compile or takes too long.
pub(crate) fn decode(mut names: Vec<String>, steps: &[DecoderStep]) -> Result<String> {
    if steps.is_empty() {
        return Ok(names.join(" "));
    }
    for step in steps {
        names = apply(step, &names)?;
    }
    Ok(names.concat())
}

fn apply(step: &DecoderStep, names: &[String]) -> Result<Vec<String>> {
    // Without names, this wraps around and is never compared.
    let last = names.len().wrapping_sub(1);
    let each = |change: &dyn Fn(usize, String) -> String| -> Vec<String> {
        names.iter().cloned().enumerate().map(|(at, name)| change(at, name)).collect()
    };
    Ok(match step {
        DecoderStep::ByteLevel => vec![of_bytes(names)],
        DecoderStep::ByteFallback => fallen_back(names),
        DecoderStep::Fuse => vec![names.concat()],
        DecoderStep::Replace { pattern: ReplacePattern::Literal(text), content } => {
            each(&|_, name| name.replace(text, content))
        }
        DecoderStep::Replace { pattern: ReplacePattern::Regex(regex), content } => {
            let expression = Expression::new(regex)?;
            names.iter().map(|name| replaced(name, &expression, content)).collect::<Result<_>>()?
        }
        DecoderStep::Strip { content, start, stop } => {
            each(&|_, name| stripped(&name, *content, *start, *stop))
        }
        DecoderStep::Metaspace { replacement, drops_first } => each(&|at, name| {
            let space = if at > 0 || !drops_first { " " } else { "" };
            name.replace(*replacement, space)
        }),
        DecoderStep::WordSuffix(suffix) => {
            each(&|at, name| name.replace(suffix, if at < last { " " } else { "" }))
        }
        DecoderStep::WordPiece { prefix, cleanup } => {
            each(&|at, name| word_piece(&name, prefix, *cleanup, at == 0))
        }
    })
}

/// The text of names in GPT-2's characters; other names stand for themselves.
fn of_bytes(names: &[String]) -> String {
    let bytes =
        names.iter().map(|name| to_bytes(name).unwrap_or_else(|| name.clone().into_bytes()));
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>().concat()).into_owned()
}

/// Runs of names of bytes become their text, or U+FFFD for each if they are not UTF-8.
fn fallen_back(names: &[String]) -> Vec<String> {
    let (mut result, mut run) = (Vec::with_capacity(names.len()), Vec::new());
    for name in names {
        if let Some(byte) = byte_of(name) {
            run.push(byte);
            continue;
        }
        end_run(&mut run, &mut result);
        result.push(name.clone());
    }
    end_run(&mut run, &mut result);
    result
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
fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let are_digits = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn replaced(name: &str, expression: &Expression, content: &str) -> Result<String> {
    let mut text = String::new();
    expression.for_each(name, |range, is_match| {
        text.push_str(if is_match { content } else { &name[range] });
    })?;
    Ok(text)
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
        decode(names.iter().map(|name| (*name).to_owned()).collect(), steps).unwrap()
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
