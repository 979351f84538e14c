//! Which of the formats that this crate reads a file has, by its first bytes.

use crate::error::{Error, Reason, Result, WayOut};
use crate::formats::native::MAGIC;
use crate::formats::ranks::RankFile;
use crate::formats::recognize::mistaken;

/// A format of tokenizers that this crate reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenizerFormat {
    /// The native file.
    Native,
    /// A `tokenizer.json`.
    TokenizerJson,
    /// A rank file, which has no pattern.
    Ranks,
}

/// The number of bytes that decide.
pub const HEAD_BYTES: usize = 1 << 10;

/// The way out of a file of another format.
const CONVERT: &[WayOut] = &[WayOut::plain("convert it with `bytepair convert`")];

/// The format of a file, from its first [`HEAD_BYTES`] bytes.
///
/// Fails with [`Error::Format`] if it is none of the three.
///
/// ```
/// use bytepair::formats::kind::{TokenizerFormat, kind};
/// assert_eq!(kind(b" {\"version\": ")?, TokenizerFormat::TokenizerJson);
/// assert_eq!(kind(b"YQ== 0\nYg== 1\n")?, TokenizerFormat::Ranks);
/// assert!(kind(b"").is_err());
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn kind(head: &[u8]) -> Result<TokenizerFormat> {
    if head.starts_with(MAGIC) {
        return Ok(TokenizerFormat::Native);
    }
    let reason = match mistaken(head) {
        Some(reason) => reason,
        None if head.trim_ascii_start().starts_with(b"{") => {
            return Ok(TokenizerFormat::TokenizerJson);
        }
        None if RankFile::is_one(head) => return Ok(TokenizerFormat::Ranks),
        None => Reason::new(
            "the file is neither a native tokenizer file nor a tokenizer.json nor a rank file",
            CONVERT,
        ),
    };
    Err(Error::Format { place: "byte 0".to_owned(), reason })
}
