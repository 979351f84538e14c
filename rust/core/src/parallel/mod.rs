//! Work on several threads; no other room creates threads.
//!
//! `run` runs each job on a thread of its own. `ordered` gives results in the order of their
//! items, in bounded memory. `team` runs many short rounds.
//!
//! Threads are scoped: they start with the call and end with it. There is no pool, so a process can
//! fork, and nothing runs between calls. Starting a thread costs some tens of microseconds;
//! `worth` says when that pays, and `shares` divides the work.

mod ordered;

mod shared;

mod shares;

mod team;

pub use ordered::ordered;
pub use shared::MAX_THREADS;
pub(crate) use shared::{Padded, lock};
pub use shares::{shares, worth};
pub use team::team;

use std::sync::Mutex;
use std::thread;

use shared::{join, start};

/// The number of threads that the machine runs at once, if the system tells it; at least 1.
pub fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Run the first job on this thread and each other job on a thread of its own, or on this one if
/// the system gives no thread. Returns their results in the order of the jobs. A panic in a job is
/// passed on.
pub fn run<T: Send, J: FnOnce() -> T + Send>(jobs: impl IntoIterator<Item = J>) -> Vec<T> {
    let mut jobs = jobs.into_iter();
    let Some(first) = jobs.next() else { return Vec::new() };
    // A job stays here until a thread begins it: a thread that fails to start would drop it.
    let others: Vec<_> = jobs.map(|job| Mutex::new(Some(job))).collect();
    let begin = |job: &Mutex<Option<J>>| {
        let job = lock(job).take();
        job.map(|job| job())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = others.iter().map(|job| start(scope, move || begin(job))).collect();
        let mut results = vec![first()];
        let done = others.iter().zip(threads);
        results.extend(done.filter_map(|(job, thread)| thread.map_or_else(|| begin(job), join)));
        results
    })
}
