//! Parity-aware training: the counts of groups to a `Model`.

use bytepair::train::grow;
use bytepair::train::parity::{ChoiceWindow, Measure, Parity, ParityTexts, train_groups};
use pyo3::prelude::*;

use crate::counts::PyCounts;
use crate::model::PyModel;
use crate::parity_training::PyParityTraining;
use crate::training::{Callback, LearnOptions, interruptible};
use crate::{arguments, errors};

/// Learn a vocabulary from groups of texts, choosing each merge for the group that compresses
/// worst.
#[pyfunction]
#[pyo3(signature = (
    groups, development, options, *, ratios=None, window=None, alpha=1.0, global_merges=0,
    threads=None, on_progress=None
))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn train_parity(
    py: Python<'_>,
    groups: Vec<Py<PyCounts>>,
    development: Vec<Py<PyCounts>>,
    options: &Bound<'_, PyAny>,
    ratios: Option<Vec<f64>>,
    window: Option<usize>,
    alpha: f64,
    global_merges: usize,
    threads: Option<arguments::ThreadCount>,
    on_progress: Callback,
) -> PyResult<PyParityTraining> {
    let options = LearnOptions::new(options)?;
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
    Ok(PyParityTraining { model: Py::new(py, model)?, groups: chosen })
}
