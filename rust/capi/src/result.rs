//! Results to a code, a message, and values behind pointers. No panic passes this file.

use std::any::Any;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::arguments::not_null;
use crate::failure::{CallFailure, Code};

/// Room for a message of 1,000 characters and its zero byte.
pub const BYTEPAIR_MESSAGE_BYTES: usize = 4096;

/// What a failed call says. A call that succeeds leaves it as it was.
#[repr(C)]
#[derive(Debug)]
pub struct ErrorReport {
    /// The same as the result of the call.
    pub code: Code,
    /// The rule, the value that breaks it and the way out; UTF-8, ends with a zero byte.
    pub message: [c_char; BYTEPAIR_MESSAGE_BYTES],
}

/// Run a call of the interface: its result as a code, with a message if it fails. A panic is an
/// error like any other.
pub(crate) fn guard(
    report: Option<&mut MaybeUninit<ErrorReport>>,
    action: impl FnOnce() -> Result<(), CallFailure>,
) -> Code {
    let panicked = |payload: Box<dyn Any + Send>| Err(CallFailure::Internal(text_of(&*payload)));
    match catch_unwind(AssertUnwindSafe(action)).unwrap_or_else(panicked) {
        Ok(()) => Code::Ok,
        Err(failure) => {
            let code = failure.code();
            if let Some(report) = report {
                report.write(ErrorReport { code, message: message(&failure.message()) });
            }
            code
        }
    }
}

/// Run a call that cannot fail; a panic gives `otherwise`.
pub(crate) fn caught<T>(otherwise: T, action: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(action)).unwrap_or(otherwise)
}

/// The message of a panic.
fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}

/// A message as C stores it; a zero byte inside becomes a space.
fn message(text: &str) -> [c_char; BYTEPAIR_MESSAGE_BYTES] {
    let most = text.len().min(BYTEPAIR_MESSAGE_BYTES - 1);
    let end = (0..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let mut message = [0; BYTEPAIR_MESSAGE_BYTES];
    for (place, &byte) in message.iter_mut().zip(&text.as_bytes()[..end]) {
        *place = c_char::from_ne_bytes([if byte == 0 { b' ' } else { byte }]);
    }
    message
}

/// Write a value where the caller wants it.
pub(crate) fn put<T>(
    name: &str,
    place: Option<&mut MaybeUninit<T>>,
    value: T,
) -> Result<(), CallFailure> {
    not_null(name, place)?.write(value);
    Ok(())
}

/// Copy values into a buffer of the caller as far as it reaches, and write their number. Fails if
/// there are more than the buffer has room for.
///
/// # Safety
///
/// Unless `buffer` is NULL, there is room for `capacity` values.
pub(crate) unsafe fn copy<T: Copy>(
    values: &[T],
    buffer: *mut T,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), CallFailure> {
    let (needed, copied) = (values.len(), values.len().min(capacity));
    put("length", length, needed)?;
    if copied > 0 {
        let buffer = not_null("the buffer", (!buffer.is_null()).then_some(buffer))?;
        // SAFETY: the caller guarantees room for `capacity` values, and the values are the library's.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), buffer, copied) };
    }
    if needed > capacity { Err(CallFailure::TooSmall { needed, capacity }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn failed(action: impl FnOnce() -> Result<(), CallFailure>) -> (Code, String) {
        let mut report = MaybeUninit::uninit();
        let code = guard(Some(&mut report), action);
        // SAFETY: a failed call writes the report.
        let ErrorReport { code: written, message } = unsafe { report.assume_init() };
        assert_eq!(code, written);
        let bytes = message.map(|byte| byte.to_ne_bytes()[0]);
        let text = CStr::from_bytes_until_nul(&bytes).expect("a zero byte ends it");
        (code, text.to_str().expect("it is UTF-8").to_owned())
    }

    #[test]
    fn a_panic_is_a_code_and_a_message() {
        let (code, message) = failed(|| panic!("number {}", 7));
        assert_eq!(code, Code::Internal);
        assert_eq!(message, "a defect of bytepair, please report it: number 7");
        assert_eq!(guard(None, || panic!("nothing is written")), Code::Internal);
        assert_eq!(caught(3, || panic!("a value instead")), 3);
    }

    #[test]
    fn a_message_has_no_zero_byte_and_ends_after_a_character() {
        let (code, message) = failed(|| Err(CallFailure::Argument("a\0b".to_owned())));
        assert_eq!((code, &*message), (Code::Argument, "a b"));
        let long = "€".repeat(BYTEPAIR_MESSAGE_BYTES);
        let bytes = super::message(&long);
        assert_eq!(bytes.iter().position(|&byte| byte == 0), Some(BYTEPAIR_MESSAGE_BYTES / 3 * 3));
        assert_eq!(failed(|| Err(CallFailure::Argument(long))).1.chars().count(), 1_000);
    }
}
