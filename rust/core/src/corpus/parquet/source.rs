//! The source of the bytes of a parquet file: a local file, or an object of the caller.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex};

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::corpus::parquet::footer::{PageHeader, varint};
use crate::error::{Grouped, Reason, SMALLER_PAGES};
use crate::memory;
use crate::parallel::lock;

/// The number of bytes that are read at once from a caller's object, which may be a remote file.
const WINDOW_BYTES: usize = 1 << 20;

/// The same for a local file, of which the headers of pages are read one by one.
const LOCAL_BYTES: usize = 1 << 13;

/// The memory that the parquet crate takes for each value of a dictionary or of a delta encoding.
const VALUE_BYTES: usize = 32;

/// A file, or an object of the caller that reads like one.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The offset of the next byte, unless the last read failed, and the file. Its buffer serves reads
/// that are close to each other; a large read goes around it.
type SharedFile = Mutex<(Option<u64>, BufReader<Box<dyn ReadSeek>>)>;

/// The bytes of a parquet file, which several readers share: a source for the parquet crate.
#[derive(Clone)]
pub(crate) struct TableSource {
    size: u64,
    file: Arc<SharedFile>,
}

impl TableSource {
    /// A local file. Each reader opens it again, so that only files being read are open.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Self::new(Box::new(file), size, LOCAL_BYTES))
    }

    /// An object of the caller, each of whose reads is expensive.
    pub(crate) fn windowed(file: Box<dyn ReadSeek>, size: u64) -> Self {
        Self::new(file, size, WINDOW_BYTES)
    }

    fn new(file: Box<dyn ReadSeek>, size: u64, buffer_bytes: usize) -> Self {
        let file = (None, BufReader::with_capacity(buffer_bytes, file));
        Self { size, file: Arc::new(Mutex::new(file)) }
    }

    /// Read bytes from `offset` on into `buffer`; returns how many were read, 0 at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (next, file) = &mut *lock(&self.file);
        match next.take() {
            Some(next) => file.seek_relative(offset.wrapping_sub(next).cast_signed())?,
            None => drop(file.seek(SeekFrom::Start(offset))?),
        }
        let count = file.read(buffer)?;
        *next = Some(offset + count as u64);
        Ok(count)
    }

    fn reader(&self, offset: u64) -> OffsetReader {
        OffsetReader { source: self.clone(), offset }
    }
}

/// Reads a source from an offset on.
pub(crate) struct OffsetReader {
    source: TableSource,
    offset: u64,
}

impl Read for OffsetReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read_at(self.offset, buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Length for TableSource {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for TableSource {
    type T = OffsetReader;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // The header may claim any length.
        if start.saturating_add(length as u64) > self.size {
            return Err(ParquetError::EOF("a page exceeds the end of the file".to_owned()));
        }
        let mut bytes = memory::zeros(length).map_err(io::Error::from)?;
        self.reader(start).read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

// ---------------------------------------------------------------------------- pages
//
// The pages of a column, with a limit on their decompressed size.
//
// A page is decompressed as a whole, and a text is never divided between pages. So the size of a
// page determines the memory for reading, and a file may claim any size. The parquet crate does
// not return the size of a page before decompressing it, so the header of each page is read here
// first. The crate also believes how many values a dictionary and a delta encoding state, and writes
// beyond the stated size where a page in gzip or Brotli is larger, so these numbers are checked too.

/// The pages of a column in a row group.
pub(crate) struct Pages {
    file: Arc<TableSource>,
    reader: SerializedPageReader<TableSource>,
    /// The offset of the next page, the end of the last one, and the header of the next page once it
    /// is read.
    offset: u64,
    end: u64,
    header: Option<PageHeader>,
    chunk: ColumnChunkMetaData,
    has_dictionary: bool,
    most_bytes: usize,
}

impl Pages {
    /// The pages of a chunk of a flat column. A page of more than `most_bytes` decompressed bytes
    /// is an error.
    pub(crate) fn new(
        file: TableSource,
        chunk: &ColumnChunkMetaData,
        most_bytes: usize,
    ) -> Result<Self> {
        let rows = usize::try_from(chunk.num_values())?;
        let mut of_crate = chunk.clone();
        if let Compression::GZIP(_) | Compression::BROTLI(_) = chunk.compression() {
            // The crate passes these pages on as they are, and `decompress` follows.
            let builder = of_crate.into_builder().set_compression(Compression::UNCOMPRESSED);
            of_crate = builder.build()?;
        }
        let file = Arc::new(file);
        let reader = SerializedPageReader::new(Arc::clone(&file), &of_crate, rows, None)?;
        let (offset, bytes) = chunk.byte_range();
        let (end, chunk) = (offset.saturating_add(bytes), chunk.clone());
        let (header, has_dictionary) = (None, false);
        Ok(Self { file, reader, offset, end, header, chunk, has_dictionary, most_bytes })
    }

    /// The metadata in the header of the next page, and the decompressed size of the page.
    pub(super) fn peek(&mut self) -> Result<Option<(PageMetadata, usize)>> {
        if self.header.is_none() && self.offset < self.end {
            self.header = Some(self.read_header()?);
        }
        let Some(header) = &self.header else { return Ok(None) };
        let Some(page) = self.reader.peek_next_page()? else { return Ok(None) };
        Ok(Some((page, header.decompressed)))
    }

    /// Read the header of the next page. It may contain texts, so its length is not known.
    fn read_header(&self) -> Result<PageHeader> {
        let mut bytes = Vec::new();
        for shift in [8, 12, 16, 20, 24] {
            let more = (1 << shift) - bytes.len() as u64;
            let start = self.offset + bytes.len() as u64;
            let count = self.file.reader(start).take(more).read_to_end(&mut bytes)?;
            if let Some(header) = PageHeader::read(&bytes) {
                return Ok(header);
            }
            if (count as u64) < more {
                break;
            }
        }
        Err(general("the header of a page is damaged"))
    }

    /// Go on to the next page, after this one was read or skipped.
    fn advance(&mut self) {
        if let Some(header) = self.header.take() {
            self.offset += (header.length + header.compressed) as u64;
        }
    }

    /// Decompress a page to its stated size, unless the parquet crate has done it.
    fn decompress(&self, page: &mut Page, bytes: usize) -> Result<()> {
        let levels = levels_bytes(page, false).unwrap_or(usize::MAX);
        let (Page::DataPage { buf, .. }
        | Page::DictionaryPage { buf, .. }
        | Page::DataPageV2 { buf, is_compressed: true, .. }) = page
        else {
            return Ok(());
        };
        let (levels, data) = buf.split_at_checked(levels).ok_or_else(wrong_size)?;
        let mut all = levels.to_vec();
        let left = bytes.checked_sub(levels.len()).ok_or_else(wrong_size)?;
        // One byte more shows that the page is larger.
        let limit = left as u64 + 1;
        match self.chunk.compression() {
            _ if left == 0 => Ok(0),
            Compression::GZIP(_) => MultiGzDecoder::new(data).take(limit).read_to_end(&mut all),
            Compression::BROTLI(_) => {
                Decompressor::new(data, WINDOW_BYTES).take(limit).read_to_end(&mut all)
            }
            _ => return Ok(()),
        }?;
        if all.len() != bytes {
            return Err(wrong_size());
        }
        *buf = all.into();
        Ok(())
    }

    /// Fails if the parquet crate would panic, or allocate more memory than there is, or than the
    /// values of the page can take.
    fn check(&mut self, page: &Page) -> Result<()> {
        let values = page.num_values() as usize;
        let most = match page {
            // The texts of a dictionary have a length of four bytes, and numbers have as many.
            Page::DictionaryPage { buf, .. } => buf.len() / 4,
            _ => usize::try_from(self.chunk.num_values())?,
        };
        if values > most {
            return Err(wrong_count());
        }
        let lists = match (page, page.encoding()) {
            (Page::DictionaryPage { .. }, _) => {
                self.has_dictionary = true;
                0
            }
            (_, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) if !self.has_dictionary => {
                return Err(general("the dictionary of a page is missing"));
            }
            (_, Encoding::DELTA_LENGTH_BYTE_ARRAY) => 1,
            (_, Encoding::DELTA_BYTE_ARRAY) if shares_prefixes(&self.chunk) => 2,
            (_, Encoding::DELTA_BYTE_ARRAY) => {
                return Err(general("the encoding of a page is not listed"));
            }
            _ => return Ok(()),
        };
        memory::check(values.saturating_mul(VALUE_BYTES)).map_err(io::Error::from)?;
        // Where rows may be null, pages have levels.
        let has_levels = self.chunk.column_descr().max_def_level() > 0;
        let levels = levels_bytes(page, has_levels);
        let mut rest = levels.and_then(|levels| page.buffer().get(levels..)).unwrap_or_default();
        (0..lists).try_for_each(|_| skip_deltas(&mut rest, u64::from(page.num_values())))
    }
}

pub(crate) fn general(reason: impl Into<String>) -> ParquetError {
    ParquetError::General(reason.into())
}

/// The error for a reason with a hint.
pub(super) fn because(reason: Reason) -> ParquetError {
    ParquetError::External(Box::new(reason))
}

/// Whether a text may share a prefix with the one before, and so be much longer than its stored bytes.
pub(super) fn shares_prefixes(chunk: &ColumnChunkMetaData) -> bool {
    chunk.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY)
}

fn wrong_size() -> ParquetError {
    general("a page does not have the size that its header states")
}

fn wrong_count() -> ParquetError {
    general("a page states more values than it has")
}

/// The bytes of the levels in front of the values of a page, which is decompressed in version 1 of
/// data pages; `None` if the page is shorter.
fn levels_bytes(page: &Page, has_levels: bool) -> Option<usize> {
    match page {
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            usize::try_from(def_levels_byte_len.checked_add(*rep_levels_byte_len)?).ok()
        }
        Page::DataPage { buf, num_values, def_level_encoding, .. } if has_levels => {
            if *def_level_encoding != Encoding::RLE {
                return Some(num_values.div_ceil(8) as usize);
            }
            Some(4 + u32::from_le_bytes(*buf.first_chunk()?) as usize)
        }
        _ => Some(0),
    }
}

/// Skip numbers in a delta encoding. Fails if it states more than `most` of them, or if the bytes
/// end before.
///
/// A head of four numbers (the length of a block, the number of its parts, how many numbers follow,
/// and the first of them) precedes the blocks: in each, the smallest difference, the width in bits
/// of each part, and the parts. Source: the specification of parquet, `Encodings.md`.
fn skip_deltas(bytes: &mut &[u8], most: u64) -> Result<()> {
    let number =
        |bytes: &mut _| varint(bytes).ok_or_else(|| general("a number of a page is damaged"));
    let (block, parts, count) = (number(bytes)?, number(bytes)?, number(bytes)?);
    number(bytes)?;
    let part = block.checked_div(parts).unwrap_or(0);
    if count > most || part == 0 {
        return Err(wrong_count());
    }
    let mut left = count.saturating_sub(1);
    while left > 0 {
        number(bytes)?;
        for &width in take(bytes, parts)? {
            if left > 0 {
                take(bytes, part.saturating_mul(u64::from(width)) / 8)?;
            }
            left = left.saturating_sub(part);
        }
    }
    Ok(())
}

/// The message for a page of `bytes` bytes if the limit is `most`.
fn too_large(bytes: usize, most: usize) -> Reason {
    let (bytes, most) = (Grouped(bytes), Grouped(most));
    Reason::new(format!("the page has {bytes} bytes, more than the limit of {most}"), SMALLER_PAGES)
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some((_, bytes)) = self.peek()? else { return Ok(None) };
        if bytes > self.most_bytes {
            return Err(because(too_large(bytes, self.most_bytes)));
        }
        // Both the compressed and the decompressed page are in memory.
        memory::check(bytes.saturating_mul(2)).map_err(io::Error::from)?;
        let mut page = self.reader.get_next_page()?;
        self.advance();
        if let Some(page) = &mut page {
            self.decompress(page, bytes)?;
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.peek()?.map(|(page, _)| page))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.peek()?;
        self.reader.skip_next_page()?;
        self.advance();
        Ok(())
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.peek()?;
        self.reader.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// The next bytes. Fails if there are fewer.
fn take<'b>(bytes: &mut &'b [u8], count: u64) -> Result<&'b [u8]> {
    bytes.split_off(..usize::try_from(count)?).ok_or_else(wrong_count)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Counts its reads.
    struct InMemory(io::Cursor<Vec<u8>>, Arc<AtomicU64>);

    impl Read for InMemory {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.read(buffer)
        }
    }

    impl Seek for InMemory {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_window_returns_the_bytes_of_its_source_with_few_reads() {
        let bytes: Vec<u8> =
            (0..3_000_000_u32).map(|n| n.wrapping_mul(97).to_le_bytes()[1]).collect();
        let reads = Arc::default();
        let object = InMemory(io::Cursor::new(bytes.clone()), Arc::clone(&reads));
        let source = TableSource::windowed(Box::new(object), 3_000_000);
        for start in (0..3_000_000).step_by(7919) {
            let mut some = vec![0; 100.min(bytes.len() - start)];
            let mut filled = 0;
            while filled < some.len() {
                filled += source.read_at((start + filled) as u64, &mut some[filled..]).unwrap();
            }
            assert_eq!(some, bytes[start..start + filled]);
        }
        assert!(reads.load(Ordering::Relaxed) <= 4);
        assert_eq!(source.read_at(3_000_000, &mut [0; 9]).unwrap(), 0);
        let mut all = vec![0; 3_000_000];
        assert_eq!(source.read_at(0, &mut all).unwrap(), 3_000_000);
        assert_eq!(all, bytes);
    }
}
