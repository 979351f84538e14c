//! How a tokenizer gets to disk and back.

pub mod native;

mod ranks;

#[cfg(feature = "json")]
pub mod tokenizer_json;
