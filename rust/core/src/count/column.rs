//! Counts ranges of rows of parquet files, which the threads read themselves.
//!
//! If there are turns, a thread reads the texts of its range into memory before it waits.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::corpus::parquet::{RowRange, TextColumn};
use crate::corpus::{Documents, FilePlace};
use crate::count::Counter;
use crate::count::job::{
    CountJob, CountProgress, FileCountOptions, OnProgress, PartCount, Reached,
};
use crate::error::Result;

/// The number of positions in the corpus that are reserved for a range of rows, whose size is known
/// only after reading. A table holds positions of 48 bits: of 65,536 ranges, about a terabyte of text.
const POSITIONS_PER_RANGE: u64 = 1 << 32;

/// A thread counts texts, and checks whether to stop, after about this many bytes and texts.
const REPORT_BYTES: usize = 1 << 20;

/// A thread that waits for its turn holds about this many bytes and texts, and one more text.
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
        let parts = RowRanges { column, ranges, of_files };
        let position = self.position;
        self.position += (ranges.len() as u64 + 1) * POSITIONS_PER_RANGE;
        let count = |index: usize, part: &mut PartCount<'_, '_>| {
            let start = position + index as u64 * POSITIONS_PER_RANGE;
            part.positions = start..start + POSITIONS_PER_RANGE;
            parts.count(index, part)
        };
        let report = |mut progress: CountProgress| {
            let of_files = parts.of_files.iter().map(|bytes| bytes.load(Ordering::Relaxed));
            progress.unpacked = of_files.enumerate().collect();
            on_progress(progress)
        };
        let is_careful = self.tables[0].is_careful;
        let job = CountJob::new(&self.splitter, options, is_careful, &mut self.counted, reached);
        job.run(&mut self.tables[..threads], 0..ranges.len(), count, Ok, report)
    }
}

/// The ranges of rows, and how far they were read.
struct RowRanges<'a> {
    column: &'a TextColumn,
    ranges: &'a [RowRange],
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

    /// Read the texts of a range, and count them.
    fn count(&self, index: usize, part: &mut PartCount<'_, '_>) -> Result<()> {
        let (range, start, job) = (&self.ranges[index], self.start(index), part.job);
        let held = if job.turns.is_some() { HELD_BYTES } else { REPORT_BYTES };
        let documents = &mut Documents::default();
        documents.start_at(start);
        self.column.for_each(range, &mut |row, text| {
            // Documents are counted when there are enough, before the next one is read.
            if documents.weight() >= held {
                let next = FilePlace { row, ..start };
                part.add(documents, next, false)?;
                documents.start_at(next);
            }
            self.of_files[range.file].fetch_add(text.len() as u64, Ordering::Relaxed);
            let place = (self.column.path(range.file), row);
            documents.read_row(place, text, &job.options.documents)
        })?;
        part.add(documents, self.start(index + 1), true)
    }
}
