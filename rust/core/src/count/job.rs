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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::corpus::{DocumentOptions, Documents, FilePlace, SkippedRows};
use crate::count::table::CountTable;
use crate::error::{Error, Result};
use crate::machine::Instant;
use crate::parallel::{self, POLL_INTERVAL, interrupt, lock};
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

/// What a counter has counted, without the pretokens.
#[derive(Debug, Default)]
pub(super) struct CountTotals {
    pub(super) texts: u64,
    pub(super) text_bytes: u64,
    /// The skipped documents.
    pub(super) skips: Skips,
    /// Whether a batch or a part was left in the middle.
    pub(super) is_partial: bool,
}

/// What the threads share, whatever they read.
pub(super) struct CountJob<'a> {
    pub(super) options: &'a FileCountOptions,
    splitter: &'a Splitter,
    /// Whether documents are first split without counting, to find out if splitting fails.
    splits_first: bool,
    pub(super) turns: Option<Turns>,
    /// Whether no further part is started.
    is_closed: AtomicBool,
    /// What was counted, and the end of the last documents that were.
    counted: Mutex<(&'a mut CountTotals, &'a mut Reached)>,
}

impl<'a> CountJob<'a> {
    /// A job that continues at `reached`. Parts are counted in turns if there is a limit, or if the
    /// counter is careful; a careful counter also splits documents first, if the pattern may fail.
    pub(super) fn new(
        splitter: &'a Splitter,
        options: &'a FileCountOptions,
        is_careful: bool,
        counted: &'a mut CountTotals,
        reached: &'a mut Reached,
    ) -> Self {
        let in_turns = is_careful || options.max_chars.is_some();
        let changed = Condvar::new();
        Self {
            options,
            splitter,
            splits_first: is_careful && splitter.may_fail(),
            turns: in_turns.then_some(Turns { open: Mutex::new(0..u64::MAX), changed }),
            is_closed: options.max_chars.is_some_and(|most| reached.chars > most).into(),
            counted: Mutex::new((counted, reached)),
        }
    }

    /// Count parts, with each table in a thread of its own. `count` reads the documents of a part and
    /// passes them to [`PartCount::add`]; what it returns goes to `take`, in the order of the parts.
    /// `on_progress` is called regularly.
    ///
    /// Fails with the error of the first part that has one, or else of `take` or `on_progress`. After an
    /// error no further part is started, and threads leave their parts in the middle.
    pub(super) fn run<P: Send, R: Send>(
        &self,
        tables: &mut [CountTable],
        parts: impl Iterator<Item = P> + Send,
        count: impl Fn(P, &mut PartCount<'_, '_>) -> Result<R> + Sync,
        mut take: impl FnMut(R) -> Result<()>,
        mut on_progress: impl FnMut(CountProgress) -> Result<()>,
    ) -> Result<()> {
        let threads = tables.len();
        let tables = Mutex::new(tables.iter_mut().collect::<Vec<_>>());
        let table = || lock(&tables).pop();
        let is_open = || !self.is_closed.load(Ordering::Relaxed);
        let parts = (0..).zip(parts).map_while(|part| is_open().then_some(part));
        let work = |table: &mut Option<&mut CountTable>, (number, part)| {
            let table = table.as_deref_mut().expect("there is a table for each thread");
            self.count_part(table, number, |of_part| count(part, of_part))
        };
        let mut reported = Instant::now();
        let sink = |part: Option<Result<Option<R>>>| {
            let is_due = part.is_none() || reported.elapsed() >= POLL_INTERVAL;
            part.transpose()?.flatten().map_or(Ok(()), &mut take)?;
            if is_due {
                on_progress(self.progress())?;
                reported = Instant::now();
            }
            Ok(())
        };
        parallel::ordered(parts, threads, 0, |_| 0, table, work, sink)?;
        on_progress(self.progress())
    }

    /// Count a part. Returns `None` if the part was left in the middle because the rest is not needed.
    fn count_part<R>(
        &self,
        table: &mut CountTable,
        number: u64,
        count: impl FnOnce(&mut PartCount<'_, '_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let (positions, is_clean, is_over) = (0..u64::MAX, true, false);
        let mut part = PartCount { job: self, table, number, positions, is_clean, is_over };
        let done = count(&mut part).map(Some);
        let PartCount { is_clean, is_over, .. } = part;
        let Err(error) = done else { return done };
        self.is_closed.store(true, Ordering::Relaxed);
        self.turns.iter().for_each(|turns| turns.end_before(number));
        if is_over && error == Error::Interrupted {
            return Ok(None);
        }
        lock(&self.counted).0.is_partial |= self.turns.is_none() || !is_clean;
        Err(error)
    }

    /// Drop the documents beyond the limit in characters. Returns whether it is exceeded.
    fn limit(&self, documents: &mut Documents) -> bool {
        let Some(most) = self.options.max_chars else { return false };
        // No part has a turn after the one that exceeds the limit, so this does not underflow.
        let chars = &mut lock(&self.counted).1.chars;
        *chars += documents.limit(most - *chars);
        *chars > most
    }

    /// The progress so far, without what was read.
    fn progress(&self) -> CountProgress {
        let (CountTotals { texts, text_bytes, .. }, Reached { chars, .. }) = &*lock(&self.counted);
        CountProgress {
            texts: *texts,
            text_bytes: *text_bytes,
            chars: *chars,
            ..Default::default()
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
    pub(super) positions: Range<u64>,
    /// Whether nothing of the part was counted.
    is_clean: bool,
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
        let (counted, reached) = &mut *lock(&job.counted);
        counted.texts += (documents.ends.len() - usize::from(documents.is_continued)) as u64;
        counted.text_bytes += documents.bytes.len() as u64;
        counted.skips.add(&documents.skipped);
        reached.place = end.max(reached.place);
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
        if is_last && !is_over {
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
