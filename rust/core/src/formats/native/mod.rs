//! The native tokenizer file: `tokenizer.bytepair`, version 2. `docs/formats.md` is the
//! specification; this folder follows it.
//!
//! A fixed header, a table of sections, then the sections, each an array that starts at a multiple
//! of 64 bytes. Some hold the values of the tokenizer; the others hold the tables that encoding
//! looks things up in, as it does. So a file is ready when it is mapped and checked:
//!
//! 1. The checksum covers the whole file, which finds all damage that nobody intended. To read a
//!    few megabytes once takes a fraction of a millisecond.
//! 2. What the code relies on is checked when the file is opened, if that means to look through an
//!    array once, or else where it is used: ids and offsets that could lie outside, look-ups that
//!    might not end. So a file that somebody made up can give wrong ids, but nothing worse.
//! 3. [`verify`] makes all tables once more and compares them.
//!
//! A file without tables, or with tables of another kind than those known here, is as good: they
//! are made when it is read.

mod frame;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::encode::split_points::SplitPoints;
use crate::error::{Error, Result};
use crate::machine::array::Array;
use crate::memory;
use crate::merge::build;
use crate::merge::pair_table::{PairColumns, PairTable};
use crate::pretokenize::{Pattern, UNICODE_VERSION};
use crate::tokenizer::Tokenizer;
use crate::tokenizer::merges::{Merges, as_pairs, encode_counts};
use crate::vocabulary::{MergeRule, Vocabulary};
use frame::{Frame, Kind, Writer, number};

/// Whether a file holds the tables that can be made from what else it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tables {
    /// Where to make them would take longer than the rest of loading: not in small vocabularies, of
    /// which they would be the most part.
    #[default]
    With,
    /// No: such a file of a large vocabulary is a quarter of the size.
    Without,
}

/// What a file has, in bytes, for each merge (the pair, and how often it was made) and for each id.
const MERGE: usize = 16;
const OFFSET: usize = 16;

/// Vocabularies of fewer ids are saved without tables.
pub const SMALL: usize = 1 << 12;

fn write_sections(tokenizer: &Tokenizer, tables: bool) -> Result<Vec<u8>> {
    let vocabulary = tokenizer.vocabulary();
    let mut writer = Writer::default();
    let (arena, offsets) = vocabulary.arrays();
    tokenizer.make_tables()?;
    // Each section, and then all of them in one.
    memory::check(2 * (arena.len() + tokenizer.merges().len() * MERGE + offsets.len() * OFFSET))?;
    writer.column(Kind::TokenBytes, arena);
    writer.column(Kind::TokenOffsets, offsets);
    writer.numbers(Kind::SpecialIds, vocabulary.special_tokens().iter().map(|(_, id)| *id));
    writer.numbers(Kind::Rule, [rule_number(tokenizer.rule())]);
    let merges = tokenizer.merges().iter();
    writer.numbers(Kind::Merges, merges.flat_map(|(left, right)| [*left, *right]));
    writer.bytes(Kind::Pattern, tokenizer.pattern().regex().into());
    writer.bytes(Kind::UnicodeVersion, UNICODE_VERSION.into());
    writer.bytes(Kind::Notes, write_notes(tokenizer.notes()));
    writer.bytes(Kind::MergesMade, encode_counts(tokenizer.merge_counts()));
    if tables {
        write_tables(tokenizer, &mut writer)?;
    }
    Ok(writer.finish())
}

fn write_tables(tokenizer: &Tokenizer, writer: &mut Writer) -> Result<()> {
    let (slots, reach) = tokenizer.vocabulary().index().column();
    writer.table(Kind::Index, slots, reach);
    let PairColumns { buckets, bytes, ids } = tokenizer.pairs()?.columns();
    let (words, reach) = buckets.column();
    let borders = tokenizer.encoder().pretokens().split_points()?.column();
    memory::check(2 * (size_of_val(&**words) + size_of_val(&**slots) + size_of_val(&**borders)))?;
    writer.table(Kind::Pairs, words, reach);
    writer.column(Kind::PairsOfBytes, &bytes);
    writer.column(Kind::MergedIds, &ids);
    writer.column(Kind::Marks, tokenizer.marks());
    writer.column(Kind::Borders, borders);
    Ok(())
}

impl Tokenizer {
    /// The tokenizer in the bytes of a file, which are copied.
    ///
    /// Fails with [`Error::File`] where the bytes break the format, and with the error of the
    /// broken rule where what they say is no tokenizer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        tokenizer(&Frame::open(copied(bytes)?)?, Tables::With)
    }

    /// The tokenizer in a file, which is read as a whole. Fails as [`from_bytes`](Self::from_bytes)
    /// does, or if the file cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let unreadable = |error: std::io::Error| Error::Unreadable {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        Self::from_bytes(&std::fs::read(path).map_err(unreadable)?)
    }

    /// The tokenizer in a file, which is mapped and not copied: all processes that map it share it.
    /// Fails as [`from_bytes`](Self::from_bytes) does.
    ///
    /// # Safety
    ///
    /// As long as the tokenizer or a clone of it lives, nobody may write to the file or truncate
    /// it: after a write, what is read is undefined, and reading behind a truncated end kills the
    /// process with a signal. The file may be deleted, or replaced by another of the same name.
    #[expect(unsafe_code, reason = "a mapped file can change while it is read")]
    pub unsafe fn map(file: &File) -> Result<Self> {
        // SAFETY: the caller sees to it that the file stays as it is.
        let map = unsafe { Mmap::map(file) }.map_err(|error| unmapped(&error))?;
        let frame = Frame::open(Arc::new(map))?;
        let tokenizer = tokenizer(&frame, Tables::With);
        frame.release(&SELDOM_READ);
        tokenizer
    }

    /// The bytes of a file: always the same for the same tokenizer and notes. Fails if there is no
    /// memory for them.
    pub fn to_bytes(&self, tables: Tables) -> Result<Vec<u8>> {
        let is_large = self.vocabulary().len() >= SMALL;
        write_sections(self, tables == Tables::With && is_large)
    }
}

/// What encoding does not look at, or only where a text has long pretokens. The rest stays in
/// memory when a file has been checked, so that the first text does not wait for it.
const SELDOM_READ: [Kind; 3] = [Kind::Merges, Kind::Marks, Kind::Borders];

fn unmapped(error: &std::io::Error) -> Error {
    Error::File { at: 0, reason: format!("it cannot be mapped into memory: {error}") }
}

/// A copy of bytes as if it were a mapped file: it begins where a page does.
fn copied(bytes: &[u8]) -> Result<Arc<Mmap>> {
    // Nothing cannot be mapped; a byte is no file either.
    let mut map = MmapMut::map_anon(bytes.len().max(1)).map_err(|error| unmapped(&error))?;
    map[..bytes.len()].copy_from_slice(bytes);
    map.make_read_only().map(Arc::new).map_err(|error| unmapped(&error))
}

/// The sections that follow from the others.
const TABLES: [Kind; 6] =
    [Kind::Index, Kind::Pairs, Kind::PairsOfBytes, Kind::MergedIds, Kind::Marks, Kind::Borders];

/// Whether the tables in the bytes of a file are those that follow from its other sections.
///
/// Fails as [`Tokenizer::from_bytes`] does, and with [`Error::File`] at the first table that
/// differs.
pub fn verify(bytes: &[u8]) -> Result<()> {
    let frame = Frame::open(copied(bytes)?)?;
    let plain = tokenizer(&frame, Tables::Without)?;
    let made = write_sections(&plain, true)?;
    let made = Frame::open(copied(&made)?)?;
    for kind in TABLES.into_iter().filter(|&kind| frame.has(kind)) {
        if !frame.same(&made, kind) {
            let reason = "the table does not follow from the tokens and merges of the file";
            return Err(frame.broken(kind, reason));
        }
    }
    Ok(())
}

/// The tokenizer in the sections of a file, with or without believing its tables.
fn tokenizer(frame: &Frame, tables: Tables) -> Result<Tokenizer> {
    let believed = |kind| tables == Tables::With && frame.has(kind);
    let vocabulary = read_vocabulary(frame, believed(Kind::Index))?;
    if frame.text(Kind::UnicodeVersion)? != UNICODE_VERSION {
        let rule = format!("this bytepair splits by Unicode {UNICODE_VERSION} only");
        return Err(frame.broken(Kind::UnicodeVersion, &rule));
    }
    let rule = read_rule(frame)?;
    let merges = read_merges(frame, &vocabulary)?;
    let known = [Kind::Pairs, Kind::PairsOfBytes, Kind::MergedIds].into_iter().all(believed);
    let pairs = if known {
        read_pairs(frame, &vocabulary, rule)?
    } else if rule == MergeRule::Ranks {
        build::by_rank(&vocabulary)?
    } else {
        build::listed(&vocabulary, &as_pairs(&merges))?
    };
    let split_points = believed(Kind::Borders).then(|| read_split_points(frame)).transpose()?;
    let marks = believed(Kind::Marks).then(|| read_marks(frame, &vocabulary)).transpose()?;
    let counts = frame.has(Kind::MergesMade).then(|| frame.column(Kind::MergesMade));
    let counts = counts.unwrap_or_else(|| Ok(Array::new(Vec::new())))?;
    let pattern = Pattern::from_regex(frame.text(Kind::Pattern)?);
    let merges = Merges::in_file(merges, counts);
    let tokenizer = Tokenizer::with_tables(vocabulary, rule, pattern, merges, pairs, split_points)?;
    Ok(tokenizer.with_marks(marks).with_notes(read_notes(frame)?))
}

fn read_vocabulary(frame: &Frame, indexed: bool) -> Result<Vocabulary> {
    let arena: Array<u8> = frame.column(Kind::TokenBytes)?;
    let offsets: Array<u32> = frame.column(Kind::TokenOffsets)?;
    let special: Array<u32> = frame.column(Kind::SpecialIds)?;
    let index = indexed.then(|| frame.slots(Kind::Index)).transpose()?;
    Vocabulary::from_columns(arena, offsets, &special, index)
}

fn rule_number(rule: MergeRule) -> u32 {
    match rule {
        MergeRule::Ranks => 0,
        MergeRule::Merges { ignore_merges: false } => 1,
        MergeRule::Merges { ignore_merges: true } => 2,
    }
}

fn read_rule(frame: &Frame) -> Result<MergeRule> {
    match frame.column::<u32>(Kind::Rule)?[..] {
        [0] => Ok(MergeRule::Ranks),
        [number @ (1 | 2)] => Ok(MergeRule::Merges { ignore_merges: number == 2 }),
        _ => Err(frame.broken(Kind::Rule, "the merge rule is not 0, 1 or 2")),
    }
}

/// Pairs of ids, end to end.
fn read_merges(frame: &Frame, vocabulary: &Vocabulary) -> Result<Array<u32>> {
    let merges: Array<u32> = frame.column(Kind::Merges)?;
    let exist = all_below(&merges, vocabulary.len());
    if !merges.len().is_multiple_of(2) || !exist {
        return Err(frame.broken(Kind::Merges, "the merges are not pairs of ids"));
    }
    Ok(merges)
}

/// Whether all numbers are below a limit: to count, without a way out in between, is what vector
/// instructions can do.
fn all_below(numbers: &[u32], limit: usize) -> bool {
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    numbers.iter().filter(|&&number| number >= limit).count() == 0
}

fn read_pairs(frame: &Frame, vocabulary: &Vocabulary, rule: MergeRule) -> Result<PairTable> {
    let columns = PairColumns {
        buckets: frame.buckets(Kind::Pairs)?,
        bytes: frame.column(Kind::PairsOfBytes)?,
        ids: frame.column(Kind::MergedIds)?,
    };
    let reason = "it names ranks or ids that do not exist";
    PairTable::of_columns(columns, vocabulary, rule)
        .ok_or_else(|| frame.broken(Kind::PairsOfBytes, reason))
}

fn read_split_points(frame: &Frame) -> Result<SplitPoints> {
    let split_points = SplitPoints::of_column(frame.column(Kind::Borders)?);
    split_points
        .ok_or_else(|| frame.broken(Kind::Borders, "it does not have a power of two of bits"))
}

fn read_marks(frame: &Frame, vocabulary: &Vocabulary) -> Result<Array<u32>> {
    let marks = frame.column(Kind::Marks)?;
    if marks.len() == vocabulary.len() {
        return Ok(marks);
    }
    Err(frame.broken(Kind::Marks, "it is not one number for each id"))
}

/// Each key and each value with its length before it.
fn write_notes(notes: &BTreeMap<String, String>) -> Vec<u8> {
    let parts = notes.iter().flat_map(|(key, value)| [key, value]);
    parts
        .flat_map(|text| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat())
        .collect()
}

fn read_notes(frame: &Frame) -> Result<BTreeMap<String, String>> {
    let bytes = frame.bytes(Kind::Notes)?;
    let (mut at, mut texts) = (0, Vec::new());
    while at < bytes.len() {
        let text = number(bytes, at, 8)
            .and_then(|length| bytes.get(at + 8..(at + 8).checked_add(length)?))
            .and_then(|text| String::from_utf8(text.to_vec()).ok())
            .ok_or_else(|| frame.broken(Kind::Notes, "a note is cut off or not UTF-8"))?;
        at += 8 + text.len();
        texts.push(text);
    }
    let (pairs, rest) = texts.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(frame.broken(Kind::Notes, "a key has no value"));
    }
    Ok(pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect())
}
