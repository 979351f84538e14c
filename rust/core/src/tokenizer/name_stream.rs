//! Decodes ids that arrive one by one, where the decoder works on the names of tokens.
//!
//! A step may change what the last token gives once another follows, and bytes may not be a character
//! yet. So the text is decoded again for each id, and what two successive results have in common is
//! given out. This takes quadratic time, which matters little for the vocabularies that need it.

use super::Tokenizer;
use crate::error::Result;

/// The ids so far, and the text that was given out.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameStream {
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
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
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
    pub(crate) fn flush(&mut self) -> String {
        let Self { text, given, .. } = std::mem::take(self);
        text.get(given..).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use crate::rules::{Decoder, DecoderStep, StartSymbols, TextRules};
    use proptest::prelude::*;

    fn tokenizer(steps: Vec<DecoderStep>) -> Tokenizer {
        let names = ["a</w>", "b", "<0xC3>", "<0xA9>", "\u{2581}c"];
        let tokens = names.iter().zip(0..).map(|(name, id)| (name.as_bytes().to_vec(), id));
        let (symbols, decoder) = (Some(StartSymbols::default()), Decoder::Steps(steps));
        let rules = TextRules { symbols, decoder, ..TextRules::default() };
        let vocabulary = Vocabulary::new(tokens, []).unwrap();
        Tokenizer::from_merges(vocabulary, Vec::new(), false, rules).unwrap()
    }

    proptest! {
        #[test]
        fn a_stream_equals_decoding_the_whole(ids in prop::collection::vec(0u32..5, 0..12)) {
            let meta = DecoderStep::Metaspace { replacement: '\u{2581}', drops_first: true };
            let suffix = DecoderStep::WordSuffix("</w>".to_owned());
            for steps in [vec![DecoderStep::ByteFallback, meta], vec![suffix], Vec::new()] {
                let tokenizer = tokenizer(steps);
                let mut stream = NameStream::default();
                let pieces = ids.iter().map(|&id| stream.push(&tokenizer, id).unwrap());
                let text = pieces.collect::<String>() + &stream.flush();
                prop_assert_eq!(text, tokenizer.decode(&ids).unwrap());
            }
        }
    }
}
