//! Immutable arrays of numbers, owned or in a mapped file.
//!
//! A tokenizer is mostly a few large arrays. After training, or if loaded from another format, they
//! are owned. If loaded from a native file, they are ranges of the mapped file: nothing is copied,
//! and all processes that load the file share one copy. An [`Array`] is of either kind, with the
//! same interface.

#![expect(unsafe_code, reason = "copying a large file would take most of the loading time")]

use std::fs::{self, File};
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::{fmt, io};

use bytemuck::{Pod, Zeroable};
use memmap2::Mmap;

use crate::error::Result;
use crate::memory;

/// The bytes of a file, mapped or copied. They are aligned to cache lines, as required by tables
/// that are read one cache line at a time.
pub(crate) struct FileBytes(Backing);

enum Backing {
    Mapped(Mmap),
    Copied(AlignedBuffer<u8>),
    /// Bytes that need no alignment.
    Owned(Vec<u8>),
}

impl FileBytes {
    /// Map a file.
    ///
    /// # Safety
    ///
    /// Nobody may change the file while the bytes exist.
    pub(crate) unsafe fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the caller guarantees that the file does not change.
        Ok(Self(Backing::Mapped(unsafe { Mmap::map(file) }?)))
    }

    /// Map a file and unlink it, so that nobody else can open it. Its disk space is freed when the
    /// bytes are dropped. On systems that cannot remove a mapped file, it is read instead.
    ///
    /// # Safety
    ///
    /// Nobody may change the file from the call on until the bytes are dropped.
    pub(crate) unsafe fn take(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // An empty file cannot be mapped.
        let mapped = if cfg!(unix) && file.metadata()?.len() > 0 {
            // SAFETY: the caller guarantees that the file does not change.
            unsafe { Self::map(&file) }?
        } else {
            Self::copy(&fs::read(path)?).map_err(io::Error::other)?
        };
        fs::remove_file(path)?;
        Ok(mapped)
    }

    /// The safe reference for [`map`](Self::map): a copy of the bytes of a file.
    pub(crate) fn copy(bytes: &[u8]) -> Result<Self> {
        let mut copied = AlignedBuffer::zeros(bytes.len())?;
        copied.copy_from_slice(bytes);
        Ok(Self(Backing::Copied(copied)))
    }

    /// Bytes that were read, of which nothing aligned is asked.
    pub(crate) fn owned(bytes: Vec<u8>) -> Self {
        Self(Backing::Owned(bytes))
    }

    /// Advise the system that the bytes of a mapped file will be read in order.
    pub(crate) fn expect_sequential_reads(&self) {
        #[cfg(unix)]
        if let Backing::Mapped(map) = &self.0 {
            // Only for speed: an error does not matter.
            let _result = map.advise(memmap2::Advice::Sequential);
        }
    }

    /// Advise the system that a range of a mapped file is not needed for now. Later accesses read
    /// it from the file again. The part of the range outside the file is ignored.
    #[cfg(unix)]
    pub(crate) fn release(&self, range: Range<usize>) {
        let Backing::Mapped(map) = &self.0 else { return };
        let advice = memmap2::UncheckedAdvice::DontNeed;
        // memmap2 does not check where the range ends: beyond the map, the advice would discard
        // other memory of the process.
        let end = range.end.min(map.len());
        let start = range.start.min(end);
        // SAFETY: the range lies inside the map. This process cannot write to the map, which is
        // read-only, and nobody changes the file, as the caller of `map` or `take` guarantees; so
        // discarded pages are read from the file again with the same contents.
        let _result = unsafe { map.unchecked_advise_range(advice, start, end - start) };
    }

    /// There is no such advice on other systems.
    #[cfg(not(unix))]
    pub(crate) fn release(&self, _range: Range<usize>) {}
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Backing::Mapped(map) => map,
            Backing::Copied(bytes) => bytes,
            Backing::Owned(bytes) => bytes,
        }
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// Files hold their arrays in this order, and arrays are read and written as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"), "big-endian machines are not supported");

/// An immutable array that is cheap to clone.
pub(crate) struct Array<T: 'static> {
    /// Inside `owner`. A pointer, because a reference would have to stay valid while an array that
    /// is passed to a function is dropped there.
    items: NonNull<[T]>,
    owner: Arc<dyn Send + Sync>,
}

// SAFETY: an array is a shared reference to items inside `owner`, which is `Send` and `Sync`.
unsafe impl<T: Sync> Send for Array<T> {}
// SAFETY: as above; all access through `&Array` is shared access to the items.
unsafe impl<T: Sync> Sync for Array<T> {}

impl<T: Pod> Array<T> {
    /// The array in a range of bytes of a file; `None` if the range is outside the file, is not
    /// aligned, or does not end with a whole number.
    pub(crate) fn mapped(file: &Arc<FileBytes>, range: Range<usize>) -> Option<Self> {
        let bytes = file.get(range)?;
        let items: &[T] = bytemuck::try_cast_slice(bytes).ok()?;
        // The bytes neither move nor are freed while `owner` lives, and nobody writes to them; see
        // `deref`.
        Some(Self { items: NonNull::from(items), owner: Arc::clone(file) as _ })
    }

    /// The bytes of the array in the order of a file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(self).to_vec()
    }
}

impl<T: Send + Sync> Array<T> {
    /// An owned array.
    pub(crate) fn new(items: Vec<T>) -> Self {
        Self::owned(items)
    }
}

impl<T> Array<T> {
    /// The array inside `owner`.
    fn owned(owner: impl Deref<Target = [T]> + Send + Sync + 'static) -> Self {
        let owner = Arc::new(owner);
        Self { items: NonNull::from(&**owner), owner }
    }
}

impl Array<u64> {
    /// An owned array in an aligned buffer.
    pub(crate) fn of_words(words: AlignedBuffer) -> Self {
        Self::owned(words)
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the items were borrowed from what `owner` points to. It lives as long as `self`,
        // does not move, and is not written to, since only shared references to it exist; for a
        // mapped file, the caller of `FileBytes::map` or `FileBytes::take` guarantees that nobody
        // changes the file.
        unsafe { self.items.as_ref() }
    }
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Self { items: self.items, owner: Arc::clone(&self.owner) }
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} numbers", self.len())
    }
}

// ---------------------------------------------------------------------------- huge pages
//
// Buffers that the kernel may put on huge pages; no other file gives it advice.
//
// Tables of many megabytes are accessed at random. With pages of 4 kB, each access needs a walk
// through the page tables, and the first access to each page is a page fault. With pages of 2 MB,
// there are five hundred times fewer. But the first access to a huge page clears 2 MB, which takes
// a tenth of a millisecond.

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
        &self.all[self.start..self.start + self.length]
    }
}

impl<Word> DerefMut for AlignedBuffer<Word> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Word] {
        &mut self.all[self.start..self.start + self.length]
    }
}

/// A vector with capacity for `capacity` values, on huge pages where they fill one.
pub(crate) fn vector<T>(capacity: usize) -> Vec<T> {
    let mut values = memory::with_capacity_about(capacity);
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

    fn map(bytes: &[u8]) -> Arc<FileBytes> {
        Arc::new(FileBytes::copy(bytes).unwrap())
    }

    #[test]
    fn mapped_and_copied_arrays_are_equal_and_outlive_their_source() {
        let bytes: Vec<u8> = (0..64).collect();
        let map = map(&bytes);
        let mapped = Array::<u32>::mapped(&map, 8..24).unwrap();
        drop(map);
        assert_eq!(*mapped, [0x0B0A_0908, 0x0F0E_0D0C, 0x1312_1110, 0x1716_1514]);
        let clone = mapped.clone();
        assert!(mapped == Array::new(vec![0x0B0A_0908, 0x0F0E_0D0C, 0x1312_1110, 0x1716_1514]));
        drop(mapped);
        assert_eq!(clone.to_bytes(), bytes[8..24]);
        assert_eq!(Array::new(vec![1_u64, 2])[1], 2);
    }

    /// The plain reference for an owned array is the vector itself.
    #[test]
    fn owned_arrays_equal_their_vectors_in_any_thread_and_after_drops() {
        let numbers: Vec<u64> = (0..if cfg!(miri) { 100 } else { 100_000 }).collect();
        let mut words = AlignedBuffer::zeros(numbers.len()).unwrap();
        words.copy_from_slice(&numbers);
        for array in [Array::new(numbers.clone()), Array::of_words(words)] {
            let (clone, empty) = (array.clone(), Array::<u64>::new(Vec::new()));
            let moved = [array, empty];
            let read = std::thread::spawn(move || moved[0].to_vec()).join().unwrap();
            assert!(read == numbers && *clone == *numbers);
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            assert!(clone.to_bytes() == bytes);
        }
    }

    #[test]
    fn ranges_outside_or_out_of_alignment_are_rejected() {
        let map = map(&[0; 64]);
        assert!(Array::<u64>::mapped(&map, 0..64).is_some());
        assert!(Array::<u64>::mapped(&map, 0..0).is_some());
        let [empty, beyond] = [64..64, 64..72];
        assert!(Array::<u64>::mapped(&map, empty).is_some());
        for wrong in [4..12, 0..12, 56..72, beyond, 0..usize::MAX] {
            assert!(Array::<u64>::mapped(&map, wrong.clone()).is_none(), "{wrong:?}");
        }
    }

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
