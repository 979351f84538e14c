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
const SEARCHES: u32 = 16;
const SLOW_SEARCH_TIME: Duration = Duration::from_millis(5);

/// The time between two polls.
const BETWEEN_POLLS: Duration = Duration::from_millis(100);

thread_local! {
    static POLL: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// Do some work on this thread; while the regular-expression engine searches in it, ask `poll`
/// whether to stop, ten times a second. If so, the work fails with [`Error::Interrupted`].
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
    let before = POLL.replace(Some(poll));
    let result = work();
    POLL.set(before);
    result
}

/// Measures the searches of one window of a text.
pub(crate) struct Budget {
    limit: Duration,
    begun: Instant,
    polled: Instant,
    /// When the clock was last read, and the number of searches until it is read again.
    looked: Instant,
    left: u32,
}

impl Budget {
    /// Begin a window of a text of this many bytes, of which some time was spent before.
    pub(crate) fn new(bytes: usize, spent: Duration) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (limit, now) =
            ((TIME_PER_TEXT + TIME_PER_BYTE * bytes).saturating_sub(spent), Instant::now());
        Self { limit, begun: now, polled: now, looked: now, left: SEARCHES }
    }

    /// The time since the window began.
    pub(crate) fn spent(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Count a search at a position. Fails if the time is used up, or if the poll says to stop.
    #[inline]
    pub(crate) fn count(&mut self, at: usize) -> Result<()> {
        self.left -= 1;
        if self.left == 0 { self.check(at) } else { Ok(()) }
    }

    fn check(&mut self, at: usize) -> Result<()> {
        let now = Instant::now();
        self.left = if now - self.looked > SLOW_SEARCH_TIME { 1 } else { SEARCHES };
        self.looked = now;
        if now - self.begun > self.limit {
            let reason = format!(
                "the split pattern takes too long for this text, more than {} s and {} \u{b5}s per \
                 byte",
                TIME_PER_TEXT.as_secs(),
                TIME_PER_BYTE.as_micros()
            );
            return Err(Error::Split { at, reason });
        }
        if now - self.polled > BETWEEN_POLLS {
            self.polled = now;
            if POLL.get().is_some_and(|poll| poll()) {
                return Err(Error::Interrupted);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_limited_for_all_windows_together() {
        let mut fresh = Budget::new(1000, Duration::ZERO);
        assert!((0..100).all(|at| fresh.count(at).is_ok()));
        let mut late = Budget::new(1000, Duration::from_secs(6));
        let failed = (0..100).find_map(|at| late.count(at).err());
        assert!(matches!(failed, Some(Error::Split { at: 15, .. })), "{failed:?}");
    }

    #[test]
    fn a_poll_stops_the_work_of_its_thread_only() {
        let wait = || {
            let mut budget = Budget::new(0, Duration::ZERO);
            let begun = Instant::now();
            while begun.elapsed() < 2 * BETWEEN_POLLS {
                budget.count(0)?;
            }
            Ok(())
        };
        assert_eq!(with_poll(|| true, wait), Err(Error::Interrupted));
        assert_eq!(with_poll(|| false, wait), Ok(()));
        assert_eq!(wait(), Ok(()));
    }
}
