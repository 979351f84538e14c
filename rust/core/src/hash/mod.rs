//! Keys of short byte strings, the tables that they index, and digests.

pub(crate) mod key;
pub(crate) mod key_batch;
pub(crate) mod tables;

use std::fmt::Write;

/// The CRC-32 of a sequence of bytes, continuing from `start`, the CRC-32 of the preceding bytes.
///
/// ```
/// use bytepair::crc32;
/// assert_eq!(crc32(b"123456789", 0), 0xCBF4_3926);
/// assert_eq!(crc32(b"6789", crc32(b"12345", 0)), 0xCBF4_3926);
/// ```
#[must_use]
pub fn crc32(bytes: &[u8], start: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(start);
    hasher.update(bytes);
    hasher.finalize()
}

/// Each byte as two hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}
