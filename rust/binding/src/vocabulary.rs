//! The tokens and merges of a tokenizer as Python lists and dicts, and the id of one token.

use bytepair::{Tokenizer, memory, shortened};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::{arguments, errors};

/// The memory of a merge or a token in Python, in bytes.
const MERGE_BYTES: usize = 300;

/// The pairs of tokens that merge, in order.
pub(crate) fn merges<'py>(py: Python<'py>, core: &Tokenizer) -> PyResult<Bound<'py, PyList>> {
    errors::checked(memory::check(core.vocabulary().len() * MERGE_BYTES))?;
    errors::checked(py.detach(|| core.make_tables()))?;
    let bytes = |id: u32| core.token_bytes(id).map(|token| PyBytes::new(py, token));
    let pair = |&(left, right): &(u32, u32)| Ok((bytes(left)?, bytes(right)?));
    let pairs = core.merges().iter().map(|merge| errors::checked(pair(merge)));
    errors::list(py, errors::collect(pairs)?)
}

/// The ordinary tokens with their ids.
pub(crate) fn ranks<'py>(py: Python<'py>, core: &Tokenizer) -> PyResult<Bound<'py, PyDict>> {
    errors::checked(memory::check(core.vocabulary().len() * MERGE_BYTES))?;
    let dict = PyDict::new(py);
    for (token, id) in core.vocabulary().ordinary_tokens() {
        dict.set_item(PyBytes::new(py, token), id)?;
    }
    Ok(dict)
}

/// The id of an ordinary token, given as bytes or as text; `KeyError` if there is none.
pub(crate) fn token_id(core: &Tokenizer, token: &Bound<'_, PyAny>) -> PyResult<u32> {
    if let Ok(text) = token.cast::<PyString>() {
        let text = arguments::utf8(text)?;
        let unknown = || PyKeyError::new_err(shortened(unknown_token(core, &text)));
        return core.vocabulary().id(text.as_bytes()).ok_or_else(unknown);
    }
    let wrong = |_| arguments::refused("token", token, "bytes or a str");
    let token: &[u8] = token.extract().map_err(wrong)?;
    let unknown = || format!("b\"{}\" is not a token", token.escape_ascii());
    core.vocabulary().id(token).ok_or_else(|| PyKeyError::new_err(shortened(unknown())))
}

/// Why a text has no id.
fn unknown_token(core: &Tokenizer, text: &str) -> String {
    match core.vocabulary().special(text) {
        Some(id) => format!("{text:?} is a special token, id {id} (see special_tokens)"),
        None => format!("{text:?} is not a token; encode gives the ids of any text"),
    }
}
