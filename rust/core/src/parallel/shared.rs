//! Data that several threads use.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::memory;

/// A call never uses more threads.
pub const MAX_THREADS: usize = 1 << 10;

/// Bytes of memory for a thread: its stack and its buffers.
const THREAD: usize = 8 << 20;

/// The longest time between two calls of a function that watches.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// A value that one thread writes often, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Start a thread, if the system gives one and there is memory for it.
pub(super) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    memory::check(THREAD).ok()?;
    thread::Builder::new().spawn_scoped(scope, work).ok()
}

/// What a thread returned; a panic in it is passed on.
pub(super) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Lock a mutex, also after a panic in another thread: that panic ends the whole call anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
