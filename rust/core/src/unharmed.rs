//! Code that panics on damaged input, run so that a panic is an error and nothing is said of it.
//!
//! A panic is told to a hook of the process before it unwinds, and the usual hook prints it. Here a hook
//! is put before that one, once, which keeps silent about this region of this thread alone.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is in [`unharmed`].
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` returns, or `None` if it panics. What it has changed by then stays changed.
pub(crate) fn unharmed<T>(work: impl FnOnce() -> T) -> Option<T> {
    static ONCE: Once = Once::new();
    ONCE.call_once(silence);
    let before = SILENT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    SILENT.set(before);
    result.ok()
}

/// Let the hook of the process hear no more of what happens in [`unharmed`].
fn silence() {
    let hook = take_hook();
    set_hook(Box::new(move |panic| {
        // A thread that ends may have no such value any more.
        if !SILENT.try_with(Cell::get).unwrap_or(false) {
            hook(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    /// What is said in this process of panics, heard by a hook: not those of `unharmed`, but those of
    /// other threads meanwhile, and of this one behind it.
    #[test]
    fn only_what_happens_in_it_is_silent() {
        let (sender, heard) = channel();
        let usual = Arc::new(take_hook());
        let others = Arc::clone(&usual);
        set_hook(Box::new(move |panic| match panic.payload().downcast_ref::<&str>() {
            Some(said) if said.starts_with("test:") => sender.send(*said).unwrap_or_default(),
            _ => others(panic),
        }));
        silence();
        let elsewhere = || thread::spawn(|| panic!("test: elsewhere")).join().is_err();
        let inside = unharmed(|| {
            assert!(elsewhere());
            assert_eq!(unharmed(|| panic!("test: inside both")), None::<()>);
            panic!("test: inside")
        });
        assert_eq!(inside, None::<()>);
        assert!(catch_unwind(|| panic!("test: behind")).is_err());
        set_hook(Box::new(move |panic| usual(panic)));
        assert_eq!(heard.into_iter().collect::<Vec<_>>(), ["test: elsewhere", "test: behind"]);
        assert_eq!(unharmed(|| 5), Some(5));
    }
}
