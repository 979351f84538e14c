//! Counts the pretokens in columns of parquet files: the threads that count also read.
//!
//! Each thread takes the next range of rows and counts its texts as it reads them. With a limit in
//! characters, and if the counter must stay whole after an error, a thread first reads the texts of
//! its range into memory, and waits for its turn before it counts them, as with
//! [files](super::files).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::corpus::parquet::{RowRange, TextColumn};
use crate::corpus::{Documents, FilePlace};
use crate::count::Counter;
use crate::count::job::{CountJob, Failure, FileCountOptions};
use crate::count::table::CountTable;
use crate::error::{Error, Result};
use crate::parallel::lock;

/// The number of positions in the corpus that are reserved for a range of rows, whose size is known
/// only after reading. All bytes beyond this number share the last position; that is exact as well,
/// because a single thread reads them in order.
const POSITIONS_PER_RANGE: u64 = 1 << 36;

/// A reading thread reports progress and checks whether to stop after this many bytes of text.
const REPORT_BYTES: usize = 1 << 20;

/// A thread that waits for its turn holds about this many bytes of text, and one text.
const HELD_BYTES: usize = 1 << 25;

/// The progress of reading a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The number of texts in the counter.
    pub texts: u64,
    /// The number of bytes of these texts.
    pub text_bytes: u64,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
    /// The number of bytes of text read from each file of the column.
    pub of_files: Vec<u64>,
}

/// How far the counting of a column has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnReached {
    /// The number of ranges counted completely.
    pub ranges: usize,
    /// The number of rows counted of the range after these.
    pub rows: usize,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
}

/// Receives the progress of reading a column; its error ends the reading.
type OnProgress<'a> = dyn FnMut(Progress) -> Result<()> + Send + 'a;

impl Counter {
    /// Split the texts in ranges of rows of parquet files, each text a document of its own, and
    /// count their pretokens. The threads that count also read. `on_progress` is called regularly.
    ///
    /// `chars` is the number of characters counted before. The result is how far counting has come,
    /// and why it ended there. If several texts cannot be read, the error is that of the first one,
    /// for any number of threads.
    ///
    /// Fails if a file cannot be read, and with any error of `on_progress`. If
    /// [`is_whole`](Self::is_whole) is true then, exactly the rows before the end are counted; this
    /// holds after an error of `on_progress` if the counter was made
    /// [`with_care`](Self::with_care), and after most other errors.
    pub fn add_column(
        &mut self,
        column: &TextColumn,
        ranges: &[RowRange],
        chars: u64,
        options: &FileCountOptions,
        on_progress: &mut OnProgress<'_>,
    ) -> (ColumnReached, Result<()>) {
        if options.max_chars.is_some_and(|most| chars > most) {
            return (ColumnReached { chars, ..ColumnReached::default() }, Ok(()));
        }
        let counted = [self.texts, self.text_bytes, chars];
        let job = CountJob::new(&self.splitter, options, self.is_careful, counted);
        let work = &ColumnWork::new(job, column, ranges, self.position);
        let threads = self.tables.len().min(ranges.len()).max(1);
        let tables = &mut self.tables[..threads];
        let report = &mut || on_progress(work.progress());
        let reported = work.job.run(tables, |table| work.run(table), report);
        let last = work.progress();
        let reached = ColumnReached { chars: last.chars, ..work.reached() };
        (self.texts, self.text_bytes) = (last.texts, last.text_bytes);
        self.position += (reached.ranges as u64 + 1) * POSITIONS_PER_RANGE;
        self.skips.append(&lock(&work.job.skips));
        let failure = lock(&work.job.failure).take();
        self.is_whole &= failure.as_ref().is_none_or(|failure| failure.is_clean);
        let failed = failure.map_or(Ok(()), |failure| Err(failure.error));
        (reached, reported.and(failed).and_then(|()| on_progress(last)))
    }
}

/// The state that the threads share.
struct ColumnWork<'a> {
    job: CountJob<'a>,
    column: &'a TextColumn,
    ranges: &'a [RowRange],
    /// The position of the first range in the corpus.
    position: u64,
    /// The index of the next range.
    next: AtomicUsize,
    of_files: Vec<AtomicU64>,
    /// The number of rows counted of the range in which counting was stopped.
    rows: AtomicUsize,
    /// Whether no thread may take another range.
    is_closed: AtomicBool,
}

impl<'a> ColumnWork<'a> {
    fn new(
        job: CountJob<'a>,
        column: &'a TextColumn,
        ranges: &'a [RowRange],
        position: u64,
    ) -> Self {
        let of_files = (0..column.files()).map(|_| AtomicU64::new(0)).collect();
        let (next, rows, is_closed) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Self { job, column, ranges, position, next, of_files, rows, is_closed }
    }

    /// Count one range after another. Ranges that were taken are counted, unless they are so long
    /// that counting is stopped within one; so the counted rows are the first ones.
    fn run(&self, table: &mut CountTable) {
        let mut documents = Documents::default();
        while let Some(range) = self.next() {
            let mut count = RangeCount::new(self, table, range, &mut documents);
            if let Err(error) = count.run() {
                let (part, is_clean) = (range as u64, count.is_clean);
                self.is_closed.store(true, Ordering::Relaxed);
                self.job.fail(Failure { part, place: FilePlace::default(), error, is_clean });
            }
        }
    }

    /// The index of the next range, if there is one.
    fn next(&self) -> Option<usize> {
        if self.is_closed.load(Ordering::Relaxed) || self.job.stop.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&range| range < self.ranges.len())
    }

    /// The first ranges, and rows of the next one, are those that were counted.
    fn reached(&self) -> ColumnReached {
        // `next` goes beyond the ranges when threads ask for more. With turns, a range that was
        // started is not counted if its turn never came.
        let started = self.next.load(Ordering::Relaxed).min(self.ranges.len());
        let passed = self.job.turns.as_ref().map(|turns| usize::try_from(turns.passed()));
        let ranges = passed.map_or(started, |passed| passed.unwrap_or(started));
        ColumnReached { ranges, rows: self.rows.load(Ordering::Relaxed), chars: 0 }
    }

    fn progress(&self) -> Progress {
        let [texts, text_bytes, chars] = self.job.counted();
        let of_files = self.of_files.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect();
        Progress { texts, text_bytes, chars, of_files }
    }
}

/// A thread counts a range.
struct RangeCount<'w, 'a> {
    work: &'w ColumnWork<'a>,
    table: &'w mut CountTable,
    /// The index of the range.
    index: usize,
    /// The texts read and not counted yet.
    documents: &'w mut Documents,
    /// The number of bytes of the texts counted.
    offset: u64,
    is_clean: bool,
    has_turn: bool,
    /// Whether this or an earlier range had the last text.
    is_over: bool,
}

impl<'w, 'a> RangeCount<'w, 'a> {
    fn new(
        work: &'w ColumnWork<'a>,
        table: &'w mut CountTable,
        index: usize,
        documents: &'w mut Documents,
    ) -> Self {
        let (offset, is_clean, has_turn, is_over) = (0, true, false, false);
        Self { work, table, index, documents, offset, is_clean, has_turn, is_over }
    }

    fn range(&self) -> &'a RowRange {
        &self.work.ranges[self.index]
    }

    fn run(&mut self) -> Result<()> {
        let (work, RowRange { file, group, rows }) = (self.work, self.range());
        let (column, options) = (work.column, &work.job.options.documents);
        let first = (column.first_row(*file, *group) + rows.start) as u64;
        self.documents.start_at(*file, first);
        let held = if work.job.turns.is_some() { HELD_BYTES } else { REPORT_BYTES };
        let read = column.for_each_row(self.range(), &mut |row, text| {
            // Documents are counted when there are enough, before the next one is read.
            if self.documents.bytes.len() >= held {
                self.stop(first)?;
                self.count(false)?;
                self.documents.start_at(*file, row);
            }
            self.documents.read_row((column.path(*file), row), text, options)
        });
        match read.and_then(|()| self.count(true)) {
            Err(Error::Interrupted) if self.is_over => Ok(()),
            done => done,
        }
    }

    /// Leave the range in the middle, if there are turns and the caller has requested a stop.
    fn stop(&mut self, first_row: u64) -> Result<()> {
        let (work, Some(turns)) = (self.work, &self.work.job.turns) else { return Ok(()) };
        if !work.job.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        turns.end_before(self.index as u64);
        if self.has_turn {
            let rows = usize::try_from(self.documents.first_row - first_row);
            work.rows.store(rows.unwrap_or(0), Ordering::Relaxed);
        }
        self.is_over = true;
        Err(Error::Interrupted)
    }

    /// Count the texts read so far; `is_last` tells whether these are the last of the range. Fails
    /// with [`Error::Interrupted`] if no more texts are needed.
    fn count(&mut self, is_last: bool) -> Result<()> {
        let work = self.work;
        if let Some(most) = work.job.options.documents.doc_cap {
            self.documents.cap(most);
        }
        work.job.split_first(self.documents)?;
        // The turn may pass before the texts are counted: only the limit depends on the order, and
        // the tables order pretokens by position.
        let is_over = self.take_turn(is_last)?;
        self.is_clean = false;
        self.add_documents()?;
        self.is_over = is_over;
        if is_over { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Wait for the turn of the range, if there are turns, and drop the texts beyond the limit.
    /// Returns whether the limit is reached.
    fn take_turn(&mut self, is_last: bool) -> Result<bool> {
        let (work, part) = (self.work, self.index as u64);
        let Some(turns) = &work.job.turns else {
            let stop = work.job.stop.load(Ordering::Relaxed);
            return if stop { Err(Error::Interrupted) } else { Ok(false) };
        };
        if !self.has_turn && !turns.wait(part) {
            self.is_over = true;
            return Err(Error::Interrupted);
        }
        self.has_turn = true;
        let is_over = work.job.limit(self.documents);
        if is_over {
            work.is_closed.store(true, Ordering::Relaxed);
        }
        if is_last || is_over {
            turns.pass(part, !is_over);
        }
        Ok(is_over)
    }

    fn add_documents(&mut self) -> Result<()> {
        let work = self.work;
        let start = work.position + self.index as u64 * POSITIONS_PER_RANGE;
        for (offset, text) in self.documents.texts()? {
            let offset = (self.offset + offset as u64).min(POSITIONS_PER_RANGE - 1);
            self.table.add_text(work.job.splitter, text, start + offset)?;
        }
        let bytes = self.documents.bytes.len() as u64;
        self.offset += bytes;
        work.of_files[self.range().file].fetch_add(bytes, Ordering::Relaxed);
        work.job.add(self.documents);
        Ok(())
    }
}
