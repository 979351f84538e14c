//! Lets the threads that count take turns, in the order of the corpus.
//!
//! Threads read parts of a corpus in any order, but some decisions depend on all earlier parts. A
//! thread waits until it is the turn of its part, decides, and passes the turn on.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::parallel::lock;

/// Gives the parts of a corpus their turns in order, whichever threads work on them.
pub(super) struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
}

struct Turn {
    /// The part whose turn it is.
    next: u64,
    /// This part and later ones have no turn.
    end: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self { state: Mutex::new(Turn { next: 0, end: u64::MAX }), changed: Condvar::new() }
    }
}

impl Turns {
    /// Wait for the turn of a part. Returns whether it has one.
    pub(super) fn wait(&self, part: u64) -> bool {
        // An end wakes the threads that wait for a turn that will not come.
        let waits = |turn: &mut Turn| turn.next < part && part < turn.end;
        let waited = self.changed.wait_while(lock(&self.state), waits);
        part < waited.unwrap_or_else(PoisonError::into_inner).end
    }

    /// End the turn of a part; `goes_on` tells whether another one may follow.
    pub(super) fn pass(&self, part: u64, goes_on: bool) {
        let mut turn = lock(&self.state);
        turn.next = part + 1;
        if !goes_on {
            turn.end = turn.end.min(part + 1);
        }
        self.changed.notify_all();
    }

    /// Give no turn to this part and later ones.
    pub(super) fn end_before(&self, part: u64) {
        let mut turn = lock(&self.state);
        turn.end = turn.end.min(part);
        self.changed.notify_all();
    }

    /// The number of parts that had their turn.
    #[cfg(feature = "parquet")]
    pub(super) fn passed(&self) -> u64 {
        lock(&self.state).next
    }
}
