//! Encodes rows of parquet files in order, to build token shards from a corpus.
//!
//! Each thread reads some rows and encodes them straight from the decompressed page, so that no
//! text is copied or passed between threads. Rows are requested in items of one or more parts; the
//! result of an item has the same parts for any number of threads.

use crate::bulk::arrays::offset;
use crate::corpus::parquet::{RowRange, TextColumn};
use crate::encode::encoder::EncodeCall;
use crate::encode::{EncodeOptions, Id};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;
use crate::text::{Text, first_chars, from_utf8};
use crate::tokenizer::Tokenizer;

/// At most this many bytes of text are being encoded or wait for the sink; more with many threads.
const MAX_AHEAD_BYTES: usize = 1 << 26;
/// `MAX_AHEAD_BYTES` is raised to this many bytes for each thread.
const AHEAD_BYTES_PER_THREAD: usize = 3 << 23;
/// Number of finished items that may wait, in addition to those being encoded. With few, the
/// allocator reuses the same memory; with more, it touches new pages.
const MAX_WAITING_ITEMS: usize = 2;
/// Capacity is reserved for one id in `BYTES_PER_ID` bytes of text, and for at most
/// `MAX_RESERVED_TEXT_BYTES` bytes of text, because the size comes from the file and may be wrong.
const BYTES_PER_ID: usize = 3;
const MAX_RESERVED_TEXT_BYTES: usize = 1 << 25;
/// Small parts are joined to items of at most `MAX_ITEM_BYTES` bytes and `MAX_ITEM_PARTS` parts.
const MAX_ITEM_BYTES: usize = 1 << 22;
const MAX_ITEM_PARTS: usize = 1 << 10;
/// A part with more bytes of text is not encoded, whatever size its file claims.
const MAX_PART_BYTES: i64 = 1 << 26;

/// The encoded documents of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<T> {
    /// The concatenated ids.
    pub ids: Vec<T>,
    /// The start of each document in `ids`, then the end of the last.
    pub offsets: Vec<i64>,
    /// The same for the bytes of the texts.
    pub text_ends: Vec<i64>,
    /// The number of encoded parts of the item. If the item has more, the next part could not be
    /// read or encoded.
    pub parts: usize,
}

/// What [`Tokenizer::encode_rows`] encodes.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The column of texts.
    pub column: &'a TextColumn,
    /// The rows, in the order of the result. Each range must lie in the column.
    pub items: &'a [Vec<RowRange>],
    /// A longer text, in bytes, is not encoded.
    pub most_bytes: usize,
    /// At most this many characters of each text are encoded.
    pub doc_cap: Option<usize>,
    /// Special tokens, and ids before and after each text.
    pub options: &'a EncodeOptions,
}

/// Group ranges into items; small ranges share an item.
pub fn items(column: &TextColumn, ranges: Vec<RowRange>) -> Vec<Vec<RowRange>> {
    let (mut items, mut size): (Vec<Vec<RowRange>>, usize) = (Vec::new(), 0);
    for range in ranges {
        size = size.saturating_add(column.size(&range));
        match items.last_mut() {
            Some(item) if size <= MAX_ITEM_BYTES && item.len() < MAX_ITEM_PARTS => item.push(range),
            _ => {
                size = column.size(&range);
                items.push(vec![range]);
            }
        }
    }
    items
}

impl Tokenizer {
    /// Encode rows of parquet files on up to `threads` threads. Each row is a document; a null is
    /// an empty one.
    ///
    /// `sink` receives the result of each item, in order, and regularly `None` while no result is
    /// ready; an error from `sink` ends the call. `T` must hold every id: see
    /// [`fits_u16`](Self::fits_u16).
    #[doc(hidden)]
    pub fn encode_rows<T: Id>(
        &self,
        job: &Job<'_>,
        threads: usize,
        sink: impl FnMut(Option<Rows<T>>) -> Result<()>,
    ) -> Result<()> {
        let weight = |item: &Vec<RowRange>| sum(item.iter().map(|part| job.column.size(part)));
        let largest = job.items.iter().map(weight).max().unwrap_or(0);
        // Large items are limited by their bytes, small ones by their number.
        let most = MAX_AHEAD_BYTES
            .max(threads.saturating_mul(AHEAD_BYTES_PER_THREAD))
            .min(largest.saturating_mul(threads.saturating_add(MAX_WAITING_ITEMS)));
        self.expect(sum(job.items.iter().map(weight)));
        let encode = |call: &mut EncodeCall<'_>, item: &Vec<RowRange>| {
            let ids = memory::with_capacity_about(
                weight(item).min(MAX_RESERVED_TEXT_BYTES) / BYTES_PER_ID,
            );
            let mut rows = Rows { ids, offsets: vec![0], text_ends: vec![0], parts: 0 };
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
        parallel::ordered(job.items, threads, most, |item| weight(item), state, encode, sink)
    }
}

fn encode_part<T: Id>(
    job: &Job<'_>,
    part: &RowRange,
    call: &mut EncodeCall<'_>,
    rows: &mut Rows<T>,
) -> Result<()> {
    let mut bytes = rows.text_ends.last().copied().unwrap_or(0);
    let (start, most) = (bytes, job.doc_cap.unwrap_or(usize::MAX));
    job.column.for_each(part, &mut |row, text| {
        let wrong = |at| Error::TextNotUtf8 { document: usize::try_from(row).unwrap_or(0), at };
        let text = from_utf8(text).map_err(|error| wrong(error.valid_up_to()))?;
        if text.len() > job.most_bytes {
            return Err(Error::OutOfMemory { bytes: text.len() });
        }
        let text = &text[..first_chars(text.as_bytes(), most)];
        // Rows that repeat an entry of a dictionary can be much larger than the file.
        if bytes - start > MAX_PART_BYTES {
            return Err(Error::OutOfMemory { bytes: text.len() });
        }
        call.append(&Text::Utf8(text), job.options, &mut rows.ids)?;
        bytes += offset(text.len());
        memory::push(&mut rows.offsets, offset(rows.ids.len()))?;
        memory::push(&mut rows.text_ends, bytes)
    })
}

/// The sum, saturating, because the sizes come from a file.
fn sum(sizes: impl Iterator<Item = usize>) -> usize {
    sizes.fold(0, usize::saturating_add)
}
