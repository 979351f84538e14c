//! Streams: ids that arrive one by one to text, and text that arrives in pieces to ids.

use std::sync::Arc;

use bytepair::Text;
use bytepair::bulk::stream;
use bytepair::decode::TextStream;
use wasm_bindgen::prelude::*;

use crate::error;

/// Converts ids to text as they arrive; it never gives half of a character.
#[wasm_bindgen]
#[derive(Debug)]
pub struct DecodeStream {
    pub(crate) tokenizer: Arc<bytepair::Tokenizer>,
    pub(crate) stream: TextStream,
}

#[wasm_bindgen]
impl DecodeStream {
    /// Take an id; returns the text that is now complete.
    pub fn push(&mut self, id: u32) -> Result<String, JsError> {
        let bytes = self.tokenizer.token_bytes(id).map_err(error)?;
        let mut text = String::new();
        self.stream.push(bytes, &mut text);
        Ok(text)
    }

    /// End the text: returns U+FFFD if a character is incomplete. The stream can be used again.
    pub fn flush(&mut self) -> String {
        let mut text = String::new();
        self.stream.flush(&mut text);
        text
    }
}

/// Encodes a text that arrives in pieces; the ids are those of the whole text.
#[wasm_bindgen]
#[derive(Debug)]
pub struct EncodeStream {
    pub(crate) tokenizer: Arc<bytepair::Tokenizer>,
    pub(crate) stream: stream::EncodeStream,
}

#[wasm_bindgen]
impl EncodeStream {
    /// Take a piece of text; returns the ids that are now final.
    pub fn push(&mut self, text: &str) -> Result<Vec<u32>, JsError> {
        let mut ids = Vec::new();
        self.stream.push(&self.tokenizer, &Text::Utf8(text), &mut ids).map_err(error)?;
        Ok(ids)
    }

    /// End the text: returns the remaining ids. The stream can be used again.
    pub fn flush(&mut self) -> Result<Vec<u32>, JsError> {
        let mut ids = Vec::new();
        self.stream.flush(&self.tokenizer, &mut ids).map_err(error)?;
        Ok(ids)
    }
}
