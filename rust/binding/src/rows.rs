//! `encode_rows`: reads and encodes documents of parquet files without Python.

use std::path::PathBuf;

use bytepair::bulk::parquet_rows::{Job, Rows};
use bytepair::corpus::parquet::{RowRange, TextColumn};
use bytepair::encode::Id;
use bytepair::{Error, Tokenizer};
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;

use crate::file_place::PyFilePlace;
use crate::row_range::PyRowRange;
use crate::{arguments, arrays, errors};

/// Larger pages, in bytes, are not decompressed here, because every thread would hold one.
const PAGE_BYTES: usize = 1 << 26;

/// Encode the documents of a column of parquet files, from the row `first` of the first file on.
///
/// `take` is called for each item of rows, in order, with its ids, the offsets of its documents in
/// the ids, their offsets in the bytes of text, and its parts. Returns the file and the row at
/// which encoding ended: after the last file, or at the first part that the core cannot read or
/// encode.
#[pyfunction]
#[pyo3(signature = (tokenizer, files, column, take, *, first=0, doc_cap=None, prepend=None,
                    append=None, most_bytes, threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn encode_rows<'py>(
    py: Python<'py>,
    tokenizer: &Bound<'py, crate::tokenizer::PyTokenizer>,
    files: Vec<PathBuf>,
    column: &str,
    take: &Bound<'py, PyAny>,
    first: usize,
    doc_cap: Option<usize>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    most_bytes: usize,
    threads: Option<arguments::ThreadCount>,
) -> PyResult<PyFilePlace> {
    let options = &tokenizer.get().options(None, prepend, append, None)?;
    let tokenizer = tokenizer.get().core();
    let threads = arguments::threads(threads);
    let (column, ranges, end) = py.detach(|| plan(&files, column));
    let column = &column.with_bounds(PAGE_BYTES, most_bytes);
    let items = &bytepair::bulk::parquet_rows::items(column, ranges, first);
    let job = Job { column, items, options, doc_cap };
    let take = take.clone().unbind();
    let done = arrays::with_width!(tokenizer, Id => {
        encode::<Id>(py, tokenizer, &job, threads, &take)
    })?;
    let left = items.iter().flatten().nth(done);
    let (file, row) =
        left.map_or((end, if end == 0 { first } else { 0 }), |part| place(column, part));
    Ok(PyFilePlace::at_row(file, row as u64, 0))
}

/// The column in the files before the first one that cannot be read, their row ranges, and their
/// number.
fn plan(files: &[PathBuf], column: &str) -> (TextColumn, Vec<RowRange>, usize) {
    let column = TextColumn::open_first(files, column);
    let of_files = (0..column.files()).map_while(|file| column.ranges_of_file(file).ok());
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
    let (mut stopped, mut items, mut done) = (None, job.items.iter(), 0);
    let sink = |rows: Option<Rows<T>>| {
        let result = Python::attach(|py| {
            py.check_signals()?;
            let Some(rows) = rows else { return Ok(true) };
            let item = items.next().map_or(&[][..], Vec::as_slice);
            let parts = &item[..rows.parts];
            done += parts.len();
            hand_over(py, rows, job.column, parts, take)?;
            Ok(parts.len() == item.len())
        });
        match result {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Interrupted),
            Err(error) => {
                stopped = Some(error);
                Err(Error::Interrupted)
            }
        }
    };
    let encoded = py.detach(|| tokenizer.encode_rows(job, threads, sink));
    match (stopped, encoded) {
        (Some(error), _) => Err(error),
        (None, Ok(()) | Err(Error::Interrupted)) => Ok(done),
        (None, Err(error)) => Err(errors::python(&error)),
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
        PyRowRange { file, row, rows: part.rows.len() }
    });
    let parts: Vec<PyRowRange> = parts.collect();
    let Rows { ids, offsets, text_ends, .. } = rows;
    let arrays = (ids.into_pyarray(py), offsets.into_pyarray(py), text_ends.into_pyarray(py));
    take.call1(py, (arrays.0, arrays.1, arrays.2, parts)).map(drop)
}
