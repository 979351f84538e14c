//! Buffers that the kernel may put on huge pages; no other file gives it advice.
//!
//! Tables of many megabytes are accessed at random. With pages of 4 kB, each access needs a walk
//! through the page tables, and the first access to each page is a page fault. With pages of 2 MB,
//! there are five hundred times fewer. But the first access to a huge page clears 2 MB, which takes
//! a tenth of a millisecond.

use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;

use crate::error::Result;
use crate::memory;

/// The size of a huge page in bytes.
pub(crate) const HUGE_PAGE_BYTES: usize = 1 << 21;

/// The size of a cache line in bytes.
const CACHE_LINE_BYTES: usize = 64;

/// Words that are aligned to a cache line, or to a huge page if they fill one.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer<Word = u64> {
    all: Vec<Word>,
    start: usize,
    length: usize,
}

impl<Word: Zeroable> AlignedBuffer<Word> {
    /// `length` zeros, on huge pages if they fill one.
    pub(crate) fn zeros(length: usize) -> Result<Self> {
        let fills_page = length * size_of::<Word>() >= HUGE_PAGE_BYTES;
        let alignment = if fills_page { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
        // Zeroed memory takes only address space until it is touched.
        let all: Vec<Word> = memory::zeros(length + alignment / size_of::<Word>())?;
        // One alignment more than needed was allocated, so an aligned start fits wherever it
        // begins.
        let start = all.as_ptr().align_offset(alignment);
        assert!(start + length <= all.len(), "memory can be aligned");
        let buffer = Self { all, start, length };
        if fills_page {
            advise(&buffer);
        }
        Ok(buffer)
    }
}

impl<Word> AlignedBuffer<Word> {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Word] {
        &self.all[self.start..self.start + self.length]
    }

    /// `LENGTH` words from an index on.
    #[inline]
    pub(crate) fn chunk_mut<const LENGTH: usize>(&mut self, index: usize) -> &mut [Word; LENGTH] {
        let chunk = self.all[self.start + index..].first_chunk_mut();
        chunk.expect("`LENGTH` words from the index on")
    }
}

impl<Word> Deref for AlignedBuffer<Word> {
    type Target = [Word];

    #[inline]
    fn deref(&self) -> &[Word] {
        self.as_slice()
    }
}

impl<Word> DerefMut for AlignedBuffer<Word> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Word] {
        &mut self.all[self.start..self.start + self.length]
    }
}

/// A vector with room for `capacity` values, on huge pages where they fill one.
pub(crate) fn vector<T>(capacity: usize) -> Vec<T> {
    let mut values = memory::with_room_for_about(capacity);
    advise(values.spare_capacity_mut());
    values
}

/// Ask the kernel for huge pages within some memory. A kernel that does not know the advice
/// refuses it.
#[cfg(all(target_os = "linux", not(miri)))]
#[expect(unsafe_code, reason = "without it, page-table walks take a fifth of encoding time")]
fn advise<T>(memory: &[T]) {
    let start: *const u8 = memory.as_ptr().cast();
    let skipped = start.align_offset(HUGE_PAGE_BYTES);
    let length = size_of_val(memory).saturating_sub(skipped) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if length > 0 {
        // SAFETY: the pages are inside the memory, and this advice changes no content. There is no
        // result to compare with a safe reference.
        unsafe {
            libc::madvise(start.add(skipped).cast_mut().cast(), length, libc::MADV_HUGEPAGE);
        }
    }
}

/// Advice is given on Linux only, and not under Miri, which has no `madvise`.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise<T>(_memory: &[T]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zeros_and_aligned() {
        let lengths =
            [0, 1, 1000, HUGE_PAGE_BYTES / 8 - 1, HUGE_PAGE_BYTES / 8, HUGE_PAGE_BYTES / 4 + 5];
        for length in lengths {
            let mut words = AlignedBuffer::<u64>::zeros(length).unwrap();
            assert_eq!(words.len(), length);
            let fills_page = 8 * length >= HUGE_PAGE_BYTES;
            let alignment = if fills_page { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
            assert_eq!(words.as_ptr().align_offset(alignment), 0);
            assert!(words.iter().all(|&word| word == 0));
            words.fill(7);
            assert!(length < 4 || *words.chunk_mut::<4>(0) == [7; 4]);
        }
    }
}
