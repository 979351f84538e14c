//! `DocumentReader`: a file in, its documents out.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytepair::corpus::parquet::{ReadAt, TableReader, TextColumn, Windowed};
use bytepair::corpus::{
    Bounds, Compression, CorpusFile, DocumentOptions, DocumentReader, DocumentSelection, Documents,
    FileKind, OnError,
};
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;

use crate::files::{FileObject, Raised};
use crate::results::PyDocumentBatch;
use crate::{arguments, arrays};

/// Reads the documents of a file in order, as batches of arrays.
#[pyclass(frozen, name = "DocumentReader", module = "bytepair._core")]
pub(crate) struct PyDocumentReader {
    reader: Mutex<FileReader>,
    /// The exception that the Python file object raised, if any.
    raised: Raised,
}

enum FileReader {
    Blocks(Box<DocumentReader>),
    Table(Box<TableReader>),
}

impl FileReader {
    fn read(&mut self) -> bytepair::Result<Option<Documents>> {
        match self {
            Self::Blocks(reader) => reader.read(),
            Self::Table(reader) => reader.read(),
        }
    }
}

impl PyDocumentReader {
    fn lock(&self) -> MutexGuard<'_, FileReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyDocumentReader {
    /// Read a file of the kind `"text"`, `"jsonl"`, `"lines"` or `"parquet"`.
    ///
    /// Without `source`, the file at the path is read. With it, the path is for messages, and the
    /// `size` bytes of the file come from `source.read(n)`; for parquet, each read follows
    /// `source.seek(offset)`, and `source` must not decompress. Parquet pages of more than
    /// `page_bytes` are not read.
    #[new]
    #[pyo3(signature = (file, field, *, errors="strict", doc_cap=None, bounds, page_bytes,
                        selection=None, source=None, size=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        file: FileFields,
        field: String,
        errors: &str,
        doc_cap: Option<usize>,
        bounds: BoundFields,
        page_bytes: usize,
        selection: Option<SelectionFields>,
        source: Option<Py<PyAny>>,
        size: u64,
    ) -> PyResult<Self> {
        let options = options(field, errors, doc_cap, bounds)?;
        let selection = selection.map_or_else(DocumentSelection::default, DocumentSelection::from);
        let raised = Raised::default();
        let object = source.map(|file| FileObject::new(file, size, &raised));
        let reader = if file.is_table() {
            py.detach(|| table(&file.path, object, options, page_bytes, selection))
                .map(|table| FileReader::Table(Box::new(table)))
        } else {
            let file = file.file()?;
            py.detach(|| blocks(file, object, options))
                .map(|reader| FileReader::Blocks(Box::new(reader.with_selection(selection))))
        };
        let reader = Mutex::new(reader.map_err(|error| raised.or(&error))?);
        Ok(Self { reader, raised })
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next documents.
    fn __next__(&self, py: Python<'_>) -> PyResult<PyDocumentBatch> {
        arrays::ready(py)?;
        py.check_signals()?;
        let read = py.detach(|| self.lock().read());
        let read = read.map_err(|error| self.raised.or(&error))?;
        let documents = read.ok_or_else(|| PyStopIteration::new_err(()))?;
        PyDocumentBatch::new(py, documents)
    }

    /// The number of bytes read from the file, before decompression; 0 for parquet.
    #[getter]
    fn packed(&self, py: Python<'_>) -> u64 {
        py.detach(|| match &*self.lock() {
            FileReader::Blocks(reader) => reader.packed(),
            FileReader::Table(_) => 0,
        })
    }

    /// The number of rows of a parquet file, according to its footer; 0 for other files.
    #[getter]
    fn rows(&self, py: Python<'_>) -> usize {
        py.detach(|| match &*self.lock() {
            FileReader::Blocks(_) => 0,
            FileReader::Table(reader) => reader.rows(),
        })
    }

    /// The decompressed bytes so far, if the file was found to exceed the expansion bounds since
    /// the last call; `None` for parquet.
    fn take_expanded(&self, py: Python<'_>) -> Option<u64> {
        py.detach(|| match &mut *self.lock() {
            FileReader::Blocks(reader) => reader.take_expanded(),
            FileReader::Table(_) => None,
        })
    }
}

fn blocks(
    file: CorpusFile,
    object: Option<FileObject>,
    options: DocumentOptions,
) -> bytepair::Result<DocumentReader> {
    match object {
        Some(object) => DocumentReader::from_source(file, object.size(), Box::new(object), options),
        None => Ok(DocumentReader::new(file, options)),
    }
}

fn table(
    path: &PathBuf,
    object: Option<FileObject>,
    options: DocumentOptions,
    page_bytes: usize,
    selection: DocumentSelection,
) -> bytepair::Result<TableReader> {
    let column = match object {
        Some(object) => {
            TextColumn::of_source(Arc::new(Windowed::new(object)), path, &options.field)
        }
        None => TextColumn::open(&[path], &options.field),
    };
    Ok(TableReader::new(column?.with_bounds(page_bytes, usize::MAX), options, selection))
}

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
