//! Divides blocks into documents: concatenated valid UTF-8, with the end and the row of each
//! document.

#[cfg(feature = "parquet")]
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::corpus::blocks::{BlockReader, Bounds, CorpusFile, FileBlock, FileKind, FilePlace};
use crate::corpus::jsonl::{self, invalid};
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

impl DocumentOptions {
    /// The bounds, and whether what cannot be read is skipped.
    pub(crate) fn reading(&self) -> (Bounds, bool) {
        (self.bounds, self.on_error == OnError::Skip)
    }
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
    /// The objects, and those that have the field.
    pub(crate) tally: FieldTally,
    /// Whether the text continues a document that began in an earlier block.
    pub(crate) is_continued: bool,
}

impl Documents {
    /// The documents of a block, whose bytes are taken.
    pub(crate) fn of(
        block: &mut FileBlock,
        file: &CorpusFile,
        options: &DocumentOptions,
    ) -> Result<Self> {
        let FilePlace { file: index, byte, row: first_row, .. } = block.start;
        let is_continued = file.kind == FileKind::Text && byte > 0;
        let mut documents = Self { file: index, unit: block.unit, first_row, ..Self::default() };
        documents.is_continued = is_continued;
        match file.kind {
            FileKind::Text => documents.read_text(block, file, options)?,
            FileKind::Jsonl | FileKind::Lines => documents.read_lines(block, file, options)?,
        }
        if let Some(damage) = block.damage.take() {
            let row = first_row + (documents.ends.len() + documents.skipped.len()) as u64;
            let text = format!("the rest of the file cannot be read: {}", damage.text());
            documents.skip(row, 0, Reason::new(text, damage.hint))?;
        }
        Ok(documents)
    }

    /// The texts, with the start of each in [`bytes`](Self::bytes). Fails if these are not UTF-8, as
    /// they are unless the caller changes them.
    pub fn texts(&self) -> Result<impl Iterator<Item = (usize, &str)>> {
        let wrong = |at| Error::TextNotUtf8 { document: 0, at };
        let text = from_utf8(&self.bytes).map_err(|error| wrong(error.valid_up_to()))?;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        Ok(spans.filter_map(|(start, &end)| Some((start, text.get(start..end)?))))
    }

    /// The start of each text, and the end of the last one. Fails if there is not enough memory.
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
        let read = if block.is_too_long {
            Err(invalid(longer_than("document", options.bounds.document_bytes)))
        } else if block.damage.is_some() {
            return Ok(()); // the document is incomplete
        } else if let Some(reason) = pointer(&block.bytes).filter(|_| block.start.byte == 0) {
            Err(invalid(reason))
        } else {
            // The text is the block itself, so it is not copied.
            self.bytes = std::mem::take(&mut block.bytes);
            self.end(0, options)
        };
        let path = || file.path.display().to_string();
        match read {
            Err(Error::TextNotUtf8 { at, .. }) if options.on_error == OnError::Strict => {
                let start = usize::try_from(block.start.byte).unwrap_or(usize::MAX);
                Err(Error::FileNotUtf8 { path: path(), at: start.saturating_add(at) })
            }
            read => self.keep((0, 0), read, options.on_error, path),
        }
    }

    fn read_lines(
        &mut self,
        block: &FileBlock,
        file: &CorpusFile,
        options: &DocumentOptions,
    ) -> Result<()> {
        let path = || file.path.display().to_string();
        let place = |line| format!("{}, line {}", path(), block.start.line + line + 1);
        if block.is_too_long {
            let read = Err(invalid(longer_than("line", options.bounds.document_bytes)));
            return self.keep((0, block.start.row), read, options.on_error, || place(0));
        }
        memory::reserve(&mut self.bytes, block.bytes.len())?;
        let is_whole = file.kind == FileKind::Lines;
        let lines = jsonl::lines(&block.bytes, block.start.byte == 0, is_whole);
        for (row, (index, line)) in (block.start.row..).zip(lines) {
            let is_first = row == 0 && !is_whole;
            if let Some(reason) = stand_in(line).filter(|_| is_first) {
                return Err(Error::Document { place: path(), reason });
            }
            let start = self.bytes.len();
            let read = self.read_line(line, is_whole, options);
            self.keep((start, row), read, options.on_error, || place(index))?;
            if is_first && self.tally.with_text == 0 {
                self.tally.keys = jsonl::keys(line);
            }
        }
        Ok(())
    }

    fn read_line(&mut self, line: &[u8], is_whole: bool, options: &DocumentOptions) -> Result<()> {
        let start = self.bytes.len();
        if line.len() > options.bounds.document_bytes {
            return Err(invalid(longer_than("line", options.bounds.document_bytes)));
        }
        let lossy = options.on_error == OnError::Replace;
        let has_text = if is_whole {
            memory::extend(&mut self.bytes, line)?;
            true
        } else {
            jsonl::read_field(line, options.field.as_bytes(), lossy, &mut self.bytes)?
        };
        self.end(start, options)?;
        self.tally.rows += 1;
        self.tally.with_text += usize::from(has_text);
        Ok(())
    }

    /// Read the text of a row of the file `path`.
    #[cfg(feature = "parquet")]
    pub(crate) fn read_row(
        &mut self,
        (path, row): (&Path, u64),
        text: &[u8],
        options: &DocumentOptions,
    ) -> Result<()> {
        let (start, most) = (self.bytes.len(), options.bounds.document_bytes);
        let read = if text.len() > most {
            let (bytes, most) = (Grouped(text.len()), Grouped(most));
            let text = format!("the document has {bytes} bytes, more than the limit of {most}");
            Err(invalid(Reason::new(text, DIVIDE)))
        } else {
            memory::extend(&mut self.bytes, text)?;
            self.end(start, options)
        };
        let place = || format!("{}, row {row}", path.display());
        self.keep((start, row), read, options.on_error, place)
    }

    /// Keep the text of a row, which was appended from `start` on; or if it could not be read, skip
    /// the row or fail, as `on_error` requires.
    fn keep(
        &mut self,
        (start, row): (usize, u64),
        read: Result<()>,
        on_error: OnError,
        place: impl FnOnce() -> String,
    ) -> Result<()> {
        let reason = match read {
            Err(Error::Document { reason, .. }) => reason,
            Err(Error::TextNotUtf8 { at, .. }) => {
                Reason::new(format!("the document is not UTF-8 at byte {at}"), REPAIR)
            }
            done => return done,
        };
        // A part of it may have been appended.
        self.bytes.truncate(start);
        if on_error == OnError::Skip {
            return self.skip(row, 1, reason);
        }
        Err(Error::Document { place: place(), reason })
    }

    /// End the current text, which begins at `start`. Invalid UTF-8 is replaced, or is an error.
    fn end(&mut self, start: usize, options: &DocumentOptions) -> Result<()> {
        if let Err(error) = from_utf8(&self.bytes[start..]) {
            if options.on_error != OnError::Replace {
                return Err(Error::TextNotUtf8 { document: 0, at: error.valid_up_to() });
            }
            self.replace_from(start)?;
        }
        if let Some(most) = options.doc_cap {
            self.bytes.truncate(start + first_chars(&self.bytes[start..], most));
        }
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

    /// Record rows that cannot be read as skipped; 0 rows stand for the rest of the file.
    pub(crate) fn skip(&mut self, row: u64, rows: u64, reason: Reason) -> Result<()> {
        memory::push(&mut self.skipped, SkippedRows { file: self.file, row, rows, reason })
    }

    /// Drop the texts after the one that takes the total above `most` characters, and what was
    /// skipped after that; returns the number of characters of the remaining texts.
    pub(crate) fn limit(&mut self, most: u64) -> u64 {
        let (mut start, mut chars) = (0, 0);
        for text in 0..self.ends.len() {
            let end = self.ends[text];
            chars += count_chars(&self.bytes[start..end]) as u64;
            start = end;
            if chars > most {
                self.ends.truncate(text + 1);
                self.bytes.truncate(end);
                // Each row is a document or skipped. The documents end after as many rows as there
                // are, plus the skipped rows before that, each of which moves the end by one.
                let mut end = self.first_row + self.ends.len() as u64;
                self.skipped.retain(|skip| {
                    let is_before = skip.row < end;
                    end += u64::from(is_before);
                    is_before
                });
                break;
            }
        }
        chars
    }

    /// The number of bytes of text and of rows, which memory depends on: texts may be empty or skipped.
    #[cfg(feature = "parquet")]
    pub(crate) fn weight(&self) -> usize {
        self.bytes.len() + self.ends.len() + self.skipped.len()
    }

    /// Drop all documents; the next row is at this place.
    #[cfg(feature = "parquet")]
    pub(crate) fn start_at(&mut self, place: FilePlace) {
        self.bytes.clear();
        self.ends.clear();
        self.skipped.clear();
        (self.file, self.first_row) = (place.file, place.row);
    }
}

/// The message for a document or line that is too long and was not read to its end.
fn longer_than(what: &str, most: usize) -> Reason {
    let text = format!("the {what} has more than the limit of {} bytes", Grouped(most));
    Reason::new(text, DIVIDE)
}

/// Which documents of a file are read; by default all.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentSelection {
    /// The first row.
    pub first_row: u64,
    /// The index of the first block or row group.
    pub start: u64,
    /// From `start` on, every `step`-th block or row group is read; 0 counts as 1.
    pub step: u64,
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
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldTally {
    rows: usize,
    /// The number of documents that have a text, even if it is empty.
    with_text: usize,
    /// The keys of the first object, if it does not have the field.
    keys: Vec<String>,
}

impl FieldTally {
    /// The tally of a file from a place on: what is before it may have texts.
    pub(crate) fn of_rest(place: FilePlace) -> Self {
        Self { with_text: usize::from(place.byte > 0), ..Self::default() }
    }

    /// Add the documents of the next block.
    pub(crate) fn add(&mut self, mut block: Self) {
        self.rows += block.rows;
        self.with_text += block.with_text;
        self.keys.append(&mut block.keys);
    }

    /// Fails if there were documents and none of them had a text.
    pub(crate) fn check(&self, file: &CorpusFile, field: &str) -> Result<()> {
        if file.kind != FileKind::Jsonl || self.rows == 0 || self.with_text > 0 {
            return Ok(());
        }
        let place = file.path.display().to_string();
        let keys = self.keys.join(", ");
        let keys = if keys.is_empty() { "no fields".to_owned() } else { keys };
        let text =
            format!("no object has a field '{field}' with a text; the first object has {keys}");
        let reason = Reason::new(text, OTHER_COLUMN);
        Err(Error::Document { place, reason })
    }
}

/// Reads the documents of a text or jsonl file, in order.
///
/// ```no_run
/// use bytepair::corpus::{Compression, CorpusFile, DocumentOptions, DocumentReader, FileKind};
/// let path = "corpus.jsonl.gz".into();
/// let file = CorpusFile { path, kind: FileKind::Jsonl, compression: Compression::Gzip };
/// let options = DocumentOptions { field: "text".to_owned(), ..DocumentOptions::default() };
/// let mut reader = DocumentReader::new(file, None, options, Default::default());
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
    unpacked: u64,
}

impl DocumentReader {
    /// Read the documents of a file, in some of its blocks; a text file is one document. The
    /// boundaries of blocks do not depend on the selection.
    ///
    /// The compressed bytes come from `source`, if there is one; then the path is for messages
    /// only.
    #[must_use]
    pub fn new(
        file: CorpusFile,
        source: Option<Box<dyn std::io::Read + Send>>,
        options: DocumentOptions,
        selection: DocumentSelection,
    ) -> Self {
        let blocks =
            BlockReader::new(vec![file], source, options.reading(), FilePlace::default(), 0);
        Self { blocks, options, selection, tally: FieldTally::default(), unpacked: 0 }
    }

    /// The documents of the next block, some of which may come before the first selected row;
    /// `None` at the end, and after an error.
    ///
    /// Fails if the file or a document cannot be read, unless it is skipped, or if no object has the
    /// field.
    pub fn read(&mut self) -> Result<Option<Documents>> {
        // Without files, no block follows an error.
        self.next().inspect_err(|_| self.blocks.files.clear())
    }

    fn next(&mut self) -> Result<Option<Documents>> {
        while let Some(mut block) = self.blocks.next(None)? {
            self.unpacked = block.unpacked;
            let end_row = if block.is_last { u64::MAX } else { block.end.row };
            if !self.selection.includes(block.unit, end_row) {
                continue;
            }
            let file = &self.blocks.files[block.start.file];
            let mut documents = Documents::of(&mut block, file, &self.options)?;
            self.tally.add(std::mem::take(&mut documents.tally));
            if block.is_last {
                std::mem::take(&mut self.tally).check(file, &self.options.field)?;
            }
            return Ok(Some(documents));
        }
        Ok(None)
    }

    /// The number of bytes read from the file, before decompression.
    pub fn packed(&self) -> u64 {
        self.blocks.packed.load(Ordering::Relaxed)
    }

    /// The number of decompressed bytes of the file that were read.
    pub fn unpacked(&self) -> u64 {
        self.unpacked
    }
}
