//! Python's `str` as a text of the core, without a copy, and a new `str` out of a text.
//!
//! A `str` stores its characters with one, two or four bytes each. Asked for UTF-8, it makes a copy
//! that it keeps as long as it lives; so its own storage is read instead. Made from UTF-8, a `str`
//! is widened again and again as wider characters are met; so a long text is measured first and its
//! characters are written where they stay.
#![expect(unsafe_code, reason = "Python tells how a str is stored only through pointers")]

use bytepair::text::{CharUnit, measure, spread};
use bytepair::{Text, memory};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::types::string::PyStringData;

use crate::errors;

/// The characters of a `str`. Surrogates behave as in tiktoken: a pair becomes its character, a
/// lone one becomes U+FFFD.
pub(crate) fn text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<Text<'a>> {
    // SAFETY: the pointer is to a `str` that is alive.
    if unsafe { ffi::PyUnicode_IS_ASCII(string.as_ptr()) } != 0 {
        return Ok(Text::Utf8(string.to_str()?)); // its storage is UTF-8 and is lent as it is
    }
    // SAFETY: the storage of a `str` neither moves nor changes while it is alive, which the borrow
    // sees to; nobody else has it while it is being made.
    Ok(match unsafe { string.data() }? {
        PyStringData::Ucs1(bytes) => Text::Latin1(bytes),
        PyStringData::Ucs2(units) => Text::Utf16(units),
        PyStringData::Ucs4(units) => Text::Utf32(units),
    })
}

/// Shorter texts (in bytes) are left to Python.
const SHORT: usize = 256;

/// A new `str`.
pub(crate) fn string<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    if text.len() < SHORT {
        return Ok(PyString::new(py, text));
    }
    match measure(text) {
        (0, _) => {
            errors::checked(memory::check(text.len()))?;
            Ok(PyString::new(py, text))
        }
        (1, chars) => new::<u8>(py, text, chars, 0xFF),
        (2, chars) => new::<u16>(py, text, chars, 0xFFFF),
        (_, chars) => new::<u32>(py, text, chars, 0x10_FFFF),
    }
}

/// A new `str` of so many characters, stored as `U`, which is how Python stores a `str` whose
/// widest character is `widest`.
fn new<'py, U: CharUnit>(
    py: Python<'py>,
    text: &str,
    chars: usize,
    widest: ffi::Py_UCS4,
) -> PyResult<Bound<'py, PyString>> {
    let length = ffi::Py_ssize_t::try_from(chars)?;
    // SAFETY: null is turned into Python's error. The new `str` has room for `chars` units of the
    // size of `U`, as `widest` says, which nobody else can see yet; zeros are units.
    let (string, units) = unsafe {
        let string = Bound::from_owned_ptr_or_err(py, ffi::PyUnicode_New(length, widest))?;
        let units = ffi::PyUnicode_DATA(string.as_ptr()).cast::<U>();
        units.write_bytes(0, chars);
        (string, std::slice::from_raw_parts_mut(units, chars))
    };
    spread(text, units);
    Ok(string.cast_into()?)
}
