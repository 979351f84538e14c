//! How a tokenizer, and the counts it is trained from, get to disk and back.

#[cfg(feature = "parquet")]
pub mod counts_file;

#[cfg(feature = "json")]
mod document;

pub mod native;

mod ranks;

#[cfg(feature = "json")]
pub mod tokenizer_json;

mod whole_file;
