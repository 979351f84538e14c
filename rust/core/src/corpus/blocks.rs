//! Reads files as blocks of their decompressed bytes, in order. A thread works on one block at a
//! time.
//!
//! A block of lines ends at the end of a line. A block of a text file ends where the text may be
//! cut without changing its pretokens, or else with the file. The boundaries of blocks do not
//! depend on where reading began, so the index of a block identifies it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr, memchr_iter, memrchr};

use crate::corpus::jsonl::lines;
use crate::corpus::stream::{self, Compression, Source, stand_in_at};
use crate::error::{Error, FETCH_AGAIN, FETCH_AGAIN_OR_SKIP, NO_HINT, Reason, Result};
use crate::memory;
use crate::parallel::interrupt;
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
    /// Read the decompressed bytes of `source`, or else of the file at the path, and pass them to
    /// `write`, about a megabyte at a time.
    pub fn unpack(
        &self,
        source: Option<Box<dyn io::Read + Send>>,
        mut write: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (unreadable, mut bytes) = (|error| self.unreadable(&error), Vec::new());
        let mut unpacked = self.open(source, 0, &Arc::default()).map_err(unreadable)?;
        while stream::fill(&mut unpacked, &mut bytes, UNPACKED_BYTES).map_err(unreadable)? > 0 {
            write(&bytes)?;
            bytes.clear();
        }
        Ok(())
    }

    /// The decompressed bytes after the first `start`, of `source` or else of the file at the path. The
    /// bytes read from the file are added to `packed`.
    fn open(
        &self,
        source: Option<Source>,
        mut start: u64,
        packed: &Arc<AtomicU64>,
    ) -> io::Result<Source> {
        let source = if let Some(source) = source {
            source
        } else {
            let mut file = File::open(&self.path)?;
            if self.compression == Compression::None && start > 0 {
                packed.fetch_add(file.seek(SeekFrom::Start(start))?, Ordering::Relaxed);
                start = 0;
            }
            Box::new(file)
        };
        stream::unpack(source, self.compression, start, packed)
    }

    /// The error for this file when reading or decompressing it fails.
    fn unreadable(&self, error: &io::Error) -> Error {
        let is_damage = self.compression.is_damage(error);
        let hint = match self.kind {
            _ if !is_damage => NO_HINT,
            FileKind::Text => FETCH_AGAIN,
            FileKind::Jsonl | FileKind::Lines => FETCH_AGAIN_OR_SKIP,
        };
        Error::of_io(error, |_| Error::Document {
            place: self.path.display().to_string(),
            reason: match stand_in_at(&self.path).filter(|_| is_damage) {
                Some(reason) => reason,
                None => Reason::new(format!("it cannot be read: {error}"), hint),
            },
        })
    }
}

/// A position in the files, at the start of a line or of a part of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The largest number of bytes of a line, or of a text that is read as a whole; a longer one is an
    /// error or is skipped.
    pub document_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { block_bytes: 1 << 20, document_bytes: 128_000_000 }
    }
}

/// A part of a file.
#[derive(Debug, Default)]
pub(crate) struct FileBlock {
    /// The position of the block in the corpus. The next block is at least three times the bytes of
    /// this one further, since an invalid byte is replaced by the three bytes of U+FFFD.
    pub(crate) position: u64,
    /// The start of the block in the files, and that of the next one.
    pub(crate) start: FilePlace,
    pub(crate) end: FilePlace,
    /// The index of the block in its file.
    pub(crate) unit: u64,
    /// Whether the block is the last of its file.
    pub(crate) is_last: bool,
    /// Whether the block stands for a line or a text that is too long; it then has no bytes.
    pub(crate) is_too_long: bool,
    /// Why the rest of the file after the block cannot be read, if reading goes on nevertheless.
    pub(crate) damage: Option<Reason>,
    /// The number of decompressed bytes of the file that were read so far.
    pub(crate) unpacked: u64,
    /// The decompressed bytes.
    pub(crate) bytes: Vec<u8>,
}

/// Reads files block by block.
#[derive(Default)]
pub(crate) struct BlockReader {
    /// The files.
    pub(crate) files: Vec<CorpusFile>,
    source: Option<Source>,
    bounds: Bounds,
    skips: bool,
    /// The decompressed bytes of the current file that are still to be read, and whether none are left.
    open: Option<Source>,
    is_ended: bool,
    /// Bytes that were read and are not in a block yet.
    rest: Vec<u8>,
    /// The start of the next block, and its other numbers as in `FileBlock`.
    pub(crate) place: FilePlace,
    unit: u64,
    unpacked: u64,
    /// The position of the next block in the corpus.
    pub(crate) position: u64,
    /// The number of bytes read from the files, before decompression.
    pub(crate) packed: Arc<AtomicU64>,
}

impl BlockReader {
    /// Read `files` from `place` on, whose position in the corpus is `position`; the compressed
    /// bytes of the first file come from `source`, if there is one.
    ///
    /// With `skips`, a line that is too long and the damaged rest of a compressed file are skipped: a
    /// block says which line, or what the damage is. Otherwise they are errors.
    pub(crate) fn new(
        files: Vec<CorpusFile>,
        source: Option<Source>,
        (bounds, skips): (Bounds, bool),
        place: FilePlace,
        position: u64,
    ) -> Self {
        Self { files, source, bounds, skips, place, position, ..Self::default() }
    }

    /// The next block; `None` after the last file. Texts are cut at pretoken boundaries of
    /// `splitter`, if there is one. Fails with [`Error::Interrupted`] if this thread has to stop.
    ///
    /// After an error, the next block is the first one of the next file.
    pub(crate) fn next(&mut self, splitter: Option<&Splitter>) -> Result<Option<FileBlock>> {
        if self.place.file >= self.files.len() {
            return Ok(None);
        }
        let mut block = FileBlock {
            position: self.position,
            start: self.place,
            end: self.place,
            unit: self.unit,
            ..FileBlock::default()
        };
        if let Err(error) = self.read(splitter, &mut block) {
            let error = self.files[self.place.file].unreadable(&error);
            self.next_file();
            return Err(error);
        }
        block.unpacked = self.unpacked;
        self.unit += 1;
        // Three positions for each byte, because a byte may be replaced by the three of U+FFFD, and
        // one more, so that an empty block has a position of its own too.
        self.position += 3 * block.bytes.len() as u64 + 1;
        self.place = block.end;
        if block.is_last {
            self.next_file();
        }
        block.end = self.place;
        Ok(Some(block))
    }

    /// Go on with the next file.
    fn next_file(&mut self) {
        (self.open, self.is_ended, self.unit) = (None, false, 0);
        self.rest.clear();
        self.place = FilePlace { file: self.place.file + 1, ..FilePlace::default() };
    }

    /// Read the bytes of a block: a part of a text that ends where the text may be cut, or whole lines;
    /// or the rest of the file.
    fn read(&mut self, splitter: Option<&Splitter>, block: &mut FileBlock) -> io::Result<()> {
        let kind = self.files[self.place.file].kind;
        let is_text = kind == FileKind::Text;
        let cut = self.fill_to_cut(splitter, is_text, block)?;
        if block.is_too_long && !is_text {
            return self.skip_line(block);
        }
        let bytes = &mut block.bytes;
        if block.is_too_long {
            bytes.clear();
        } else if block.damage.is_some() && !is_text {
            bytes.truncate(cut.unwrap_or(0)); // the last line is incomplete
        } else if let Some(cut) = cut.filter(|_| !self.is_ended) {
            memory::extend(&mut self.rest, &bytes[cut..])?;
            bytes.truncate(cut);
        }
        block.is_last = self.is_ended || block.is_too_long;
        let place = &mut block.end;
        place.byte += bytes.len() as u64;
        if !is_text {
            let lines = lines(bytes, block.start.byte == 0, kind == FileKind::Lines);
            place.row += lines.count() as u64;
            place.line += memchr_iter(b'\n', bytes).count() as u64;
        }
        Ok(())
    }

    /// Read bytes until the block may be cut, is too long, or ends with the file. Returns the last cut.
    fn fill_to_cut(
        &mut self,
        splitter: Option<&Splitter>,
        is_text: bool,
        block: &mut FileBlock,
    ) -> io::Result<Option<usize>> {
        let bytes = &mut block.bytes;
        memory::extend(bytes, &self.rest)?;
        self.rest.clear();
        let mut searched = 0;
        loop {
            block.damage = self.fill(bytes)?;
            let cut = if is_text {
                splitter.and_then(|splitter| last_cut(splitter, bytes, searched))
            } else {
                memrchr(b'\n', &bytes[searched..]).map(|at| searched + at + 1)
            };
            block.is_too_long = cut.is_none() && bytes.len() > self.bounds.document_bytes;
            if cut.is_some() || block.is_too_long || self.is_ended {
                return Ok(cut);
            }
            // The next search stops here, so a text without a cut is not searched again and again. It
            // overlaps by a window, because a cut at the end needs the character after it.
            searched = bytes.len().saturating_sub(CUT_WINDOW_BYTES);
        }
    }

    /// Skip the rest of a line that is too long and of which the block has the start. If nothing is
    /// skipped, the block becomes the last of the file.
    fn skip_line(&mut self, block: &mut FileBlock) -> io::Result<()> {
        let place = &mut block.end;
        place.byte += std::mem::take(&mut block.bytes).len() as u64;
        (place.line, place.row) = (place.line + 1, place.row + 1);
        // Only a part of it is in memory, so a line of any length takes little.
        let mut end = None;
        while end.is_none() && self.skips && !self.is_ended {
            self.rest.clear();
            let mut bytes = std::mem::take(&mut self.rest);
            block.damage = self.fill(&mut bytes)?;
            end = memchr(b'\n', &bytes).map(|at| at + 1);
            self.rest = bytes;
            place.byte += end.unwrap_or(self.rest.len()) as u64;
        }
        self.rest.drain(..end.unwrap_or(self.rest.len()));
        block.is_last = !self.skips || (self.is_ended && self.rest.is_empty());
        Ok(())
    }

    /// Read further bytes of the current file, and append them to `bytes`. Returns the damage because of
    /// which the file ends there, if it is skipped.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Reason>> {
        interrupt::poll_now()?;
        let file = &self.files[self.place.file];
        if self.open.is_none() {
            self.unpacked = self.place.byte;
            self.open = Some(file.open(self.source.take(), self.unpacked, &self.packed)?);
        }
        let source = self.open.as_mut().expect("opened above");
        let (most, before) = (self.bounds.block_bytes.max(1), bytes.len());
        let filled = if self.is_ended { Ok(0) } else { stream::fill(source, bytes, most) };
        let damage = match filled {
            Ok(_) => None,
            // What was decompressed before the damage has been appended.
            Err(error) if self.skips && file.compression.is_damage(&error) => {
                Some(Reason::new(error.to_string(), FETCH_AGAIN))
            }
            Err(error) => return Err(error),
        };
        let count = bytes.len() - before;
        // The source returns fewer bytes than asked for only at its end.
        self.is_ended = count < most || damage.is_some();
        self.unpacked += count as u64;
        Ok(damage)
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
