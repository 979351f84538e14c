//! `CountProgress`: how far the counting of files has come.

use std::collections::BTreeMap;

use bytepair::{FileProgress, Progress};
use pyo3::prelude::*;

/// How far the counting of files has come.
#[pyclass(frozen, get_all, name = "CountProgress", module = "bytepair._core")]
#[derive(Default)]
pub(crate) struct PyCountProgress {
    /// The number of texts in the counter.
    texts: u64,
    /// The number of bytes of these texts.
    text_bytes: u64,
    /// The number of characters counted, if there is a limit.
    chars: u64,
    /// The number of bytes read from the files, before decompression; 0 for parquet.
    packed: u64,
    /// The number of bytes of text read from each parquet file.
    of_files: Vec<u64>,
    /// For each text or jsonl file newly found to exceed the expansion bounds, by its index, its
    /// decompressed bytes so far.
    expanded: BTreeMap<usize, u64>,
}

impl From<FileProgress> for PyCountProgress {
    fn from(FileProgress { texts, text_bytes, packed, chars, expanded }: FileProgress) -> Self {
        let expanded = expanded.into_iter().collect();
        Self { texts, text_bytes, chars, packed, expanded, ..Self::default() }
    }
}

impl From<Progress> for PyCountProgress {
    fn from(Progress { texts, text_bytes, chars, of_files }: Progress) -> Self {
        Self { texts, text_bytes, chars, of_files, ..Self::default() }
    }
}
