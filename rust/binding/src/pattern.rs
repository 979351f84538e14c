//! Resolves the names of split patterns.

use bytepair::Pattern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors;
use crate::rules::python_pattern;

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
