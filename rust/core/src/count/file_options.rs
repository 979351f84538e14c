//! What the counting of files is asked, and what it reports.

use crate::corpus::{DocumentOptions, FilePlace};

/// How files are counted.
#[derive(Debug, Clone, Default)]
pub struct FileCountOptions {
    /// How their documents are read.
    pub documents: DocumentOptions,
    /// Reading stops with the document that takes the total above this many characters.
    pub max_chars: Option<u64>,
}

/// How far the counting of files has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// The position at which counting continues.
    pub place: FilePlace,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
}

/// The progress of counting files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProgress {
    /// The number of documents in the counter.
    pub texts: u64,
    /// The number of bytes of these documents.
    pub text_bytes: u64,
    /// The number of bytes read from the files, before decompression.
    pub packed: u64,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
    /// The files found to exceed the expansion bounds since the last call, with their decompressed
    /// bytes so far.
    pub expanded: Vec<(usize, u64)>,
}
