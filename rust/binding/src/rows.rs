//! `encode_rows`: reads and encodes documents of parquet files without Python.

use std::path::PathBuf;

use bytepair::batch::parquet_rows::{Job, Rows};
use bytepair::corpus::parquet::{ColumnChunk, Footer, RowRange, TextColumn};
use bytepair::encode::Id;
use bytepair::{Error, Tokenizer};
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;

use crate::{arguments, arrays, errors};

/// Larger pages are not decompressed here, because every thread would hold one.
const PAGE: usize = 1 << 26;

/// A part of an item: file, row group, first row, and the row after its last.
type RangeTuple = (usize, usize, usize, usize);

/// Of a row group: its rows, the values of the column, the bytes of its pages decompressed and
/// compressed, the offsets of the first dictionary page and the first data page, and the encodings.
type ChunkTuple = (i64, i64, i64, i64, Option<i64>, i64, Vec<String>);

/// The metadata of a column in the footer of a file, for each row group, and whether the core can
/// read its texts; `None` if there is no such column, or if the footer is damaged.
#[pyfunction]
pub(crate) fn parquet_footer(
    py: Python<'_>,
    file: PathBuf,
    column: &str,
) -> Option<(Vec<ChunkTuple>, bool)> {
    let facts = |chunk: ColumnChunk| {
        let ColumnChunk { rows, values, unpacked, packed, dictionary, data, encodings } = chunk;
        (rows, values, unpacked, packed, dictionary, data, encodings)
    };
    let Footer { chunks, is_read } = py.detach(|| Footer::open(&file, column))?;
    Some((chunks.into_iter().map(facts).collect(), is_read))
}

/// Encode rows of a column of parquet files. `take` is called for each item, in order, with its
/// ids, the start of each document in them, the same for the bytes of text, and the number of its
/// parts that were encoded; if that is less than all, the next part could not be read or encoded.
/// Encoding ends when `take` returns false. Returns false, before any call, if the core cannot read
/// the files or if rows are missing.
#[pyfunction]
#[pyo3(signature = (tokenizer, files, column, items, take, *, prepend=None, append=None, most_bytes,
                    threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn encode_rows<'py>(
    py: Python<'py>,
    tokenizer: &Bound<'py, crate::tokenizer::PyTokenizer>,
    files: Vec<PathBuf>,
    column: &str,
    items: Vec<Vec<RangeTuple>>,
    take: &Bound<'py, PyAny>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    most_bytes: usize,
    threads: Option<usize>,
) -> PyResult<bool> {
    let options = tokenizer.get().options(None, prepend, append)?;
    let tokenizer = tokenizer.get().core();
    let threads = arguments::threads(threads)?;
    let Ok(column) = py.detach(|| TextColumn::open(&files, column)) else { return Ok(false) };
    let column = column.with_bounds(PAGE, most_bytes);
    let part = |(file, group, start, end)| RowRange { file, group, rows: start..end };
    let items: Vec<Vec<_>> =
        items.into_iter().map(|parts| parts.into_iter().map(part).collect()).collect();
    if !items.iter().flatten().all(|part| column.has(part)) {
        return Ok(false);
    }
    let job = Job { column: &column, items: &items, options: &options };
    let take = take.clone().unbind();
    arrays::with_width!(tokenizer, Id => encode::<Id>(py, tokenizer, &job, threads, &take))
}

fn encode<T: Id + Element>(
    py: Python<'_>,
    tokenizer: &Tokenizer,
    job: &Job<'_>,
    threads: usize,
    take: &Py<PyAny>,
) -> PyResult<bool> {
    let mut stopped = None;
    let sink = |rows: Option<Rows<T>>| {
        let taken = Python::attach(|py| match rows {
            Some(rows) => hand_over(py, rows, take),
            None => py.check_signals().map(|()| true),
        });
        match taken {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Interrupted),
            Err(error) => {
                stopped = Some(error);
                Err(Error::Interrupted)
            }
        }
    };
    let done = py.detach(|| tokenizer.encode_rows(job, threads, sink));
    match (stopped, done) {
        (Some(error), _) => Err(error),
        (None, Ok(()) | Err(Error::Interrupted)) => Ok(true),
        (None, Err(error)) => Err(errors::python(&error)),
    }
}

/// Pass the result of an item to Python; returns whether Python wants more.
fn hand_over<T: Element>(py: Python<'_>, rows: Rows<T>, take: &Py<PyAny>) -> PyResult<bool> {
    py.check_signals()?;
    let Rows { ids, offsets, text_ends, parts } = rows;
    let arrays = (ids.into_pyarray(py), offsets.into_pyarray(py), text_ends.into_pyarray(py));
    take.call1(py, (arrays.0, arrays.1, arrays.2, parts))?.is_truthy(py)
}
