//! Reads and writes tokenizers, and the counts that they are trained on, as files.

#[cfg(feature = "parquet")]
pub mod counts_file;
pub mod kind;
pub mod native;
pub mod ranks;
pub mod rule_of_ranks;
#[cfg(feature = "json")]
pub mod tokenizer_json;
mod whole_file;
