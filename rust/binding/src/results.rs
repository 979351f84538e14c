//! The results of calls, as Python sees them: frozen classes with attributes.

use bytepair::corpus::{Documents, FilePlace, SkippedRows};
use bytepair::train::Mismatch;
use bytepair::{CountProgress, Reached};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors;

/// A range of skipped documents of a file.
#[pyclass(frozen, get_all, name = "SkippedRows", module = "bytepair._core")]
pub(crate) struct PySkippedRows {
    /// The index of the file.
    file: usize,
    /// The first skipped row of the file.
    row: u64,
    /// The number of skipped rows; 0 if it is unknown: the rest of the file, which is damaged.
    rows: u64,
    /// Why they were skipped.
    reason: String,
    /// What to do about it; empty if it is an error that `errors` is for.
    hint: &'static str,
}

impl From<SkippedRows> for PySkippedRows {
    fn from(SkippedRows { file, row, rows, reason }: SkippedRows) -> Self {
        let hint = reason.hint();
        let hint = if hint.option == Some("errors") { "" } else { hint.python };
        Self { file, row, rows, reason: reason.text().to_owned(), hint }
    }
}

/// How far the counting of files has come.
#[pyclass(frozen, get_all, name = "CountProgress", module = "bytepair._core")]
pub(crate) struct PyCountProgress {
    /// The number of texts in the counter.
    texts: u64,
    /// The number of bytes of these texts.
    text_bytes: u64,
    /// The number of characters counted, if there is a limit.
    chars: u64,
    /// The number of bytes read from the files, before decompression; 0 for parquet.
    packed: u64,
    /// The indices of the files read since the last call, with their bytes so far: decompressed, or,
    /// for parquet, of text.
    unpacked: Vec<(usize, u64)>,
}

impl From<CountProgress> for PyCountProgress {
    fn from(progress: CountProgress) -> Self {
        let CountProgress { texts, text_bytes, chars, packed, unpacked } = progress;
        Self { texts, text_bytes, chars, packed, unpacked }
    }
}

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

/// Consecutive documents of a file.
#[pyclass(frozen, get_all, name = "DocumentBatch", module = "bytepair._core")]
pub(crate) struct PyDocumentBatch {
    /// The index of their block or row group.
    unit: u64,
    /// The row of the first document in the file.
    first_row: u64,
    /// Their concatenated bytes (uint8).
    data: Py<PyArray1<u8>>,
    /// The start of each document in `data`, and the end of the last (int64).
    offsets: Py<PyArray1<i64>>,
    /// What was skipped among them, in order.
    skipped: Vec<Py<PySkippedRows>>,
}

impl PyDocumentBatch {
    pub(crate) fn new(py: Python<'_>, documents: Documents) -> PyResult<Self> {
        let offsets = errors::checked(documents.offsets())?.into_pyarray(py).unbind();
        let skipped = documents.skipped.into_iter();
        let skipped = skipped.map(|skip| Py::new(py, PySkippedRows::from(skip)));
        let skipped = skipped.collect::<PyResult<_>>()?;
        let data = documents.bytes.into_pyarray(py).unbind();
        let (unit, first_row) = (documents.unit, documents.first_row);
        Ok(Self { unit, first_row, data, offsets, skipped })
    }
}

/// Two tokens that merge.
type BytePair = (Vec<u8>, Vec<u8>);

/// A merge of a list that training would not have made, and what it would have made instead.
#[pyclass(frozen, get_all, name = "UnmadeMerge", module = "bytepair._core")]
pub(crate) struct PyUnmadeMerge {
    /// The index of the merge.
    pub(crate) step: usize,
    /// The pair of tokens that the list merges.
    pub(crate) pair: BytePair,
    /// How often it occurred.
    pub(crate) count: u64,
    /// The pair that training would have merged; None if there was none.
    pub(crate) best: Option<BytePair>,
    /// How often that one occurred.
    pub(crate) best_count: Option<u64>,
}

impl PyUnmadeMerge {
    /// A mismatch of the core, given the bytes of each id.
    pub(crate) fn new(mismatch: &Mismatch, tokens: &[Vec<u8>]) -> Self {
        let bytes = |(left, right): (u32, u32)| {
            (tokens[left as usize].clone(), tokens[right as usize].clone())
        };
        let (pair, count) = mismatch.pair;
        Self {
            step: mismatch.step,
            pair: bytes(pair),
            count,
            best: mismatch.best.map(|(pair, _)| bytes(pair)),
            best_count: mismatch.best.map(|(_, count)| count),
        }
    }
}
