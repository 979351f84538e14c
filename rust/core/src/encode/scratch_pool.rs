//! A pool of scratch: the buffers of a call, reused by later calls.
//!
//! A short text is encoded in a third of a microsecond, of which a lock takes a noticeable part. So
//! the first scratch is locked in place while in use; only concurrent calls take one of the others
//! from a list, and put it back.
//!
//! No call waits for a lock: a lock that was held when the process forked is never released in the
//! child, which then uses the other scratch, or new scratch for each call.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

/// The contents of a pool.
pub(crate) trait Pooled: Default {
    /// Free buffers that a large text has enlarged.
    fn trim(&mut self);
}

/// At most as many scratch values as there were concurrent calls.
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
        let kept = self.others.try_lock().ok().and_then(|mut kept| kept.pop());
        ScratchGuard::Other(Some(kept.unwrap_or_default()), &self.others)
    }
}

impl<S: Pooled> Deref for ScratchGuard<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        match self {
            Self::First(scratch) => scratch,
            Self::Other(scratch, _) => scratch.as_ref().expect("it is there until dropped"),
        }
    }
}

impl<S: Pooled> DerefMut for ScratchGuard<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        match self {
            Self::First(scratch) => scratch,
            Self::Other(scratch, _) => scratch.as_mut().expect("it is there until dropped"),
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
    fn calls_at_the_same_time_have_their_own_scratch_and_all_is_kept() {
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
        assert!(pool.borrow().is_empty(), "it was not kept");
    }

    #[test]
    fn scratch_that_a_panic_left_is_not_used_again() {
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
