//! Counts that exceed memory: rows are spilled to files, and read back in order of first
//! occurrence.
//!
//! A row is a pretoken with its count and the position in the corpus where it was first seen. A
//! hash of the pretoken divides rows into [`PARTITIONS`] partitions, so all rows of a pretoken are
//! in one partition. Each thread of [`merge`] adds up one partition at a time and writes it in
//! order of first occurrence; then one thread merges the sorted partitions. Each thread holds at
//! most one partition in memory, and there is one read buffer for each partition.

#![expect(unsafe_code, reason = "counts that exceed the memory limit are mapped")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::count::counts::Counts;
use crate::count::hot::Seen;
use crate::error::{Error, Result};
use crate::machine::array::FileBytes;
use crate::{memory, parallel};

/// The number of partitions; each has a file that is open during the merge.
const PARTITIONS: usize = 64;

/// Rows are written when this many bytes are buffered.
const BUFFER_BYTES: usize = 1 << 20;

/// The memory limit of one thread, and the rows that it has spilled.
#[derive(Debug)]
pub(super) struct Spill {
    /// The limit in bytes.
    pub(super) memory: usize,
    /// An empty folder, in which the thread has a file with its index.
    pub(super) folder: PathBuf,
    thread: usize,
    /// The number of bytes in the file, which exists once rows were written.
    written: u64,
    /// The ranges of the file that hold the rows of each partition.
    sections: Vec<Vec<Range<u64>>>,
    /// The rows of each partition that are not yet written.
    buffers: Vec<Vec<u8>>,
    buffered: usize,
}

impl Spill {
    /// A limit of `memory` bytes for the thread with the index `thread`.
    pub(super) fn new(memory: usize, folder: &Path, thread: usize) -> Self {
        let (sections, buffers) = (vec![Vec::new(); PARTITIONS], vec![Vec::new(); PARTITIONS]);
        let folder = folder.to_owned();
        Self { memory, folder, thread, written: 0, sections, buffers, buffered: 0 }
    }

    /// Whether rows were written.
    pub(super) fn is_used(&self) -> bool {
        self.written > 0
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("rows-{}", self.thread))
    }

    /// Append a row.
    pub(super) fn push(&mut self, pretoken: &[u8], seen: Seen) -> Result<()> {
        // All threads use the same hash, so they agree on the partition of a pretoken.
        let hash = FixedState::default().hash_one(pretoken);
        let partition = usize::try_from(hash % PARTITIONS as u64).expect("below 64");
        encode(&mut self.buffers[partition], pretoken, seen)?;
        self.buffered += ROW_BYTES + pretoken.len();
        if self.buffered >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// The size of a partition in bytes.
    fn bytes(&self, partition: usize) -> u64 {
        self.sections[partition].iter().map(|section| section.end - section.start).sum()
    }

    /// Write the rows that are not yet written.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.append().map_err(|error| Error::of_spill(&self.path(), &error))
    }

    fn append(&mut self) -> io::Result<()> {
        let mut file = File::options().append(true).create(true).open(self.path())?;
        for (buffer, sections) in self.buffers.iter_mut().zip(&mut self.sections) {
            file.write_all(buffer)?;
            let start = self.written;
            self.written += buffer.len() as u64;
            sections.push(start..self.written);
            // Releases the memory, because a single row can be long.
            *buffer = Vec::new();
        }
        self.buffered = 0;
        Ok(())
    }

    /// Call `action` with every row of a partition.
    fn read(&self, partition: usize, mut action: impl FnMut(&[u8], Seen)) -> io::Result<()> {
        // Each thread reads at its own place of the file.
        let mut file = File::open(self.path())?;
        let mut pretoken = Vec::new();
        for section in &self.sections[partition] {
            file.seek(SeekFrom::Start(section.start))?;
            let mut rows = BufReader::new((&file).take(section.end - section.start));
            while let Some(seen) = decode(&mut rows, &mut pretoken)? {
                action(&pretoken, seen);
            }
        }
        Ok(())
    }
}

/// Add up the rows of all `spills`, each of which was flushed, to counts in order of first
/// occurrence. Creates further files in `folder`. The threads use at most about `limit` bytes, and
/// counts of more than half of that stay on disk.
pub(super) fn merge(spills: Vec<Spill>, folder: &Path, limit: usize) -> io::Result<Counts> {
    let largest = (0..PARTITIONS).map(|partition| partition_memory(&spills, partition)).max();
    let threads = (limit / largest.unwrap_or(0).max(1)).clamp(1, spills.len().max(1));
    let sort = |partition| sort_partition(&spills, partition, folder);
    let jobs = (0..threads).map(|thread| {
        move || (thread..PARTITIONS).step_by(threads).map(sort).collect::<io::Result<Vec<_>>>()
    });
    let sorted = parallel::run(jobs).into_iter().collect::<io::Result<Vec<_>>>()?;
    drop(spills);
    let mut counts = CountsWriter::create(folder)?;
    merge_sorted(sorted.into_iter().flatten().collect(), &mut counts)?;
    counts.finish(limit / 2)
}

/// The approximate memory that sorting a partition takes, in bytes: a row also takes memory in the
/// table, for its boxed pretoken, and in the sorted list.
fn partition_memory(spills: &[Spill], partition: usize) -> usize {
    let bytes: u64 = spills.iter().map(|spill| spill.bytes(partition)).sum();
    usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(4)
}

/// Add up the rows of one partition and write them in order of first occurrence.
fn sort_partition(
    spills: &[Spill],
    partition: usize,
    folder: &Path,
) -> io::Result<BufReader<File>> {
    memory::check(partition_memory(spills, partition))?;
    let mut table: HashMap<Box<[u8]>, Seen, FixedState> = HashMap::default();
    // The same pretoken may have been spilled by several threads, and by one of them several times.
    for spill in spills {
        spill.read(partition, |pretoken, seen| match table.get_mut(pretoken) {
            Some(sum) => sum.add(seen),
            None => drop(table.insert(pretoken.into(), seen)),
        })?;
    }
    let mut rows: Vec<_> = table.into_iter().collect();
    rows.sort_unstable_by_key(|(_, seen)| seen.first);
    let path = folder.join(format!("partition-{partition}"));
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    let mut out = BufWriter::new(file);
    let mut bytes = Vec::new();
    for (pretoken, seen) in rows {
        bytes.clear();
        encode(&mut bytes, &pretoken, seen)?;
        out.write_all(&bytes)?;
    }
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(BufReader::new(file))
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
        if let Some(seen) = decode(&mut partitions[partition], &mut pretokens[partition])? {
            next.push(Reverse((seen.first, partition, seen.count)));
        }
        io::Result::Ok(())
    };
    for partition in 0..PARTITIONS {
        read(partition, &mut pretokens, &mut next)?;
    }
    while let Some(Reverse((_, partition, count))) = next.pop() {
        counts.push(&pretokens[partition], count)?;
        read(partition, &mut pretokens, &mut next)?;
    }
    Ok(())
}

/// The bytes of a row without its pretoken: first position, count, length.
const ROW_BYTES: usize = 24;

fn encode(out: &mut Vec<u8>, pretoken: &[u8], seen: Seen) -> Result<()> {
    memory::reserve(out, ROW_BYTES + pretoken.len())?;
    for number in [seen.first, seen.count, pretoken.len() as u64] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(pretoken);
    Ok(())
}

/// Read one row, its pretoken into a buffer; `None` at the end.
fn decode(rows: &mut BufReader<impl Read>, pretoken: &mut Vec<u8>) -> io::Result<Option<Seen>> {
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
// Collects rows into `Counts`, which stay in files if they exceed the memory limit.
//
// Each file is unlinked once it is mapped, so none is left over.

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
