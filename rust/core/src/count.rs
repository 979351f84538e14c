//! Pretokens in, distinct pretokens with their counts out.
//!
//! A [`Counter`] takes texts, splits them, and adds one for each pretoken; [`Counter::finish`]
//! gives the [`Counts`] that training needs. Only the distinct pretokens are ever held, never the
//! text. Counts are 64 bits and checked.
//!
//! The distinct pretokens of [`Counts`] stand in the order in which the corpus first shows them.
//! That order does not depend on how the corpus was cut for the threads: each pretoken keeps the
//! number of the first text that holds it and its place there, and the smallest wins when partial
//! counts are added up.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::parallel;
use crate::pretokenize::{Pattern, Splitter};

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
        for (pretoken, count) in pretokens {
            counts.bytes.extend_from_slice(pretoken);
            counts.ends.push(counts.bytes.len());
            counts.numbers.push(count);
        }
        counts
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
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).zip(&self.numbers).map(|((s, &e), &n)| (&self.bytes[s..e], n))
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

/// Where a pretoken first occurs: the number of the text, and the byte in it.
type Place = (u64, u64);

/// How often a pretoken was seen, and where first.
#[derive(Debug, Clone, Copy)]
struct Seen {
    count: u64,
    first: Place,
}

type Table = HashMap<Box<[u8]>, Seen, FixedState>;

/// Counts the pretokens of a stream of texts.
///
/// ```
/// use bytepair::{Counter, Pattern};
/// let mut counter = Counter::new(&Pattern::new("gpt2"), 1)?;
/// counter.add(&["a b", "a"])?;
/// let counts = counter.finish();
/// assert_eq!(counts.iter().collect::<Vec<_>>(), [(&b"a"[..], 2), (&b" b"[..], 1)]);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct Counter {
    splitter: Splitter,
    threads: usize,
    /// One table a thread; each sees its own share of the texts.
    tables: Vec<Table>,
    texts: u64,
    text_bytes: u64,
}

impl Counter {
    /// An empty count with the given pattern, to be filled by `threads` threads.
    pub fn new(pattern: &Pattern, threads: usize) -> Result<Self> {
        let threads = threads.max(1);
        let splitter = Splitter::new(pattern)?;
        let tables = vec![Table::default(); threads];
        Ok(Self { splitter, threads, tables, texts: 0, text_bytes: 0 })
    }

    /// Split `texts` and add their pretokens; each is a document of its own.
    ///
    /// On an error the counter holds an unknown part of these texts and should be dropped.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        let first = self.texts;
        let splitter = &self.splitter;
        let weight = |text: &&str| text.len();
        let parts = parallel::shares(texts, self.threads, weight);
        let work = parts.into_iter().zip(&mut self.tables).map(|(range, table)| {
            move || {
                let number = first + range.start as u64;
                texts[range]
                    .iter()
                    .zip(number..)
                    .try_for_each(|(t, n)| add_text(table, splitter, t, n))
            }
        });
        parallel::run(work).into_iter().collect::<Result<()>>()?;
        self.texts += texts.len() as u64;
        self.text_bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
        Ok(())
    }

    /// How many texts were added.
    pub fn texts(&self) -> u64 {
        self.texts
    }

    /// How many bytes of text were added.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Add up what the threads saw.
    pub fn finish(self) -> Counts {
        let mut tables = self.tables.into_iter();
        let mut all = tables.next().unwrap_or_default();
        for table in tables {
            for (pretoken, seen) in table {
                all.entry(pretoken)
                    .and_modify(|entry| {
                        entry.count += seen.count;
                        entry.first = entry.first.min(seen.first);
                    })
                    .or_insert(seen);
            }
        }
        let mut rows: Vec<_> = all.into_iter().collect();
        rows.sort_unstable_by_key(|(_, seen)| seen.first);
        Counts::new(rows.iter().map(|(pretoken, seen)| (&**pretoken, seen.count)))
    }
}

fn add_text(table: &mut Table, splitter: &Splitter, text: &str, number: u64) -> Result<()> {
    let mut at = 0;
    splitter.for_each(text, |pretoken| {
        let first = (number, at);
        at += pretoken.len() as u64;
        if let Some(seen) = table.get_mut(pretoken.as_bytes()) {
            seen.count += 1;
        } else {
            table.insert(pretoken.as_bytes().into(), Seen { count: 1, first });
        }
    })
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
            counter.finish()
        };
        let one = count(1, 500);
        assert_eq!(one.text_bytes(), texts.iter().map(|t| t.len() as u128).sum());
        for (threads, batch) in [(1, 1), (2, 500), (3, 7), (8, 100), (16, 3)] {
            assert_eq!(count(threads, batch), one, "{threads} threads, batches of {batch}");
        }
    }

    #[test]
    fn a_total_beyond_64_bits_is_an_error() {
        let counts = Counts::new([(&b"a"[..], u64::MAX), (&b"b"[..], 1)]);
        assert_eq!(counts.total(), Err(Error::CountOverflow));
    }
}
