//! A text in memory, in one of several encodings.
//!
//! The tokenizer reads UTF-8. The thread that processes a text in another encoding first converts
//! it into a buffer, so there is never a second copy of all texts.
//!
//! A lone surrogate becomes U+FFFD, as in tiktoken; a pair of surrogates becomes its character.

use std::str::Utf8Error;

mod transcode;

pub(crate) use transcode::starts_char;
use transcode::{RUN_UNITS, Surrogate, surrogates};
pub use transcode::{count_chars, first_chars, lone_surrogate};

use crate::error::{Error, Result};
use crate::memory;

/// A borrowed text.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// UTF-8.
    Utf8(&'a str),
    /// UTF-8 that is checked when it is read.
    Bytes(&'a [u8]),
    /// UTF-8 in which each invalid part is read as U+FFFD.
    Lossy(&'a [u8]),
    /// One byte per character: the first 256 characters of Unicode.
    Latin1(&'a [u8]),
    /// UTF-16.
    Utf16(&'a [u16]),
    /// Four bytes per character; surrogates may occur.
    Utf32(&'a [u32]),
}

/// The largest number of bytes of a character in UTF-8.
pub(crate) const MAX_CHARACTER_BYTES: usize = 4;

/// The same as [`std::str::from_utf8`], but up to six times as fast on text in many languages.
///
/// ```
/// use bytepair::text::from_utf8;
/// assert_eq!(from_utf8("é".as_bytes()), Ok("é"));
/// assert_eq!(from_utf8(b"ab\xff").unwrap_err().valid_up_to(), 2);
/// ```
pub fn from_utf8(bytes: &[u8]) -> std::result::Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

impl<'a> Text<'a> {
    /// The number of units.
    pub fn len(&self) -> usize {
        match self {
            Self::Utf8(text) => text.len(),
            Self::Bytes(bytes) | Self::Lossy(bytes) | Self::Latin1(bytes) => bytes.len(),
            Self::Utf16(units) => units.len(),
            Self::Utf32(units) => units.len(),
        }
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the units are bytes of UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        matches!(self, Self::Utf8(_) | Self::Bytes(_) | Self::Lossy(_))
    }

    /// The number of units that are not ASCII among the first `first` units.
    pub(crate) fn beyond_ascii(&self, first: usize) -> usize {
        fn count<U: Copy + Into<u32>>(units: &[U], first: usize) -> usize {
            units.iter().take(first).filter(|&&unit| unit.into() >= 0x80).count()
        }
        match self {
            Self::Utf8(text) => count(text.as_bytes(), first),
            Self::Bytes(bytes) | Self::Lossy(bytes) | Self::Latin1(bytes) => count(bytes, first),
            Self::Utf16(units) => count(units, first),
            Self::Utf32(units) => count(units, first),
        }
    }

    /// The text as UTF-8: itself if possible, else converted into `buffer`.
    ///
    /// Fails with [`Error::TextNotUtf8`] if [`Bytes`](Self::Bytes) are not UTF-8.
    ///
    /// ```
    /// use bytepair::Text;
    /// let mut buffer = String::new();
    /// assert_eq!(Text::Latin1(b"caf\xe9").read(&mut buffer)?, "café");
    /// assert_eq!(Text::Utf16(&[0xD83D, 0xDE00, 0xD83D]).read(&mut buffer)?, "😀\u{fffd}");
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn read<'b>(&self, buffer: &'b mut String) -> Result<&'b str>
    where
        'a: 'b,
    {
        buffer.clear();
        match *self {
            Self::Utf8(text) => return Ok(text),
            Self::Bytes(bytes) => {
                let not_utf8 =
                    |e: Utf8Error| Error::TextNotUtf8 { document: 0, at: e.valid_up_to() };
                return from_utf8(bytes).map_err(not_utf8);
            }
            Self::Lossy(bytes) => {
                if let Ok(text) = from_utf8(bytes) {
                    return Ok(text);
                }
                // Each byte may become the three bytes of U+FFFD, in a string that grows by
                // doubling.
                memory::check(6 * bytes.len())?;
                *buffer = String::from_utf8_lossy(bytes).into_owned();
            }
            Self::Latin1(bytes) => transcode::write(bytes, buffer)?,
            Self::Utf16(units) => transcode::write(units, buffer)?,
            Self::Utf32(units) => transcode::write(units, buffer)?,
        }
        Ok(buffer)
    }

    /// The first lone surrogate: the index of its unit, and its code.
    ///
    /// ```
    /// use bytepair::Text;
    /// assert_eq!(Text::Utf16(&[0xD83D, 0xDE00, 0xD83D]).lone_surrogate(), Some((2, 0xD83D)));
    /// assert_eq!(Text::Utf8("😀").lone_surrogate(), None);
    /// ```
    #[must_use]
    pub fn lone_surrogate(&self) -> Option<(usize, u32)> {
        let lone = self.surrogates().find(|surrogate| !surrogate.is_pair);
        lone.map(|surrogate| (surrogate.at, surrogate.code))
    }

    /// The characters that are two units: the index of each among the characters of the text.
    pub(crate) fn pairs(&self) -> Result<Vec<i64>> {
        let pairs = self.surrogates().filter(|surrogate| surrogate.is_pair).zip(0..);
        let indices = pairs.map(|(pair, before)| pair.at - before);
        memory::collect(indices.map(|index| i64::try_from(index).unwrap_or(i64::MAX)))
    }

    fn surrogates(&self) -> Box<dyn Iterator<Item = Surrogate> + '_> {
        match self {
            Self::Utf16(units) => Box::new(surrogates(units)),
            Self::Utf32(units) => Box::new(surrogates(units)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The low surrogate that the text starts with, and the high surrogate that it ends with, if
    /// any: the halves of pairs that continue in other texts.
    pub(crate) fn half_pairs(&self) -> (Option<u16>, Option<u16>) {
        let narrow = |unit: Option<&u32>| unit.and_then(|&unit| u16::try_from(unit).ok());
        let (first, last) = match self {
            Self::Utf16(units) => (units.first().copied(), units.last().copied()),
            Self::Utf32(units) => (narrow(units.first()), narrow(units.last())),
            _ => (None, None),
        };
        let is_low = |unit: &u16| (0xDC00..0xE000).contains(unit);
        (first.filter(is_low), last.filter(|unit| (0xD800..0xDC00).contains(unit)))
    }

    /// Split the text at unit `at`, which must not be inside a character.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        macro_rules! split {
            ($kind:ident, $units:ident) => {{
                let (left, right) = $units.split_at(at);
                (Self::$kind(left), Self::$kind(right))
            }};
        }
        match self {
            Self::Utf8(text) => split!(Utf8, text),
            Self::Bytes(bytes) => split!(Bytes, bytes),
            Self::Lossy(bytes) => split!(Lossy, bytes),
            Self::Latin1(bytes) => split!(Latin1, bytes),
            Self::Utf16(units) => split!(Utf16, units),
            Self::Utf32(units) => split!(Utf32, units),
        }
    }

    /// The first position after `from`, in units, between two characters for which `condition`
    /// holds, among the next `most` units. Positions next to surrogates are skipped.
    pub(crate) fn find_boundary(
        &self,
        from: usize,
        most: usize,
        condition: impl Fn(char, char) -> bool,
    ) -> Option<usize> {
        fn near<U: Copy + Into<u32>>(
            units: &[U],
            from: usize,
            most: usize,
        ) -> impl Iterator<Item = (usize, Option<char>)> {
            let near = units.iter().enumerate().skip(from).take(most.saturating_add(1));
            near.map(|(at, &unit)| (at, char::from_u32(unit.into())))
        }
        match self {
            Self::Utf8(text) => {
                let start = (from..text.len()).find(|&at| text.is_char_boundary(at))?;
                let chars = text[start..].char_indices().take_while(|(at, _)| *at < most);
                find_between(chars.map(|(at, c)| (start + at, Some(c))), condition)
            }
            Self::Bytes(bytes) | Self::Lossy(bytes) => {
                let within = &bytes[..bytes.len().min(from.saturating_add(most))];
                let cut = within.get(from..)?.iter().take_while(|&&byte| !starts_char(byte));
                let mut end = from + cut.count();
                let chars = within[end..].utf8_chunks().flat_map(|chunk| {
                    let start = end;
                    end += chunk.valid().len() + chunk.invalid().len();
                    let valid = chunk.valid().char_indices();
                    valid.map(move |(at, c)| (start + at, Some(c))).chain([(end, None)])
                });
                find_between(chars, condition)
            }
            Self::Latin1(bytes) => find_between(near(bytes, from, most), condition),
            Self::Utf16(units) => find_between(near(units, from, most), condition),
            Self::Utf32(units) => find_between(near(units, from, most), condition),
        }
    }
}

/// The first position between two adjacent characters for which `condition` holds. No boundary is next
/// to `None`, a surrogate or bytes that are not UTF-8.
fn find_between(
    chars: impl Iterator<Item = (usize, Option<char>)>,
    condition: impl Fn(char, char) -> bool,
) -> Option<usize> {
    // In a run of the same character, the pairs are equal and need not be tested again.
    let (mut before, mut tested) = (None, None);
    for (at, after) in chars {
        let pair = before.zip(after);
        if tested != pair && pair.is_some_and(|(before, after)| condition(before, after)) {
            return Some(at);
        }
        (tested, before) = (pair, after);
    }
    None
}

/// The width of the widest character of a text, and the number of characters.
///
/// The width is 0 for ASCII, else 1, 2 or 4 bytes.
///
/// ```
/// assert_eq!(bytepair::text::measure("cafe"), (0, 4));
/// assert_eq!(bytepair::text::measure("café"), (1, 4));
/// assert_eq!(bytepair::text::measure("中a"), (2, 2));
/// assert_eq!(bytepair::text::measure("😀"), (4, 1));
/// ```
pub fn measure(text: &str) -> (usize, usize) {
    let (mut widest, mut count) = (0, 0);
    for block in text.as_bytes().chunks(transcode::BLOCK_BYTES) {
        // The largest byte of UTF-8 is a lead, if there is any, and a greater code point never has
        // a smaller lead. Both loops have no branch, and the second finds the block in the cache.
        widest = block.iter().fold(widest, |widest: u8, &byte| widest.max(byte));
        count += transcode::count_in_block(block);
    }
    let width = match widest {
        0..0x80 => 0,
        // C3 BF is U+00FF, the last character of one byte; EF BF BF is U+FFFF.
        0x80..0xC4 => 1,
        0xC4..0xF0 => 2,
        _ => 4,
    };
    (width, count)
}

/// Write a text with one unit per character, which `of` makes. [`measure`] returns the width and the
/// number of units.
///
/// # Panics
///
/// If `out` does not have exactly one unit per character.
pub fn spread<U: Copy + From<u8>>(text: &str, out: &mut [U], of: impl Fn(char) -> U) {
    let (mut rest, mut done) = (text, 0);
    while let Some(run) = rest.as_bytes().first_chunk::<RUN_UNITS>() {
        if run.is_ascii()
            && let Some(destination) = out[done..].first_chunk_mut::<RUN_UNITS>()
        {
            *destination = run.map(U::from);
            rest = &rest[RUN_UNITS..];
            done += RUN_UNITS;
        } else {
            // The run may cut its last character. Then the part ends before it, at most three bytes
            // short.
            let whole = (0..=RUN_UNITS).rev().find(|&at| rest.is_char_boundary(at));
            let (part, after) = rest.split_at(whole.unwrap_or(0));
            for character in part.chars() {
                out[done] = of(character);
                done += 1;
            }
            rest = after;
        }
    }
    for character in rest.chars() {
        out[done] = of(character);
        done += 1;
    }
    assert_eq!(done, out.len(), "one unit per character");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: Text<'_>) -> String {
        let mut buffer = "previous content".to_owned();
        text.read(&mut buffer).unwrap().to_owned()
    }

    /// Units of all kinds, runs of ASCII, adjacent surrogates.
    fn units() -> impl Strategy<Value = Vec<u16>> {
        let unit = prop_oneof![
            3 => prop::collection::vec(0x20u16..0x7F, 1..40),
            2 => any::<u16>().prop_map(|unit| vec![unit]),
            2 => (0xD800u16..0xE000).prop_map(|unit| vec![unit]),
            1 => any::<char>().prop_map(|c| c.encode_utf16(&mut [0; 2]).to_vec()),
        ];
        prop::collection::vec(unit, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn reading_utf16_equals_the_standard_library(units in units()) {
            let plain = String::from_utf16_lossy(&units);
            prop_assert_eq!(read(Text::Utf16(&units)), &*plain);
            let wide: Vec<u32> = units.iter().map(|&unit| u32::from(unit)).collect();
            prop_assert_eq!(read(Text::Utf32(&wide)), &*plain, "pairs in wide units");
            let chars: Vec<u32> = plain.chars().map(u32::from).collect();
            prop_assert_eq!(read(Text::Utf32(&chars)), plain);
        }

        #[test]
        fn latin1_bytes_are_code_points(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let plain: String = bytes.iter().map(|&byte| char::from(byte)).collect();
            prop_assert_eq!(read(Text::Latin1(&bytes)), plain);
            prop_assert_eq!(read(Text::Lossy(&bytes)), String::from_utf8_lossy(&bytes));
        }
    }

    proptest! {
        #[test]
        fn spreading_writes_the_characters(
            parts in prop::collection::vec(prop_oneof![
                "[ -~]{0,40}", "[a-é]{0,20}", "[a中文é]{0,20}", any::<char>().prop_map(String::from),
            ], 0..8),
        ) {
            let text = parts.concat();
            let chars: Vec<u32> = text.chars().map(u32::from).collect();
            let widest = chars.iter().copied().max().unwrap_or(0);
            let (width, count) = measure(&text);
            prop_assert_eq!(count, chars.len());
            let limits = [(0, 0x80), (1, 0x100), (2, 0x1_0000), (4, 0x11_0000)];
            prop_assert_eq!(width, limits.iter().find(|(_, limit)| widest < *limit).unwrap().0);
            let mut wide = vec![0u32; count];
            spread(&text, &mut wide, u32::from);
            prop_assert_eq!(&wide, &chars);
            if width <= 2 {
                let mut units = vec![0u16; count];
                spread(&text, &mut units, |c| c as u16);
                prop_assert!(units.iter().map(|&unit| u32::from(unit)).eq(chars.iter().copied()));
            }
            if width <= 1 {
                let mut units = vec![0u8; count];
                spread(&text, &mut units, |c| c as u8);
                prop_assert!(units.iter().map(|&unit| u32::from(unit)).eq(chars));
            }
        }
    }

    /// Two leading surrogates and a trailing one, at every position of a run.
    #[test]
    fn a_pair_after_a_lone_surrogate_is_a_character() {
        for before in 0..2 * RUN_UNITS {
            let mut units = vec![u16::from(b'x'); before];
            units.extend([0x4E2D, 0xD877, 0xDA26, 0xDC90]);
            units.resize(before + 4 + RUN_UNITS, u16::from(b'y'));
            assert_eq!(read(Text::Utf16(&units)), String::from_utf16_lossy(&units));
        }
    }

    proptest! {
        /// Texts with one or two damaged bytes.
        #[test]
        fn checking_utf8_equals_the_standard_library(
            text in "[a中文é😀]{0,90}",
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            start in 0usize..4,
        ) {
            let mut bytes = text.into_bytes();
            bytes.push(b'a');
            for (index, byte) in damage {
                *index.get_mut(&mut bytes) = byte;
            }
            let bytes = &bytes[start.min(bytes.len())..];
            prop_assert_eq!(from_utf8(bytes), std::str::from_utf8(bytes));
        }
    }

    #[test]
    fn invalid_utf8_is_an_error_with_its_position() {
        let mut buffer = String::new();
        let error = Text::Bytes(b"ab\xffc").read(&mut buffer).unwrap_err();
        assert_eq!(error, Error::TextNotUtf8 { document: 0, at: 2 });
        assert_eq!(Text::Bytes("é".as_bytes()).read(&mut buffer).unwrap(), "é");
    }
}
