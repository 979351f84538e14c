//! `Counts`: the distinct pretokens of a corpus, between counting and training.

use std::path::PathBuf;

use bytepair::{CountsFile, Pattern, memory};
use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arrays;
use crate::count_columns::PyCountColumns;
use crate::errors;
use crate::errors::CountsError;
use crate::rules::{self, python_pattern};

/// The metadata of a parquet file: keys and values, in order.
type Metadata = Vec<(String, String)>;

/// The memory of a Python item in bytes, in addition to the bytes of its pretoken. Available memory
/// is checked once for every `CHECK_BYTES` bytes.
const ITEM_BYTES: usize = 200;
const CHECK_BYTES: usize = 1 << 20;

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
        let mut unchecked = 0;
        let items = self.inner.iter().map(|(pretoken, count)| {
            unchecked += pretoken.len() + ITEM_BYTES;
            if unchecked > CHECK_BYTES {
                errors::checked(memory::check(std::mem::take(&mut unchecked)))?;
            }
            (PyBytes::new(py, pretoken), count).into_pyobject(py)
        });
        errors::list(py, errors::collect(items)?)
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
        Ok(Self { pattern: rules::pattern(pattern)?, inner })
    }

    /// The bytes of all pretokens, the start of each (and the end of the last), and the counts.
    fn columns(&self, py: Python<'_>) -> PyResult<PyCountColumns> {
        arrays::ready(py)?;
        let (bytes, ends, numbers) = self.inner.columns();
        let ends = std::iter::once(0).chain(ends.iter().copied()).map(i64::try_from);
        let too_many = |_| PyValueError::new_err("the pretokens exceed 2^63 bytes");
        let offsets: Vec<i64> = errors::collect(ends.map(|end| end.map_err(too_many)))?;
        let bytes = errors::checked(memory::copy(bytes))?;
        let numbers = errors::checked(memory::copy(numbers))?;
        Ok(PyCountColumns {
            data: bytes.into_pyarray(py).unbind(),
            offsets: offsets.into_pyarray(py).unbind(),
            counts: numbers.into_pyarray(py).unbind(),
        })
    }

    /// Build counts from the arrays of `columns`, after checking every rule.
    #[staticmethod]
    fn from_columns(
        py: Python<'_>,
        data: arrays::ArrayArgument<'_, u8>,
        offsets: arrays::ArrayArgument<'_, i64>,
        counts: arrays::ArrayArgument<'_, u64>,
        pattern: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let wrong = || {
            CountsError::new_err("the offsets of the pretokens must start at 0 and not decrease")
        };
        let (data, offsets, counts) = (data.as_slice()?, offsets.as_slice()?, counts.as_slice()?);
        let ends = offsets.iter().skip(1).map(|&end| end.try_into().map_err(|_| wrong()));
        let ends: Vec<usize> = errors::collect(ends)?;
        if offsets.first() != Some(&0) || !ends.is_sorted() {
            return Err(wrong());
        }
        let data = errors::checked(memory::copy(data))?;
        let counts = errors::checked(memory::copy(counts))?;
        let inner = py.detach(|| bytepair::Counts::from_columns(data, ends, counts));
        Ok(Self { pattern: rules::pattern(pattern)?, inner: errors::checked(inner)? })
    }

    /// Read the counts of a parquet file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        let inner = py.detach(|| CountsFile::open(path)?.counts());
        let inner = inner.map_err(|e| errors::python(&e))?;
        Ok(Self { pattern: rules::pattern(pattern)?, inner })
    }

    /// Write the counts to a parquet file, with this metadata.
    fn save(&self, py: Python<'_>, path: PathBuf, metadata: Metadata) -> PyResult<()> {
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (&**key, &**value)).collect();
        py.detach(|| self.inner.save(path, &metadata)).map_err(|e| errors::python(&e))
    }

    /// The sums of the counts of two corpora with the same pattern.
    fn plus(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        if self.pattern != other.pattern {
            let (one, two) = (self.pattern.to_string(), other.pattern.to_string());
            return Err(CountsError::new_err(format!(
                "counts of different patterns cannot be added: {one:?} and {two:?}"
            )));
        }
        self.with(py.detach(|| self.inner.plus(&other.inner)))
    }

    /// Every count multiplied by `times`.
    fn times(&self, py: Python<'_>, times: u64) -> PyResult<Self> {
        self.with(py.detach(|| self.inner.times(times)))
    }

    /// Every count divided by a number that divides all of them.
    fn divided(&self, py: Python<'_>, by: u64) -> PyResult<Self> {
        self.with(py.detach(|| self.inner.divided(by)))
    }

    /// The greatest number that divides `of` and every count.
    fn divisor(&self, py: Python<'_>, of: u64) -> u64 {
        py.detach(|| self.inner.divisor(of))
    }
}
