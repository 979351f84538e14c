//! Leaves the spaces at the ends of tokens out of their spans, as Hugging Face `tokenizers` does after a
//! `ByteLevel` or `RobertaProcessing` with `trim_offsets`.
//!
//! What counts is the name that `tokenizers` has for a token: the spaces of an ordinary token are
//! written as U+0120 or U+2581 there, and the name of an added token is the text as which it was found.

use crate::encode::aligned::AlignedId;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::MergeRule;

/// What `ByteLevel` writes for a space in a name.
const SPACE: char = '\u{120}';

/// The spaces at one end of a name: the bytes and the characters of the text that they stand for.
type Spaces = [i64; 2];

/// Trim the spans of the ids of a text, in bytes and in characters, if the post-processor does that.
pub(super) fn trim(
    tokenizer: &Tokenizer,
    ids: &[AlignedId],
    bytes: &mut [[i64; 2]],
    chars: &mut [[i64; 2]],
) {
    let Some(keeps_first) = tokenizer.rules().post_processor.trim_offsets else { return };
    for (index, id) in ids.iter().enumerate() {
        let (mut before, after) = spaces(tokenizer, id);
        // The pre-tokenizer may have put a single space at the start of the text.
        if keeps_first && before[1] == 1 && (index == 0 || id.span[0] == 0) {
            before = [0; 2];
        }
        for (span, unit) in [(&mut bytes[index], 0), (&mut chars[index], 1)] {
            span[0] = span[1].min(span[0] + before[unit]);
            if span[1] >= after[unit] {
                span[1] = span[0].max(span[1] - after[unit]);
            }
        }
    }
}

/// The spaces at the start and at the end of the name of a token.
fn spaces(tokenizer: &Tokenizer, AlignedId { id, name, .. }: &AlignedId) -> (Spaces, Spaces) {
    let is_written = |c: char| c == SPACE || c.is_whitespace();
    if let Some(name) = name {
        return ends(name, is_written, char::len_utf8);
    }
    let bytes = tokenizer.vocabulary().bytes(*id).unwrap_or_default();
    let is_space = |c: char| match tokenizer.rule() {
        _ if tokenizer.rules().symbols.is_some() => is_written(c),
        MergeRule::Characters => c != ' ' && c.is_whitespace(),
        MergeRule::Ranks | MergeRule::Merges { .. } => c == ' ',
    };
    let size = |c: char| if c == SPACE { 1 } else { c.len_utf8() };
    ends(&String::from_utf8_lossy(bytes), is_space, size)
}

/// The spaces at the start and at the end of a name; each stands for `size` bytes.
fn ends(
    name: &str,
    is_space: impl Fn(char) -> bool,
    size: impl Fn(char) -> usize,
) -> (Spaces, Spaces) {
    let add = |[bytes, chars]: Spaces, c| [bytes + i64::try_from(size(c)).unwrap_or(0), chars + 1];
    let start = name.chars().take_while(|&c| is_space(c)).fold([0; 2], add);
    (start, name.chars().rev().take_while(|&c| is_space(c)).fold([0; 2], add))
}
