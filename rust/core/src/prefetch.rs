//! Asking the processor for memory before it is needed: the only file that does.
//!
//! Tables that do not fit the nearest caches are looked at in the order of the text, which no
//! processor can guess. Whoever knows a few places in advance names them here and goes on.

/// Bring the memory of `items[index]`, which need not exist, without waiting for it.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a third of the time of encoding and of merging would be waiting")]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing and may name any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast()) };
}

/// Elsewhere nothing is brought.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch<T>(_items: &[T], _index: usize) {}
