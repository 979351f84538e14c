//! How a tokenizer gets to disk and back.

pub mod native;

mod ranks;

pub mod tokenizer_json;
