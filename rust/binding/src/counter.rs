//! `Counter`: counts the pretokens of texts.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytepair::corpus::parquet::TextColumn;
use bytepair::text::{from_utf8, lone_surrogate, starts_char};
use bytepair::{
    ColumnReached, Error, FileCountOptions, FileProgress, Pattern, Progress, Reached, Text, memory,
};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::counts::PyCounts;
use crate::rules;
use crate::{arguments, arrays, errors, files, text};

/// A skipped document: the index of its file, its row in the file, and the reason.
type SkipTuple = (usize, u64, String);

/// Counts the pretokens of a stream of texts.
#[pyclass(frozen, name = "Counter", module = "bytepair._core")]
pub(crate) struct PyCounter {
    pattern: Pattern,
    /// `None` once finished.
    inner: Mutex<Option<bytepair::Counter>>,
    /// The position at which the last call of `add_files` or `add_parquet` ended.
    reached: Mutex<Reached>,
}

impl PyCounter {
    fn lock(&self) -> MutexGuard<'_, Option<bytepair::Counter>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut bytepair::Counter) -> bytepair::Result<T> + Send,
    ) -> PyResult<T> {
        errors::checked(py.detach(|| self.lock().as_mut().map(action)).ok_or_else(finished)?)
    }

    fn reach(&self, reached: Reached) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    }
}

#[pymethods]
impl PyCounter {
    #[new]
    #[pyo3(signature = (pattern, threads=None, *, memory_limit=None, careful=false))]
    fn new(
        pattern: &Bound<'_, PyAny>,
        threads: Option<arguments::ThreadCount>,
        memory_limit: Option<(usize, PathBuf)>,
        careful: bool,
    ) -> PyResult<Self> {
        let pattern = rules::pattern(pattern)?;
        let mut counter =
            errors::checked(bytepair::Counter::new(&pattern, arguments::threads(threads)))?;
        if let Some((bytes, folder)) = memory_limit {
            counter = counter.with_memory_limit(bytes, &folder);
        }
        if careful {
            counter = counter.with_care();
        }
        let inner = Mutex::new(Some(counter));
        Ok(Self { pattern, inner, reached: Mutex::default() })
    }

    /// Count the texts of a list of `str`; each is a document of its own.
    fn add(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<()> {
        let strings = arguments::strings(texts)?;
        let texts = errors::collect(strings.iter().map(arguments::utf8))?;
        self.with(py, |counter| counter.add(&memory::collect(texts.iter().map(|text| &**text))?))
    }

    /// Count the texts of an Arrow string column, given its bytes and its offsets.
    fn add_utf8(
        &self,
        py: Python<'_>,
        data: PyReadonlyArray1<'_, u8>,
        offsets: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let offsets = arguments::offsets(offsets)?;
        let data = arrays::stable(&data)?;
        let texts = py.detach(|| documents(&data, &offsets))?;
        self.with(py, |counter| counter.add(&texts))
    }

    /// Count the texts of a column of parquet files from the position `start` on, of which only the
    /// file and the row count; returns false if the core cannot read the files.
    ///
    /// `on_progress` is called regularly with the number of texts so far, their bytes, the
    /// characters, and the bytes of text read from each file.
    #[pyo3(signature = (files, column, on_progress, *, start=(0, 0, 0, 0, 0), max_chars=None,
                        doc_cap=None, errors="strict", most_page_bytes=usize::MAX, bounds))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn add_parquet(
        &self,
        py: Python<'_>,
        files: Vec<PathBuf>,
        column: String,
        on_progress: &Bound<'_, PyAny>,
        start: files::PlaceTuple,
        max_chars: Option<u64>,
        doc_cap: Option<usize>,
        errors: &str,
        most_page_bytes: usize,
        bounds: files::BoundsTuple,
    ) -> PyResult<bool> {
        let opened = py.detach(|| {
            let column = TextColumn::open(&files, &column).ok()?;
            let row = usize::try_from(start.3).unwrap_or(usize::MAX);
            Some((column.ranges_from(start.0, row).ok()?, column))
        });
        let Some((ranges, column)) = opened else { return Ok(false) };
        let documents = files::options(String::new(), errors, doc_cap, bounds)?;
        let column = column.with_bounds(most_page_bytes, documents.bounds.document_bytes);
        let options = FileCountOptions { documents, max_chars };
        let on_progress = on_progress.clone().unbind();
        let mut stopped = None;
        let mut reached = ColumnReached { chars: start.4, ..ColumnReached::default() };
        let done = self.with(py, |counter| {
            let mut reported = |progress: Progress| {
                let Progress { texts, text_bytes, chars, of_files } = progress;
                let report = |py: Python<'_>| {
                    py.check_signals()?;
                    on_progress.call1(py, (texts, text_bytes, chars, of_files))
                };
                Python::attach(report).map(drop).map_err(|error| {
                    stopped = Some(error);
                    Error::Interrupted
                })
            };
            let chars = reached.chars;
            let (end, done) = counter.add_column(&column, &ranges, chars, &options, &mut reported);
            reached = end;
            done
        });
        let (file, row) = ranges.get(reached.ranges).map_or((column.files(), 0), |range| {
            let first = column.first_row(range.file, range.group) + range.rows.start;
            (range.file, first + reached.rows)
        });
        self.reach(files::reached((file, 0, 0, row as u64, reached.chars)));
        stopped.map_or(done, Err).map(|()| true)
    }

    /// Count the documents of files from the position `start` on; see [`files`](crate::files).
    ///
    /// `on_progress` is called regularly with the number of texts so far, their bytes, the
    /// compressed bytes read from the files, the characters, and a pair (file, decompressed bytes)
    /// for each file newly found to exceed the expansion bounds.
    #[pyo3(signature = (files, field, on_progress, *, start=(0, 0, 0, 0, 0), max_chars=None,
                        doc_cap=None, errors="strict", bounds))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn add_files(
        &self,
        py: Python<'_>,
        files: Vec<files::FileTuple>,
        field: String,
        on_progress: &Bound<'_, PyAny>,
        start: files::PlaceTuple,
        max_chars: Option<u64>,
        doc_cap: Option<usize>,
        errors: &str,
        bounds: files::BoundsTuple,
    ) -> PyResult<()> {
        let files = files::corpus_files(files)?;
        let documents = files::options(field, errors, doc_cap, bounds)?;
        let options = FileCountOptions { documents, max_chars };
        let on_progress = on_progress.clone().unbind();
        let (mut stopped, mut reached) = (None, files::reached(start));
        let done = self.with(py, |counter| {
            let mut reported = |progress: FileProgress| {
                let FileProgress { texts, text_bytes, packed, chars, expanded } = progress;
                let report = |py: Python<'_>| {
                    py.check_signals()?;
                    on_progress.call1(py, (texts, text_bytes, packed, chars, expanded))
                };
                Python::attach(report).map(drop).map_err(|error| {
                    stopped = Some(error);
                    Error::Interrupted
                })
            };
            counter.add_files(&files, &mut reached, &options, &mut reported)
        });
        self.reach(reached);
        stopped.map_or(done, Err)
    }

    /// The position at which the last `add_files` or `add_parquet` ended, with the number of characters counted up
    /// to it.
    #[getter]
    fn reached(&self) -> files::PlaceTuple {
        files::place(*self.reached.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of documents skipped since the last call, and the first of them.
    fn take_skips(&self, py: Python<'_>) -> PyResult<(u64, Vec<SkipTuple>)> {
        let skips = self.with(py, |counter| Ok(counter.take_skips()))?;
        let first = skips.first().iter();
        let first = first.map(|skip| (skip.file, skip.row, skip.reason.clone())).collect();
        Ok((skips.documents(), first))
    }

    /// The number of texts counted.
    #[getter]
    fn texts(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counter| Ok(counter.texts()))
    }

    /// Whether every batch was counted completely or rejected as a whole.
    #[getter]
    fn is_whole(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |counter| Ok(counter.is_whole()))
    }

    /// The number of bytes of text counted.
    #[getter]
    fn text_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counter| Ok(counter.text_bytes()))
    }

    /// The counts; the counter cannot be used afterwards.
    fn finish(&self, py: Python<'_>) -> PyResult<PyCounts> {
        let counts = py.detach(|| self.lock().take().map(bytepair::Counter::finish));
        let counts = errors::checked(counts.ok_or_else(finished)?)?;
        Ok(PyCounts::new(self.pattern.clone(), counts))
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("this counter is finished; create a new one")
}

/// The texts of a list of `str` that have a lone surrogate: for each, its index, and what to say of
/// the first one.
#[pyfunction]
pub(crate) fn lone_surrogates(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
) -> PyResult<Vec<(usize, String)>> {
    let strings = arguments::strings(texts)?;
    let texts = errors::collect(strings.iter().map(text::text))?;
    Ok(py.detach(|| {
        let lone = |(index, text): (usize, &Text<'_>)| {
            let (at, code) = text.lone_surrogate()?;
            Some((index, format!("{}, at character {at}", lone_surrogate(code))))
        };
        texts.iter().enumerate().filter_map(lone).collect()
    }))
}

/// The documents of an Arrow string column that are not UTF-8, given its bytes and its offsets: for
/// each, its index and the byte offset of its first invalid sequence.
#[pyfunction]
pub(crate) fn not_utf8(
    py: Python<'_>,
    data: PyReadonlyArray1<'_, u8>,
    offsets: &Bound<'_, PyAny>,
) -> PyResult<Vec<(usize, usize)>> {
    let offsets = arguments::offsets(offsets)?;
    let data = arrays::stable(&data)?;
    py.detach(|| {
        let whole =
            offsets.first().zip(offsets.last()).and_then(|(&start, &end)| data.get(start..end));
        let starts_char = |at: &usize| data.get(*at).is_none_or(|byte| starts_char(*byte));
        if whole.is_some_and(|whole| from_utf8(whole).is_ok()) && offsets.iter().all(starts_char) {
            return Ok(Vec::new());
        }
        let mut invalid = Vec::new();
        for (index, pair) in offsets.windows(2).enumerate() {
            if let Err(error) = from_utf8(document(&data, index, pair)?) {
                invalid.push((index, error.valid_up_to()));
            }
        }
        Ok(invalid)
    })
}

/// The documents between the offsets. The error for invalid UTF-8 names the document and the byte.
fn documents<'a>(data: &'a [u8], offsets: &[usize]) -> PyResult<Vec<&'a str>> {
    let text = |(index, pair): (usize, &[usize])| {
        from_utf8(document(data, index, pair)?).map_err(|error| {
            let at = error.valid_up_to();
            errors::CorpusError::new_err(format!("document {index} is not UTF-8 at byte {at}"))
        })
    };
    errors::collect(offsets.windows(2).enumerate().map(text))
}

/// The bytes of a document between two offsets.
fn document<'a>(data: &'a [u8], index: usize, pair: &[usize]) -> PyResult<&'a [u8]> {
    let wrong = || errors::CorpusError::new_err(format!("document {index} lies outside its data"));
    data.get(pair[0]..pair[1]).ok_or_else(wrong)
}
