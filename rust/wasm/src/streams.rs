//! Streams: ids that arrive one by one to text, and text that arrives in pieces to ids.

use bytepair::Text;
use bytepair::tokenizer::decode_stream;
use bytepair::tokenizer::session;
use wasm_bindgen::prelude::*;

use crate::arguments::{string, whole};
use crate::error;

/// Converts ids to text as they arrive; it never gives half of a character.
#[wasm_bindgen]
#[derive(Debug)]
pub struct DecodeStream(pub(crate) decode_stream::DecodeStream);

#[wasm_bindgen]
impl DecodeStream {
    /// Take an id; returns the text that is now complete.
    pub fn push(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "number")] id: &JsValue,
    ) -> Result<String, JsValue> {
        self.0.push(whole(id, "id")?).map_err(error)
    }

    /// The stop string that ended the text, until the first id after `flush`.
    #[wasm_bindgen(getter)]
    pub fn stopped(&self) -> Option<String> {
        self.0.stopped().map(|(_, string)| string.to_owned())
    }

    /// End the text: returns what was held back, and U+FFFD if a character is incomplete. The stream
    /// can be used again.
    pub fn flush(&mut self) -> Result<String, JsValue> {
        self.0.flush().map_err(error)
    }
}

/// Encodes a text that arrives in pieces; the ids are those of the whole text.
#[wasm_bindgen]
#[derive(Debug)]
pub struct EncodeStream(pub(crate) session::EncodeStream);

#[wasm_bindgen]
impl EncodeStream {
    /// Take a piece of text; returns the ids that are now final.
    pub fn push(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: &JsValue,
    ) -> Result<Vec<u32>, JsValue> {
        self.0.push(&Text::Utf8(&string(text, "text")?)).map_err(error)
    }

    /// End the text: returns the remaining ids. The stream can be used again.
    pub fn flush(&mut self) -> Result<Vec<u32>, JsValue> {
        self.0.flush().map_err(error)
    }
}
