//! `Splitter` and what is asked about patterns.

use bytepair::{Pattern, Result, Splitter, memory};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::rules::python_pattern;
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

/// The regular expression of a named pattern, or the given expression itself if it is valid; of a list,
/// those of its items, which are the steps of a pattern.
#[pyfunction]
pub(crate) fn pattern<'py>(
    py: Python<'py>,
    name_or_regex: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let expression = |name: &Bound<'_, PyAny>| -> PyResult<Vec<String>> {
        let name: String = name.extract()?;
        Ok(errors::checked(Pattern::new(&name))?.steps().to_vec())
    };
    if name_or_regex.is_instance_of::<PyString>() {
        return python_pattern(
            py,
            &errors::checked(Pattern::in_steps(expression(name_or_regex)?))?,
        );
    }
    let mut steps = Vec::new();
    for name in name_or_regex.try_iter()? {
        steps.extend(expression(&name?)?);
    }
    python_pattern(py, &errors::checked(Pattern::in_steps(steps))?)
}

/// The numbers of characters that a match of a regular expression may have.
#[pyclass(frozen, get_all, name = "MatchLengths", module = "bytepair._core")]
pub(crate) struct PyMatchLengths {
    /// The smallest.
    pub(crate) fewest: usize,
    /// The largest; None if there is none.
    pub(crate) most: Option<usize>,
}

/// How long the matches of a regular expression can be.
#[pyfunction]
pub(crate) fn match_lengths(regex: &str) -> PyMatchLengths {
    let (fewest, most) = bytepair::pretokenize::match_lengths(regex);
    PyMatchLengths { fewest, most: Some(most).filter(|&most| most < usize::MAX) }
}
