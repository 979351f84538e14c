//! Many texts at once: arrays, text files, rows of parquet files, and conversations.

pub mod arrays;
pub mod conversations;
#[cfg(feature = "parquet")]
pub mod parquet_rows;
pub mod text_file;
