//! The counting of files, whatever their kind: the threads that count also read.
//!
//! A corpus is read in *parts*: blocks of text files, or ranges of rows of parquet files. Each thread
//! takes the next part, finds the documents in it and counts them. The order of first occurrence is
//! exact, since each part has its position in the corpus.
//!
//! With a limit in characters, and if the counter must stay whole after an error, the result
//! depends on earlier parts. A thread then waits for its turn after it has found the documents of
//! its part, before it counts them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::corpus::{DocumentOptions, Documents, FilePlace, SkippedRows};
use crate::count::table::CountTable;
use crate::error::{Error, Result};
use crate::parallel::{self, interrupt, lock};
use crate::pretokenize::Splitter;

/// How files are counted.
#[derive(Debug, Clone, Default)]
pub struct FileCountOptions {
    /// How their documents are read.
    pub documents: DocumentOptions,
    /// Reading stops with the document that takes the total above this many characters.
    pub max_chars: Option<u64>,
}

/// How far the counting of files has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// The position at which counting continues; of a parquet file, only the row counts.
    pub place: FilePlace,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
}

/// The progress of counting files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountProgress {
    /// The number of documents in the counter.
    pub texts: u64,
    /// The number of bytes of these documents.
    pub text_bytes: u64,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
    /// The number of bytes read from the files, before decompression; 0 for parquet.
    pub packed: u64,
    /// The files read since the last call, with their bytes so far: decompressed, or, for parquet,
    /// of text.
    pub unpacked: Vec<(usize, u64)>,
}

/// Receives the progress of counting files; its error ends the counting.
pub(super) type OnProgress<'a> = dyn FnMut(CountProgress) -> Result<()> + Send + 'a;

/// The parts of a corpus, which several threads read.
pub(super) trait Parts: Sync {
    /// What a part contains.
    type Content;

    /// The next part, if there is one: its number, its positions in the corpus, and its content.
    fn next(&self, job: &CountJob<'_>) -> Option<(u64, Range<u64>, Self::Content)>;

    /// Read the documents of a part, and pass them to `count`.
    fn count(&self, content: Self::Content, count: &mut PartCount<'_, '_>) -> Result<()>;

    /// There are no further parts.
    fn close(&self);

    /// Add what was read to the progress.
    fn report(&self, progress: &mut CountProgress);
}

/// What the threads share, whatever they read.
pub(super) struct CountJob<'a> {
    pub(super) options: &'a FileCountOptions,
    pub(super) splitter: &'a Splitter,
    /// Whether documents are first split without counting, to find out if splitting fails.
    splits_first: bool,
    pub(super) turns: Option<Turns>,
    pub(super) failure: Mutex<Option<Failure>>,
    pub(super) skips: Mutex<Skips>,
    /// The texts, their bytes, and the characters, if they are limited, that were counted.
    counted: [AtomicU64; 3],
    /// The end of the last documents that were counted.
    pub(super) reached: Mutex<FilePlace>,
}

/// The first error in the order of the parts.
pub(super) struct Failure {
    /// The number of the part.
    pub(super) number: u64,
    pub(super) error: Error,
    /// Whether nothing of the part, and nothing after it, was counted.
    pub(super) is_clean: bool,
}

impl<'a> CountJob<'a> {
    /// A job that goes on at a position, after these numbers of texts and bytes. Parts are counted
    /// in turns if there is a limit, or if the counter is careful; a careful counter also splits
    /// documents first, if the pattern may fail.
    pub(super) fn new(
        splitter: &'a Splitter,
        options: &'a FileCountOptions,
        is_careful: bool,
        reached: Reached,
        [texts, bytes]: [u64; 2],
    ) -> Self {
        let in_turns = is_careful || options.max_chars.is_some();
        let changed = Condvar::new();
        Self {
            options,
            splitter,
            splits_first: is_careful && splitter.may_fail(),
            turns: in_turns.then_some(Turns { open: Mutex::new(0..u64::MAX), changed }),
            failure: Mutex::default(),
            skips: Mutex::default(),
            counted: [texts, bytes, reached.chars].map(AtomicU64::new),
            reached: Mutex::new(reached.place),
        }
    }

    /// Count all parts, with each table in a thread of its own. `on_progress` is called regularly; its
    /// error is returned, and stops the threads.
    pub(super) fn run<P: Parts>(
        &self,
        tables: &mut [CountTable],
        parts: &P,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        let threads = tables.len();
        let tables = Mutex::new(tables.iter_mut().collect::<Vec<_>>());
        let table = || lock(&tables).pop();
        let run = |table: &mut Option<&mut CountTable>, ()| {
            if let Some(table) = table {
                self.count_parts(table, parts);
            }
        };
        let report = |_| on_progress(self.progress(parts));
        parallel::ordered(vec![(); threads], threads, 0, |()| 0, table, run, report)
    }

    /// Count one part after another.
    fn count_parts<P: Parts>(&self, table: &mut CountTable, parts: &P) {
        while let Some((number, positions, content)) = parts.next(self) {
            let (is_clean, is_over) = (true, false);
            let mut count = PartCount { job: self, table, number, positions, is_clean, is_over };
            if let Err(error) = parts.count(content, &mut count) {
                let PartCount { is_clean, is_over, .. } = count;
                parts.close();
                if error != Error::Interrupted || !is_over {
                    self.fail(number, error, is_clean);
                }
            }
        }
    }

    /// Drop the documents beyond the limit. Returns whether there are more characters than that.
    fn limit(&self, documents: &mut Documents) -> bool {
        let Some(most) = self.options.max_chars else { return false };
        // Only the thread whose turn it is comes here, so a load and a store need no lock. After the
        // turn that exceeds the limit there is none, so `before` is at most the limit.
        let before = self.counted[2].load(Ordering::Relaxed);
        let chars = before + documents.limit(most - before);
        self.counted[2].store(chars, Ordering::Relaxed);
        chars > most
    }

    /// The progress so far.
    pub(super) fn progress(&self, parts: &impl Parts) -> CountProgress {
        let [texts, text_bytes, chars] =
            self.counted.each_ref().map(|number| number.load(Ordering::Relaxed));
        let mut progress = CountProgress { texts, text_bytes, chars, ..CountProgress::default() };
        parts.report(&mut progress);
        progress
    }

    /// Record the error of a part, of which nothing was counted if it `is_clean`.
    pub(super) fn fail(&self, number: u64, error: Error, is_clean: bool) {
        self.turns.iter().for_each(|turns| turns.end_before(number));
        let is_clean = is_clean && self.turns.is_some();
        let mut first = lock(&self.failure);
        if first.as_ref().is_none_or(|first| number < first.number) {
            *first = Some(Failure { number, error, is_clean });
        }
    }
}

/// A thread counts a part.
pub(super) struct PartCount<'j, 'a> {
    pub(super) job: &'j CountJob<'a>,
    table: &'j mut CountTable,
    number: u64,
    /// The positions of the next texts in the corpus. All bytes beyond them share the last one, which
    /// is exact as well, because a single thread reads them in order.
    positions: Range<u64>,
    /// Whether nothing of the part was counted.
    pub(super) is_clean: bool,
    /// Whether this or an earlier part had the last text, or was left in the middle.
    is_over: bool,
}

impl PartCount<'_, '_> {
    /// Count the next documents of the part, which end at `end`; `is_last` tells whether they are
    /// the last. Fails with [`Error::Interrupted`] if no more documents are needed, and if this
    /// thread has to stop before the last ones.
    pub(super) fn add(
        &mut self,
        documents: &mut Documents,
        end: FilePlace,
        is_last: bool,
    ) -> Result<()> {
        let job = self.job;
        if !is_last && interrupt::poll_now().is_err() {
            // With turns, what remains of the part can be counted later.
            job.turns.iter().for_each(|turns| turns.end_before(self.number));
            self.is_over = job.turns.is_some();
            return Err(Error::Interrupted);
        }
        if job.splits_first {
            for (_, text) in documents.texts()? {
                job.splitter.for_each(text, |_| ())?;
            }
        }
        // The turn may pass before the texts are counted: only the limit depends on the order, and
        // the tables order pretokens by position.
        let is_over = self.take_turn(documents, is_last)?;
        self.is_clean = false;
        for (start, text) in documents.texts()? {
            let position = (self.positions.start + start as u64).min(self.positions.end - 1);
            self.table.add_text(job.splitter, text, position)?;
        }
        self.positions.start += documents.bytes.len() as u64;
        let texts = documents.ends.len() - usize::from(documents.is_continued);
        for (counted, more) in job.counted.iter().zip([texts, documents.bytes.len()]) {
            counted.fetch_add(more as u64, Ordering::Relaxed);
        }
        lock(&job.skips).add(&documents.skipped);
        let mut reached = lock(&job.reached);
        *reached = end.max(*reached);
        self.is_over = is_over;
        if is_over { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Wait for the turn of the part, if there are turns, and drop the documents beyond the limit.
    /// Returns whether the limit is reached.
    fn take_turn(&mut self, documents: &mut Documents, is_last: bool) -> Result<bool> {
        let Some(turns) = &self.job.turns else { return Ok(false) };
        if !turns.wait(self.number) {
            self.is_over = true;
            return Err(Error::Interrupted);
        }
        let is_over = self.job.limit(documents);
        if is_over {
            turns.end_before(self.number + 1);
        }
        if is_last {
            turns.pass(self.number);
        }
        Ok(is_over)
    }
}

/// Gives the parts of a corpus their turns in order, whichever threads work on them.
///
/// Threads read parts of a corpus in any order, but some decisions depend on all earlier parts. A
/// thread waits until it is the turn of its part, decides, and passes the turn on.
pub(super) struct Turns {
    /// The parts that can have a turn: the first of them has it.
    open: Mutex<Range<u64>>,
    changed: Condvar,
}

impl Turns {
    /// Wait for the turn of a part. Returns whether it has one.
    fn wait(&self, part: u64) -> bool {
        // An end wakes the threads that wait for a turn that will not come.
        let waits = |open: &mut Range<u64>| open.start < part && part < open.end;
        let waited = self.changed.wait_while(lock(&self.open), waits);
        part < waited.unwrap_or_else(PoisonError::into_inner).end
    }

    /// End the turn of a part.
    fn pass(&self, part: u64) {
        lock(&self.open).start = part + 1;
        self.changed.notify_all();
    }

    /// Give no turn to this part and later ones.
    fn end_before(&self, part: u64) {
        let mut open = lock(&self.open);
        open.end = open.end.min(part);
        self.changed.notify_all();
    }
}

/// At most this many skipped ranges are kept.
const MAX_RANGES: usize = 5;

/// The number of skipped documents, and the first of them.
///
/// A file may have millions of invalid documents, so only the first are kept. These are the first in
/// the order of the corpus, and so the same for any number of threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips {
    /// The number of skipped documents.
    pub documents: u64,
    /// The first skipped documents, in the order of the corpus.
    pub first: Vec<SkippedRows>,
}

impl Skips {
    /// Add skipped documents, in any order.
    pub fn add(&mut self, skipped: &[SkippedRows]) {
        self.documents += rows(skipped);
        for skip in skipped {
            let place = |skip: &SkippedRows| (skip.file, skip.row);
            let at = self.first.partition_point(|before| place(before) <= place(skip));
            if at < MAX_RANGES {
                self.first.insert(at, skip.clone());
                self.first.truncate(MAX_RANGES);
            }
        }
    }

    /// Add all documents of `other`.
    pub fn append(&mut self, other: &Self) {
        self.add(&other.first);
        self.documents += other.documents - rows(&other.first);
    }
}

/// The number of skipped rows; the rest of a damaged file counts as one.
fn rows(skipped: &[SkippedRows]) -> u64 {
    skipped.iter().map(|skip| skip.rows.max(1)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn skipped((file, row): (usize, u64)) -> SkippedRows {
        SkippedRows { file, row, rows: 1, reason: format!("{file} {row}").into() }
    }

    proptest! {
        #[test]
        fn the_first_are_kept_in_any_order_of_adding(
            places in prop::collection::btree_set((0usize..4, 0u64..9), 0..20),
            order in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let sorted: Vec<_> = places.into_iter().map(skipped).collect();
            let mut rotated = sorted.clone();
            rotated.rotate_left(order.index(sorted.len() + 1));
            let (one, other) = rotated.split_at(cut.index(sorted.len() + 1));
            let [mut all, mut more] = [Skips::default(), Skips::default()];
            for skip in one {
                all.add(std::slice::from_ref(skip));
            }
            more.add(other);
            all.append(&more);
            prop_assert_eq!(all.documents, sorted.len() as u64);
            prop_assert_eq!(&all.first[..], &sorted[..sorted.len().min(MAX_RANGES)]);
        }
    }
}
