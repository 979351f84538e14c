//! A pool of scratch: the buffers of a call, reused by later calls.
//!
//! A short text is encoded in a third of a microsecond, of which a lock takes a noticeable part. So
//! the first scratch is used in place, under one lock; only concurrent calls take other scratch
//! from a list, and return it.
//!
//! No call waits for a lock, because a lock that was held when the process forked is never released
//! in the child. The child then uses scratch from the list, or new scratch for each call.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

/// The contents of a pool.
pub(crate) trait Pooled: Default {
    /// Free the memory of buffers that grew for a large text.
    fn trim(&mut self);
}

/// The scratch of all calls: at most as much as there were concurrent calls.
#[derive(Debug, Default)]
pub(crate) struct ScratchPool<S> {
    first: Mutex<S>,
    others: Mutex<Vec<Box<S>>>,
}

/// Scratch in use, returned to its pool on drop.
pub(crate) enum ScratchGuard<'a, S: Pooled> {
    /// The first scratch, in place.
    First(MutexGuard<'a, S>),
    /// Another scratch, which is `Some` until dropped, and the list to return it to.
    Other(Option<Box<S>>, &'a Mutex<Vec<Box<S>>>),
}

impl<S: Pooled> ScratchPool<S> {
    /// Scratch from an earlier call, or new scratch.
    pub(crate) fn borrow(&self) -> ScratchGuard<'_, S> {
        if let Ok(first) = self.first.try_lock() {
            return ScratchGuard::First(first);
        }
        let other = self.others.try_lock().ok().and_then(|mut others| others.pop());
        ScratchGuard::Other(Some(other.unwrap_or_default()), &self.others)
    }
}

impl<S: Pooled> Deref for ScratchGuard<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        match self {
            Self::First(scratch) => scratch,
            Self::Other(scratch, _) => scratch.as_ref().expect("`Some` until dropped"),
        }
    }
}

impl<S: Pooled> DerefMut for ScratchGuard<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        match self {
            Self::First(scratch) => scratch,
            Self::Other(scratch, _) => scratch.as_mut().expect("`Some` until dropped"),
        }
    }
}

impl<S: Pooled> Drop for ScratchGuard<'_, S> {
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const KEPT: usize = 1 << 10;

    /// Each scratch holds a mark that identifies it.
    impl Pooled for Vec<u32> {
        fn trim(&mut self) {
            self.shrink_to(KEPT);
        }
    }

    #[test]
    fn concurrent_calls_have_separate_scratch_that_is_reused() {
        let pool = ScratchPool::<Vec<u32>>::default();
        for _ in 0..2 {
            let (mut one, mut other, mut third) = (pool.borrow(), pool.borrow(), pool.borrow());
            for (scratch, mark) in [(&mut one, 1), (&mut other, 2), (&mut third, 3)] {
                assert!(scratch.is_empty());
                scratch.push(mark);
            }
            drop(one);
            let mut first = pool.borrow();
            assert_eq!(**first, [1]);
            drop(third);
            let mut last = pool.borrow();
            assert_eq!(**last, [3]);
            for scratch in [&mut first, &mut other, &mut last] {
                scratch.clear();
            }
        }
        assert_eq!(pool.others.lock().unwrap().len(), 2);
    }

    #[test]
    fn no_call_waits_for_a_lock_and_large_buffers_are_freed() {
        let pool = ScratchPool::<Vec<u32>>::default();
        pool.borrow().reserve(2 * KEPT);
        assert!(pool.borrow().capacity() <= KEPT);
        let (_first, _others) = (pool.first.lock(), pool.others.lock());
        pool.borrow().push(1);
        assert!(pool.borrow().is_empty(), "the scratch was not returned to the pool");
    }

    #[test]
    fn scratch_in_use_during_a_panic_is_not_reused() {
        let pool = ScratchPool::<Vec<u32>>::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut both = [pool.borrow(), pool.borrow()];
            for scratch in &mut both {
                scratch.push(1);
            }
            panic!("half-way");
        }));
        assert!(panicked.is_err());
        let both = [pool.borrow(), pool.borrow()];
        assert!(both.iter().all(|scratch| scratch.is_empty()));
    }
}
