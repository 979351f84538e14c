//! Calls of Python from the core's threads: signals, and functions that Python registers.

use std::cell::Cell;

use bytepair::parallel::with_poll;
use bytepair::{Error, Text, Tokenizer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// For texts of fewer characters, the interpreter lock is kept: releasing it would take as long as
/// encoding.
pub(crate) const MIN_DETACHED_CHARS: usize = 1 << 12;

thread_local! {
    /// What the handler of a signal has raised.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Whether a text is encoded so soon that the interpreter lock need not be released.
pub(crate) fn is_quick(tokenizer: &Tokenizer, text: &Text<'_>) -> bool {
    text.len() < MIN_DETACHED_CHARS && !tokenizer.splitter().may_fail()
}

/// Release the interpreter lock for some work on texts, which signals may end.
pub(crate) fn detached<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> bytepair::Result<R> + Send,
) -> bytepair::Result<R> {
    py.detach(|| polled(work))
}

/// Do some work on this thread, which has released the interpreter lock, and which signals may end.
pub(crate) fn polled<R>(work: impl FnOnce() -> bytepair::Result<R>) -> bytepair::Result<R> {
    with_poll(poll, work)
}

/// Let Python handle signals; returns whether a handler raised an exception.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method has one lifetime only")]
fn poll() -> bool {
    let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
    RAISED.set(Some(error));
    true
}

/// The exception for which the last work on this thread ended.
pub(crate) fn take() -> Option<PyErr> {
    RAISED.take()
}

/// The error of Python that interrupted some work of the core.
#[derive(Default)]
pub(crate) struct Stopped(Option<PyErr>);

impl Stopped {
    /// Let Python handle signals, and call it. Its error interrupts the work.
    pub(crate) fn call<T>(
        &mut self,
        call: impl FnOnce(Python<'_>) -> PyResult<T>,
    ) -> bytepair::Result<T> {
        let called = Python::attach(|py| py.check_signals().and_then(|()| call(py)));
        called.map_err(|error| {
            self.0 = Some(error);
            Error::Interrupted
        })
    }

    /// The result of the work, or the error of Python that interrupted it.
    pub(crate) fn or<T>(self, done: PyResult<T>) -> PyResult<T> {
        self.0.map_or(done, Err)
    }
}

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
