//! Encodes the documents of a text file.
//!
//! The file is mapped, so that each thread reads the part it encodes and nothing is copied; it must
//! not change during the call. A pipe or another file that cannot be mapped is read, and so is any
//! file if the caller asks for it.

use std::fs::File;
use std::io;
use std::path::Path;

use memchr::memmem;

use crate::bulk::arrays::{Arrays, estimate_ids};
use crate::corpus::{fill, pointer};
use crate::encode::{EncodeOptions, Id};
use crate::error::{Error, Result};
use crate::machine::array::FileBytes;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

/// Map a file; one that cannot be mapped, such as a pipe, is read, or any if `reads`.
///
/// # Safety
///
/// Nobody may change the file while the bytes exist, unless it is read.
#[expect(unsafe_code, reason = "reading 300 MB takes a tenth of the time that encoding them takes")]
unsafe fn open(path: &Path, reads: bool) -> io::Result<FileBytes> {
    let file = File::open(path)?;
    if reads || !file.metadata()?.is_file() {
        return read(file);
    }
    // SAFETY: here the file is not read, so the caller guarantees that nobody changes it while
    // the bytes exist.
    let Ok(map) = (unsafe { FileBytes::map(&file) }) else { return read(file) };
    map.expect_sequential_reads();
    Ok(map)
}

/// The safe reference for [`open`].
fn read(mut file: File) -> io::Result<FileBytes> {
    let mut bytes = Vec::new();
    while fill(&mut file, &mut bytes, READ_BYTES)? > 0 {}
    Ok(FileBytes::owned(bytes))
}

/// Releases the pages of a mapped file once all threads have passed them, so that a large file does
/// not stay in the memory of the process. A thread that has not reached them yet reads them again.
struct PassedPages<'a> {
    content: &'a FileBytes,
    /// The pages before this offset are released.
    released: usize,
}

impl PassedPages<'_> {
    /// The next part of the file to be encoded is `text`.
    fn reach(&mut self, text: &Text<'_>) {
        let (Text::Bytes(bytes) | Text::Lossy(bytes)) = text else { return };
        // Every part is a slice of the file, so the difference is its offset. Each release is of at
        // least `BEHIND_BYTES`, so that the system is called once for many megabytes.
        let at = bytes.as_ptr().addr() - self.content.as_ptr().addr();
        if at >= self.released + 2 * BEHIND_BYTES {
            self.content.release(self.released..at - BEHIND_BYTES);
            self.released = at - BEHIND_BYTES;
        }
    }
}

/// Threads are rarely further apart than this many bytes.
const BEHIND_BYTES: usize = 32 << 20;

/// A file that cannot be mapped is read in blocks of this many bytes.
const READ_BYTES: usize = 1 << 20;

/// The number of ids is estimated from a sample of each block of this many bytes.
const SAMPLE_BLOCK_BYTES: usize = 1 << 20;

/// How a file is read.
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// Separates documents; if empty, the whole file is one document.
    pub separator: Vec<u8>,
    /// Whether invalid UTF-8 is replaced by U+FFFD; otherwise it is an error.
    pub lossy: bool,
    /// Whether the file is read into memory instead of mapped; then it may change meanwhile.
    pub reads: bool,
}

impl Tokenizer {
    /// Encode the documents of a text file on up to `threads` threads into one array.
    ///
    /// Separators are found from left to right, do not overlap, and belong to no document; as with
    /// Python's `split`, a file with n separators has n + 1 documents. Fails as
    /// [`encode_arrays`](Self::encode_arrays) does, or if the file cannot be read.
    ///
    /// # Safety
    ///
    /// Unless the options say to read it, the file is mapped: nobody may write to it or truncate it
    /// before the call ends. After a write, reads are undefined; reading past a truncated end kills
    /// the process with a signal.
    #[doc(hidden)]
    #[expect(unsafe_code, reason = "a mapped file can change while it is read")]
    pub unsafe fn encode_file<T: Id>(
        &self,
        path: &Path,
        file: &FileOptions,
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Arrays<T>> {
        let unreadable = |error: &io::Error| Error::unreadable(path, error.to_string());
        // SAFETY: unless `file.reads` is set, the caller guarantees that nobody changes the file
        // before the call ends, and `content` does not outlive the call.
        let content = unsafe { open(path, file.reads) };
        let content = content.map_err(|error| Error::of_io(&error, unreadable))?;
        if let Some(reason) = pointer(&content) {
            let place = path.display().to_string();
            return Err(Error::Document { place, reason });
        }
        let documents = || documents(&content, &file.separator);
        let text = |bytes| if file.lossy { Text::Lossy(bytes) } else { Text::Bytes(bytes) };
        let ids = content.chunks(SAMPLE_BLOCK_BYTES).map(|bytes| estimate_ids(&text(bytes))).sum();
        let mut passed = PassedPages { content: &content, released: 0 };
        let on_part = |part: &Text<'_>| passed.reach(part);
        let encoded = self.encode_texts(
            documents().map(text),
            (content.len(), ids),
            options,
            threads,
            on_part,
        );
        encoded.map_err(|error| match error {
            Error::TextNotUtf8 { document, at } => {
                // The offset in the file is needed for the message only, so it is computed from the
                // documents before.
                let before = documents().take(document).map(|d| d.len() + file.separator.len());
                Error::FileNotUtf8 {
                    path: path.display().to_string(),
                    at: before.sum::<usize>() + at,
                }
            }
            other => other,
        })
    }
}

/// The documents between separators; a single one if the separator is empty.
fn documents<'a>(content: &'a [u8], separator: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let separates = !separator.is_empty();
    let ends = separates.then(|| memmem::find_iter(content, separator)).into_iter().flatten();
    ends.chain([content.len()]).scan(0, move |start, end| {
        let document = &content[*start..end];
        *start = end + separator.len();
        Some(document)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The slow reference compares the separator at every position.
        #[test]
        fn documents_are_the_bytes_between_separators(
            content in prop::collection::vec(0u8..3, 0..40),
            separator in prop::collection::vec(0u8..3, 1..4),
        ) {
            let (mut plain, mut start, mut at) = (Vec::new(), 0, 0);
            while at < content.len() {
                if content[at..].starts_with(&separator) {
                    plain.push(&content[start..at]);
                    at += separator.len();
                    start = at;
                } else {
                    at += 1;
                }
            }
            plain.push(&content[start..]);
            prop_assert_eq!(documents(&content, &separator).collect::<Vec<_>>(), plain);
        }
    }
}
