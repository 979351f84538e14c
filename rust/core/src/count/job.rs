//! What the counting of files and that of columns have in common: the threads that count also read,
//! and some decisions depend on all earlier parts of the corpus.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::corpus::{DocumentOptions, Documents, FilePlace, SkippedRows};
use crate::count::table::CountTable;
use crate::error::{Error, Result};
use crate::parallel::{self, lock};
use crate::pretokenize::Splitter;

/// How files are counted.
#[derive(Debug, Clone, Default)]
pub struct FileCountOptions {
    /// How their documents are read.
    pub documents: DocumentOptions,
    /// Reading stops with the document that takes the total above this many characters.
    pub max_chars: Option<u64>,
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
    /// Whether the caller has requested a stop.
    pub(super) stop: AtomicBool,
}

/// The first error in the order of the parts: of the blocks of files, or of ranges of rows.
pub(super) struct Failure {
    /// The number of the part.
    pub(super) part: u64,
    /// Where a block starts.
    pub(super) place: FilePlace,
    pub(super) error: Error,
    /// Whether nothing of the part, and nothing after it, was counted.
    pub(super) is_clean: bool,
}

impl<'a> CountJob<'a> {
    /// A job that goes on after these numbers of texts, bytes and characters. Parts are counted in
    /// turns if there is a limit, or if the counter is careful; a careful counter also splits
    /// documents first, if the pattern may fail.
    pub(super) fn new(
        splitter: &'a Splitter,
        options: &'a FileCountOptions,
        is_careful: bool,
        counted: [u64; 3],
    ) -> Self {
        let in_turns = is_careful || options.max_chars.is_some();
        Self {
            options,
            splitter,
            splits_first: is_careful && splitter.may_fail(),
            turns: in_turns.then(Turns::default),
            failure: Mutex::default(),
            skips: Mutex::default(),
            counted: counted.map(AtomicU64::new),
            stop: AtomicBool::new(false),
        }
    }

    /// Do the work with each table, in a thread of its own, and call `report` regularly. Its error is
    /// returned, and requests a stop.
    pub(super) fn run(
        &self,
        tables: &mut [CountTable],
        work: impl Fn(&mut CountTable) + Sync,
        report: &mut (dyn FnMut() -> Result<()> + Send),
    ) -> Result<()> {
        let threads = tables.len();
        let tables = Mutex::new(tables.iter_mut().collect::<Vec<_>>());
        let table = || lock(&tables).pop();
        let run = |table: &mut Option<&mut CountTable>, ()| {
            if let Some(table) = table {
                work(table);
            }
        };
        let report = |_| {
            let result = report();
            self.stop.store(result.is_err(), Ordering::Relaxed);
            result
        };
        parallel::ordered(vec![(); threads], threads, 0, |()| 0, table, run, report)
    }

    /// Fails if splitting one of the documents would fail later, where that matters.
    pub(super) fn split_first(&self, documents: &Documents) -> Result<()> {
        if self.splits_first {
            for (_, text) in documents.texts()? {
                self.splitter.for_each(text, |_| ())?;
            }
        }
        Ok(())
    }

    /// Drop the documents beyond the limit. Returns whether there are more characters than that.
    pub(super) fn limit(&self, documents: &mut Documents) -> bool {
        let Some(most) = self.options.max_chars else { return false };
        // Only the thread whose turn it is comes here, so a load and a store need no lock. After the
        // turn that exceeds the limit there is none, so `before` is at most the limit.
        let before = self.counted[2].load(Ordering::Relaxed);
        let chars = before + documents.limit(most - before);
        self.counted[2].store(chars, Ordering::Relaxed);
        if chars > most {
            documents.drop_skips_after_the_last();
        }
        chars > most
    }

    /// Note that documents were counted.
    pub(super) fn add(&self, documents: &Documents) {
        let texts = documents.ends.len() - usize::from(documents.is_continued);
        for (counted, more) in self.counted.iter().zip([texts, documents.bytes.len()]) {
            counted.fetch_add(more as u64, Ordering::Relaxed);
        }
        lock(&self.skips).add(&documents.skipped);
    }

    /// The texts, the bytes and the characters counted.
    pub(super) fn counted(&self) -> [u64; 3] {
        self.counted.each_ref().map(|number| number.load(Ordering::Relaxed))
    }

    /// Record an error.
    pub(super) fn fail(&self, failure: Failure) {
        if let Some(turns) = &self.turns {
            turns.end_before(failure.part);
        }
        let is_clean = failure.is_clean && self.turns.is_some();
        let mut first = lock(&self.failure);
        if first.as_ref().is_none_or(|first| failure.part < first.part) {
            *first = Some(Failure { is_clean, ..failure });
        }
    }
}

/// Gives the parts of a corpus their turns in order, whichever threads work on them.
///
/// Threads read parts of a corpus in any order, but some decisions depend on all earlier parts. A
/// thread waits until it is the turn of its part, decides, and passes the turn on.
pub(super) struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
}

struct Turn {
    /// The part whose turn it is.
    next: u64,
    /// This part and later ones have no turn.
    end: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self { state: Mutex::new(Turn { next: 0, end: u64::MAX }), changed: Condvar::new() }
    }
}

impl Turns {
    /// Wait for the turn of a part. Returns whether it has one.
    pub(super) fn wait(&self, part: u64) -> bool {
        // An end wakes the threads that wait for a turn that will not come.
        let waits = |turn: &mut Turn| turn.next < part && part < turn.end;
        let waited = self.changed.wait_while(lock(&self.state), waits);
        part < waited.unwrap_or_else(PoisonError::into_inner).end
    }

    /// End the turn of a part; `goes_on` tells whether another one may follow.
    pub(super) fn pass(&self, part: u64, goes_on: bool) {
        let mut turn = lock(&self.state);
        turn.next = part + 1;
        if !goes_on {
            turn.end = turn.end.min(part + 1);
        }
        self.changed.notify_all();
    }

    /// Give no turn to this part and later ones.
    pub(super) fn end_before(&self, part: u64) {
        let mut turn = lock(&self.state);
        turn.end = turn.end.min(part);
        self.changed.notify_all();
    }

    /// The number of parts that had their turn.
    #[cfg(feature = "parquet")]
    pub(super) fn passed(&self) -> u64 {
        lock(&self.state).next
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

    /// Remove a document that was added.
    pub(crate) fn remove(&mut self, file: usize, row: u64) {
        self.documents -= 1;
        self.first.retain(|skip| (skip.file, skip.row) != (file, row));
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
