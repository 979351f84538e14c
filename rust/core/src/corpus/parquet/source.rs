//! The source of the bytes of a parquet file: a local file, or an object of the caller.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

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
