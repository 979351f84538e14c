//! Decodes ids that arrive one by one, as a model generates them.

use std::sync::Arc;

use crate::decode::TextStream;
use crate::error::Result;
use crate::tokenizer::Tokenizer;

/// Ids in, text out; never part of a character. Takes a few dozen bytes.
///
/// All text, concatenated, equals [`Tokenizer::decode`] of all ids.
///
/// ```
/// use std::sync::Arc;
/// use bytepair::{Pattern, Tokenizer, Vocabulary, tokenizer::decode_stream::DecodeStream};
/// let tokens = [(b"caf".to_vec(), 0), (b"\xC3".to_vec(), 1), (b"\xA9".to_vec(), 2)];
/// let vocabulary = Vocabulary::new(tokens, [])?;
/// let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?);
/// let (mut stream, mut text) = (DecodeStream::new(&tokenizer), String::new());
/// stream.push(0, &mut text)?;
/// stream.push(1, &mut text)?;
/// assert_eq!(text, "caf");
/// stream.push(2, &mut text)?;
/// assert_eq!(text, "café");
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecodeStream {
    tokenizer: Arc<Tokenizer>,
    stream: TextStream,
    /// Whether an id has arrived since the start or the last `flush`.
    begun: bool,
}

impl DecodeStream {
    /// A stream without ids.
    pub fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        Self { tokenizer: Arc::clone(tokenizer), stream: TextStream::default(), begun: false }
    }

    /// Take one id and append the text that is now complete, possibly nothing. Bytes that cannot
    /// become a character become U+FFFD.
    ///
    /// Fails if the vocabulary does not have the id; the stream does not change then.
    pub fn push(&mut self, id: u32, text: &mut String) -> Result<()> {
        let mut token = self.tokenizer.token_bytes(id)?;
        if !std::mem::replace(&mut self.begun, true) && self.tokenizer.pattern().drops_space() {
            token = token.strip_prefix(b" ").unwrap_or(token);
        }
        self.stream.push(token, text);
        Ok(())
    }

    /// End the text: append U+FFFD if a character is incomplete. The stream can be used again.
    pub fn flush(&mut self, text: &mut String) {
        self.begun = false;
        self.stream.flush(text);
    }
}
