//! Parity-aware training: the counts of groups to a `Model`, and the history of its pairs.

use bytepair::train::grow;
use bytepair_lab::history::PairHistory;
use bytepair_lab::parity::{ChoiceWindow, Measure, Parity, ParityTexts, train_groups};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::Fields;
use crate::counts::PyCounts;
use crate::model::PyModel;
use crate::training::{Callback, LearnOptions, interruptible, numbered};
use crate::{arguments, arrays, errors};

/// Learn a vocabulary from groups of texts, choosing each merge for the group that compresses
/// worst. Returns it with the index of the group for which each merge was chosen that was not chosen
/// globally.
#[pyfunction]
#[pyo3(signature = (
    groups, development, options, *, ratios=None, window=None, alpha=1.0, global_merges=0,
    threads=None, on_progress=None
))]
pub(crate) fn train_parity(
    py: Python<'_>,
    groups: Vec<Py<PyCounts>>,
    development: Vec<Py<PyCounts>>,
    options: Fields<LearnOptions>,
    ratios: Option<Vec<f64>>,
    window: Option<usize>,
    alpha: f64,
    global_merges: usize,
    threads: Option<arguments::ThreadCount>,
    on_progress: Callback,
) -> PyResult<(PyModel, Vec<usize>)> {
    let special = &options.special_tokens;
    let merges = errors::checked(grow::merges_for(options.vocab_size, special.len()))?;
    let learning = options.learning(merges, threads)?;
    let parity = Parity {
        measure: ratios.map_or(Measure::Tokens, |ratios| Measure::Rates { ratios }),
        window: window.map(|size| ChoiceWindow { size, alpha }),
        global_merges,
    };
    let groups: Vec<&PyCounts> = groups.iter().map(Py::get).collect();
    let development: Vec<&PyCounts> = development.iter().map(Py::get).collect();
    let Some(first) = groups.first() else {
        return Err(errors::CountsError::new_err("there are no groups to train on"));
    };
    let pattern = &first.pattern;
    let (trained, chosen) = interruptible(py, merges, on_progress.as_ref(), |report| {
        let groups: Vec<_> = groups.iter().map(|counts| &counts.inner).collect();
        let development: Vec<_> = development.iter().map(|counts| &counts.inner).collect();
        let texts = ParityTexts { groups: &groups, development: &development };
        let initial = &options.initial_tokens;
        let (trained, chosen) = train_groups(initial, texts, &parity, pattern, &learning, report)?;
        Ok((trained.to_tokenizer(special, pattern.clone())?, chosen))
    })?;
    let bytes: u128 = groups.iter().map(|counts| counts.inner.text_bytes()).sum();
    let model = PyModel::of(
        trained
            .with_note(grow::TEXT_BYTES, &bytes)
            .with_note("ties", &options.ties)
            .with_note("min_count", &options.min_count),
    );
    Ok((model, chosen))
}

/// Steps, indices of pairs, and counts.
type Rivals<'py> =
    (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

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

    /// The pairs whose weighted count exceeds that of the merged pair: the step of each, its index, and
    /// its counts in all texts, concatenated.
    fn rivals<'py>(
        &self,
        py: Python<'py>,
        weights: arrays::ArrayArgument<'_, f64>,
        slack: arrays::ArrayArgument<'_, f64>,
        pair_slack: Vec<(u32, f64)>,
        most: usize,
        tolerance: f64,
    ) -> PyResult<Rivals<'py>> {
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
        Ok((steps.into_pyarray(py), pairs.into_pyarray(py), counts.into_pyarray(py)))
    }
}
