//! What Python says about a file and how to read it: the fields of its dataclasses, by name.

use std::path::PathBuf;

use bytepair::corpus::{
    Bounds, Compression, CorpusFile, DocumentOptions, DocumentSelection, FileKind, OnError,
};
use pyo3::prelude::*;

use crate::arguments;

/// The fields of `bytepair.corpus.kinds.CorpusFile`.
#[derive(FromPyObject)]
pub(crate) struct FileFields {
    pub(crate) path: PathBuf,
    kind: String,
    compression: Option<String>,
}

impl FileFields {
    pub(crate) fn is_table(&self) -> bool {
        self.kind == "parquet"
    }

    /// The file for the core, which has no kind for tables.
    pub(crate) fn file(self) -> PyResult<CorpusFile> {
        let kind = arguments::choice("the kind of the file", &self.kind, &FileKind::NAMED)?;
        let compression = compression(self.compression.as_deref())?;
        Ok(CorpusFile { path: self.path, kind, compression })
    }
}

/// The name of a compression; `None` means that a file is not compressed.
pub(crate) fn compression(name: Option<&str>) -> PyResult<Compression> {
    name.map_or(Ok(Compression::None), |name| {
        arguments::choice("the compression", name, &Compression::NAMED)
    })
}

/// The fields of `bytepair.corpus.bounds.ReadBounds`, in bytes; `harmless_times` is a ratio.
#[derive(FromPyObject)]
pub(crate) struct BoundFields {
    block_bytes: usize,
    document_bytes: usize,
    harmless_bytes: u64,
    harmless_times: u64,
}

/// The fields of `bytepair.corpus.documents.DocumentSelection`.
#[derive(FromPyObject)]
pub(crate) struct SelectionFields {
    first: u64,
    start: u64,
    step: u64,
}

impl From<SelectionFields> for DocumentSelection {
    fn from(SelectionFields { first, start, step }: SelectionFields) -> Self {
        Self { first_row: first, start, step }
    }
}

/// The options of the core for reading documents.
pub(crate) fn options(
    field: String,
    errors: &str,
    doc_cap: Option<usize>,
    bounds: BoundFields,
) -> PyResult<DocumentOptions> {
    let on_error = arguments::choice("errors", errors, &OnError::NAMED)?;
    let BoundFields { block_bytes, document_bytes, harmless_bytes, harmless_times } = bounds;
    let bounds = Bounds { block_bytes, document_bytes, harmless_bytes, harmless_times };
    Ok(DocumentOptions { field, on_error, doc_cap, bounds })
}
