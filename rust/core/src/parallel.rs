//! Work on several threads, results in order: the only file that knows how threads are made.
//!
//! Threads are scoped: they start with the call and end with it. There is no pool, so a process
//! that forks keeps working, and nothing runs between calls. Starting a thread costs some tens of
//! microseconds, so callers ask for several only when the work is worth it.

use std::ops::Range;
use std::thread;

/// Work of less weight than this is not worth starting a thread.
const WORTH_A_THREAD: usize = 1 << 16;

/// How many threads the machine runs at once, as far as it tells us; at least 1.
pub fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Run every job, the first on this thread and each other on a thread of its own, and return their
/// results in the order of the jobs. A panic in a job is passed on.
pub fn run<T: Send>(jobs: impl IntoIterator<Item = impl FnOnce() -> T + Send>) -> Vec<T> {
    let mut jobs = jobs.into_iter();
    let Some(first) = jobs.next() else { return Vec::new() };
    thread::scope(|scope| {
        let others: Vec<_> = jobs.map(|job| scope.spawn(job)).collect();
        let mut results = vec![first()];
        results.extend(
            others.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }),
        );
        results
    })
}

/// Apply `action` to every item on up to `threads` threads and return the results in order.
///
/// Each thread makes one `scratch` and takes a contiguous share of about the same total weight (in
/// bytes, say); a share that is too light for a thread of its own is not given one.
pub fn map<T: Sync, S, R: Send>(
    items: &[T],
    threads: usize,
    weight: impl Fn(&T) -> usize,
    scratch: impl Fn() -> S + Sync,
    action: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let total: usize = items.iter().map(&weight).sum();
    let threads = threads.min(1 + total / WORTH_A_THREAD);
    let share = |range: Range<usize>| {
        let mut scratch = scratch();
        items[range].iter().map(|item| action(&mut scratch, item)).collect::<Vec<_>>()
    };
    let share = &share;
    let mut results = run(shares(items, threads, weight).into_iter().map(|r| move || share(r)));
    if results.len() == 1 {
        return results.pop().unwrap_or_default();
    }
    results.into_iter().flatten().collect()
}

/// Cut `items` into at most `parts` ranges of about the same total weight, in order.
///
/// ```
/// let ranges = bytepair::parallel::shares(&[1, 1, 1, 3], 2, |weight| *weight);
/// assert_eq!(ranges, [0..3, 3..4]);
/// ```
pub fn shares<T>(items: &[T], parts: usize, weight: impl Fn(&T) -> usize) -> Vec<Range<usize>> {
    let total: usize = items.iter().map(&weight).sum();
    let mut ranges = Vec::with_capacity(parts);
    let (mut start, mut sum) = (0, 0);
    for (index, item) in items.iter().enumerate() {
        sum += weight(item);
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
