//! Rows of ids: a file or a list of texts to rows, and the packer.

use std::path::PathBuf;

use bytepair::bulk::parquet_rows::{Job, Rows};
use bytepair::corpus::parquet::{RowRange, TextColumn};
use bytepair::encode::Id;
use bytepair::rows::{RowPacker, RowPiece, SourceRange};
use bytepair::{Error, Tokenizer, rows};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::{arguments, arrays, errors, interrupt};

/// Larger pages, in bytes, are not decompressed here, because every thread would hold one.
const PAGE_BYTES: usize = 1 << 26;

/// Encode the documents of a column of parquet files, from the row `first` of the first file on.
///
/// `take` is called for each item of rows, in order, with its ids, the offsets of its documents in
/// the ids, their offsets in the bytes of text, and its parts: the index of a file, the first row and
/// the number of rows. Returns the file and the row at which encoding ended: after the last file, or at
/// the first part that the core cannot read or encode.
#[pyfunction]
#[pyo3(signature = (tokenizer, files, column, take, *, first=0, doc_cap=None, prepend=None,
                    append=None, most_bytes, threads=None))]
pub(crate) fn encode_rows<'py>(
    py: Python<'py>,
    tokenizer: &crate::tokenizer::PyTokenizer,
    files: Vec<PathBuf>,
    column: &str,
    take: &Bound<'py, PyAny>,
    first: usize,
    doc_cap: Option<usize>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    most_bytes: usize,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<(usize, usize)> {
    let options = &tokenizer.options(None, prepend, append, None)?;
    let tokenizer = &tokenizer.core;
    let threads = arguments::threads(threads);
    let (column, ranges, end) = py.detach(|| plan(&files, column, first));
    let column = &column.with_page_limit(PAGE_BYTES);
    let items = &bytepair::bulk::parquet_rows::items(column, ranges);
    let job = Job { column, items, options, most_bytes, doc_cap };
    let take = take.clone().unbind();
    let done = arrays::with_width!(tokenizer, Id => {
        encode::<Id>(py, tokenizer, &job, threads, &take)
    })?;
    let left = items.iter().flatten().nth(done);
    Ok(left.map_or((end, if end == 0 { first } else { 0 }), |part| place(column, part)))
}

/// The column in the files before the first one that cannot be read, their row ranges from the row
/// `first` of the first file on, and their number.
fn plan(files: &[PathBuf], column: &str, first: usize) -> (TextColumn, Vec<RowRange>, usize) {
    let column = TextColumn::open_first(files, column);
    let row = |file| if file == 0 { first } else { 0 };
    let of_files =
        (0..column.files()).map_while(|file| column.ranges_of_file(file, row(file)).ok());
    let of_files: Vec<_> = of_files.collect();
    let (ranges, end) = (of_files.concat(), of_files.len());
    (column, ranges, end)
}

/// The file of a part, and the row of that file at which the part starts.
fn place(column: &TextColumn, part: &RowRange) -> (usize, usize) {
    (part.file, column.first_row(part.file, part.group) + part.rows.start)
}

/// Returns how many parts were encoded.
fn encode<T: Id + Element>(
    py: Python<'_>,
    tokenizer: &Tokenizer,
    job: &Job<'_>,
    threads: usize,
    take: &Py<PyAny>,
) -> PyResult<usize> {
    arrays::ready(py)?;
    let (mut items, mut done) = (job.items.iter(), 0);
    let sink = |rows: Option<Rows<T>>| {
        let is_whole = interrupt::call(|py| {
            let Some(rows) = rows else { return Ok(true) };
            let item = items.next().map_or(&[][..], Vec::as_slice);
            let parts = &item[..rows.parts];
            done += parts.len();
            hand_over(py, rows, job.column, parts, take)?;
            Ok(parts.len() == item.len())
        })?;
        if is_whole { Ok(()) } else { Err(Error::Interrupted) }
    };
    match py.detach(|| tokenizer.encode_rows(job, threads, sink)) {
        Err(Error::Interrupted) => interrupt::or(Ok(done)),
        encoded => errors::checked(encoded).map(|()| done),
    }
}

/// Pass the result of an item to Python.
fn hand_over<T: Element>(
    py: Python<'_>,
    rows: Rows<T>,
    column: &TextColumn,
    parts: &[RowRange],
    take: &Py<PyAny>,
) -> PyResult<()> {
    if parts.is_empty() {
        return Ok(());
    }
    let parts = parts.iter().map(|part| {
        let (file, row) = place(column, part);
        (file, row, part.rows.len())
    });
    let parts: Vec<(usize, usize, usize)> = parts.collect();
    let Rows { ids, offsets, text_ends, .. } = rows;
    let arrays = (ids.into_pyarray(py), offsets.into_pyarray(py), text_ends.into_pyarray(py));
    take.call1(py, (arrays.0, arrays.1, arrays.2, parts)).map(drop)
}

/// Fills rows with documents by best fit, while documents come.
#[pyclass(name = "RowPacker", module = "bytepair._core")]
pub(crate) struct PyRowPacker(RowPacker);

#[pymethods]
impl PyRowPacker {
    /// With `cut`, the shortest waiting document is cut to fill a row into which none fits; else
    /// the row ends there.
    #[new]
    #[pyo3(signature = (width, buffer, *, cut))]
    fn new(width: usize, buffer: usize, cut: bool) -> Self {
        Self(RowPacker::new(width, buffer, cut))
    }

    /// Add a document; of equally long ones, that with the lowest number is first.
    fn add(&mut self, document: usize, length: usize) {
        self.0.add(document, length);
    }

    /// The next complete row: the numbers of documents, each with the number of its ids in the row.
    /// None if more documents must be added first.
    fn row(&mut self) -> Option<Vec<RowPiece>> {
        self.0.row()
    }
}

/// Pack documents of known lengths into full rows: the document of each piece, its number of ids,
/// the end of each row.
#[pyfunction]
pub(crate) fn plan_rows<'py>(
    py: Python<'py>,
    lengths: arrays::ArrayArgument<'_, usize>,
    width: usize,
    buffer: usize,
) -> PyResult<[Bound<'py, PyArray1<usize>>; 3]> {
    let lengths = lengths.as_slice()?;
    let plan = errors::checked(py.detach(|| rows::plan_rows(lengths, width, buffer)))?;
    Ok([plan.documents, plan.takes, plan.ends].map(|numbers| numbers.into_pyarray(py)))
}

/// Place whole documents in rows: the row of each, and its first column in that row.
#[pyfunction]
pub(crate) fn pack<'py>(
    py: Python<'py>,
    lengths: arrays::ArrayArgument<'_, i64>,
    width: usize,
) -> PyResult<[Bound<'py, PyArray1<i64>>; 2]> {
    let lengths = lengths.as_array();
    let lengths = lengths.iter().map(|&length| Ok(usize::try_from(length)?));
    let lengths: Vec<usize> = errors::collect(lengths)?;
    let places = errors::checked(py.detach(|| rows::place_whole(&lengths, width)))?;
    let of_rows = errors::collect(places.iter().map(|&(row, _)| Ok(arrays::integer(row))))?;
    let columns = errors::collect(places.iter().map(|&(_, column)| Ok(arrays::integer(column))))?;
    Ok([of_rows, columns].map(|numbers| numbers.into_pyarray(py)))
}

/// The CRC-32 of an array, continuing from `start`, the CRC-32 of the preceding bytes.
#[pyfunction]
#[pyo3(signature = (bytes, start=0))]
pub(crate) fn crc32(
    py: Python<'_>,
    bytes: arrays::ArrayArgument<'_, u8>,
    start: u32,
) -> PyResult<u32> {
    let bytes = bytes.as_slice()?;
    Ok(py.detach(|| bytepair::crc32(bytes, start)))
}

/// Copy ranges of ids, one after the other, until `out` is full.
#[pyfunction]
pub(crate) fn gather<'py>(
    py: Python<'py>,
    sources: Vec<Bound<'py, PyAny>>,
    which: arrays::ArrayArgument<'py, usize>,
    starts: arrays::ArrayArgument<'py, usize>,
    lengths: arrays::ArrayArgument<'py, usize>,
    out: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let (which, starts, lengths) = (which.as_slice()?, starts.as_slice()?, lengths.as_slice()?);
    let pieces = which.iter().zip(starts).zip(lengths);
    let pieces = errors::collect(
        pieces.map(|((&source, &start), &length)| Ok(SourceRange { source, start, length })),
    )?;
    match out.extract::<PyReadwriteArray1<'py, u16>>() {
        Ok(out) => copy(py, &sources, &pieces, out),
        Err(_) => copy(py, &sources, &pieces, out.extract::<PyReadwriteArray1<'py, u32>>()?),
    }
}

fn copy<'py, T: Element + Copy + Sync + Send>(
    py: Python<'py>,
    sources: &[Bound<'py, PyAny>],
    pieces: &[SourceRange],
    mut out: PyReadwriteArray1<'py, T>,
) -> PyResult<()> {
    let array = |ids: &Bound<'py, PyAny>| ids.extract::<PyReadonlyArray1<'py, T>>();
    let arrays = errors::collect(sources.iter().map(array))?;
    let slices = errors::collect(arrays.iter().map(|ids| Ok(ids.as_slice()?)))?;
    let out = out.as_slice_mut()?;
    py.detach(|| bytepair::rows::gather(&slices, pieces, out)).ok_or_else(|| {
        PyValueError::new_err("the pieces exceed their source arrays, or do not fill `out` exactly")
    })
}
