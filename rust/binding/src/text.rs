//! Borrows the characters of a Python `str` without a copy, and creates a `str` from a text.
//!
//! A `str` stores its characters in one, two or four bytes each. Its UTF-8 would be a copy that
//! lives as long as the `str`, so the storage is read directly. When Python creates a `str` from
//! UTF-8, it may widen and copy the storage repeatedly; for long texts, the widest character is
//! determined first, and the characters are written into their final storage.

#![expect(
    unsafe_code,
    reason = "Python gives access to the storage of a str only through pointers"
)]

use bytepair::text::{from_utf8, measure, spread};
use bytepair::{Text, memory};
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyBytes, PyString};
use pyo3::{ffi, intern};

use crate::errors;

/// The characters of a `str`. Surrogates are treated as in tiktoken: a pair becomes its character,
/// a lone one becomes U+FFFD.
pub(crate) fn text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<Text<'a>> {
    // SAFETY: the storage of a live `str` neither moves nor changes, and the borrow keeps it alive;
    // a `str` under construction is not visible to other code.
    Ok(match unsafe { string.data() }? {
        // The storage of an ASCII `str` is valid UTF-8 and is borrowed as it is.
        PyStringData::Ucs1(bytes) if is_ascii(string, bytes)? => Text::Utf8(string.to_str()?),
        PyStringData::Ucs1(bytes) => Text::Latin1(bytes),
        PyStringData::Ucs2(units) => Text::Utf16(units),
        PyStringData::Ucs4(units) => Text::Utf32(units),
    })
}

/// Whether a `str` of one byte per character is ASCII. For a long one, Python is asked, which
/// stores the answer in a flag; since Python 3.14 only a method call gives access to the flag.
fn is_ascii(string: &Bound<'_, PyString>, bytes: &[u8]) -> PyResult<bool> {
    if bytes.len() < SHORT_BYTES {
        return Ok(bytes.is_ascii());
    }
    string.call_method0(intern!(string.py(), "isascii"))?.is_truthy()
}

/// Shorter texts, in bytes, are created by Python's own decoder and read to see if they are ASCII:
/// both cost less than the alternative.
const SHORT_BYTES: usize = 256;

/// A new `str`.
pub(crate) fn string<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    if text.len() < SHORT_BYTES {
        return Ok(PyString::new(py, text));
    }
    match measure(text) {
        (0, _) => {
            errors::checked(memory::check(text.len()))?;
            Ok(PyString::new(py, text))
        }
        // SAFETY: for 0xFF, Python stores units of one byte.
        (1, chars) => unsafe { new(py, text, chars, 0xFF, |c| c as u8) },
        // SAFETY: for 0xFFFF, Python stores units of two bytes.
        (2, chars) => unsafe { new(py, text, chars, 0xFFFF, |c| c as u16) },
        // SAFETY: for 0x10FFFF, Python stores units of four bytes.
        (_, chars) => unsafe { new(py, text, chars, 0x10_FFFF, u32::from) },
    }
}

/// A new `str` of `chars` characters, the widest of which is at most `widest`. `of` makes their units.
///
/// # Safety
///
/// `U` must be the unit in which Python stores a `str` whose widest character is `widest`.
unsafe fn new<'py, U: Copy + From<u8>>(
    py: Python<'py>,
    text: &str,
    chars: usize,
    widest: ffi::Py_UCS4,
    of: impl Fn(char) -> U,
) -> PyResult<Bound<'py, PyString>> {
    let length = ffi::Py_ssize_t::try_from(chars)?;
    // SAFETY: null becomes Python's error. The new `str` holds `chars` units of the size of `U`, as
    // the caller guarantees, and nobody else has a reference to it: the garbage collector does not
    // track a `str`. Zeros are valid units. Without characters, Python may return its shared empty
    // `str`, of which nothing is written.
    let (string, units) = unsafe {
        let string = Bound::from_owned_ptr_or_err(py, ffi::PyUnicode_New(length, widest))?;
        let units = ffi::PyUnicode_DATA(string.as_ptr()).cast::<U>();
        units.write_bytes(0, chars);
        (string, std::slice::from_raw_parts_mut(units, chars))
    };
    spread(text, units, of);
    Ok(string.cast_into()?)
}

/// Bytes as a `str`. Python's own decoder handles every value of `errors`.
pub(crate) fn decoded<'py>(
    py: Python<'py>,
    bytes: &[u8],
    errors: &str,
) -> PyResult<Bound<'py, PyAny>> {
    match from_utf8(bytes) {
        Ok(text) => Ok(string(py, text)?.into_any()),
        Err(_) => PyBytes::new_with(py, bytes.len(), |buffer| {
            buffer.copy_from_slice(bytes);
            Ok(())
        })?
        .call_method1(intern!(py, "decode"), ("utf-8", errors)),
    }
}
