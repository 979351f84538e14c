//! Python's `str` as a text of the core, without a copy.
//!
//! A `str` stores its characters with one, two or four bytes each. Asked for UTF-8, it makes a copy
//! that it keeps as long as it lives; so its own storage is read instead.
#![expect(unsafe_code, reason = "Python tells how a str is stored only through pointers")]

use bytepair::Text;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::types::string::PyStringData;

/// The characters of a `str`. Surrogates behave as in tiktoken: a pair becomes its character, a lone
/// one becomes U+FFFD.
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
