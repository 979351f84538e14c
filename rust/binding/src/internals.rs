//! What only the package itself asks of a tokenizer, as functions, so that it is no method of the
//! public class.

use bytepair::memory;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::tokenizer::PyTokenizer;
use crate::{arguments, arrays, errors};

/// The ids of bytes that are merged as one pretoken, whether or not the split pattern would keep them
/// together.
#[pyfunction]
pub(crate) fn encode_pretoken(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    pretoken: &Bound<'_, PyAny>,
) -> PyResult<Vec<u32>> {
    let pretoken = arguments::bytes("pretoken", pretoken)?;
    errors::checked(py.detach(|| tokenizer.core().encode_pretoken(pretoken)))
}

/// How often training made each of the first merges in its corpus: those whose counts are known.
#[pyfunction]
pub(crate) fn merge_counts<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    arrays::ready(py)?;
    errors::checked(tokenizer.core().make_tables())?;
    let counts = errors::checked(memory::copy(tokenizer.core().merge_counts()))?;
    Ok(counts.into_pyarray(py))
}

/// The ids of tokens that are only decoded, because another token has the same bytes.
#[pyfunction]
pub(crate) fn twin_ids(tokenizer: &PyTokenizer) -> Vec<u32> {
    tokenizer.core().vocabulary().twins().to_vec()
}

/// The limit in bytes of the cache of repeated text; 0 if it is off.
#[pyfunction]
pub(crate) fn repeats(tokenizer: &PyTokenizer) -> usize {
    tokenizer.core().repeats()
}
