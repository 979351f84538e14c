//! Pretokens in, distinct pretokens with their counts out.
//!
//! A [`Counter`] takes texts, splits them, and adds one for each pretoken; [`Counter::finish`]
//! gives the [`Counts`] that training needs. Only the distinct pretokens are ever held, never the
//! text. Counts are 64 bits and checked.
//!
//! The distinct pretokens of [`Counts`] stand in the order in which the corpus first shows them.
//! That order does not depend on how the corpus was cut for the threads: each pretoken keeps the
//! place in the corpus at which it was first seen, and the smallest wins when partial counts are added
//! up.

mod counts;

mod near;

mod spill;

mod table;

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub use counts::Counts;
use table::{Limit, Table};

use crate::error::{Error, Result};
use crate::parallel;
use crate::parquet::{Part, TextColumn};
use crate::pretokenize::{Pattern, Splitter};
use crate::text::Text;

/// A thread takes texts of about so many bytes together.
const SHARE: usize = 1 << 16;

/// A long text is cut into pieces of about so many bytes, if it may be cut.
const PIECE: usize = 1 << 18;

/// A part of a column has so many places in the corpus, whatever its size, since that is known only when
/// it was read. The few with more bytes are read by one thread, whose rows are in order anyway.
const PLACES_A_PART: u64 = 1 << 36;

/// A page of a parquet file may have so many bytes whatever the memory limit.
const PAGE: usize = 192_000_000;

/// How often a pretoken was seen, and the place in the corpus at which it first was.
#[derive(Debug, Clone, Copy)]
struct Seen {
    count: u64,
    first: u64,
}

impl Seen {
    /// Add what another part of the corpus saw.
    #[inline]
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
    }

    /// Two parts of the corpus saw it: whoever was first gets the count of the other, who is left
    /// with 0. If one has 0, nothing changes.
    #[inline]
    fn meet(&mut self, other: &mut Self) {
        if self.count == 0 || other.count == 0 {
            return;
        }
        let (first, second) = if self.first < other.first { (self, other) } else { (other, self) };
        first.count += std::mem::take(&mut second.count);
    }
}

/// Counts the pretokens of a stream of texts.
///
/// ```
/// use bytepair::{Counter, Pattern};
/// let mut counter = Counter::new(&Pattern::new("gpt2"), 1)?;
/// counter.add(&["a b", "a"])?;
/// let counts = counter.finish()?;
/// assert_eq!(counts.iter().collect::<Vec<_>>(), [(&b"a"[..], 2), (&b" b"[..], 1)]);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct Counter {
    splitter: Splitter,
    /// One table a thread; each sees its own share of the texts.
    tables: Vec<Table>,
    texts: u64,
    text_bytes: u64,
    /// The place of the next text. Places rise with the corpus and may leave some out.
    place: u64,
}

impl Counter {
    /// An empty count with the given pattern, to be filled by `threads` threads.
    pub fn new(pattern: &Pattern, threads: usize) -> Result<Self> {
        if pattern.normalizes() {
            let reason = "texts are counted as they are; normalize them and leave out its mark";
            let pattern = pattern.regex().to_owned();
            return Err(Error::Pattern { pattern, at: None, reason: reason.to_owned() });
        }
        let splitter = Splitter::new(pattern)?;
        let tables = (0..threads.max(1)).map(|_| Table::default()).collect();
        Ok(Self { splitter, tables, texts: 0, text_bytes: 0, place: 0 })
    }

    /// Hold about `bytes` at most while counting, shared among the threads; what does not fit is put
    /// aside in files in `folder`, which the caller makes, empty, and removes afterwards.
    ///
    /// The counts are the same with any limit. The limit is not on the text that is given at once,
    /// nor on a single pretoken, nor on the [`Counts`] at the end, which take the bytes of the
    /// distinct pretokens and 16 more for each.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: usize, folder: &Path) -> Self {
        let memory = bytes / self.tables.len();
        for (number, table) in self.tables.iter_mut().enumerate() {
            let folder = folder.to_owned();
            table.limit = Some(Limit { memory, folder, number, spill: None });
        }
        self
    }

    /// How many bytes a page of a column may have that is counted, lest reading take more memory than
    /// counting: half of what a thread may take, or what is little for any machine.
    pub fn most_page_bytes(&self) -> u64 {
        let limit = self.tables[0].limit.as_ref();
        limit.map_or(u64::MAX, |limit| (limit.memory / 2).max(PAGE) as u64)
    }

    /// Split `texts` and add their pretokens; each is a document of its own.
    ///
    /// On an error the counter holds an unknown part of these texts and should be dropped.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        let pieces = self.pieces(texts);
        let size: usize = texts.iter().map(|text| text.len()).sum();
        let shares = parallel::shares(&pieces, 1 + size / SHARE, |(text, _)| text.len());
        let threads = parallel::worth(self.tables.len(), size);
        let work = |table: &mut Table, share: usize| {
            pieces[shares[share].clone()]
                .iter()
                .try_for_each(|&(text, place)| table.add_text(&self.splitter, text, place))
        };
        deal(&mut self.tables[..threads], shares.len(), work, &mut || Ok(()))?;
        self.texts += texts.len() as u64;
        self.text_bytes += size as u64;
        self.place += size as u64;
        Ok(())
    }

    /// Split the texts of parts of a column of parquet files, each a document of its own, and add their
    /// pretokens. The threads that count also read. Now and then `on_progress` is called with the
    /// number of texts so far, and of their bytes.
    ///
    /// Fails if a file cannot be read, or with what `on_progress` fails with; then as
    /// [`add`](Self::add) does.
    pub fn add_column(
        &mut self,
        column: &TextColumn,
        parts: &[Part],
        on_progress: &mut (dyn FnMut(u64, u64) -> Result<()> + Send),
    ) -> Result<()> {
        if let [part] = parts {
            return self.add_part(column, part, on_progress);
        }
        let (splitter, first) = (&self.splitter, self.place);
        let (texts, text_bytes) = (&AtomicU64::new(self.texts), &AtomicU64::new(self.text_bytes));
        let work = |table: &mut Table, part: usize| {
            let (place, mut offset) = (first + part as u64 * PLACES_A_PART, 0);
            column.for_each(&parts[part], &mut |text| {
                table.add_text(splitter, text, place + offset.min(PLACES_A_PART - 1))?;
                offset += text.len() as u64;
                Ok(())
            })?;
            texts.fetch_add(parts[part].rows.len() as u64, Ordering::Relaxed);
            text_bytes.fetch_add(offset, Ordering::Relaxed);
            Ok(())
        };
        let so_far = || (texts.load(Ordering::Relaxed), text_bytes.load(Ordering::Relaxed));
        deal(&mut self.tables, parts.len(), work, &mut || {
            let (texts, text_bytes) = so_far();
            on_progress(texts, text_bytes)
        })?;
        (self.texts, self.text_bytes) = so_far();
        self.place += parts.len() as u64 * PLACES_A_PART;
        Ok(())
    }

    /// Add the only part of a column: it is read by one thread, but all share its long texts.
    fn add_part(
        &mut self,
        column: &TextColumn,
        part: &Part,
        on_progress: &mut (dyn FnMut(u64, u64) -> Result<()> + Send),
    ) -> Result<()> {
        let texts = self.texts;
        column.for_each(part, &mut |text| {
            if text.len() > 2 * PIECE {
                return self.add(&[text]);
            }
            self.tables[0].add_text(&self.splitter, text, self.place)?;
            self.text_bytes += text.len() as u64;
            self.place += text.len() as u64;
            Ok(())
        })?;
        self.texts = texts + part.rows.len() as u64;
        on_progress(self.texts, self.text_bytes)
    }

    /// The texts with their offsets in the corpus, the long ones cut where that changes nothing, so
    /// that several threads can share one.
    fn pieces<'t>(&self, texts: &[&'t str]) -> Vec<(&'t str, u64)> {
        let mut pieces = Vec::with_capacity(texts.len());
        let mut offset = self.place;
        for &text in texts {
            let mut rest = text;
            while let Some(cut) = self.splitter.cut_long(&Text::Utf8(rest), PIECE) {
                let (piece, after) = rest.split_at(cut);
                pieces.push((piece, offset));
                offset += piece.len() as u64;
                rest = after;
            }
            pieces.push((rest, offset));
            offset += rest.len() as u64;
        }
        pieces
    }

    /// How many texts were added.
    pub fn texts(&self) -> u64 {
        self.texts
    }

    /// How many bytes of text were added.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Add up what the threads saw. Fails only if there is a memory limit and files cannot be written
    /// or read.
    pub fn finish(self) -> Result<Counts> {
        if let Some(limit) = &self.tables[0].limit {
            let memory: usize = self.tables.iter().map(Table::memory).sum();
            let spilled = |table: &Table| table.limit.as_ref().is_some_and(|l| l.spill.is_some());
            // Adding up in memory takes the rows of all beside the tables of the threads.
            if self.tables.iter().any(spilled) || 4 * memory > limit.memory * self.tables.len() {
                let folder = limit.folder.clone();
                return finish_on_disk(self.tables, &folder);
            }
        }
        Ok(table::merge(self.tables))
    }
}

/// Let each table be filled by a thread, which does the next of so many parts that nobody has begun, so
/// that one that is held up does not hold up the others. The parts of a table rise, as it wants it.
///
/// Behind each of its own parts the first thread asks whether to go on.
fn deal(
    tables: &mut [Table],
    parts: usize,
    work: impl Fn(&mut Table, usize) -> Result<()> + Sync,
    go_on: &mut (dyn FnMut() -> Result<()> + Send),
) -> Result<()> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let mut leader = Some(go_on);
    let jobs = tables.iter_mut().map(|table| {
        let mut leader = leader.take();
        move || loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return Ok(());
            }
            let done = work(table, part).and_then(|()| leader.as_mut().map_or(Ok(()), |ask| ask()));
            if done.is_err() {
                next.store(parts, Ordering::Relaxed);
                return done;
            }
        }
    });
    parallel::run(jobs).into_iter().collect()
}

/// Add up what the threads put aside and what they still hold.
fn finish_on_disk(mut tables: Vec<Table>, folder: &Path) -> Result<Counts> {
    tables.iter_mut().try_for_each(Table::spill)?;
    let spills = tables.into_iter().filter_map(|table| table.limit?.spill).collect();
    let mut counts = Counts::default();
    spill::merge(spills, folder, |pretoken, count| counts.push(pretoken, count))?;
    Ok(counts)
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
            let mut counter = Counter::new(&Pattern::new("nanochat"), threads).unwrap();
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

    /// A map of boxed pretokens, the slow twin.
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
        let splitter = Splitter::new(&Pattern::new("gpt2")).unwrap();
        let mut plain: Vec<(Vec<u8>, u64)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        splitter
            .for_each(&text, |pretoken| {
                let next = plain.len();
                let place = *places.entry(pretoken.as_bytes().to_vec()).or_insert(next);
                if place == next {
                    plain.push((pretoken.into(), 0));
                }
                plain[place].1 += 1;
            })
            .unwrap();
        for threads in [1, 2, 5] {
            let mut counter = Counter::new(&Pattern::new("gpt2"), threads).unwrap();
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
