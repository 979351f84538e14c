//! Counts ranges of rows of parquet files, which the threads read themselves.
//!
//! If there are turns, a thread reads the texts of its range into memory before it waits.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::corpus::parquet::{RowRange, TextColumn};
use crate::corpus::{Documents, FilePlace};
use crate::count::Counter;
use crate::count::job::{
    CountJob, CountProgress, FileCountOptions, OnProgress, PartCount, Parts, Reached,
};
use crate::error::Result;
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
        let threads = self.tables.len().min(ranges.len()).max(1);
        let of_files = (0..column.files()).map(|_| AtomicU64::new(0)).collect();
        let (position, next) = (self.position, AtomicUsize::new(0));
        let parts = RowRanges { column, ranges, position, next, of_files };
        let (_, done) = self.add_parts(&parts, reached, options, threads, on_progress);
        let started = parts.next.load(Ordering::Relaxed).min(ranges.len());
        self.position += (started as u64 + 1) * POSITIONS_PER_RANGE;
        done
    }
}

/// The ranges of rows, and how far they were read.
struct RowRanges<'a> {
    column: &'a TextColumn,
    ranges: &'a [RowRange],
    /// The position of the first range in the corpus.
    position: u64,
    /// The index of the next range; beyond them if no thread may take another.
    next: AtomicUsize,
    /// The number of bytes of text read from each file.
    of_files: Vec<AtomicU64>,
}

impl RowRanges<'_> {
    /// Where a range begins; for the one after the last, the end of the files.
    fn start(&self, index: usize) -> FilePlace {
        let Some(RowRange { file, group, rows }) = self.ranges.get(index) else {
            return FilePlace { file: self.column.files(), ..FilePlace::default() };
        };
        let row = (self.column.first_row(*file, *group) + rows.start) as u64;
        FilePlace { file: *file, row, ..FilePlace::default() }
    }
}

impl Parts for RowRanges<'_> {
    type Content = usize;

    fn next(&self, _: &CountJob<'_>) -> Option<(u64, Range<u64>, usize)> {
        interrupt::poll_now().ok()?;
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let start = self.position + index as u64 * POSITIONS_PER_RANGE;
        let positions = start..start + POSITIONS_PER_RANGE;
        (index < self.ranges.len()).then_some((index as u64, positions, index))
    }

    fn count(&self, index: usize, count: &mut PartCount<'_, '_>) -> Result<()> {
        let (range, start, job) = (&self.ranges[index], self.start(index), count.job);
        let held = if job.turns.is_some() { HELD_BYTES } else { REPORT_BYTES };
        let documents = &mut Documents::default();
        documents.start_at(start);
        self.column.for_each(range, &mut |row, text| {
            // Documents are counted when there are enough, before the next one is read.
            if documents.bytes.len() >= held {
                let next = FilePlace { row, ..start };
                count.add(documents, next, false)?;
                documents.start_at(next);
            }
            self.of_files[range.file].fetch_add(text.len() as u64, Ordering::Relaxed);
            let place = (self.column.path(range.file), row);
            documents.read_row(place, text, &job.options.documents)
        })?;
        count.add(documents, self.start(index + 1), true)
    }

    fn close(&self) {
        self.next.store(self.ranges.len(), Ordering::Relaxed);
    }

    fn report(&self, progress: &mut CountProgress) {
        let of_files = self.of_files.iter().map(|bytes| bytes.load(Ordering::Relaxed));
        progress.unpacked = of_files.enumerate().collect();
    }
}
