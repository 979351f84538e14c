//! Counts ranges of rows of parquet files, which the threads read themselves.
//!
//! If there are turns, a thread reads the texts of its range into memory before it waits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::corpus::parquet::{RowRange, TextColumn};
use crate::corpus::{Documents, FilePlace};
use crate::count::Counter;
use crate::count::job::{
    CorpusPart, CountJob, CountProgress, FileCountOptions, OnProgress, PartCount, Parts, Reached,
};
use crate::error::{Error, Result};
use crate::parallel::interrupt;

/// The number of positions in the corpus that are reserved for a range of rows, whose size is known
/// only after reading.
const POSITIONS_PER_RANGE: u64 = 1 << 36;

/// A thread counts texts, and checks whether to stop, after this many bytes of them.
const REPORT_BYTES: usize = 1 << 20;

/// A thread that waits for its turn holds about this many bytes of text, and one text.
const HELD_BYTES: usize = 1 << 25;

impl Counter {
    /// Split the texts in ranges of rows of parquet files, each text a document of its own, and
    /// count their pretokens. The threads that count also read. `on_progress` is called regularly.
    ///
    /// The ranges begin at `reached`, which is afterwards the position at which counting ended. If
    /// several texts cannot be read, the error is that of the first one, for any number of threads.
    ///
    /// Fails if a file cannot be read, and with any error of `on_progress`. If
    /// [`is_whole`](Self::is_whole) is true then, exactly the rows before the end are counted; this
    /// holds after an error of `on_progress` if the counter was made
    /// [`with_care`](Self::with_care), and after most other errors.
    pub fn add_column(
        &mut self,
        column: &TextColumn,
        ranges: &[RowRange],
        reached: &mut Reached,
        options: &FileCountOptions,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        if options.max_chars.is_some_and(|most| reached.chars > most) {
            return Ok(());
        }
        let threads = self.tables.len().min(ranges.len()).max(1);
        let parts = &RowRanges::new(column, ranges, self.position);
        let (failure, skips, reported, last) =
            self.add_parts(parts, options, reached.chars, threads, on_progress);
        let started = parts.next.load(Ordering::Relaxed).min(ranges.len());
        self.position += (started as u64 + 1) * POSITIONS_PER_RANGE;
        *reached = Reached { place: parts.end(), chars: last.chars };
        self.skips.append(&skips);
        reported.and(failure.map_or(Ok(()), |failure| Err(failure.error)))?;
        on_progress(last)
    }
}

/// The ranges of rows, and how far they were counted.
struct RowRanges<'a> {
    column: &'a TextColumn,
    ranges: &'a [RowRange],
    /// The position of the first range in the corpus.
    position: u64,
    /// The index of the next range; beyond them if no thread may take another.
    next: AtomicUsize,
    /// The number of ranges counted, and of rows of the range in which counting was stopped.
    counted: AtomicU64,
    rows: AtomicU64,
    /// The number of bytes of text read from each file.
    of_files: Vec<AtomicU64>,
}

impl<'a> RowRanges<'a> {
    fn new(column: &'a TextColumn, ranges: &'a [RowRange], position: u64) -> Self {
        let of_files = (0..column.files()).map(|_| AtomicU64::new(0)).collect();
        let (next, counted, rows) = Default::default();
        Self { column, ranges, position, next, counted, rows, of_files }
    }

    /// Where counting ended: behind the ranges counted, and the rows of the next one.
    fn end(&self) -> FilePlace {
        let counted = usize::try_from(self.counted.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        self.ranges.get(counted).map_or(
            FilePlace { file: self.column.files(), ..FilePlace::default() },
            |range| {
                let row = self.first_row(range) + self.rows.load(Ordering::Relaxed);
                FilePlace { file: range.file, row, ..FilePlace::default() }
            },
        )
    }

    /// The first row of a range in its file.
    fn first_row(&self, range: &RowRange) -> u64 {
        (self.column.first_row(range.file, range.group) + range.rows.start) as u64
    }

    /// Count documents of a range, unless this thread has to stop. With turns, a range is left
    /// in the middle, and what remains of it is counted later.
    fn add(
        &self,
        range: &RowRange,
        documents: &mut Documents,
        count: &mut PartCount<'_, '_>,
        is_last: bool,
    ) -> Result<()> {
        let job = count.job;
        if interrupt::poll_now().is_err() && !(is_last && job.turns.is_some()) {
            if let Some(turns) = &job.turns {
                turns.end_before(count.number);
                if count.has_turn {
                    let rows = documents.first_row - self.first_row(range);
                    self.rows.store(rows, Ordering::Relaxed);
                }
                count.is_over = true;
            }
            return Err(Error::Interrupted);
        }
        if let Some(most) = job.options.documents.doc_cap {
            documents.cap(most);
        }
        let added = count.add(documents, is_last);
        if !count.is_clean {
            let bytes = documents.bytes.len() as u64;
            self.of_files[range.file].fetch_add(bytes, Ordering::Relaxed);
        }
        if (is_last && added.is_ok()) || (count.is_over && count.has_turn) {
            self.counted.fetch_max(count.number + 1, Ordering::Relaxed);
        }
        added
    }
}

impl Parts for RowRanges<'_> {
    type Content = usize;

    fn next(&self, _: &CountJob<'_>) -> Option<CorpusPart<usize>> {
        interrupt::poll_now().ok()?;
        let content = self.next.fetch_add(1, Ordering::Relaxed);
        let number = content as u64;
        let start = self.position + number * POSITIONS_PER_RANGE;
        (content < self.ranges.len()).then(|| CorpusPart {
            number,
            place: FilePlace::default(),
            positions: start..start + POSITIONS_PER_RANGE,
            content,
        })
    }

    fn count(&self, index: usize, count: &mut PartCount<'_, '_>) -> Result<()> {
        let (column, range, job) = (self.column, &self.ranges[index], count.job);
        let held = if job.turns.is_some() { HELD_BYTES } else { REPORT_BYTES };
        let documents = &mut Documents::default();
        documents.start_at(range.file, self.first_row(range));
        column.for_each(range, &mut |row, text| {
            // Documents are counted when there are enough, before the next one is read.
            if documents.bytes.len() >= held {
                self.add(range, documents, count, false)?;
                documents.start_at(range.file, row);
            }
            documents.read_row((column.path(range.file), row), text, &job.options.documents)
        })?;
        self.add(range, documents, count, true)
    }

    fn close(&self) {
        self.next.store(self.ranges.len(), Ordering::Relaxed);
    }

    fn report(&self, progress: &mut CountProgress) {
        let of_files = self.of_files.iter().map(|bytes| bytes.load(Ordering::Relaxed));
        progress.unpacked = of_files.enumerate().collect();
    }
}
