//! Blocks in, documents out: valid UTF-8, end to end, each with its row.

use std::sync::atomic::AtomicBool;

use crate::corpus::blocks::{BlockReader, Bounds, CorpusFile, FileBlock, FileKind, FilePlace};
use crate::corpus::jsonl::{self, Flaw};
use crate::error::{Error, Grouped, Result};
use crate::memory;
use crate::text::from_utf8;

/// What to do with a document that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// Fail.
    #[default]
    Strict,
    /// Read U+FFFD for what is not UTF-8; fail for another reason.
    Replace,
    /// Leave the document out.
    Skip,
}

/// How documents are read.
#[derive(Debug, Clone, Default)]
pub struct DocumentOptions {
    /// The field of a JSON object that holds the text.
    pub field: String,
    /// What to do with a document that cannot be read.
    pub on_error: OnError,
    /// Of each document, so many characters are read.
    pub doc_cap: Option<usize>,
    /// The bounds on what is in memory.
    pub bounds: Bounds,
}

/// A document that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The number of the file.
    pub file: usize,
    /// The row in the file.
    pub row: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Documents that follow each other in a file.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    /// The number of the file.
    pub file: usize,
    /// The number of the block of the file.
    pub unit: u64,
    /// The row of the first document, left out or not.
    pub first_row: u64,
    /// The texts, end to end; valid UTF-8.
    pub bytes: Vec<u8>,
    /// The end of each text.
    pub ends: Vec<usize>,
    /// The documents among them that were left out, which have no text here.
    pub skipped: Vec<Skipped>,
    /// How many of the documents have a text, be it empty.
    with_text: usize,
    /// Whether the text continues one of which the first part was in the previous block.
    pub(crate) is_continued: bool,
    /// The memory of the last block.
    block: Vec<u8>,
}

impl Documents {
    /// Replace these documents by those of a block; afterwards, the block has no bytes.
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
        (self.file, self.unit, self.first_row) = (block.start.file, block.unit, block.start.row);
        self.is_continued = file.kind == FileKind::Text && block.start.byte > 0;
        match file.kind {
            FileKind::Text => self.read_text(block, file, options)?,
            FileKind::Jsonl => self.read_lines(block, file, options)?,
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
        for memory in [&mut self.bytes, &mut self.block] {
            if memory.capacity() > most {
                *memory = Vec::new();
            }
        }
        std::mem::take(&mut self.block)
    }

    /// The texts, and where each begins in [`bytes`](Self::bytes).
    pub fn texts(&self) -> Result<impl Iterator<Item = (usize, &str)>> {
        let wrong = |at| Error::TextNotUtf8 { document: 0, at };
        let text = from_utf8(&self.bytes).map_err(|error| wrong(error.valid_up_to()))?;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        Ok(spans.filter_map(|(start, &end)| Some((start, text.get(start..end)?))))
    }

    /// Where each text begins, and where the last one ends.
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
        if block.is_too_long {
            let reason = too_long("document", options.bounds.document_bytes);
            return self.refuse(0, reason, options.on_error, |reason| Error::Document {
                path: path(),
                line: None,
                reason,
            });
        }
        std::mem::swap(&mut self.bytes, &mut block.bytes);
        if let Err(error) = from_utf8(&self.bytes) {
            let at = error.valid_up_to();
            if options.on_error == OnError::Replace {
                self.replace_from(0)?;
            } else {
                self.bytes.clear();
                let at = usize::try_from(block.start.byte).unwrap_or(usize::MAX).saturating_add(at);
                let wrong = |_| Error::FileNotUtf8 { path: path(), at };
                return self.refuse(0, not_utf8(at), options.on_error, wrong);
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
        let place = |line| {
            let (path, line) = (file.path.display().to_string(), Some(block.start.line + line + 1));
            move |reason| Error::Document { path, line, reason }
        };
        if block.is_too_long {
            let reason = too_long("line", options.bounds.document_bytes);
            return self.refuse(block.start.row, reason, options.on_error, place(0));
        }
        memory::reserve(&mut self.bytes, block.bytes.len())?;
        let lines = jsonl::lines(&block.bytes, block.start.byte == 0);
        for (row, (number, line)) in (block.start.row..).zip(lines) {
            let start = self.bytes.len();
            match self.read_line(line, options) {
                Ok(()) => {}
                Err(Wrong::Error(error)) => return Err(error),
                Err(Wrong::Document(reason)) => {
                    self.bytes.truncate(start);
                    self.refuse(row, reason, options.on_error, place(number))?;
                }
            }
        }
        Ok(())
    }

    fn read_line(
        &mut self,
        line: &[u8],
        options: &DocumentOptions,
    ) -> std::result::Result<(), Wrong> {
        let start = self.bytes.len();
        if line.len() > options.bounds.document_bytes {
            return Err(Wrong::Document(too_long("line", options.bounds.document_bytes)));
        }
        let lossy = options.on_error == OnError::Replace;
        if jsonl::read_field(line, options.field.as_bytes(), lossy, &mut self.bytes)? {
            match from_utf8(&self.bytes[start..]) {
                Ok(_) => {}
                Err(_) if lossy => self.replace_from(start)?,
                Err(error) => return Err(Wrong::Document(not_utf8(error.valid_up_to()))),
            }
            self.with_text += 1;
        }
        Ok(self.end()?)
    }

    /// The text that was read last ends.
    fn end(&mut self) -> Result<()> {
        memory::push(&mut self.ends, self.bytes.len())
    }

    /// Read the last text, from `start` on, with U+FFFD for what is not UTF-8.
    fn replace_from(&mut self, start: usize) -> Result<()> {
        // Each byte may become three, in a text that grows by doubling.
        memory::check((self.bytes.len() - start).saturating_mul(6))?;
        let text = String::from_utf8_lossy(&self.bytes[start..]).into_owned();
        self.bytes.truncate(start);
        memory::extend(&mut self.bytes, text.as_bytes())
    }

    /// Leave a document out, or fail.
    fn refuse(
        &mut self,
        row: u64,
        reason: String,
        on_error: OnError,
        error: impl FnOnce(String) -> Error,
    ) -> Result<()> {
        if on_error != OnError::Skip {
            return Err(error(reason));
        }
        memory::push(&mut self.skipped, Skipped { file: self.file, row, reason })
    }

    /// Keep the first `most` characters of each text.
    fn cap(&mut self, most: usize) {
        let (mut start, mut to) = (0, 0);
        for end in &mut self.ends {
            let text = &self.bytes[start..*end];
            let kept = if text.len() <= most { text.len() } else { first_chars(text, most) };
            self.bytes.copy_within(start..start + kept, to);
            (start, to) = (*end, to + kept);
            *end = to;
        }
        self.bytes.truncate(to);
    }

    /// Keep the texts up to the one with which there are more than `most` characters; returns how
    /// many characters the texts have.
    pub(crate) fn limit(&mut self, most: u64) -> u64 {
        let (mut start, mut chars) = (0, 0);
        for text in 0..self.ends.len() {
            let end = self.ends[text];
            chars += count_chars(&self.bytes[start..end]);
            start = end;
            if chars > most {
                self.ends.truncate(text + 1);
                self.bytes.truncate(end);
                break;
            }
        }
        chars
    }
}

/// Why a line has no document.
enum Wrong {
    Document(String),
    Error(Error),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Flaw> for Wrong {
    fn from(flaw: Flaw) -> Self {
        match flaw {
            Flaw::Memory(error) => Self::Error(error),
            other => Self::Document(other.to_string()),
        }
    }
}

/// How many bytes the first `most` characters of a valid text have.
fn first_chars(text: &[u8], most: usize) -> usize {
    let starts = text.iter().enumerate().filter(|(_, byte)| starts_char(**byte));
    starts.map(|(at, _)| at).nth(most).unwrap_or(text.len())
}

fn count_chars(text: &[u8]) -> u64 {
    text.iter().filter(|byte| starts_char(**byte)).count() as u64
}

fn starts_char(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn not_utf8(at: usize) -> String {
    format!("the document is not UTF-8 at its byte {at}")
}

fn too_long(what: &str, most: usize) -> String {
    format!(
        "the {what} has more than the {} bytes that are read as one; raise max_document_bytes, or \
         divide it",
        Grouped(most)
    )
}

/// Whether the objects of a file have the field at all.
#[derive(Debug, Default)]
pub(crate) struct FieldTally {
    rows: usize,
    with_text: usize,
    /// The numbers of the first and of the last block of the file, if they were added.
    begin: Option<u64>,
    end: Option<u64>,
}

impl FieldTally {
    /// Add the documents of a block.
    pub(crate) fn add(&mut self, documents: &Documents, block: &FileBlock) {
        self.rows += documents.ends.len();
        self.with_text += documents.with_text;
        self.begin = self.begin.or((block.start.byte == 0).then_some(block.order));
        self.end = self.end.or(block.is_last.then_some(block.order));
    }

    /// Whether the whole file was added, and ends before a block.
    pub(crate) fn is_complete_before(&self, order: u64) -> bool {
        self.begin.is_some() && self.end.is_some_and(|end| end < order)
    }

    /// Fails if there were documents, and none of them had a text.
    pub(crate) fn check(&self, file: &CorpusFile, field: &str) -> Result<()> {
        if file.kind == FileKind::Text || self.rows == 0 || self.with_text > 0 {
            return Ok(());
        }
        let path = file.path.display().to_string();
        let reason = format!("no object has a field '{field}' with a text");
        Err(Error::Document { path, line: None, reason })
    }
}

/// Reads the documents of files, in order.
///
/// ```no_run
/// use bytepair::corpus::{Compression, CorpusFile, DocumentOptions, DocumentReader, FileKind};
/// let path = "corpus.jsonl.gz".into();
/// let file = CorpusFile { path, kind: FileKind::Jsonl, compression: Compression::Gzip };
/// let options = DocumentOptions { field: "text".to_owned(), ..DocumentOptions::default() };
/// let mut reader = DocumentReader::new(vec![file], options);
/// while let Some(documents) = reader.read()? {
///     let texts: Vec<&str> = documents.texts()?.map(|(_, text)| text).collect();
/// }
/// # Ok::<(), bytepair::Error>(())
/// ```
pub struct DocumentReader {
    blocks: BlockReader,
    options: DocumentOptions,
    tally: FieldTally,
    stop: AtomicBool,
}

impl std::fmt::Debug for DocumentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DocumentReader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl DocumentReader {
    /// Read the documents of `files`; a text file is one document.
    pub fn new(files: Vec<CorpusFile>, options: DocumentOptions) -> Self {
        let blocks = BlockReader::new(files, options.bounds, FilePlace::default(), 0);
        Self::of(blocks, options)
    }

    /// Read the documents of one file, whose bytes, `size` of them as they are compressed, come from
    /// `source`. Its path is for messages only.
    pub fn from_source(
        file: CorpusFile,
        size: u64,
        source: Box<dyn std::io::Read + Send>,
        options: DocumentOptions,
    ) -> Result<Self> {
        let blocks = BlockReader::from_source(file, size, source, options.bounds)?;
        Ok(Self::of(blocks, options))
    }

    fn of(blocks: BlockReader, options: DocumentOptions) -> Self {
        Self { blocks, options, tally: FieldTally::default(), stop: AtomicBool::new(false) }
    }

    /// The documents of the next block; `None` at the end.
    ///
    /// After an error, reading goes on with the next file.
    pub fn read(&mut self) -> Result<Option<Documents>> {
        let mut documents = Documents::default();
        let Some(mut block) = self.blocks.next(None, &self.stop, Vec::new())? else {
            return Ok(None);
        };
        let file = &self.blocks.files()[block.start.file];
        documents.read(&mut block, file, &self.options)?;
        documents.block = Vec::new();
        self.tally.add(&documents, &block);
        if block.is_last {
            std::mem::take(&mut self.tally).check(file, &self.options.field)?;
        }
        Ok(Some(documents))
    }

    /// How many bytes of the files were read, compressed as they are.
    pub fn packed(&self) -> u64 {
        self.blocks.packed()
    }

    /// The files that became much larger since the last call, and how large; see [`Bounds`].
    pub fn take_expanded(&mut self) -> Vec<(usize, u64)> {
        self.blocks.take_expanded()
    }
}
