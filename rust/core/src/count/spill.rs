//! Counts that exceed memory: rows are spilled to files, and read back in order of first
//! occurrence.
//!
//! A row is a pretoken with its count and the position in the corpus where it was first seen. A
//! hash of the pretoken divides rows into [`PARTITIONS`] partitions, so all rows of a pretoken are
//! in one partition. Each thread of [`merge`] adds up one partition at a time and writes it in
//! order of first occurrence; then one thread merges the sorted partitions. Each thread holds at
//! most one partition in memory, and there is one read buffer for each partition.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

use crate::count::hot::Seen;
use crate::error::{Error, Result};
use crate::{memory, parallel};

/// The number of partitions; each has a file that is open during the merge.
const PARTITIONS: usize = 64;

/// Rows are written when this many bytes are buffered.
const BUFFER_BYTES: usize = 1 << 20;

/// The rows that one thread has spilled.
#[derive(Debug)]
pub(super) struct Spill {
    path: PathBuf,
    file: File,
    /// The number of bytes in the file.
    written: u64,
    /// The ranges of the file that hold the rows of each partition.
    sections: Vec<Vec<Range<u64>>>,
    /// The rows of each partition that are not yet written.
    buffers: Vec<Vec<u8>>,
    buffered: usize,
}

impl Spill {
    /// Create a file in `folder`, named after the index `number` of the thread.
    pub(super) fn create(folder: &Path, number: usize) -> Result<Self> {
        let path = folder.join(format!("rows-{number}"));
        let file = File::create_new(&path);
        Ok(Self {
            file: file.map_err(|error| Error::of_spill(&path, &error))?,
            path,
            written: 0,
            sections: vec![Vec::new(); PARTITIONS],
            buffers: vec![Vec::new(); PARTITIONS],
            buffered: 0,
        })
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
        for (buffer, sections) in self.buffers.iter_mut().zip(&mut self.sections) {
            if buffer.is_empty() {
                continue;
            }
            self.file.write_all(buffer).map_err(|error| Error::of_spill(&self.path, &error))?;
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
        let mut file = File::open(&self.path)?;
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

/// Add up the rows of all `spills`, and call `action` with each pretoken and its count in order of
/// first occurrence. Creates further files in `folder`. The threads use at most about `limit`
/// bytes.
pub(super) fn merge(
    mut spills: Vec<Spill>,
    folder: &Path,
    limit: usize,
    mut action: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    spills.iter_mut().try_for_each(Spill::flush)?;
    let largest = (0..PARTITIONS).map(|partition| partition_memory(&spills, partition)).max();
    let threads = (limit / largest.unwrap_or(0).max(1)).clamp(1, spills.len().max(1));
    let sort = |partition| {
        let path = folder.join(format!("partition-{partition}"));
        sort_partition(&spills, partition, &path).map_err(|error| Error::of_spill(&path, &error))
    };
    let jobs = (0..threads).map(|thread| {
        move || (thread..PARTITIONS).step_by(threads).map(sort).collect::<Result<Vec<_>>>()
    });
    let sorted = parallel::run(jobs).into_iter().collect::<Result<Vec<_>>>()?;
    drop(spills);
    let mut sorted: Vec<_> = sorted.into_iter().flatten().collect();
    merge_sorted(&mut sorted, &mut action).map_err(|error| Error::of_spill(folder, &error))
}

/// The approximate memory that sorting a partition takes, in bytes: a row also takes memory in the
/// table, for its boxed pretoken, and in the sorted list.
fn partition_memory(spills: &[Spill], partition: usize) -> usize {
    let bytes: u64 = spills.iter().map(|spill| spill.bytes(partition)).sum();
    usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(4)
}

/// Add up the rows of one partition and write them in order of first occurrence.
fn sort_partition(spills: &[Spill], partition: usize, path: &Path) -> io::Result<BufReader<File>> {
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
    partitions: &mut [BufReader<File>],
    action: &mut impl FnMut(&[u8], u64) -> Result<()>,
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
        action(&pretokens[partition], count)?;
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
