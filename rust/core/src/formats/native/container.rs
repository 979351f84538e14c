//! The container of a native file: header, checksum and section table.
//!
//! An open container guarantees that every section lies inside the file, is aligned for its numbers
//! and overlaps no other section, and that the checksum matches. It says nothing about the
//! contents.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use crate::error::{Error, Hint, Reason, Result};
use crate::hash::tables::KeyTable;
use crate::machine::array::{Array, FileBytes};
use crate::merge::pair_table::Buckets;

pub(crate) const MAGIC: &[u8; 8] = b"BYTEPAIR";
const VERSION: u32 = 5;
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 24;
const ALIGN_BYTES: usize = 64;
/// Far more sections than version 5 defines.
const MAX_SECTIONS: usize = 64;
/// Byte range of the checksum.
const CHECKSUM: Range<usize> = 24..28;

/// For a file of an old version.
const SAVE_AGAIN: &Hint =
    &Hint::new("load the tokenizer from where it came from and save it again");

/// What a section holds. Readers skip unknown kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    TokenBytes = 1,
    TokenOffsets = 2,
    SpecialIds = 3,
    Rule = 4,
    Merges = 5,
    Rules = 6,
    UnicodeVersion = 7,
    Notes = 8,
    /// Optional, like all that follow.
    MergeCounts = 9,
    Twins = 10,
    Shared = 11,
    AddedFlags = 12,
    /// A table that can be rebuilt from the others, like all that follow.
    Pairs = 17,
    PairsOfBytes = 18,
    MergedIds = 19,
    SplitPoints = 21,
    WholeOnly = 25,
    Tokens = 26,
}

/// One entry of the section table.
struct Section {
    kind: u32,
    /// The longest probe sequence of a hash table, else 0.
    max_probe: usize,
    range: Range<usize>,
}

/// The sections of a file whose header, checksum and section table are valid.
pub(super) struct Container {
    /// The whole file.
    map: Arc<FileBytes>,
    sections: Vec<Section>,
}

impl Container {
    /// Check the header, the checksum and the table of sections.
    pub(super) fn open(map: FileBytes) -> Result<Self> {
        let map = Arc::new(map);
        let file: &[u8] = &map;
        let fail = |at, reason: &str| Err(Error::File { at, reason: reason.into() });
        if file.get(..8) != Some(&MAGIC[..]) {
            return fail(0, "it does not start with BYTEPAIR");
        }
        if file.len() < HEADER_BYTES {
            return fail(file.len(), "the header is cut off");
        }
        match number(file, 8, 4) {
            Some(5) => (),
            Some(version @ 1..=4) => {
                let text = format!("its version is {version}, which is no longer read");
                return Err(Error::File { at: 8, reason: Reason::new(text, SAVE_AGAIN) });
            }
            _ => return fail(8, "its version is not 5; a newer bytepair may read it"),
        }
        if number(file, 16, 8) != Some(file.len()) {
            return fail(
                16,
                "the header gives another length than the file has: the file is cut off",
            );
        }
        if number(file, CHECKSUM.start, 4) != usize::try_from(checksum(file)).ok() {
            return fail(CHECKSUM.start, "the checksum does not match: the file is damaged");
        }
        let count = number(file, 12, 4).unwrap_or(usize::MAX);
        if count > MAX_SECTIONS || HEADER_BYTES + ENTRY_BYTES * count > file.len() {
            return fail(12, "the table of sections does not fit the file");
        }
        let mut sections: Vec<Section> = Vec::with_capacity(count);
        for at in (0..count).map(|index| HEADER_BYTES + ENTRY_BYTES * index) {
            let before = sections.last().map(|one| (one.kind.saturating_add(1), one.range.end));
            let (least, free) = before.unwrap_or((0, HEADER_BYTES + ENTRY_BYTES * count));
            sections.push(section(file, at, least, free)?);
        }
        Ok(Self { map, sections })
    }

    /// Tell the system that the pages of some sections are not needed for now.
    ///
    /// Checking a mapped file reads all of it, and every page read counts as memory of this
    /// process. Pages that are used again are read from the file again.
    pub(super) fn release(&self, kinds: &[Kind]) {
        for section in kinds.iter().filter_map(|&kind| self.find(kind)) {
            self.map.release(section.range.clone());
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
            Error::File { at: HEADER_BYTES, reason: reason.into() }
        })
    }

    pub(super) fn bytes(&self, kind: Kind) -> Result<&[u8]> {
        Ok(&self.map[self.needed(kind)?.range.clone()])
    }

    /// The numbers of a section.
    pub(super) fn array<T: Pod>(&self, kind: Kind) -> Result<Array<T>> {
        let range = self.needed(kind)?.range.clone();
        let array = Array::mapped(&self.map, range);
        array.ok_or_else(|| self.broken(kind, "it ends within a number"))
    }

    /// The numbers of a section that may be missing.
    pub(super) fn array_if_any<T: Pod + Send + Sync>(&self, kind: Kind) -> Result<Array<T>> {
        if self.has(kind) { self.array(kind) } else { Ok(Array::new(Vec::new())) }
    }

    /// The table of keys of a section.
    pub(super) fn key_table(&self, kind: Kind) -> Result<KeyTable> {
        let table = KeyTable::from_array(self.array(kind)?, self.needed(kind)?.max_probe);
        table.ok_or_else(|| {
            self.broken(kind, "it does not consist of lines, or its probe sequences are too long")
        })
    }

    /// The table of pairs of a section.
    pub(super) fn buckets(&self, kind: Kind) -> Result<Buckets> {
        let buckets = Buckets::from_array(self.array(kind)?, self.needed(kind)?.max_probe);
        buckets.ok_or_else(|| {
            self.broken(kind, "its size is not a power of two, or its probe sequences are too long")
        })
    }

    /// Fails at the first table that is another one in `rebuilt`.
    pub(super) fn check_tables(&self, rebuilt: &Container) -> Result<()> {
        let tables = rebuilt.sections.iter().filter(|section| section.kind >= Kind::Pairs as u32);
        for expected in tables {
            let table = self.sections.iter().find(|section| section.kind == expected.kind);
            let Some(Section { kind, max_probe, range }) = table else { continue };
            let same = *max_probe == expected.max_probe
                && self.map[range.clone()] == rebuilt.map[expected.range.clone()];
            if !same {
                let reason = "the table does not follow from the tokens and merges of the file";
                let reason = format!("section {kind}: {reason}").into();
                return Err(Error::File { at: range.start, reason });
            }
        }
        Ok(())
    }

    /// The error for a section that breaks a rule.
    pub(super) fn broken(&self, kind: Kind, reason: &str) -> Error {
        let at = self.find(kind).map_or(0, |section| section.range.start);
        Error::File { at, reason: format!("section {}: {reason}", kind as u32).into() }
    }
}

/// CRC-32 of a file, with the four bytes of the checksum taken as 0.
pub(super) fn checksum(file: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&file[..CHECKSUM.start]);
    hasher.update(&[0; 4]);
    hasher.update(&file[CHECKSUM.end..]);
    hasher.finalize()
}

/// Read the entry at `at` of the section table. Its kind must be at least `least`; its range must
/// start at `free` or later and end inside the file.
fn section(file: &[u8], at: usize, least: u32, free: usize) -> Result<Section> {
    let fits = || {
        let kind = u32::try_from(number(file, at, 4)?).ok()?;
        let max_probe = number(file, at + 4, 4)?;
        let start = number(file, at + 8, 8)?;
        let end = start.checked_add(number(file, at + 16, 8)?)?;
        let inside = start % ALIGN_BYTES == 0 && free <= start && end <= file.len();
        (inside && least <= kind).then_some(Section { kind, max_probe, range: start..end })
    };
    fits().ok_or_else(|| Error::File {
        at,
        reason: "a section lies outside the file, or starts before the end of the previous one"
            .into(),
    })
}

/// The little-endian number of `width` bytes at `at`; `None` if it lies outside the file or does
/// not fit.
pub(super) fn number(file: &[u8], at: usize, width: usize) -> Option<usize> {
    let mut word = [0; 8];
    word[..width].copy_from_slice(file.get(at..at.checked_add(width)?)?);
    usize::try_from(u64::from_le_bytes(word)).ok()
}

/// Collects sections, in ascending order of their kinds, into a file.
#[derive(Default)]
pub(super) struct Writer {
    sections: Vec<(Kind, u32, Vec<u8>)>,
}

impl Writer {
    pub(super) fn bytes(&mut self, kind: Kind, content: Vec<u8>) {
        self.sections.push((kind, 0, content));
    }

    pub(super) fn array<T: Pod>(&mut self, kind: Kind, array: &Array<T>) {
        self.bytes(kind, array.to_bytes());
    }

    pub(super) fn numbers(&mut self, kind: Kind, numbers: impl IntoIterator<Item = u32>) {
        self.bytes(kind, numbers.into_iter().flat_map(u32::to_le_bytes).collect());
    }

    /// Write a hash table and its longest probe sequence.
    pub(super) fn table<T: Pod>(&mut self, kind: Kind, array: &Array<T>, max_probe: usize) {
        let max_probe = u32::try_from(max_probe).expect("a small number");
        self.sections.push((kind, max_probe, array.to_bytes()));
    }

    /// The bytes of the file.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut file = vec![0; HEADER_BYTES + ENTRY_BYTES * self.sections.len()];
        for (index, (kind, max_probe, content)) in self.sections.iter().enumerate() {
            file.resize(file.len().next_multiple_of(ALIGN_BYTES), 0);
            let entry = HEADER_BYTES + ENTRY_BYTES * index;
            put(&mut file, entry, &(*kind as u32).to_le_bytes());
            put(&mut file, entry + 4, &max_probe.to_le_bytes());
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

/// Write the correct checksum into a file.
pub(super) fn sign(file: &mut [u8]) {
    let checksum = checksum(file);
    put(file, CHECKSUM.start, &checksum.to_le_bytes());
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}
