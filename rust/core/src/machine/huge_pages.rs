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
//!
//! Where free memory is fragmented, a request for a huge page makes the kernel move other pages
//! first, which takes milliseconds. So nothing requests huge pages unless enough of them are free,
//! and [`AlignedBuffer::touch`] stops requesting them at the first that comes slowly.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Mutex;
use std::time::Duration;

use bytemuck::Zeroable;

use crate::error::Result;
use crate::machine::clock::Instant;
use crate::memory;

/// The size of a huge page in bytes.
const HUGE_PAGE_BYTES: usize = 1 << 21;

/// The size of a small page in bytes, on most machines.
const SMALL_PAGE_BYTES: usize = 1 << 12;

/// A huge page must come within this time: about the time of the page faults for the same memory in
/// pages of 4 kB.
const MAX_PAGE_TIME: Duration = Duration::from_millis(1);

/// When a huge page was slow, which may take as long as ten megabytes of small pages. For some time
/// after that, none is requested.
static SLOW: Mutex<Option<Instant>> = Mutex::new(None);
const PAUSE_TIME: Duration = Duration::from_secs(60);

/// The size of a cache line in bytes.
const CACHE_LINE_BYTES: usize = 64;

/// The size of the pages that memory is requested in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSize {
    /// Huge, if enough are free.
    Huge,
    /// Small: a huge page may take milliseconds.
    Small,
}

/// Words that are aligned to a cache line, or, on huge pages, to such a page if they fill one.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer<Word = u64> {
    all: Vec<Word>,
    start: usize,
    length: usize,
}

impl<Word: Zeroable> AlignedBuffer<Word> {
    /// `length` zeros, on huge pages if enough are free.
    pub(crate) fn zeros(length: usize) -> Result<Self> {
        Self::zeros_on(PageSize::Huge, length)
    }

    /// `length` zeros on pages of this size.
    pub(crate) fn zeros_on(page_size: PageSize, length: usize) -> Result<Self> {
        let bytes = length * size_of::<Word>();
        let is_huge = page_size == PageSize::Huge && bytes >= HUGE_PAGE_BYTES;
        let alignment = if is_huge { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
        // Zeroed memory takes only address space until it is touched.
        let all: Vec<Word> = memory::zeros(length + alignment / size_of::<Word>())?;
        // One alignment more than needed was allocated, so an aligned start fits wherever it
        // begins.
        let start = all.as_ptr().align_offset(alignment);
        assert!(start + length <= all.len(), "memory can be aligned");
        let buffer = Self { all, start, length };
        if page_size == PageSize::Small {
            advise(&buffer, Advice::Small);
        } else if is_huge && may_request(bytes / HUGE_PAGE_BYTES) {
            advise(&buffer, Advice::Huge);
        }
        Ok(buffer)
    }

    /// Return the memory of these words to the system. Their values are lost.
    pub(crate) fn release(&mut self, words: Range<usize>) {
        release(&mut self[words]);
    }
}

impl<Word> AlignedBuffer<Word> {
    /// Have the pages of these words at hand, by one system call instead of a page fault for each.
    /// If that is slow, the words after them get small pages. Words are touched in order of their
    /// indices; their values do not change.
    pub(crate) fn touch(&self, words: Range<usize>) {
        if is_paused() {
            advise(&self[words.start..], Advice::Small);
        }
        let started = Instant::now();
        let pages = words.len() * size_of::<Word>() / HUGE_PAGE_BYTES + 1;
        advise(&self[words.start..words.end], Advice::Populate);
        if started.elapsed() > MAX_PAGE_TIME * u32::try_from(pages).unwrap_or(u32::MAX) {
            record_slow();
            advise(&self[words.end..], Advice::Small);
        }
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

    /// Request the next huge page and touch it. If that is slow, request no more for some time.
    #[cold]
    fn next_page<T>(&mut self, values: &mut Vec<T>) {
        if !cfg!(target_os = "linux") {
            self.ready = usize::MAX; // huge pages are requested on Linux only
            return;
        }
        let length = values.len();
        // Values that are ready but not yet written are in the spare capacity and are skipped.
        let skipped = self.ready.saturating_sub(length);
        let rest = &mut values.spare_capacity_mut()[skipped..];
        let start = rest.as_ptr().align_offset(HUGE_PAGE_BYTES);
        let end = start.saturating_add(HUGE_PAGE_BYTES / size_of::<T>().max(1));
        let page = rest.get_mut(start..end);
        let Some(page) = page.filter(|_| self.ready > 0 || may_request(1)) else {
            self.ready = usize::MAX;
            return;
        };
        advise(page, Advice::Huge);
        self.ready = length + skipped + end;
        if !is_quick(page) {
            self.ready = usize::MAX;
            record_slow();
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
    started.elapsed() < MAX_PAGE_TIME
}

/// What the kernel is told about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advice {
    /// Give huge pages.
    Huge,
    /// Give small pages.
    Small,
    /// Give all pages now.
    Populate,
}

/// Give advice on all complete pages within this memory.
#[cfg(all(target_os = "linux", not(miri)))]
#[expect(unsafe_code, reason = "without it, page-table walks take a fifth of encoding time")]
fn advise<T>(memory: &[T], advice: Advice) {
    let (page, number) = match advice {
        Advice::Huge => (HUGE_PAGE_BYTES, libc::MADV_HUGEPAGE),
        Advice::Small => (HUGE_PAGE_BYTES, libc::MADV_NOHUGEPAGE),
        Advice::Populate => (SMALL_PAGE_BYTES, libc::MADV_POPULATE_WRITE),
    };
    // SAFETY: this advice changes no content.
    unsafe { call_madvise(memory.as_ptr().cast_mut().cast(), size_of_val(memory), page, number) }
}

/// Return all complete small pages within this memory to the system, at once. The values are not used
/// any more: what is read there is what it was, or zeros.
#[cfg(all(target_os = "linux", not(miri)))]
#[expect(unsafe_code, reason = "a call that frees 40 MB at once takes 1.5 ms")]
fn release<T: Zeroable>(memory: &mut [T]) {
    let bytes = size_of_val(memory);
    // SAFETY: the memory is borrowed mutably, and zeros are a value of its type. It comes from the
    // allocator, so it is private memory, which the system fills with zeros.
    unsafe {
        call_madvise(memory.as_mut_ptr().cast(), bytes, SMALL_PAGE_BYTES, libc::MADV_DONTNEED);
    }
}

/// Call `madvise` for the complete pages of this size within some bytes. A kernel that does not know
/// an advice refuses it.
///
/// # Safety
///
/// The bytes are allocated, and may be changed as the advice changes them.
#[cfg(all(target_os = "linux", not(miri)))]
#[expect(unsafe_code, reason = "a system call")]
unsafe fn call_madvise(start: *mut u8, bytes: usize, page: usize, advice: libc::c_int) {
    let skipped = start.align_offset(page);
    let length = bytes.saturating_sub(skipped) / page * page;
    if length > 0 {
        // SAFETY: the pages are inside these bytes, and the caller answers for the advice. There is
        // no result to compare with a safe reference; the tests compare `HugePages` and
        // `AlignedBuffer` with plain vectors.
        unsafe {
            libc::madvise(start.add(skipped).cast(), length, advice);
        }
    }
}

/// Advice is given on Linux only, and not under Miri, which has no `madvise`.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise<T>(_memory: &[T], _advice: Advice) {}

/// Memory is freed as a whole elsewhere.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn release<T: Zeroable>(_memory: &mut [T]) {}

/// Remember that a huge page was slow. Nobody waits for the lock: a forked process may have lost
/// the thread that held it.
fn record_slow() {
    if let Ok(mut slow) = SLOW.try_lock() {
        *slow = Some(Instant::now());
    }
}

/// Whether a huge page was slow of late.
fn is_paused() -> bool {
    SLOW.try_lock().is_ok_and(|slow| slow.is_some_and(|at| at.elapsed() < PAUSE_TIME))
}

/// Whether to request this many huge pages: they are free, and none was slow of late.
fn may_request(pages: usize) -> bool {
    !is_paused() && are_free(pages)
}

/// Whether the system seems to have this many free huge pages. If that is unknown, it has.
///
/// The kernel lists, for each zone of memory, the free blocks of 1, 2, 4, … pages. This takes some
/// tens of microseconds.
fn are_free(pages: usize) -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    std::fs::read_to_string("/proc/buddyinfo").map_or(true, |list| free_blocks(&list) >= pages)
}

/// The number of free huge pages in a list of free blocks.
fn free_blocks(list: &str) -> usize {
    let in_zone = |line: &str| -> usize {
        let counts = line.split_whitespace().skip_while(|&word| word != "zone").skip(2);
        let blocks = counts.enumerate().filter_map(|(order, count)| {
            // The blocks of each order have twice the size of those before. Blocks smaller than a
            // huge page divide to zero.
            let pages = SMALL_PAGE_BYTES.checked_shl(u32::try_from(order).ok()?)? / HUGE_PAGE_BYTES;
            Some(pages * count.parse::<usize>().ok()?)
        });
        blocks.sum()
    };
    list.lines().map(in_zone).sum()
}

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
            let mut values = Vec::<u32>::with_capacity(capacity);
            let mut pages = HugePages::default();
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
    fn free_huge_pages_are_counted() {
        let zone =
            "Node 0, zone   Normal   2635   2681   2603   2059   1489   1112    637    256  109";
        assert_eq!(free_blocks(zone), 0);
        assert_eq!(free_blocks(&format!("{zone}    142    485 \n{zone} 1 0\n")), 142 + 2 * 485 + 1);
        assert_eq!(free_blocks("no numbers"), 0);
    }

    #[test]
    fn releasing_changes_no_other_value() {
        let mut words = AlignedBuffer::<u64>::zeros_on(PageSize::Small, 100_000).unwrap();
        words.fill(7);
        words.release(30_000..70_001);
        for (place, &word) in words.iter().enumerate() {
            assert!(word == 7 || word == 0 && (30_000..70_001).contains(&place), "{place}");
        }
        words.fill(8);
        assert!(words.iter().all(|&word| word == 8));
    }

    #[test]
    fn touching_changes_no_value() {
        let mut words = AlignedBuffer::<u64>::zeros(HUGE_PAGE_BYTES / 4).unwrap();
        words[5000] = 7;
        for range in [0..0, 3..4, 0..6000, 6000..HUGE_PAGE_BYTES / 4] {
            words.touch(range);
        }
        assert_eq!(words.iter().sum::<u64>(), 7);
    }

    #[test]
    fn buffers_are_zeros_and_aligned() {
        let lengths =
            [0, 1, 1000, HUGE_PAGE_BYTES / 8 - 1, HUGE_PAGE_BYTES / 8, HUGE_PAGE_BYTES / 4 + 5];
        for (length, page_size) in
            lengths.iter().flat_map(|&n| [(n, PageSize::Huge), (n, PageSize::Small)])
        {
            let mut words = AlignedBuffer::<u64>::zeros_on(page_size, length).unwrap();
            assert_eq!(words.len(), length);
            let is_huge = page_size == PageSize::Huge && 8 * length >= HUGE_PAGE_BYTES;
            let alignment = if is_huge { HUGE_PAGE_BYTES } else { CACHE_LINE_BYTES };
            assert_eq!(words.as_ptr().align_offset(alignment), 0);
            assert!(words.iter().all(|&word| word == 0));
            words.fill(7);
            assert!(length < 4 || *words.chunk_mut::<4>(0) == [7; 4]);
        }
    }
}
