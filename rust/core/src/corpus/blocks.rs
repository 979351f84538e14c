//! Reads files as blocks of their decompressed bytes, in order. A thread works on one block at a
//! time.
//!
//! A block of lines ends at the end of a line. A block of a text file ends where the text may be
//! cut without changing its pretokens, or else with the file. The boundaries of blocks do not
//! depend on where reading began, so the index of a block identifies it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, io};

use memchr::{memchr, memchr_iter, memrchr};

use crate::corpus::jsonl::lines;
use crate::corpus::stream::{Compression, Source, Stream, stand_in_at};
use crate::error::{Error, FETCH_AGAIN, FETCH_AGAIN_OR_SKIP, NO_HINT, Reason, Result};
use crate::memory;
use crate::pretokenize::Splitter;
use crate::text::Text;

/// The search for a cut position goes back by this many bytes at a time.
const CUT_WINDOW_BYTES: usize = 4096;

/// The number of bytes that are decompressed at a time.
const UNPACKED_BYTES: usize = 1 << 20;

/// How the documents of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// The file is one document of plain text.
    Text,
    /// Each line is a JSON object with the document in one of its fields.
    Jsonl,
    /// Each line is a document, unchanged; an empty line is an empty document.
    Lines,
}

impl FileKind {
    /// All kinds with their names.
    pub const NAMED: [(&str, Self); 3] =
        [("text", Self::Text), ("jsonl", Self::Jsonl), ("lines", Self::Lines)];
}

/// A file with documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorpusFile {
    /// The path of the file.
    pub path: PathBuf,
    /// How its documents are stored.
    pub kind: FileKind,
    /// How its bytes are compressed.
    pub compression: Compression,
}

impl CorpusFile {
    /// Read the decompressed bytes of `source`, or else of the file at the path.
    pub fn unpack(&self, source: Option<Box<dyn io::Read + Send>>) -> Result<Unpacking<'_>> {
        let stream = match source {
            Some(source) => Stream::new(source, self.compression, 0),
            None => Stream::open(&self.path, self.compression, 0),
        };
        let stream = stream.map_err(|error| self.unreadable(&error))?;
        Ok(Unpacking { file: self, stream })
    }

    /// The error for this file when reading or decompressing it fails.
    fn unreadable(&self, error: &io::Error) -> Error {
        let path = self.path.display().to_string();
        let hint = match self.kind {
            _ if !self.is_damage(error) => NO_HINT,
            FileKind::Text => FETCH_AGAIN,
            FileKind::Jsonl | FileKind::Lines => FETCH_AGAIN_OR_SKIP,
        };
        Error::of_io(error, |_| Error::Document {
            path,
            line: None,
            reason: match stand_in_at(&self.path).filter(|_| self.is_damage(error)) {
                Some(reason) => reason,
                None => Reason::new(format!("it cannot be read: {error}"), hint),
            },
        })
    }

    /// Whether an error says that the compressed bytes are cut off or damaged.
    fn is_damage(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        let own = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        // zstd reports damage as errors of no particular kind.
        let kinds = [InvalidData, InvalidInput, Other, UnexpectedEof];
        self.compression != Compression::None && own.is_none() && kinds.contains(&error.kind())
    }
}

/// Reads the decompressed bytes of a file.
pub struct Unpacking<'a> {
    file: &'a CorpusFile,
    stream: Stream,
}

impl fmt::Debug for Unpacking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacking").field("file", self.file).finish_non_exhaustive()
    }
}

impl Unpacking<'_> {
    /// The next bytes, about a megabyte; none at the end.
    pub fn next_bytes(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.stream.fill(&mut bytes, UNPACKED_BYTES);
        read.map(|_| bytes).map_err(|error| self.file.unreadable(&error))
    }
}

/// A position in the files, at the start of a line or of a part of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilePlace {
    /// The index of the file.
    pub file: usize,
    /// The offset in the decompressed bytes of the file.
    pub byte: u64,
    /// The number of lines of the file before the position.
    pub line: u64,
    /// The number of documents of the file before the position.
    pub row: u64,
}

/// Bounds on reading files.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// A block has about this many bytes, at least 1.
    pub block_bytes: usize,
    /// A line of more bytes is an error or skipped, as is a text of more bytes that cannot be cut.
    pub document_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { block_bytes: 1 << 20, document_bytes: 128_000_000 }
    }
}

/// A part of a file.
#[derive(Debug)]
pub(crate) struct FileBlock {
    /// The index of the block among all blocks that were read.
    pub(crate) order: u64,
    /// The position of the block in the corpus. The next block is at least three times the bytes of
    /// this one further, since an invalid byte is replaced by the three bytes of U+FFFD.
    pub(crate) position: u64,
    /// The start of the block in the files.
    pub(crate) start: FilePlace,
    /// The index of the block in its file.
    pub(crate) unit: u64,
    /// Whether the block is the last of its file.
    pub(crate) is_last: bool,
    /// Whether the block stands for a line or a text that is too long; it then has no bytes.
    pub(crate) is_too_long: bool,
    /// Why the rest of the file after the block cannot be read, if reading goes on nevertheless.
    pub(crate) damage: Option<Reason>,
    /// The decompressed bytes.
    pub(crate) bytes: Vec<u8>,
}

/// Reads files block by block.
pub(crate) struct BlockReader {
    /// The files.
    pub(crate) files: Vec<CorpusFile>,
    bounds: Bounds,
    /// Whether the blocks before the damage of a compressed file are read.
    keeps_damaged: bool,
    open: Option<OpenFile>,
    /// The start of the next block, and its other numbers as in `FileBlock`.
    pub(crate) place: FilePlace,
    unit: u64,
    /// The index of the next block.
    pub(crate) order: u64,
    /// The position of the next block in the corpus.
    pub(crate) position: u64,
    /// The compressed bytes of the finished files.
    packed: u64,
    /// The files finished since the last call of [`take_unpacked`](Self::take_unpacked).
    finished: Vec<(usize, u64)>,
}

impl BlockReader {
    /// Read `files` from `place` on, whose position in the corpus is `position`.
    pub(crate) fn new(
        files: Vec<CorpusFile>,
        bounds: Bounds,
        place: FilePlace,
        position: u64,
    ) -> Self {
        let (keeps_damaged, open, finished) = (false, None, Vec::new());
        let (unit, order, packed) = (0, 0, 0);
        Self { files, bounds, keeps_damaged, open, place, unit, order, position, packed, finished }
    }

    /// Set whether the lines before the damage of a compressed file are read; the block of the last
    /// ones says what the damage is.
    pub(crate) fn with_damaged_kept(self, keeps_damaged: bool) -> Self {
        Self { keeps_damaged, ..self }
    }

    /// Read one file, whose compressed bytes come from `source`.
    pub(crate) fn from_source(file: CorpusFile, source: Source, bounds: Bounds) -> Result<Self> {
        let stream = Stream::new(source, file.compression, 0);
        let stream = stream.map_err(|error| file.unreadable(&error))?;
        let reader = Self::new(vec![file], bounds, FilePlace::default(), 0);
        Ok(Self { open: Some(OpenFile::new(stream, 0)), ..reader })
    }

    /// The number of bytes read from the files, before decompression.
    pub(crate) fn packed(&self) -> u64 {
        self.packed + self.open.as_ref().map_or(0, |open| open.stream.packed())
    }

    /// The files read since the last call, with their decompressed bytes so far.
    pub(crate) fn take_unpacked(&mut self) -> Vec<(usize, u64)> {
        let open = self.open.as_ref().map(|open| (self.place.file, open.unpacked));
        let finished = std::mem::take(&mut self.finished);
        finished.into_iter().chain(open).collect()
    }

    /// Stop reading: there are no further blocks.
    pub(crate) fn close(&mut self) {
        self.end_file();
        self.place = FilePlace { file: self.files.len(), ..FilePlace::default() };
    }

    /// The next block, in the memory of `bytes`; `None` after the last file. Texts are cut at
    /// pretoken boundaries of `splitter`, if there is one. Fails with [`Error::Interrupted`] soon
    /// after `stop` is set.
    ///
    /// After any other error, the next block is the first one of the next file.
    pub(crate) fn next(
        &mut self,
        splitter: Option<&Splitter>,
        stop: &AtomicBool,
        mut bytes: Vec<u8>,
    ) -> Result<Option<FileBlock>> {
        if self.place.file >= self.files.len() {
            return Ok(None);
        }
        bytes.clear();
        let extent = self.read(splitter, stop, &mut bytes).map_err(|error| {
            let error = self.files[self.place.file].unreadable(&error);
            if error != Error::Interrupted {
                self.next_file();
            }
            error
        })?;
        let block = FileBlock {
            order: self.order,
            position: self.position,
            start: extent.start,
            unit: self.unit,
            is_last: extent.is_last,
            is_too_long: extent.is_too_long,
            damage: self.open.as_mut().and_then(|open| open.damage.take()),
            bytes,
        };
        // Three positions for each byte, because a byte may be replaced by the three of U+FFFD, and
        // one more, so that an empty block has a position of its own too.
        self.order += 1;
        self.unit += 1;
        self.position += 3 * block.bytes.len() as u64 + 1;
        if block.is_last {
            self.next_file();
        }
        Ok(Some(block))
    }

    /// Read a block into `bytes`.
    fn read(
        &mut self,
        splitter: Option<&Splitter>,
        stop: &AtomicBool,
        bytes: &mut Vec<u8>,
    ) -> io::Result<BlockExtent> {
        let file = &self.files[self.place.file];
        let open = match &mut self.open {
            Some(open) => open,
            open => open.insert(OpenFile::open(file, self.place.byte)?),
        };
        let file_of_damage = self.keeps_damaged.then_some(file);
        let how = &Filling { bounds: &self.bounds, stop, file_of_damage };
        let place = &mut self.place;
        match file.kind {
            FileKind::Text => open.text(place, splitter, how, bytes),
            FileKind::Jsonl => open.lines(place, false, how, bytes),
            FileKind::Lines => open.lines(place, true, how, bytes),
        }
    }

    fn end_file(&mut self) {
        let open = self.open.take();
        self.finished.extend(open.map(|open| (self.place.file, open.unpacked)));
    }

    fn next_file(&mut self) {
        self.packed = self.packed();
        self.end_file();
        self.unit = 0;
        self.place = FilePlace { file: self.place.file + 1, ..FilePlace::default() };
    }
}

/// The bounds and the stop flag for reading more of a file.
struct Filling<'a> {
    bounds: &'a Bounds,
    stop: &'a AtomicBool,
    /// The file, if its damage is recorded instead of returned.
    file_of_damage: Option<&'a CorpusFile>,
}

/// A block except for its bytes and its indices.
struct BlockExtent {
    start: FilePlace,
    is_too_long: bool,
    is_last: bool,
}

/// A file that is being read.
struct OpenFile {
    stream: Stream,
    /// The number of decompressed bytes that were read.
    unpacked: u64,
    /// Bytes that were read and are not in a block yet.
    rest: Vec<u8>,
    /// Whether the file was read to its end.
    is_ended: bool,
    /// Why the file ends before its end, until it is passed on with a block.
    damage: Option<Reason>,
    /// The bytes read so far of a line that is too long and must be skipped; 0 if there is none.
    long_bytes: u64,
}

impl OpenFile {
    fn open(file: &CorpusFile, start: u64) -> io::Result<Self> {
        Ok(Self::new(Stream::open(&file.path, file.compression, start)?, start))
    }

    fn new(stream: Stream, unpacked: u64) -> Self {
        let (rest, is_ended, damage, long_bytes) = (Vec::new(), false, None, 0);
        Self { stream, unpacked, rest, is_ended, damage, long_bytes }
    }

    /// Read further bytes and append them to `bytes`.
    fn fill(&mut self, bytes: &mut Vec<u8>, fill: &Filling<'_>) -> io::Result<()> {
        if fill.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
        let (most, before) = (fill.bounds.block_bytes.max(1), bytes.len());
        let filled = if self.is_ended { Ok(0) } else { self.stream.fill(bytes, most) };
        if let Err(error) = filled {
            if !fill.file_of_damage.is_some_and(|file| file.is_damage(&error)) {
                return Err(error);
            }
            // What was decompressed before the damage has been appended.
            self.damage = Some(Reason::new(error.to_string(), FETCH_AGAIN));
        }
        let count = bytes.len() - before;
        // The stream returns fewer bytes than asked for only at its end.
        self.is_ended = count < most || self.damage.is_some();
        self.unpacked += count as u64;
        Ok(())
    }

    /// Read the next part of a text, which ends where the text may be cut.
    fn text(
        &mut self,
        place: &mut FilePlace,
        splitter: Option<&Splitter>,
        fill: &Filling<'_>,
        bytes: &mut Vec<u8>,
    ) -> io::Result<BlockExtent> {
        memory::extend(bytes, &self.rest)?;
        self.rest.clear();
        let (most, mut searched) = (fill.bounds.document_bytes, 0);
        loop {
            self.fill(bytes, fill)?;
            // A text that ends within the bound needs no cut.
            let is_needed = !self.is_ended || bytes.len() > most;
            let cut = splitter.filter(|_| is_needed).and_then(|s| last_cut(s, bytes, searched));
            let is_too_long = cut.is_none() && bytes.len() > most;
            if is_too_long {
                bytes.clear();
            } else if let Some(cut) = cut.filter(|_| !self.is_ended) {
                memory::extend(&mut self.rest, &bytes[cut..])?;
                bytes.truncate(cut);
            } else if !self.is_ended {
                // The next search stops here, so a text without a cut is not searched again and
                // again. It overlaps by a window, because a cut at the end needs the character
                // after it.
                searched = bytes.len().saturating_sub(CUT_WINDOW_BYTES);
                continue;
            }
            let (start, is_last) = (*place, self.is_ended || is_too_long);
            place.byte += bytes.len() as u64;
            return Ok(BlockExtent { start, is_too_long, is_last });
        }
    }

    /// Read the next whole lines.
    fn lines(
        &mut self,
        place: &mut FilePlace,
        with_blank: bool,
        fill: &Filling<'_>,
        bytes: &mut Vec<u8>,
    ) -> io::Result<BlockExtent> {
        if self.long_bytes > 0 {
            self.skip_line(place, fill)?;
        }
        memory::extend(bytes, &self.rest)?;
        self.rest.clear();
        // What was read with the end of a line that is too long may hold whole lines, so the first
        // search is over all bytes.
        let mut searched = 0;
        loop {
            self.fill(bytes, fill)?;
            let cut = memrchr(b'\n', &bytes[searched..]).map(|at| searched + at + 1);
            searched = bytes.len();
            let is_too_long = cut.is_none() && bytes.len() > fill.bounds.document_bytes;
            if let Some(cut) = cut {
                memory::extend(&mut self.rest, &bytes[cut..])?;
                bytes.truncate(cut);
            } else if !is_too_long && !self.is_ended {
                continue;
            }
            let start = *place;
            if is_too_long {
                self.long_bytes = bytes.len() as u64;
                bytes.clear();
            } else if self.damage.is_some() {
                // The last line is incomplete.
                self.rest.clear();
                bytes.truncate(cut.unwrap_or(0));
            }
            place.byte += bytes.len() as u64;
            place.row += lines(bytes, start.byte == 0, with_blank).count() as u64;
            place.line += memchr_iter(b'\n', bytes).count() as u64;
            let is_last = self.is_ended && self.rest.is_empty() && !is_too_long;
            return Ok(BlockExtent { start, is_too_long, is_last });
        }
    }

    /// Skip the rest of a line that is too long. `place` advances when the end of the line was
    /// read.
    fn skip_line(&mut self, place: &mut FilePlace, fill: &Filling<'_>) -> io::Result<()> {
        let mut rest = std::mem::take(&mut self.rest);
        let end = loop {
            match memchr(b'\n', &rest) {
                Some(end) => break end + 1,
                None if self.is_ended => break rest.len(),
                // Only the number of bytes is kept, so a line of any length takes little memory.
                None => self.long_bytes += rest.len() as u64,
            }
            rest.clear();
            self.fill(&mut rest, fill)?;
        };
        place.byte += std::mem::take(&mut self.long_bytes) + end as u64;
        (place.line, place.row) = (place.line + 1, place.row + 1);
        rest.drain(..end);
        self.rest = rest;
        Ok(())
    }
}

/// A position after `searched` at which the text may be cut, close to the last one, if there is
/// any.
fn last_cut(splitter: &Splitter, bytes: &[u8], searched: usize) -> Option<usize> {
    let mut near = bytes.len();
    while near > searched {
        near = near.saturating_sub(CUT_WINDOW_BYTES).max(searched);
        let cut = splitter.cut_text(&Text::Bytes(bytes), near);
        if cut.is_some() {
            return cut;
        }
    }
    None
}
