//! Columns of parquet files in, counts of their pretokens out: the threads that count also read.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::corpus::parquet::{RowRange, TextColumn};
use crate::corpus::{OnError, Skipped, TextFlaw};
use crate::count::Counter;
use crate::count::skips::Skips;
use crate::count::table::CountTable;
use crate::error::{Error, Result};
use crate::parallel::{self, lock};
use crate::text::Text;

/// The number of positions in the corpus that are reserved for a range of rows, whose size is known
/// only after reading. All bytes beyond this number share the last position; that is exact as well,
/// because a single thread reads them in order.
const POSITIONS_PER_RANGE: u64 = 1 << 36;

/// A reading thread reports progress and checks whether to stop after this many bytes of text.
const REPORT_BYTES: u64 = 1 << 20;

/// The progress of reading a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The number of texts in the counter.
    pub texts: u64,
    /// The number of bytes of these texts.
    pub text_bytes: u64,
    /// The number of bytes of text read from each file of the column.
    pub of_files: Vec<u64>,
}

/// Receives the progress of reading a column; its error ends the reading.
type OnProgress<'a> = dyn FnMut(Progress) -> Result<()> + Send + 'a;

impl Counter {
    /// Split the texts in ranges of rows of parquet files, each text a document of its own, and
    /// count their pretokens. The threads that count also read. `on_progress` is called regularly.
    ///
    /// Fails if a file cannot be read, and with any error of `on_progress`. After an error, the
    /// counter is in the same state as after an error of [`add`](Self::add).
    pub fn add_column(
        &mut self,
        column: &TextColumn,
        ranges: &[RowRange],
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        self.wholly(|counter| counter.add_ranges(column, ranges, on_progress))
    }

    /// Each range is read and counted by one thread.
    fn add_ranges(
        &mut self,
        column: &TextColumn,
        ranges: &[RowRange],
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        let (splitter, first, threads) = (&self.splitter, self.position, self.tables.len());
        let shared = &SharedProgress::new(self, column.files());
        let tables = Mutex::new(self.tables.iter_mut().collect::<Vec<_>>());
        let table = || lock(&tables).pop().expect("there is a table for each thread");
        #[expect(clippy::mut_mut, reason = "the state of a thread is a table that it borrows")]
        let work = |table: &mut &mut CountTable, &index: &usize| {
            let file = ranges[index].file;
            let (mut offset, mut reported, mut texts) = (0, 0, 0);
            let position = first + index as u64 * POSITIONS_PER_RANGE;
            let mut reader = RowTexts { column, file, buffer: String::new() };
            column.for_each_row(&ranges[index], &mut |row, bytes| {
                let Some(text) = reader.text(row, bytes, &shared.skips)? else { return Ok(()) };
                table.add_text(splitter, text, position + offset.min(POSITIONS_PER_RANGE - 1))?;
                texts += 1;
                offset += text.len() as u64;
                if offset - reported >= REPORT_BYTES {
                    shared.add(file, 0, offset - std::mem::replace(&mut reported, offset))?;
                }
                Ok(())
            })?;
            shared.add(file, texts, offset - reported)
        };
        let sink = |done: Option<Result<()>>| {
            let result = done.unwrap_or(Ok(())).and_then(|()| on_progress(shared.progress()));
            shared.stop.store(result.is_err(), Ordering::Relaxed);
            result
        };
        let indices: Vec<usize> = (0..ranges.len()).collect();
        parallel::ordered(&indices, threads, usize::MAX, |_| 0, table, work, sink)?;
        let (progress, skips) = (shared.progress(), std::mem::take(&mut *lock(&shared.skips)));
        self.skips.append(&skips);
        (self.texts, self.text_bytes) = (progress.texts, progress.text_bytes);
        self.position += ranges.len() as u64 * POSITIONS_PER_RANGE;
        on_progress(progress)
    }
}

/// Reads rows of a file as texts.
struct RowTexts<'a> {
    column: &'a TextColumn,
    file: usize,
    buffer: String,
}

impl RowTexts<'_> {
    /// The text of a row; `None` if it is skipped.
    fn text<'t>(
        &'t mut self,
        row: u64,
        bytes: &'t [u8],
        skips: &Mutex<Skips>,
    ) -> Result<Option<&'t str>> {
        match (self.column.checked(bytes), self.column.on_error()) {
            (Ok(text), _) => Ok(Some(text)),
            (Err(TextFlaw::NotUtf8 { .. }), OnError::Replace) => {
                Text::Lossy(bytes).read(&mut self.buffer).map(Some)
            }
            (Err(flaw), OnError::Skip) => {
                let (file, rows, reason) = (self.file, 1, flaw.to_string());
                lock(skips).add(&[Skipped { file, row, rows, reason }]);
                Ok(None)
            }
            (Err(flaw), _) => Err(flaw.error(self.column.path(self.file), row)),
        }
    }
}

/// The shared progress of the threads that read a column.
struct SharedProgress {
    skips: Mutex<Skips>,
    texts: AtomicU64,
    text_bytes: AtomicU64,
    of_files: Vec<AtomicU64>,
    stop: AtomicBool,
}

impl SharedProgress {
    fn new(counter: &Counter, files: usize) -> Self {
        Self {
            skips: Mutex::default(),
            texts: AtomicU64::new(counter.texts),
            text_bytes: AtomicU64::new(counter.text_bytes),
            of_files: (0..files).map(|_| AtomicU64::new(0)).collect(),
            stop: AtomicBool::new(false),
        }
    }

    /// Add progress in a file; fails if the caller requested a stop.
    fn add(&self, file: usize, texts: u64, bytes: u64) -> Result<()> {
        self.texts.fetch_add(texts, Ordering::Relaxed);
        self.text_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.of_files[file].fetch_add(bytes, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn progress(&self) -> Progress {
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Progress {
            texts: number(&self.texts),
            text_bytes: number(&self.text_bytes),
            of_files: self.of_files.iter().map(number).collect(),
        }
    }
}
