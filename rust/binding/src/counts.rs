//! `Counts`: the distinct pretokens of a corpus, between counting and training.

use bytepair::Pattern;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::errors::CountsError;

/// The columns of a table of counts: bytes, offsets, counts.
type Columns<'py> =
    (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);

/// The distinct pretokens of a corpus and how often each occurs.
#[pyclass(frozen, module = "bytepair._core")]
pub(crate) struct Counts {
    pub(crate) pattern: Pattern,
    pub(crate) inner: bytepair::Counts,
}

impl Counts {
    pub(crate) fn new(pattern: Pattern, inner: bytepair::Counts) -> Self {
        Self { pattern, inner }
    }

    fn with(&self, counts: bytepair::Result<bytepair::Counts>) -> PyResult<Self> {
        let inner = counts.map_err(|e| errors::python(&e))?;
        Ok(Self { pattern: self.pattern.clone(), inner })
    }
}

#[pymethods]
impl Counts {
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

    /// The bytes of all pretokens, where each starts (and the end of the last), and the counts.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Columns<'py>> {
        let (bytes, ends, numbers) = self.inner.columns();
        let ends = std::iter::once(0).chain(ends.iter().copied()).map(i64::try_from);
        let offsets = ends
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| PyValueError::new_err("the pretokens exceed 2^63 bytes"))?;
        let (bytes, numbers) = (bytes.to_vec(), numbers.to_vec());
        Ok((bytes.into_pyarray(py), offsets.into_pyarray(py), numbers.into_pyarray(py)))
    }

    /// Counts from columns as `columns` gives them; every rule of a table of counts is checked.
    #[staticmethod]
    fn from_columns(
        py: Python<'_>,
        data: PyReadonlyArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, i64>,
        counts: PyReadonlyArray1<'_, u64>,
        pattern: &str,
    ) -> PyResult<Self> {
        let wrong = || CountsError::new_err("the offsets of the pretokens must rise from 0 on");
        let (data, offsets, counts) = (data.as_slice()?, offsets.as_slice()?, counts.as_slice()?);
        let ends: Option<Vec<usize>> =
            offsets.iter().skip(1).map(|&end| end.try_into().ok()).collect();
        let ends = ends.filter(|ends| offsets.first() == Some(&0) && ends.is_sorted());
        let ends = ends.ok_or_else(wrong)?;
        let (data, counts) = (data.to_vec(), counts.to_vec());
        let inner = py.detach(|| bytepair::Counts::from_columns(data, ends, counts));
        Ok(Self { pattern: Pattern::new(pattern), inner: inner.map_err(|e| errors::python(&e))? })
    }

    /// The counts of two corpora of one pattern.
    fn plus(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        if self.pattern != other.pattern {
            let (one, two) = (self.pattern.regex(), other.pattern.regex());
            return Err(CountsError::new_err(format!(
                "counts of different patterns cannot be added: {one:?} and {two:?}"
            )));
        }
        self.with(py.detach(|| self.inner.plus(&other.inner)))
    }

    /// Every count so many times.
    fn times(&self, py: Python<'_>, times: u64) -> PyResult<Self> {
        self.with(py.detach(|| self.inner.times(times)))
    }
}
