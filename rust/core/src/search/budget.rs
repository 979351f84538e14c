//! How long the regular-expression engine may search a text.
//!
//! A pattern may come from a stranger's file, and some patterns take time that grows with the square
//! of a text, or faster. The engine limits the backtracking of one search, but not the number of
//! searches, and not what it hands to automata, whose time is the length of the text times the size
//! of the pattern. So the searches of a text are timed together. The limit grows with the length of
//! the text, and is a hundred times what published patterns take.
//!
//! A thread that somebody waits for can be asked now and then whether to stop ([`with_poll`]).

use std::cell::Cell;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::machine::clock::Instant;

/// The time for any text, and for each byte of a text.
const TIME_PER_TEXT: Duration = Duration::from_secs(5);
const TIME_PER_BYTE: Duration = Duration::from_micros(20);

/// The clock is read after this many searches, or after each if they are slow.
const SEARCHES: u32 = 4;
const SLOW_SEARCH_TIME: Duration = Duration::from_millis(5);

/// The time between two polls.
const BETWEEN_POLLS: Duration = Duration::from_millis(100);

/// What is asked whether to stop, and when it was asked last.
type Poll = (fn() -> bool, Instant);

thread_local! {
    static POLL: Cell<Option<Poll>> = const { Cell::new(None) };
}

/// Do some work on this thread; during it, ask `poll` whether to stop, ten times a second. If so, the
/// work fails with [`Error::Interrupted`].
///
/// ```
/// use bytepair::{Pattern, Splitter, pretokenize::with_poll};
/// let splitter = Splitter::by_regex(&Pattern::from_regex("a|b"))?;
/// let mut count = 0;
/// with_poll(|| false, || splitter.for_each("abba", |_| count += 1))?;
/// assert_eq!(count, 4);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn with_poll<R>(poll: fn() -> bool, work: impl FnOnce() -> R) -> R {
    /// Sets the poll from before, also after a panic.
    struct Restore(Option<Poll>);
    impl Drop for Restore {
        fn drop(&mut self) {
            POLL.set(self.0);
        }
    }
    let _restore = Restore(POLL.replace(Some((poll, Instant::now()))));
    work()
}

/// Ask whether to stop, if this thread is to ask and has not done so for a while. Fails with
/// [`Error::Interrupted`] if so.
#[inline]
pub(crate) fn poll() -> Result<()> {
    if POLL.get().is_none() { Ok(()) } else { poll_at(Instant::now()) }
}

fn poll_at(now: Instant) -> Result<()> {
    let Some((poll, asked)) = POLL.get() else { return Ok(()) };
    if now - asked < BETWEEN_POLLS {
        return Ok(());
    }
    POLL.set(Some((poll, now)));
    if poll() { Err(Error::Interrupted) } else { Ok(()) }
}

/// The time of all searches in one text: in all its windows and pieces, by all steps.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Duration,
    spent: Duration,
    /// When the clock was last read, and the number of searches until it is read again.
    looked: Instant,
    left: u32,
}

impl Budget {
    /// The budget of a text of this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let limit = TIME_PER_TEXT + TIME_PER_BYTE * bytes;
        Self { limit, spent: Duration::ZERO, looked: Instant::now(), left: SEARCHES }
    }

    /// The budget after other work, whose time does not count.
    pub(crate) fn resumed(self) -> Self {
        Self { looked: Instant::now(), ..self }
    }

    /// Count a search at a position. Fails if the time is used up, or if the poll says to stop.
    #[inline]
    pub(crate) fn count(&mut self, at: usize) -> Result<()> {
        self.left -= 1;
        if self.left == 0 { self.check(at) } else { Ok(()) }
    }

    fn check(&mut self, at: usize) -> Result<()> {
        let now = Instant::now();
        let time = now - self.looked;
        self.left = if time > SLOW_SEARCH_TIME { 1 } else { SEARCHES };
        self.looked = now;
        self.spent += time;
        if self.spent > self.limit {
            let reason = format!(
                "the split pattern takes too long for this text, more than {} s and {} \u{b5}s per \
                 byte",
                TIME_PER_TEXT.as_secs(),
                TIME_PER_BYTE.as_micros()
            );
            return Err(Error::Split { at, reason });
        }
        poll_at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_limited_for_all_windows_together() {
        let mut fresh = Budget::new(1000);
        assert!((0..100).all(|at| fresh.count(at).is_ok()));
        let spent = Duration::from_secs(6);
        let mut late = Budget { spent, ..Budget::new(1000) }.resumed();
        let failed = (0..100).find_map(|at| late.count(at).err());
        assert!(matches!(failed, Some(Error::Split { at: 3, .. })), "{failed:?}");
    }

    #[test]
    fn a_poll_stops_the_work_of_its_thread_only() {
        let wait = || {
            let mut budget = Budget::new(0);
            let begun = Instant::now();
            while begun.elapsed() < 2 * BETWEEN_POLLS {
                budget.count(0)?;
            }
            Ok(())
        };
        assert_eq!(with_poll(|| true, wait), Err(Error::Interrupted));
        assert_eq!(with_poll(|| false, wait), Ok(()));
        assert_eq!(wait(), Ok(()));
        let panicked = std::panic::catch_unwind(|| with_poll(|| true, || panic!("in the work")));
        assert!(panicked.is_err() && wait() == Ok(()));
    }
}
