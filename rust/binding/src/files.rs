//! `DocumentReader` reads the documents of a file; and conversions of the tuples with which Python
//! passes files, positions in them, and bounds.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytepair::Reached;
use bytepair::corpus::parquet::{ReadAt, TableReader, TextColumn, Windowed};
use bytepair::corpus::{
    Compression, CorpusFile, DocumentOptions, DocumentReader, Documents, FileKind, OnError, Wanted,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{arguments, arrays, errors};

/// A file: its path; its kind, `"text"`, `"jsonl"` or `"lines"`; and its compression, `"gzip"`,
/// `"zstd"` or `None`.
pub(crate) type FileTuple = (PathBuf, String, Option<String>);

/// A position: the index of the file, the offset of a byte in it, the numbers of lines and of
/// documents before that byte, and the number of characters counted so far.
pub(crate) type PlaceTuple = (usize, u64, u64, u64, u64);

/// The bytes of a block, and of the longest document; then the two expansion bounds: a file is
/// reported if it decompresses to more than this many bytes and to more than this many times its
/// size.
pub(crate) type BoundsTuple = (usize, usize, u64, u64);

/// Documents: the index of their block or row group, the row of the first, their concatenated bytes
/// (uint8), the start of each and the end of the last (int64), and for each skipped range of rows
/// its first row, its number of rows, and the reason.
type BatchTuple<'py> =
    (u64, u64, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>, Vec<(u64, u64, String)>);

/// The documents to read: the first row, the first block or row group, and the step from one block
/// or row group to the next.
type WantedTuple = (u64, u64, u64);

pub(crate) fn corpus_files(files: Vec<FileTuple>) -> PyResult<Vec<CorpusFile>> {
    files.into_iter().map(corpus_file).collect()
}

fn corpus_file((path, kind, compression): FileTuple) -> PyResult<CorpusFile> {
    let kind = arguments::choice("the kind of the file", &kind, &FileKind::NAMED)?;
    let compression = compression.map_or(Ok(Compression::None), |name| {
        arguments::choice("the compression", &name, &Compression::NAMED)
    })?;
    Ok(CorpusFile { path, kind, compression })
}

pub(crate) fn options(
    field: String,
    errors: &str,
    doc_cap: Option<usize>,
    (block_bytes, document_bytes, harmless_bytes, harmless_times): BoundsTuple,
) -> PyResult<DocumentOptions> {
    let on_error = arguments::choice("errors", errors, &OnError::NAMED)?;
    let bounds =
        bytepair::corpus::Bounds { block_bytes, document_bytes, harmless_bytes, harmless_times };
    Ok(DocumentOptions { field, on_error, doc_cap, bounds })
}

pub(crate) fn reached((file, byte, line, row, chars): PlaceTuple) -> Reached {
    Reached { place: bytepair::corpus::FilePlace { file, byte, line, row }, chars }
}

pub(crate) fn place(Reached { place, chars }: Reached) -> PlaceTuple {
    (place.file, place.byte, place.line, place.row, chars)
}

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

type Raised = Arc<Mutex<Option<PyErr>>>;

impl PyDocumentReader {
    fn lock(&self) -> MutexGuard<'_, FileReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The exception of the Python file object, if it caused this error of the core; otherwise the
/// error.
fn raised_or(raised: &Raised, error: &bytepair::Error) -> PyErr {
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.unwrap_or_else(|| errors::python(error))
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
                        wanted=(0, 0, 1), source=None, size=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        file: FileTuple,
        field: String,
        errors: &str,
        doc_cap: Option<usize>,
        bounds: BoundsTuple,
        page_bytes: usize,
        wanted: WantedTuple,
        source: Option<Py<PyAny>>,
        size: u64,
    ) -> PyResult<Self> {
        let options = options(field, errors, doc_cap, bounds)?;
        let wanted = Wanted { first_row: wanted.0, start: wanted.1, step: wanted.2 };
        let raised = Raised::default();
        let object = source.map(|file| FileObject { file, size, raised: Arc::clone(&raised) });
        let reader = if file.1 == "parquet" {
            py.detach(|| table(&file.0, object, options, page_bytes, wanted))
                .map(|table| FileReader::Table(Box::new(table)))
        } else {
            let file = corpus_file(file)?;
            py.detach(|| blocks(file, object, options))
                .map(|reader| FileReader::Blocks(Box::new(reader.with_wanted(wanted))))
        };
        let reader = Mutex::new(reader.map_err(|error| raised_or(&raised, &error))?);
        Ok(Self { reader, raised })
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next documents.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<BatchTuple<'py>> {
        arrays::ready(py)?;
        py.check_signals()?;
        let read = py.detach(|| self.lock().read());
        let read = read.map_err(|error| raised_or(&self.raised, &error))?;
        let Some(documents) = read else { return Err(PyStopIteration::new_err(())) };
        let offsets = errors::checked(documents.offsets())?;
        let skipped = documents.skipped.into_iter();
        let skipped = skipped.map(|skip| (skip.row, skip.rows, skip.reason)).collect();
        let (bytes, offsets) = (documents.bytes.into_pyarray(py), offsets.into_pyarray(py));
        Ok((documents.unit, documents.first_row, bytes, offsets, skipped))
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
        Some(object) => DocumentReader::from_source(file, object.size, Box::new(object), options),
        None => Ok(DocumentReader::new(file, options)),
    }
}

fn table(
    path: &PathBuf,
    object: Option<FileObject>,
    options: DocumentOptions,
    page_bytes: usize,
    wanted: Wanted,
) -> bytepair::Result<TableReader> {
    let column = match object {
        Some(object) => {
            TextColumn::of_source(Arc::new(Windowed::new(object)), path, &options.field)
        }
        None => TextColumn::open(&[path], &options.field),
    };
    Ok(TableReader::new(column?.with_bounds(page_bytes, usize::MAX), options, wanted))
}

/// The number of rows of a parquet file with the column; `None` if it cannot be read.
#[pyfunction]
pub(crate) fn parquet_rows(py: Python<'_>, path: PathBuf, column: &str) -> Option<usize> {
    py.detach(|| TextColumn::open(&[path], column).ok().map(|column| column.rows(0)))
}

/// Read all bytes of a file, decompressed, and pass them to `write`, about a megabyte at a time.
/// The compressed bytes come from `source`, or from the file at the path.
#[pyfunction]
#[pyo3(signature = (path, compression, write, *, source=None))]
pub(crate) fn unpack(
    py: Python<'_>,
    path: PathBuf,
    compression: Option<String>,
    write: &Bound<'_, PyAny>,
    source: Option<Py<PyAny>>,
) -> PyResult<()> {
    let raised = Raised::default();
    let failed = |error: bytepair::Error| raised_or(&raised, &error);
    let file = corpus_file((path, "text".to_owned(), compression))?;
    let object = source.map(|file| FileObject { file, size: 0, raised: Arc::clone(&raised) });
    let source = object.map(|object| Box::new(object) as _);
    let mut stream = py.detach(|| file.unpack(source)).map_err(failed)?;
    loop {
        let bytes = py.detach(|| stream.next_bytes()).map_err(failed)?;
        if bytes.is_empty() {
            return Ok(());
        }
        write.call1((PyBytes::new(py, &bytes),))?;
        py.check_signals()?;
    }
}

/// A Python file object as a source of bytes.
struct FileObject {
    file: Py<PyAny>,
    size: u64,
    raised: Raised,
}

impl FileObject {
    /// Read from the current position of the file object, or from `offset`.
    fn read_from(&self, offset: Option<u64>, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |py: Python<'_>| {
            if let Some(offset) = offset {
                self.file.call_method1(py, "seek", (offset,))?;
            }
            let bytes = self.file.call_method1(py, "read", (buffer.len(),))?;
            let bytes = bytes.bind(py).cast::<PyBytes>()?.as_bytes();
            let wrong = || PyValueError::new_err("read(size) returned more than size bytes");
            let destination = buffer.get_mut(..bytes.len()).ok_or_else(wrong)?;
            destination.copy_from_slice(bytes);
            Ok(bytes.len())
        };
        Python::attach(read).map_err(|error: PyErr| {
            let text = error.to_string();
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            // Of a kind that no decompressor uses: a source that fails is not a damaged file.
            io::Error::new(io::ErrorKind::ConnectionAborted, text)
        })
    }
}

impl Read for FileObject {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_from(None, buffer)
    }
}

impl ReadAt for FileObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_from(Some(offset), buffer)
    }
}
