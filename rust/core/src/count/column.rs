//! Columns of parquet files in, counted like any other texts: the threads that count also read.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use crate::corpus::parquet::{RowRange, TextColumn};
use crate::count::table::CountTable;
use crate::count::{Counter, PIECE, deal};
use crate::error::{Error, Result};
use crate::parallel;

/// The number of positions reserved for a range of rows, whose size is unknown until it was read.
/// All bytes beyond share the last position; a single thread reads them in order anyway.
const POSITIONS_PER_RANGE: u64 = 1 << 36;

/// A reading thread reports progress, and checks whether to stop, after this many bytes of text.
const TOLD: u64 = 1 << 20;

/// The progress of reading a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The number of texts in the counter.
    pub texts: u64,
    /// The number of bytes of these texts.
    pub text_bytes: u64,
    /// The number of bytes of text that were read from each file of the column.
    pub of_files: Vec<u64>,
}

/// Receives the progress of reading a column; its error ends the reading.
type OnProgress<'a> = dyn FnMut(Progress) -> Result<()> + Send + 'a;

impl Counter {
    /// Split the texts in ranges of rows of parquet files, each text a document of its own, and
    /// count their pretokens. The threads that count also read. `on_progress` is called from time
    /// to time.
    ///
    /// Fails if a file cannot be read, and with any error of `on_progress`; then as
    /// [`add`](Self::add).
    pub fn add_column(
        &mut self,
        column: &TextColumn,
        ranges: &[RowRange],
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        self.wholly(|counter| match ranges {
            [range] => counter.add_range(column, range, on_progress),
            _ => counter.add_ranges(column, ranges, on_progress),
        })
    }

    /// Add several ranges; one thread reads and counts each.
    fn add_ranges(
        &mut self,
        column: &TextColumn,
        ranges: &[RowRange],
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        let (splitter, first, next) = (&self.splitter, self.position, &AtomicUsize::new(0));
        let shared = &SharedProgress::new(self, column.files());
        let work = |table: &mut CountTable, number: usize| {
            let RowRange { file, ref rows, .. } = ranges[number];
            let (position, mut offset, mut known) =
                (first + number as u64 * POSITIONS_PER_RANGE, 0, 0);
            column.for_each(&ranges[number], &mut |text| {
                table.add_text(splitter, text, position + offset.min(POSITIONS_PER_RANGE - 1))?;
                offset += text.len() as u64;
                if offset - known >= TOLD {
                    shared.add(file, 0, offset - std::mem::replace(&mut known, offset))?;
                }
                Ok(())
            })?;
            shared.add(file, rows.len() as u64, offset - known)
        };
        let jobs = self.tables.iter_mut().map(|table| {
            move |seen: &Sender<()>| {
                deal(next, ranges.len(), |number| {
                    let done = work(table, number);
                    // The receiver may be gone, which does not matter.
                    let _watched = seen.send(());
                    done
                })
            }
        });
        let mut asked = Ok(());
        let done = parallel::watched(jobs, || {
            if asked.is_ok() {
                asked = on_progress(shared.progress());
                shared.stop.store(asked.is_err(), Ordering::Relaxed);
            }
        });
        asked?;
        done.into_iter().collect::<Result<()>>()?;
        let progress = shared.progress();
        (self.texts, self.text_bytes) = (progress.texts, progress.text_bytes);
        self.position += ranges.len() as u64 * POSITIONS_PER_RANGE;
        on_progress(progress)
    }

    /// Add a single range of rows: one thread reads it, but all share its long texts.
    fn add_range(
        &mut self,
        column: &TextColumn,
        range: &RowRange,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        let (texts, before, mut known) = (self.texts, self.text_bytes, self.text_bytes);
        let mut of_files = vec![0; column.files()];
        let mut tell = |texts, text_bytes| {
            of_files[range.file] = text_bytes - before;
            on_progress(Progress { texts, text_bytes, of_files: of_files.clone() })
        };
        column.for_each(range, &mut |text| {
            if text.len() > 2 * PIECE {
                self.add_texts(&[text])?;
            } else {
                self.tables[0].add_text(&self.splitter, text, self.position)?;
                self.text_bytes += text.len() as u64;
                self.position += text.len() as u64;
            }
            if self.text_bytes - known >= TOLD {
                known = self.text_bytes;
                tell(texts, known)?;
            }
            Ok(())
        })?;
        self.texts = texts + range.rows.len() as u64;
        tell(self.texts, self.text_bytes)
    }
}

/// The shared progress of the threads that read a column.
struct SharedProgress {
    texts: AtomicU64,
    text_bytes: AtomicU64,
    of_files: Vec<AtomicU64>,
    stop: AtomicBool,
}

impl SharedProgress {
    fn new(counter: &Counter, files: usize) -> Self {
        Self {
            texts: AtomicU64::new(counter.texts),
            text_bytes: AtomicU64::new(counter.text_bytes),
            of_files: (0..files).map(|_| AtomicU64::new(0)).collect(),
            stop: AtomicBool::new(false),
        }
    }

    /// Add progress in a file; fails if the caller asked to stop.
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
