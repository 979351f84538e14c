//! The work on files that the threads of a counter share: each takes the next block, finds the
//! documents in it, waits for its turn if blocks are counted in turns, and counts them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::corpus::{
    BlockReader, CorpusFile, DocumentOptions, Documents, FieldTally, FileBlock, FilePlace, OnError,
};
use crate::count::skips::Skips;
use crate::count::table::CountTable;
use crate::error::{Error, Result};
use crate::parallel::lock;
use crate::pretokenize::Splitter;

/// The state that the threads share.
pub(super) struct FileWork<'a> {
    files: &'a [CorpusFile],
    options: &'a FileCountOptions,
    splitter: &'a Splitter,
    /// Whether texts may be cut.
    cuts: bool,
    /// Whether documents are first split without counting, to find out if splitting fails.
    splits_first: bool,
    blocks: Mutex<BlockReader>,
    pub(super) turns: Option<Turns>,
    pub(super) failure: Mutex<Option<Failure>>,
    fields: Mutex<BTreeMap<usize, FieldTally>>,
    texts: AtomicU64,
    text_bytes: AtomicU64,
    packed: AtomicU64,
    chars: AtomicU64,
    expanded: Mutex<Vec<(usize, u64)>>,
    pub(super) skips: Mutex<Skips>,
    /// Whether the last block stands for a line that is too long and was not read to its end.
    pub(super) is_in_long_line: AtomicBool,
    pub(super) stop: AtomicBool,
}

/// The first error in the order of the blocks.
pub(super) struct Failure {
    pub(super) order: u64,
    /// The start of the block.
    pub(super) place: FilePlace,
    pub(super) error: Error,
    /// Whether no part of the block was counted.
    pub(super) is_clean: bool,
}

impl<'a> FileWork<'a> {
    pub(super) fn new(
        files: &'a [CorpusFile],
        start: Reached,
        options: &'a FileCountOptions,
        position: u64,
        splitter: &'a Splitter,
    ) -> Self {
        let DocumentOptions { on_error, doc_cap, bounds, .. } = options.documents;
        let is_limited = doc_cap.is_some() || options.max_chars.is_some();
        Self {
            files,
            options,
            splitter,
            cuts: !is_limited && on_error != OnError::Skip,
            splits_first: false,
            blocks: Mutex::new(
                BlockReader::new(files.to_vec(), bounds, start.place, position)
                    .with_damaged_kept(on_error == OnError::Skip),
            ),
            turns: None,
            failure: Mutex::default(),
            fields: Mutex::default(),
            texts: AtomicU64::new(0),
            text_bytes: AtomicU64::new(0),
            packed: AtomicU64::new(0),
            chars: AtomicU64::new(start.chars),
            expanded: Mutex::default(),
            skips: Mutex::default(),
            is_in_long_line: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        }
    }

    /// Set whether blocks are counted in turns; a careful counter also splits documents first if
    /// the pattern may fail.
    pub(super) fn with_turns(self, in_turns: bool, is_careful: bool) -> Self {
        let splits_first = is_careful && self.splitter.may_fail();
        Self { turns: in_turns.then(Turns::default), splits_first, ..self }
    }

    /// Count one block after another.
    pub(super) fn run(&self, table: &mut CountTable) {
        let mut documents = Documents::default();
        while let Some(mut block) = self.next(&mut documents) {
            let (order, place) = (block.order, block.start);
            let reading = self.find(&mut documents, &mut block);
            let done = match reading {
                Ok(()) if self.is_turn(&block, &mut documents) => {
                    self.count(table, &documents, &block).map_err(|error| (error, false))
                }
                Ok(()) => return,
                Err(error) => Err((error, true)),
            };
            if let Err((error, is_clean)) = done {
                self.fail(Failure { order, place, error, is_clean });
                return;
            }
        }
    }

    /// The next block, if there is one.
    fn next(&self, documents: &mut Documents) -> Option<FileBlock> {
        // The memory of the last block is used again.
        let bytes = documents.take_memory(&self.options.documents.bounds);
        let splitter = self.cuts.then_some(self.splitter);
        let mut blocks = lock(&self.blocks);
        let place = blocks.place();
        let next = blocks.next(splitter, &self.stop, bytes);
        self.packed.store(blocks.packed(), Ordering::Relaxed);
        lock(&self.expanded).extend(blocks.take_expanded());
        let order = blocks.order();
        if let Ok(block) = &next {
            // A line that is too long is passed over piece by piece; until its end is reached, the
            // place stays at its start.
            let is_in_line = block.as_ref().is_some_and(|block| block.start == blocks.place());
            self.is_in_long_line.store(is_in_line, Ordering::Relaxed);
        }
        drop(blocks);
        next.unwrap_or_else(|error| {
            if error != Error::Interrupted {
                self.fail(Failure { order, place, error, is_clean: true });
            }
            None
        })
    }

    /// Find the documents of a block.
    fn find(&self, documents: &mut Documents, block: &mut FileBlock) -> Result<()> {
        documents.read(block, &self.files[block.start.file], &self.options.documents)?;
        if self.splits_first {
            for (_, text) in documents.texts()? {
                self.splitter.for_each(text, |_| ())?;
            }
        }
        Ok(())
    }

    /// Wait until all earlier blocks have had their turn, if there are turns, and drop the
    /// documents beyond the limit. Returns whether the block must be counted.
    fn is_turn(&self, block: &FileBlock, documents: &mut Documents) -> bool {
        let Some(turns) = &self.turns else { return true };
        if !turns.wait(block.order) {
            return false;
        }
        let is_over = self.options.max_chars.is_some_and(|most| {
            // Only the thread whose turn it is comes here, so a load and a store need no lock.
            let before = self.chars.load(Ordering::Relaxed);
            let chars = before + documents.limit(most - before);
            self.chars.store(chars, Ordering::Relaxed);
            chars > most
        });
        // Passed before counting: only the limit depends on the order of blocks.
        turns.pass(block.order, !is_over);
        if is_over {
            documents.drop_skips_after_the_last();
            lock(&self.blocks).close();
        }
        true
    }

    fn count(
        &self,
        table: &mut CountTable,
        documents: &Documents,
        block: &FileBlock,
    ) -> Result<()> {
        for (start, text) in documents.texts()? {
            table.add_text(self.splitter, text, block.position + start as u64)?;
        }
        let texts = documents.ends.len() - usize::from(documents.is_continued);
        self.texts.fetch_add(texts as u64, Ordering::Relaxed);
        self.text_bytes.fetch_add(documents.bytes.len() as u64, Ordering::Relaxed);
        lock(&self.skips).add(&documents.skipped);
        let mut fields = lock(&self.fields);
        let tally = fields.entry(block.start.file).or_default();
        tally.add(documents, block);
        Ok(())
    }

    /// Record an error and stop reading.
    fn fail(&self, failure: Failure) {
        lock(&self.blocks).close();
        if let Some(turns) = &self.turns {
            turns.end_before(failure.order);
        }
        let mut first = lock(&self.failure);
        if first.as_ref().is_none_or(|first| failure.order < first.order) {
            *first = Some(failure);
        }
    }

    /// Fails if no object has the field in a file all of whose blocks were counted and are before
    /// the block `end`.
    pub(super) fn check_fields(&self, end: u64) -> Result<()> {
        let field = &self.options.documents.field;
        let fields = lock(&self.fields);
        let mut done = fields.iter().filter(|(_, tally)| tally.is_complete_before(end));
        done.try_for_each(|(&file, tally)| tally.check(&self.files[file], field))
    }

    /// The end of the last block, as a position in the corpus and as a place in the files.
    pub(super) fn end(&self) -> (u64, FilePlace) {
        let blocks = lock(&self.blocks);
        (blocks.position(), blocks.place())
    }

    pub(super) fn progress(&self) -> FileProgress {
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        FileProgress {
            texts: number(&self.texts),
            text_bytes: number(&self.text_bytes),
            packed: number(&self.packed),
            chars: number(&self.chars),
            expanded: std::mem::take(&mut lock(&self.expanded)),
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
    /// The position at which counting continues.
    pub place: FilePlace,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
}

/// The progress of counting files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProgress {
    /// The number of documents in the counter.
    pub texts: u64,
    /// The number of bytes of these documents.
    pub text_bytes: u64,
    /// The number of bytes read from the files, before decompression.
    pub packed: u64,
    /// The number of characters counted, if there is a limit.
    pub chars: u64,
    /// The files found to exceed the expansion bounds since the last call, with their decompressed
    /// bytes so far.
    pub expanded: Vec<(usize, u64)>,
}
