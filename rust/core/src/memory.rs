//! Fallible allocation: all memory that grows with the data is reserved here. If there is not
//! enough, the error is [`Error::OutOfMemory`] with the size, and the process is not aborted.
//!
//! Small allocations (errors, map keys, other libraries) are ordinary ones, which abort when memory
//! runs out. So a large allocation succeeds only if `SPARE_BYTES` bytes remain for small ones.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashMap;

use crate::error::{Error, Result};

/// Bytes that remain free for small allocations.
const SPARE_BYTES: usize = 2 << 20;

/// Allocations of fewer bytes are small.
const LARGE_BYTES: usize = 1 << 17;

/// Fails if further `bytes` bytes cannot be allocated. Nothing stays allocated.
///
/// ```
/// assert!(bytepair::memory::check(1 << 20).is_ok());
/// assert!(bytepair::memory::check(usize::MAX / 2).is_err());
/// ```
pub fn check(bytes: usize) -> Result<()> {
    if bytes < LARGE_BYTES { Ok(()) } else { check_large(bytes) }
}

#[cold]
fn check_large(bytes: usize) -> Result<()> {
    let size = bytes.saturating_add(SPARE_BYTES).min(isize::MAX.cast_unsigned());
    // Untouched, mapped memory is only address space, so this takes two microseconds.
    #[cfg(not(target_family = "wasm"))]
    let fits = memmap2::MmapMut::map_anon(size).is_ok();
    // The memory of WebAssembly grows and is never returned, so the next allocation reuses it.
    #[cfg(target_family = "wasm")]
    let fits = Vec::<u8>::new().try_reserve_exact(size).is_ok();
    if fits { Ok(()) } else { Err(Error::OutOfMemory { bytes }) }
}

/// Reserve capacity for `more` values, as [`Vec::reserve`] does.
#[inline]
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    if more <= values.capacity() - values.len() { Ok(()) } else { grow(values, more) }
}

#[cold]
fn grow<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    let before = values.capacity();
    // `try_reserve` at least doubles the capacity, which may be more than is available.
    let grown = values.try_reserve(more).or_else(|_| values.try_reserve_exact(more));
    let bytes = |count: usize| count.saturating_mul(size_of::<T>());
    let failed = Error::OutOfMemory { bytes: bytes(values.len().saturating_add(more)) };
    grown.map_err(|_| failed.clone())?;
    if bytes(values.capacity() - before) < LARGE_BYTES {
        return Ok(());
    }
    check_large(0).map_err(|_| failed)
}

/// Reserve capacity in a string for `more` bytes.
pub(crate) fn reserve_text(text: &mut String, more: usize) -> Result<()> {
    let bytes = text.len().saturating_add(more);
    if more <= text.capacity() - text.len() {
        return Ok(());
    }
    check(bytes)?;
    text.try_reserve(more).map_err(|_| Error::OutOfMemory { bytes })
}

/// Append values.
#[inline]
pub(crate) fn extend<T: Copy>(values: &mut Vec<T>, more: &[T]) -> Result<()> {
    reserve(values, more.len())?;
    values.extend_from_slice(more);
    Ok(())
}

/// A copy of values.
pub fn copy<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut copied = with_capacity(values.len())?;
    copied.extend_from_slice(values);
    Ok(copied)
}

/// Append a value.
#[inline]
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    reserve(values, 1)?;
    values.push(value);
    Ok(())
}

/// An empty vector with capacity for `count` values.
pub fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| out_of_memory::<T>(count))?;
    let bytes = size_of::<T>() * values.capacity();
    if bytes >= LARGE_BYTES {
        check_large(0).map_err(|_| Error::OutOfMemory { bytes })?;
    }
    Ok(values)
}

/// The same for an estimated count: without capacity if there is not enough memory.
pub(crate) fn with_capacity_about<T>(count: usize) -> Vec<T> {
    with_capacity(count).unwrap_or_default()
}

/// A vector of `count` equal values.
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut values = with_capacity(count)?;
    values.resize(count, value);
    Ok(values)
}

/// A vector of zeros, which takes only address space until it is touched.
pub fn zeros<T: bytemuck::Zeroable>(count: usize) -> Result<Vec<T>> {
    check(count.saturating_mul(size_of::<T>()))?;
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| out_of_memory::<T>(count))
}

/// Collect an iterator. Fails if there is not enough memory.
pub fn collect<T>(from: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    try_collect(from.into_iter().map(Ok::<T, Error>))
}

/// Collect an iterator. Fails with its first error, or if there is not enough memory.
pub(crate) fn try_collect<T, E: From<Error>>(
    from: impl IntoIterator<Item = std::result::Result<T, E>>,
) -> std::result::Result<Vec<T>, E> {
    let from = from.into_iter();
    let mut values = with_capacity(from.size_hint().0)?;
    for value in from {
        push(&mut values, value?)?;
    }
    Ok(values)
}

/// Reserve capacity for one more entry.
#[inline]
pub fn reserve_entry<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) -> Result<()> {
    if map.len() < map.capacity() { Ok(()) } else { reserve_entries(map, 1) }
}

/// Reserve capacity for `more` entries.
#[cold]
fn reserve_entries<K: Eq + Hash, V, S: BuildHasher>(
    map: &mut HashMap<K, V, S>,
    more: usize,
) -> Result<()> {
    let before = map.allocation_size();
    map.try_reserve(more).map_err(|_| out_of_memory::<(K, V)>(map.len().saturating_add(more)))?;
    let bytes = map.allocation_size();
    if bytes - before < LARGE_BYTES {
        return Ok(());
    }
    check_large(0).map_err(|_| Error::OutOfMemory { bytes })
}

/// The error for `count` values that cannot be allocated.
pub(crate) fn out_of_memory<T>(count: usize) -> Error {
    Error::OutOfMemory { bytes: count.saturating_mul(size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_allocation_is_an_error_with_its_size() {
        // More bytes than any machine has; on 64-bit systems, fewer than the limit of a vector.
        let most = if usize::BITS == 64 { usize::MAX / 16 + 1 } else { usize::MAX / 2 + 1 };
        let failed = |bytes| Error::OutOfMemory { bytes };
        assert_eq!(check(most), Err(failed(most)));
        assert_eq!(with_capacity::<u64>(most / 8), Err(failed(most)));
        assert_eq!(filled(0u64, usize::MAX), Err(failed(usize::MAX)));
        assert_eq!(zeros::<u16>(most / 2), Err(failed(most)));
        assert!(with_capacity_about::<u64>(most).is_empty());
        let mut values = vec![1u8; 3];
        assert_eq!(reserve(&mut values, most), Err(failed(most + 3)));
        assert_eq!(reserve(&mut values, usize::MAX), Err(failed(usize::MAX)));
        assert_eq!(values, [1; 3]);
    }

    #[test]
    fn successful_allocations_have_the_expected_values() {
        let mut values = with_capacity(3).unwrap();
        push(&mut values, 1u32).unwrap();
        extend(&mut values, &vec![2; 1 << 20]).unwrap();
        assert_eq!((values.len(), values[0], values[1 << 20]), ((1 << 20) + 1, 1, 2));
        assert_eq!(collect(0..5).unwrap(), [0, 1, 2, 3, 4]);
        assert_eq!(zeros::<u32>(3).unwrap(), filled(0u32, 3).unwrap());
    }
}
