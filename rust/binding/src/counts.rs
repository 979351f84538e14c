//! `Counter` and `Counts`: texts to distinct pretokens, between counting and training.

use std::path::PathBuf;
use std::sync::Mutex;

use bytepair::corpus::FilePlace;
use bytepair::corpus::parquet::TextColumn;
use bytepair::parallel::lock;
use bytepair::{CountProgress, CountsFile, Pattern, Reached, memory};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arguments::Fields;
use crate::columns::documents;
use crate::errors::CountsError;
use crate::files::{BoundFields, FileFields, Metadata, ReadingFields, Skipped, skipped};
use crate::rules::python_pattern;
use crate::{arguments, arrays, errors, interrupt, rules};

/// The memory of a Python item in bytes, in addition to the bytes of its pretoken.
const ITEM_BYTES: usize = 200;

/// The distinct pretokens of a corpus and how often each occurs.
#[pyclass(frozen, name = "Counts", module = "bytepair._core")]
pub(crate) struct PyCounts {
    pub(crate) pattern: Pattern,
    pub(crate) inner: bytepair::Counts,
}

impl PyCounts {
    pub(crate) fn new(pattern: Pattern, inner: bytepair::Counts) -> Self {
        Self { pattern, inner }
    }

    fn with(&self, counts: bytepair::Result<bytepair::Counts>) -> PyResult<Self> {
        Ok(Self { pattern: self.pattern.clone(), inner: errors::checked(counts)? })
    }
}

#[pymethods]
impl PyCounts {
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = other.get();
            self.pattern == other.pattern && self.inner == other.inner
        })
    }

    fn __hash__(&self) -> usize {
        self.inner.len()
    }

    /// The split pattern, as a regular expression.
    #[getter]
    fn pattern<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_pattern(py, &self.pattern)
    }

    /// The number of pretokens of the corpus.
    #[getter]
    fn total(&self) -> PyResult<u64> {
        errors::checked(self.inner.total())
    }

    /// The number of bytes of the corpus.
    #[getter]
    fn text_bytes(&self) -> u128 {
        self.inner.text_bytes()
    }

    /// The pretokens with their counts, in order of first occurrence.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let bytes = self.inner.distinct_bytes() + ITEM_BYTES * self.inner.len();
        errors::checked(memory::check(bytes))?;
        let items = self.inner.iter().map(|(pretoken, count)| (PyBytes::new(py, pretoken), count));
        errors::list(py, items.collect())
    }

    /// Build counts from distinct pretokens and their counts, in order of first occurrence.
    #[staticmethod]
    fn from_items(items: &Bound<'_, PyAny>, pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        let items = items.try_iter()?.map(|item| item?.extract());
        let items: Vec<(Vec<u8>, u64)> = errors::collect(items)?;
        let bytes: usize = items.iter().map(|(pretoken, _)| pretoken.len()).sum();
        // Three times the size, because an array is copied when it grows.
        errors::checked(memory::check(3 * (bytes + 2 * size_of::<u64>() * items.len())))?;
        let inner = bytepair::Counts::new(items.iter().map(|(token, n)| (&**token, *n)));
        Ok(Self { pattern: rules::pattern_of(pattern)?, inner })
    }

    /// A hash of the counts: 64 hexadecimal digits.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.fingerprint())
    }

    /// Read the counts of a parquet file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        let inner = errors::checked(py.detach(|| CountsFile::open(path)?.counts()))?;
        Ok(Self { pattern: rules::pattern_of(pattern)?, inner })
    }

    /// Write the counts to a parquet file, with this metadata.
    fn save(&self, py: Python<'_>, path: PathBuf, metadata: Metadata) -> PyResult<()> {
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (&**key, &**value)).collect();
        errors::checked(py.detach(|| self.inner.save(path, &metadata)))
    }

    /// The sums of the counts of two corpora with the same pattern.
    fn plus(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        if self.pattern != other.pattern {
            let (one, two) = (self.pattern.to_string(), other.pattern.to_string());
            return Err(CountsError::new_err(format!(
                "counts of different patterns cannot be added: {one:?} and {two:?}"
            )));
        }
        self.with(py.detach(|| bytepair::Counts::sum([&self.inner, &other.inner])))
    }

    /// Every count multiplied by `times`.
    fn times(&self, py: Python<'_>, times: u64) -> PyResult<Self> {
        self.with(py.detach(|| self.inner.times(times)))
    }

    /// Every count divided by the greatest number that divides `of` and all counts; and that number.
    fn reduced(&self, py: Python<'_>, of: u64) -> PyResult<(Self, u64)> {
        let (inner, divisor) = errors::checked(py.detach(|| self.inner.reduced(of)))?;
        Ok((Self::new(self.pattern.clone(), inner), divisor))
    }
}

type Counted = bytepair::Result<()>;

/// A position in a list of files: the file; the byte in it; the lines and the documents before that
/// byte; and the characters counted so far, in all files.
type Place = (usize, u64, u64, u64, u64);

/// Passes the progress on.
type Report<'a> = dyn FnMut(CountProgress) -> Counted + Send + 'a;

/// Counts the pretokens of a stream of texts.
#[pyclass(frozen, name = "Counter", module = "bytepair._core")]
pub(crate) struct PyCounter {
    pattern: Pattern,
    /// `None` once finished.
    inner: Mutex<Option<bytepair::Counter>>,
    /// The position at which the last call of `add_files` ended, until it is taken.
    reached: Mutex<Option<Reached>>,
}

impl PyCounter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut bytepair::Counter) -> bytepair::Result<T> + Send,
    ) -> PyResult<T> {
        errors::checked(py.detach(|| lock(&self.inner).as_mut().map(action)).ok_or_else(finished)?)
    }

    /// Count files from a position on, and note where that ended.
    fn add_from(
        &self,
        py: Python<'_>,
        (file, byte, line, row, chars): Place,
        on_progress: &Bound<'_, PyAny>,
        count: impl FnOnce(&mut bytepair::Counter, &mut Reached, &mut Report<'_>) -> Counted + Send,
    ) -> PyResult<()> {
        let on_progress = on_progress.clone().unbind();
        let place = FilePlace { file, byte, line, row };
        let mut reached = Reached { place, chars };
        let done = self.with(py, |counter| {
            let mut report = |progress: CountProgress| {
                let CountProgress { texts, text_bytes, chars, packed, unpacked } = progress;
                let progress = (texts, text_bytes, chars, packed, unpacked);
                interrupt::call(|py| on_progress.call1(py, progress).map(drop))
            };
            count(counter, &mut reached, &mut report)
        });
        *lock(&self.reached) = Some(reached);
        interrupt::or(done)
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
        let pattern = rules::pattern_of(pattern)?;
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
        self.with(py, |counter| {
            let texts: Vec<&str> = memory::collect(texts.iter().map(|text| &**text))?;
            interrupt::polled(|| counter.add(&texts))
        })
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
        self.with(py, |counter| interrupt::polled(|| counter.add(&texts)))
    }

    /// Count the documents of files from the position `start` on. The files are parquet, of whose
    /// position only the file and the row count, or none of them is; returns false if they are parquet
    /// that the core cannot read.
    ///
    /// `on_progress` is called regularly with the number of texts in the counter and of their bytes; the
    /// number of characters counted, if there is a limit; the number of bytes read from the files, before
    /// decompression (0 for parquet); and the indices of the files read since the last call, with their
    /// bytes so far (decompressed, or, for parquet, of text).
    #[pyo3(signature = (files, reading, bounds, on_progress, start=(0, 0, 0, 0, 0)))]
    fn add_files(
        &self,
        py: Python<'_>,
        files: Vec<FileFields>,
        reading: Fields<ReadingFields>,
        bounds: BoundFields,
        on_progress: &Bound<'_, PyAny>,
        start: Place,
    ) -> PyResult<bool> {
        let options = reading.0.options(&bounds)?;
        if !files.first().is_some_and(FileFields::is_table) {
            let files = errors::collect(files.into_iter().map(FileFields::file))?;
            let counted = self.add_from(py, start, on_progress, |counter, reached, report| {
                counter.add_files(&files, reached, &options, report)
            });
            return counted.map(|()| true);
        }
        let opened = py.detach(|| {
            let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
            let column = TextColumn::open(&paths, &options.documents.field).ok()?;
            let row = usize::try_from(start.3).unwrap_or(usize::MAX);
            Some((column.ranges_from(start.0, row).ok()?, column))
        });
        let Some((ranges, column)) = opened else { return Ok(false) };
        let column = column.with_page_limit(bounds.page_bytes);
        let counted = self.add_from(py, start, on_progress, |counter, reached, report| {
            counter.add_column(&column, &ranges, reached, &options, report)
        });
        counted.map(|()| true)
    }

    /// What the last call of `add_files` reached, if it was not taken yet: the position at which it ended
    /// with the number of characters counted up to it, the number of documents skipped, and the first
    /// of them.
    fn take_reached(&self, py: Python<'_>) -> PyResult<Option<(Place, u64, Vec<Skipped>)>> {
        let Some(Reached { place, chars }) = lock(&self.reached).take() else { return Ok(None) };
        let skips = self.with(py, |counter| Ok(counter.take_skips()))?;
        let first = skips.first.into_iter().map(skipped).collect();
        let place = (place.file, place.byte, place.line, place.row, chars);
        Ok(Some((place, skips.documents, first)))
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
        let counts = py.detach(|| lock(&self.inner).take().map(bytepair::Counter::finish));
        let counts = errors::checked(counts.ok_or_else(finished)?)?;
        Ok(PyCounts::new(self.pattern.clone(), counts))
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("this counter is finished; create a new one")
}
