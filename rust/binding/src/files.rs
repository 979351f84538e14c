//! `DocumentReader`: reads the documents of files; and how Python names files and places in them.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytepair::Reached;
use bytepair::corpus::{
    Compression, CorpusFile, DocumentOptions, DocumentReader, FileKind, OnError,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// A path, `"text"` or `"jsonl"`, and `"gzip"`, `"zstd"` or `None`.
pub(crate) type FileTuple = (PathBuf, String, Option<String>);

/// The number of a file, the byte in it, the lines and the documents before that, and the
/// characters that were counted.
pub(crate) type PlaceTuple = (usize, u64, u64, u64, u64);

/// The bytes of a block and of the longest document; and a file that becomes larger than so many
/// bytes, and so many times as large as it is, is reported.
pub(crate) type BoundsTuple = (usize, usize, u64, u64);

/// Documents: the number of their file and of their block in it, the row of the first, their bytes
/// (uint8), where each begins and the last ends (int64), and the row and the reason of each that
/// was left out.
type BatchTuple<'py> =
    (usize, u64, u64, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>, Vec<(u64, String)>);

pub(crate) fn corpus_files(files: Vec<FileTuple>) -> PyResult<Vec<CorpusFile>> {
    files.into_iter().map(corpus_file).collect()
}

fn corpus_file((path, kind, compression): FileTuple) -> PyResult<CorpusFile> {
    let wrong = |what| PyValueError::new_err(format!("{what:?} is no kind of file"));
    let kind = match &*kind {
        "text" => FileKind::Text,
        "jsonl" => FileKind::Jsonl,
        other => return Err(wrong(other)),
    };
    let compression = match compression.as_deref() {
        None => Compression::None,
        Some("gzip") => Compression::Gzip,
        Some("zstd") => Compression::Zstd,
        Some(other) => return Err(wrong(other)),
    };
    Ok(CorpusFile { path, kind, compression })
}

pub(crate) fn options(
    field: String,
    errors: &str,
    doc_cap: Option<usize>,
    (block_bytes, document_bytes, harmless_bytes, harmless_times): BoundsTuple,
) -> PyResult<DocumentOptions> {
    let on_error = match errors {
        "strict" => OnError::Strict,
        "replace" => OnError::Replace,
        "skip" => OnError::Skip,
        other => {
            return Err(PyValueError::new_err(format!(
                "errors is {other:?}; it must be \"strict\", \"replace\" or \"skip\""
            )));
        }
    };
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

/// Reads the documents of files in order, as batches of arrays.
#[pyclass(frozen, name = "DocumentReader", module = "bytepair._core")]
pub(crate) struct PyDocumentReader {
    reader: Mutex<DocumentReader>,
    /// What a file object of Python raised.
    raised: Raised,
}

type Raised = Arc<Mutex<Option<PyErr>>>;

impl PyDocumentReader {
    fn lock(&self) -> MutexGuard<'_, DocumentReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error of the core, or what a file object raised that led to it.
fn raised_or(raised: &Raised, error: &bytepair::Error) -> PyErr {
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.unwrap_or_else(|| errors::python(error))
}

#[pymethods]
impl PyDocumentReader {
    /// Read files, or only the first, whose bytes `source.read(size)` gives, of the number `size`.
    #[new]
    #[pyo3(signature = (files, field, *, errors="strict", doc_cap=None, bounds, source=None, size=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        files: Vec<FileTuple>,
        field: String,
        errors: &str,
        doc_cap: Option<usize>,
        bounds: BoundsTuple,
        source: Option<Py<PyAny>>,
        size: u64,
    ) -> PyResult<Self> {
        let mut files = corpus_files(files)?;
        let options = options(field, errors, doc_cap, bounds)?;
        let raised = Raised::default();
        let reader = match (source, files.pop()) {
            (Some(file), Some(named)) => {
                let source = Box::new(FileObject { file, raised: Arc::clone(&raised) });
                py.detach(|| DocumentReader::from_source(named, size, source, options))
            }
            (_, last) => {
                files.extend(last);
                Ok(DocumentReader::new(files, options))
            }
        };
        let reader = Mutex::new(reader.map_err(|error| raised_or(&raised, &error))?);
        Ok(Self { reader, raised })
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The documents of the next block.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<BatchTuple<'py>> {
        py.check_signals()?;
        let read = py.detach(|| self.lock().read());
        let read = read.map_err(|error| raised_or(&self.raised, &error))?;
        let Some(documents) = read else { return Err(PyStopIteration::new_err(())) };
        let offsets = documents.offsets().map_err(|error| errors::python(&error))?;
        let skipped = documents.skipped.into_iter().map(|skip| (skip.row, skip.reason)).collect();
        let (bytes, offsets) = (documents.bytes.into_pyarray(py), offsets.into_pyarray(py));
        Ok((documents.file, documents.unit, documents.first_row, bytes, offsets, skipped))
    }

    /// How many bytes of the files were read, compressed as they are.
    #[getter]
    fn packed(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().packed())
    }

    /// The files that became much larger since the last call, and how large.
    fn take_expanded(&self, py: Python<'_>) -> Vec<(usize, u64)> {
        py.detach(|| self.lock().take_expanded())
    }
}

/// A file object of Python, as a reader.
struct FileObject {
    file: Py<PyAny>,
    raised: Raised,
}

impl Read for FileObject {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |py: Python<'_>| {
            let bytes = self.file.call_method1(py, "read", (buffer.len(),))?;
            let bytes = bytes.bind(py).cast::<PyBytes>()?.as_bytes();
            let wrong = || PyValueError::new_err("read(size) gave more bytes than were asked for");
            let room = buffer.get_mut(..bytes.len()).ok_or_else(wrong)?;
            room.copy_from_slice(bytes);
            Ok(bytes.len())
        };
        Python::attach(read).map_err(|error: PyErr| {
            let text = error.to_string();
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            io::Error::other(text)
        })
    }
}
