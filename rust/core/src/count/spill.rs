//! Counts that exceed memory: rows are spilled to files, and read back in order of first
//! occurrence.
//!
//! A row is a pretoken with its count and the position in the corpus where it was first seen. A
//! hash of the pretoken divides rows into [`PARTITIONS`] partitions, each with a file, so all rows of
//! a pretoken are in one file. In the end each file is read into memory and written again, with rows
//! added up and in order of first occurrence, by several threads at once; then one thread merges the
//! files.

#![expect(unsafe_code, reason = "counts that exceed the memory limit are mapped")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::count::counts::Counts;
use crate::count::hot::Seen;
use crate::error::{Error, Result};
use crate::machine::array::FileBytes;
use crate::memory;
use crate::parallel::{self, lock};

/// The number of partitions; each has an open file, once it has rows.
const PARTITIONS: usize = 64;

/// The memory limit, and the rows that the threads have spilled.
#[derive(Debug)]
pub(super) struct Spill {
    /// The limit of one thread in bytes.
    pub(super) memory: usize,
    /// An empty folder for the files.
    folder: PathBuf,
    files: [Mutex<Option<BufWriter<File>>>; PARTITIONS],
}

impl Spill {
    /// A limit of `memory` bytes for each thread.
    pub(super) fn new(memory: usize, folder: &Path) -> Self {
        let files = [const { Mutex::new(None) }; PARTITIONS];
        Self { memory, folder: folder.to_owned(), files }
    }

    /// Whether there are rows.
    pub(super) fn is_used(&self) -> bool {
        self.files.iter().any(|file| lock(file).is_some())
    }

    /// Append a row.
    pub(super) fn push(&self, pretoken: &[u8], seen: Seen) -> Result<()> {
        let hash = FixedState::default().hash_one(pretoken);
        let partition = usize::try_from(hash % PARTITIONS as u64).expect("below 64");
        let path = || self.folder.join(format!("partition-{partition}"));
        let mut file = lock(&self.files[partition]);
        let file = match &mut *file {
            Some(file) => Ok(file),
            none => File::create_new(path()).map(|file| none.insert(BufWriter::new(file))),
        };
        let written = file.and_then(|file| write_row(file, pretoken, seen));
        written.map_err(|error| Error::of_spill(&path(), &error))
    }

    /// Add up all rows to counts in order of first occurrence. Up to `threads` threads use at most about
    /// the limit of as many, and counts of more than half of that stay on disk.
    pub(super) fn merge(&self, threads: usize) -> Result<Counts> {
        self.merge_files(threads).map_err(|error| Error::of_spill(&self.folder, &error))
    }

    fn merge_files(&self, threads: usize) -> io::Result<Counts> {
        let files = self.files.iter().filter_map(|file| lock(file).take());
        let files = files.map(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        let files = files.collect::<io::Result<Vec<_>>>()?;
        let limit = self.memory * threads;
        let memory = files.iter().map(sort_memory).collect::<io::Result<Vec<_>>>()?;
        let largest = memory.into_iter().max().unwrap_or(0);
        let threads = (limit / largest.max(1)).clamp(1, threads);
        let jobs = (0..threads).map(|thread| {
            let mut files = files.iter().skip(thread).step_by(threads);
            move || files.try_for_each(sort)
        });
        parallel::run(jobs).into_iter().collect::<io::Result<()>>()?;
        let mut counts = CountsWriter::create(&self.folder)?;
        merge_sorted(files.into_iter().map(BufReader::new).collect(), &mut counts)?;
        counts.finish(limit / 2)
    }
}

/// The approximate memory that sorting a file takes, in bytes: a row also takes memory in the table,
/// for its boxed pretoken, and in the sorted list.
fn sort_memory(file: &File) -> io::Result<usize> {
    let bytes = file.metadata()?.len();
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(4))
}

/// Add up the rows of a file, and write them again in order of first occurrence.
fn sort(mut file: &File) -> io::Result<()> {
    memory::check(sort_memory(file)?)?;
    let mut table: HashMap<Box<[u8]>, Seen, FixedState> = HashMap::default();
    file.rewind()?;
    let (mut rows, mut pretoken) = (BufReader::new(file), Vec::new());
    // The same pretoken may have been spilled by several threads, and by one of them several times.
    while let Some(seen) = read_row(&mut rows, &mut pretoken)? {
        match table.get_mut(&*pretoken) {
            Some(sum) => sum.add(seen),
            None => drop(table.insert((&*pretoken).into(), seen)),
        }
    }
    let mut rows: Vec<_> = table.into_iter().collect();
    rows.sort_unstable_by_key(|(_, seen)| seen.first);
    file.set_len(0)?;
    file.rewind()?;
    let mut out = BufWriter::new(file);
    rows.iter().try_for_each(|(pretoken, seen)| write_row(&mut out, pretoken, *seen))?;
    out.flush()?;
    drop(out);
    file.rewind()
}

/// Merge sorted partitions.
fn merge_sorted(
    mut partitions: Vec<BufReader<File>>,
    counts: &mut CountsWriter<'_>,
) -> io::Result<()> {
    // Of each partition only the next row is in memory. No pretoken is in two partitions, so rows
    // are never added up here.
    let mut pretokens = vec![Vec::new(); partitions.len()];
    let mut next = BinaryHeap::new();
    // The heap and the pretokens are arguments, because the loop below uses them too.
    let mut read = |partition: usize, pretokens: &mut [Vec<u8>], next: &mut BinaryHeap<_>| {
        if let Some(seen) = read_row(&mut partitions[partition], &mut pretokens[partition])? {
            next.push(Reverse((seen.first, partition, seen.count)));
        }
        io::Result::Ok(())
    };
    for partition in 0..pretokens.len() {
        read(partition, &mut pretokens, &mut next)?;
    }
    while let Some(Reverse((_, partition, count))) = next.pop() {
        counts.push(&pretokens[partition], count)?;
        read(partition, &mut pretokens, &mut next)?;
    }
    Ok(())
}

/// Write a row: its first position, its count, the length of the pretoken, and the pretoken.
fn write_row(file: &mut impl Write, pretoken: &[u8], seen: Seen) -> io::Result<()> {
    for number in [seen.first, seen.count, pretoken.len() as u64] {
        file.write_all(&number.to_le_bytes())?;
    }
    file.write_all(pretoken)
}

/// Read a row, its pretoken into a buffer; `None` at the end.
fn read_row(rows: &mut BufReader<impl Read>, pretoken: &mut Vec<u8>) -> io::Result<Option<Seen>> {
    if io::BufRead::fill_buf(rows)?.is_empty() {
        return Ok(None);
    }
    let mut number = || -> io::Result<u64> {
        let mut bytes = [0; 8];
        rows.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let (first, count, length) = (number()?, number()?, number()?);
    pretoken.clear();
    let length = usize::try_from(length).map_err(io::Error::other)?;
    memory::reserve(pretoken, length)?;
    pretoken.resize(length, 0);
    rows.read_exact(pretoken)?;
    Ok(Some(Seen { count, first }))
}

// ---------------------------------------------------------------------------- counts in files
//
// Collects rows into `Counts`, which stay in files if they exceed the memory limit. Each file is
// unlinked once it is mapped, so none is left over.

/// The files of the pretokens, of their ends and of their counts.
const COLUMNS: [&str; 3] = ["pretokens", "ends", "counts"];

/// Writes the columns of counts to files.
struct CountsWriter<'a> {
    folder: &'a Path,
    files: [BufWriter<File>; 3],
    /// The end of the last pretoken.
    end: usize,
}

impl<'a> CountsWriter<'a> {
    /// Create the files in `folder`.
    fn create(folder: &'a Path) -> io::Result<Self> {
        let create = |name| File::create_new(folder.join(name)).map(BufWriter::new);
        let [bytes, ends, numbers] = COLUMNS.map(create);
        Ok(Self { folder, files: [bytes?, ends?, numbers?], end: 0 })
    }

    /// Append a row.
    fn push(&mut self, pretoken: &[u8], count: u64) -> io::Result<()> {
        let [bytes, ends, numbers] = &mut self.files;
        self.end += pretoken.len();
        bytes.write_all(pretoken)?;
        ends.write_all(&self.end.to_le_bytes())?;
        numbers.write_all(&count.to_le_bytes())
    }

    /// The counts: read into memory if they take at most `limit` bytes, mapped otherwise.
    fn finish(mut self, limit: usize) -> io::Result<Counts> {
        self.files.iter_mut().try_for_each(Write::flush)?;
        drop(self.files);
        // SAFETY: `create` created the files, their only handles that can write are closed, and
        // nothing here opens them again. That no other program changes files in the folder of a
        // counter is the caller's duty; see `Counter::with_memory_limit`.
        let take = |name| unsafe { FileBytes::take(&self.folder.join(name)) };
        let [bytes, ends, numbers] = COLUMNS.map(take);
        let files = [bytes?, ends?, numbers?];
        let bytes: usize = files.iter().map(|file| file.len()).sum();
        let counts = Counts::in_files(files);
        if bytes <= limit { Ok(counts.in_memory()?) } else { Ok(counts) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::{env, fs, process};

    use super::*;

    type Row = (&'static [u8], u64);
    const ROWS: [Row; 4] =
        [(b"a", 7), (b" bc", 1), ("\u{4e2d}".as_bytes(), u64::MAX - 9), (b"d", 2)];

    fn stored(limit: usize, rows: &[Row]) -> Counts {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("bytepair-stored-{}-{number}", process::id()));
        fs::create_dir(&folder).unwrap();
        let mut writer = CountsWriter::create(&folder).unwrap();
        for (pretoken, count) in rows {
            writer.push(pretoken, *count).unwrap();
        }
        let counts = writer.finish(limit).unwrap();
        fs::remove_dir(&folder).unwrap(); // fails if the folder is not empty
        counts
    }

    /// Counts in memory are the safe reference for those in files.
    #[test]
    fn counts_in_files_equal_counts_in_memory() {
        for rows in [&ROWS[..], &ROWS[..1], &[]] {
            let plain = Counts::new(rows.iter().copied());
            for limit in [0, usize::MAX] {
                let counts = stored(limit, rows);
                counts.release(&(0..rows.len()));
                assert_eq!(counts, plain);
                assert_eq!(counts.fingerprint(), plain.fingerprint());
                assert_eq!(counts.columns(), plain.columns());
            }
        }
    }

    #[test]
    fn counts_in_files_can_be_added_and_multiplied() {
        let (counts, plain) = (stored(0, &ROWS[..2]), Counts::new(ROWS[..2].iter().copied()));
        assert_eq!(counts.times(6).unwrap(), plain.times(6).unwrap());
        assert_eq!(counts.times(6).unwrap().reduced(3).unwrap(), (plain.times(2).unwrap(), 3));
        assert_eq!(Counts::sum([&counts, &counts]).unwrap(), plain.times(2).unwrap());
        assert_eq!(counts, plain);
    }
}
