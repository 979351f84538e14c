//! Results from several threads, in the order of their items and in bounded memory.

use std::iter::Fuse;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::parallel::interrupt::{self, Stop};
use crate::parallel::team::{MAX_THREADS, POLL_INTERVAL, lock, start};

/// Apply `action` to every item on up to `threads` threads, and call `sink` on this thread with the
/// results, in the order of the items.
///
/// Each thread has its own state and takes the next item from the iterator, so a slow thread does
/// not delay the others. The total weight of the items that were started and whose results `sink`
/// has not received is at most `most`, unless there is only one such item. So a long stream takes
/// little memory.
///
/// While there is no result, `sink` is called with `None` regularly. Its error ends the work, and so does
/// a poll that stops this thread ([`with_poll`](crate::parallel::with_poll)).
///
/// ```
/// let mut squares = Vec::new();
/// let square = |(): &mut (), item: u32| item * item;
/// let sink = |square: Option<u32>| {
///     squares.extend(square);
///     if squares.len() < 2 { Ok(()) } else { Err("enough") }
/// };
/// let done = bytepair::parallel::ordered([1, 2, 3], 2, 9, |_| 1, || (), square, sink);
/// assert_eq!((done, squares), (Err("enough"), vec![1, 4]));
/// ```
pub fn ordered<T: Send, S, R: Send, E>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    threads: usize,
    most: usize,
    weight: impl Fn(&T) -> usize + Sync,
    state: impl Fn() -> S + Sync,
    action: impl Fn(&mut S, T) -> R + Sync,
    mut sink: impl FnMut(Option<R>) -> Result<(), E>,
) -> Result<(), E> {
    let items = items.into_iter();
    let threads = threads.min(items.size_hint().1.unwrap_or(threads)).min(MAX_THREADS);
    let work = Underway { items: items.fuse(), next: None, weight: 0, is_closed: false };
    let (stop, work, changed) = (Stop::default(), Mutex::new(work), Condvar::new());
    let shared = &Shared { stop, weight, most, work, changed };
    let (state, action) = (&state, &action);
    thread::scope(|scope| {
        let _close = CloseOnDrop(shared);
        // The receiver of each result, in the order of the items; closed once all threads have ended.
        let (started, receivers) = mpsc::channel();
        let worker = move |started: Sender<(usize, Receiver<R>)>| {
            move || {
                let mut state = state();
                shared.stop.during(|| {
                    while let Some((item, result)) = shared.start_next(&started) {
                        // Nobody receives a result after the end of the work.
                        let _unsent = result.send(action(&mut state, item));
                    }
                });
            }
        };
        // No thread could be started, so this one does everything.
        if (0..threads).map_while(|_| start(scope, worker(started.clone()))).count() == 0 {
            let (mut state, items) = (state(), &mut lock(&shared.work).items);
            return items.try_for_each(|item| sink(Some(action(&mut state, item))));
        }
        drop(started);
        while let Some((weight, receiver)) = shared.wait(&receivers, &mut sink)? {
            // A thread that panics sends no result; the scope propagates the panic.
            let Some(result) = shared.wait(&receiver, &mut sink)? else { break };
            shared.release(weight);
            shared.poll();
            sink(Some(result))?;
        }
        Ok(())
    })
}

/// What all threads share.
struct Shared<I: Iterator, W> {
    /// Stops the work on items whose results nobody waits for.
    stop: Stop,
    weight: W,
    /// The largest total weight of the items in flight.
    most: usize,
    work: Mutex<Underway<I>>,
    changed: Condvar,
}

/// The items to start, and those in flight: started, and their results have not left yet.
struct Underway<I: Iterator> {
    items: Fuse<I>,
    /// The next item, if it was too heavy to start.
    next: Option<I::Item>,
    /// The total weight of the items in flight.
    weight: usize,
    /// Whether the work has ended.
    is_closed: bool,
}

impl<I: Iterator, W: Fn(&I::Item) -> usize> Shared<I, W> {
    /// Start the next item, once its weight is within the bound; `None` at the end. Returns where
    /// its result goes; `started` gets its weight, and where the result comes from.
    fn start_next<R>(
        &self,
        started: &Sender<(usize, Receiver<R>)>,
    ) -> Option<(I::Item, Sender<R>)> {
        let mut work = lock(&self.work);
        while !work.is_closed {
            let item = work.next.take().or_else(|| work.items.next())?;
            let weight = (self.weight)(&item);
            let sum = work.weight.saturating_add(weight);
            // A single item may be heavier than the bound; waiting for others would not help it.
            if sum <= self.most || work.weight == 0 {
                work.weight = sum;
                let (sender, receiver) = mpsc::channel();
                started.send((weight, receiver)).ok()?;
                return Some((item, sender));
            }
            work.next = Some(item);
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// What a thread sends next; `None` if it sends nothing more. Meanwhile, `sink` is called with
    /// `None` regularly.
    fn wait<T, R, E>(
        &self,
        receiver: &Receiver<T>,
        sink: &mut impl FnMut(Option<R>) -> Result<(), E>,
    ) -> Result<Option<T>, E> {
        loop {
            match receiver.recv_timeout(POLL_INTERVAL) {
                Ok(value) => return Ok(Some(value)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    self.poll();
                    sink(None)?;
                }
            }
        }
    }

    /// Take the weight of an item in flight off the sum.
    fn release(&self, weight: usize) {
        let mut work = lock(&self.work);
        work.weight = work.weight.saturating_sub(weight);
        self.changed.notify_all();
    }

    /// Stop all threads if a poll stops this one.
    fn poll(&self) {
        if interrupt::poll_now().is_err() {
            self.stop.set();
        }
    }
}

/// Ends the work when it is dropped.
struct CloseOnDrop<'a, I: Iterator, W>(&'a Shared<I, W>);

impl<I: Iterator, W> Drop for CloseOnDrop<'_, I, W> {
    fn drop(&mut self) {
        // Before the lock, which a thread holds while it reads the next item.
        self.0.stop.set();
        lock(&self.0.work).is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use std::time::Duration;

    use super::*;

    /// The total weight of the items in flight stays within the bound.
    #[test]
    fn results_come_in_order_and_within_the_bound() {
        let items: Vec<usize> = (0..500).map(|n| n * 7 % 13).collect();
        for (threads, most) in [(1, 0), (1, 100), (2, 0), (3, 30), (8, 1000)] {
            let (weight, heaviest) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
            let begin = |(): &mut (), item: &usize| {
                let now = weight.fetch_add(*item, Ordering::SeqCst) + item;
                heaviest.fetch_max(now, Ordering::SeqCst);
                if item.is_multiple_of(5) {
                    thread::sleep(Duration::from_micros(50));
                }
                *item
            };
            let mut results = Vec::new();
            let sink = |item: Option<usize>| {
                results.extend(item);
                weight.fetch_sub(item.unwrap_or(0), Ordering::SeqCst);
                Ok::<(), ()>(())
            };
            ordered(&items, threads, most, |item| **item, || (), begin, sink).unwrap();
            assert_eq!(results, items);
            // A result leaves the buffer just before the sink receives it.
            assert!(heaviest.load(Ordering::SeqCst) <= most.max(12) + 12);
        }
    }

    #[test]
    fn a_sink_may_stop_and_a_panic_is_propagated() {
        let begun = &AtomicUsize::new(0);
        let count = |(): &mut (), _: &usize| begun.fetch_add(1, Ordering::SeqCst);
        let items: Vec<usize> = (0..10_000).collect();
        let stopped = ordered(&items, 2, 5, |_| 1, || (), count, |_| Err("enough"));
        assert_eq!(stopped, Err("enough"));
        assert!(begun.load(Ordering::SeqCst) <= 6);
        let nothing: &[usize] = &[];
        let done = ordered(nothing, 2, 5, |_| 1, || (), count, |_| Err("never called"));
        assert_eq!(done, Ok(()));

        let failing = |(): &mut (), item: &usize| assert!(*item < 50, "item {item}");
        let run = || ordered(&items, 3, 5, |_| 1, || (), failing, |_| Ok::<(), ()>(()));
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn a_sink_is_called_while_it_waits() {
        let slow = |(): &mut (), (): &()| thread::sleep(4 * POLL_INTERVAL);
        let mut calls = 0;
        let sink = |result: Option<()>| {
            calls += usize::from(result.is_none());
            Ok::<(), ()>(())
        };
        ordered(&[()], 1, 1, |()| 1, || (), slow, sink).unwrap();
        assert!(calls > 0);
    }
}
