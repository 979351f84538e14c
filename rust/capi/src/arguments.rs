//! Turns the pointers and lengths that a caller passes into references and slices.

use std::ffi::{CStr, c_char};

use bytepair::Error;

use crate::failure::CallFailure;

/// Stands for a length: the text ends before its first zero byte.
const ZERO_TERMINATED: usize = usize::MAX;

/// A text: UTF-8 and its length in bytes, or BYTEPAIR_ZERO_TERMINATED in place of the length.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TextSlice {
    /// The first byte. May be NULL if the length is 0.
    pub data: *const c_char,
    /// The number of bytes.
    pub length: usize,
}

/// The value behind a pointer that must not be NULL.
pub(crate) fn not_null<T>(name: &str, value: Option<T>) -> Result<T, CallFailure> {
    value.ok_or_else(|| CallFailure::Argument(format!("{name} is NULL; pass a pointer to a value")))
}

/// An array: `data` may be NULL if there are no items.
///
/// # Safety
///
/// Unless `data` is NULL or `length` is 0, `data` is aligned for `T`, `length` initialised values of
/// `T` start there, and they stay alive and unchanged for `'a`, the time of the call.
pub(crate) unsafe fn array<'a, T>(
    name: &str,
    data: *const T,
    length: usize,
) -> Result<&'a [T], CallFailure> {
    if length == 0 {
        return Ok(&[]);
    }
    let data = not_null(name, (!data.is_null()).then_some(data))?;
    if length > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        let reason = format!("the length {length} of {name} is larger than any memory");
        return Err(CallFailure::Argument(reason));
    }
    // SAFETY: the caller guarantees this many aligned and initialised values, and they take at most
    // `isize::MAX` bytes.
    Ok(unsafe { std::slice::from_raw_parts(data, length) })
}

/// The bytes of a text.
///
/// # Safety
///
/// As for [`array`]; for [`ZERO_TERMINATED`], a zero byte ends the text, and the bytes up to it
/// stay alive and unchanged for `'a`.
pub(crate) unsafe fn bytes<'a>(
    name: &str,
    data: *const c_char,
    length: usize,
) -> Result<&'a [u8], CallFailure> {
    if length == ZERO_TERMINATED {
        let data = not_null(name, (!data.is_null()).then_some(data))?;
        // SAFETY: the caller guarantees that a zero byte ends the text.
        return Ok(unsafe { CStr::from_ptr(data) }.to_bytes());
    }
    // SAFETY: the caller guarantees this many bytes.
    unsafe { array(name, data.cast(), length) }
}

/// A text that must be UTF-8.
///
/// # Safety
///
/// As for [`bytes`].
pub(crate) unsafe fn text<'a>(
    name: &str,
    data: *const c_char,
    length: usize,
) -> Result<&'a str, CallFailure> {
    // SAFETY: the caller guarantees the same.
    let bytes = unsafe { bytes(name, data, length) }?;
    utf8(bytes, 0)
}

/// An array of texts that must be UTF-8.
///
/// # Safety
///
/// As for [`array`], and for each text as for [`bytes`].
pub(crate) unsafe fn texts<'a>(
    name: &str,
    data: *const TextSlice,
    length: usize,
) -> Result<Vec<&'a str>, CallFailure> {
    // SAFETY: the caller guarantees this many texts.
    let slices = unsafe { array(name, data, length) }?;
    let mut texts = bytepair::memory::with_capacity(slices.len())?;
    for (document, slice) in slices.iter().enumerate() {
        // SAFETY: the caller guarantees the bytes of each.
        let bytes = unsafe { bytes(name, slice.data, slice.length) }?;
        texts.push(utf8(bytes, document)?);
    }
    Ok(texts)
}

/// Bytes as text; `document` is the index of the text.
fn utf8(bytes: &[u8], document: usize) -> Result<&str, CallFailure> {
    bytepair::text::from_utf8(bytes)
        .map_err(|error| Error::TextNotUtf8 { document, at: error.valid_up_to() }.into())
}
