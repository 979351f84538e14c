//! The work on files that the threads of a counter share: each takes the next block, finds the
//! documents in it, waits for its turn if blocks are counted in turns, and counts them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::corpus::{
    BlockReader, CorpusFile, DocumentOptions, Documents, FieldTally, FileBlock, FilePlace, OnError,
};
use crate::count::job::{CountJob, Failure};
use crate::count::table::CountTable;
use crate::error::{Error, Result};
use crate::parallel::lock;

/// The state that the threads share.
pub(super) struct FileWork<'a> {
    pub(super) job: CountJob<'a>,
    files: &'a [CorpusFile],
    /// Whether texts may be cut.
    cuts: bool,
    blocks: Mutex<BlockReader>,
    fields: Mutex<BTreeMap<usize, FieldTally>>,
    packed: AtomicU64,
    expanded: Mutex<Vec<(usize, u64)>>,
    /// Whether the last block stands for a line that is too long and was not read to its end.
    pub(super) is_in_long_line: AtomicBool,
}

impl<'a> FileWork<'a> {
    /// The work from a place on, which has this position in the corpus.
    pub(super) fn new(
        job: CountJob<'a>,
        files: &'a [CorpusFile],
        place: FilePlace,
        position: u64,
    ) -> Self {
        let DocumentOptions { on_error, doc_cap, bounds, .. } = job.options.documents;
        let is_limited = doc_cap.is_some() || job.options.max_chars.is_some();
        let blocks = BlockReader::new(files.to_vec(), bounds, place, position);
        Self {
            job,
            files,
            cuts: !is_limited && on_error != OnError::Skip,
            blocks: Mutex::new(blocks.with_damaged_kept(on_error == OnError::Skip)),
            fields: Mutex::default(),
            packed: AtomicU64::new(0),
            expanded: Mutex::default(),
            is_in_long_line: AtomicBool::new(false),
        }
    }

    /// Count one block after another.
    pub(super) fn run(&self, table: &mut CountTable) {
        let mut documents = Documents::default();
        while let Some(mut block) = self.next(&mut documents) {
            let (part, place) = (block.order, block.start);
            let reading = self.find(&mut documents, &mut block);
            let done = match reading {
                Ok(()) if self.is_turn(&block, &mut documents) => {
                    self.count(table, &documents, &block).map_err(|error| (error, false))
                }
                Ok(()) => return,
                Err(error) => Err((error, true)),
            };
            if let Err((error, is_clean)) = done {
                self.fail(Failure { part, place, error, is_clean });
                return;
            }
        }
    }

    /// The next block, if there is one.
    fn next(&self, documents: &mut Documents) -> Option<FileBlock> {
        // The memory of the last block is used again.
        let bytes = documents.take_memory(&self.job.options.documents.bounds);
        let splitter = self.cuts.then_some(self.job.splitter);
        let mut blocks = lock(&self.blocks);
        let place = blocks.place();
        let next = blocks.next(splitter, &self.job.stop, bytes);
        self.packed.store(blocks.packed(), Ordering::Relaxed);
        lock(&self.expanded).extend(blocks.take_expanded());
        let part = blocks.order();
        if let Ok(block) = &next {
            // A line that is too long is passed over piece by piece; until its end is reached, the
            // place stays at its start.
            let is_in_line = block.as_ref().is_some_and(|block| block.start == blocks.place());
            self.is_in_long_line.store(is_in_line, Ordering::Relaxed);
        }
        drop(blocks);
        next.unwrap_or_else(|error| {
            if error != Error::Interrupted {
                self.fail(Failure { part, place, error, is_clean: true });
            }
            None
        })
    }

    /// Find the documents of a block.
    fn find(&self, documents: &mut Documents, block: &mut FileBlock) -> Result<()> {
        documents.read(block, &self.files[block.start.file], &self.job.options.documents)?;
        self.job.split_first(documents)
    }

    /// Wait until all earlier blocks have had their turn, if there are turns, and drop the
    /// documents beyond the limit. Returns whether the block must be counted.
    fn is_turn(&self, block: &FileBlock, documents: &mut Documents) -> bool {
        let Some(turns) = &self.job.turns else { return true };
        if !turns.wait(block.order) {
            return false;
        }
        let is_over = self.job.limit(documents);
        // Passed before counting: only the limit depends on the order of blocks.
        turns.pass(block.order, !is_over);
        if is_over {
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
            table.add_text(self.job.splitter, text, block.position + start as u64)?;
        }
        self.job.add(documents);
        let mut fields = lock(&self.fields);
        let tally = fields.entry(block.start.file).or_default();
        tally.add(documents, block);
        Ok(())
    }

    /// Record an error and stop reading.
    fn fail(&self, failure: Failure) {
        lock(&self.blocks).close();
        self.job.fail(failure);
    }

    /// Fails if no object has the field in a file all of whose blocks were counted and are before
    /// the block `end`.
    pub(super) fn check_fields(&self, end: u64) -> Result<()> {
        let field = &self.job.options.documents.field;
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
        let [texts, text_bytes, chars] = self.job.counted();
        let packed = self.packed.load(Ordering::Relaxed);
        let expanded = std::mem::take(&mut *lock(&self.expanded));
        FileProgress { texts, text_bytes, packed, chars, expanded }
    }
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
