//! Files: documents, the tokens of a rank file, the footer of counts, rows of parquet, decompression.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Mutex;

use bytepair::corpus::parquet::{self, ReadSeek, TableReader, TextColumn};
use bytepair::corpus::{
    Bounds, Compression, CorpusFile, DocumentOptions, DocumentReader, DocumentSelection, Documents,
    FileKind, OnError, SkippedRows,
};
use bytepair::formats::ranks::RankFile;
use bytepair::parallel::lock;
use bytepair::{CountsFile, FileCountOptions};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict};

use crate::arguments::Fields;
use crate::{arguments, arrays, errors, interrupt};

/// The number of rows of a parquet file with the column; `None` if it cannot be read.
#[pyfunction]
pub(crate) fn parquet_rows(py: Python<'_>, path: PathBuf, column: &str) -> Option<usize> {
    py.detach(|| TextColumn::open(&[path], column).ok().map(|column| column.rows(0)))
}

/// The compressed bytes that the footer of a parquet file states, and the values and rows. The `size`
/// bytes of the file are read from `source`; the path is for messages.
#[pyfunction]
pub(crate) fn parquet_size(
    py: Python<'_>,
    path: PathBuf,
    source: Py<PyAny>,
    size: u64,
) -> PyResult<(u64, u64)> {
    let source = Box::new(FileObject(source));
    interrupt::or(errors::checked(py.detach(|| parquet::stated_size(source, size, &path))))
}

/// Read all bytes of a file, decompressed, and pass them to `write`, about a megabyte at a time.
/// The compressed bytes come from `source`, or from the file at the path.
#[pyfunction]
#[pyo3(signature = (path, compression, write, *, source=None))]
pub(crate) fn unpack(
    py: Python<'_>,
    path: PathBuf,
    compression: Option<&str>,
    write: &Bound<'_, PyAny>,
    source: Option<Py<PyAny>>,
) -> PyResult<()> {
    let compression = named_compression(compression)?;
    let file = CorpusFile { path, kind: FileKind::Text, compression };
    let source = source.map(|file| Box::new(FileObject(file)) as _);
    let write = write.clone().unbind();
    let write =
        |bytes: &[u8]| interrupt::call(|py| write.call1(py, (PyBytes::new(py, bytes),)).map(drop));
    interrupt::or(errors::checked(py.detach(|| file.unpack(source, write))))
}

/// Read the bytes of a rank file: the tokens with their ranks, and the rank of the token without bytes,
/// if there is one.
#[pyfunction]
pub(crate) fn rank_file<'py>(
    py: Python<'py>,
    data: &[u8],
) -> PyResult<(Bound<'py, PyDict>, Option<u32>)> {
    let file = errors::checked(py.detach(|| RankFile::read(data)))?;
    let ranks = file.tokens.iter().map(|(token, rank)| (PyBytes::new(py, token), rank));
    Ok((ranks.into_py_dict(py)?, file.empty))
}

/// The metadata of a parquet file: keys and values, in order.
pub(crate) type Metadata = Vec<(String, String)>;

/// The names of the columns of a parquet file, and its metadata.
#[pyfunction]
pub(crate) fn counts_footer(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<String>, Metadata)> {
    let file = errors::checked(py.detach(|| CountsFile::open(path)))?;
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    Ok((file.columns().map(str::to_owned).collect(), file.metadata().map(owned).collect()))
}

/// A Python file object as a source of bytes. Its exception interrupts the work on this thread.
struct FileObject(Py<PyAny>);

impl Read for FileObject {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = interrupt::call(|py| {
            let bytes = self.0.call_method1(py, "read", (buffer.len(),))?;
            let bytes = bytes.bind(py).cast::<PyBytes>()?.as_bytes();
            let wrong = || PyValueError::new_err("read(size) returned more than size bytes");
            let destination = buffer.get_mut(..bytes.len()).ok_or_else(wrong)?;
            destination.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        Ok(read?)
    }
}

impl Seek for FileObject {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(offset) => (offset.cast_signed(), 0),
            SeekFrom::Current(offset) => (offset, 1),
            SeekFrom::End(offset) => (offset, 2),
        };
        let seek = |py: Python<'_>| self.0.call_method1(py, "seek", (offset, whence))?.extract(py);
        Ok(interrupt::call(seek)?)
    }
}

/// Skipped documents: the file, the first row, the number of rows (0 for the rest of a damaged file), why,
/// and what to do about it (empty if the answer is the argument `errors`).
pub(crate) type Skipped = (usize, u64, u64, String, &'static str);

/// Skipped documents for Python.
pub(crate) fn skipped(SkippedRows { file, row, rows, reason }: SkippedRows) -> Skipped {
    let hint = reason.hint();
    let hint = if hint.option == Some("errors") { "" } else { hint.python };
    (file, row, rows, reason.text().to_owned(), hint)
}

/// Consecutive documents of a file: the index of their block or row group; the row of the first in the
/// file; their concatenated bytes; the start of each in them, and the end of the last; and what was
/// skipped among them, in order.
type DocumentBatch<'py> =
    (u64, u64, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>, Vec<Skipped>);

/// Reads the documents of a file in order, as batches of arrays.
#[pyclass(frozen, name = "DocumentReader", module = "bytepair._core")]
pub(crate) struct PyDocumentReader {
    reader: Mutex<FileReader>,
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

#[pymethods]
impl PyDocumentReader {
    /// Read a file of the kind `"text"`, `"jsonl"`, `"lines"` or `"parquet"`.
    ///
    /// Without `source`, the file at the path is read. With it, the path is for messages, and the
    /// `size` bytes of the file come from `source.read(n)`; for parquet, it must have
    /// `source.seek(offset, whence)` too, and must not decompress.
    #[new]
    #[pyo3(signature = (file, reading, bounds, *, selection=None, source=None, size=0))]
    fn new(
        py: Python<'_>,
        file: FileFields,
        reading: Fields<ReadingFields>,
        bounds: BoundFields,
        selection: Option<SelectionFields>,
        source: Option<Py<PyAny>>,
        size: u64,
    ) -> PyResult<Self> {
        let options = reading.0.options(&bounds)?.documents;
        let selection = selection.map_or_else(DocumentSelection::default, |rows| {
            DocumentSelection { first_row: rows.first, start: rows.start, step: rows.step }
        });
        let object = source.map(|file| Box::new(FileObject(file)));
        let reader = if file.is_table() {
            let source = object.map(|object| (object as _, size));
            py.detach(|| table(&file.path, source, options, bounds.page_bytes, selection))
                .map(|table| FileReader::Table(Box::new(table)))
        } else {
            let (file, source) = (file.file()?, object.map(|object| object as _));
            let reader = DocumentReader::new(file, source, options, selection);
            Ok(FileReader::Blocks(Box::new(reader)))
        };
        let reader = Mutex::new(interrupt::or(errors::checked(reader))?);
        Ok(Self { reader })
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next documents.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<DocumentBatch<'py>>> {
        arrays::ready(py)?;
        py.check_signals()?;
        let read = errors::checked(py.detach(|| lock(&self.reader).read()));
        let Some(documents) = interrupt::or(read)? else { return Ok(None) };
        let offsets = errors::checked(documents.offsets())?.into_pyarray(py);
        let skips = documents.skipped.into_iter().map(skipped).collect();
        let data = documents.bytes.into_pyarray(py);
        Ok(Some((documents.unit, documents.first_row, data, offsets, skips)))
    }

    /// The number of rows of a parquet file, according to its footer, or 0; of other files, the number
    /// of bytes read, before decompression; and the number of decompressed bytes that were read.
    fn progress(&self, py: Python<'_>) -> (usize, u64, u64) {
        py.detach(|| match &mut *lock(&self.reader) {
            FileReader::Blocks(reader) => (0, reader.packed(), reader.unpacked()),
            FileReader::Table(reader) => (reader.rows(), 0, 0),
        })
    }
}

fn table(
    path: &PathBuf,
    source: Option<(Box<dyn ReadSeek>, u64)>,
    options: DocumentOptions,
    page_bytes: usize,
    selection: DocumentSelection,
) -> bytepair::Result<TableReader> {
    let column = match source {
        Some((source, size)) => TextColumn::of_source(source, size, path, &options.field),
        None => TextColumn::open(&[path], &options.field),
    };
    Ok(TableReader::new(column?.with_page_limit(page_bytes), options, selection))
}

/// The fields of `bytepair.corpus.files.CorpusFile`.
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
        let compression = named_compression(self.compression.as_deref())?;
        Ok(CorpusFile { path: self.path, kind, compression })
    }
}

/// The name of a compression; `None` means that a file is not compressed.
pub(crate) fn named_compression(name: Option<&str>) -> PyResult<Compression> {
    name.map_or(Ok(Compression::None), |name| {
        arguments::choice("the compression", name, &Compression::NAMED)
    })
}

/// The fields of `bytepair.Reading` that the core needs.
#[derive(FromPyObject)]
pub(crate) struct ReadingFields {
    column: String,
    errors: String,
    doc_cap: Option<usize>,
    max_chars: Option<u64>,
}

impl ReadingFields {
    /// The options of the core for reading and counting documents.
    pub(crate) fn options(self, bounds: &BoundFields) -> PyResult<FileCountOptions> {
        let Self { column: field, errors, doc_cap, max_chars } = self;
        let on_error = arguments::choice("errors", &errors, &OnError::NAMED)?;
        let &BoundFields { block_bytes, document_bytes, .. } = bounds;
        let bounds = Bounds { block_bytes, document_bytes };
        let documents = DocumentOptions { field, on_error, doc_cap, bounds };
        Ok(FileCountOptions { documents, max_chars })
    }
}

/// The fields of `bytepair.corpus.column.ReadBounds`.
#[derive(FromPyObject)]
#[expect(clippy::struct_field_names, reason = "the names in Python")]
pub(crate) struct BoundFields {
    block_bytes: usize,
    pub(crate) document_bytes: usize,
    pub(crate) page_bytes: usize,
}

/// The fields of `bytepair.corpus.read.DocumentSelection`.
#[derive(FromPyObject)]
pub(crate) struct SelectionFields {
    first: u64,
    start: u64,
    step: u64,
}
