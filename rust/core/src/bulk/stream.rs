//! Encodes text that arrives in pieces of any length into the ids of the whole text.
//!
//! Later text can change where a text splits near its end. So ids are returned once no later text
//! can change them, and the rest of the text, a few pretokens, is buffered.

use std::sync::Arc;

use crate::encode::Id;
use crate::encode::encoder::Edges;
use crate::encode::special::EncodeOptions;
use crate::error::{Error, Result};
use crate::rules::PartStart;
use crate::text::Text;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::session::{Certain, Tried};
use crate::{Special, memory};

/// Encode once this many bytes are buffered.
const BUFFER_BYTES: usize = if cfg!(test) { 1 << 3 } else { 1 << 16 };

/// Encodes a text that arrives in pieces. The text of special tokens is encoded as ordinary text by
/// default; a special token that arrives in pieces counts once it is complete.
///
/// With a custom split pattern, the text after the last position where a cut is safe stays
/// buffered; with a pattern that only the regex engine can split, the whole text is buffered until
/// the end.
///
/// ```
/// use bytepair::{Pattern, Text, Tokenizer, Vocabulary, bulk::stream::EncodeStream};
/// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// # let vocabulary = Vocabulary::new(bytes.chain([(b"ab".to_vec(), 256)]), [])?;
/// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
/// let (mut stream, mut ids) = (EncodeStream::default(), Vec::<u32>::new());
/// stream.push(&tokenizer, &Text::Utf8("a"), &mut ids)?;
/// stream.push(&tokenizer, &Text::Utf8("b"), &mut ids)?;
/// stream.flush(&tokenizer, &mut ids)?;
/// assert_eq!(ids, [256]);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct EncodeStream {
    /// Text not encoded yet; starts at a pretoken boundary.
    rest: String,
    /// The length of `rest` after the last attempt to encode.
    tried: usize,
    /// The kind of content before `rest`.
    begins: PartStart,
    /// Where `rest` begins in the text.
    start: usize,
    /// How special tokens are encoded; as text by default.
    options: Option<Arc<EncodeOptions>>,
}

impl EncodeStream {
    /// A stream that encodes the text of special tokens as `special` says.
    ///
    /// Fails if `special` names an unknown special token.
    pub fn new(tokenizer: &Tokenizer, special: &Special) -> Result<Self> {
        let options = Some(Arc::new(tokenizer.options(special, &[], &[])?));
        Ok(Self { options, ..Self::default() })
    }

    /// Take a piece of text and append to `out` the ids that are now final.
    ///
    /// Fails as [`Tokenizer::encode`] does; drop the stream after an error.
    pub fn push<T: Id>(
        &mut self,
        tokenizer: &Tokenizer,
        text: &Text<'_>,
        out: &mut Vec<T>,
    ) -> Result<()> {
        let mut buffer = String::new();
        let text = text.read(&mut buffer)?;
        memory::reserve_text(&mut self.rest, text.len())?;
        self.rest.push_str(text);
        // Doubling the threshold avoids quadratic time on one endless pretoken.
        if self.rest.len() < BUFFER_BYTES.max(2 * self.tried) {
            return Ok(());
        }
        let shifted = |error: Error| error.shifted(self.start);
        let Certain { at, start } = self.certain(tokenizer).map_err(shifted)?;
        if at > 0 {
            self.encode(tokenizer, &self.rest[..at], out)?;
            self.begins = start;
            self.start += at;
            self.rest.drain(..at);
        }
        self.tried = self.rest.len();
        Ok(())
    }

    /// The end of the part of `rest` whose ids are final.
    fn certain(&self, tokenizer: &Tokenizer) -> Result<Certain> {
        let encoder = tokenizer.encoder();
        if !encoder.keeps_positions() {
            // Nothing is final before the end of the text.
            return Ok(Certain { at: 0, start: self.begins });
        }
        let options = self.options(tokenizer);
        encoder.certain(&self.rest, self.begins, options, &mut Tried::default())
    }

    /// End the text: append the ids of the rest to `out`. The stream can then be used again.
    pub fn flush<T: Id>(&mut self, tokenizer: &Tokenizer, out: &mut Vec<T>) -> Result<()> {
        self.encode(tokenizer, &self.rest, out)?;
        *self = Self { options: self.options.take(), ..Self::default() };
        Ok(())
    }

    fn options<'a>(&'a self, tokenizer: &'a Tokenizer) -> &'a EncodeOptions {
        self.options.as_deref().unwrap_or_else(|| tokenizer.plain())
    }

    /// Encode the first bytes of `rest`.
    fn encode<T: Id>(&self, tokenizer: &Tokenizer, text: &str, out: &mut Vec<T>) -> Result<()> {
        let edges = Edges { start: self.begins, last: true };
        let encoded = tokenizer.encoder().call().append_part(
            &Text::Utf8(text),
            self.options(tokenizer),
            edges,
            out,
        );
        encoded.map_err(|error| error.shifted(self.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, Vocabulary};

    #[test]
    fn pieces_of_any_length_give_the_ids_of_the_whole() {
        let texts = [
            "The quick brown fox's don'T 1234567 \n\n  x  \r\n".repeat(9000),
            "中文字符，没有空格。\n".repeat(9000),
            "ab".repeat(200_000),
            " ".repeat(200_000),
        ];
        for pattern in ["gpt2", "gpt4", "gpt4o", r"(?s).+"] {
            let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
            let more = [(b"ab".to_vec(), 256), (b"  ".to_vec(), 257), (b" x".to_vec(), 258)];
            let vocabulary = Vocabulary::new(bytes.chain(more), []).unwrap();
            let pattern = Pattern::from_regex(pattern);
            let tokenizer = Tokenizer::from_ranks(vocabulary, pattern).unwrap();
            for text in &texts {
                let expected = tokenizer.encode(text).unwrap();
                for length in [1000, 70_001, usize::MAX] {
                    let chars: Vec<char> = text.chars().collect();
                    let (mut stream, mut ids) = (EncodeStream::default(), Vec::<u32>::new());
                    for piece in chars.chunks(length) {
                        let piece: String = piece.iter().collect();
                        stream.push(&tokenizer, &Text::Utf8(&piece), &mut ids).unwrap();
                    }
                    stream.flush(&tokenizer, &mut ids).unwrap();
                    assert!(ids == expected, "{:?} in pieces of {length}", &text[..10]);
                }
            }
        }
    }

    #[test]
    fn little_text_is_buffered() {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let vocabulary = Vocabulary::new(bytes, []).unwrap();
        let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt4o").unwrap()).unwrap();
        for text in ["words and words\n", "没有空格。", "!?\n", "1 2,3"] {
            let (mut stream, mut ids) = (EncodeStream::default(), Vec::<u16>::new());
            for _ in 0..10_000 {
                stream.push(&tokenizer, &Text::Utf8(text), &mut ids).unwrap();
                assert!(stream.rest.len() <= 2 * BUFFER_BYTES, "{text:?}");
            }
        }
    }
}
