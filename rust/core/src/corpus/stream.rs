//! Decompresses a file while it is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;

use crate::error::{Error, Hint, Reason};
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

    /// Whether an error says that the compressed bytes are cut off or damaged.
    pub(super) fn is_damage(self, error: &io::Error) -> bool {
        use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        let own = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        // zstd reports damage as errors of no particular kind.
        let kinds = [InvalidData, InvalidInput, Other, UnexpectedEof];
        self != Self::None && own.is_none() && kinds.contains(&error.kind())
    }
}

/// The number of compressed bytes that are read at a time.
const PACKED_BYTES: usize = 1 << 17;

/// The binary logarithm of the largest window of zstd, which `zstd --ultra --long=31` writes.
#[cfg(feature = "zstd")]
const MAX_WINDOW_LOG: u32 = if cfg!(target_pointer_width = "64") { 31 } else { 30 };

/// A source of bytes.
pub(crate) type Source = Box<dyn Read + Send>;

/// The decompressed bytes of `source` after the first `start`. The bytes read from it are added to
/// `packed`.
pub(super) fn unpack(
    source: Source,
    compression: Compression,
    start: u64,
    packed: &Arc<AtomicU64>,
) -> io::Result<Source> {
    let source = Tracked { source, read: Arc::clone(packed) };
    let buffered = |source| BufReader::with_capacity(PACKED_BYTES, source);
    let mut unpacked: Source = match compression {
        Compression::None => Box::new(source),
        Compression::Gzip => Box::new(GzipMembers(Some(GzDecoder::new(buffered(source))))),
        #[cfg(feature = "zstd")]
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(source))?;
            decoder.window_log_max(MAX_WINDOW_LOG)?;
            Box::new(decoder)
        }
        #[cfg(not(feature = "zstd"))]
        Compression::Zstd => {
            return Err(io::Error::other("this build of bytepair does not read zstd"));
        }
    };
    // A compressed stream cannot be entered in the middle, so what comes before the start is
    // decompressed and dropped.
    io::copy(&mut unpacked.by_ref().take(start), &mut io::sink())?;
    Ok(unpacked)
}

/// Append `most` bytes, or fewer at the end; returns how many.
pub(crate) fn fill(source: &mut impl Read, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    memory::reserve(bytes, most)?;
    source.take(most as u64).read_to_end(bytes)
}

/// The rest of the members of a gzip file; `None` after the last one, or once reading has failed.
/// Zeros after a member, with which tapes and blocks are filled, are skipped, as `gzip` does.
struct GzipMembers(Option<GzipMember>);

type GzipMember = GzDecoder<BufReader<Tracked>>;

/// The next member after one that was read to its end.
fn next_member(member: GzipMember) -> io::Result<Option<GzipMember>> {
    let mut packed = member.into_inner();
    loop {
        let bytes = packed.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let (is_end, is_member) = (bytes.is_empty(), zeros < bytes.len());
        packed.consume(zeros);
        if is_end || is_member {
            return Ok(is_member.then(|| GzDecoder::new(packed)));
        }
    }
}

impl Read for GzipMembers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(mut member) = self.0.take() {
            let count = member.read(buffer);
            if buffer.is_empty() || !matches!(count, Ok(0)) {
                self.0 = Some(member);
                return count;
            }
            self.0 = next_member(member)?;
        }
        Ok(0)
    }
}

/// A source, and a sum to which the number of bytes read from it is added.
struct Tracked {
    source: Source,
    read: Arc<AtomicU64>,
}

impl Read for Tracked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

// ---------------------------------------------------------------------------- stand-ins
//
// What often stands where a data file should be: a pointer of Git LFS, or a page of HTML.

/// The first bytes of a pointer of Git LFS.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// How a page of HTML begins, in lower case.
const HTML: [&[u8]; 2] = [b"<!doctype html", b"<html"];

/// The number of bytes of a file that are looked at.
const HEAD_BYTES: u64 = 256;

/// Why a file with these first bytes is a pointer of Git LFS and not a text, and what to do.
pub(crate) fn pointer(head: &[u8]) -> Option<Reason> {
    let hint = const { &Hint::new("fetch the file with `git lfs pull`") };
    head.starts_with(LFS)
        .then(|| Reason::new("it is a pointer of Git LFS, not the file itself", hint))
}

/// Why a file with these first bytes is neither parquet, jsonl nor compressed, and what to do.
pub(crate) fn stand_in(head: &[u8]) -> Option<Reason> {
    let start = head.trim_ascii_start();
    let is_html = HTML
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag)));
    pointer(head).or_else(|| {
        let text = "it is a page of HTML, perhaps that of a failed download";
        is_html.then(|| Reason::new(text, const { &Hint::new("download the file again") }))
    })
}

/// [`stand_in`] for the file at a path, if it can be read.
pub(crate) fn stand_in_at(path: &Path) -> Option<Reason> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    stand_in(&head)
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
        let read = Arc::default();
        let mut unpacked = unpack(source, compression, start, &read)?;
        let mut bytes = Vec::new();
        while fill(&mut unpacked, &mut bytes, 7)? == 7 {}
        assert_eq!(read.load(Ordering::Relaxed), packed.len() as u64);
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

    #[test]
    fn zeros_behind_a_member_of_gzip_are_skipped() {
        let zeros = vec![0; 300_000];
        let padded = [gzip(b"one"), zeros.clone()].concat();
        assert_eq!(read(&padded, Compression::Gzip, 0).unwrap(), b"one");
        let between = [gzip(b"one"), zeros.clone(), gzip(b"two"), vec![0]].concat();
        assert_eq!(read(&between, Compression::Gzip, 0).unwrap(), b"onetwo");
        assert!(read(&[gzip(b"one"), vec![0, 1]].concat(), Compression::Gzip, 0).is_err());
        assert!(read(&zeros, Compression::Gzip, 0).is_err());
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn any_window_of_zstd_is_read() {
        for log in [27, 28] {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(log).unwrap();
            encoder.long_distance_matching(true).unwrap();
            encoder.write_all(&b"text ".repeat(1000)).unwrap();
            let packed = encoder.finish().unwrap();
            assert_eq!(read(&packed, Compression::Zstd, 0).unwrap(), b"text ".repeat(1000));
        }
    }

    #[test]
    fn stand_ins_are_known_by_their_first_bytes() {
        let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n";
        assert!(pointer(lfs).is_some_and(|why| why.to_string().contains("git lfs pull")));
        assert_eq!(stand_in(lfs), pointer(lfs));
        for page in [&b"\n <!DOCTYPE html><p>"[..], b"<HTML>", b"<html lang=en>"] {
            assert!(stand_in(page).is_some_and(|why| why.text().contains("HTML")));
            assert_eq!(pointer(page), None);
        }
        assert_eq!(stand_in(b"{\"text\": \"<html>\"}"), None);
        assert_eq!(stand_in_at(Path::new("/no/such/file")), None);
    }
}
