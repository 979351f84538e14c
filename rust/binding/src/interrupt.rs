//! Calls of Python from the core's threads: signals, and functions of the caller.

use std::cell::Cell;

use bytepair::parallel::with_poll;
use bytepair::{Error, Text, Tokenizer};
use pyo3::prelude::*;

/// For texts of fewer characters, the interpreter lock is kept: releasing it would take as long as
/// encoding.
pub(crate) const MIN_DETACHED_CHARS: usize = 1 << 12;

thread_local! {
    /// What Python has raised, a handler of a signal or a function of the caller.
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
fn poll() -> bool {
    call(|_| Ok(())).is_err()
}

/// Let Python handle signals, and call it. Its exception interrupts the work on this thread.
pub(crate) fn call<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> bytepair::Result<T> {
    let called = Python::attach(|py| py.check_signals().and_then(|()| call(py)));
    called.map_err(|error| {
        RAISED.set(Some(error));
        Error::Interrupted
    })
}

/// The exception that interrupted the last work on this thread.
pub(crate) fn take() -> Option<PyErr> {
    RAISED.take()
}

/// The result of some work on this thread, or the exception that interrupted it.
pub(crate) fn or<T>(done: PyResult<T>) -> PyResult<T> {
    take().map_or(done, Err)
}
