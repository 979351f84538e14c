//! The native tokenizer file: `tokenizer.bytepair`, version 2. `docs/formats.md` is the
//! specification; this folder follows it.
//!
//! A fixed header, a table of sections, then the sections, each an array that starts at a multiple
//! of 64 bytes. Some hold the values of the tokenizer; the others hold the tables that encoding looks
//! things up in, as it does. So a file is ready when it is mapped and checked:
//!
//! 1. The checksum covers the whole file, which finds all damage that nobody intended. To read a few
//!    megabytes once takes a fraction of a millisecond.
//! 2. What the code relies on is checked when the file is opened, if that means to look through an
//!    array once, or else where it is used: ids and offsets that could lie outside, look-ups that might
//!    not end. So a file that somebody made up can give wrong ids, but nothing worse.
//! 3. [`verify`] makes all tables once more and compares them.
//!
//! A file without tables, or with tables of another kind than those known here, is as good: they are
//! made when it is read.

mod frame;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::column::Column;
use crate::encode::{Borders, PairColumns, PairTable, Remembered, byte_ids};
use crate::error::{Error, Result};
use crate::pretokenize::{Pattern, UNICODE_VERSION};
use crate::tokenizer::{Parts, Tokenizer};
use crate::vocabulary::{MergeRule, Rule, Vocabulary};
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

/// Vocabularies of fewer ids are saved without tables.
pub const SMALL: usize = 1 << 12;

/// The file of a tokenizer: always the same bytes for the same tokenizer and notes.
pub fn write(tokenizer: &Tokenizer, tables: Tables) -> Vec<u8> {
    write_sections(tokenizer, tables == Tables::With && tokenizer.vocabulary().len() >= SMALL)
}

fn write_sections(tokenizer: &Tokenizer, tables: bool) -> Vec<u8> {
    let vocabulary = tokenizer.vocabulary();
    let mut writer = Writer::default();
    let (arena, offsets) = vocabulary.arrays();
    writer.column(Kind::TokenBytes, arena);
    writer.column(Kind::TokenOffsets, offsets);
    writer.numbers(Kind::SpecialIds, vocabulary.special_tokens().iter().map(|(_, id)| *id));
    writer.numbers(Kind::Rule, [rule_number(tokenizer.rule())]);
    let merges = tokenizer.merges().iter();
    writer.numbers(Kind::Merges, merges.flat_map(|(left, right)| [*left, *right]));
    writer.bytes(Kind::Pattern, tokenizer.pattern().regex().into());
    writer.bytes(Kind::UnicodeVersion, UNICODE_VERSION.into());
    writer.bytes(Kind::Notes, write_notes(tokenizer.notes()));
    writer.bytes(Kind::MergesMade, write_made(tokenizer.merges_made()));
    if tables {
        write_tables(tokenizer, &mut writer);
    }
    if let Some(remembered) = tokenizer.remembered() {
        writer.column(Kind::Remembered, remembered.column());
    }
    writer.finish()
}

fn write_tables(tokenizer: &Tokenizer, writer: &mut Writer) {
    let (slots, reach) = tokenizer.vocabulary().index().column();
    writer.table(Kind::Index, slots, reach);
    let PairColumns { buckets, bytes, ids } = tokenizer.pairs().columns();
    let (words, reach) = buckets.column();
    writer.table(Kind::Pairs, words, reach);
    writer.column(Kind::PairsOfBytes, &bytes);
    writer.column(Kind::MergedIds, &ids);
    writer.column(Kind::Marks, tokenizer.marks());
    writer.column(Kind::Borders, tokenizer.borders().column());
}

/// The tokenizer in the bytes of a file, which are copied.
///
/// Fails with [`Error::File`] where the bytes break the format, and with the error of the broken
/// rule where what they say is no tokenizer.
pub fn read(bytes: &[u8]) -> Result<Tokenizer> {
    tokenizer(&Frame::open(copied(bytes)?)?, Tables::With)
}

/// The tokenizer in a file, which is mapped and not copied: all processes that map it share it.
///
/// As long as the tokenizer is there, the file must not be written to or cut off; it may be deleted,
/// or replaced by another of the same name. Fails as [`read`] does.
pub fn map(file: &File) -> Result<Tokenizer> {
    let frame = Frame::open(Arc::new(mapped(file).map_err(|error| unmapped(&error))?))?;
    let tokenizer = tokenizer(&frame, Tables::With);
    frame.release(&SELDOM_READ);
    tokenizer
}

/// What encoding does not look at, or only where a text has long pretokens. The rest stays in memory
/// when a file has been checked, so that the first text does not wait for it.
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

#[expect(unsafe_code, reason = "a mapped file can change under our eyes")]
fn mapped(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: whoever changes the file meanwhile changes numbers on which nothing relies for more than
    // their own value; whoever cuts it off ends the process with a signal. The format forbids both.
    unsafe { Mmap::map(file) }
}

/// The sections that follow from the others.
const TABLES: [Kind; 6] =
    [Kind::Index, Kind::Pairs, Kind::PairsOfBytes, Kind::MergedIds, Kind::Marks, Kind::Borders];

/// Whether the tables in the bytes of a file are those that follow from its other sections.
///
/// Fails as [`read`] does, and with [`Error::File`] at the first table that differs.
pub fn verify(bytes: &[u8]) -> Result<()> {
    let frame = Frame::open(copied(bytes)?)?;
    let plain = tokenizer(&frame, Tables::Without)?;
    let remembered = read_remembered(&frame)?;
    if remembered.is_some_and(|table| !table.agrees(|pretoken| plain.encode_pretoken(pretoken))) {
        let reason = "a pretoken does not have the ids that are remembered";
        return Err(frame.broken(Kind::Remembered, reason));
    }
    let made = write_sections(&plain, true);
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
    } else {
        PairTable::new(&vocabulary, &MergeRule::of(rule, &merges), &byte_ids(&vocabulary))?
    };
    let borders = believed(Kind::Borders).then(|| read_borders(frame)).transpose()?;
    let marks = believed(Kind::Marks).then(|| read_marks(frame, &vocabulary)).transpose()?;
    let merges_made = frame.has(Kind::MergesMade).then(|| frame.column(Kind::MergesMade));
    let merges_made = merges_made.unwrap_or_else(|| Ok(Column::new(Vec::new())))?;
    let pattern = Pattern::new(frame.text(Kind::Pattern)?);
    let notes = read_notes(frame)?;
    let believe = tables == Tables::With;
    let remembered = if believe { read_remembered(frame)? } else { None };
    Tokenizer::of_parts(Parts {
        vocabulary,
        rule,
        pattern,
        pairs,
        borders,
        merges: Some(merges),
        merges_made,
        marks,
        remembered,
        notes,
    })
}

fn read_remembered(frame: &Frame) -> Result<Option<Remembered>> {
    if !frame.has(Kind::Remembered) {
        return Ok(None);
    }
    let remembered = Remembered::of_column(frame.column(Kind::Remembered)?);
    let reason = "it is no power of two of sets";
    remembered.map(Some).ok_or_else(|| frame.broken(Kind::Remembered, reason))
}

fn read_vocabulary(frame: &Frame, indexed: bool) -> Result<Vocabulary> {
    let arena: Column<u8> = frame.column(Kind::TokenBytes)?;
    let offsets: Column<u32> = frame.column(Kind::TokenOffsets)?;
    let special: Column<u32> = frame.column(Kind::SpecialIds)?;
    let index = indexed.then(|| frame.slots(Kind::Index)).transpose()?;
    Vocabulary::from_columns(arena, offsets, &special, index)
}

fn rule_number(rule: Rule) -> u32 {
    match rule {
        Rule::Ranks => 0,
        Rule::Merges { ignore_merges: false } => 1,
        Rule::Merges { ignore_merges: true } => 2,
    }
}

fn read_rule(frame: &Frame) -> Result<Rule> {
    match frame.column::<u32>(Kind::Rule)?[..] {
        [0] => Ok(Rule::Ranks),
        [number @ (1 | 2)] => Ok(Rule::Merges { ignore_merges: number == 2 }),
        _ => Err(frame.broken(Kind::Rule, "the merge rule is not 0, 1 or 2")),
    }
}

/// Pairs of ids, end to end.
fn read_merges(frame: &Frame, vocabulary: &Vocabulary) -> Result<Column<u32>> {
    let merges: Column<u32> = frame.column(Kind::Merges)?;
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

fn read_pairs(frame: &Frame, vocabulary: &Vocabulary, rule: Rule) -> Result<PairTable> {
    let columns = PairColumns {
        buckets: frame.buckets(Kind::Pairs)?,
        bytes: frame.column(Kind::PairsOfBytes)?,
        ids: frame.column(Kind::MergedIds)?,
    };
    let reason = "it names ranks or ids that do not exist";
    PairTable::of_columns(columns, vocabulary, rule)
        .ok_or_else(|| frame.broken(Kind::PairsOfBytes, reason))
}

fn read_borders(frame: &Frame) -> Result<Borders> {
    let borders = Borders::of_column(frame.column(Kind::Borders)?);
    borders.ok_or_else(|| frame.broken(Kind::Borders, "it does not have a power of two of bits"))
}

fn read_marks(frame: &Frame, vocabulary: &Vocabulary) -> Result<Column<u32>> {
    let marks = frame.column(Kind::Marks)?;
    if marks.len() == vocabulary.len() {
        return Ok(marks);
    }
    Err(frame.broken(Kind::Marks, "it is not one number for each id"))
}

/// Each number in groups of 7 bits, the lowest first, one a byte; the highest bit of a byte says that
/// another one follows.
fn write_made(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &number in numbers {
        let mut rest = number;
        while rest >= 0x80 {
            bytes.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        bytes.push(rest.to_le_bytes()[0]);
    }
    bytes
}

/// The numbers in such bytes, at most so many; what is above 64 bits is lost.
pub(crate) fn read_made(bytes: &[u8], most: usize) -> Vec<u64> {
    let groups = bytes.split_inclusive(|byte| byte & 0x80 == 0).take(most);
    let number = |group: &[u8]| {
        group.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7F))
    };
    groups.map(number).collect()
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
