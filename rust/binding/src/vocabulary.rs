//! The tokens and merges of a tokenizer as Python lists and dicts.

use bytepair::{Tokenizer, memory};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::errors;

/// Bytes of memory for a merge or a token in Python.
const MERGE: usize = 300;

/// The pairs of tokens that merge, in order.
pub(crate) fn merges<'py>(py: Python<'py>, core: &Tokenizer) -> PyResult<Bound<'py, PyList>> {
    errors::checked(memory::check(core.vocabulary().len() * MERGE))?;
    errors::checked(py.detach(|| core.make_tables()))?;
    let bytes = |id: u32| core.token_bytes(id).map(|token| PyBytes::new(py, token));
    let pair = |&(left, right): &(u32, u32)| Ok((bytes(left)?, bytes(right)?));
    let pairs = core.merges().iter().map(|merge| errors::checked(pair(merge)));
    errors::list(py, errors::collect(pairs)?)
}

/// The ordinary tokens with their ids.
pub(crate) fn ranks<'py>(py: Python<'py>, core: &Tokenizer) -> PyResult<Bound<'py, PyDict>> {
    errors::checked(memory::check(core.vocabulary().len() * MERGE))?;
    let dict = PyDict::new(py);
    for (token, id) in core.vocabulary().ordinary_tokens() {
        dict.set_item(PyBytes::new(py, token), id)?;
    }
    Ok(dict)
}
