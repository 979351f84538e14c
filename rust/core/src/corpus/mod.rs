//! Reads documents from files.

#[cfg(feature = "parquet")]
pub mod parquet;
