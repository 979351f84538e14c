//! Buffers in huge pages; no other file requests them.
//!
//! Tables of many megabytes are accessed at random. With pages of 4 kB, each access needs a walk
//! through the page tables, and the first access to each page is a page fault. With pages of 2 MB,
//! there are five hundred times fewer.
//!
//! A vector that is written sequentially gains only from having fewer page faults, and may lose: a
//! virtual machine may have returned free memory to its host as whole huge pages, which the host
//! must provide again. So [`HugePages`] requests one page at a time, for as long as the pages come
//! quickly.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytemuck::Zeroable;

use crate::error::Result;
use crate::memory;

/// The size of a huge page in bytes.
const HUGE: usize = 1 << 21;

/// A huge page must come within this time: about the time of the page faults for the same memory in
/// pages of 4 kB.
const QUICK: Duration = Duration::from_millis(1);

/// Whether a page of the previous vector was slow, which may take as long as ten megabytes of small
/// pages. If so, the next vector requests none.
static WAS_SLOW: AtomicBool = AtomicBool::new(false);

/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Words that are aligned to a cache line, or to a huge page if they fill one.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer<Word = u64> {
    all: Vec<Word>,
    start: usize,
    length: usize,
}

impl<Word: Zeroable> AlignedBuffer<Word> {
    /// `length` zeros.
    pub(crate) fn zeros(length: usize) -> Result<Self> {
        let bytes = length * size_of::<Word>();
        let alignment = if bytes < HUGE { LINE } else { HUGE };
        // Zeroed memory takes only address space until it is touched.
        let all: Vec<Word> = memory::zeros(length + alignment / size_of::<Word>())?;
        let start = all.as_ptr().align_offset(alignment);
        assert!(start + length <= all.len(), "memory can be aligned");
        if bytes >= HUGE {
            advise(&all[start..start + length]);
        }
        Ok(Self { all, start, length })
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

/// The huge pages of one growing vector, each requested shortly before it is written.
#[derive(Debug, Default)]
pub(crate) struct HugePages {
    /// The pages of the first `ready` values need no request any more.
    ready: usize,
}

impl HugePages {
    /// Append values to the vector. Fails if there is not enough memory.
    #[inline]
    pub(crate) fn extend<T>(
        &mut self,
        values: &mut Vec<T>,
        more: impl ExactSizeIterator<Item = T>,
    ) -> Result<()> {
        memory::reserve(values, more.len())?;
        self.prepare(values, more.len());
        values.extend(more);
        Ok(())
    }

    /// Request the huge pages of the next `more` values, within the capacity of the vector.
    #[inline]
    pub(crate) fn prepare<T>(&mut self, values: &mut Vec<T>, more: usize) {
        while self.ready < values.len() + more && self.ready < values.capacity() {
            self.next_page(values);
        }
    }

    /// Request the next huge page and touch it. If that is slow, request no more for this vector,
    /// and none for the next one.
    #[cold]
    fn next_page<T>(&mut self, values: &mut Vec<T>) {
        if !cfg!(target_os = "linux") {
            self.ready = usize::MAX; // huge pages are requested on Linux only
            return;
        }
        let length = values.len();
        let skipped = self.ready.saturating_sub(length);
        let rest = &mut values.spare_capacity_mut()[skipped..];
        let start = rest.as_ptr().align_offset(HUGE);
        let end = start.saturating_add(HUGE / size_of::<T>().max(1));
        let page = rest.get_mut(start..end);
        let Some(page) = page.filter(|_| self.ready > 0 || !WAS_SLOW.swap(false, Relaxed)) else {
            self.ready = usize::MAX;
            return;
        };
        advise(page);
        self.ready = length + skipped + end;
        if !is_quick(page) {
            self.ready = usize::MAX;
            WAS_SLOW.store(true, Relaxed);
        }
    }
}

/// Touch a page; returns whether that takes no longer than the same memory in small pages.
fn is_quick<T>(page: &mut [MaybeUninit<T>]) -> bool {
    let started = Instant::now();
    if let Some(first) = page.first_mut() {
        *first = MaybeUninit::zeroed();
    }
    black_box(page);
    started.elapsed() < QUICK
}

/// Request huge pages for all complete huge pages within this memory.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "without it, page-table walks take a fifth of encoding time")]
fn advise<T>(memory: &[T]) {
    let skipped = memory.as_ptr().cast::<u8>().align_offset(HUGE);
    let length = size_of_val(memory).saturating_sub(skipped) / HUGE * HUGE;
    if length > 0 {
        // SAFETY: the advice changes no content, and the range is inside `memory`. There is no
        // result to compare with a safe reference; the tests compare `HugePages` and
        // `AlignedBuffer` with plain vectors.
        unsafe {
            let start = memory.as_ptr().cast::<u8>().add(skipped);
            libc::madvise(start.cast_mut().cast(), length, libc::MADV_HUGEPAGE);
        }
    }
}

/// Huge pages are requested on Linux only.
#[cfg(not(target_os = "linux"))]
fn advise<T>(_memory: &[T]) {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// A vector has the values that were appended, for any capacity.
        #[test]
        fn huge_pages_do_not_change_values(
            capacity in 0usize..3_000_000,
            blocks in prop::collection::vec(0usize..700_000, 1..8),
        ) {
            let (mut values, mut pages) = (Vec::<u32>::with_capacity(capacity), HugePages::default());
            for (value, length) in (0..).zip(&blocks) {
                pages.extend(&mut values, std::iter::repeat_n(value, *length)).unwrap();
            }
            let expected = (0..).zip(&blocks).flat_map(|(value, &n)| std::iter::repeat_n(value, n));
            prop_assert!(values.into_iter().eq(expected));
        }
    }

    #[test]
    fn values_of_size_zero_need_no_pages() {
        let (mut values, mut pages) = (Vec::new(), HugePages::default());
        pages.prepare(&mut values, 5_000_000);
        values.resize(5_000_000, ());
        pages.prepare(&mut values, 5_000_000);
        assert_eq!(values.len(), 5_000_000);
    }

    #[test]
    fn buffers_are_zeros_and_aligned() {
        for length in [0, 1, 1000, HUGE / 8 - 1, HUGE / 8, HUGE / 4 + 5] {
            let mut words = AlignedBuffer::<u64>::zeros(length).unwrap();
            assert_eq!(words.len(), length);
            let alignment = if 8 * length < HUGE { LINE } else { HUGE };
            assert_eq!(words.as_ptr().align_offset(alignment), 0);
            assert!(words.iter().all(|&word| word == 0));
            words.fill(7);
            assert!(length < 4 || *words.chunk_mut::<4>(0) == [7; 4]);
        }
    }
}
