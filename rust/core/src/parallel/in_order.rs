//! A stream of results in the order of their items, made by threads that are never far ahead of it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::lock;

/// As [`pipe`](super::pipe), but the results come in the order of the items, and the threads are never far ahead of
/// `sink`: not so far that what is begun and not yet taken has a total weight above `most`, but for
/// one item. So a long stream takes little memory.
///
/// While there is nothing, `sink` is called with `None` now and then. It ends everything with an error.
///
/// ```
/// let mut squares = Vec::new();
/// let square = |(): &mut (), item: &u32| item * item;
/// let sink = |square: Option<u32>| {
///     squares.extend(square);
///     if squares.len() < 2 { Ok(()) } else { Err("enough") }
/// };
/// let done = bytepair::parallel::in_order(&[1, 2, 3], 2, 9, |_| 1, || (), square, sink);
/// assert_eq!((done, squares), (Err("enough"), vec![1, 4]));
/// ```
pub fn in_order<T: Sync, S, R: Send, E>(
    items: &[T],
    threads: usize,
    most: usize,
    weight: impl Fn(&T) -> usize,
    state: impl Fn() -> S + Sync,
    action: impl Fn(&mut S, &T) -> R + Sync,
    mut sink: impl FnMut(Option<R>) -> Result<(), E>,
) -> Result<(), E> {
    let weights = items.iter().map(weight).collect();
    let desk =
        &Desk { weights, most, state: Mutex::new(Lying::default()), changed: Condvar::new() };
    let (state, action) = (&state, &action);
    thread::scope(|scope| {
        let _closed = Closed(desk);
        for _ in 0..threads.min(items.len()) {
            scope.spawn(move || {
                // A panic in one thread ends all, and is passed on by the scope.
                let closed = Closed(desk);
                let mut state = state();
                while let Some(index) = desk.begin() {
                    desk.put(index, action(&mut state, &items[index]));
                }
                std::mem::forget(closed);
            });
        }
        let mut left = items.len();
        while left > 0 && desk.is_open() {
            let result = desk.take();
            left -= usize::from(result.is_some());
            sink(result)?;
        }
        Ok(())
    })
}

/// How long somebody waits who wants to be asked now and then.
const PATIENCE: Duration = Duration::from_millis(50);

/// Where results lie until it is their turn.
struct Desk<R> {
    /// Of each item.
    weights: Vec<usize>,
    /// How much may be begun and not taken.
    most: usize,
    state: Mutex<Lying<R>>,
    changed: Condvar,
}

/// What lies on a desk.
struct Lying<R> {
    /// How many results were taken.
    taken: usize,
    /// The results of those begun since, where they are there.
    results: VecDeque<Option<R>>,
    /// The weight of these.
    weight: usize,
    /// Nobody wants more.
    closed: bool,
}

impl<R> Default for Lying<R> {
    fn default() -> Self {
        Self { taken: 0, results: VecDeque::new(), weight: 0, closed: false }
    }
}

impl<R> Desk<R> {
    /// The next item that nobody has, as soon as there is room for its result.
    fn begin(&self) -> Option<usize> {
        let mut lying = lock(&self.state);
        loop {
            let index = lying.taken + lying.results.len();
            let weight = *self.weights.get(index).filter(|_| !lying.closed)?;
            let sum = lying.weight.saturating_add(weight);
            if sum <= self.most || lying.results.is_empty() {
                lying.weight = sum;
                lying.results.push_back(None);
                return Some(index);
            }
            lying = self.changed.wait(lying).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn put(&self, index: usize, result: R) {
        let mut lying = lock(&self.state);
        let place = index - lying.taken;
        lying.results[place] = Some(result);
        if place == 0 {
            self.changed.notify_all();
        }
    }

    /// The next result; `None` if there is none for a while.
    fn take(&self) -> Option<R> {
        let absent =
            |lying: &mut Lying<R>| !lying.closed && !matches!(lying.results.front(), Some(Some(_)));
        let waited = self.changed.wait_timeout_while(lock(&self.state), PATIENCE, absent);
        let mut lying = waited.unwrap_or_else(PoisonError::into_inner).0;
        let result = lying.results.front_mut().and_then(Option::take)?;
        lying.results.pop_front();
        lying.weight = lying.weight.saturating_sub(self.weights[lying.taken]);
        lying.taken += 1;
        self.changed.notify_all();
        Some(result)
    }

    fn is_open(&self) -> bool {
        !lock(&self.state).closed
    }
}

/// When this is dropped, nobody begins anything more.
struct Closed<'a, R>(&'a Desk<R>);

impl<R> Drop for Closed<'_, R> {
    fn drop(&mut self) {
        lock(&self.0.state).closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// What is begun and not taken weighs so much at most, as seen from the threads.
    #[test]
    fn results_come_in_order_and_wait_in_bounds() {
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
            let mut taken = Vec::new();
            let sink = |item: Option<usize>| {
                taken.extend(item);
                weight.fetch_sub(item.unwrap_or(0), Ordering::SeqCst);
                Ok::<(), ()>(())
            };
            in_order(&items, threads, most, |item| *item, || (), begin, sink).unwrap();
            assert_eq!(taken, items);
            // The room of a result is free a moment before the sink has it.
            assert!(heaviest.load(Ordering::SeqCst) <= most.max(12) + 12);
        }
    }

    #[test]
    fn a_sink_may_stop_and_a_panic_is_passed_on() {
        let begun = &AtomicUsize::new(0);
        let count = |(): &mut (), _: &usize| begun.fetch_add(1, Ordering::SeqCst);
        let items: Vec<usize> = (0..10_000).collect();
        let stopped = in_order(&items, 2, 5, |_| 1, || (), count, |_| Err("enough"));
        assert_eq!(stopped, Err("enough"));
        assert!(begun.load(Ordering::SeqCst) <= 6);
        let nothing: &[usize] = &[];
        let done = in_order(nothing, 2, 5, |_| 1, || (), count, |_| Err("never called"));
        assert_eq!(done, Ok(()));

        let failing = |(): &mut (), item: &usize| assert!(*item < 50, "item {item}");
        let run = || in_order(&items, 3, 5, |_| 1, || (), failing, |_| Ok::<(), ()>(()));
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn a_sink_is_asked_while_it_waits() {
        let slow = |(): &mut (), (): &()| thread::sleep(4 * PATIENCE);
        let mut asked = 0;
        let sink = |result: Option<()>| {
            asked += usize::from(result.is_none());
            Ok::<(), ()>(())
        };
        in_order(&[()], 1, 1, |()| 1, || (), slow, sink).unwrap();
        assert!(asked > 0);
    }
}
