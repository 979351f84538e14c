//! Starting threads, and data that several threads use.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::memory;

/// A call never uses more threads.
pub const MAX_THREADS: usize = 1 << 10;

/// Bytes of memory for a thread: its stack and its buffers.
const THREAD_BYTES: usize = 8 << 20;

/// The longest time between two calls of a sink.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A value that one thread writes often, on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Start a thread; `None` if the system refuses or there is not enough memory.
pub(super) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    memory::check(THREAD_BYTES).ok()?;
    thread::Builder::new().spawn_scoped(scope, work).ok()
}

/// The result of a thread; a panic in it is propagated.
pub(super) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Lock a mutex, even if a thread panicked while holding it: that panic ends the whole call anyway.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
