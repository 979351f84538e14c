//! Reads documents from files.
//!
//! [`FileKind`] and [`Compression`] determine how a file is read. A file is read block by block, so
//! that memory is bounded and any thread may work on the next block. [`DocumentReader`] returns the
//! documents of all blocks in order, and `Counter::add_files` counts them on all threads. The
//! module `parquet` reads the documents of parquet files, in ranges of rows.

mod blocks;
mod documents;
mod jsonl;
#[cfg(feature = "parquet")]
pub mod parquet;
mod stream;

pub(crate) use blocks::{BlockReader, FileBlock};
pub use blocks::{Bounds, CorpusFile, FileKind, FilePlace};
pub(crate) use documents::FieldTally;
pub use documents::{
    DocumentOptions, DocumentReader, DocumentSelection, Documents, OnError, SkippedRows,
};
pub use stream::Compression;
pub(crate) use stream::{fill, pointer, stand_in};
