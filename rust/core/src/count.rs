//! Pretokens in, distinct pretokens with their counts out.
//!
//! A [`Counter`] takes texts, splits them, and adds one for each pretoken; [`Counter::finish`]
//! gives the [`Counts`] that training needs. Only the distinct pretokens are ever held, never the
//! text. Counts are 64 bits and checked.
//!
//! The distinct pretokens of [`Counts`] stand in the order in which the corpus first shows them.
//! That order does not depend on how the corpus was cut for the threads: each pretoken keeps the
//! byte of the corpus at which it was first seen, and the smallest wins when partial counts are added
//! up.

use std::ops::Range;
use std::path::{Path, PathBuf};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::key::{Key, LONGEST};
use crate::parallel;
use crate::prefetch::prefetch;
use crate::pretokenize::{Ends, Pattern, Splitter};
use crate::spill::{self, Spill};

/// A long text is cut into pieces of about so many bytes, if it may be cut.
const PIECE: usize = 1 << 18;

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
                all.bytes.extend_from_slice(pretoken);
                all.ends.push(all.bytes.len());
                all.numbers.push(count);
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
        let start = range.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let ends = &self.ends[range.clone()];
        let starts = std::iter::once(start).chain(ends.iter().copied());
        let numbers = &self.numbers[range];
        starts.zip(ends).zip(numbers).map(|((s, &e), &n)| (&self.bytes[s..e], n))
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

/// How often a pretoken was seen, and the byte of the corpus at which it first was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) count: u64,
    pub(crate) first: u64,
}

impl Seen {
    /// Add what another part of the corpus saw.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
    }
}

/// The pretokens that one thread saw: the short ones by their keys, the long ones by their bytes.
#[derive(Debug, Default)]
struct Table {
    short: ShortTable,
    long: LongTable,
    /// What to do when memory is used up; `None` is to take more.
    limit: Option<Limit>,
    /// The ends of the pretokens that are worked on, and the keys of those that are short.
    ends: Box<Ends>,
    keys: Vec<Option<Key>>,
}

impl Table {
    /// Split `text`, whose first byte is number `offset` of the corpus, and add its pretokens.
    fn add_text(&mut self, splitter: &Splitter, text: &str, offset: u64) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            self.spill_if_full()?;
            splitter.fill(text, start, &mut self.ends)?;
            self.locate(text.as_bytes(), start);
            for (&end, &key) in self.ends.as_slice().iter().zip(&self.keys) {
                let seen = Seen { count: 1, first: offset + start as u64 };
                match key {
                    Some(key) => self.short.add(key, seen),
                    None => self.long.add(&text.as_bytes()[start..end], seen),
                }
                start = end;
            }
        }
        Ok(())
    }

    /// Make the keys of the pretokens that are worked on, and ask for the memory of their counts.
    fn locate(&mut self, text: &[u8], mut start: usize) {
        self.short.reserve(Ends::CAPACITY);
        self.keys.clear();
        self.keys.extend(self.ends.as_slice().iter().map(|&end| {
            let range = start..end;
            start = end;
            let key = (range.len() <= LONGEST).then(|| Key::new(text, range))?;
            self.short.prefetch(key);
            Some(key)
        }));
    }

    /// About how many bytes the pretokens take.
    fn memory(&self) -> usize {
        self.short.memory(0) + self.long.memory
    }

    /// Put all pretokens aside if the next ones might not fit the limit.
    fn spill_if_full(&mut self) -> Result<()> {
        let memory = self.short.memory(Ends::CAPACITY) + self.long.memory;
        match &self.limit {
            Some(limit) if memory > limit.memory && self.memory() > 0 => self.spill(),
            _ => Ok(()),
        }
    }

    /// Put all pretokens aside; without a limit, there is no place for them and they stay.
    fn spill(&mut self) -> Result<()> {
        let Some(limit) = &mut self.limit else { return Ok(()) };
        let mut bytes = Vec::new();
        for (key, seen) in std::mem::take(&mut self.short).iter() {
            bytes.clear();
            key.write(&mut bytes);
            limit.spill()?.push(&bytes, seen)?;
        }
        for (pretoken, seen) in std::mem::take(&mut self.long).rows {
            limit.spill()?.push(&pretoken, seen)?;
        }
        limit.spill()?.flush()
    }

    /// Add what another thread saw.
    fn merge(&mut self, other: Self) {
        for (key, seen) in other.short.iter() {
            self.short.reserve(1);
            self.short.add(key, seen);
        }
        for (pretoken, seen) in other.long.rows {
            self.long.rows.entry(pretoken).and_modify(|known| known.add(seen)).or_insert(seen);
        }
    }

    /// Everything in the order of first occurrence.
    fn into_counts(self) -> Counts {
        let short = self.short.iter().map(|(key, seen)| (seen, Pretoken::Short(key)));
        let long = self.long.rows.into_iter().map(|(bytes, seen)| (seen, Pretoken::Long(bytes)));
        let mut rows: Vec<(Seen, Pretoken)> = short.chain(long).collect();
        rows.sort_unstable_by_key(|(seen, _)| seen.first);
        let mut counts = Counts::default();
        for (seen, pretoken) in rows {
            match pretoken {
                Pretoken::Short(key) => key.write(&mut counts.bytes),
                Pretoken::Long(bytes) => counts.bytes.extend_from_slice(&bytes),
            }
            counts.ends.push(counts.bytes.len());
            counts.numbers.push(seen.count);
        }
        counts
    }
}

enum Pretoken {
    Short(Key),
    Long(Box<[u8]>),
}

/// Counts of pretokens that have no key.
#[derive(Debug, Default)]
struct LongTable {
    rows: HashMap<Box<[u8]>, Seen, FixedState>,
    /// About how many bytes they take.
    memory: usize,
}

impl LongTable {
    /// About how many bytes a pretoken takes beside its own, in a map that is half full.
    const ROW: usize = 80;

    fn add(&mut self, pretoken: &[u8], seen: Seen) {
        if let Some(known) = self.rows.get_mut(pretoken) {
            known.add(seen);
        } else {
            self.rows.insert(pretoken.into(), seen);
            self.memory += pretoken.len() + Self::ROW;
        }
    }
}

/// How much memory the table of a thread may take, and where it puts aside what does not fit.
#[derive(Debug)]
struct Limit {
    /// In bytes.
    memory: usize,
    folder: PathBuf,
    /// Which thread this is.
    number: usize,
    /// Made when it is first needed.
    spill: Option<Spill>,
}

impl Limit {
    fn spill(&mut self) -> Result<&mut Spill> {
        if self.spill.is_none() {
            self.spill = Some(Spill::create(&self.folder, self.number)?);
        }
        Ok(self.spill.as_mut().expect("made above"))
    }
}

/// Counts by key: open addressing, a power of two of slots, at most half of them taken.
#[derive(Debug, Default)]
struct ShortTable {
    /// The two words of a key, the count, the first place. A count of zero is an empty slot.
    slots: Vec<[u64; 4]>,
    taken: usize,
}

impl ShortTable {
    /// Make room for so many keys more.
    #[inline]
    fn reserve(&mut self, more: usize) {
        if 2 * (self.taken + more) > self.slots.len() {
            self.grow(more);
        }
    }

    /// How many bytes the table takes while it makes room for so many keys more.
    fn memory(&self, more: usize) -> usize {
        let fits = 2 * (self.taken + more) <= self.slots.len();
        let grown = if fits { 0 } else { self.grown(more) };
        (self.slots.len() + grown) * size_of::<[u64; 4]>()
    }

    /// The number of slots that hold so many keys more.
    fn grown(&self, more: usize) -> usize {
        (2 * (self.taken + more)).next_power_of_two().max(1 << 12)
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let size = self.grown(more);
        let old = std::mem::replace(&mut self.slots, vec![[0; 4]; size]);
        self.taken = 0;
        for (key, seen) in (Self { slots: old, taken: 0 }).iter() {
            self.add(key, seen);
        }
    }

    /// Add to the count of a key; there must be room.
    #[inline]
    fn add(&mut self, key: Key, seen: Seen) {
        let (low, high) = key.words();
        let mut at = self.start(key);
        loop {
            let last = self.slots.len() - 1;
            let slot = &mut self.slots[at & last];
            if slot[2] == 0 {
                *slot = [low, high, seen.count, seen.first];
                self.taken += 1;
                return;
            }
            if (slot[0], slot[1]) == (low, high) {
                slot[2] += seen.count;
                slot[3] = slot[3].min(seen.first);
                return;
            }
            at += 1;
        }
    }

    #[inline]
    fn start(&self, key: Key) -> usize {
        let bits = self.slots.len().trailing_zeros();
        usize::try_from(key.hash() >> (64 - bits)).expect("a table fits memory")
    }

    #[inline]
    fn prefetch(&self, key: Key) {
        prefetch(&self.slots, self.start(key));
    }

    fn iter(&self) -> impl Iterator<Item = (Key, Seen)> {
        let taken = self.slots.iter().filter(|slot| slot[2] != 0);
        taken.map(|&[low, high, count, first]| (Key::from_words(low, high), Seen { count, first }))
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
}

impl Counter {
    /// An empty count with the given pattern, to be filled by `threads` threads.
    pub fn new(pattern: &Pattern, threads: usize) -> Result<Self> {
        let splitter = Splitter::new(pattern)?;
        let tables = (0..threads.max(1)).map(|_| Table::default()).collect();
        Ok(Self { splitter, tables, texts: 0, text_bytes: 0 })
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

    /// Split `texts` and add their pretokens; each is a document of its own.
    ///
    /// On an error the counter holds an unknown part of these texts and should be dropped.
    pub fn add(&mut self, texts: &[&str]) -> Result<()> {
        let pieces = self.pieces(texts);
        let shares = parallel::shares(&pieces, self.tables.len(), |(text, _)| text.len());
        let (splitter, pieces) = (&self.splitter, &pieces);
        let work = shares.into_iter().zip(&mut self.tables).map(|(range, table)| {
            move || {
                let mut pieces = pieces[range].iter();
                pieces.try_for_each(|&(text, offset)| table.add_text(splitter, text, offset))
            }
        });
        parallel::run(work).into_iter().collect::<Result<()>>()?;
        self.texts += texts.len() as u64;
        self.text_bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
        Ok(())
    }

    /// The texts with their offsets in the corpus, the long ones cut where that changes nothing, so
    /// that several threads can share one.
    fn pieces<'t>(&self, texts: &[&'t str]) -> Vec<(&'t str, u64)> {
        let mut pieces = Vec::with_capacity(texts.len());
        let mut offset = self.text_bytes;
        for &text in texts {
            let mut rest = text;
            while rest.len() > 2 * PIECE
                && let Some(cut) = self.splitter.cut(rest, PIECE)
            {
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
            // Adding up in memory takes a table for all beside those of the threads, and its rows.
            if self.tables.iter().any(spilled) || 4 * memory > limit.memory * self.tables.len() {
                let folder = limit.folder.clone();
                return finish_on_disk(self.tables, &folder);
            }
        }
        let mut tables = self.tables.into_iter();
        let mut all = tables.next().unwrap_or_default();
        tables.for_each(|table| all.merge(table));
        Ok(all.into_counts())
    }
}

/// Add up what the threads put aside and what they still hold.
fn finish_on_disk(mut tables: Vec<Table>, folder: &Path) -> Result<Counts> {
    tables.iter_mut().try_for_each(Table::spill)?;
    let spills = tables.into_iter().filter_map(|table| table.limit?.spill).collect();
    let mut counts = Counts::default();
    spill::merge(spills, folder, |pretoken, count| {
        counts.bytes.extend_from_slice(pretoken);
        counts.ends.push(counts.bytes.len());
        counts.numbers.push(count);
    })?;
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
        assert_eq!(counts.total(), Err(Error::CountOverflow));
    }
}
