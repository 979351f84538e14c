//! `Counter`, `Counts` and `train`: from texts to a trained `Model`.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytepair::{Error, Pattern, Ties, TrainOptions};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::model::Model;
use crate::{arguments, errors};

/// How often training looks for Ctrl-C and reports its progress.
const REPORT_EVERY: Duration = Duration::from_millis(50);

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
    #[pyo3(signature = (pattern, threads=None))]
    fn new(pattern: &str, threads: Option<usize>) -> PyResult<Self> {
        let pattern = Pattern::new(pattern);
        let counter = bytepair::Counter::new(&pattern, arguments::threads(threads)?);
        let inner = Mutex::new(Some(counter.map_err(|e| errors::python(&e))?));
        Ok(Self { pattern, inner })
    }

    /// Count the texts of a list of `str`; each is a document of its own.
    fn add(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<()> {
        let strings = arguments::strings(texts)?;
        let texts = strings.iter().map(arguments::text).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |counter| counter.add(&texts.iter().map(|t| &**t).collect::<Vec<_>>()))
    }

    /// Count the texts of an Arrow string column: its bytes and its offsets.
    fn add_utf8(
        &self,
        py: Python<'_>,
        data: PyReadonlyArray1<'_, u8>,
        offsets: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let offsets: Vec<usize> = match offsets.extract::<PyReadonlyArray1<'_, i32>>() {
            Ok(short) => spans(short.as_slice()?)?,
            Err(_) => spans(offsets.extract::<PyReadonlyArray1<'_, i64>>()?.as_slice()?)?,
        };
        let data = data.as_slice()?;
        let texts =
            py.detach(|| documents(data, &offsets)).map_err(errors::CorpusError::new_err)?;
        self.with(py, |counter| counter.add(&texts))
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
            .ok_or_else(|| PyValueError::new_err("this counter is finished; make a new one"))?;
        Ok(Counts { pattern: self.pattern.clone(), inner: counts })
    }
}

/// Offsets that rise and are not negative.
fn spans<T: Copy + TryInto<usize>>(offsets: &[T]) -> PyResult<Vec<usize>> {
    let wrong = || PyValueError::new_err("the offsets of the texts must rise from 0 on");
    let all: Option<Vec<usize>> = offsets.iter().map(|&at| at.try_into().ok()).collect();
    all.filter(|all| all.is_sorted()).ok_or_else(wrong)
}

/// The documents between the offsets; the error says which one is not UTF-8, and where.
fn documents<'a>(data: &'a [u8], offsets: &[usize]) -> Result<Vec<&'a str>, String> {
    let document = |(index, pair): (usize, &[usize])| {
        let bytes = data
            .get(pair[0]..pair[1])
            .ok_or_else(|| format!("document {index} lies outside its data"))?;
        std::str::from_utf8(bytes).map_err(|error| {
            format!("document {index} is not UTF-8 at its byte {}", error.valid_up_to())
        })
    };
    offsets.windows(2).enumerate().map(document).collect()
}

/// The distinct pretokens of a corpus and how often each occurs.
#[pyclass(frozen, module = "bytepair._core")]
pub(crate) struct Counts {
    pattern: Pattern,
    inner: bytepair::Counts,
}

#[pymethods]
impl Counts {
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// The split pattern, as a regular expression.
    #[getter]
    fn pattern(&self) -> &str {
        self.pattern.regex()
    }

    /// How many pretokens the corpus has.
    #[getter]
    fn total(&self) -> PyResult<u64> {
        self.inner.total().map_err(|e| errors::python(&e))
    }

    /// How many bytes the corpus has.
    #[getter]
    fn text_bytes(&self) -> u128 {
        self.inner.text_bytes()
    }

    /// The pretokens with their counts, in order of first occurrence.
    fn items<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, u64)> {
        self.inner.iter().map(|(pretoken, count)| (PyBytes::new(py, pretoken), count)).collect()
    }

    /// Counts of distinct pretokens that were made elsewhere, in order of first occurrence.
    #[staticmethod]
    fn from_items(items: &Bound<'_, PyAny>, pattern: &str) -> PyResult<Self> {
        let items = items.try_iter()?.map(|item| item?.extract());
        let items = items.collect::<PyResult<Vec<(Vec<u8>, u64)>>>()?;
        let inner = bytepair::Counts::new(items.iter().map(|(token, n)| (&**token, *n)));
        Ok(Self { pattern: Pattern::new(pattern), inner })
    }
}

/// Learn a vocabulary of `vocab_size` ids, special tokens included, from counts.
#[pyfunction]
#[pyo3(signature = (counts, vocab_size, special_tokens, *, ties="rustbpe", min_count=1,
                    max_token_bytes=None, on_progress=None))]
#[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python function")]
pub(crate) fn train(
    py: Python<'_>,
    counts: &Counts,
    vocab_size: usize,
    special_tokens: Vec<String>,
    ties: &str,
    min_count: u64,
    max_token_bytes: Option<usize>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let smallest = 256 + special_tokens.len();
    let too_small = Error::VocabularyTooSmall { asked: vocab_size, smallest };
    let merges = vocab_size.checked_sub(smallest).ok_or_else(|| errors::python(&too_small))?;
    let min_count = NonZeroU64::new(min_count).unwrap_or(NonZeroU64::MIN);
    let options = TrainOptions { merges, ties: tie_rule(ties)?, min_count, max_token_bytes };
    let mut stopped = None;
    let model = py.detach(|| {
        let mut last = Instant::now();
        let mut report = |done: usize| {
            if last.elapsed() < REPORT_EVERY {
                return Ok(());
            }
            last = Instant::now();
            Python::attach(|py| progress(py, on_progress.as_ref(), done, merges)).map_err(|error| {
                stopped = Some(error);
                Error::Interrupted
            })
        };
        let trained = bytepair::train(&counts.inner, &options, &mut report)?;
        bytepair::Tokenizer::from_training(&trained, &special_tokens, counts.pattern.clone())
    });
    match stopped {
        Some(error) => Err(error),
        None => Model::new(model),
    }
}

/// Look for Ctrl-C, then tell the caller how far it is.
fn progress(
    py: Python<'_>,
    on_progress: Option<&Py<PyAny>>,
    done: usize,
    merges: usize,
) -> PyResult<()> {
    py.check_signals()?;
    match on_progress {
        Some(callback) => callback.call1(py, (done, merges)).map(drop),
        None => Ok(()),
    }
}

fn tie_rule(name: &str) -> PyResult<Ties> {
    match name {
        "rustbpe" => Ok(Ties::RustBpe),
        "hf" => Ok(Ties::Hf),
        "first-seen" => Ok(Ties::FirstSeen),
        "bytes-max" => Ok(Ties::BytesMax),
        other => Err(PyValueError::new_err(format!(
            "ties is {other:?}; it must be \"rustbpe\", \"hf\", \"first-seen\" or \"bytes-max\""
        ))),
    }
}
