//! Distinct pretokens with their counts, as a value: built, added up, weighted, read as columns.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::tokenizer::hexadecimal;

/// So many bytes are hashed together.
const HASHED: usize = 1 << 16;

/// The distinct pretokens of a corpus and how often each occurs, in order of first occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    bytes: Vec<u8>,
    /// `ends[i]` is where pretoken `i` ends in `bytes`.
    ends: Vec<usize>,
    numbers: Vec<u64>,
}

impl Counts {
    /// Build counts from distinct pretokens in order of first occurrence.
    ///
    /// ```
    /// let counts = bytepair::Counts::new([(&b"hello"[..], 2), (&b" world"[..], 1)]);
    /// assert_eq!(counts.len(), 2);
    /// ```
    pub fn new<'a>(pretokens: impl IntoIterator<Item = (&'a [u8], u64)>) -> Self {
        let mut counts = Self::default();
        pretokens.into_iter().for_each(|(pretoken, count)| counts.push(pretoken, count));
        counts
    }

    /// No counts, with room for so many bytes and rows.
    pub(super) fn with_capacity(bytes: usize, rows: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(rows),
            numbers: Vec::with_capacity(rows),
        }
    }

    /// Add a row behind the others.
    #[inline]
    pub(super) fn push(&mut self, pretoken: &[u8], count: u64) {
        self.bytes.extend_from_slice(pretoken);
        self.ends.push(self.bytes.len());
        self.numbers.push(count);
    }

    /// Build counts from the columns of a table: the bytes of the pretokens end to end, where each
    /// ends, and how often it occurs.
    ///
    /// Fails if the ends do not fit the bytes, if a pretoken is empty or stands there twice, or if a
    /// count is 0.
    pub fn from_columns(bytes: Vec<u8>, ends: Vec<usize>, numbers: Vec<u64>) -> Result<Self> {
        let broken = |row: usize, rule: &str| Err(Error::Counts { row, rule: rule.to_owned() });
        if ends.len() != numbers.len() || ends.last().copied().unwrap_or(0) != bytes.len() {
            return broken(0, "the columns do not have the same length");
        }
        let mut seen: HashMap<&[u8], usize, FixedState> = HashMap::default();
        let mut start = 0;
        for (row, (&end, &count)) in ends.iter().zip(&numbers).enumerate() {
            match bytes.get(start..end) {
                None | Some([]) => return broken(row, "the pretoken is empty"),
                Some(_) if count == 0 => return broken(row, "the count is 0"),
                Some(pretoken) => {
                    if let Some(first) = seen.insert(pretoken, row) {
                        return broken(row, &format!("it has the pretoken of row {first}"));
                    }
                }
            }
            start = end;
        }
        drop(seen);
        Ok(Self { bytes, ends, numbers })
    }

    /// The columns of a table, as [`from_columns`](Self::from_columns) takes them.
    pub fn columns(&self) -> (&[u8], &[usize], &[u64]) {
        (&self.bytes, &self.ends, &self.numbers)
    }

    /// The counts of two corpora, one behind the other. Fails if a sum exceeds 64 bits.
    ///
    /// ```
    /// use bytepair::Counts;
    /// let one = Counts::new([(&b"a"[..], 1), (&b"b"[..], 2)]);
    /// let two = Counts::new([(&b"c"[..], 3), (&b"a"[..], 4)]);
    /// let both = one.plus(&two)?;
    /// assert_eq!(both, Counts::new([(&b"a"[..], 5), (&b"b"[..], 2), (&b"c"[..], 3)]));
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn plus(&self, other: &Self) -> Result<Self> {
        let mut all = self.clone();
        let rows = self.iter().zip(0usize..).map(|((pretoken, _), row)| (pretoken, row));
        let rows: HashMap<&[u8], usize, FixedState> = rows.collect();
        for (pretoken, count) in other.iter() {
            if let Some(&row) = rows.get(pretoken) {
                let sum = all.numbers[row].checked_add(count);
                all.numbers[row] = sum.ok_or(Error::CountOverflow)?;
            } else {
                all.push(pretoken, count);
            }
        }
        Ok(all)
    }

    /// Every count so many times, as if the corpus stood there so often. Fails if `times` is 0 or a
    /// product exceeds 64 bits.
    pub fn times(&self, times: u64) -> Result<Self> {
        if times == 0 {
            let rule = "a weight of 0 leaves no counts; leave this corpus out instead".to_owned();
            return Err(Error::Counts { row: 0, rule });
        }
        let products = self.numbers.iter().map(|count| count.checked_mul(times));
        let numbers = products.collect::<Option<_>>().ok_or(Error::CountOverflow)?;
        Ok(Self { numbers, ..self.clone() })
    }

    /// A hash of the counts, stable between versions and machines: 64 hexadecimal digits.
    ///
    /// It is the SHA-256 of the line `bytepair counts 1` and its end, the number of pretokens, and for
    /// each its length, its count (8 bytes each, the least first) and its bytes.
    pub fn fingerprint(&self) -> String {
        let mut buffer = b"bytepair counts 1\n".to_vec();
        buffer.extend((self.len() as u64).to_le_bytes());
        let mut hash = Sha256::new();
        for (pretoken, count) in self.iter() {
            buffer.extend((pretoken.len() as u64).to_le_bytes());
            buffer.extend(count.to_le_bytes());
            buffer.extend_from_slice(pretoken);
            if buffer.len() > HASHED {
                hash.update(&buffer);
                buffer.clear();
            }
        }
        hash.update(&buffer);
        hexadecimal(&hash.finalize())
    }

    /// How many distinct pretokens there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there is no pretoken at all.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The pretokens with their counts, in order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.range(0..self.len())
    }

    /// The pretokens of a range of the order of first occurrence, with their counts.
    pub(crate) fn range(&self, range: Range<usize>) -> impl Iterator<Item = (&[u8], u64)> {
        let start = self.start(range.start);
        let ends = &self.ends[range.clone()];
        let starts = std::iter::once(start).chain(ends.iter().copied());
        let numbers = &self.numbers[range];
        starts.zip(ends).zip(numbers).map(|((s, &e), &n)| (&self.bytes[s..e], n))
    }

    /// Where a pretoken starts in the bytes, or where they end.
    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The length of the pretokens of a range together.
    pub(crate) fn bytes_of(&self, range: &Range<usize>) -> usize {
        self.start(range.end) - self.start(range.start)
    }

    /// The length of all distinct pretokens together.
    pub(crate) fn distinct_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Cut the pretokens into `parts` ranges of about as many bytes each, in order.
    pub(crate) fn shares(&self, parts: usize) -> Vec<Range<usize>> {
        let mut start = 0;
        let share = |part| {
            let end = self.ends.partition_point(|&end| end * parts <= self.bytes.len() * part);
            std::mem::replace(&mut start, end)..end
        };
        (1..=parts).map(share).collect()
    }

    /// The sum of all counts: how many pretokens the corpus has. Fails beyond 64 bits.
    pub fn total(&self) -> Result<u64> {
        self.numbers.iter().try_fold(0u64, |sum, &n| sum.checked_add(n)).ok_or(Error::CountOverflow)
    }

    /// How many bytes the corpus has: the length of each pretoken times its count, in 128 bits.
    pub fn text_bytes(&self) -> u128 {
        self.iter().map(|(pretoken, n)| pretoken.len() as u128 * u128::from(n)).sum()
    }
}
