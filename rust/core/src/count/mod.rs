//! Counts the distinct pretokens of a corpus.
//!
//! A [`Counter`] splits texts and counts their pretokens; [`Counter::finish`] gives the [`Counts`]
//! for training. Only the distinct pretokens are held in memory, never the text. Counts have 64
//! bits and are checked.
//!
//! The distinct pretokens of [`Counts`] are in order of first occurrence. That order does not
//! depend on how the corpus was divided among threads: each table records the position in the
//! corpus where a pretoken was first seen, and the smallest is kept when tables are added up.

#[cfg(feature = "parquet")]
pub(crate) mod column;
mod counts;
pub(crate) mod files;
mod hot;
pub(crate) mod job;
mod spill;
mod table;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

pub use counts::Counts;
pub(crate) use counts::DistinctRows;
use job::{CountTotals, Skips};
use spill::Spill;
use table::CountTable;

use crate::error::Result;
use crate::parallel::lock;
use crate::pretokenize::{Pattern, Splitter};
use crate::text::Text;
use crate::{memory, parallel};

/// A thread takes a share of texts of about this many bytes at a time.
const SHARE_BYTES: usize = 1 << 16;

/// A long text is cut into pieces of about this many bytes, where cuts are safe.
const PIECE_BYTES: usize = 1 << 18;

/// Counts the pretokens of a stream of texts.
///
/// ```
/// use bytepair::{Counter, Pattern};
/// let mut counter = Counter::new(&Pattern::new("gpt2")?, 1)?;
/// counter.add(&["a b", "a"])?;
/// let counts = counter.finish()?;
/// assert_eq!(counts.iter().collect::<Vec<_>>(), [(&b"a"[..], 2), (&b" b"[..], 1)]);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct Counter {
    splitter: Splitter,
    /// One table per thread; each sees its own share of the texts.
    tables: Vec<CountTable>,
    counted: CountTotals,
    /// The position of the next text. Positions rise, and may have gaps.
    position: u64,
}

impl Counter {
    /// An empty counter with the given pattern, for `threads` threads. Fails if the pattern is invalid,
    /// or if there is not enough memory.
    pub fn new(pattern: &Pattern, threads: usize) -> Result<Self> {
        let splitter = Splitter::new(pattern)?;
        let threads = threads.clamp(1, parallel::MAX_THREADS);
        memory::check(threads * CountTable::EMPTY_BYTES)?;
        let tables = (0..threads).map(|_| CountTable::default()).collect();
        Ok(Self { splitter, tables, counted: CountTotals::default(), position: 0 })
    }

    /// Split all texts of a batch before any of them is counted, if the pattern may fail, so that
    /// the counter stays usable after such an error.
    #[must_use]
    #[doc(hidden)]
    pub fn with_care(mut self) -> Self {
        self.tables.iter_mut().for_each(|table| table.is_careful = true);
        self
    }

    /// Use at most about `bytes` of memory while counting, shared among the threads. Counts that
    /// exceed it are spilled to files in `folder`, an empty folder that the caller creates and
    /// removes afterwards. No other code may change the files in it: some are mapped.
    ///
    /// The counts are the same with any limit. [`Counts`] that take more than half of the limit
    /// (the bytes of the distinct pretokens and 16 more for each) stay in files, which are mapped;
    /// systems that cannot remove a mapped file hold them in memory. The limit does not include the
    /// texts of one call and a single pretoken.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: usize, folder: &Path) -> Self {
        let spill = Arc::new(Spill::new(bytes / self.tables.len(), folder));
        self.tables.iter_mut().for_each(|table| table.spill = Some(Arc::clone(&spill)));
        self
    }

    /// Split `texts`, each a document of its own, and count their pretokens.
    ///
    /// After an error, if [`is_whole`](Self::is_whole) is false, the counter holds an unknown part
    /// of these texts and should be dropped.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        if self.tables[0].is_careful && self.splitter.may_fail() {
            let threads = parallel::worth(self.tables.len(), texts.iter().map(|t| t.len()).sum());
            let split = |range: Range<usize>| {
                texts[range].iter().try_for_each(|text| self.splitter.for_each(text, |_| ()))
            };
            let shares = parallel::shares(texts, threads, |text| text.len()).into_iter();
            let done = parallel::run(shares.map(|range| || split(range)));
            done.into_iter().collect::<Result<()>>()?;
        }
        let was_partial = std::mem::replace(&mut self.counted.is_partial, true);
        self.add_texts(texts)?;
        self.counted.is_partial = was_partial;
        Ok(())
    }

    /// Whether each batch of texts was counted completely or rejected as a whole.
    #[doc(hidden)]
    pub fn is_whole(&self) -> bool {
        !self.counted.is_partial
    }

    fn add_texts(&mut self, texts: &[&str]) -> Result<()> {
        let pieces = self.pieces(texts)?;
        let size: usize = texts.iter().map(|text| text.len()).sum();
        // Many shares, of which each thread takes one after another: a slow thread takes fewer, and
        // does not delay the others. The shares of one thread are in ascending order.
        let shares = parallel::shares(&pieces, 1 + size / SHARE_BYTES, |(text, _)| text.len());
        let shares = Mutex::new(shares.into_iter());
        let threads = parallel::worth(self.tables.len(), size);
        let next = || lock(&shares).next();
        let work = |table: &mut CountTable| {
            while let Some(share) = next() {
                for &(text, position) in &pieces[share] {
                    table.add_text(&self.splitter, text, position)?;
                }
            }
            Ok(())
        };
        let jobs = self.tables[..threads].iter_mut().map(|table| || work(table));
        parallel::run(jobs).into_iter().collect::<Result<()>>()?;
        self.counted.texts += texts.len() as u64;
        self.counted.text_bytes += size as u64;
        self.position += size as u64;
        Ok(())
    }

    /// The texts with their positions in the corpus. Long texts are cut where that does not change
    /// their pretokens, so several threads can share one.
    fn pieces<'t>(&self, texts: &[&'t str]) -> Result<Vec<(&'t str, u64)>> {
        let mut pieces = memory::with_capacity(texts.len())?;
        let mut offset = self.position;
        for &text in texts {
            let mut rest = text;
            while let Some(cut) = self.splitter.cut_long(&Text::Utf8(rest), PIECE_BYTES) {
                let (piece, after) = rest.split_at(cut);
                memory::push(&mut pieces, (piece, offset))?;
                offset += piece.len() as u64;
                rest = after;
            }
            memory::push(&mut pieces, (rest, offset))?;
            offset += rest.len() as u64;
        }
        Ok(pieces)
    }

    /// The number of texts that were added.
    pub fn texts(&self) -> u64 {
        self.counted.texts
    }

    /// The number of bytes of text that were added.
    pub fn text_bytes(&self) -> u64 {
        self.counted.text_bytes
    }

    /// The documents skipped since the last call: their number, and the first of them.
    #[doc(hidden)]
    pub fn take_skips(&mut self) -> Skips {
        std::mem::take(&mut self.counted.skips)
    }

    /// Add up the tables of the threads. Fails if there is not enough memory, or if there is a memory
    /// limit and a file cannot be written or read.
    pub fn finish(mut self) -> Result<Counts> {
        let Some(spill) = self.tables[0].spill.clone() else { return table::merge(self.tables) };
        let (threads, memory) = (self.tables.len(), self.tables.iter().map(CountTable::memory));
        // Until a block of a table is freed, its rows are in the counts as well.
        if 4 * memory.sum::<usize>() <= spill.memory * threads && !spill.is_used() {
            return table::merge(self.tables);
        }
        self.tables.iter_mut().try_for_each(CountTable::spill)?;
        drop(self.tables);
        spill.merge(threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_batches_do_not_change_the_result() {
        let texts: Vec<String> =
            (0..500).map(|i| format!("text {} of {} words, {}", i * i % 7, i % 13, i)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let count = |threads, batch| {
            let mut counter = Counter::new(&Pattern::new("nanochat").unwrap(), threads).unwrap();
            texts.chunks(batch).for_each(|chunk| counter.add(chunk).unwrap());
            assert_eq!(counter.texts(), 500);
            counter.finish().unwrap()
        };
        let one = count(1, 500);
        assert_eq!(one.text_bytes(), texts.iter().map(|t| t.len() as u128).sum());
        for (threads, batch) in [(1, 1), (2, 500), (3, 7), (8, 100), (16, 3)] {
            assert_eq!(count(threads, batch), one, "{threads} threads, batches of {batch}");
        }
    }

    /// The slow reference is a map of pretokens.
    #[test]
    fn equals_a_plain_map() {
        let words =
            ["a", "be", "the", "internationalization", "中文字符中文字符", " x", "\n\n", "é"];
        let mut state = 1u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            words[usize::try_from(state >> 61).unwrap()].to_owned()
        };
        let text: String = (0..50_000).map(|i| word() + &format!(" {}", i % 5000)).collect();
        let splitter = Splitter::new(&Pattern::new("gpt2").unwrap()).unwrap();
        let mut plain: Vec<(Vec<u8>, u64)> = Vec::new();
        let mut rows = std::collections::HashMap::new();
        splitter
            .for_each(&text, |pretoken| {
                let next = plain.len();
                let row = *rows.entry(pretoken.as_bytes().to_vec()).or_insert(next);
                if row == next {
                    plain.push((pretoken.into(), 0));
                }
                plain[row].1 += 1;
            })
            .unwrap();
        for threads in [1, 2, 5] {
            let mut counter = Counter::new(&Pattern::new("gpt2").unwrap(), threads).unwrap();
            counter.add(&[&text]).unwrap();
            let counts = counter.finish().unwrap();
            let rows: Vec<(Vec<u8>, u64)> = counts.iter().map(|(p, n)| (p.to_vec(), n)).collect();
            assert_eq!(rows, plain);
        }
    }

    #[test]
    fn a_total_beyond_64_bits_is_an_error() {
        let counts = Counts::new([(&b"a"[..], u64::MAX), (&b"b"[..], 1)]);
        assert_eq!(counts.total(), Err(crate::Error::CountOverflow));
    }
}
