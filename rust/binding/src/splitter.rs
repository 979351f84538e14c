//! `Splitter`: splits text by a pattern, without a tokenizer.

use bytepair::{Pattern, Splitter, memory};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::{arguments, errors, interrupt};

/// Bytes of memory for a pretoken in Python.
const PRETOKEN_BYTES: usize = 64;

/// Splits text by a pattern.
#[pyclass(frozen, name = "Splitter", module = "bytepair._core")]
pub(crate) struct PySplitter {
    pattern: Pattern,
    splitter: Splitter,
}

#[pymethods]
impl PySplitter {
    #[new]
    fn new(pattern: &str) -> PyResult<Self> {
        let pattern = Pattern::from_regex(pattern);
        let splitter = errors::checked(Splitter::new(&pattern))?;
        Ok(Self { pattern, splitter })
    }

    /// The pretokens of a text, in order.
    fn pretokenize<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        pretokens(py, &self.pattern, &self.splitter, text)
    }
}

/// The pretokens of a text, normalized if the pattern says so.
pub(crate) fn pretokens<'py>(
    py: Python<'py>,
    pattern: &Pattern,
    splitter: &Splitter,
    text: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let text = arguments::utf8(arguments::string(text)?)?;
    let text = errors::checked(pattern.normalized(&text))?;
    let pretokens = interrupt::detached(py, || {
        let (mut pretokens, mut reserved) = (Vec::new(), Ok(()));
        splitter.for_each(&text, |pretoken| {
            if reserved.is_ok() {
                reserved = memory::reserve(&mut pretokens, 1).map(|()| pretokens.push(pretoken));
            }
        })?;
        reserved.and_then(|()| memory::check(text.len() + pretokens.len() * PRETOKEN_BYTES))?;
        Ok(pretokens)
    });
    errors::list(py, errors::checked(pretokens)?)
}
