//! Work on several threads; no other module creates threads.
//!
//! `run` runs each job on a thread of its own. `ordered` returns results in the order of their
//! items, in bounded memory. `team` runs many short rounds.
//!
//! Threads are scoped: they start and end with the call. There is no pool, so a process can fork,
//! and nothing runs between calls. Starting a thread costs some tens of microseconds; `worth`
//! determines how many threads pay off, and `shares` divides the work.

pub(crate) mod interrupt;
mod ordered;
mod team;

pub use interrupt::with_poll;
pub use ordered::ordered;
pub use team::{MAX_THREADS, lock, shares, team, worth};
pub(crate) use team::{POLL_INTERVAL, Padded};

use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use interrupt::Stop;
use team::{join, start};

/// The number of threads that this process can run at once; 1 if the system does not report it.
pub fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Run the first job on this thread and each other job on a thread of its own, or on this thread if
/// no thread can be started. Returns the results in the order of the jobs. A panic in a job is
/// propagated. If a poll stops this thread ([`with_poll`]), it stops all jobs.
pub fn run<T: Send, J: FnOnce() -> T + Send>(jobs: impl IntoIterator<Item = J>) -> Vec<T> {
    let mut jobs = jobs.into_iter();
    let Some(first) = jobs.next() else { return Vec::new() };
    // A thread takes its job only once it runs: a job moved to a thread that fails to start would
    // be dropped.
    let others: Vec<_> = jobs.map(|job| Mutex::new(Some(job))).collect();
    let run_job = |job: &Mutex<Option<J>>| {
        let job = lock(job).take();
        job.map(|job| job())
    };
    let (stop, (running, ended)) = (&Stop::default(), mpsc::channel::<()>());
    thread::scope(|scope| {
        let threads = others.iter().map(|job| {
            // Nothing is sent: the channel is closed once all threads have ended.
            let running = running.clone();
            start(scope, move || {
                let _running = running;
                stop.during(|| run_job(job))
            })
        });
        let threads: Vec<_> = threads.collect();
        drop(running);
        // This thread works too, while the others run.
        let mut results = vec![first()];
        while threads.iter().any(Option::is_some)
            && ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout)
        {
            if interrupt::poll_now().is_err() {
                stop.set();
            }
        }
        let done = others.iter().zip(threads);
        results.extend(done.filter_map(|(job, thread)| thread.map_or_else(|| run_job(job), join)));
        results
    })
}
