//! The frame of a native file: header, checksum, and the table of sections.
//!
//! Whatever the sections hold, once the frame is open each of them lies inside the file, begins
//! where its numbers may begin, and overlaps no other; and the bytes are those that were written.

use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::{Error, Result};
use crate::hash::probe_table::{MAX_PROBE, ProbeTable};
use crate::machine::array::{Array, LittleEndian};
use crate::merge::buckets::Buckets;

const MAGIC: &[u8; 8] = b"BYTEPAIR";
const VERSION: u32 = 2;
const HEADER: usize = 64;
const ENTRY: usize = 24;
const ALIGN: usize = 64;
/// More sections than a reader will ever look at.
const MAX_SECTIONS: usize = 64;
/// Where the checksum is, of 4 bytes.
const CHECKSUM: Range<usize> = 24..28;

/// What a section holds. Readers pass over kinds that they do not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    TokenBytes = 1,
    TokenOffsets = 2,
    SpecialIds = 3,
    Rule = 4,
    Merges = 5,
    Pattern = 6,
    UnicodeVersion = 7,
    Notes = 8,
    /// May be missing, as all that follow.
    MergesMade = 9,
    Index = 16,
    Pairs = 17,
    PairsOfBytes = 18,
    MergedIds = 19,
    Marks = 20,
    Borders = 21,
}

/// One line of the table of sections.
struct Section {
    kind: u32,
    /// For a hash table its reach, else 0.
    reach: usize,
    range: Range<usize>,
}

/// The sections of a file whose frame is whole.
pub(super) struct Frame {
    /// The whole file, mapped or copied into a map that has none: its sections begin where lines of
    /// the processor's cache do, as some tables demand that are looked at a line at a time.
    map: Arc<Mmap>,
    sections: Vec<Section>,
}

impl Frame {
    /// Check the header, the checksum and the table of sections.
    pub(super) fn open(map: Arc<Mmap>) -> Result<Self> {
        let file: &[u8] = &map;
        let fail = |at, reason: &str| Err(Error::File { at, reason: reason.to_owned() });
        if file.get(..8) != Some(&MAGIC[..]) {
            return fail(0, "it does not start with BYTEPAIR");
        }
        if file.len() < HEADER {
            return fail(file.len(), "the header is cut off");
        }
        match number(file, 8, 4) {
            Some(2) => (),
            Some(1) => {
                return fail(
                    8,
                    "its version is 1, which was never released and is no longer read; load the \
                     tokenizer from where it came from and save it again",
                );
            }
            _ => return fail(8, "its version is not 2; a newer bytepair may read it"),
        }
        if number(file, 16, 8) != Some(file.len()) {
            return fail(16, "the file has another length than its header says: it is cut off");
        }
        if number(file, CHECKSUM.start, 4) != usize::try_from(checksum(file)).ok() {
            return fail(CHECKSUM.start, "the checksum does not match: the file is damaged");
        }
        let count = number(file, 12, 4).unwrap_or(usize::MAX);
        if count > MAX_SECTIONS || HEADER + ENTRY * count > file.len() {
            return fail(12, "the table of sections does not fit the file");
        }
        let mut sections: Vec<Section> = Vec::with_capacity(count);
        for at in (0..count).map(|index| HEADER + ENTRY * index) {
            let before = sections.last().map(|one| (one.kind.saturating_add(1), one.range.end));
            let (least, free) = before.unwrap_or((0, HEADER + ENTRY * count));
            sections.push(section(file, at, least, free)?);
        }
        Ok(Self { map, sections })
    }

    /// Give the memory of some sections of a mapped file back, which what is used of it will take
    /// again.
    ///
    /// To check a file is to touch all of it; its pages count as memory of this process.
    pub(super) fn release(&self, kinds: &[Kind]) {
        for section in kinds.iter().filter_map(|&kind| self.find(kind)) {
            release(&self.map, &section.range);
        }
    }

    fn find(&self, kind: Kind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind as u32)
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.find(kind).is_some()
    }

    fn needed(&self, kind: Kind) -> Result<&Section> {
        self.find(kind).ok_or_else(|| {
            let reason = format!("section {} is missing", kind as u32);
            Error::File { at: HEADER, reason }
        })
    }

    pub(super) fn bytes(&self, kind: Kind) -> Result<&[u8]> {
        Ok(&self.map[self.needed(kind)?.range.clone()])
    }

    pub(super) fn text(&self, kind: Kind) -> Result<&str> {
        std::str::from_utf8(self.bytes(kind)?).map_err(|_| self.broken(kind, "it is not UTF-8"))
    }

    /// The numbers of a section.
    pub(super) fn column<T: LittleEndian>(&self, kind: Kind) -> Result<Array<T>> {
        let range = self.needed(kind)?.range.clone();
        let column = Array::mapped(&self.map, range);
        column.ok_or_else(|| self.broken(kind, "it ends within a number"))
    }

    /// The hash table of a section.
    pub(super) fn slots(&self, kind: Kind) -> Result<ProbeTable> {
        let reach = self.needed(kind)?.reach;
        let slots = ProbeTable::of_column(self.column(kind)?, reach);
        slots.ok_or_else(|| self.broken(kind, "its entries reach too far"))
    }

    /// The table of pairs of a section.
    pub(super) fn buckets(&self, kind: Kind) -> Result<Buckets> {
        let buckets = Buckets::of_column(self.column(kind)?, self.needed(kind)?.reach);
        buckets.ok_or_else(|| self.broken(kind, "it is no power of two, or reaches too far"))
    }

    /// Whether another file has the same section.
    pub(super) fn same(&self, other: &Frame, kind: Kind) -> bool {
        let reach = |frame: &Frame| frame.find(kind).map(|section| section.reach);
        reach(self) == reach(other) && self.bytes(kind) == other.bytes(kind)
    }

    /// The error that a section breaks a rule.
    pub(super) fn broken(&self, kind: Kind, reason: &str) -> Error {
        let at = self.find(kind).map_or(0, |section| section.range.start);
        Error::File { at, reason: format!("section {}: {reason}", kind as u32) }
    }
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "there is no other way to say that memory is not needed")]
fn release(map: &Mmap, range: &Range<usize>) {
    let (wish, start) = (memmap2::UncheckedAdvice::DontNeed, range.start);
    // SAFETY: the map is of a file and never written to, so pages that are taken away come back
    // from the file as they were.
    let _a_wish = unsafe { map.unchecked_advise_range(wish, start, range.len()) };
}

/// Elsewhere it is kept.
#[cfg(not(unix))]
fn release(_map: &Mmap, _range: &Range<usize>) {}

/// CRC-32 of a file in which the four bytes of the checksum are 0.
pub(super) fn checksum(file: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&file[..CHECKSUM.start]);
    hasher.update(&[0; 4]);
    hasher.update(&file[CHECKSUM.end..]);
    hasher.finalize()
}

/// The line at `at` of the table, with a kind not below `least` and a span inside the file, from
/// `free` on.
fn section(file: &[u8], at: usize, least: u32, free: usize) -> Result<Section> {
    let fits = || {
        let kind = u32::try_from(number(file, at, 4)?).ok()?;
        let reach = number(file, at + 4, 4)?;
        let start = number(file, at + 8, 8)?;
        let end = start.checked_add(number(file, at + 16, 8)?)?;
        let inside = start % ALIGN == 0 && free <= start && end <= file.len();
        (inside && least <= kind).then_some(Section { kind, reach, range: start..end })
    };
    fits().ok_or_else(|| Error::File {
        at,
        reason: "a section lies outside the file, or not behind the one before".to_owned(),
    })
}

/// The little-endian number of `width` bytes at `at`, where it exists and fits.
pub(super) fn number(file: &[u8], at: usize, width: usize) -> Option<usize> {
    let mut word = [0; 8];
    word[..width].copy_from_slice(file.get(at..at.checked_add(width)?)?);
    usize::try_from(u64::from_le_bytes(word)).ok()
}

/// A file in the making: sections in the order of their kinds.
#[derive(Default)]
pub(super) struct Writer {
    sections: Vec<(Kind, u32, Vec<u8>)>,
}

impl Writer {
    pub(super) fn bytes(&mut self, kind: Kind, content: Vec<u8>) {
        self.sections.push((kind, 0, content));
    }

    pub(super) fn column<T: LittleEndian>(&mut self, kind: Kind, column: &Array<T>) {
        self.bytes(kind, column.to_bytes());
    }

    pub(super) fn numbers(&mut self, kind: Kind, numbers: impl IntoIterator<Item = u32>) {
        self.bytes(kind, numbers.into_iter().flat_map(u32::to_le_bytes).collect());
    }

    /// Write a hash table and how far a look-up reaches, if a reader would take it.
    pub(super) fn table<T: LittleEndian>(&mut self, kind: Kind, column: &Array<T>, reach: usize) {
        if reach <= MAX_PROBE {
            let reach = u32::try_from(reach).expect("a small number");
            self.sections.push((kind, reach, column.to_bytes()));
        }
    }

    /// The whole file.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut file = vec![0; HEADER + ENTRY * self.sections.len()];
        for (index, (kind, reach, content)) in self.sections.iter().enumerate() {
            file.resize(file.len().next_multiple_of(ALIGN), 0);
            let entry = HEADER + ENTRY * index;
            put(&mut file, entry, &(*kind as u32).to_le_bytes());
            put(&mut file, entry + 4, &reach.to_le_bytes());
            let (start, length) = (file.len() as u64, content.len() as u64);
            put(&mut file, entry + 8, &start.to_le_bytes());
            put(&mut file, entry + 16, &length.to_le_bytes());
            file.extend_from_slice(content);
        }
        put(&mut file, 0, MAGIC);
        put(&mut file, 8, &VERSION.to_le_bytes());
        let count = u32::try_from(self.sections.len()).expect("a handful of sections");
        put(&mut file, 12, &count.to_le_bytes());
        let length = file.len() as u64;
        put(&mut file, 16, &length.to_le_bytes());
        sign(&mut file);
        file
    }
}

/// Put the right checksum into a file.
pub(super) fn sign(file: &mut [u8]) {
    let checksum = checksum(file);
    put(file, CHECKSUM.start, &checksum.to_le_bytes());
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}
