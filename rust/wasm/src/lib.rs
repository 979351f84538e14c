//! The engine for JavaScript: the tokenizer, its streams, and what the page of `explore` shows.
//!
//! Each method converts its arguments, calls one function of the core or of the view, and converts
//! the result or the error. Strings are UTF-16 in JavaScript: half of a surrogate pair arrives as
//! U+FFFD, as in tiktoken.

#![expect(clippy::needless_pass_by_value, reason = "wasm-bindgen hands arguments over by value")]

mod arguments;
mod options;
mod streams;
mod tokenizer;
mod view;

pub use streams::{DecodeStream, EncodeStream};
pub use tokenizer::Tokenizer;
pub use view::View;

use bytepair::Error;
use wasm_bindgen::{JsError, JsValue};

/// The exception for an error of the core, in the words of JavaScript.
fn error(error: Error) -> JsValue {
    let hint = match error {
        Error::SpecialInText { .. } => {
            "pass special: \"text\" to encode it as ordinary text, or special: \"all\" to encode it \
             as the special token"
        }
        _ => error.hint().plain,
    };
    JsError::new(&error.message(hint)).into()
}
