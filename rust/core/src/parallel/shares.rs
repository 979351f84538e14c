//! How much work justifies a thread, and how work is divided.

use std::ops::Range;

use crate::parallel::shared::MAX_THREADS;

/// Work of less weight does not justify a thread.
const MIN_WEIGHT_PER_THREAD: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };

/// How many of `threads` threads are justified for work of a total `weight`, such as bytes of text.
pub fn worth(threads: usize, weight: usize) -> usize {
    threads.min(1 + weight / MIN_WEIGHT_PER_THREAD).clamp(1, MAX_THREADS)
}

/// Divide `items` into at most `parts` ranges of about equal total weight, in order.
///
/// ```
/// let ranges = bytepair::parallel::shares(&[1, 1, 1, 3], 2, |weight| *weight);
/// assert_eq!(ranges, [0..3, 3..4]);
/// ```
pub fn shares<T>(items: &[T], parts: usize, weight: impl Fn(&T) -> usize) -> Vec<Range<usize>> {
    let total: usize = items.iter().map(&weight).sum();
    let mut ranges = Vec::with_capacity(parts.min(items.len()));
    let (mut start, mut sum) = (0, 0);
    for (index, item) in items.iter().enumerate() {
        sum += weight(item);
        // A range ends once the sum reaches its part of the total. The sum counts all items so far,
        // so an uneven range does not shift those after it.
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
