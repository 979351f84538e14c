//! Decodes ids that arrive one by one, as a model generates them.

use std::sync::Arc;

use crate::decode::TextStream;
use crate::error::Result;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::name_stream::NameStream;
use crate::tokenizer::stops::{StopSearch, Stops};

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
    decoder: IdDecoder,
    stops: Option<StopSearch>,
}

/// Decodes ids, and knows of no stop strings.
#[derive(Debug, Clone)]
struct IdDecoder {
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
        let decoder = IdDecoder { tokenizer, stream, names, skipped: Arc::default(), begun: false };
        Self { decoder, stops: None }
    }

    /// This stream without the text of some ids, which are in order.
    #[must_use]
    pub fn skipping(mut self, skipped: Arc<[u32]>) -> Self {
        self.decoder.skipped = skipped;
        self
    }

    /// This stream, which ends at the first of some strings, if there are any; it gives out no text that
    /// may be part of one of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// use bytepair::tokenizer::{decode_stream::DecodeStream, stops::Stops};
    /// let tokens = [(b"yes\n".to_vec(), 0), (b"User:".to_vec(), 1), (b"used".to_vec(), 2)];
    /// let vocabulary = Vocabulary::new(tokens, [])?;
    /// let tokenizer = Arc::new(Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?);
    /// let stops = Arc::new(Stops::new(&tokenizer, &["\nUser:"], false)?);
    /// let (mut stream, mut text) = (DecodeStream::new(&tokenizer).stopping(stops), String::new());
    /// stream.push(0, &mut text)?;
    /// assert_eq!(text, "yes");
    /// stream.push(1, &mut text)?;
    /// assert_eq!((text.as_str(), stream.stopped()), ("yes", Some((0, "\nUser:"))));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[must_use]
    pub fn stopping(self, stops: Arc<Stops>) -> Self {
        Self { stops: (!stops.is_empty()).then(|| StopSearch::new(stops)), ..self }
    }

    /// The stop string that ended the text, and its number; until the first id of the next text.
    pub fn stopped(&self) -> Option<(usize, &str)> {
        self.stops.as_ref().and_then(StopSearch::stopped)
    }

    /// Take one id and append the text that is now complete, possibly nothing. Bytes that cannot
    /// become a character become U+FFFD. Where the decoder works on the names of tokens, the text of a
    /// run of bytes comes when it ends; if a step replaces text in joined names, all text comes at the
    /// end. Once a stop string has ended the text, nothing is appended until [`flush`](Self::flush).
    ///
    /// Fails if the vocabulary does not have the id; the stream does not change then.
    pub fn push(&mut self, id: u32, text: &mut String) -> Result<()> {
        let Self { decoder, stops } = self;
        let Some(stops) = stops else { return decoder.push(id, text) };
        decoder.tokenizer.token_bytes(id)?;
        stops.restart_if_ended();
        if stops.stopped().is_some() {
            return Ok(());
        }
        let mut piece = String::new();
        if let Some(number) = stops.of_id(id) {
            decoder.flush(&mut piece)?;
            stops.push(&piece, text);
            stops.push_id(number, text);
        } else {
            decoder.push(id, &mut piece)?;
            stops.push(&piece, text);
        }
        Ok(())
    }

    /// End the text: append the rest, or U+FFFD if a character is incomplete. The stream can be used
    /// again.
    ///
    /// Fails if a step of the decoder fails on what is left, as [`Tokenizer::decode`] does.
    pub fn flush(&mut self, text: &mut String) -> Result<()> {
        let Self { decoder, stops } = self;
        let Some(stops) = stops else { return decoder.flush(text) };
        let mut piece = String::new();
        decoder.flush(&mut piece)?;
        stops.push(&piece, text);
        stops.end(text);
        Ok(())
    }
}

impl IdDecoder {
    fn push(&mut self, id: u32, text: &mut String) -> Result<()> {
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

    fn flush(&mut self, text: &mut String) -> Result<()> {
        self.begun = false;
        match &mut self.names {
            Some(names) => text.push_str(&names.flush(&self.tokenizer)?),
            None => self.stream.flush(text),
        }
        Ok(())
    }
}
