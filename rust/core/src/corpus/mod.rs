//! Reads documents from files.

pub mod parquet;
