//! Files: the tokens of a rank file, the footer of counts, rows of parquet, decompression.

use std::io;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytepair::CountsFile;
use bytepair::corpus::parquet::{ReadAt, TextColumn};
use bytepair::corpus::{CorpusFile, FileKind};
use bytepair::formats::ranks::RankFile;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::{documents, errors};

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
    compression: Option<&str>,
    write: &Bound<'_, PyAny>,
    source: Option<Py<PyAny>>,
) -> PyResult<()> {
    let raised = Raised::default();
    let failed = |error: bytepair::Error| raised.or(&error);
    let compression = documents::compression(compression)?;
    let file = CorpusFile { path, kind: FileKind::Text, compression };
    let source = source.map(|file| Box::new(FileObject::new(file, 0, &raised)) as _);
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

/// What a rank file contains.
#[pyclass(frozen, get_all, name = "RankFile", module = "bytepair._core")]
pub(crate) struct PyRankFile {
    /// The tokens with their ranks.
    pub(crate) ranks: Py<PyDict>,
    /// The rank of the token without bytes, if there is one.
    pub(crate) empty: Option<u32>,
}

/// Read the bytes of a rank file.
#[pyfunction]
pub(crate) fn rank_file(py: Python<'_>, data: &[u8]) -> PyResult<PyRankFile> {
    let file = errors::checked(py.detach(|| RankFile::read(data)))?;
    let ranks = PyDict::new(py);
    for (token, rank) in file.tokens {
        ranks.set_item(PyBytes::new(py, &token), rank)?;
    }
    Ok(PyRankFile { ranks: ranks.unbind(), empty: file.empty })
}

/// The names of the columns of a parquet file, and its metadata.
#[pyclass(frozen, get_all, name = "CountsFooter", module = "bytepair._core")]
pub(crate) struct PyCountsFooter {
    /// The names of the columns.
    pub(crate) columns: Vec<String>,
    /// Keys and values.
    pub(crate) metadata: Vec<(String, String)>,
}

/// What a parquet file says of itself.
#[pyfunction]
pub(crate) fn counts_footer(py: Python<'_>, path: PathBuf) -> PyResult<PyCountsFooter> {
    let file = errors::checked(py.detach(|| CountsFile::open(path)))?;
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let columns = file.columns().map(str::to_owned).collect();
    Ok(PyCountsFooter { columns, metadata: file.metadata().map(owned).collect() })
}

/// The exception that a Python file object raised, if any; a reader and its file object share it.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The exception of the file object, if it caused this error of the core; otherwise the error.
    pub(crate) fn or(&self, error: &bytepair::Error) -> PyErr {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| errors::python(error))
    }
}

/// A Python file object as a source of bytes.
pub(crate) struct FileObject {
    file: Py<PyAny>,
    size: u64,
    raised: Raised,
}

impl FileObject {
    /// A file of `size` bytes; reading from the current position needs no size.
    pub(crate) fn new(file: Py<PyAny>, size: u64, raised: &Raised) -> Self {
        Self { file, size, raised: raised.clone() }
    }

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
            self.raised.put(error);
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
