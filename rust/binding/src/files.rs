//! `parquet_rows` and `unpack`: what Python asks of a whole file.

use std::path::PathBuf;

use bytepair::corpus::parquet::TextColumn;
use bytepair::corpus::{CorpusFile, FileKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::file_object::{FileObject, Raised};
use crate::reading;

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
    let compression = reading::compression(compression)?;
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
