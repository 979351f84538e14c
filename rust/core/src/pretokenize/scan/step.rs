//! One pretoken at a time, character by character: the readable scanner.
//!
//! It looks at nothing before the place where it stands, so it can begin at any border between two
//! pretokens. The branches stand in the order of the alternatives of the patterns.

use super::super::Ends;
use super::super::family::{Contraction, Family, Prefix, Tail};
use super::super::unicode::{ASCII, Class, class_of};

/// Push the ends of the pretokens from `start` on, until `ends` is full or the text is over.
pub(super) fn fill(family: Family, text: &str, mut start: usize, ends: &mut Ends) {
    while start < text.len() && !ends.is_full() {
        start = step(family, text, start);
        ends.push(start);
    }
}

/// Where the pretoken ends that starts at `start`, which must be inside the text.
pub(super) fn step(family: Family, text: &str, start: usize) -> usize {
    let at = Cursor { text, at: start };
    if family.contraction != Contraction::Suffix
        && let Some(end) = contraction(text, start, family.contraction == Contraction::AnyCase)
    {
        return end;
    }
    let (class, next) = at.read().expect("a pretoken starts inside the text");
    let prefix = match family.prefix {
        Prefix::Space => text.as_bytes()[start] == b' ',
        Prefix::Any => !class.is_letter() && class != Class::Number && class != Class::Newline,
    };
    if let Some(end) = word(family, at, next, prefix) {
        return end;
    }
    let space = text.as_bytes()[start] == b' ';
    if let Some(end) = number(family, at, next, space) {
        return end;
    }
    let punctuation = if space { next } else { at };
    let end = punctuation.skip(|class| !is_word(class) && !class.is_space());
    if end.at > punctuation.at {
        return tail(family.tail, end);
    }
    white_space(family, at)
}

fn is_word(class: Class) -> bool {
    class.is_letter() || class == Class::Number
}

/// A place in the text, between two characters.
#[derive(Clone, Copy)]
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl Cursor<'_> {
    /// The class of the next character, and the place behind it.
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

    /// The place behind all characters of these classes.
    #[inline]
    fn skip(self, mut is: impl FnMut(Class) -> bool) -> Self {
        let (bytes, mut place) = (self.text.as_bytes(), self);
        loop {
            // Runs may be long, and most are ASCII.
            while let Some(&byte) = bytes.get(place.at)
                && let Some(&class) = ASCII.get(usize::from(byte))
            {
                if !is(class) {
                    return place;
                }
                place.at += 1;
            }
            match place.read() {
                Some((class, next)) if is(class) => place = next,
                _ => return place,
            }
        }
    }
}

/// `'s 't 'd 'm 'll 've 're` at `at`: where it ends.
///
/// Without regard to case `s` is also the long s, U+017F.
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
        (0xC5, Some(0xBF)) if any_case => Some(at + 3),
        _ => None,
    }
}

/// A word with what may stand before it. `next` is the place behind the first character, which may
/// be a prefix.
fn word(family: Family, at: Cursor, next: Cursor, prefix: bool) -> Option<usize> {
    if !family.cased {
        let from = if prefix { next } else { at };
        let end = from.skip(Class::is_letter);
        return (end.at > from.at).then_some(end.at);
    }
    // A mark may be a prefix, or stand in a word; a prefix is tried first, and both times a word
    // with a lower-case part before one without.
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

/// `[upper or uncased]*[lower or uncased]+`: where it ends.
///
/// The first part takes all it can. If nothing is left for the second, it gives back characters up
/// to the last that has no case.
fn lower_word(at: Cursor) -> Option<usize> {
    let mut uncased = None;
    let mut place = at;
    while let Some((class, next)) = place.read()
        && is_upper(class)
    {
        place = next;
        if class != Class::Upper {
            uncased = Some(place.at);
        }
    }
    let end = place.skip(is_lower);
    if end.at > place.at { Some(end.at) } else { uncased }
}

/// `[upper or uncased]+[lower or uncased]*`: where it ends, if it has no lower-case part; otherwise
/// it is a [`lower_word`].
fn upper_word(at: Cursor) -> Option<usize> {
    let end = at.skip(is_upper);
    (end.at > at.at).then_some(end.at)
}

/// Digits, as many as go together, behind a space where that is allowed.
fn number(family: Family, at: Cursor, next: Cursor, space: bool) -> Option<usize> {
    let from = if space && family.prefix == Prefix::Space { next } else { at };
    let mut left = family.digits.map_or(usize::MAX, usize::from);
    let end = from.skip(|class| {
        let takes = class == Class::Number && left > 0;
        left = left.saturating_sub(1);
        takes
    });
    (end.at > from.at).then_some(end.at)
}

/// What is taken along behind punctuation that ends at `end`.
fn tail(tail: Tail, end: Cursor) -> usize {
    let rest = &end.text.as_bytes()[end.at..];
    let takes = |byte: &&u8| match tail {
        Tail::None => false,
        Tail::Newlines => matches!(byte, b'\r' | b'\n'),
        Tail::NewlinesAndSlashes => matches!(byte, b'\r' | b'\n' | b'/'),
    };
    end.at + rest.iter().take_while(takes).count()
}

/// White space: up to its last newline, or all at the end of the text, or all but the last
/// character, which goes with what follows.
fn white_space(family: Family, at: Cursor) -> usize {
    let end = at.skip(Class::is_space).at;
    let run = &at.text[at.at..end];
    let last = run.char_indices().next_back().map_or(at.at, |(last, _)| at.at + last);
    let newline = run.rfind(['\r', '\n']).map(|newline| at.at + newline + 1);
    let ends = end == at.text.len();
    match newline {
        Some(newline) if family.newlines && !(family.whole_end && ends) => newline,
        _ if ends || last == at.at => end,
        _ => last,
    }
}
