//! Divides blocks into documents: concatenated valid UTF-8, with the end and the row of each
//! document.

#[cfg(feature = "parquet")]
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::corpus::blocks::{BlockReader, Bounds, CorpusFile, FileBlock, FileKind, FilePlace};
use crate::corpus::jsonl::{self, LineError, Surrogates};
use crate::corpus::stream::{pointer, stand_in};
use crate::error::{DIVIDE, Error, Grouped, OTHER_COLUMN, REPAIR, Reason, Result};
use crate::memory;
use crate::text::{count_chars, first_chars, from_utf8};

/// What to do with a document that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// Fail.
    #[default]
    Strict,
    /// Replace invalid UTF-8 by U+FFFD; fail for any other reason.
    Replace,
    /// Skip the document.
    Skip,
}

impl OnError {
    /// All modes with their names, the default first.
    pub const NAMED: [(&str, Self); 3] =
        [("strict", Self::Strict), ("replace", Self::Replace), ("skip", Self::Skip)];
}

/// How documents are read.
#[derive(Debug, Clone, Default)]
pub struct DocumentOptions {
    /// The field of a JSON object that holds the text.
    pub field: String,
    /// What to do with a document that cannot be read.
    pub on_error: OnError,
    /// At most this many characters of each document are read.
    pub doc_cap: Option<usize>,
    /// The bounds on memory.
    pub bounds: Bounds,
}

/// A range of skipped documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRows {
    /// The index of the file.
    pub file: usize,
    /// The first skipped row of the file.
    pub row: u64,
    /// The number of skipped rows; 0 if it is unknown: the rest of the file, which is damaged.
    pub rows: u64,
    /// Why they were skipped, and what to do about it.
    pub reason: Reason,
}

/// Consecutive documents of a file.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    /// The index of the file.
    pub file: usize,
    /// The index of the block, or of the row group, in the file.
    pub unit: u64,
    /// The row of the first document, skipped or not.
    pub first_row: u64,
    /// The concatenated texts; valid UTF-8.
    pub bytes: Vec<u8>,
    /// The end of each text.
    pub ends: Vec<usize>,
    /// The skipped documents in this range of rows; they have no text in `bytes` and `ends`.
    pub skipped: Vec<SkippedRows>,
    /// The number of documents that have a text, even if it is empty.
    with_text: usize,
    /// The keys of the first object of the file, if it does not have the field.
    keys: Vec<String>,
    /// Whether the text continues a document that began in an earlier block.
    pub(crate) is_continued: bool,
    /// The memory of the last block, for reuse.
    block: Vec<u8>,
}

impl Documents {
    /// Replace these documents by those of a block, and take its bytes.
    pub(crate) fn read(
        &mut self,
        block: &mut FileBlock,
        file: &CorpusFile,
        options: &DocumentOptions,
    ) -> Result<()> {
        self.bytes.clear();
        self.ends.clear();
        self.skipped.clear();
        self.with_text = 0;
        self.keys.clear();
        (self.file, self.unit, self.first_row) = (block.start.file, block.unit, block.start.row);
        self.is_continued = file.kind == FileKind::Text && block.start.byte > 0;
        match file.kind {
            FileKind::Text => self.read_text(block, file, options)?,
            FileKind::Jsonl | FileKind::Lines => self.read_lines(block, file, options)?,
        }
        if let Some(damage) = block.damage.take() {
            let row = self.first_row + (self.ends.len() + self.skipped.len()) as u64;
            let text = format!("the rest of the file cannot be read: {}", damage.text());
            let reason = Reason::new(text, damage.hint);
            memory::push(&mut self.skipped, SkippedRows { file: self.file, row, rows: 0, reason })?;
        }
        self.block = std::mem::take(&mut block.bytes);
        if let Some(most) = options.doc_cap {
            self.cap(most);
        }
        Ok(())
    }

    /// Memory for the next block.
    pub(crate) fn take_memory(&mut self, bounds: &Bounds) -> Vec<u8> {
        let most = 4 * bounds.block_bytes;
        // One unusually large block does not hold its memory to the end.
        for memory in [&mut self.bytes, &mut self.block] {
            if memory.capacity() > most {
                *memory = Vec::new();
            }
        }
        std::mem::take(&mut self.block)
    }

    /// The texts, with the start of each in [`bytes`](Self::bytes).
    pub fn texts(&self) -> Result<impl Iterator<Item = (usize, &str)>> {
        let wrong = |at| Error::TextNotUtf8 { document: 0, at };
        let text = from_utf8(&self.bytes).map_err(|error| wrong(error.valid_up_to()))?;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        Ok(spans.filter_map(|(start, &end)| Some((start, text.get(start..end)?))))
    }

    /// The start of each text, and the end of the last one.
    pub fn offsets(&self) -> Result<Vec<i64>> {
        let ends = self.ends.iter().map(|&end| i64::try_from(end).unwrap_or(i64::MAX));
        memory::collect(std::iter::once(0).chain(ends))
    }

    fn read_text(
        &mut self,
        block: &mut FileBlock,
        file: &CorpusFile,
        options: &DocumentOptions,
    ) -> Result<()> {
        let path = || file.path.display().to_string();
        let wrong = |reason| Error::Document { path: path(), line: None, reason };
        if block.is_too_long {
            let reason = longer_than("document", options.bounds.document_bytes);
            return self.skip_or_fail(0, reason, options.on_error, wrong);
        }
        if block.damage.is_some() {
            return Ok(()); // the document is incomplete
        }
        // The text is the block itself, so it is not copied.
        std::mem::swap(&mut self.bytes, &mut block.bytes);
        if let Some(reason) = pointer(&self.bytes).filter(|_| block.start.byte == 0) {
            self.bytes.clear();
            return self.skip_or_fail(0, reason, options.on_error, wrong);
        }
        if let Err(error) = from_utf8(&self.bytes) {
            let at = error.valid_up_to();
            if options.on_error == OnError::Replace {
                self.replace_from(0)?;
            } else {
                self.bytes.clear();
                let at = usize::try_from(block.start.byte).unwrap_or(usize::MAX).saturating_add(at);
                let wrong = |_| Error::FileNotUtf8 { path: path(), at };
                return self.skip_or_fail(0, not_utf8(at).into(), options.on_error, wrong);
            }
        }
        self.end()
    }

    fn read_lines(
        &mut self,
        block: &FileBlock,
        file: &CorpusFile,
        options: &DocumentOptions,
    ) -> Result<()> {
        let error_at = |line| {
            let (path, line) = (file.path.display().to_string(), Some(block.start.line + line + 1));
            move |reason| Error::Document { path, line, reason }
        };
        if block.is_too_long {
            let reason = longer_than("line", options.bounds.document_bytes);
            return self.skip_or_fail(block.start.row, reason, options.on_error, error_at(0));
        }
        memory::reserve(&mut self.bytes, block.bytes.len())?;
        let is_whole = file.kind == FileKind::Lines;
        let is_first = |row| row == 0 && !is_whole;
        let lines = jsonl::lines(&block.bytes, block.start.byte == 0, is_whole);
        for (row, (index, line)) in (block.start.row..).zip(lines) {
            let start = self.bytes.len();
            match self.read_line(line, is_whole, options) {
                // For the message that no object has the field.
                Ok(()) if is_first(row) && self.with_text == 0 => self.keys = jsonl::keys(line),
                Ok(()) => {}
                Err(LineError::Fatal(error)) => return Err(error),
                Err(LineError::Invalid(reason)) => {
                    if let Some(reason) = stand_in(line).filter(|_| is_first(row)) {
                        let path = file.path.display().to_string();
                        return Err(Error::Document { path, line: None, reason });
                    }
                    // A part of its text may have been appended.
                    self.bytes.truncate(start);
                    self.skip_or_fail(row, reason, options.on_error, error_at(index))?;
                }
            }
        }
        Ok(())
    }

    fn read_line(
        &mut self,
        line: &[u8],
        is_whole: bool,
        options: &DocumentOptions,
    ) -> std::result::Result<(), LineError> {
        let start = self.bytes.len();
        if line.len() > options.bounds.document_bytes {
            let reason = longer_than("line", options.bounds.document_bytes);
            return Err(LineError::Invalid(reason));
        }
        let lossy = options.on_error == OnError::Replace;
        let surrogates = if lossy { Surrogates::Replace } else { Surrogates::Refuse };
        let has_text = if is_whole {
            memory::extend(&mut self.bytes, line)?;
            true
        } else {
            jsonl::read_field(line, options.field.as_bytes(), surrogates, &mut self.bytes)?
        };
        if has_text {
            match from_utf8(&self.bytes[start..]) {
                Ok(_) => {}
                Err(_) if lossy => self.replace_from(start)?,
                Err(error) => {
                    let reason = Reason::new(not_utf8(error.valid_up_to()), REPAIR);
                    return Err(LineError::Invalid(reason));
                }
            }
            self.with_text += 1;
        }
        Ok(self.end()?)
    }

    /// Read the text of a row of the file `path`.
    #[cfg(feature = "parquet")]
    pub(crate) fn read_row(
        &mut self,
        (path, row): (&Path, u64),
        text: &[u8],
        options: &DocumentOptions,
    ) -> Result<()> {
        let most = options.bounds.document_bytes;
        let reason = match check_text(text, most) {
            Ok(text) => {
                memory::extend(&mut self.bytes, text.as_bytes())?;
                return self.end();
            }
            Err(reason) => reason,
        };
        match options.on_error {
            OnError::Replace if text.len() <= most => {
                let start = self.bytes.len();
                memory::extend(&mut self.bytes, text)?;
                self.replace_from(start)?;
                self.end()
            }
            OnError::Skip => self.skip(row, 1, reason),
            _ => Err(wrong_row(path, row, reason)),
        }
    }

    /// Record rows that cannot be read as skipped.
    #[cfg(feature = "parquet")]
    pub(crate) fn skip(&mut self, row: u64, rows: u64, reason: Reason) -> Result<()> {
        memory::push(&mut self.skipped, SkippedRows { file: self.file, row, rows, reason })
    }

    /// End the current text.
    fn end(&mut self) -> Result<()> {
        memory::push(&mut self.ends, self.bytes.len())
    }

    /// Replace invalid UTF-8 by U+FFFD in the last text, which begins at `start`.
    fn replace_from(&mut self, start: usize) -> Result<()> {
        // Each byte may become three, in a string that grows by doubling.
        memory::check((self.bytes.len() - start).saturating_mul(6))?;
        let text = String::from_utf8_lossy(&self.bytes[start..]).into_owned();
        self.bytes.truncate(start);
        memory::extend(&mut self.bytes, text.as_bytes())
    }

    /// Skip a document or fail, as `on_error` requires.
    fn skip_or_fail(
        &mut self,
        row: u64,
        reason: Reason,
        on_error: OnError,
        error: impl FnOnce(Reason) -> Error,
    ) -> Result<()> {
        if on_error != OnError::Skip {
            return Err(error(reason));
        }
        memory::push(&mut self.skipped, SkippedRows { file: self.file, row, rows: 1, reason })
    }

    /// Keep the first `most` characters of each text.
    pub(crate) fn cap(&mut self, most: usize) {
        let (mut start, mut to) = (0, 0);
        for end in &mut self.ends {
            // Each text moves towards the start, over bytes that were dropped or moved already.
            let length = first_chars(&self.bytes[start..*end], most);
            self.bytes.copy_within(start..start + length, to);
            (start, to) = (*end, to + length);
            *end = to;
        }
        self.bytes.truncate(to);
    }

    /// Drop the texts after the one that takes the total above `most` characters; returns the
    /// number of characters of the remaining texts.
    pub(crate) fn limit(&mut self, most: u64) -> u64 {
        let (mut start, mut chars) = (0, 0);
        for text in 0..self.ends.len() {
            let end = self.ends[text];
            chars += count_chars(&self.bytes[start..end]) as u64;
            start = end;
            if chars > most {
                self.ends.truncate(text + 1);
                self.bytes.truncate(end);
                break;
            }
        }
        chars
    }

    /// Drop the skipped documents after the last document: they are beyond the limit.
    pub(crate) fn drop_skips_after_the_last(&mut self) {
        // Each row is a document or skipped. The documents end after as many rows as there are,
        // plus the skipped rows before that, each of which moves the end by one.
        let mut end = self.first_row + self.ends.len() as u64;
        self.skipped.retain(|skip| {
            let is_before = skip.row < end;
            end += u64::from(is_before);
            is_before
        });
    }

    /// Drop all documents; the next row is `row` of the file `file`.
    #[cfg(feature = "parquet")]
    pub(crate) fn start_at(&mut self, file: usize, row: u64) {
        self.bytes.clear();
        self.ends.clear();
        self.skipped.clear();
        (self.file, self.first_row) = (file, row);
    }
}

/// A text that has at most `most` bytes and is UTF-8, or what is wrong with it.
#[cfg(feature = "parquet")]
pub(crate) fn check_text(text: &[u8], most: usize) -> std::result::Result<&str, Reason> {
    if text.len() > most {
        let (bytes, most) = (Grouped(text.len()), Grouped(most));
        let text = format!("the document has {bytes} bytes, more than the limit of {most}");
        return Err(Reason::new(text, DIVIDE));
    }
    from_utf8(text).map_err(|error| Reason::new(not_utf8(error.valid_up_to()), REPAIR))
}

/// The error for a row of a file.
#[cfg(feature = "parquet")]
pub(crate) fn wrong_row(path: &Path, row: u64, reason: Reason) -> Error {
    Error::Row { path: path.display().to_string(), row, reason }
}

fn not_utf8(at: usize) -> String {
    format!("the document is not UTF-8 at byte {at}")
}

/// The message for a document or line that is too long and was not read to its end.
fn longer_than(what: &str, most: usize) -> Reason {
    let text = format!("the {what} has more than the limit of {} bytes", Grouped(most));
    Reason::new(text, DIVIDE)
}

/// Which documents of a file are read.
#[derive(Debug, Clone, Copy)]
pub struct DocumentSelection {
    /// The first row.
    pub first_row: u64,
    /// The index of the first block or row group.
    pub start: u64,
    /// From `start` on, every `step`-th block or row group is read; 0 counts as 1.
    pub step: u64,
}

impl Default for DocumentSelection {
    fn default() -> Self {
        Self { first_row: 0, start: 0, step: 1 }
    }
}

impl DocumentSelection {
    /// Whether a block or row group that ends before the row `end` has selected documents.
    pub(crate) fn includes(self, unit: u64, end: u64) -> bool {
        let is_selected =
            unit >= self.start && (unit - self.start).is_multiple_of(self.step.max(1));
        is_selected && end > self.first_row
    }
}

/// Counts the documents of a file, to detect files in which no object has the field.
#[derive(Debug, Default)]
pub(crate) struct FieldTally {
    rows: usize,
    with_text: usize,
    /// The keys of the first object.
    keys: Vec<String>,
    /// The indices of the first and the last block of the file, once they were added.
    first: Option<u64>,
    last: Option<u64>,
}

impl FieldTally {
    /// Add the documents of a block.
    pub(crate) fn add(&mut self, documents: &Documents, block: &FileBlock) {
        self.rows += documents.ends.len();
        self.with_text += documents.with_text;
        if !documents.keys.is_empty() {
            self.keys.clone_from(&documents.keys);
        }
        self.first = self.first.or((block.start.byte == 0).then_some(block.order));
        self.last = self.last.or(block.is_last.then_some(block.order));
    }

    /// Whether the whole file was added, and all its blocks are before the block `order`.
    pub(crate) fn is_complete_before(&self, order: u64) -> bool {
        self.first.is_some() && self.last.is_some_and(|last| last < order)
    }

    /// Fails if there were documents and none of them had a text.
    pub(crate) fn check(&self, file: &CorpusFile, field: &str) -> Result<()> {
        if file.kind != FileKind::Jsonl || self.rows == 0 || self.with_text > 0 {
            return Ok(());
        }
        let path = file.path.display().to_string();
        let keys = self.keys.join(", ");
        let keys = if keys.is_empty() { "no fields".to_owned() } else { keys };
        let text =
            format!("no object has a field '{field}' with a text; the first object has {keys}");
        let reason = Reason::new(text, OTHER_COLUMN);
        Err(Error::Document { path, line: None, reason })
    }
}

/// Reads the documents of a text or jsonl file, in order.
///
/// ```no_run
/// use bytepair::corpus::{Compression, CorpusFile, DocumentOptions, DocumentReader, FileKind};
/// let path = "corpus.jsonl.gz".into();
/// let file = CorpusFile { path, kind: FileKind::Jsonl, compression: Compression::Gzip };
/// let options = DocumentOptions { field: "text".to_owned(), ..DocumentOptions::default() };
/// let mut reader = DocumentReader::new(file, options);
/// while let Some(documents) = reader.read()? {
///     let texts: Vec<&str> = documents.texts()?.map(|(_, text)| text).collect();
/// }
/// # Ok::<(), bytepair::Error>(())
/// ```
pub struct DocumentReader {
    blocks: BlockReader,
    options: DocumentOptions,
    selection: DocumentSelection,
    tally: FieldTally,
    stop: AtomicBool,
}

impl std::fmt::Debug for DocumentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DocumentReader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl DocumentReader {
    /// Read the documents of a file; a text file is one document.
    pub fn new(file: CorpusFile, options: DocumentOptions) -> Self {
        let blocks = BlockReader::new(vec![file], options.bounds, FilePlace::default(), 0);
        Self::of(blocks, options)
    }

    /// Read the documents of a file whose compressed bytes come from `source`. Its path is for
    /// messages only.
    pub fn from_source(
        file: CorpusFile,
        source: Box<dyn std::io::Read + Send>,
        options: DocumentOptions,
    ) -> Result<Self> {
        let blocks = BlockReader::from_source(file, source, options.bounds)?;
        Ok(Self::of(blocks, options))
    }

    fn of(blocks: BlockReader, options: DocumentOptions) -> Self {
        let (selection, tally, stop) = Default::default();
        let blocks = blocks.with_damaged_kept(options.on_error == OnError::Skip);
        Self { blocks, options, selection, tally, stop }
    }

    /// Read only some blocks; the boundaries of blocks do not depend on the selection.
    #[must_use]
    pub fn with_selection(self, selection: DocumentSelection) -> Self {
        Self { selection, ..self }
    }

    /// The documents of the next block, some of which may come before the first selected row;
    /// `None` at the end, and after an error.
    pub fn read(&mut self) -> Result<Option<Documents>> {
        let mut bytes = Vec::new();
        while let Some(mut block) = self.blocks.next(None, &self.stop, bytes)? {
            if !self.is_selected(&block) {
                bytes = block.bytes;
                continue;
            }
            let mut documents = Documents::default();
            let file = &self.blocks.files[block.start.file];
            documents.read(&mut block, file, &self.options)?;
            documents.block = Vec::new();
            self.tally.add(&documents, &block);
            if block.is_last {
                std::mem::take(&mut self.tally).check(file, &self.options.field)?;
            }
            return Ok(Some(documents));
        }
        Ok(None)
    }

    fn is_selected(&self, block: &FileBlock) -> bool {
        // The next block begins where this one ends, unless it is in another file or this one
        // stands for a long line. Then the end is unknown here and is taken as after every row.
        let next = self.blocks.place;
        let is_open = next.file == block.start.file && !block.is_too_long;
        self.selection.includes(block.unit, if is_open { next.row } else { u64::MAX })
    }

    /// The number of bytes read from the file, before decompression.
    pub fn packed(&self) -> u64 {
        self.blocks.packed()
    }

    /// The number of decompressed bytes of the file that were read; 0 if no more were since the
    /// last call.
    pub fn take_unpacked(&mut self) -> u64 {
        self.blocks.take_unpacked().pop().map_or(0, |(_, bytes)| bytes)
    }
}
