//! `CountsFooter`: what a parquet file says of itself.

use std::path::PathBuf;

use bytepair::CountsFile;
use pyo3::prelude::*;

use crate::errors;

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
