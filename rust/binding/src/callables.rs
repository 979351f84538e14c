//! What the Python package does for the core: callables that it registers when it is imported.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The callables of the Python package.
pub(crate) struct Callables {
    /// The error for keywords that a method does not have: the method and the keywords in, an
    /// exception out.
    pub(crate) unknown_keyword: Py<PyAny>,
    /// An Arrow column in, an iterable of its texts out.
    pub(crate) texts: Py<PyAny>,
    /// An array of ids, a type of numpy and the size of the vocabulary in, an array of that type
    /// out.
    pub(crate) of_type: Py<PyAny>,
    /// The class `IdArrays`: ids and offsets in.
    pub(crate) id_arrays: Py<PyAny>,
    /// The class `IdsWithOffsets`: ids, and their places in bytes and in characters, in.
    pub(crate) ids_with_offsets: Py<PyAny>,
}

static CALLABLES: PyOnceLock<Callables> = PyOnceLock::new();

/// Register the callables of the Python package; the first ones stay.
#[pyfunction]
#[pyo3(signature = (*, unknown_keyword, texts, of_type, id_arrays, ids_with_offsets))]
pub(crate) fn register(
    py: Python<'_>,
    unknown_keyword: Py<PyAny>,
    texts: Py<PyAny>,
    of_type: Py<PyAny>,
    id_arrays: Py<PyAny>,
    ids_with_offsets: Py<PyAny>,
) {
    // A second import of the package registers the same callables.
    let all = Callables { unknown_keyword, texts, of_type, id_arrays, ids_with_offsets };
    let _ = CALLABLES.set(py, all);
}

/// The callables of the Python package.
pub(crate) fn callables(py: Python<'_>) -> PyResult<&Callables> {
    CALLABLES.get(py).ok_or_else(|| PyRuntimeError::new_err("import bytepair first"))
}
