//! What a thread needs while it encodes, kept from one call to the next.
//!
//! A short text is encoded in a third of a microsecond, of which every lock is a noticeable part. So the first kit stays
//! where it is, and who uses it holds its lock meanwhile; only those who come at the same time take one of the others
//! and put it back.
//!
//! Nobody waits for a lock: one that was held when a process was forked is never free again in the child, which
//! then does with the other kits, or makes one for each call.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

use crate::encode::Scratch;

/// A buffer that grew larger than this (in bytes or ids) is not kept.
const KEPT: usize = 1 << 20;

/// What a thread needs to encode. Kits must not change from one tokenizer to another.
#[derive(Debug, Default)]
pub(crate) struct Kit {
    pub(crate) scratch: Scratch,
    /// Ids on their way.
    pub(crate) block: Vec<u32>,
    /// A text as UTF-8 that is stored otherwise.
    pub(crate) text: String,
}

/// The kits of a tokenizer: as many as threads were at work at the same time.
#[derive(Debug, Default)]
pub(crate) struct Kits {
    first: Mutex<Kit>,
    others: Others,
}

type Others = Mutex<Vec<Box<Kit>>>;

/// A kit in use; dropped, it is there for the next call.
pub(crate) enum Borrowed<'a> {
    First(MutexGuard<'a, Kit>),
    /// The kit is here until dropped.
    Other(Option<Box<Kit>>, &'a Others),
}

impl Kits {
    /// What an earlier call left behind, or else something new.
    pub(crate) fn borrow(&self) -> Borrowed<'_> {
        if let Ok(first) = self.first.try_lock() {
            return Borrowed::First(first);
        }
        let kept = self.others.try_lock().ok().and_then(|mut kept| kept.pop());
        Borrowed::Other(Some(kept.unwrap_or_default()), &self.others)
    }
}

impl Kit {
    /// Give back the memory of large texts.
    fn trim(&mut self) {
        if self.text.capacity() > KEPT {
            self.text = String::new();
        }
        if self.block.capacity() > KEPT {
            self.block = Vec::new();
        }
    }
}

impl Deref for Borrowed<'_> {
    type Target = Kit;

    fn deref(&self) -> &Kit {
        match self {
            Self::First(kit) => kit,
            Self::Other(kit, _) => kit.as_ref().expect("it is here until dropped"),
        }
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut Kit {
        match self {
            Self::First(kit) => kit,
            Self::Other(kit, _) => kit.as_mut().expect("it is here until dropped"),
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.trim();
        if let Self::Other(kit, others) = self
            && !std::thread::panicking()
            && let Ok(mut others) = others.try_lock()
        {
            others.extend(kit.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Which kit it is, by a mark that was left in it.
    fn mark(kit: &Kit) -> &[u32] {
        &kit.block
    }

    #[test]
    fn who_comes_at_the_same_time_has_a_kit_of_its_own_and_all_are_kept() {
        let kits = Kits::default();
        for _ in 0..2 {
            let (mut one, mut other, mut third) = (kits.borrow(), kits.borrow(), kits.borrow());
            for (kit, mark) in [(&mut one, 1), (&mut other, 2), (&mut third, 3)] {
                assert!(kit.block.is_empty());
                kit.block.push(mark);
            }
            drop(one);
            let mut first = kits.borrow();
            assert_eq!(mark(&first), [1]);
            drop(third);
            let mut last = kits.borrow();
            assert_eq!(mark(&last), [3]);
            for kit in [&mut first, &mut other, &mut last] {
                kit.block.clear();
            }
        }
        assert_eq!(kits.others.lock().unwrap().len(), 2);
    }

    #[test]
    fn nobody_waits_for_a_lock_and_what_grew_large_is_given_back() {
        let kits = Kits::default();
        kits.borrow().text.reserve(2 * KEPT);
        assert!(kits.borrow().text.capacity() <= KEPT);
        let (_first, _others) = (kits.first.lock(), kits.others.lock());
        kits.borrow().block.push(1);
        assert!(kits.borrow().block.is_empty(), "it was not kept");
    }

    #[test]
    fn what_a_panic_left_is_not_used_again() {
        let kits = Kits::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut both = [kits.borrow(), kits.borrow()];
            for kit in &mut both {
                kit.block.push(1);
            }
            panic!("half-way");
        }));
        assert!(panicked.is_err());
        let both = [kits.borrow(), kits.borrow()];
        assert!(both.iter().all(|kit| kit.block.is_empty()));
    }
}
