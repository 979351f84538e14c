//! Buffers that grow: vectors in structs that a caller holds.

use std::ffi::c_char;

use bytepair::memory;

use crate::arguments::not_null;
use crate::failure::CallFailure;
use crate::result::caught;

/// Ids in a buffer that the library grows. Set all fields to zero at first; set the length to zero
/// to use the memory again; `bytepair_ids_free` frees it. Change nothing else.
#[repr(C)]
#[derive(Debug)]
pub struct IdBuffer {
    /// The first id; NULL only before the first call.
    pub data: *mut u32,
    /// The number of ids.
    pub length: usize,
    /// The number of ids that there is room for.
    pub capacity: usize,
}

/// Bytes in a buffer that the library grows. Set all fields to zero at first; set the length to
/// zero to use the memory again; `bytepair_bytes_free` frees it. Change nothing else.
#[repr(C)]
#[derive(Debug)]
pub struct ByteBuffer {
    /// The first byte; NULL only before the first call. No zero byte is added at the end.
    pub data: *mut c_char,
    /// The number of bytes.
    pub length: usize,
    /// The number of bytes that there is room for.
    pub capacity: usize,
}

/// A vector that goes back to its struct when it is dropped, also after a panic.
struct Borrowed<'b, T> {
    values: Vec<T>,
    data: &'b mut *mut T,
    length: &'b mut usize,
    capacity: &'b mut usize,
}

impl<T> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        let mut values = std::mem::ManuallyDrop::new(std::mem::take(&mut self.values));
        (*self.length, *self.capacity) = (values.len(), values.capacity());
        let empty = *self.capacity == 0;
        *self.data = if empty { std::ptr::null_mut() } else { values.as_mut_ptr() };
    }
}

impl<'b, T> Borrowed<'b, T> {
    /// # Safety
    ///
    /// The fields are zero, or as `drop` wrote them, except that the length may be smaller.
    unsafe fn new(
        data: &'b mut *mut T,
        length: &'b mut usize,
        capacity: &'b mut usize,
    ) -> Result<Self, CallFailure> {
        if *length > *capacity || data.is_null() != (*capacity == 0) {
            let reason =
                "the buffer is not as the library left it; set all its fields to zero at first";
            return Err(CallFailure::Argument(reason.to_owned()));
        }
        let values = if data.is_null() {
            Vec::new()
        } else {
            // SAFETY: the caller guarantees that these are the parts of a vector.
            unsafe { Vec::from_raw_parts(*data, *length, *capacity) }
        };
        Ok(Self { values, data, length, capacity })
    }
}

/// Append to ids. If `action` fails, the ids are as before.
///
/// # Safety
///
/// The buffer is as [`IdBuffer`] says.
pub(crate) unsafe fn append_ids(
    buffer: Option<&mut IdBuffer>,
    action: impl FnOnce(&mut Vec<u32>) -> Result<(), CallFailure>,
) -> Result<(), CallFailure> {
    let IdBuffer { data, length, capacity } = not_null("ids", buffer)?;
    // SAFETY: the caller guarantees it.
    append(unsafe { Borrowed::new(data, length, capacity) }?, action)
}

/// Append to bytes. If `action` fails, the bytes are as before.
///
/// # Safety
///
/// The buffer is as [`ByteBuffer`] says.
pub(crate) unsafe fn append_bytes(
    buffer: Option<&mut ByteBuffer>,
    action: impl FnOnce(&mut Vec<u8>) -> Result<(), CallFailure>,
) -> Result<(), CallFailure> {
    let ByteBuffer { data, length, capacity } = not_null("bytes", buffer)?;
    let data: *mut *mut c_char = data;
    // SAFETY: a pointer to bytes has the form of a pointer to characters.
    let data = unsafe { &mut *data.cast::<*mut u8>() };
    // SAFETY: the caller guarantees it.
    append(unsafe { Borrowed::new(data, length, capacity) }?, action)
}

fn append<T>(
    mut borrowed: Borrowed<'_, T>,
    action: impl FnOnce(&mut Vec<T>) -> Result<(), CallFailure>,
) -> Result<(), CallFailure> {
    let before = borrowed.values.len();
    action(&mut borrowed.values).inspect_err(|_| borrowed.values.truncate(before))?;
    // Functions of C such as `fwrite` take no NULL, not even for nothing.
    if borrowed.values.capacity() == 0 {
        memory::reserve(&mut borrowed.values, 1)?;
    }
    Ok(())
}

/// Free the memory of ids; the buffer is then empty and can be used again. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_ids_free(ids: Option<&mut IdBuffer>) {
    let Some(IdBuffer { data, length, capacity }) = ids else { return };
    // SAFETY: the caller guarantees that the buffer is as the library left it.
    unsafe { free(data, length, capacity) };
}

/// Free the memory of bytes; the buffer is then empty and can be used again. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytepair_bytes_free(bytes: Option<&mut ByteBuffer>) {
    let Some(ByteBuffer { data, length, capacity }) = bytes else { return };
    // SAFETY: the caller guarantees that the buffer is as the library left it.
    unsafe { free(data, length, capacity) };
}

/// # Safety
///
/// As for [`Borrowed::new`].
unsafe fn free<T>(data: &mut *mut T, length: &mut usize, capacity: &mut usize) {
    caught((), || {
        // SAFETY: the caller guarantees it.
        if let Ok(mut borrowed) = unsafe { Borrowed::new(data, length, capacity) } {
            borrowed.values = Vec::new();
        }
    });
}
