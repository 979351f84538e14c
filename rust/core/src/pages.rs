//! Memory in large pages: the only file that asks the system for them.
//!
//! Tables of many megabytes are looked at all over the place. In pages of 4 kB each look costs a walk
//! through the page tables, and the first touch of each page a call into the system; pages of 2 MB
//! are five hundred times fewer.
//!
//! What is only written from its beginning to its end needs them for the first touch alone, and there they
//! may cost more than they save: where a virtual machine gives free memory back to its host, whole large
//! pages are what it gave back, and the host has to find each again. So a vector that grows asks for them
//! one at a time, as long as they come quickly.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytemuck::Zeroable;

/// The size of a large page in bytes.
const LARGE: usize = 1 << 21;

/// About the time in which as much memory is touched in pages of 4 kB.
const SMALL: Duration = Duration::from_millis(1);

/// Whether the latest vector that asked for large pages got a slow one, which takes as long as ten megabytes of small
/// ones. So the next vector does not try.
static WAS_SLOW: AtomicBool = AtomicBool::new(false);

/// The size of a line of the processor's cache in bytes.
const LINE: usize = 64;

/// The largest block that glibc can learn to keep; its own head goes with it.
const KEPT: usize = (32 << 20) - (64 << 10);

/// Have the allocator keep the memory that is freed for the next who asks, but for blocks of 32 MiB and more.
///
/// To read a corpus is to ask for some megabytes and free them, page after page. glibc gives such blocks back to the
/// system, each time to be cleared and mapped anew, until it has seen one freed that was as large; one that nobody has
/// touched costs nothing. (See "dynamic mmap threshold" in mallopt(3).) Other allocators learn nothing from it.
pub(crate) fn keep_freed() {
    drop(black_box(Vec::<u8>::with_capacity(KEPT)));
}

/// Words that begin where a line of the processor's cache begins, and where a large page begins if
/// they fill one.
#[derive(Debug, Default)]
pub(crate) struct Words<Word = u64> {
    all: Vec<Word>,
    start: usize,
    length: usize,
}

impl<Word: Zeroable> Words<Word> {
    /// So many zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        let bytes = length * size_of::<Word>();
        let alignment = if bytes < LARGE { LINE } else { LARGE };
        // Zeros that nobody has touched cost address space only.
        let all: Vec<Word> = bytemuck::zeroed_vec(length + alignment / size_of::<Word>());
        let start = all.as_ptr().align_offset(alignment);
        assert!(start + length <= all.len(), "memory can be aligned");
        if bytes >= LARGE {
            advise(&all[start..start + length]);
        }
        Self { all, start, length }
    }
}

impl<Word> Words<Word> {
    /// All of them.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Word] {
        &self.all[self.start..self.start + self.length]
    }

    /// The words from an index on, to be changed.
    #[inline]
    pub(crate) fn chunk_mut<const LENGTH: usize>(&mut self, index: usize) -> &mut [Word; LENGTH] {
        let chunk = self.all[self.start + index..].first_chunk_mut();
        chunk.expect("an index that is so far from the end")
    }
}

impl<Word> Deref for Words<Word> {
    type Target = [Word];

    #[inline]
    fn deref(&self) -> &[Word] {
        self.as_slice()
    }
}

impl<Word> DerefMut for Words<Word> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Word] {
        &mut self.all[self.start..self.start + self.length]
    }
}

/// The large pages of one vector that is filled, asked for shortly before they are written to.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// So many values from the start need no more care.
    ready: usize,
}

impl Ahead {
    /// Append values to the vector.
    #[inline]
    pub(crate) fn extend<T>(
        &mut self,
        values: &mut Vec<T>,
        more: impl ExactSizeIterator<Item = T>,
    ) {
        self.prepare(values, more.len());
        values.extend(more);
    }

    /// See to the pages of the next values, of which so many come, in room that the vector has.
    #[inline]
    pub(crate) fn prepare<T>(&mut self, values: &mut Vec<T>, more: usize) {
        while self.ready < values.len() + more && self.ready < values.capacity() {
            self.next_page(values);
        }
    }

    /// Ask for the large page that follows, and touch it; if that took long, ask for no other, nor for any of the
    /// next vector.
    #[cold]
    fn next_page<T>(&mut self, values: &mut Vec<T>) {
        let length = values.len();
        let skipped = self.ready.saturating_sub(length);
        let rest = &mut values.spare_capacity_mut()[skipped..];
        let start = rest.as_ptr().align_offset(LARGE);
        let end = start.saturating_add(LARGE / size_of::<T>().max(1));
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

/// Whether the first touch of a page takes no longer than that of as much memory in small pages.
fn is_quick<T>(page: &mut [MaybeUninit<T>]) -> bool {
    let started = Instant::now();
    if let Some(first) = page.first_mut() {
        *first = MaybeUninit::zeroed();
    }
    black_box(page);
    started.elapsed() < SMALL
}

/// Ask for large pages where all of this memory will be in use. Nothing else changes.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a fifth of the time of encoding is walking page tables")]
fn advise<T>(memory: &[T]) {
    let skipped = memory.as_ptr().cast::<u8>().align_offset(LARGE);
    let length = size_of_val(memory).saturating_sub(skipped) / LARGE * LARGE;
    if length > 0 {
        // SAFETY: this advice changes no content, and whole large pages of this memory are named only.
        unsafe {
            let start = memory.as_ptr().cast::<u8>().add(skipped);
            libc::madvise(start.cast_mut().cast(), length, libc::MADV_HUGEPAGE);
        }
    }
}

/// Elsewhere nothing is asked.
#[cfg(not(target_os = "linux"))]
fn advise<T>(_memory: &[T]) {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// A vector has the values it was given, whatever room it had, within one large page or several.
        #[test]
        fn pages_ahead_change_nothing(
            capacity in 0usize..3_000_000,
            blocks in prop::collection::vec(0usize..700_000, 1..8),
        ) {
            let (mut values, mut pages) = (Vec::<u32>::with_capacity(capacity), Ahead::default());
            for (value, length) in (0..).zip(&blocks) {
                pages.extend(&mut values, std::iter::repeat_n(value, *length));
            }
            let expected = (0..).zip(&blocks).flat_map(|(value, &n)| std::iter::repeat_n(value, n));
            prop_assert!(values.into_iter().eq(expected));
        }
    }

    #[test]
    fn values_without_a_size_need_no_pages() {
        let (mut values, mut pages) = (Vec::new(), Ahead::default());
        pages.prepare(&mut values, 5_000_000);
        values.resize(5_000_000, ());
        pages.prepare(&mut values, 5_000_000);
        assert_eq!(values.len(), 5_000_000);
    }

    #[test]
    fn words_are_zeros_at_the_right_place() {
        for length in [0, 1, 1000, LARGE / 8 - 1, LARGE / 8, LARGE / 4 + 5] {
            let mut words = Words::<u64>::zeros(length);
            assert_eq!(words.len(), length);
            let alignment = if 8 * length < LARGE { LINE } else { LARGE };
            assert_eq!(words.as_ptr().align_offset(alignment), 0);
            assert!(words.iter().all(|&word| word == 0));
            words.fill(7);
            assert!(length < 4 || *words.chunk_mut::<4>(0) == [7; 4]);
        }
    }
}
