//! `train` turns counts into a `Model`; `truncate`, `resume` and `extend` shrink or grow one.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use bytepair::train::grow;
use bytepair::{Ties, TrainOptions, Trained, Veto};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::Fields;
use crate::counts::PyCounts;
use crate::model::PyModel;
use crate::tokenizer::PyTokenizer;
use crate::{arguments, errors, interrupt};

/// The time between two checks for Ctrl-C and reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// Called with the number of finished merges and the total number.
pub(crate) type Callback = Option<Py<PyAny>>;

/// The training options: the fields of `bytepair.TrainOptions` in Python.
#[derive(FromPyObject)]
pub(crate) struct LearnOptions {
    pub(crate) vocab_size: usize,
    #[pyo3(attribute("names"))]
    pub(crate) special_tokens: Vec<String>,
    pub(crate) initial_tokens: Vec<String>,
    pub(crate) ties: String,
    pub(crate) min_count: u64,
    max_token_bytes: Option<usize>,
}

impl LearnOptions {
    /// The options of the core for learning this many merges.
    pub(crate) fn learning(
        &self,
        merges: usize,
        threads: Option<arguments::ThreadCount>,
    ) -> PyResult<TrainOptions> {
        let min_count = NonZeroU64::new(self.min_count)
            .ok_or_else(|| PyValueError::new_err("min_count is 0; it must be at least 1"))?;
        let (ties, threads) =
            (arguments::choice("ties", &self.ties, &Ties::NAMED)?, arguments::threads(threads));
        let max_token_bytes = self.max_token_bytes;
        Ok(TrainOptions { merges, ties, min_count, max_token_bytes, threads, veto: None })
    }
}

/// Learn a vocabulary from counts.
#[pyfunction]
#[pyo3(signature = (counts, options, *, threads=None, on_progress=None))]
pub(crate) fn train(
    py: Python<'_>,
    counts: &PyCounts,
    options: Fields<LearnOptions>,
    threads: Option<arguments::ThreadCount>,
    on_progress: Callback,
) -> PyResult<PyModel> {
    let special = &options.special_tokens;
    let merges = errors::checked(grow::merges_for(options.vocab_size, special.len()))?;
    let learning = options.learning(merges, threads)?;
    let trained = interruptible(py, merges, on_progress.as_ref(), |report| {
        let (counts, pattern) = (&counts.inner, &counts.pattern);
        let initial = &options.initial_tokens;
        let trained = grow::train_with(initial, counts, pattern, &learning, report)?;
        trained.to_tokenizer(special, pattern.clone())
    })?;
    Ok(with_notes(py, trained, counts, &options))
}

/// Add notes about the corpus and the options.
fn with_notes(
    py: Python<'_>,
    tokenizer: bytepair::Tokenizer,
    counts: &PyCounts,
    options: &LearnOptions,
) -> PyModel {
    let counts = &counts.inner;
    PyModel::of(
        tokenizer
            .with_note(grow::TEXT_BYTES, &counts.text_bytes())
            .with_note("pretokens", &counts.len())
            .with_note("counts", &py.detach(|| counts.fingerprint()))
            .with_note("ties", &options.ties)
            .with_note("min_count", &options.min_count),
    )
}

/// The tokenizer that training to `vocab_size` ids would have produced.
#[pyfunction]
pub(crate) fn with_vocab_size(tokenizer: &PyTokenizer, vocab_size: usize) -> PyResult<PyModel> {
    PyModel::new(grow::truncate(&tokenizer.core, vocab_size))
}

/// The limits on superwords: the largest number of words, and texts that they must not contain.
type Limits = (Option<usize>, Vec<String>);

fn veto((max_words, never): Limits) -> Veto {
    Veto { max_words, never }
}

/// Continue training up to `options.vocab_size` ids, as if it had not stopped. With `superwords`,
/// tokens may cross spaces where the pattern of the counts lets them.
#[pyfunction]
#[pyo3(signature = (tokenizer, counts, options, *, superwords=None, threads=None, on_progress=None))]
pub(crate) fn resume(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    counts: &PyCounts,
    options: Fields<LearnOptions>,
    superwords: Option<Limits>,
    threads: Option<arguments::ThreadCount>,
    on_progress: Callback,
) -> PyResult<PyModel> {
    let vocab_size = options.vocab_size;
    let merges = vocab_size.saturating_sub(tokenizer.core.vocabulary().len());
    let learning = options.learning(merges, threads)?;
    let learning = TrainOptions { veto: superwords.map(veto), ..learning };
    let resumed = interruptible(py, merges, on_progress.as_ref(), |report| {
        let PyCounts { inner, pattern } = counts;
        grow::resume(&tokenizer.core, inner, pattern, vocab_size, &learning, report)
    })?;
    Ok(with_notes(py, resumed, counts, &options))
}

/// Learn up to `extra` tokens from other counts; existing ids do not change.
#[pyfunction]
#[pyo3(signature = (tokenizer, counts, extra, options, *, on_progress=None))]
pub(crate) fn extend(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    counts: &PyCounts,
    extra: usize,
    options: Fields<LearnOptions>,
    on_progress: Callback,
) -> PyResult<PyModel> {
    let learning = options.learning(extra, None)?;
    let extended = interruptible(py, extra, on_progress.as_ref(), |report| {
        grow::extend(&tokenizer.core, &counts.inner, &learning, report)
    })?;
    Ok(PyModel::of(extended))
}

/// A pair of tokens that merge, and how often it occurs.
type CountedPair = ((Vec<u8>, Vec<u8>), u64);

/// The first merge of a list that training would not have made: its index, the merge, and the one that
/// training would have made, if any. With `superwords`, only the merges from an index on are checked,
/// which form superwords under these limits; `counts` were made with the pattern of superwords.
#[pyfunction]
#[pyo3(signature = (merges, counts, options, *, superwords=None, on_progress=None))]
pub(crate) fn verify_merges(
    py: Python<'_>,
    merges: Vec<(Vec<u8>, Vec<u8>)>,
    counts: &PyCounts,
    options: Fields<LearnOptions>,
    superwords: Option<(usize, Limits)>,
    on_progress: Callback,
) -> PyResult<Option<(usize, CountedPair, Option<CountedPair>)>> {
    let options = options.learning(merges.len(), None)?;
    let (pairs, tokens) = numbered(merges).map_err(errors::CountsError::new_err)?;
    let start = superwords.as_ref().map_or(0, |&(start, _)| start.min(pairs.len()));
    let (before, after) = pairs.split_at(start);
    let mismatch = interruptible(py, pairs.len(), on_progress.as_ref(), |report| {
        let Some((_, limits)) = superwords else {
            return bytepair::verify(None, after, &counts.inner, &options, report);
        };
        let options = TrainOptions { veto: Some(veto(limits)), ..options };
        let first = Trained { merges: before.to_vec(), ..Trained::default() };
        let base = first.to_tokenizer(&[], counts.pattern.clone())?;
        let report = &mut |done| report(start + done);
        bytepair::verify(Some(&base), after, &counts.inner, &options, report)
    })?;
    let token = |id: u32| tokens[id as usize].clone();
    let pair = |((left, right), count): ((u32, u32), u64)| ((token(left), token(right)), count);
    Ok(mismatch.map(|one| (start + one.step, pair(one.pair), one.best.map(pair))))
}

/// Pairs of ids, and the bytes of each id; merge `i` creates id `256 + i`.
pub(crate) type Numbered = (Vec<(u32, u32)>, Vec<Vec<u8>>);

/// Replace the parts of merges by the ids that training would assign.
pub(crate) fn numbered(merges: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Numbered, String> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let ids = tokens.iter().cloned().zip(0u32..);
    let mut ids: std::collections::HashMap<Vec<u8>, u32> = ids.collect();
    let mut pairs = Vec::with_capacity(merges.len());
    for (step, (left, right)) in merges.into_iter().enumerate() {
        let find = |part: &[u8]| {
            ids.get(part).copied().ok_or_else(|| {
                format!(
                    "merge {step} contains b\"{}\", which no earlier merge produces",
                    part.escape_ascii()
                )
            })
        };
        pairs.push((find(&left)?, find(&right)?));
        let token = [left, right].concat();
        let id = u32::try_from(tokens.len()).map_err(|_| "too many merges".to_owned())?;
        ids.entry(token.clone()).or_insert(id);
        tokens.push(token);
    }
    Ok((pairs, tokens))
}

/// Run `work` without the interpreter lock, regularly checking for Ctrl-C and reporting progress.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    total: usize,
    on_progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(usize) -> bytepair::Result<()>) -> bytepair::Result<T> + Send,
) -> PyResult<T> {
    let done = py.detach(|| {
        let mut last = Instant::now();
        work(&mut |done: usize| {
            if last.elapsed() < REPORT_EVERY {
                return Ok(());
            }
            last = Instant::now();
            interrupt::call(|py| {
                on_progress.map_or(Ok(()), |call| call.call1(py, (done, total)).map(drop))
            })
        })
    });
    errors::checked(done)
}
