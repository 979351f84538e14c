//! `RankFile`: the tokens of a rank file.

use bytepair::formats::ranks::RankFile;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors;

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
