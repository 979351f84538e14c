//! Prefetching; no other file prefetches.
//!
//! Tables that exceed the caches are accessed in the order of the text, which no hardware
//! prefetcher can predict. Code that knows some positions in advance prefetches them and continues.

/// Prefetch the cache line of `items[index]`, which need not exist.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(
    unsafe_code,
    reason = "without it, cache misses take a third of encoding and merging time"
)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch has no effect on values, and any address is allowed. There is no result to
    // compare with a safe reference; the callers have their own tests.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast()) };
}

/// Prefetching is implemented for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch<T>(_items: &[T], _index: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_index_may_be_prefetched_and_no_value_changes() {
        for length in [0, 1, 1000] {
            let items: Vec<u64> = (0..length).collect();
            for index in [0, 1, 999, 1000, usize::MAX / 3, usize::MAX] {
                prefetch(&items, index);
            }
            assert!(items.into_iter().eq(0..length));
        }
    }
}
