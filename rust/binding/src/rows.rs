//! `encode_rows`: documents of parquet files, read and encoded without Python.

use std::path::PathBuf;

use bytepair::batch::parquet_rows::{Job, Rows};
use bytepair::corpus::parquet::{ColumnChunk, Footer, RowRange, TextColumn};
use bytepair::encode::Id;
use bytepair::{Error, Tokenizer};
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;

use crate::{arguments, errors};

/// A page of more bytes is not unpacked here, where each thread would have one.
const PAGE: usize = 1 << 26;

/// A part: its file, its row group there, and its first row and the one behind its last in that.
type Place = (usize, usize, usize, usize);

/// The rows of a row group, the values of the column in it, the bytes of its pages unpacked and as
/// they are, where the first page of a dictionary and of data begin, and the encodings.
type Facts = (i64, i64, i64, i64, Option<i64>, i64, Vec<String>);

/// What the footer of a file says of a column in each row group, and whether its texts can be read
/// here; `None` if there is no such column, or the footer is damaged.
#[pyfunction]
pub(crate) fn parquet_footer(
    py: Python<'_>,
    file: PathBuf,
    column: &str,
) -> Option<(Vec<Facts>, bool)> {
    let facts = |chunk: ColumnChunk| {
        let ColumnChunk { rows, values, unpacked, packed, dictionary, data, encodings } = chunk;
        (rows, values, unpacked, packed, dictionary, data, encodings)
    };
    let Footer { chunks, is_read } = py.detach(|| Footer::open(&file, column))?;
    Some((chunks.into_iter().map(facts).collect(), is_read))
}

/// Encode rows of a column of parquet files, and call `take` for each item, in order, with its ids,
/// where those of each document begin, the same for the bytes of text, and how many parts of it
/// these are: the next part cannot be read or encoded here if that is less than all. It ends where
/// `take` returns false, and at once if the files are no such as are read here, or lack rows; then
/// false is returned.
#[pyfunction]
#[pyo3(signature = (tokenizer, files, column, items, take, *, prepend=None, append=None, most_bytes,
                    threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn encode_rows<'py>(
    py: Python<'py>,
    tokenizer: &Bound<'py, crate::tokenizer::Tokenizer>,
    files: Vec<PathBuf>,
    column: &str,
    items: Vec<Vec<Place>>,
    take: &Bound<'py, PyAny>,
    prepend: Option<&Bound<'py, PyAny>>,
    append: Option<&Bound<'py, PyAny>>,
    most_bytes: usize,
    threads: Option<usize>,
) -> PyResult<bool> {
    let options = tokenizer.get().options(None, prepend, append)?;
    let tokenizer = tokenizer.get().core();
    let threads = arguments::threads(threads)?;
    let Some(column) = py.detach(|| TextColumn::open(&files, column)) else { return Ok(false) };
    let column = column.with_bounds(PAGE, most_bytes);
    let part = |(file, group, start, end)| RowRange { file, group, rows: start..end };
    let items: Vec<Vec<_>> =
        items.into_iter().map(|parts| parts.into_iter().map(part).collect()).collect();
    if !items.iter().flatten().all(|part| column.has(part)) {
        return Ok(false);
    }
    let job = Job { column: &column, items: &items, options: &options };
    let take = take.clone().unbind();
    if tokenizer.fits_u16() {
        encode::<u16>(py, tokenizer, &job, threads, &take)
    } else {
        encode::<u32>(py, tokenizer, &job, threads, &take)
    }
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

/// Give Python what an item gave; return whether it wants more.
fn hand_over<T: Element>(py: Python<'_>, rows: Rows<T>, take: &Py<PyAny>) -> PyResult<bool> {
    py.check_signals()?;
    let Rows { ids, offsets, text_ends, parts } = rows;
    let arrays = (ids.into_pyarray(py), offsets.into_pyarray(py), text_ends.into_pyarray(py));
    take.call1(py, (arrays.0, arrays.1, arrays.2, parts))?.is_truthy(py)
}
