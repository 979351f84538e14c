//! The pages of a column, none of them larger than allowed.
//!
//! A page is decompressed as a whole, and a text is never divided between pages. So the size of a
//! page bounds the memory for reading, and a file may claim any size. The parquet crate does not
//! tell the size; but it reads the header of a page from its beginning, and the header contains the
//! size.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::{Encoding, PageType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::error::Grouped;
use crate::memory;

/// The pages of a column in a row group.
pub(crate) struct Pages {
    file: Arc<TrackedFile>,
    reader: SerializedPageReader<TrackedFile>,
    has_dictionary: bool,
    most_bytes: usize,
}

/// A file that records the offset of its last read.
struct TrackedFile {
    file: File,
    last: AtomicU64,
}

impl Pages {
    /// The pages of a chunk of `rows` rows. A page of more than `most_bytes`, decompressed, is an
    /// error.
    pub(crate) fn new(
        file: File,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        most_bytes: usize,
    ) -> Result<Self> {
        let file = Arc::new(TrackedFile { file, last: AtomicU64::new(0) });
        let reader = SerializedPageReader::new(Arc::clone(&file), chunk, rows, None)?;
        Ok(Self { file, reader, has_dictionary: false, most_bytes })
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        if self.reader.peek_next_page()?.is_none() {
            return Ok(None);
        }
        let bytes = usize::try_from(self.file.size_of_page()?)?;
        if bytes > self.most_bytes {
            return Err(ParquetError::General(format!(
                "the page has {} bytes, more than the {} unpacked at once; \
                 raise max_document_bytes, or divide it",
                Grouped(bytes),
                Grouped(self.most_bytes)
            )));
        }
        // The compressed and the decompressed page.
        memory::check(bytes.saturating_mul(2)).map_err(io::Error::from)?;
        let page = self.reader.get_next_page()?;
        match page.as_ref().map(|page| (page.page_type(), page.encoding())) {
            Some((PageType::DICTIONARY_PAGE, _)) => self.has_dictionary = true,
            Some((_, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY))
                if !self.has_dictionary =>
            {
                // The parquet crate would panic.
                return Err(ParquetError::General(
                    "the dictionary of a page is missing".to_owned(),
                ));
            }
            _ => (),
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.reader.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.reader.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.reader.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl Length for TrackedFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for TrackedFile {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.last.store(start, Ordering::Relaxed);
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // The header may claim any length.
        if start.saturating_add(length as u64) > self.file.len() {
            return Err(ParquetError::EOF("a page goes on after the end of the file".to_owned()));
        }
        memory::check(length).map_err(io::Error::from)?;
        self.file.get_bytes(start, length)
    }
}

impl TrackedFile {
    /// The decompressed size of the page whose header was read last.
    ///
    /// A header begins with three numbers: the type of the page, its decompressed size, and its
    /// size.
    fn size_of_page(&self) -> Result<u64> {
        let mut header = self.file.get_read(self.last.load(Ordering::Relaxed))?;
        number(&mut header)?;
        number(&mut header)
    }
}

/// The non-negative number in the next field of a header.
fn number(header: &mut impl Read) -> Result<u64> {
    /// The mark of a number of 32 bits in the next field.
    const NEXT: u8 = 0x15;
    let damaged = || ParquetError::General("the header of a page is damaged".to_owned());
    let mut byte = [0];
    header.read_exact(&mut byte)?;
    if byte != [NEXT] {
        return Err(damaged());
    }
    let mut folded = 0;
    for shift in (0..35).step_by(7) {
        header.read_exact(&mut byte)?;
        folded |= u64::from(byte[0] & 0x7F) << shift;
        if byte[0] < 0x80 {
            return Ok(folded / 2);
        }
    }
    Err(damaged())
}
