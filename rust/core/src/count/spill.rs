//! Counts that do not fit memory: rows go to a file, and come back in order of first occurrence.
//!
//! A row is a pretoken with its count and the byte of the corpus at which it was first seen. Rows
//! are dealt to [`PARTS`] parts by a hash of the pretoken, so that all rows of one pretoken meet in
//! one part. [`merge`] adds up one part at a time, writes each in order of first occurrence, and
//! then takes the least row of all parts again and again. What is held is never more than a
//! part, and one buffer for each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

use super::Seen;
use crate::error::{Error, Result};

/// How many parts there are; each has a file that is open while parts are merged.
const PARTS: usize = 64;

/// Rows are written when they have so many bytes.
const BUFFER: usize = 1 << 20;

/// The rows that one thread has put aside.
#[derive(Debug)]
pub(super) struct Spill {
    path: PathBuf,
    file: File,
    /// How many bytes were written.
    written: u64,
    /// Where the rows of each part are in the file.
    sections: Vec<Vec<Range<u64>>>,
    /// The rows of each part that are not yet written.
    buffers: Vec<Vec<u8>>,
    buffered: usize,
}

impl Spill {
    /// A new file in `folder`; `number` tells the files of several threads apart.
    pub(super) fn create(folder: &Path, number: usize) -> Result<Self> {
        let path = folder.join(format!("rows-{number}"));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path);
        Ok(Self {
            file: file.map_err(|error| failed(&path, &error))?,
            path,
            written: 0,
            sections: vec![Vec::new(); PARTS],
            buffers: vec![Vec::new(); PARTS],
            buffered: 0,
        })
    }

    /// Put a row aside.
    pub(super) fn push(&mut self, pretoken: &[u8], seen: Seen) -> Result<()> {
        let hash = FixedState::default().hash_one(pretoken);
        let part = usize::try_from(hash % PARTS as u64).expect("below 64");
        encode(&mut self.buffers[part], pretoken, seen);
        self.buffered += ROW + pretoken.len();
        if self.buffered >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Write the rows that are not yet written.
    pub(super) fn flush(&mut self) -> Result<()> {
        for (buffer, sections) in self.buffers.iter_mut().zip(&mut self.sections) {
            if buffer.is_empty() {
                continue;
            }
            self.file.write_all(buffer).map_err(|error| failed(&self.path, &error))?;
            let start = self.written;
            self.written += buffer.len() as u64;
            sections.push(start..self.written);
            // A single row can be long; its memory is not kept.
            *buffer = Vec::new();
        }
        self.buffered = 0;
        Ok(())
    }

    /// Call `action` with every row of a part.
    fn read(&mut self, part: usize, mut action: impl FnMut(&[u8], Seen)) -> io::Result<()> {
        let mut pretoken = Vec::new();
        for section in &self.sections[part] {
            self.file.seek(SeekFrom::Start(section.start))?;
            let mut rows = BufReader::new((&self.file).take(section.end - section.start));
            while let Some(seen) = decode(&mut rows, &mut pretoken)? {
                action(&pretoken, seen);
            }
        }
        Ok(())
    }
}

/// Add up the rows of all `spills` and call `action` with each pretoken in order of first
/// occurrence. Further files are made in `folder`.
pub(super) fn merge(
    mut spills: Vec<Spill>,
    folder: &Path,
    mut action: impl FnMut(&[u8], u64),
) -> Result<()> {
    spills.iter_mut().try_for_each(Spill::flush)?;
    let sorted = (0..PARTS).map(|part| {
        let path = folder.join(format!("part-{part}"));
        sort_part(&mut spills, part, &path).map_err(|error| failed(&path, &error))
    });
    let mut sorted = sorted.collect::<Result<Vec<_>>>()?;
    drop(spills);
    merge_sorted(&mut sorted, &mut action).map_err(|error| failed(folder, &error))
}

/// Add up the rows of one part and write them in order of first occurrence.
fn sort_part(spills: &mut [Spill], part: usize, path: &Path) -> io::Result<BufReader<File>> {
    let mut table: HashMap<Box<[u8]>, Seen, FixedState> = HashMap::default();
    for spill in spills {
        spill.read(part, |pretoken, seen| match table.get_mut(pretoken) {
            Some(known) => known.add(seen),
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
        encode(&mut bytes, &pretoken, seen);
        out.write_all(&bytes)?;
    }
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(BufReader::new(file))
}

/// Take the row that was seen first, of all parts, until there is none.
fn merge_sorted(
    parts: &mut [BufReader<File>],
    action: &mut impl FnMut(&[u8], u64),
) -> io::Result<()> {
    let mut pretokens = vec![Vec::new(); parts.len()];
    let mut next = BinaryHeap::new();
    let mut read = |part: usize, pretokens: &mut [Vec<u8>], next: &mut BinaryHeap<_>| {
        if let Some(seen) = decode(&mut parts[part], &mut pretokens[part])? {
            next.push(Reverse((seen.first, part, seen.count)));
        }
        io::Result::Ok(())
    };
    for part in 0..PARTS {
        read(part, &mut pretokens, &mut next)?;
    }
    while let Some(Reverse((_, part, count))) = next.pop() {
        action(&pretokens[part], count);
        read(part, &mut pretokens, &mut next)?;
    }
    Ok(())
}

/// The bytes of a row beside its pretoken: first place, count, length.
const ROW: usize = 24;

fn encode(out: &mut Vec<u8>, pretoken: &[u8], seen: Seen) {
    for number in [seen.first, seen.count, pretoken.len() as u64] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(pretoken);
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
    pretoken.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
    rows.read_exact(pretoken)?;
    Ok(Some(Seen { count, first }))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::Spill { path: path.display().to_string(), reason: error.to_string() }
}
