//! `Counter`: counts the pretokens of texts.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytepair::corpus::parquet::TextColumn;
use bytepair::{ColumnReached, Error, FileCountOptions, Pattern, Reached, memory};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::count_progress::PyCountProgress;
use crate::counts::PyCounts;
use crate::file_place::PyFilePlace;
use crate::invalid_text::documents;
use crate::reading::{self, BoundFields, FileFields};
use crate::skipped_rows::PySkippedRows;
use crate::skips::PySkips;
use crate::{arguments, arrays, errors, rules};

/// Counts the pretokens of a stream of texts.
#[pyclass(frozen, name = "Counter", module = "bytepair._core")]
pub(crate) struct PyCounter {
    pattern: Pattern,
    /// `None` once finished.
    inner: Mutex<Option<bytepair::Counter>>,
    /// The position at which the last call of `add_files` or `add_parquet` ended.
    reached: Mutex<PyFilePlace>,
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

    fn reach(&self, reached: PyFilePlace) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    }
}

#[pymethods]
impl PyCounter {
    #[new]
    #[pyo3(signature = (pattern, threads=None, *, memory_limit=None, spill_folder=None, careful=false))]
    fn new(
        pattern: &Bound<'_, PyAny>,
        threads: Option<arguments::ThreadCount>,
        memory_limit: Option<usize>,
        spill_folder: Option<PathBuf>,
        careful: bool,
    ) -> PyResult<Self> {
        let pattern = rules::pattern(pattern)?;
        let mut counter =
            errors::checked(bytepair::Counter::new(&pattern, arguments::threads(threads)))?;
        if let Some((bytes, folder)) = memory_limit.zip(spill_folder) {
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
        data: arrays::ArrayArgument<'_, u8>,
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
    /// `on_progress` is called regularly with a `CountProgress`.
    #[pyo3(signature = (files, column, on_progress, *, start=None, max_chars=None,
                        doc_cap=None, errors="strict", most_page_bytes=usize::MAX, bounds))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn add_parquet(
        &self,
        py: Python<'_>,
        files: Vec<PathBuf>,
        column: String,
        on_progress: &Bound<'_, PyAny>,
        start: Option<PyFilePlace>,
        max_chars: Option<u64>,
        doc_cap: Option<usize>,
        errors: &str,
        most_page_bytes: usize,
        bounds: BoundFields,
    ) -> PyResult<bool> {
        let start = start.unwrap_or_default();
        let opened = py.detach(|| {
            let column = TextColumn::open(&files, &column).ok()?;
            let row = usize::try_from(start.row).unwrap_or(usize::MAX);
            Some((column.ranges_from(start.file, row).ok()?, column))
        });
        let Some((ranges, column)) = opened else { return Ok(false) };
        let documents = reading::options(String::new(), errors, doc_cap, bounds)?;
        let column = column.with_bounds(most_page_bytes, documents.bounds.document_bytes);
        let options = FileCountOptions { documents, max_chars };
        let on_progress = on_progress.clone().unbind();
        let mut stopped = None;
        let mut reached = ColumnReached { chars: start.chars, ..ColumnReached::default() };
        let done = self.with(py, |counter| {
            let chars = reached.chars;
            let mut report = reporter(&on_progress, &mut stopped);
            let (end, done) = counter.add_column(&column, &ranges, chars, &options, &mut report);
            reached = end;
            done
        });
        let (file, row) = ranges.get(reached.ranges).map_or((column.files(), 0), |range| {
            let first = column.first_row(range.file, range.group) + range.rows.start;
            (range.file, first + reached.rows)
        });
        self.reach(PyFilePlace::at_row(file, row as u64, reached.chars));
        stopped.map_or(done, Err).map(|()| true)
    }

    /// Count the documents of files from the position `start` on; see [`reading`].
    ///
    /// `on_progress` is called regularly with a `CountProgress`.
    #[pyo3(signature = (files, field, on_progress, *, start=None, max_chars=None,
                        doc_cap=None, errors="strict", bounds))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn add_files(
        &self,
        py: Python<'_>,
        files: Vec<FileFields>,
        field: String,
        on_progress: &Bound<'_, PyAny>,
        start: Option<PyFilePlace>,
        max_chars: Option<u64>,
        doc_cap: Option<usize>,
        errors: &str,
        bounds: BoundFields,
    ) -> PyResult<()> {
        let files = errors::collect(files.into_iter().map(FileFields::file))?;
        let documents = reading::options(field, errors, doc_cap, bounds)?;
        let options = FileCountOptions { documents, max_chars };
        let on_progress = on_progress.clone().unbind();
        let (mut stopped, mut reached) = (None, Reached::from(start.unwrap_or_default()));
        let done = self.with(py, |counter| {
            let mut report = reporter(&on_progress, &mut stopped);
            counter.add_files(&files, &mut reached, &options, &mut report)
        });
        self.reach(reached.into());
        stopped.map_or(done, Err)
    }

    /// The position at which the last `add_files` or `add_parquet` ended, with the number of characters counted up
    /// to it.
    #[getter]
    fn reached(&self) -> PyFilePlace {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The documents skipped since the last call.
    fn take_skips(&self, py: Python<'_>) -> PyResult<PySkips> {
        let skips = self.with(py, |counter| Ok(counter.take_skips()))?;
        let first = skips.first().iter().cloned().map(|one| Py::new(py, PySkippedRows::from(one)));
        Ok(PySkips { documents: skips.documents(), first: first.collect::<PyResult<_>>()? })
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

/// Passes the progress of a count to `on_progress`. An error of Python or a signal interrupts the
/// count, and is kept in `stopped`.
fn reporter<'a, P>(
    on_progress: &'a Py<PyAny>,
    stopped: &'a mut Option<PyErr>,
) -> impl FnMut(P) -> bytepair::Result<()> + Send + 'a
where
    PyCountProgress: From<P>,
{
    |progress| {
        let report = |py: Python<'_>| {
            py.check_signals()?;
            on_progress.call1(py, (PyCountProgress::from(progress),))
        };
        Python::attach(report).map(drop).map_err(|error| {
            *stopped = Some(error);
            Error::Interrupted
        })
    }
}
