//! A text file in, the ids of its documents out.
//!
//! The file is mapped, so that every thread reads the part it encodes, and no copy is made. It must
//! not be changed meanwhile. What cannot be mapped (a pipe) is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Deref;
use std::path::Path;

use aho_corasick::AhoCorasick;
use memmap2::{Advice, Mmap};

use crate::arrays::{Arrays, Id};
use crate::encode::EncodeOptions;
use crate::error::{Error, Result};
use crate::parallel;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

/// The bytes of a file.
enum Content {
    Mapped(Mmap),
    Read(Vec<u8>),
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
}

impl Content {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if file.metadata()?.is_file()
            && let Ok(map) = map(&file)
        {
            return Ok(Self::Mapped(map));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self::Read(bytes))
    }
}

#[expect(unsafe_code, reason = "reading 300 MB takes a tenth of the time that encoding them takes")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the caller of `encode_file` is told that the file must not be changed meanwhile.
    let map = unsafe { Mmap::map(file) }?;
    // It is advice: where it is not taken, reading is slower.
    let _taken = map.advise(Advice::Sequential);
    Ok(map)
}

/// How a file is read.
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// What stands between two documents; with nothing, the file is one.
    pub separator: Vec<u8>,
    /// Whether bytes that are not UTF-8 stand for U+FFFD; if not, they are an error.
    pub lossy: bool,
}

impl Tokenizer {
    /// Encode the documents of a text file on up to `threads` threads into one array.
    ///
    /// Separators are found from the start on, do not overlap, and belong to no document; as in
    /// Python's `split`, a file of n separators has n + 1 documents. Fails as
    /// [`encode_arrays`](Self::encode_arrays) does, or if the file cannot be read. The file must not be
    /// changed meanwhile, or what is read is undefined.
    pub fn encode_file<T: Id>(
        &self,
        path: &Path,
        file: &FileOptions,
        options: &EncodeOptions,
        threads: usize,
    ) -> Result<Arrays<T>> {
        let unreadable = |error: io::Error| Error::Unreadable {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let content = Content::open(path).map_err(unreadable)?;
        let searching = parallel::worth(threads, content.len());
        let documents = documents(&content, &file.separator, searching)?;
        let text = |bytes| if file.lossy { Text::Lossy(bytes) } else { Text::Bytes(bytes) };
        let texts: Vec<Text<'_>> = documents.iter().map(|bytes| text(bytes)).collect();
        self.encode_arrays(&texts, options, threads).map_err(|error| match error {
            Error::TextNotUtf8 { document, at } => {
                let before = documents[..document].iter().map(|d| d.len() + file.separator.len());
                Error::FileNotUtf8 {
                    path: path.display().to_string(),
                    at: before.sum::<usize>() + at,
                }
            }
            other => other,
        })
    }
}

/// What stands between the separators, looked for on several threads.
fn documents<'a>(content: &'a [u8], separator: &[u8], threads: usize) -> Result<Vec<&'a [u8]>> {
    if separator.is_empty() {
        return Ok(vec![content]);
    }
    let places = places(content, separator, threads)?;
    let mut start = 0;
    let documents = places.into_iter().chain([content.len()]).map(|end| {
        let document = &content[start..end];
        start = end + separator.len();
        document
    });
    Ok(documents.collect())
}

/// Where the separators begin.
fn places(content: &[u8], separator: &[u8], threads: usize) -> Result<Vec<usize>> {
    let finder = AhoCorasick::new([separator])
        .map_err(|e| Error::Vocabulary { reason: format!("the separator is too long: {e}") })?;
    // Those that may overlap depend on where one begins to look.
    let threads = if overlaps_itself(separator) { 1 } else { threads };
    let share = content.len().div_ceil(threads);
    let places = (0..threads).map(|number| {
        let start = (number * share).min(content.len());
        let end = (start + share + separator.len() - 1).min(content.len());
        let found = finder.find_iter(&content[start..end]);
        move || found.map(|found| start + found.start()).collect::<Vec<_>>()
    });
    Ok(parallel::run(places).concat())
}

/// Whether an end of a separator is a beginning of it.
fn overlaps_itself(separator: &[u8]) -> bool {
    (1..separator.len()).any(|length| separator.starts_with(&separator[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The plain way: look at every place.
        #[test]
        fn documents_are_what_stands_between_separators(
            content in prop::collection::vec(0u8..3, 0..40),
            separator in prop::collection::vec(0u8..3, 1..4),
            threads in 1usize..5,
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
            prop_assert_eq!(documents(&content, &separator, threads).unwrap(), plain);
        }
    }
}
