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

/// Bytes that can be read from any offset.
pub trait ReadAt: Send + Sync {
    /// The number of bytes.
    fn size(&self) -> u64;

    /// Read bytes from `offset` on into `buffer`; returns how many were read, 0 at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A local file.
struct LocalFile {
    size: u64,
    file: Mutex<File>,
}

impl ReadAt for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = lock(&self.file);
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }
}

/// Reads a source in windows of a megabyte, because each of its reads is expensive.
pub struct Windowed<S> {
    source: S,
    /// The offset of the window, and its bytes.
    window: Mutex<(u64, Vec<u8>)>,
}

impl<S: ReadAt> Windowed<S> {
    /// Read `source` through a window.
    pub fn new(source: S) -> Self {
        Self { source, window: Mutex::default() }
    }
}

impl<S: ReadAt> ReadAt for Windowed<S> {
    fn size(&self) -> u64 {
        self.source.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut window = lock(&self.window);
        let within = |window: &(u64, Vec<u8>)| {
            let start = usize::try_from(offset.checked_sub(window.0)?).ok()?;
            window.1.get(start..).filter(|bytes| !bytes.is_empty()).map(|_| start)
        };
        if within(&window).is_none() {
            // A read as large as the window gains nothing from a copy through it.
            if buffer.len() >= WINDOW_BYTES {
                return self.source.read_at(offset, buffer);
            }
            let (start, bytes) = &mut *window;
            *start = offset;
            bytes.resize(WINDOW_BYTES, 0);
            let read = self.source.read_at(offset, bytes);
            bytes.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        let Some(start) = within(&window) else { return Ok(0) };
        let count = buffer.len().min(window.1.len() - start);
        buffer[..count].copy_from_slice(&window.1[start..start + count]);
        Ok(count)
    }
}

/// The location of a parquet file.
#[derive(Clone)]
pub(crate) enum TablePlace {
    /// A local file. Each reader opens it again, so that only files being read are open.
    Path(PathBuf),
    /// An object of the caller.
    Object(Arc<dyn ReadAt>),
}

impl TablePlace {
    pub(crate) fn open(&self) -> io::Result<TrackedSource> {
        let source: Arc<dyn ReadAt> = match self {
            Self::Object(source) => Arc::clone(source),
            Self::Path(path) => {
                let file = File::open(path)?;
                Arc::new(LocalFile { size: file.metadata()?.len(), file: Mutex::new(file) })
            }
        };
        Ok(TrackedSource { source, last: AtomicU64::new(0) })
    }
}

/// A source for the parquet crate, which records the offset of its last read.
pub(crate) struct TrackedSource {
    source: Arc<dyn ReadAt>,
    last: AtomicU64,
}

/// Reads a source from an offset on.
pub(crate) struct OffsetReader {
    source: Arc<dyn ReadAt>,
    offset: u64,
}

impl TrackedSource {
    /// Read again from the offset of the last read.
    pub(super) fn last_read(&self) -> BufReader<OffsetReader> {
        self.reader(self.last.load(Ordering::Relaxed))
    }

    fn reader(&self, offset: u64) -> BufReader<OffsetReader> {
        BufReader::new(OffsetReader { source: Arc::clone(&self.source), offset })
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
        self.source.size()
    }
}

impl ChunkReader for TrackedSource {
    type T = BufReader<OffsetReader>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.last.store(start, Ordering::Relaxed);
        Ok(self.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let eof = || ParquetError::EOF("a page exceeds the end of the file".to_owned());
        // The header may claim any length.
        if start.saturating_add(length as u64) > self.source.size() {
            return Err(eof());
        }
        let mut bytes = memory::zeros(length).map_err(io::Error::from)?;
        let mut reader = OffsetReader { source: Arc::clone(&self.source), offset: start };
        reader.read_exact(&mut bytes)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    struct InMemory(Vec<u8>, AtomicU64);

    impl ReadAt for InMemory {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let rest = self.0.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }
    }

    #[test]
    fn a_window_returns_the_bytes_of_its_source_with_few_reads() {
        let bytes: Vec<u8> =
            (0..3_000_000_u32).map(|n| n.wrapping_mul(97).to_le_bytes()[1]).collect();
        let source = Windowed::new(InMemory(bytes.clone(), AtomicU64::new(0)));
        for start in (0..3_000_000).step_by(7919) {
            let mut some = vec![0; 100.min(bytes.len() - start)];
            let mut filled = 0;
            while filled < some.len() {
                filled += source.read_at((start + filled) as u64, &mut some[filled..]).unwrap();
            }
            assert_eq!(some, bytes[start..start + filled]);
        }
        assert!(source.source.1.load(Ordering::Relaxed) <= 4);
        assert_eq!(source.read_at(3_000_000, &mut [0; 9]).unwrap(), 0);
        let mut all = vec![0; 3_000_000];
        assert_eq!(source.read_at(0, &mut all).unwrap(), 3_000_000);
        assert_eq!(all, bytes);
    }
}
