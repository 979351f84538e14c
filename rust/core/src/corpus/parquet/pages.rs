//! The pages of a column, none of them larger than allowed.
//!
//! A page is decompressed as a whole, and a text is never divided between pages. So the size of a
//! page bounds the memory for reading, and a file may claim any size. The parquet crate does not
//! tell the size; but it reads the header of a page from its beginning, and the header contains the
//! size.

use std::io::{self, Read};
use std::sync::Arc;

use parquet::basic::{Encoding, PageType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::corpus::parquet::source::TrackedSource;
use crate::error::Grouped;
use crate::memory;

/// The pages of a column in a row group.
pub(crate) struct Pages {
    file: Arc<TrackedSource>,
    reader: SerializedPageReader<TrackedSource>,
    has_dictionary: bool,
    most_bytes: usize,
}

impl Pages {
    /// The pages of a chunk of `rows` rows. A page of more than `most_bytes`, decompressed, is an
    /// error.
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

    /// What the header of the next page says, and its size when decompressed.
    pub(super) fn peek(&mut self) -> Result<Option<(PageMetadata, usize)>> {
        let Some(page) = self.reader.peek_next_page()? else { return Ok(None) };
        Ok(Some((page, self.size()?)))
    }

    /// The decompressed size of the page whose header was read last.
    ///
    /// A header begins with three numbers: the type of the page, its decompressed size, and its
    /// size.
    fn size(&self) -> Result<usize> {
        let mut header = self.file.last_read();
        number(&mut header)?;
        Ok(usize::try_from(number(&mut header)?)?)
    }
}

/// What is wrong with a page of `bytes`, if there may be `most` in it.
pub(super) fn too_large(bytes: usize, most: usize) -> String {
    format!(
        "the page has {} bytes, more than the limit of {}; raise max_document_bytes, or write \
         smaller pages",
        Grouped(bytes),
        Grouped(most)
    )
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some((_, bytes)) = self.peek()? else { return Ok(None) };
        if bytes > self.most_bytes {
            return Err(ParquetError::General(too_large(bytes, self.most_bytes)));
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
