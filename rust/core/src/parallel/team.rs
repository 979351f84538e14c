//! Many short rounds of the same work on the same threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::memory;

/// Call `lead` with a function that runs a round: it calls `work(part)` once for every part below
/// `parts`, on up to `parts` threads, and returns when all parts are done.
///
/// This is for many short rounds. Between rounds the threads spin, since waking a thread takes
/// longer than a round. Each thread has its own part, whose memory stays in its caches. When the
/// leader has finished its own part, it runs the parts that no thread has started, so a thread that
/// the system delays does not delay the round. A panic in a round is propagated.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// let work = |part| { sum.fetch_add(part, Ordering::Relaxed); };
/// bytepair::parallel::team(4, &work, |round| { round(); round(); });
/// assert_eq!(sum.into_inner(), 2 * (0 + 1 + 2 + 3));
/// ```
pub fn team<R>(
    parts: usize,
    work: &(dyn Fn(usize) + Sync),
    lead: impl FnOnce(&dyn Fn()) -> R,
) -> R {
    let gate = Gate::new(parts, work);
    thread::scope(|scope| {
        let gate = &gate;
        let started: Vec<_> =
            (1..parts).map_while(|part| start(scope, move || gate.follow(part))).collect();
        let close = Close(gate);
        let result = lead(&|| gate.round());
        drop(close);
        started.into_iter().for_each(join);
        result
    })
}

/// The state of the rounds.
struct Gate<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    /// The number of rounds started.
    started: AtomicUsize,
    /// For each part, the number of rounds in which it was started.
    part_rounds: Vec<AtomicUsize>,
    /// The number of unfinished parts of the current round.
    open: AtomicUsize,
    /// Whether there are no more rounds.
    closed: AtomicBool,
}

impl<'a> Gate<'a> {
    fn new(parts: usize, work: &'a (dyn Fn(usize) + Sync)) -> Self {
        Self {
            work,
            started: AtomicUsize::new(0),
            part_rounds: (0..parts).map(|_| AtomicUsize::new(0)).collect(),
            open: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn round(&self) {
        self.open.store(self.part_rounds.len(), Ordering::Relaxed);
        // Releases `open` and all that the leader wrote since the last round to the threads that
        // see the new number of rounds.
        let round = self.started.fetch_add(1, Ordering::Release) + 1;
        // The leader's own part is the first. It tries the others too: at the end of the loop all
        // parts are started, so none waits for a thread that the system does not run.
        (0..self.part_rounds.len()).for_each(|part| self.take(part, round));
        // Acquires what the other threads wrote in their parts.
        wait_until(|| self.open.load(Ordering::Acquire) == 0);
        assert!(!self.closed.load(Ordering::Acquire), "a thread of the team panicked");
    }

    fn follow(&self, part: usize) {
        let mut seen = 0;
        loop {
            let closed = || self.closed.load(Ordering::Acquire);
            wait_until(|| closed() || self.started.load(Ordering::Acquire) != seen);
            if closed() {
                return;
            }
            seen = self.started.load(Ordering::Acquire);
            self.take(part, seen);
        }
    }

    /// Run a part of a round, unless another thread has started it.
    fn take(&self, part: usize, round: usize) {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        // Of the two threads that may run a part, one raises its number of rounds and the other
        // fails. So does a thread that comes a round too late, because the number is then `round`
        // or more.
        let claim = self.part_rounds[part].compare_exchange(round - 1, round, success, failure);
        if claim.is_ok() {
            let _open = Open(self);
            (self.work)(part);
        }
    }
}

/// Ends the rounds when the leader returns or panics.
struct Close<'a>(&'a Gate<'a>);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

/// A part that is running; a panic in it ends the rounds.
struct Open<'a>(&'a Gate<'a>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.closed.store(true, Ordering::Release);
        }
        self.0.open.fetch_sub(1, Ordering::Release);
    }
}

/// The number of times that a waiting thread spins before it yields.
const SPINS_BEFORE_YIELD: usize = 1 << 10;

fn wait_until(ready: impl Fn() -> bool) {
    for _ in 0..SPINS_BEFORE_YIELD {
        if ready() {
            return;
        }
        std::hint::spin_loop();
    }
    while !ready() {
        thread::yield_now();
    }
}

// ---------------------------------------------------------------------------- threads and shares

/// A call never uses more threads.
pub const MAX_THREADS: usize = 1 << 10;

/// Bytes of memory for a thread: its stack and its buffers.
const THREAD_BYTES: usize = 8 << 20;

/// The longest time between two calls of a sink.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

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
