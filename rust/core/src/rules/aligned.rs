//! A text whose characters know which part of the original text they stand for.
//!
//! Normalizers and pre-tokenizers change, drop and add characters. Each character keeps its *span* in
//! the original text, so that every id has one, whatever was changed. The spans are those of Hugging
//! Face `tokenizers`: a new character has the span of a neighbour.

use crate::error::Result;
use crate::memory;

/// A range of bytes of the original text.
pub(crate) type SourceSpan = [u32; 2];

/// A character, and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlignedChar {
    pub(crate) character: char,
    pub(crate) span: SourceSpan,
}

/// A text with spans.
pub(crate) type AlignedText = Vec<AlignedChar>;

/// Bytes of memory for each character of a text while it is changed: twice the character, its text and
/// its position.
pub(crate) const BYTES_PER_CHAR: usize = 40;

/// The characters of a text, each with its own span. Fails if there is not enough memory, or if the
/// text is longer than 4 GiB.
pub(crate) fn aligned(text: &str) -> Result<AlignedText> {
    let too_long = text.len() > u32::MAX as usize;
    memory::check(if too_long { usize::MAX } else { text.len().saturating_mul(BYTES_PER_CHAR) })?;
    let mut at = 0;
    let mut result = AlignedText::with_capacity(text.len());
    for character in text.chars() {
        let end = at + utf8_length(character);
        result.push(AlignedChar { character, span: [at, end] });
        at = end;
    }
    Ok(result)
}

/// The number of bytes of a character in UTF-8.
pub(crate) fn utf8_length(character: char) -> u32 {
    u32::try_from(character.len_utf8()).expect("at most 4")
}

/// The characters without their spans.
pub(crate) fn plain(text: &[AlignedChar]) -> String {
    text.iter().map(|c| c.character).collect()
}

/// The number of bytes of the characters in UTF-8.
pub(crate) fn utf8_bytes(text: &[AlignedChar]) -> usize {
    text.iter().map(|c| c.character.len_utf8()).sum()
}

/// A text behind another, which has the span of the first character; an empty text stays empty.
pub(crate) fn prepended(
    before: impl IntoIterator<Item = char>,
    text: AlignedText,
) -> Result<AlignedText> {
    let Some(&AlignedChar { span, .. }) = text.first() else { return Ok(text) };
    let new = before.into_iter().map(|character| AlignedChar { character, span });
    memory::collect(new.chain(text))
}

/// A text with its character positions, for searches in the text.
pub(crate) struct Searchable {
    pub(crate) text: String,
    /// The position in bytes of each character, and the end.
    starts: Vec<usize>,
}

impl Searchable {
    /// Fails if there is not enough memory.
    pub(crate) fn new(text: &[AlignedChar]) -> Result<Self> {
        memory::check(text.len().saturating_mul(BYTES_PER_CHAR))?;
        let mut at = 0;
        let mut starts = Vec::with_capacity(text.len() + 1);
        for c in text {
            starts.push(at);
            at += c.character.len_utf8();
        }
        starts.push(at);
        Ok(Self { text: plain(text), starts })
    }

    /// The position in bytes of a character.
    pub(crate) fn byte(&self, character: usize) -> usize {
        self.starts[character]
    }

    /// The character that begins at a byte.
    pub(crate) fn character(&self, byte: usize) -> usize {
        self.starts.partition_point(|&start| start < byte)
    }
}
