//! The buffers of a call, reused by later calls: scratch, and the pool that holds it.
//!
//! A short text is encoded in a third of a microsecond, of which a lock takes a noticeable part. So
//! the first scratch is used in place, under one lock; only concurrent calls take other scratch
//! from a list, and return it.
//!
//! No call waits for a lock, because a lock that was held when the process forked is never released
//! in the child. The child then uses scratch from the list, or new scratch for each call.

#![expect(clippy::vec_box, reason = "each concurrent call takes one out and puts it back")]

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

use crate::encode::lookup::Lookup;
use crate::encode::misses::Misses;
use crate::error::Result;
use crate::memory;
use crate::merge::merger::MergeScratch;
use crate::pretokenize::PretokenEnds;

/// Buffers that grew beyond this many bytes or ids are freed after the call.
const MAX_KEPT_CAPACITY: usize = 1 << 20;

/// The buffers of a call: 3 MiB, and references to the latest tables of the caches.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) window: WindowScratch,
    /// A buffer of ids.
    pub(super) block: Vec<u32>,
    /// The UTF-8 of a text in another encoding.
    pub(super) text: String,
}

/// The buffers that every window reuses.
#[derive(Debug, Default)]
pub(super) struct WindowScratch {
    pub(super) ends: Box<PretokenEnds>,
    /// The ends of a window in which long pretokens are divided.
    pub(super) sections: Vec<usize>,
    pub(super) pretokens: PretokenScratch,
}

/// The buffers for encoding pretokens.
#[derive(Debug, Default)]
pub(super) struct PretokenScratch {
    pub(super) lookup: Lookup,
    pub(super) misses: Misses,
    pub(super) merge: MergeScratch,
}

impl Scratch {
    /// Free the memory of buffers that grew for a large text.
    fn trim(&mut self) {
        if self.text.capacity() > MAX_KEPT_CAPACITY {
            self.text = String::new();
        }
        if self.block.capacity() > MAX_KEPT_CAPACITY {
            self.block = Vec::new();
        }
    }
}

/// The scratch of all calls: at most as much as there were concurrent calls.
#[derive(Debug, Default)]
pub(crate) struct ScratchPool {
    first: Mutex<Scratch>,
    others: Mutex<Vec<Box<Scratch>>>,
}

/// Scratch in use, returned to its pool on drop.
pub(crate) enum ScratchGuard<'a> {
    /// The first scratch, in place.
    First(MutexGuard<'a, Scratch>),
    /// Another scratch, which is `Some` until dropped, and the list to return it to.
    Other(Option<Box<Scratch>>, &'a Mutex<Vec<Box<Scratch>>>),
}

impl ScratchPool {
    /// Scratch from an earlier call, or new scratch.
    pub(crate) fn borrow(&self) -> ScratchGuard<'_> {
        if let Ok(first) = self.first.try_lock() {
            return ScratchGuard::First(first);
        }
        let other = self.others.try_lock().ok().and_then(|mut others| others.pop());
        ScratchGuard::Other(Some(other.unwrap_or_default()), &self.others)
    }
}

impl Deref for ScratchGuard<'_> {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        match self {
            Self::First(scratch) => scratch,
            Self::Other(scratch, _) => scratch.as_ref().expect("`Some` until dropped"),
        }
    }
}

impl DerefMut for ScratchGuard<'_> {
    fn deref_mut(&mut self) -> &mut Scratch {
        match self {
            Self::First(scratch) => scratch,
            Self::Other(scratch, _) => scratch.as_mut().expect("`Some` until dropped"),
        }
    }
}

impl Drop for ScratchGuard<'_> {
    fn drop(&mut self) {
        self.trim();
        if let Self::Other(scratch, others) = self
            && !std::thread::panicking()
            && let Ok(mut others) = others.try_lock()
        {
            others.extend(scratch.take());
        }
    }
}

// ---------------------------------------------------------------------------- sinks

/// How an id is stored: as `u32`, as `u16` for small vocabularies, or as `()` for counting only.
pub trait Id: Copy + Default + Send + Sync {
    /// Store an id, which must fit.
    fn of(id: u32) -> Self;
}

impl Id for u32 {
    fn of(id: u32) -> Self {
        id
    }
}

impl Id for u16 {
    #[expect(clippy::cast_possible_truncation, reason = "the size of the vocabulary was checked")]
    fn of(id: u32) -> Self {
        id as Self
    }
}

impl Id for () {
    fn of(_: u32) -> Self {}
}

/// Receives some ids of a text.
type Pass<'a> = dyn FnMut(&[u32]) -> Result<()> + 'a;

/// Takes the ids of a text in order.
pub(crate) struct IdSink<'a> {
    /// All ids of the text; a buffer for some of them if they are passed on.
    pub(crate) ids: &'a mut Vec<u32>,
    /// Receives a few hundred ids at a time.
    pub(crate) pass: Option<&'a mut Pass<'a>>,
}

impl IdSink<'_> {
    /// The vector to append ids to, which may already contain ids; [`pass_on`](Self::pass_on) takes them.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u32> {
        if self.pass.is_some() {
            self.ids.clear();
        }
        self.ids
    }

    /// Take the ids that were appended to the buffer.
    pub(crate) fn pass_on(&mut self) -> Result<()> {
        self.pass.as_mut().map_or(Ok(()), |pass| pass(self.ids))
    }

    /// Take existing ids.
    pub(crate) fn take(&mut self, ids: &[u32]) -> Result<()> {
        match &mut self.pass {
            Some(pass) => pass(ids),
            None => memory::extend(self.ids, ids),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn concurrent_calls_have_separate_scratch_that_is_reused() {
        let pool = ScratchPool::default();
        for _ in 0..2 {
            let (mut one, mut other, mut third) = (pool.borrow(), pool.borrow(), pool.borrow());
            for (scratch, mark) in [(&mut one, 1), (&mut other, 2), (&mut third, 3)] {
                // The mark identifies the scratch.
                assert!(scratch.block.is_empty());
                scratch.block.push(mark);
            }
            drop(one);
            let mut first = pool.borrow();
            assert_eq!(first.block, [1]);
            drop(third);
            let mut last = pool.borrow();
            assert_eq!(last.block, [3]);
            for scratch in [&mut first, &mut other, &mut last] {
                scratch.block.clear();
            }
        }
        assert_eq!(pool.others.lock().unwrap().len(), 2);
    }

    #[test]
    fn no_call_waits_for_a_lock_and_large_buffers_are_freed() {
        let pool = ScratchPool::default();
        pool.borrow().block.reserve(2 * MAX_KEPT_CAPACITY);
        assert!(pool.borrow().block.capacity() <= MAX_KEPT_CAPACITY);
        let (_first, _others) = (pool.first.lock(), pool.others.lock());
        pool.borrow().block.push(1);
        assert!(pool.borrow().block.is_empty(), "the scratch was not returned to the pool");
    }

    #[test]
    fn scratch_in_use_during_a_panic_is_not_reused() {
        let pool = ScratchPool::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut both = [pool.borrow(), pool.borrow()];
            for scratch in &mut both {
                scratch.block.push(1);
            }
            panic!("half-way");
        }));
        assert!(panicked.is_err());
        let both = [pool.borrow(), pool.borrow()];
        assert!(both.iter().all(|scratch| scratch.block.is_empty()));
    }
}
