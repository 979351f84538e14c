//! `FilePlace`: a position in a list of files.

use bytepair::Reached;
use bytepair::corpus::FilePlace;
use pyo3::prelude::*;

/// A position in a list of files, and what was counted up to it.
#[pyclass(frozen, eq, get_all, from_py_object, name = "FilePlace", module = "bytepair._core")]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PyFilePlace {
    /// The index of the file.
    pub(crate) file: usize,
    /// The offset of a byte in the file.
    byte: u64,
    /// The number of lines before that byte.
    line: u64,
    /// The number of documents before that byte.
    pub(crate) row: u64,
    /// The number of characters counted so far, in all files.
    pub(crate) chars: u64,
}

#[pymethods]
impl PyFilePlace {
    #[new]
    #[pyo3(signature = (file=0, byte=0, line=0, row=0, chars=0))]
    fn new(file: usize, byte: u64, line: u64, row: u64, chars: u64) -> Self {
        Self { file, byte, line, row, chars }
    }
}

impl PyFilePlace {
    /// A position at a row of a parquet file.
    pub(crate) fn at_row(file: usize, row: u64, chars: u64) -> Self {
        Self { file, row, chars, ..Self::default() }
    }
}

impl From<Reached> for PyFilePlace {
    fn from(Reached { place, chars }: Reached) -> Self {
        Self { file: place.file, byte: place.byte, line: place.line, row: place.row, chars }
    }
}

impl From<PyFilePlace> for Reached {
    fn from(PyFilePlace { file, byte, line, row, chars }: PyFilePlace) -> Self {
        Self { place: FilePlace { file, byte, line, row }, chars }
    }
}
