//! The pages of a column, with a limit on their decompressed size.
//!
//! A page is decompressed as a whole, and a text is never divided between pages. So the size of a
//! page determines the memory for reading, and a file may claim any size. The parquet crate does
//! not return the size of a page before decompressing it. But the last offset at which it reads is
//! the start of the header of the page, and the header contains the size.

use std::io::{self, Read};
use std::sync::Arc;

use parquet::basic::{Encoding, PageType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::corpus::parquet::source::TrackedSource;
use crate::error::{Grouped, Reason, SMALLER_PAGES};
use crate::memory;

/// The pages of a column in a row group.
pub(crate) struct Pages {
    file: Arc<TrackedSource>,
    reader: SerializedPageReader<TrackedSource>,
    has_dictionary: bool,
    most_bytes: usize,
}

impl Pages {
    /// The pages of a chunk of `rows` rows. A page of more than `most_bytes` decompressed bytes is
    /// an error.
    pub(crate) fn new(
        file: TrackedSource,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        most_bytes: usize,
    ) -> Result<Self> {
        let file = Arc::new(file);
        let reader = SerializedPageReader::new(Arc::clone(&file), chunk, rows, None)?;
        Ok(Self { file, reader, has_dictionary: false, most_bytes })
    }

    /// The metadata in the header of the next page, and the decompressed size of the page.
    pub(super) fn peek(&mut self) -> Result<Option<(PageMetadata, usize)>> {
        let Some(page) = self.reader.peek_next_page()? else { return Ok(None) };
        Ok(Some((page, self.size()?)))
    }

    /// The decompressed size of the page whose header was read last.
    ///
    /// A header begins with three numbers: the type of the page, its decompressed size, and its
    /// compressed size.
    fn size(&self) -> Result<usize> {
        let mut header = self.file.last_read();
        number(&mut header)?;
        Ok(usize::try_from(number(&mut header)?)?)
    }
}

/// The message for a page of `bytes` bytes if the limit is `most`.
pub(super) fn too_large(bytes: usize, most: usize) -> Reason {
    let (bytes, most) = (Grouped(bytes), Grouped(most));
    Reason::new(format!("the page has {bytes} bytes, more than the limit of {most}"), SMALLER_PAGES)
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some((_, bytes)) = self.peek()? else { return Ok(None) };
        if bytes > self.most_bytes {
            return Err(ParquetError::External(Box::new(too_large(bytes, self.most_bytes))));
        }
        // Both the compressed and the decompressed page are in memory.
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

/// The non-negative number in the next field of a header, which is in Thrift's compact protocol.
fn number(header: &mut impl Read) -> Result<u64> {
    /// The header of a field that follows the previous one and holds a 32-bit number.
    const NEXT_NUMBER_FIELD: u8 = 0x15;
    let damaged = || ParquetError::General("the header of a page is damaged".to_owned());
    let mut byte = [0];
    header.read_exact(&mut byte)?;
    if byte != [NEXT_NUMBER_FIELD] {
        return Err(damaged());
    }
    // Seven bits in each byte, the lowest first, and a high bit in all but the last. Zigzag stores
    // n as 2n, and a negative number as an odd one, which no valid page has here.
    let mut zigzag = 0;
    for shift in (0..35).step_by(7) {
        header.read_exact(&mut byte)?;
        zigzag |= u64::from(byte[0] & 0x7F) << shift;
        if byte[0] < 0x80 {
            return Ok(zigzag / 2);
        }
    }
    Err(damaged())
}
