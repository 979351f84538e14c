//! Rows of parquet files in, their ids out in order: the way from a corpus to token shards.
//!
//! Each thread reads some rows and encodes them at once, out of the page in which they were
//! unpacked, so that a text is neither copied nor handed from one thread to another. The rows are
//! given in items of one or more parts, and what an item gives has the same parts, whatever the
//! threads do.

use crate::corpus::parquet::{RowRange, TextColumn};
use crate::encode::encoder::EncodeCall;
use crate::encode::{EncodeOptions, Id};
use crate::error::Result;
use crate::memory;
use crate::parallel;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

/// So many bytes of text are worked on, or wait for who takes the ids, at most; with many threads,
/// more.
const AHEAD: usize = 1 << 26;
/// For each thread so many bytes at least.
const AHEAD_A_THREAD: usize = 3 << 23;
/// Nor do more than so many items wait, beside those that the threads work on: fewer are given the
/// same memory again, where more would touch new.
const WAITING: usize = 2;
/// Room is made for one id for so many bytes, and for no more text than this: how much there is
/// says the file.
const BYTES_AN_ID: usize = 3;
const ROOM: usize = 1 << 25;

/// The ids of the documents of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<T> {
    /// The ids, end to end.
    pub ids: Vec<T>,
    /// Where those of each document begin, and at last where those of the last one end.
    pub offsets: Vec<i64>,
    /// The same for the bytes of their texts.
    pub text_ends: Vec<i64>,
    /// How many parts of the item these are. What comes first behind them cannot be read or
    /// encoded.
    pub parts: usize,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { ids: Vec::new(), offsets: vec![0], text_ends: vec![0], parts: 0 }
    }
}

/// What [`Tokenizer::encode_rows`] works on.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Where the texts are.
    pub column: &'a TextColumn,
    /// Which rows, in the order of the result. Each part must be in the column.
    pub items: &'a [Vec<RowRange>],
    /// What goes before and after each text.
    pub options: &'a EncodeOptions,
}

impl Tokenizer {
    /// Encode rows of parquet files on up to `threads` threads, each a document of its own; a null
    /// is an empty one.
    ///
    /// `sink` takes what each item gave, in order, and is called with `None` now and then while
    /// there is nothing to take; what it fails with ends everything. `T` must hold every id: see
    /// [`fits_u16`](Self::fits_u16).
    pub fn encode_rows<T: Id>(
        &self,
        job: &Job<'_>,
        threads: usize,
        sink: impl FnMut(Option<Rows<T>>) -> Result<()>,
    ) -> Result<()> {
        let weight = |item: &Vec<RowRange>| sum(item.iter().map(|part| job.column.size(part)));
        let largest = job.items.iter().map(weight).max().unwrap_or(0);
        let most = AHEAD
            .max(threads.saturating_mul(AHEAD_A_THREAD))
            .min(largest.saturating_mul(threads.saturating_add(WAITING)));
        self.expect(sum(job.items.iter().map(weight)));
        let encode = |call: &mut EncodeCall<'_>, item: &Vec<RowRange>| {
            let ids = memory::with_room_for_about(weight(item).min(ROOM) / BYTES_AN_ID);
            let mut rows = Rows { ids, ..Rows::default() };
            for part in item {
                let (ids, documents) = (rows.ids.len(), rows.offsets.len());
                if encode_part(job, part, call, &mut rows).is_err() {
                    rows.ids.truncate(ids);
                    rows.offsets.truncate(documents);
                    rows.text_ends.truncate(documents);
                    break;
                }
                rows.parts += 1;
            }
            rows
        };
        let state = || self.encoder().call().without_repeats();
        parallel::ordered(job.items, threads, most, weight, state, encode, sink)
    }
}

fn encode_part<T: Id>(
    job: &Job<'_>,
    part: &RowRange,
    call: &mut EncodeCall<'_>,
    rows: &mut Rows<T>,
) -> Result<()> {
    let mut bytes = rows.text_ends.last().copied().unwrap_or(0);
    job.column.for_each(part, &mut |text| {
        call.append(&Text::Utf8(text), job.options, &mut rows.ids)?;
        bytes += place(text.len());
        memory::push(&mut rows.offsets, place(rows.ids.len()))?;
        memory::push(&mut rows.text_ends, bytes)
    })
}

/// All sizes together, which may be as large as a file says.
fn sum(sizes: impl Iterator<Item = usize>) -> usize {
    sizes.fold(0, usize::saturating_add)
}

/// A number of what is in memory.
fn place(number: usize) -> i64 {
    i64::try_from(number).expect("less than 2^63 are in memory")
}
