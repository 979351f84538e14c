//! The pages of a column, none of which takes more memory than is allowed.
//!
//! A page is unpacked as a whole, and a text is never divided between two: so how large pages are says
//! how much memory reading takes, and a file may say anything. The parquet crate keeps the size to itself;
//! but it reads the header of a page from where the header begins, and there the size stands.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::Parquet;

/// The pages of a column in a row group.
pub(super) struct Pages {
    file: Arc<Noted>,
    reader: SerializedPageReader<Noted>,
    most_bytes: u64,
}

/// A file, and where it was last read from.
struct Noted {
    file: File,
    last: AtomicU64,
}

impl Pages {
    /// Those of a chunk with so many rows; to read one of more than `most_bytes`, unpacked, is an error.
    pub(super) fn new(
        file: File,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        most_bytes: u64,
    ) -> Parquet<Self> {
        let file = Arc::new(Noted { file, last: AtomicU64::new(0) });
        let reader = SerializedPageReader::new(Arc::clone(&file), chunk, rows, None)?;
        Ok(Self { file, reader, most_bytes })
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Parquet<Option<Page>> {
        if self.reader.peek_next_page()?.is_none() {
            return Ok(None);
        }
        let bytes = self.file.size_of_page()?;
        if bytes > self.most_bytes {
            return Err(ParquetError::General(format!(
                "a page has {bytes} bytes, which are unpacked at once, and {} are allowed; raise the limit on \
                 memory, or write the file with smaller pages (a text is never divided between two)",
                self.most_bytes
            )));
        }
        self.reader.get_next_page()
    }

    fn peek_next_page(&mut self) -> Parquet<Option<PageMetadata>> {
        self.reader.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Parquet<()> {
        self.reader.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Parquet<bool> {
        self.reader.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Parquet<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl Length for Noted {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Noted {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Parquet<Self::T> {
        self.last.store(start, Ordering::Relaxed);
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Parquet<Bytes> {
        self.file.get_bytes(start, length)
    }
}

impl Noted {
    /// How many bytes a page has when it is unpacked, whose header was read last.
    ///
    /// A header begins with three numbers: the kind of the page, its size unpacked, and its size.
    fn size_of_page(&self) -> Parquet<u64> {
        let mut header = self.file.get_read(self.last.load(Ordering::Relaxed))?;
        number(&mut header)?;
        number(&mut header)
    }
}

/// The number in the next field of a header; it is not negative.
fn number(header: &mut impl Read) -> Parquet<u64> {
    /// A number of 32 bits, in the field behind the last one.
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
