//! The source of the bytes of a parquet file: a local file, or an object of the caller.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::basic::{Encoding, PageType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::error::{Grouped, Reason, SMALLER_PAGES};
use crate::memory;
use crate::parallel::lock;

/// The number of bytes that are read at once from a caller's object, which may be a remote file.
const WINDOW_BYTES: usize = 1 << 20;

/// The same for a local file, of which the headers of pages are read one by one.
const LOCAL_BYTES: usize = 1 << 13;

/// A file, or an object of the caller that reads like one.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

type FileBox = Box<dyn ReadSeek>;

/// A file that several readers share.
pub(crate) struct SharedFile {
    size: u64,
    /// The offset of the next byte, unless the last read failed, and the file. Its buffer serves
    /// reads that are close to each other; a large read goes around it.
    file: Mutex<(Option<u64>, BufReader<FileBox>)>,
}

impl SharedFile {
    /// An object of the caller, each of whose reads is expensive.
    pub(crate) fn windowed(file: FileBox, size: u64) -> Self {
        Self::new(file, size, WINDOW_BYTES)
    }

    fn new(file: FileBox, size: u64, buffer_bytes: usize) -> Self {
        Self { size, file: Mutex::new((None, BufReader::with_capacity(buffer_bytes, file))) }
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
}

/// The location of a parquet file.
#[derive(Clone)]
pub(crate) enum TablePlace {
    /// A local file. Each reader opens it again, so that only files being read are open.
    Path(PathBuf),
    /// An object of the caller.
    Object(Arc<SharedFile>),
}

impl TablePlace {
    pub(crate) fn open(&self) -> io::Result<TrackedSource> {
        let source = match self {
            Self::Object(source) => Arc::clone(source),
            Self::Path(path) => {
                let file = File::open(path)?;
                let size = file.metadata()?.len();
                Arc::new(SharedFile::new(Box::new(file), size, LOCAL_BYTES))
            }
        };
        Ok(TrackedSource { source, last: AtomicU64::new(0) })
    }
}

/// A source for the parquet crate, which records the offset of its last read.
pub(crate) struct TrackedSource {
    source: Arc<SharedFile>,
    last: AtomicU64,
}

/// Reads a source from an offset on.
pub(crate) struct OffsetReader {
    source: Arc<SharedFile>,
    offset: u64,
}

impl TrackedSource {
    fn reader(&self, offset: u64) -> OffsetReader {
        OffsetReader { source: Arc::clone(&self.source), offset }
    }
}

impl Read for OffsetReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read_at(self.offset, buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Length for TrackedSource {
    fn len(&self) -> u64 {
        self.source.size
    }
}

impl ChunkReader for TrackedSource {
    type T = OffsetReader;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.last.store(start, Ordering::Relaxed);
        Ok(self.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let eof = || ParquetError::EOF("a page exceeds the end of the file".to_owned());
        // The header may claim any length.
        if start.saturating_add(length as u64) > self.source.size {
            return Err(eof());
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
// not return the size of a page before decompressing it. But the last offset at which it reads is
// the start of the header of the page, and the header contains the size.

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
        let mut header = self.file.reader(self.file.last.load(Ordering::Relaxed));
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

#[cfg(test)]
mod tests {
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
        let source = SharedFile::windowed(Box::new(object), 3_000_000);
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
