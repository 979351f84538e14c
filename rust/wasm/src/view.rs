//! What the page of `explore` shows.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arguments::{bytes, string};
use crate::tokenizer::Tokenizer;

/// The exception for an error of the view, with the same message.
fn refused(error: bytepair_view::ViewError) -> JsValue {
    JsError::new(&error.to_string()).into()
}

/// Some tokenizers, and the answers to questions about them, as `bytepair explore` shows them.
#[wasm_bindgen]
#[derive(Debug)]
pub struct View(bytepair_view::View);

#[wasm_bindgen]
impl View {
    /// A view without tokenizers. The material is JSON: texts and chat templates; "{}" is none.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "string")] material: &JsValue,
    ) -> Result<View, JsValue> {
        bytepair_view::View::new(&string(material, "material")?).map(Self).map_err(refused)
    }

    /// Add a tokenizer; returns its number.
    pub fn add(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] name: &JsValue,
        tokenizer: &Tokenizer,
    ) -> Result<usize, JsValue> {
        self.0.add(string(name, "name")?, tokenizer.0.clone(), Vec::new()).map_err(refused)
    }

    /// Answer a question in JSON, with a body of bytes: JSON as a string, or bytes.
    #[wasm_bindgen(unchecked_return_type = "string | Uint8Array")]
    pub fn ask(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] question: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "Uint8Array")] body: &JsValue,
    ) -> Result<JsValue, JsValue> {
        let (question, body) = (string(question, "question")?, bytes(body, "body")?);
        Ok(match self.0.ask(&question, &body).map_err(refused)? {
            bytepair_view::Answer::Json(text) => text.into(),
            bytepair_view::Answer::Bytes(bytes) => Uint8Array::from(&bytes[..]).into(),
        })
    }
}
