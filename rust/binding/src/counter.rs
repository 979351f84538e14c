//! `Counter`: from texts to counts.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytepair::parquet::TextColumn;
use bytepair::text::from_utf8;
use bytepair::{Error, Pattern};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::counts::Counts;
use crate::{arguments, errors};

/// Counts the pretokens of a stream of texts.
#[pyclass(frozen, module = "bytepair._core")]
pub(crate) struct Counter {
    pattern: Pattern,
    /// `None` once finished.
    inner: Mutex<Option<bytepair::Counter>>,
}

impl Counter {
    fn lock(&self) -> MutexGuard<'_, Option<bytepair::Counter>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&mut bytepair::Counter) -> bytepair::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.lock().as_mut().map(action))
            .ok_or_else(|| PyValueError::new_err("this counter is finished; make a new one"))?
            .map_err(|e| errors::python(&e))
    }
}

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (pattern, threads=None, *, memory_limit=None))]
    fn new(
        pattern: &str,
        threads: Option<usize>,
        memory_limit: Option<(usize, PathBuf)>,
    ) -> PyResult<Self> {
        let pattern = Pattern::new(pattern);
        let counter = bytepair::Counter::new(&pattern, arguments::threads(threads)?);
        let mut counter = counter.map_err(|e| errors::python(&e))?;
        if let Some((bytes, folder)) = memory_limit {
            counter = counter.with_memory_limit(bytes, &folder);
        }
        let inner = Mutex::new(Some(counter));
        Ok(Self { pattern, inner })
    }

    /// Count the texts of a list of `str`; each is a document of its own.
    fn add(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<()> {
        let strings = arguments::strings(texts)?;
        let texts = strings.iter().map(arguments::utf8).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |counter| counter.add(&texts.iter().map(|t| &**t).collect::<Vec<_>>()))
    }

    /// Count the texts of an Arrow string column: its bytes and its offsets.
    fn add_utf8(
        &self,
        py: Python<'_>,
        data: PyReadonlyArray1<'_, u8>,
        offsets: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let offsets = arguments::offsets(offsets)?;
        let data = data.as_slice()?;
        let texts =
            py.detach(|| documents(data, &offsets)).map_err(errors::CorpusError::new_err)?;
        self.with(py, |counter| counter.add(&texts))
    }

    /// Count the texts of a column of parquet files; false, if the files are no such as are read here.
    /// Now and then `on_progress` is called with the number of texts so far, and of their bytes.
    fn add_parquet(
        &self,
        py: Python<'_>,
        files: Vec<PathBuf>,
        column: &str,
        on_progress: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let opened = py.detach(|| {
            let column = TextColumn::open(&files, column)?;
            Some((column.parts()?, column))
        });
        let Some((parts, column)) = opened else { return Ok(false) };
        let on_progress = on_progress.clone().unbind();
        let mut stopped = None;
        let done = self.with(py, |counter| {
            let mut reported = |texts, bytes| {
                let report = |py: Python<'_>| {
                    py.check_signals()?;
                    on_progress.call1(py, (texts, bytes))
                };
                Python::attach(report).map(drop).map_err(|error| {
                    stopped = Some(error);
                    Error::Interrupted
                })
            };
            let column = column.with_page_limit(counter.most_page_bytes());
            counter.add_column(&column, &parts, &mut reported)
        });
        stopped.map_or(done, Err).map(|()| true)
    }

    /// How many texts were counted.
    #[getter]
    fn texts(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counter| Ok(counter.texts()))
    }

    /// How many bytes of text were counted.
    #[getter]
    fn text_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |counter| Ok(counter.text_bytes()))
    }

    /// The counts; the counter cannot be used afterwards.
    fn finish(&self, py: Python<'_>) -> PyResult<Counts> {
        let counts = py.detach(|| self.lock().take().map(bytepair::Counter::finish));
        let counts = counts
            .ok_or_else(|| PyValueError::new_err("this counter is finished; make a new one"))?
            .map_err(|e| errors::python(&e))?;
        Ok(Counts::new(self.pattern.clone(), counts))
    }
}

/// The documents between the offsets; the error says which one is not UTF-8, and where.
fn documents<'a>(data: &'a [u8], offsets: &[usize]) -> Result<Vec<&'a str>, String> {
    let document = |(index, pair): (usize, &[usize])| {
        let bytes = data
            .get(pair[0]..pair[1])
            .ok_or_else(|| format!("document {index} lies outside its data"))?;
        from_utf8(bytes).map_err(|error| {
            format!("document {index} is not UTF-8 at its byte {}", error.valid_up_to())
        })
    };
    offsets.windows(2).enumerate().map(document).collect()
}
