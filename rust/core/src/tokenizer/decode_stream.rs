//! Decodes ids that arrive one by one, as a model generates them.

use std::sync::Arc;

use crate::decode::TextStream;
use crate::error::Result;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::name_stream::NameStream;

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
    /// Takes the ids where the decoder works on the names of tokens.
    names: Option<NameStream>,
    /// The ids that are left out, in order.
    skipped: Arc<[u32]>,
    /// Whether an id has arrived since the start or the last `flush`.
    begun: bool,
}

impl DecodeStream {
    /// A stream without ids.
    pub fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        let names = (!tokenizer.decodes_bytes()).then(NameStream::default);
        let (tokenizer, stream) = (Arc::clone(tokenizer), TextStream::default());
        Self { tokenizer, stream, names, skipped: Arc::default(), begun: false }
    }

    /// This stream without the text of some ids, which are in order.
    #[must_use]
    pub fn skipping(self, skipped: Arc<[u32]>) -> Self {
        Self { skipped, ..self }
    }

    /// Take one id and append the text that is now complete, possibly nothing. Bytes that cannot
    /// become a character become U+FFFD. Where the decoder works on the names of tokens, the text of a
    /// run of bytes comes when it ends; if a step replaces text in joined names, all text comes at the
    /// end.
    ///
    /// Fails if the vocabulary does not have the id; the stream does not change then.
    pub fn push(&mut self, id: u32, text: &mut String) -> Result<()> {
        let mut token = self.tokenizer.token_bytes(id)?;
        if self.skipped.binary_search(&id).is_ok() {
            return Ok(());
        }
        if let Some(names) = &mut self.names {
            text.push_str(&names.push(&self.tokenizer, id)?);
            return Ok(());
        }
        if !std::mem::replace(&mut self.begun, true) && self.tokenizer.drops_space() {
            token = token.strip_prefix(b" ").unwrap_or(token);
        }
        self.stream.push(token, text);
        Ok(())
    }

    /// End the text: append the rest, or U+FFFD if a character is incomplete. The stream can be used
    /// again.
    ///
    /// Fails if a step of the decoder fails on what is left, as [`Tokenizer::decode`] does.
    pub fn flush(&mut self, text: &mut String) -> Result<()> {
        self.begun = false;
        match &mut self.names {
            Some(names) => text.push_str(&names.flush(&self.tokenizer)?),
            None => self.stream.flush(text),
        }
        Ok(())
    }
}
