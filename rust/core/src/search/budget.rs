//! How long the regular-expression engine may search a text.
//!
//! A pattern may come from a stranger's file, and some patterns take time that grows with the square
//! of a text, or faster. The engine limits the backtracking of one search, but not the number of
//! searches, and not what it hands to automata, whose time is the length of the text times the size
//! of the pattern. So the searches of a text are timed together. The limit grows with the length of
//! the text, and is a hundred times what published patterns take.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::machine::Instant;
use crate::parallel::interrupt;

/// The time for any text, and for each byte of a text.
const TIME_PER_TEXT: Duration = Duration::from_secs(5);
const TIME_PER_BYTE: Duration = Duration::from_micros(20);

/// The clock is read after this many searches, or after each if they are slow.
const SEARCHES: u32 = 4;
const SLOW_SEARCH_TIME: Duration = Duration::from_millis(5);

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

    /// Count a search at a position. Fails if the time is used up, or if the work has to stop.
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
        interrupt::poll_now()
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
}
