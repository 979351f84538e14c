//! `PairHistory`: the counts of pairs in several texts at each merge of a list.

use bytepair::train::history::PairHistory;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays;
use crate::counts::PyCounts;
use crate::errors;
use crate::rivals::PyRivals;
use crate::training::{Callback, interruptible, numbered};

/// The counts of pairs in several texts at each merge of a list.
#[pyclass(frozen, name = "PairHistory", module = "bytepair._core")]
pub(crate) struct PyPairHistory {
    inner: PairHistory,
    texts: usize,
}

#[pymethods]
impl PyPairHistory {
    #[new]
    #[pyo3(signature = (merges, texts, *, least=1, on_progress=None))]
    fn new(
        py: Python<'_>,
        merges: Vec<(Vec<u8>, Vec<u8>)>,
        texts: Vec<Py<PyCounts>>,
        least: u64,
        on_progress: Callback,
    ) -> PyResult<Self> {
        let (pairs, _) = numbered(merges).map_err(errors::CountsError::new_err)?;
        let texts: Vec<&PyCounts> = texts.iter().map(Py::get).collect();
        let inner = interruptible(py, pairs.len(), on_progress.as_ref(), |report| {
            let texts: Vec<_> = texts.iter().map(|counts| &counts.inner).collect();
            PairHistory::new(&pairs, &texts, least, report)
        })?;
        Ok(Self { inner, texts: texts.len() })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// The counts of the merged pair in each text, concatenated for all steps.
    fn merged<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::ready(py)?;
        let counts = (0..self.inner.len()).flat_map(|step| self.inner.merged(step)).copied();
        Ok(counts.collect::<Vec<_>>().into_pyarray(py))
    }

    /// The pairs whose weighted count exceeds that of the merged pair.
    fn rivals(
        &self,
        py: Python<'_>,
        weights: arrays::ArrayArgument<'_, f64>,
        slack: arrays::ArrayArgument<'_, f64>,
        pair_slack: Vec<(u32, f64)>,
        most: usize,
        tolerance: f64,
    ) -> PyResult<PyRivals> {
        let (weights, slack) = (weights.as_slice()?, slack.as_slice()?);
        if weights.len() != self.texts || slack.len() != self.inner.len() {
            return Err(PyValueError::new_err(
                "pass one weight for each text and one slack for each merge",
            ));
        }
        let rivals = py.detach(|| self.inner.rivals(weights, slack, &pair_slack, most, tolerance));
        let steps = rivals.iter().map(|rival| u32::try_from(rival.step));
        let steps: Vec<u32> = errors::collect(
            steps.map(|step| step.map_err(|_| PyValueError::new_err("too many merges"))),
        )?;
        let pairs: Vec<u32> = rivals.iter().map(|rival| rival.pair).collect();
        let counts: Vec<u64> = rivals.into_iter().flat_map(|rival| rival.counts).collect();
        Ok(PyRivals {
            steps: steps.into_pyarray(py).unbind(),
            pairs: pairs.into_pyarray(py).unbind(),
            counts: counts.into_pyarray(py).unbind(),
        })
    }
}
