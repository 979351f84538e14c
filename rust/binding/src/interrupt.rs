//! Calls of Python from the core's threads: signals, and functions of the caller.

use std::cell::Cell;

use bytepair::parallel::with_poll;
use bytepair::{Error, Text, Tokenizer};
use pyo3::prelude::*;

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
