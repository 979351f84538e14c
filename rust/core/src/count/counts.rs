//! Distinct pretokens with their counts, as an immutable value.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::hash::hexadecimal;
use crate::machine::array::{Array, FileBytes};
use crate::memory;

/// Bytes are hashed in blocks of this size.
const HASH_BLOCK_BYTES: usize = 1 << 16;

/// The distinct pretokens of a corpus and how often each occurs, in order of first occurrence.
///
/// The counts are in memory, or in mapped files if they were counted with a memory limit and exceed
/// it (see [`Counter::with_memory_limit`](crate::Counter::with_memory_limit)).
///
/// ```
/// use bytepair::Counts;
/// let counts = Counts::new([(&b"hello"[..], 2), (&b" world"[..], 1)]);
/// assert_eq!((counts.total()?, counts.text_bytes()), (3, 16));
/// let twice = Counts::sum([&counts, &counts])?;
/// assert_eq!(twice, counts.times(2)?);
/// assert_eq!(twice.iter().next(), Some((&b"hello"[..], 4)));
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Counts {
    bytes: Array<u8>,
    /// `ends[i]` is the end of pretoken `i` in `bytes`.
    ends: Array<usize>,
    numbers: Array<u64>,
    /// The files of the three arrays, if they are mapped.
    files: Option<[Arc<FileBytes>; 3]>,
}

impl PartialEq for Counts {
    fn eq(&self, other: &Self) -> bool {
        self.columns() == other.columns()
    }
}

impl Eq for Counts {}

impl Default for Counts {
    fn default() -> Self {
        CountRows::default().finish()
    }
}

impl Counts {
    /// Build counts from distinct pretokens in order of first occurrence.
    ///
    /// ```
    /// let counts = bytepair::Counts::new([(&b"hello"[..], 2), (&b" world"[..], 1)]);
    /// assert_eq!(counts.len(), 2);
    /// ```
    pub fn new<'a>(pretokens: impl IntoIterator<Item = (&'a [u8], u64)>) -> Self {
        let mut rows = CountRows::default();
        for (pretoken, count) in pretokens {
            rows.bytes.extend_from_slice(pretoken);
            rows.ends.push(rows.bytes.len());
            rows.numbers.push(count);
        }
        rows.finish()
    }

    /// Counts whose arrays are in these files: the bytes, the ends, the numbers.
    pub(super) fn in_files(files: [FileBytes; 3]) -> Self {
        let files = files.map(Arc::new);
        let [bytes, ends, numbers] = &files;
        let whole = "whole numbers, and a mapping is aligned to pages";
        Self {
            bytes: Array::mapped(bytes, 0..bytes.len()).expect(whole),
            ends: Array::mapped(ends, 0..ends.len()).expect(whole),
            numbers: Array::mapped(numbers, 0..numbers.len()).expect(whole),
            files: Some(files),
        }
    }

    /// The counts in memory. Fails if there is not enough.
    pub(super) fn in_memory(&self) -> Result<Self> {
        let (bytes, ends) = (memory::copy(&self.bytes)?, memory::copy(&self.ends)?);
        Ok(CountRows { bytes, ends, numbers: memory::copy(&self.numbers)? }.finish())
    }

    /// Divide a range of rows into pieces, in order: each has at most `bytes` bytes of pretokens,
    /// or is a single row.
    pub(crate) fn pieces(
        &self,
        range: Range<usize>,
        bytes: usize,
    ) -> impl Iterator<Item = Range<usize>> {
        let mut start = range.start;
        std::iter::from_fn(move || {
            let most = self.start(start) + bytes;
            let fits = self.ends[start..range.end].partition_point(|&end| end <= most);
            // At least one row, so that a long pretoken does not end the iteration.
            let piece = start..(start + fits.max(1)).min(range.end);
            start = piece.end;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Tell the system that a range of rows is not needed for now, if the counts are in files.
    pub(crate) fn release(&self, range: &Range<usize>) {
        let Some([bytes, ends, numbers]) = &self.files else { return };
        bytes.release(self.start(range.start)..self.start(range.end));
        ends.release(range.start * size_of::<usize>()..range.end * size_of::<usize>());
        numbers.release(range.start * size_of::<u64>()..range.end * size_of::<u64>());
    }

    /// The columns of a table: the concatenated bytes of the pretokens, the end of each, and its count.
    #[doc(hidden)]
    pub fn columns(&self) -> (&[u8], &[usize], &[u64]) {
        (&self.bytes, &self.ends, &self.numbers)
    }

    /// The counts of several corpora, one after the other. Fails if a sum exceeds 64 bits.
    ///
    /// ```
    /// use bytepair::Counts;
    /// let one = Counts::new([(&b"a"[..], 1), (&b"b"[..], 2)]);
    /// let two = Counts::new([(&b"c"[..], 3), (&b"a"[..], 4)]);
    /// let both = Counts::sum([&one, &two])?;
    /// assert_eq!(both, Counts::new([(&b"a"[..], 5), (&b"b"[..], 2), (&b"c"[..], 3)]));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn sum<'a>(corpora: impl IntoIterator<Item = &'a Self>) -> Result<Self> {
        let mut all = DistinctRows::default();
        for (pretoken, count) in corpora.into_iter().flat_map(Self::iter) {
            all.add(pretoken, count)?;
        }
        Ok(all.finish())
    }

    /// Every count multiplied, as if the corpus were repeated. Fails if `times` is 0 or a product
    /// exceeds 64 bits.
    pub fn times(&self, times: u64) -> Result<Self> {
        if times == 0 {
            let rule = "a weight of 0 leaves no counts; leave this corpus out instead".to_owned();
            return Err(Error::Counts { row: 0, rule });
        }
        self.with_numbers(|number| number.checked_mul(times).ok_or(Error::CountOverflow))
    }

    /// Every count divided by the greatest number that divides `of` and all counts; and that number. Fails
    /// if there is not enough memory.
    ///
    /// ```
    /// use bytepair::Counts;
    /// let counts = Counts::new([(&b"a"[..], 6), (&b"b"[..], 4)]);
    /// let (reduced, divisor) = counts.reduced(12)?;
    /// assert_eq!((reduced, divisor), (Counts::new([(&b"a"[..], 3), (&b"b"[..], 2)]), 2));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn reduced(&self, of: u64) -> Result<(Self, u64)> {
        let divisor = self.numbers.iter().fold(of, |one, &two| greatest_common(one, two));
        Ok((self.with_numbers(|number| Ok(number / divisor.max(1)))?, divisor))
    }

    /// The same pretokens with other counts, made from theirs.
    fn with_numbers(&self, number: impl Fn(u64) -> Result<u64>) -> Result<Self> {
        let numbers = memory::try_collect(self.numbers.iter().map(|&count| number(count)))?;
        Ok(Self { numbers: Array::new(numbers), ..self.clone() })
    }

    /// A hash of the counts, stable across versions and machines: 64 hexadecimal digits.
    ///
    /// It is the SHA-256 of the line `bytepair counts 1` with its newline, the number of pretokens,
    /// and for each its length, its count (8 bytes each, little-endian) and its bytes.
    pub fn fingerprint(&self) -> String {
        let mut buffer = b"bytepair counts 1\n".to_vec();
        buffer.extend((self.len() as u64).to_le_bytes());
        let mut hash = Sha256::new();
        for (pretoken, count) in self.iter() {
            buffer.extend((pretoken.len() as u64).to_le_bytes());
            buffer.extend(count.to_le_bytes());
            buffer.extend_from_slice(pretoken);
            if buffer.len() > HASH_BLOCK_BYTES {
                hash.update(&buffer);
                buffer.clear();
            }
        }
        hash.update(&buffer);
        hexadecimal(&hash.finalize())
    }

    /// The number of distinct pretokens.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are no pretokens.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The pretokens with their counts, in order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.range(0..self.len())
    }

    /// The pretokens of a range of rows, with their counts.
    pub(crate) fn range(&self, range: Range<usize>) -> impl Iterator<Item = (&[u8], u64)> {
        let start = self.start(range.start);
        let ends = &self.ends[range.clone()];
        let starts = std::iter::once(start).chain(ends.iter().copied());
        let numbers = &self.numbers[range];
        starts.zip(ends).zip(numbers).map(|((s, &e), &n)| (&self.bytes[s..e], n))
    }

    /// The start of the pretoken of a row in the bytes; for the row after the last, their end.
    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The concatenated pretokens of a range.
    pub(crate) fn bytes_of(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[self.start(range.start)..self.start(range.end)]
    }

    /// The total length of the distinct pretokens.
    #[doc(hidden)]
    pub fn distinct_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Divide the pretokens into `parts` ranges of about equal bytes, in order.
    pub(crate) fn shares(&self, parts: usize) -> Vec<Range<usize>> {
        let mut start = 0;
        let share = |part| {
            // end / bytes <= part / parts, without division. The last part ends with the last row.
            let end = self.ends.partition_point(|&end| end * parts <= self.bytes.len() * part);
            std::mem::replace(&mut start, end)..end
        };
        (1..=parts).map(share).collect()
    }

    /// The sum of all counts, which is the number of pretokens in the corpus. Fails beyond 64 bits.
    pub fn total(&self) -> Result<u64> {
        self.numbers.iter().try_fold(0u64, |sum, &n| sum.checked_add(n)).ok_or(Error::CountOverflow)
    }

    /// The number of bytes in the corpus: the length of each pretoken times its count.
    pub fn text_bytes(&self) -> u128 {
        self.iter().map(|(pretoken, n)| pretoken.len() as u128 * u128::from(n)).sum()
    }
}

/// The greatest common divisor.
fn greatest_common(mut one: u64, mut two: u64) -> u64 {
    while two != 0 {
        (one, two) = (two, one % two);
    }
    one
}

/// Counts that grow by rows; see [`Counts`].
#[derive(Default)]
pub(super) struct CountRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    numbers: Vec<u64>,
}

impl CountRows {
    /// No rows, with capacity for about `rows` pretokens of `bytes` bytes in total.
    pub(super) fn with_capacity_about(bytes: usize, rows: usize) -> Self {
        let bytes = memory::with_capacity_about(bytes);
        let (ends, numbers) =
            (memory::with_capacity_about(rows), memory::with_capacity_about(rows));
        Self { bytes, ends, numbers }
    }

    /// Append a row. Fails if there is not enough memory.
    #[inline]
    pub(super) fn push(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        memory::extend(&mut self.bytes, pretoken)?;
        memory::push(&mut self.ends, self.bytes.len())?;
        memory::push(&mut self.numbers, count)
    }

    /// The pretoken of a row.
    fn pretoken(&self, row: usize) -> &[u8] {
        &self.bytes[row.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[row]]
    }

    /// The counts.
    pub(super) fn finish(self) -> Counts {
        let (ends, numbers) = (Array::new(self.ends), Array::new(self.numbers));
        Counts { bytes: Array::new(self.bytes), ends, numbers, files: None }
    }
}

// ---------------------------------------------------------------------------- distinct rows
//
// Merges counted pretokens into `Counts`: distinct, in order of first occurrence.
//
// `push` is for the rows of a file, which must be distinct: a row that breaks a rule fails at once, so
// a file that repeats its rows fails at the first repetition, however many rows it claims to have. `add`
// sums the counts of repeated pretokens.

/// Builds counts row by row.
#[derive(Default)]
pub(crate) struct DistinctRows {
    counts: CountRows,
    /// The hash and the index of each row.
    rows: HashTable<(u64, usize)>,
    hasher: FixedState,
}

impl DistinctRows {
    /// Append a row. Fails if the pretoken is empty or already has a row, or if the count is 0.
    #[cfg(feature = "parquet")]
    pub(crate) fn push(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        let row = self.counts.numbers.len();
        let broken = |rule: &str| Err(Error::Counts { row, rule: rule.to_owned() });
        if pretoken.is_empty() {
            return broken("the pretoken is empty");
        }
        if count == 0 {
            return broken("the count is 0");
        }
        let hash = self.hasher.hash_one(pretoken);
        if let Some(first) = self.find(pretoken, hash) {
            return broken(&format!("it has the pretoken of row {first}"));
        }
        self.append(pretoken, hash, count)
    }

    /// Add to the count of a pretoken; a new pretoken is appended. Fails if the sum exceeds 64
    /// bits.
    pub(crate) fn add(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        let hash = self.hasher.hash_one(pretoken);
        let Some(row) = self.find(pretoken, hash) else {
            return self.append(pretoken, hash, count);
        };
        let sum = &mut self.counts.numbers[row];
        *sum = sum.checked_add(count).ok_or(Error::CountOverflow)?;
        Ok(())
    }

    /// The row of a pretoken.
    fn find(&self, pretoken: &[u8], hash: u64) -> Option<usize> {
        let is_equal =
            |&(other, row): &(u64, usize)| hash == other && self.counts.pretoken(row) == pretoken;
        self.rows.find(hash, is_equal).map(|&(_, row)| row)
    }

    /// Append a pretoken that is new.
    fn append(&mut self, pretoken: &[u8], hash: u64, count: u64) -> Result<()> {
        self.reserve()?;
        self.rows.insert_unique(hash, (hash, self.counts.numbers.len()), |&(hash, _)| hash);
        self.counts.push(pretoken, count)
    }

    /// Reserve capacity for one more row.
    fn reserve(&mut self) -> Result<()> {
        if self.rows.len() < self.rows.capacity() {
            return Ok(());
        }
        // The capacity doubles, so the new table has at least this many entries.
        let more = self.rows.len().max(1);
        let bytes = size_of::<(u64, usize)>().saturating_mul(2 * more);
        memory::check(bytes)?;
        let reserved = self.rows.try_reserve(more, |&(hash, _)| hash);
        reserved.map_err(|_| Error::OutOfMemory { bytes })
    }

    /// The counts.
    pub(crate) fn finish(self) -> Counts {
        self.counts.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_rows_in_order() {
        let words: Vec<Vec<u8>> = (1..40).map(|length| vec![b'x'; length * 7 % 11 + 1]).collect();
        let counts = Counts::new(words.iter().map(|word| (&word[..], 1)));
        for bytes in [0, 1, 5, 12, 30, 1000] {
            for range in [0..counts.len(), 3..17, 5..5] {
                let mut next = range.start;
                for piece in counts.pieces(range.clone(), bytes) {
                    assert!(piece.start == next && !piece.is_empty());
                    assert!(piece.len() == 1 || counts.bytes_of(&piece).len() <= bytes);
                    next = piece.end;
                }
                assert_eq!(next, range.end);
            }
        }
    }
}
