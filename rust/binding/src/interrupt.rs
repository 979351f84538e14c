//! Ctrl-C during a call of the core for one text.
//!
//! Python notes a signal and handles it when its own code runs again. Almost every text is encoded
//! before that matters; under a slow split pattern, the core asks now and then ([`poll`]).

use std::cell::Cell;

use bytepair::pretokenize::with_poll;
use bytepair::{Text, Tokenizer};
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

/// Release the interpreter lock for some work on one text, which signals may end.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    py.detach(|| with_poll(poll, work))
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
