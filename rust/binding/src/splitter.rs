//! `Splitter`: splits text by a pattern, without a tokenizer.

use bytepair::{Result, Splitter, memory};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::{arguments, errors, interrupt, rules};

/// Bytes of memory for a pretoken in Python.
const PRETOKEN_BYTES: usize = 64;

/// Splits text by a pattern.
#[pyclass(frozen, name = "Splitter", module = "bytepair._core")]
pub(crate) struct PySplitter {
    splitter: Splitter,
}

#[pymethods]
impl PySplitter {
    #[new]
    fn new(pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        let splitter = Splitter::new(&rules::pattern(pattern)?);
        Ok(Self { splitter: errors::checked(splitter)? })
    }

    /// The pretokens of a text, in order.
    fn pretokenize<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        pretokens(py, text, |text, sink| {
            self.splitter.for_each(text, |pretoken| sink(pretoken.into()))
        })
    }
}

/// The pretokens of a text, by the function that calls another with each of them.
pub(crate) fn pretokens<'py>(
    py: Python<'py>,
    text: &Bound<'_, PyAny>,
    for_each: impl Fn(&str, &mut dyn FnMut(String)) -> Result<()> + Sync,
) -> PyResult<Bound<'py, PyList>> {
    let text = arguments::utf8(arguments::string(text)?)?;
    let pretokens = interrupt::detached(py, || {
        let (mut pretokens, mut reserved) = (Vec::new(), Ok(()));
        for_each(&text, &mut |pretoken| {
            if reserved.is_ok() {
                reserved = memory::reserve(&mut pretokens, 1).map(|()| pretokens.push(pretoken));
            }
        })?;
        reserved.and_then(|()| memory::check(text.len() + pretokens.len() * PRETOKEN_BYTES))?;
        Ok(pretokens)
    });
    errors::list(py, errors::checked(pretokens)?)
}
