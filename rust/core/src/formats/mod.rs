//! How a tokenizer gets to disk and back.

#[cfg(feature = "json")]
mod document;

pub mod native;

mod ranks;

#[cfg(feature = "json")]
pub mod tokenizer_json;
