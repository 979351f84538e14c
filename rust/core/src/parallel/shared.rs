//! Starts threads, divides work among them, and holds data that several of them use.

use std::ops::Range;
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

/// Work of less weight does not justify a thread.
const MIN_WEIGHT_PER_THREAD: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };

/// How many of `threads` threads are justified for work of a total `weight`, such as bytes of text.
pub fn worth(threads: usize, weight: usize) -> usize {
    threads.min(1 + weight / MIN_WEIGHT_PER_THREAD).clamp(1, MAX_THREADS)
}

/// Divide `items` into at most `parts` ranges of about equal total weight, in order.
///
/// ```
/// let ranges = bytepair::parallel::shares(&[1, 1, 1, 3], 2, |weight| *weight);
/// assert_eq!(ranges, [0..3, 3..4]);
/// ```
pub fn shares<T>(items: &[T], parts: usize, weight: impl Fn(&T) -> usize) -> Vec<Range<usize>> {
    let total: usize = items.iter().map(&weight).sum();
    let mut ranges = Vec::with_capacity(parts.min(items.len()));
    let (mut start, mut sum) = (0, 0);
    for (index, item) in items.iter().enumerate() {
        sum += weight(item);
        // A range ends once the sum reaches its part of the total. The sum counts all items so far,
        // so an uneven range does not shift those after it.
        let due = total * (ranges.len() + 1) / parts.max(1);
        if sum >= due && ranges.len() + 1 < parts {
            ranges.push(start..index + 1);
            start = index + 1;
        }
    }
    if start < items.len() {
        ranges.push(start..items.len());
    }
    ranges
}
