//! Decodes ids that arrive one by one, where the decoder works on the names of tokens.
//!
//! A step may change what the last token gives once another follows, and bytes may not be a character
//! yet. So the text is decoded again for each id, and what two successive results have in common is
//! given out. This takes quadratic time, which matters little for the vocabularies that need it.

use super::Tokenizer;
use crate::error::Result;

/// The ids so far, and the text that was given out.
#[derive(Debug, Clone, Default)]
pub struct NameStream {
    ids: Vec<u32>,
    /// The text of the ids.
    text: String,
    /// The number of bytes of the text that were given out.
    given: usize,
}

impl NameStream {
    /// Take an id, and return the text that is now complete. Fails if the id has no token; the stream
    /// does not change then.
    ///
    /// ```
    /// use bytepair::rules::{Decoder, DecoderStep, StartSymbols, TextRules};
    /// use bytepair::tokenizer::name_stream::NameStream;
    /// use bytepair::{Tokenizer, Vocabulary};
    /// let tokens = [(b"a</w>".to_vec(), 0), (b"b".to_vec(), 1)];
    /// let decoder = Decoder::Steps(vec![DecoderStep::WordSuffix("</w>".to_owned())]);
    /// let symbols = Some(StartSymbols::default());
    /// let rules = TextRules { symbols, decoder, ..TextRules::default() };
    /// let tokenizer =
    ///     Tokenizer::from_merges(Vocabulary::new(tokens, [])?, Vec::new(), false, rules)?;
    /// let mut stream = NameStream::default();
    /// let pieces = [0, 1, 0].map(|id| stream.push(&tokenizer, id).unwrap());
    /// assert_eq!((pieces.concat() + &stream.flush()).as_str(), "a ba");
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        tokenizer.token_bytes(id)?;
        self.ids.push(id);
        let text = tokenizer.decode(&self.ids).inspect_err(|_| {
            self.ids.pop();
        })?;
        let pairs = self.text.char_indices().zip(text.chars());
        let same = pairs.take_while(|((_, one), other)| one == other);
        let common = same.map(|((at, c), _)| at + c.len_utf8()).last().unwrap_or(0);
        let complete = text[..common].trim_end_matches(char::REPLACEMENT_CHARACTER).len();
        let from = self.given;
        (self.given, self.text) = (complete.max(from), text);
        Ok(self.text.get(from..self.given).unwrap_or_default().to_owned())
    }

    /// End the text, and return the rest of it. The stream can be used again.
    pub fn flush(&mut self) -> String {
        let Self { text, given, .. } = std::mem::take(self);
        text.get(given..).unwrap_or_default().to_owned()
    }
}
