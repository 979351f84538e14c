//! Stops long work on request: the thread of the caller polls a function, and sets a flag for the other
//! threads.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::machine::Instant;

/// The time between two polls.
const BETWEEN_POLLS: Duration = Duration::from_millis(50);

/// The clock is read in one of this many calls of [`poll`], which are at most some milliseconds apart.
const CHANCES: u32 = 16;

/// Whether the work of a thread has to stop.
#[derive(Debug, Clone)]
struct Poll {
    /// The function to poll, on the thread of the caller; other threads only look at the flag.
    ask: Option<fn() -> bool>,
    /// When the function was called last.
    last: Instant,
    stop: Stop,
}

/// The flag that stops the work of several threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

thread_local! {
    static POLL: RefCell<Option<Poll>> = const { RefCell::new(None) };
    /// The number of chances until the next one at which the clock is read.
    static LEFT: Cell<u32> = const { Cell::new(CHANCES) };
}

/// Do some work on this thread and on those that it starts; during it, ask `poll` on this thread whether
/// to stop, twenty times a second. If so, this fails with [`Error::Interrupted`], at the latest when the
/// work ends.
///
/// ```
/// use bytepair::{Pattern, Splitter, parallel::with_poll};
/// let splitter = Splitter::by_regex(&Pattern::from_regex("a|b"))?;
/// let mut count = 0;
/// with_poll(|| false, || splitter.for_each("abba", |_| count += 1))?;
/// assert_eq!(count, 4);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn with_poll<R>(poll: fn() -> bool, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let stop = Stop::default();
    let done = with(Some(Poll { ask: Some(poll), last: Instant::now(), stop: stop.clone() }), work);
    if stop.is_set() { Err(Error::Interrupted) } else { done }
}

/// Do some work that must not be left half done: nothing stops it.
pub(crate) fn uninterrupted<R>(work: impl FnOnce() -> R) -> R {
    with(None, work)
}

fn with<R>(poll: Option<Poll>, work: impl FnOnce() -> R) -> R {
    /// Sets the poll from before, also after a panic.
    struct Restore(Option<Poll>);
    impl Drop for Restore {
        fn drop(&mut self) {
            POLL.set(self.0.take());
        }
    }
    let _restore = Restore(POLL.replace(poll));
    work()
}

/// Fails with [`Error::Interrupted`] if the work of this thread has to stop. It seldom reads the clock,
/// so work of less than a millisecond may call it each time.
#[inline]
pub(crate) fn poll() -> Result<()> {
    let left = LEFT.get();
    LEFT.set(left - 1);
    if left > 1 { Ok(()) } else { poll_now() }
}

/// The same, for work that takes longer.
#[cold]
pub(crate) fn poll_now() -> Result<()> {
    LEFT.set(CHANCES);
    let Some((ask, stop)) = POLL.with_borrow_mut(|poll| poll.as_mut().map(Poll::due)) else {
        return Ok(());
    };
    // The flag remembers the answer, since the function may give it only once.
    if ask.is_some_and(|ask| ask()) {
        stop.set();
    }
    if stop.is_set() { Err(Error::Interrupted) } else { Ok(()) }
}

impl Poll {
    /// The function to poll, if it is time, and the flag.
    fn due(&mut self) -> (Option<fn() -> bool>, Stop) {
        let (now, stop) = (Instant::now(), self.stop.clone());
        if stop.is_set() || now - self.last < BETWEEN_POLLS {
            return (None, stop);
        }
        self.last = now;
        (self.ask, stop)
    }
}

impl Stop {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Do some work on this thread, until the flag is set.
    pub(super) fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        with(Some(Poll { ask: None, last: Instant::now(), stop: self.clone() }), work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel;

    /// Work of a second that polls.
    fn wait() -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(1) {
            poll()?;
        }
        Ok(())
    }

    #[test]
    fn a_poll_stops_the_work_of_its_thread_only() {
        assert_eq!(with_poll(|| true, wait), Err(Error::Interrupted));
        assert_eq!(with_poll(|| false, wait), Ok(()));
        assert_eq!(wait(), Ok(()));
        let mut done = Ok(());
        let work = || {
            done = uninterrupted(wait);
            poll_now()
        };
        assert_eq!((with_poll(|| true, work), done), (Err(Error::Interrupted), Ok(())));
        let panicked =
            std::panic::catch_unwind(|| with_poll(|| true, || -> Result<()> { panic!("at work") }));
        assert!(panicked.is_err() && wait() == Ok(()));
    }

    #[test]
    fn a_poll_stops_the_threads_that_help() {
        let start = Instant::now();
        let jobs = |first: fn() -> Result<()>| [first, wait, wait];
        for first in [wait, || Ok(())] {
            let mut done = Vec::new();
            let work = || {
                done = parallel::run(jobs(first));
                Ok(())
            };
            assert_eq!(with_poll(|| true, work), Err(Error::Interrupted));
            assert_eq!(done[1..], [Err(Error::Interrupted), Err(Error::Interrupted)]);
        }
        let sink = |done: Option<Result<()>>| done.map_or(Ok(()), |done| done);
        let work = |(): &mut (), (): &()| wait();
        let ordered = || parallel::ordered(&[(); 3], 2, 9, |()| 1, || (), work, sink);
        assert_eq!(with_poll(|| true, ordered), Err(Error::Interrupted));
        let fails = |_| Err(Error::Changed);
        let failed = parallel::ordered(&[(); 3], 2, 9, |()| 1, || (), work, fails);
        assert_eq!(failed, Err(Error::Changed));
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}
