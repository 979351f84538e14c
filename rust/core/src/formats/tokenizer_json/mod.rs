//! `tokenizer.json`, the file of Hugging Face `tokenizers`: its one reader and writer.
//!
//! Each part of a file is either read exactly or is an error that names it: an approximation would
//! give the right ids for most texts, and its wrong ids would go unnoticed. Reading is a straight
//! line: `json` parses the bytes, `fields`, `pre_tokenizer` and `tables` turn each field into a value,
//! and `file` collects them. Then one of three forms builds the parts of a tokenizer: tokens are bytes
//! (`bytes`), or characters with byte fallback and U+2581 for spaces (`spaces`), or, in all other files,
//! names (`bytes`). The first two are fast. `write` goes the other way.

mod bytes;
mod fields;
mod file;
mod json;
mod oniguruma;
mod pre_tokenizer;
mod spaces;
mod tables;
mod write;

pub use oniguruma::{from_oniguruma, means_the_same, to_oniguruma};
pub use spaces::{is_harmless, split_pattern};
pub use write::{losses, write};

use crate::error::Result;
use crate::memory;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::parts::TokenizerParts;

/// Upper bound on memory: reading needs at most this many bytes for each byte of the file.
const MEMORY_PER_FILE_BYTE: usize = 16;

/// The parts of the tokenizer in the bytes of a file. With `lossy`, a dropout is ignored.
///
/// Fails with [`Error::Format`](crate::Error::Format) if the file breaks a rule, and with
/// [`Error::Unsupported`](crate::Error::Unsupported) if it asks for something that is not done
/// exactly.
pub fn read(data: &[u8], lossy: bool) -> Result<TokenizerParts> {
    memory::check(data.len().saturating_mul(MEMORY_PER_FILE_BYTE))?;
    let document = json::Document::parse(json::text(data)?)?;
    let entries = tables::vocabulary(document.vocabulary)?;
    let file = file::File::read(&document, &entries, lossy)?;
    if file.is_of_bytes() {
        return file.of_bytes();
    }
    match spaces::form(&file) {
        Some(form) => spaces::parts(file, form),
        None => bytes::parts_of_names(file),
    }
}

impl Tokenizer {
    /// Load a tokenizer from the bytes of a `tokenizer.json`, as Hugging Face tokenizers write it.
    /// The ids that a post-processor adds around a text are left to the caller: see
    /// [`options`](Self::options).
    ///
    /// Fails as [`read`] and [`from_parts`](Self::from_parts) do.
    ///
    /// ```
    /// use bytepair::{Error, Tokenizer};
    /// let file = r#"{
    ///     "added_tokens": [{"id": 3, "content": "<|endoftext|>"}],
    ///     "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    ///     "decoder": {"type": "ByteLevel"},
    ///     "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
    /// }"#;
    /// let tokenizer = Tokenizer::from_tokenizer_json(file.as_bytes())?;
    /// assert_eq!(tokenizer.encode("aba")?, [2, 0]);
    ///
    /// let other = file.replace("BPE", "WordPiece");
    /// let error = Tokenizer::from_tokenizer_json(other.as_bytes()).unwrap_err();
    /// assert!(matches!(error, Error::Unsupported { place, .. } if place == "model.type"));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn from_tokenizer_json(file: &[u8]) -> Result<Self> {
        Self::from_parts(read(file, false)?)
    }
}
