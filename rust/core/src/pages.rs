//! Asking the system for large pages: the only file that does.
//!
//! Tables of many megabytes are looked at all over the place. In pages of 4 kB each look costs a walk
//! through the page tables, and the first touch of each page a call into the system; pages of 2 MB
//! are five hundred times fewer.

/// The size of a large page in bytes.
#[cfg(target_os = "linux")]
const LARGE: usize = 1 << 21;

/// Ask for large pages where all of this memory is in use or soon will be. Nothing else changes, and
/// nothing happens where the system has none or the memory is smaller than one.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a fifth of the time of encoding is walking page tables")]
pub(crate) fn large<T>(memory: &[T]) {
    let range = memory.as_ptr_range();
    let start = (range.start as usize).next_multiple_of(LARGE);
    let end = range.end as usize / LARGE * LARGE;
    if start < end {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: this advice changes no content, whatever stands at these addresses.
        unsafe { libc::madvise(start, end - start as usize, libc::MADV_HUGEPAGE) };
    }
}

/// Elsewhere nothing is asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn large<T>(_memory: &[T]) {}
