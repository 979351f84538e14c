//! Files in, documents out.

pub mod parquet;
