//! The readable scanner: one pretoken at a time, character by character.
//!
//! It never looks back, so it can start at any pretoken. The branches are in the order of the
//! alternatives of the patterns.

use crate::pretokenize::ends::PretokenEnds;
use crate::pretokenize::pattern_shape::{Contraction, PatternShape, Prefix, Tail};
use crate::pretokenize::unicode::{ASCII, Class, class_of};

/// Push the ends of the pretokens from `start` on, until `ends` is full or the text ends.
pub(super) fn fill(shape: PatternShape, text: &str, mut start: usize, ends: &mut PretokenEnds) {
    while start < text.len() && !ends.is_full() {
        start = step(shape, text, start);
        ends.push(start);
    }
}

/// The end of the pretoken that starts at `start`, which must be inside the text.
pub(super) fn step(shape: PatternShape, text: &str, start: usize) -> usize {
    let at = Cursor { text, at: start };
    if shape.contraction != Contraction::Suffix
        && let Some(end) = contraction(text, start, shape.contraction == Contraction::AnyCase)
    {
        return end;
    }
    let (class, next) = at.read().expect("a pretoken starts inside the text");
    let prefix = match shape.prefix {
        Prefix::Space => text.as_bytes()[start] == b' ',
        Prefix::Any => !class.is_letter() && class != Class::Number && class != Class::Newline,
    };
    if let Some(end) = word(shape, at, next, prefix) {
        return end;
    }
    let space = text.as_bytes()[start] == b' ';
    if let Some(end) = number(shape, at, next, space) {
        return end;
    }
    // One space may precede punctuation. Without punctuation after it, it is white space.
    let punctuation = if space { next } else { at };
    let end = punctuation.skip(|class| !is_word(class) && !class.is_space());
    if end.at > punctuation.at {
        return tail(shape.tail, end);
    }
    white_space(shape, at)
}

fn is_word(class: Class) -> bool {
    class.is_letter() || class == Class::Number
}

/// A position in the text, between two characters.
#[derive(Clone, Copy)]
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl Cursor<'_> {
    /// The class of the next character, and the position after it.
    #[inline]
    fn read(self) -> Option<(Class, Self)> {
        let bytes = self.text.as_bytes();
        let &first = bytes.get(self.at)?;
        if let Some(&class) = ASCII.get(usize::from(first)) {
            return Some((class, Self { at: self.at + 1, ..self }));
        }
        let c = self.text[self.at..].chars().next()?;
        Some((class_of(c.into()), Self { at: self.at + c.len_utf8(), ..self }))
    }

    /// The position after a run of characters of these classes.
    #[inline]
    fn skip(self, mut is: impl FnMut(Class) -> bool) -> Self {
        let (bytes, mut end) = (self.text.as_bytes(), self);
        loop {
            // A fast path, because runs may be long, and most are ASCII.
            while let Some(&byte) = bytes.get(end.at)
                && let Some(&class) = ASCII.get(usize::from(byte))
            {
                if !is(class) {
                    return end;
                }
                end.at += 1;
            }
            match end.read() {
                Some((class, next)) if is(class) => end = next,
                _ => return end,
            }
        }
    }
}

/// The end of a contraction at `at`: `'s 't 'd 'm 'll 've 're`.
///
/// With `any_case`, `s` includes the long s, U+017F.
pub(super) fn contraction(text: &str, at: usize, any_case: bool) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    let letter = |index: usize| {
        let &byte = rest.get(index)?;
        Some(if any_case { byte.to_ascii_lowercase() } else { byte })
    };
    if rest.first() != Some(&b'\'') {
        return None;
    }
    match (letter(1)?, letter(2)) {
        (b's' | b'd' | b'm' | b't', _) => Some(at + 2),
        (b'l', Some(b'l')) | (b'v' | b'r', Some(b'e')) => Some(at + 3),
        // U+017F is C5 BF in UTF-8; its simple case folding is `s`.
        (0xC5, Some(0xBF)) if any_case => Some(at + 3),
        _ => None,
    }
}

/// The end of a word with its prefix. `next` is the position after the first character; `prefix` is
/// whether that character may be a prefix.
fn word(shape: PatternShape, at: Cursor, next: Cursor, prefix: bool) -> Option<usize> {
    if !shape.is_cased() {
        let from = if prefix { next } else { at };
        let end = from.skip(Class::is_letter);
        return (end.at > from.at).then_some(end.at);
    }
    // A mark may be a prefix or part of the word. A word with a lower-case part is tried before a
    // word without one, each first with a prefix, then without.
    let with_prefix = prefix.then_some(next);
    let end = with_prefix
        .and_then(lower_word)
        .or_else(|| lower_word(at))
        .or_else(|| with_prefix.and_then(upper_word))
        .or_else(|| upper_word(at))?;
    Some(contraction(at.text, end, true).unwrap_or(end))
}

fn is_upper(class: Class) -> bool {
    matches!(class, Class::Upper | Class::Uncased | Class::Mark)
}

fn is_lower(class: Class) -> bool {
    matches!(class, Class::Lower | Class::Uncased | Class::Mark)
}

/// The end of `[upper or uncased]*[lower or uncased]+`.
///
/// The first part is greedy. If no character is left for the second part, the first part is
/// shortened by backtracking, so that the match ends with its last character without case.
fn lower_word(at: Cursor) -> Option<usize> {
    let mut uncased = None;
    let mut upper = at;
    while let Some((class, next)) = upper.read()
        && is_upper(class)
    {
        upper = next;
        if class != Class::Upper {
            uncased = Some(upper.at);
        }
    }
    let end = upper.skip(is_lower);
    if end.at > upper.at { Some(end.at) } else { uncased }
}

/// The end of `[upper or uncased]+[lower or uncased]*` without a lower-case part; a word with one
/// is a [`lower_word`].
fn upper_word(at: Cursor) -> Option<usize> {
    let end = at.skip(is_upper);
    (end.at > at.at).then_some(end.at)
}

/// The end of a run of digits, at most as many as the limit; a space may precede it if the shape
/// allows that.
fn number(shape: PatternShape, at: Cursor, next: Cursor, space: bool) -> Option<usize> {
    let from = if space && shape.prefix == Prefix::Space { next } else { at };
    let mut left = shape.digits.map_or(usize::MAX, usize::from);
    let end = from.skip(|class| {
        let takes = class == Class::Number && left > 0;
        left = left.saturating_sub(1);
        takes
    });
    (end.at > from.at).then_some(end.at)
}

/// The end of the tail of punctuation that ends at `end`.
fn tail(tail: Tail, end: Cursor) -> usize {
    let rest = &end.text.as_bytes()[end.at..];
    let takes = |byte: &&u8| match tail {
        Tail::None => false,
        Tail::Newlines => matches!(byte, b'\r' | b'\n'),
        Tail::NewlinesAndSlashes => matches!(byte, b'\r' | b'\n' | b'/'),
    };
    end.at + rest.iter().take_while(takes).count()
}

/// The end of a pretoken of white space: after the last newline; or all of the white space if the
/// text ends there; or all but its last character, which belongs to the next pretoken.
fn white_space(shape: PatternShape, at: Cursor) -> usize {
    let end = at.skip(Class::is_space).at;
    let run = &at.text[at.at..end];
    let last = run.char_indices().next_back().map_or(at.at, |(last, _)| at.at + last);
    // A newline has one byte, so the match ends one byte after the start of the last.
    let newline = run.rfind(['\r', '\n']).map(|newline| at.at + newline + 1);
    let ends = end == at.text.len();
    match newline {
        Some(newline) if shape.prefix == Prefix::Any && !(shape.whole_end && ends) => newline,
        _ if ends || last == at.at => end,
        _ => last,
    }
}
