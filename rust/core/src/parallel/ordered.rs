//! Results from several threads, in the order of their items and in bounded memory.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::parallel::interrupt::{self, Stop};
use crate::parallel::team::{MAX_THREADS, POLL_INTERVAL, lock, start};

/// Apply `action` to every item on up to `threads` threads, and call `sink` on this thread with the
/// results, in the order of the items.
///
/// Each thread has its own state and takes the next item that no thread has started, so a slow
/// thread does not delay the others. The total weight of the items that were started and whose
/// results `sink` has not received is at most `most`, unless there is only one such item. So a long
/// stream takes little memory.
///
/// While there is no result, `sink` is called with `None` regularly. Its error ends the work, and so does
/// a poll that stops this thread ([`with_poll`](crate::parallel::with_poll)).
///
/// ```
/// let mut squares = Vec::new();
/// let square = |(): &mut (), item: &u32| item * item;
/// let sink = |square: Option<u32>| {
///     squares.extend(square);
///     if squares.len() < 2 { Ok(()) } else { Err("enough") }
/// };
/// let done = bytepair::parallel::ordered(&[1, 2, 3], 2, 9, |_| 1, || (), square, sink);
/// assert_eq!((done, squares), (Err("enough"), vec![1, 4]));
/// ```
pub fn ordered<T: Sync, S, R: Send, E>(
    items: &[T],
    threads: usize,
    most: usize,
    weight: impl Fn(&T) -> usize,
    state: impl Fn() -> S + Sync,
    action: impl Fn(&mut S, &T) -> R + Sync,
    mut sink: impl FnMut(Option<R>) -> Result<(), E>,
) -> Result<(), E> {
    let weights = items.iter().map(weight).collect();
    let buffer = &Buffer {
        stop: Stop::default(),
        weights,
        most,
        in_flight: Mutex::new(InFlight::default()),
        changed: Condvar::new(),
    };
    let (state, action) = (&state, &action);
    thread::scope(|scope| {
        let _close = CloseOnDrop(buffer);
        let work = move || {
            // A panic in one thread ends all threads; the scope propagates it.
            let close = CloseOnDrop(buffer);
            let mut state = state();
            buffer.stop.during(|| {
                while let Some(index) = buffer.start_next() {
                    buffer.put(index, action(&mut state, &items[index]));
                }
            });
            // The work of this thread is done, but not that of the others.
            std::mem::forget(close);
        };
        let threads = threads.min(items.len()).min(MAX_THREADS);
        // No thread could be started, so this one does everything.
        if (0..threads).map_while(|_| start(scope, work)).count() == 0 {
            let mut state = state();
            return items.iter().try_for_each(|item| sink(Some(action(&mut state, item))));
        }
        let mut left = items.len();
        while left > 0 && buffer.is_open() {
            let result = buffer.take();
            if interrupt::poll_now().is_err() {
                buffer.stop.set();
            }
            left -= usize::from(result.is_some());
            sink(result)?;
        }
        Ok(())
    })
}

/// The items in flight, shared by all threads.
struct Buffer<R> {
    /// Stops the work on items whose results nobody waits for.
    stop: Stop,
    /// The weight of each item.
    weights: Vec<usize>,
    /// The largest total weight of the items in flight.
    most: usize,
    in_flight: Mutex<InFlight<R>>,
    changed: Condvar,
}

/// The items that were started and whose results have not left yet.
struct InFlight<R> {
    /// The number of results that have left.
    delivered: usize,
    /// The results of the items in flight, in order; `None` until they are ready.
    results: VecDeque<Option<R>>,
    /// The total weight of the items in flight.
    weight: usize,
    /// Whether the work has ended.
    closed: bool,
}

impl<R> Default for InFlight<R> {
    fn default() -> Self {
        Self { delivered: 0, results: VecDeque::new(), weight: 0, closed: false }
    }
}

impl<R> Buffer<R> {
    /// Start the next item, once its weight is within the bound; `None` at the end.
    fn start_next(&self) -> Option<usize> {
        let mut in_flight = lock(&self.in_flight);
        loop {
            // Items start in order, so those in flight are the ones after the delivered ones.
            let index = in_flight.delivered + in_flight.results.len();
            let weight = *self.weights.get(index).filter(|_| !in_flight.closed)?;
            let sum = in_flight.weight.saturating_add(weight);
            // A single item may be heavier than the bound; waiting for others would not help it.
            if sum <= self.most || in_flight.results.is_empty() {
                in_flight.weight = sum;
                in_flight.results.push_back(None);
                return Some(index);
            }
            in_flight = self.changed.wait(in_flight).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn put(&self, index: usize, result: R) {
        let mut in_flight = lock(&self.in_flight);
        let slot = index - in_flight.delivered;
        in_flight.results[slot] = Some(result);
        // Only the first result can leave, so others wake nobody.
        if slot == 0 {
            self.changed.notify_all();
        }
    }

    /// The next result; `None` if there is none within [`POLL_INTERVAL`].
    fn take(&self) -> Option<R> {
        let is_missing = |in_flight: &mut InFlight<R>| {
            !in_flight.closed && !matches!(in_flight.results.front(), Some(Some(_)))
        };
        let waited =
            self.changed.wait_timeout_while(lock(&self.in_flight), POLL_INTERVAL, is_missing);
        let mut in_flight = waited.unwrap_or_else(PoisonError::into_inner).0;
        let result = in_flight.results.front_mut().and_then(Option::take)?;
        in_flight.results.pop_front();
        in_flight.weight = in_flight.weight.saturating_sub(self.weights[in_flight.delivered]);
        in_flight.delivered += 1;
        self.changed.notify_all();
        Some(result)
    }

    fn is_open(&self) -> bool {
        !lock(&self.in_flight).closed
    }
}

/// Ends the work when it is dropped.
struct CloseOnDrop<'a, R>(&'a Buffer<R>);

impl<R> Drop for CloseOnDrop<'_, R> {
    fn drop(&mut self) {
        lock(&self.0.in_flight).closed = true;
        self.0.stop.set();
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
            ordered(&items, threads, most, |item| *item, || (), begin, sink).unwrap();
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
