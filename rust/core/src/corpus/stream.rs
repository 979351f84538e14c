//! A file in, its decompressed bytes out.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::memory;

/// How the bytes of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The file is not compressed.
    None,
    /// One or more members of gzip.
    Gzip,
    /// One or more frames of Zstandard; without the feature `zstd`, reading such a file fails.
    Zstd,
}

impl Compression {
    /// The compressions with their names.
    pub const NAMED: [(&str, Self); 2] = [("gzip", Self::Gzip), ("zstd", Self::Zstd)];
}

/// The number of compressed bytes that are read at a time.
const PACKED_BYTES: usize = 1 << 17;

/// The source of the compressed bytes of a file.
pub(crate) type Source = Box<dyn Read + Send>;

/// A file that is being read.
pub(super) struct Stream {
    unpacker: Unpacker,
}

enum Unpacker {
    Plain(Tracked),
    Gzip(Box<MultiGzDecoder<BufReader<Tracked>>>),
    #[cfg(feature = "zstd")]
    Zstd(Box<zstd::stream::read::Decoder<'static, BufReader<Tracked>>>),
}

impl Stream {
    /// Open a file and skip the first `start` bytes of its decompressed content.
    pub(super) fn open(path: &Path, compression: Compression, start: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if compression != Compression::None {
            return Self::new(Box::new(file), compression, start);
        }
        if start > 0 {
            file.seek(SeekFrom::Start(start))?;
        }
        let source = Tracked { source: Box::new(file), read: start };
        Ok(Self { unpacker: Unpacker::Plain(source) })
    }

    /// Read from a source, and skip the first `start` bytes of its decompressed content.
    pub(super) fn new(source: Source, compression: Compression, start: u64) -> io::Result<Self> {
        let source = Tracked { source, read: 0 };
        let packed = |source| BufReader::with_capacity(PACKED_BYTES, source);
        let unpacker = match compression {
            Compression::None => Unpacker::Plain(source),
            Compression::Gzip => Unpacker::Gzip(Box::new(MultiGzDecoder::new(packed(source)))),
            #[cfg(feature = "zstd")]
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(packed(source))?;
                Unpacker::Zstd(Box::new(decoder))
            }
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => {
                return Err(io::Error::other("this build of bytepair does not read zstd"));
            }
        };
        // A compressed stream cannot be entered in the middle, so what comes before the start is
        // decompressed and dropped.
        let mut stream = Self { unpacker };
        io::copy(&mut stream.reader().take(start), &mut io::sink())?;
        Ok(stream)
    }

    fn reader(&mut self) -> &mut dyn Read {
        match &mut self.unpacker {
            Unpacker::Plain(source) => source,
            Unpacker::Gzip(decoder) => decoder,
            #[cfg(feature = "zstd")]
            Unpacker::Zstd(decoder) => decoder,
        }
    }

    /// Append `most` bytes, or fewer at the end; returns how many.
    pub(super) fn fill(&mut self, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        memory::reserve(bytes, most)?;
        self.reader().take(most as u64).read_to_end(bytes)
    }

    /// The number of bytes read from the file, before decompression.
    pub(super) fn packed(&self) -> u64 {
        match &self.unpacker {
            Unpacker::Plain(source) => source.read,
            Unpacker::Gzip(decoder) => decoder.get_ref().get_ref().read,
            #[cfg(feature = "zstd")]
            Unpacker::Zstd(decoder) => decoder.get_ref().get_ref().read,
        }
    }
}

/// A source, and how many bytes were read from it.
struct Tracked {
    source: Source,
    read: u64,
}

impl Read for Tracked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(packed: &[u8], compression: Compression, start: u64) -> io::Result<Vec<u8>> {
        let source = Box::new(io::Cursor::new(packed.to_vec()));
        let mut stream = Stream::new(source, compression, start)?;
        let mut bytes = Vec::new();
        while stream.fill(&mut bytes, 7)? == 7 {}
        assert_eq!(stream.packed(), packed.len() as u64);
        Ok(bytes)
    }

    #[test]
    fn all_members_and_frames_are_read() {
        let plain = b"one two three".repeat(1000);
        assert_eq!(read(&plain, Compression::None, 3).unwrap(), plain[3..]);
        let (first, second) = plain.split_at(5000);
        let packed = [gzip(first), gzip(b""), gzip(second)].concat();
        assert_eq!(read(&packed, Compression::Gzip, 0).unwrap(), plain);
        assert_eq!(read(&packed, Compression::Gzip, 6000).unwrap(), plain[6000..]);
        #[cfg(feature = "zstd")]
        {
            let pack = |bytes| zstd::stream::encode_all(bytes, 1).unwrap();
            let packed = [pack(first), pack(b""), pack(second)].concat();
            assert_eq!(read(&packed, Compression::Zstd, 0).unwrap(), plain);
            assert_eq!(read(&packed, Compression::Zstd, 6000).unwrap(), plain[6000..]);
            assert!(read(&packed[..packed.len() - 1], Compression::Zstd, 0).is_err());
        }
        assert!(read(&packed[..packed.len() - 1], Compression::Gzip, 0).is_err());
        assert!(read(b"not gzip", Compression::Gzip, 0).is_err());
    }
}
