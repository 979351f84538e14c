//! Spans of ids in their text, and truncation of a text to a number of ids.
//!
//! The bytes of the ids of a text, end to end, are the text. So the byte span of an id follows from
//! the lengths of the ids before; its character span covers every character of which it has a byte.
//! With the spaces of SentencePiece, a space before the text takes no place in it, and U+2581 has
//! more bytes than its space.

use crate::encode::EncodeOptions;
use crate::encode::options::TextOrId;
use crate::error::{Error, Result};
use crate::memory;
use crate::pretokenize::PartStart;
use crate::text::{Text, count_chars, starts_char};
use crate::tokenizer::Tokenizer;

/// The ids of a text and their spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spans {
    /// The ids.
    pub ids: Vec<u32>,
    /// The start and the end of each id, in bytes of the text's UTF-8.
    pub bytes: Vec<[i64; 2]>,
    /// The start and the end of each id, in characters.
    pub chars: Vec<[i64; 2]>,
}

/// The UTF-8 of U+2581, which becomes a space.
const META: &[u8] = "\u{2581}".as_bytes();

/// Which end of a truncated text to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The start.
    Start,
    /// The end.
    End,
}

impl Tokenizer {
    /// Encode a text with the spans of its ids. Ids that `options` add before and after the text
    /// have empty spans. Fails as [`encode_with`](Self::encode_with) does.
    ///
    /// ```
    /// use bytepair::{Pattern, Text, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let spans = tokenizer.encode_with_spans(&Text::Utf8("aé"), &Default::default())?;
    /// assert_eq!(spans.bytes, [[0, 1], [1, 2], [2, 3]]);
    /// assert_eq!(spans.chars, [[0, 1], [1, 2], [1, 2]]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn encode_with_spans(&self, text: &Text<'_>, options: &EncodeOptions) -> Result<Spans> {
        let mut buffer = String::new();
        let text = text.read(&mut buffer)?;
        self.check_places(text)?;
        let mut spans = Spans::default();
        self.encoder().call().append(&Text::Utf8(text), options, &mut spans.ids)?;
        let added = [options.prepend.is_some(), options.append.is_some()].map(usize::from);
        let covering = added[0]..spans.ids.len() - added[1];
        let lengths = self.lengths(&spans.ids[covering.clone()], text, options)?;
        spans.bytes = memory::with_room(spans.ids.len())?;
        spans.chars = memory::with_room(spans.ids.len())?;
        let mut place = Place::default();
        for index in 0..spans.ids.len() {
            let length = index.checked_sub(covering.start).and_then(|index| lengths.get(index));
            let (bytes, chars) = place.step(text.as_bytes(), length.copied().unwrap_or_default());
            spans.bytes.push(bytes);
            spans.chars.push(chars);
        }
        Ok(spans)
    }

    /// Truncate a text to at most `most` ids; the text of special tokens counts as ordinary text.
    ///
    /// The result is the text of the first (or last) `most` ids, without incomplete characters.
    /// Encoded by itself, that text may have more ids, because it now ends within a token; then it
    /// is truncated again in the same way. So the result always has at most `most` ids.
    #[doc(hidden)]
    pub fn truncate_text<'t>(&self, mut text: &'t str, most: usize, keep: Keep) -> Result<&'t str> {
        self.check_places(text)?;
        if self.pattern().normalizes() {
            return self.truncate_spaced(text, most, keep);
        }
        let mut call = self.encoder().call();
        loop {
            let enough = if keep == Keep::Start { most.saturating_add(1) } else { usize::MAX };
            let ids = call.encode_beginning(text, enough)?;
            if ids.len() <= most {
                return Ok(text);
            }
            let length = |id: &u32| self.vocabulary().token_length(*id);
            let kept = match keep {
                Keep::Start => &ids[..most],
                Keep::End => &ids[ids.len() - most..],
            };
            let kept: usize = kept.iter().map(length).sum();
            if kept >= text.len() {
                return Err(Error::Contradiction);
            }
            text = match keep {
                Keep::Start => &text[..boundary((0..=kept).rev(), text)],
                Keep::End => &text[boundary(text.len() - kept..=text.len(), text)..],
            };
        }
    }

    /// [`truncate_text`](Self::truncate_text) for text whose spaces change.
    fn truncate_spaced<'t>(&self, mut text: &'t str, most: usize, keep: Keep) -> Result<&'t str> {
        let plain = EncodeOptions::default();
        loop {
            let ids = self.encode(text)?;
            if ids.len() <= most {
                return Ok(text);
            }
            let lengths = self.lengths(&ids, text, &plain)?;
            let kept = |count: usize| -> usize {
                match keep {
                    Keep::Start => lengths[..count].iter().sum(),
                    Keep::End => lengths[lengths.len() - count..].iter().sum(),
                }
            };
            // The space before the text is an id without length.
            let shorter = (0..=most).rev().map(kept).find(|&kept| kept < text.len());
            let kept = shorter.unwrap_or_default();
            text = match keep {
                Keep::Start => &text[..boundary((0..=kept).rev(), text)],
                Keep::End => &text[boundary(text.len() - kept..=text.len(), text)..],
            };
        }
    }

    /// The number of bytes of the text that each id covers. Fails unless they cover all of it.
    fn lengths(&self, ids: &[u32], text: &str, options: &EncodeOptions) -> Result<Vec<usize>> {
        let length = |id: u32| self.vocabulary().token_length(id);
        if !self.pattern().normalizes() {
            self.check_lengths(ids, text.len())?;
            return memory::collect(ids.iter().map(|&id| length(id)));
        }
        let mut lengths = memory::with_room(ids.len())?;
        let mut ids = ids.iter().map(|&id| length(id));
        let mut next = || ids.next().filter(|&length| length > 0).ok_or(Error::Contradiction);
        options.divide(text, PartStart::Text, |part| match part {
            TextOrId::Id(_) => memory::push(&mut lengths, next()?),
            TextOrId::Text(part, start) => {
                let mut added = usize::from(self.pattern().adds_space(part, start));
                let mut rest = part.as_bytes();
                while added + rest.len() > 0 {
                    let covered = next()?.checked_sub(added).ok_or(Error::Contradiction)?;
                    added = 0;
                    let length = Self::unspaced(rest, covered)?;
                    memory::push(&mut lengths, length)?;
                    rest = &rest[length..];
                }
                Ok(())
            }
        })?;
        if ids.next().is_some() { Err(Error::Contradiction) } else { Ok(lengths) }
    }

    /// The number of bytes at the start of a text that become `covered` bytes when its spaces
    /// change. Fails if it is too short.
    fn unspaced(text: &[u8], covered: usize) -> Result<usize> {
        let mut length = 0;
        for _ in 0..covered {
            let rest = text.get(length..).filter(|rest| !rest.is_empty());
            let meta = rest.ok_or(Error::Contradiction)?.starts_with(META);
            length += if meta { META.len() } else { 1 };
        }
        Ok(length)
    }

    /// Fails unless the ids cover exactly `length` bytes; code that walks through both relies on
    /// it.
    pub(crate) fn check_lengths(&self, ids: &[u32], length: usize) -> Result<()> {
        let sum: usize = ids.iter().map(|&id| self.vocabulary().token_length(id)).sum();
        if sum == length { Ok(()) } else { Err(Error::Contradiction) }
    }
}

/// The first place that is not inside a character.
fn boundary(mut places: impl Iterator<Item = usize>, text: &str) -> usize {
    places.find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// A position in a text.
#[derive(Default)]
struct Place {
    bytes: usize,
    /// The number of characters that start before the position.
    chars: usize,
}

impl Place {
    /// Advance by `length` bytes; returns the span passed, in bytes and in characters.
    fn step(&mut self, text: &[u8], length: usize) -> ([i64; 2], [i64; 2]) {
        let end = self.bytes + length;
        let inside = length > 0 && !starts_char(text[self.bytes]);
        let first = self.chars - usize::from(inside);
        self.chars += count_chars(&text[self.bytes..end]);
        let bytes = [self.bytes, end].map(number);
        self.bytes = end;
        (bytes, [first, self.chars].map(number))
    }
}

fn number(place: usize) -> i64 {
    i64::try_from(place).expect("what is in memory has less than 2^63 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, Vocabulary};
    use proptest::prelude::*;

    /// Tokens that start or end within characters.
    fn tokenizer() -> Tokenizer {
        let bytes = (0..=255u8).map(|byte| vec![byte]);
        let more: [&[u8]; 6] = [b"ab", b"\xa9a", b"\xb8\xad", b"b\xe4\xb8", b" the", b"abab"];
        let tokens = bytes.chain(more.map(<[u8]>::to_vec)).zip(0..);
        let vocabulary = Vocabulary::new(tokens, [("<s>".to_owned(), 300)]).unwrap();
        Tokenizer::from_ranks(vocabulary, Pattern::new("gpt4").unwrap()).unwrap()
    }

    proptest! {
        /// For each id, look at every character.
        #[test]
        fn spans_are_what_was_covered(text in "[abé中😀 ]{0,30}") {
            let tokenizer = tokenizer();
            let options = EncodeOptions { prepend: Some(300), append: Some(65), finder: None };
            let spans = tokenizer.encode_with_spans(&Text::Utf8(&text), &options).unwrap();
            prop_assert_eq!(&spans.ids, &tokenizer.encode_with(&text, &options).unwrap());
            let last = spans.ids.len() - 1;
            let whole = i64::try_from(text.chars().count()).unwrap();
            let size = number(text.len());
            prop_assert_eq!((spans.bytes[0], spans.chars[0]), ([0, 0], [0, 0]));
            prop_assert_eq!((spans.bytes[last], spans.chars[last]), ([size, size], [whole, whole]));
            let mut start = 0;
            for index in 1..last {
                let end = start + tokenizer.token_bytes(spans.ids[index]).unwrap().len();
                prop_assert_eq!(spans.bytes[index], [start, end].map(number));
                let touched = text.char_indices().enumerate().filter(|(_, (at, c))| {
                    *at < end && start < at + c.len_utf8()
                });
                let touched: Vec<usize> = touched.map(|(place, _)| place).collect();
                let chars = [touched[0], touched[touched.len() - 1] + 1].map(number);
                prop_assert_eq!(spans.chars[index], chars);
                start = end;
            }
        }

        #[test]
        fn a_text_is_cut_as_the_plain_way_cuts_it(text in "[abé中😀 the]{0,30}", most in 0usize..12) {
            let tokenizer = tokenizer();
            for keep in [Keep::Start, Keep::End] {
                let cut = tokenizer.truncate_text(&text, most, keep).unwrap();
                prop_assert!(tokenizer.encode(cut).unwrap().len() <= most);
                let mut plain = text.clone();
                loop {
                    let ids = tokenizer.encode(&plain).unwrap();
                    if ids.len() <= most { break; }
                    let kept = match keep {
                        Keep::Start => &ids[..most],
                        Keep::End => &ids[ids.len() - most..],
                    };
                    let mut bytes = tokenizer.decode_bytes(kept).unwrap();
                    while std::str::from_utf8(&bytes).is_err() {
                        bytes.remove(if keep == Keep::Start { bytes.len() - 1 } else { 0 });
                    }
                    plain = String::from_utf8(bytes).unwrap();
                }
                prop_assert_eq!(cut, plain);
            }
        }
    }
}
