//! Reads and writes tokenizers, and the counts that they are trained on, as files.

#[cfg(feature = "parquet")]
pub mod counts_file;

#[cfg(feature = "json")]
mod document;

pub mod native;

mod ranks;

#[cfg(feature = "json")]
pub mod tokenizer_json;

mod whole_file;
