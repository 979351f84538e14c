//! Work on several threads, results in order: the only file that knows how threads are made.
//!
//! Threads are scoped: they start with the call and end with it. There is no pool, so a process
//! that forks keeps working, and nothing runs between calls. Starting a thread costs some tens of
//! microseconds, so callers ask for several only when the work is worth it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

mod in_order;

pub use in_order::in_order;

/// Work of less weight than this is not worth starting a thread.
const WORTH_A_THREAD: usize = 1 << 16;

/// What one thread writes often, apart from the lines of memory that others read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// What is locked, whatever a panic left: who panicked has ended the whole call.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many threads the machine runs at once, as far as it tells us; at least 1.
pub fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Run every job, the first on this thread and each other on a thread of its own, and return their
/// results in the order of the jobs. A panic in a job is passed on.
pub fn run<T: Send>(jobs: impl IntoIterator<Item = impl FnOnce() -> T + Send>) -> Vec<T> {
    let mut jobs = jobs.into_iter();
    let Some(first) = jobs.next() else { return Vec::new() };
    thread::scope(|scope| {
        let others: Vec<_> = jobs.map(|job| scope.spawn(job)).collect();
        let mut results = vec![first()];
        results.extend(
            others.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }),
        );
        results
    })
}

/// Apply `action` to every item on up to `threads` threads and return the results in order.
///
/// Each thread makes one `scratch` and takes a contiguous share of about the same total weight (in
/// bytes, say); a share that is too light for a thread of its own is not given one.
pub fn map<T: Sync, S, R: Send>(
    items: &[T],
    threads: usize,
    weight: impl Fn(&T) -> usize,
    scratch: impl Fn() -> S + Sync,
    action: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let total: usize = items.iter().map(&weight).sum();
    let threads = worth(threads, total);
    let share = |range: Range<usize>| {
        let mut scratch = scratch();
        items[range].iter().map(|item| action(&mut scratch, item)).collect::<Vec<_>>()
    };
    let share = &share;
    let mut results = run(shares(items, threads, weight).into_iter().map(|r| move || share(r)));
    if results.len() == 1 {
        return results.pop().unwrap_or_default();
    }
    results.into_iter().flatten().collect()
}

/// How many of `threads` threads work of a total `weight` (in bytes, say) is worth.
pub fn worth(threads: usize, weight: usize) -> usize {
    threads.min(1 + weight / WORTH_A_THREAD).max(1)
}

/// Let up to `threads` threads take the items, each the next one that nobody has taken, so that a
/// thread that is held up does not hold up the others. Each works with a state of its own.
///
/// What `action` returns for an item goes to `sink`, on the thread of the caller and in any order, with
/// the number of the item, while the others go on.
///
/// ```
/// let mut squares = vec![0; 3];
/// let square = |(): &mut (), item: &u32| item * item;
/// bytepair::parallel::pipe(&[1, 2, 3], 2, || (), square, |index, result| squares[index] = result);
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub fn pipe<T: Sync, S, R: Send>(
    items: &[T],
    threads: usize,
    state: impl Fn() -> S + Sync,
    action: impl Fn(&mut S, &T) -> R + Sync,
    mut sink: impl FnMut(usize, R),
) {
    if threads <= 1 || items.len() <= 1 {
        let mut state = state();
        items.iter().enumerate().for_each(|(index, item)| sink(index, action(&mut state, item)));
        return;
    }
    let (next, (state, action)) = (&AtomicUsize::new(0), (&state, &action));
    thread::scope(|scope| {
        // So much waits at most for a sink that is slower.
        let (sender, receiver) = mpsc::sync_channel(2 * threads);
        for _ in 0..threads.min(items.len()) {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut state = state();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    if sender.send((index, action(&mut state, item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (index, result) in receiver {
            sink(index, result);
        }
    });
}

/// Let up to `threads` threads, of which this is one, take what an iterator gives, each the next item, with its
/// number, as soon as it has time. Each works with a state of its own. While one asks the iterator, the others cannot.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// let add = |(): &mut (), number: usize, item: usize| { sum.fetch_add(number * item, Ordering::Relaxed); };
/// bytepair::parallel::each([5, 6, 7].into_iter(), 2, || (), add);
/// assert_eq!(sum.into_inner(), 0 * 5 + 1 * 6 + 2 * 7);
/// ```
pub fn each<T, S>(
    items: impl Iterator<Item = T> + Send,
    threads: usize,
    state: impl Fn() -> S + Sync,
    action: impl Fn(&mut S, usize, T) + Sync,
) {
    let items = Mutex::new(items.enumerate());
    let next = || lock(&items).next();
    let work = || {
        let mut state = state();
        while let Some((number, item)) = next() {
            action(&mut state, number, item);
        }
    };
    run((0..threads).map(|_| &work));
}

/// Let `lead` call rounds of work: each call of its argument runs `work(part)` once for every part
/// below `parts`, on up to as many threads, and returns when all are done.
///
/// For work of many short rounds. Between them the threads wait awake, since to wake them would take
/// longer than a round. Each thread has its own part, whose memory it therefore keeps near; the
/// leader does the parts of those that have not begun when it is at the end of its own, so a busy
/// machine that lets a thread wait does not hold up the others. A panic in a round is passed on.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// let work = |part| { sum.fetch_add(part, Ordering::Relaxed); };
/// bytepair::parallel::team(4, &work, |round| { round(); round(); });
/// assert_eq!(sum.into_inner(), 2 * (0 + 1 + 2 + 3));
/// ```
pub fn team<R>(
    parts: usize,
    work: &(dyn Fn(usize) + Sync),
    lead: impl FnOnce(&dyn Fn()) -> R,
) -> R {
    let gate = Gate::new(parts, work);
    thread::scope(|scope| {
        let gate = &gate;
        for part in 1..parts {
            scope.spawn(move || gate.follow(part));
        }
        let _close = Close(gate);
        lead(&|| gate.round())
    })
}

/// Where the members of a team wait for the next round, and their leader for the end of it.
struct Gate<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    /// How many rounds were begun.
    begun: AtomicUsize,
    /// For each part, in how many rounds somebody has begun it.
    taken: Vec<AtomicUsize>,
    /// How many parts are not done.
    open: AtomicUsize,
    /// There are no more rounds.
    closed: AtomicBool,
}

impl<'a> Gate<'a> {
    fn new(parts: usize, work: &'a (dyn Fn(usize) + Sync)) -> Self {
        Self {
            work,
            begun: AtomicUsize::new(0),
            taken: (0..parts).map(|_| AtomicUsize::new(0)).collect(),
            open: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn round(&self) {
        self.open.store(self.taken.len(), Ordering::Relaxed);
        let round = self.begun.fetch_add(1, Ordering::Release) + 1;
        (0..self.taken.len()).for_each(|part| self.take(part, round));
        wait_until(|| self.open.load(Ordering::Acquire) == 0);
        assert!(!self.closed.load(Ordering::Acquire), "a member of the team panicked");
    }

    fn follow(&self, part: usize) {
        let mut seen = 0;
        loop {
            let closed = || self.closed.load(Ordering::Acquire);
            wait_until(|| closed() || self.begun.load(Ordering::Acquire) != seen);
            if closed() {
                return;
            }
            seen = self.begun.load(Ordering::Acquire);
            self.take(part, seen);
        }
    }

    /// Do a part of a round unless somebody else does or did.
    fn take(&self, part: usize, round: usize) {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let taken = self.taken[part].compare_exchange(round - 1, round, success, failure);
        if taken.is_ok() {
            let _open = Open(self);
            (self.work)(part);
        }
    }
}

/// The leader is at the end, be it by a panic: the members may go.
struct Close<'a>(&'a Gate<'a>);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

/// A part is being done; after a panic there can be no further round.
struct Open<'a>(&'a Gate<'a>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.closed.store(true, Ordering::Release);
        }
        self.0.open.fetch_sub(1, Ordering::Release);
    }
}

/// How often a waiting thread looks before it lets others run between two looks.
const LOOKS: usize = 1 << 10;

fn wait_until(ready: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if ready() {
            return;
        }
        std::hint::spin_loop();
    }
    while !ready() {
        thread::yield_now();
    }
}

/// Cut `items` into at most `parts` ranges of about the same total weight, in order.
///
/// ```
/// let ranges = bytepair::parallel::shares(&[1, 1, 1, 3], 2, |weight| *weight);
/// assert_eq!(ranges, [0..3, 3..4]);
/// ```
pub fn shares<T>(items: &[T], parts: usize, weight: impl Fn(&T) -> usize) -> Vec<Range<usize>> {
    let total: usize = items.iter().map(&weight).sum();
    let mut ranges = Vec::with_capacity(parts);
    let (mut start, mut sum) = (0, 0);
    for (index, item) in items.iter().enumerate() {
        sum += weight(item);
        let due = total * (ranges.len() + 1) / parts.max(1);
        if sum >= due && ranges.len() + 1 < parts {
            ranges.push(start..index + 1);
            start = index + 1;
        }
    }
    if start < items.len() {
        ranges.push(start..items.len());
    }
    ranges
}
