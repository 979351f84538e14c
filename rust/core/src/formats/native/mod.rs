//! The native tokenizer file, `tokenizer.bytepair`, version 5. `docs/formats/native.md` is the
//! specification.
//!
//! A file has a fixed header, a section table, and the sections, each an array aligned to 64 bytes.
//! Some sections hold the four values of the tokenizer; the others hold the lookup tables of
//! encoding in the form that encoding uses. A file is ready to use once it is mapped and checked:
//!
//! 1. The checksum covers the whole file and detects accidental damage. Reading a few megabytes
//!    once takes a fraction of a millisecond.
//! 2. Invariants that the code relies on, such as ids and offsets in range and probe sequences that
//!    end, are checked at loading where one pass over an array suffices, and otherwise at use. A
//!    forged file can give wrong ids, but nothing worse.
//! 3. [`verify`] rebuilds all tables and compares them.
//!
//! Tables are optional: where a file has none, or only of unknown kinds, they are built at loading.

mod container;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::encode::pretoken::MergeTables;
use crate::encode::split_points::SplitPoints;
use crate::error::{Error, Hint, Reason, Result};
use crate::formats;
use crate::machine::array::{Array, FileBytes};
use crate::memory;
use crate::merge::merger;
use crate::merge::pair_table::PairTable;
use crate::pretokenize::UNICODE_VERSION;
use crate::rules::TextRules;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::merges::{Merges, encode_counts};
use crate::vocabulary::{MergeRule, SPACED, Vocabulary};
pub(crate) use container::MAGIC;
use container::{Container, Kind, Writer, number};

/// Whether a file includes tables that can be rebuilt from its other sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tables {
    /// Include them if rebuilding would dominate the time of loading. Small vocabularies rebuild
    /// quickly, and tables would be most of their file.
    #[default]
    With,
    /// Leave them out: a file of a large vocabulary shrinks to a quarter.
    Without,
}

/// Bytes in the file for each merge (a pair and its count) and for each id.
const BYTES_PER_MERGE: usize = 16;
const BYTES_PER_ID: usize = 16;

/// Vocabularies with fewer ids are saved without tables.
const MIN_IDS_WITH_TABLES: usize = 1 << 12;

/// The flags of an added token that is only special. If all are, a file has no section of flags.
const SPECIAL_ONLY: u8 = 1;

fn write_sections(tokenizer: &Tokenizer, tables: bool) -> Result<Vec<u8>> {
    let vocabulary = tokenizer.vocabulary();
    let mut writer = Writer::default();
    let (arena, offsets) = vocabulary.arrays();
    tokenizer.make_tables()?;
    // The sections, then the file that they are copied into.
    memory::check(
        2 * (arena.len()
            + tokenizer.merges().len() * BYTES_PER_MERGE
            + offsets.len() * BYTES_PER_ID),
    )?;
    writer.array(Kind::TokenBytes, arena);
    writer.array(Kind::TokenOffsets, offsets);
    writer.numbers(Kind::SpecialIds, vocabulary.special_tokens().map(|(_, id)| id));
    writer.numbers(Kind::Rule, [rule_number(tokenizer.rule())]);
    let merges = tokenizer.merges().iter();
    writer.numbers(Kind::Merges, merges.flat_map(|(left, right)| [*left, *right]));
    writer.bytes(Kind::Rules, tokenizer.rules().to_bytes());
    writer.bytes(Kind::UnicodeVersion, UNICODE_VERSION.into());
    writer.bytes(Kind::Notes, write_notes(tokenizer.notes()));
    writer.bytes(Kind::MergeCounts, encode_counts(tokenizer.merge_counts()));
    if !vocabulary.twins().is_empty() {
        writer.numbers(Kind::Twins, vocabulary.twins().iter().copied());
    }
    if !vocabulary.shared().is_empty() {
        writer.numbers(Kind::Shared, vocabulary.shared().iter().copied());
    }
    let flags = vocabulary.flags();
    if flags.iter().any(|&flags| flags != SPECIAL_ONLY) {
        writer.bytes(Kind::AddedFlags, flags);
    }
    if tables && tokenizer.rules().symbols.is_none() {
        write_tables(tokenizer, &mut writer)?;
    }
    Ok(writer.finish())
}

fn write_tables(tokenizer: &Tokenizer, writer: &mut Writer) -> Result<()> {
    let (tokens, tokens_probe) = tokenizer.vocabulary().index.array();
    let PairTable { buckets, bytes, ids, .. } = tokenizer.pairs()?;
    let (words, max_probe) = buckets.array();
    let split_points = &tokenizer.encoder().pretokens.split_points()?.bits;
    let sizes = [size_of_val(&**tokens), size_of_val(&**words), size_of_val(&**split_points)];
    memory::check(2 * sizes.iter().sum::<usize>())?;
    writer.table(Kind::Pairs, words, max_probe);
    writer.array(Kind::PairsOfBytes, bytes);
    writer.array(Kind::MergedIds, ids);
    writer.array(Kind::SplitPoints, split_points);
    writer.array(Kind::WholeOnly, tokenizer.encoder().pretokens.whole_only()?);
    writer.table(Kind::Tokens, tokens, tokens_probe);
    Ok(())
}

/// The error for a file that cannot be mapped; it says nothing of what the file contains.
fn unmapped(file: &File, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::OutOfMemory {
        let bytes = file.metadata().map_or(0, |data| data.len());
        return Error::OutOfMemory { bytes: usize::try_from(bytes).unwrap_or(usize::MAX) };
    }
    let text = format!("it cannot be mapped into memory ({error})");
    let reason = Reason::new(text, const { &Hint::new("read it instead") });
    Error::Unreadable { path: "the file".to_owned(), reason }
}

impl Tokenizer {
    /// Load a tokenizer from the bytes of a file, which are copied.
    ///
    /// Fails with [`Error::File`] if the bytes break the format, and with the error of the broken
    /// rule if the contents are not a valid tokenizer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        tokenizer(&Container::open(FileBytes::copy(bytes)?)?, Tables::With)
    }

    /// Load a tokenizer from a file, which is read completely. Fails as
    /// [`from_bytes`](Self::from_bytes) does, or if the file cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path);
        Self::from_bytes(&bytes.map_err(|error| Error::unreadable(path, error.to_string()))?)
    }

    /// Load a tokenizer from a file, which is mapped: all processes that map it share its memory.
    /// Fails as [`from_bytes`](Self::from_bytes) does, and with [`Error::Unreadable`] if the file
    /// cannot be mapped; [`open`](Self::open) reads it.
    ///
    /// # Safety
    ///
    /// While the tokenizer or a clone of it exists, nobody may write to the file or truncate it.
    /// After a write, reads are undefined; reading past a truncated end kills the process with a
    /// signal. The file may be deleted, or replaced by another of the same name.
    #[expect(unsafe_code, reason = "a mapped file can change while it is read")]
    pub unsafe fn map(file: &File) -> Result<Self> {
        // SAFETY: the caller guarantees that the file does not change.
        let bytes = unsafe { FileBytes::map(file) }.map_err(|error| unmapped(file, &error))?;
        let container = Container::open(bytes)?;
        let tokenizer = tokenizer(&container, Tables::With);
        container.release(&SELDOM_READ);
        tokenizer
    }

    /// Save the tokenizer as a native file, which replaces the file of that name at once: it is
    /// written under a temporary name beside it, synced and renamed.
    ///
    /// Fails with [`Error::Unwritable`] if that cannot be done, or if there is not enough memory.
    ///
    /// ```no_run
    /// use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// let vocabulary = Vocabulary::new([(b"a".to_vec(), 0), (b"b".to_vec(), 1)], [])?;
    /// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// tokenizer.save("letters.bytepair")?;
    /// assert_eq!(Tokenizer::open("letters.bytepair")?, tokenizer);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes(Tables::With)?;
        let written = formats::replace_file(path, |file| file.write_all(&bytes));
        written.map_err(|error| Error::unwritable(path, &error))
    }

    /// The bytes of a native file. Equal tokenizers with equal notes give equal bytes. Fails if
    /// there is not enough memory.
    #[doc(hidden)]
    pub fn to_bytes(&self, tables: Tables) -> Result<Vec<u8>> {
        let is_large = self.vocabulary().len() >= MIN_IDS_WITH_TABLES;
        write_sections(self, tables == Tables::With && is_large)
    }
}

/// Sections that encoding never reads, or reads only for long pretokens. The other sections stay
/// resident after the check, so that the first text does not wait for page faults.
const SELDOM_READ: [Kind; 4] =
    [Kind::TokenBytes, Kind::TokenOffsets, Kind::Merges, Kind::SplitPoints];

/// Check that the tables in the bytes of a file equal those rebuilt from its other sections.
///
/// Fails as [`Tokenizer::from_bytes`] does, and with [`Error::File`] at the first table that
/// differs.
pub fn verify(bytes: &[u8]) -> Result<()> {
    let container = Container::open(FileBytes::copy(bytes)?)?;
    let plain = tokenizer(&container, Tables::Without)?;
    let expected = write_sections(&plain, true)?;
    let expected = Container::open(FileBytes::copy(&expected)?)?;
    container.check_tables(&expected)
}

/// Read a tokenizer from the sections of a file; `Without` ignores the tables.
fn tokenizer(container: &Container, tables: Tables) -> Result<Tokenizer> {
    let believed = |kind| tables == Tables::With && container.has(kind);
    let vocabulary = read_vocabulary(container, believed(Kind::Tokens))?;
    if container.bytes(Kind::UnicodeVersion)? != UNICODE_VERSION.as_bytes() {
        let rule = format!("this bytepair splits by Unicode {UNICODE_VERSION} only");
        return Err(container.broken(Kind::UnicodeVersion, &rule));
    }
    let rule = read_rule(container)?;
    let merges = read_merges(container, &vocabulary)?;
    let counts = container.array_if_any(Kind::MergeCounts)?;
    let rules = TextRules::from_bytes(&container.array::<u8>(Kind::Rules)?);
    let rules = rules.ok_or_else(|| {
        container.broken(Kind::Rules, "it is not the normalizer, the pre-tokenizer and so on")
    })?;
    let merges = Merges::from_file(merges, counts);
    // Tokens with names have no tables.
    let believed = |kind| rules.symbols.is_none() && believed(kind);
    let has_pair_tables =
        [Kind::Pairs, Kind::PairsOfBytes, Kind::MergedIds].into_iter().all(believed);
    let pairs = if has_pair_tables {
        Some(read_pairs(container, &vocabulary, rule)?)
    } else if rule == MergeRule::Ranks && rules.symbols.is_none() {
        Some(merger::by_rank(&vocabulary)?)
    } else {
        None
    };
    let split_points =
        believed(Kind::SplitPoints).then(|| read_split_points(container)).transpose()?;
    let whole_only =
        believed(Kind::WholeOnly).then(|| container.array(Kind::WholeOnly)).transpose()?;
    let tables = MergeTables { pairs, split_points, whole_only };
    let tokenizer = Tokenizer::with_tables(vocabulary, rule, rules, merges, tables)?;
    Ok(tokenizer.with_notes(read_notes(container)?))
}

fn read_vocabulary(container: &Container, indexed: bool) -> Result<Vocabulary> {
    let arena: Array<u8> = container.array(Kind::TokenBytes)?;
    let offsets: Array<u32> = container.array(Kind::TokenOffsets)?;
    let special: Array<u32> = container.array(Kind::SpecialIds)?;
    let index = indexed.then(|| container.key_table(Kind::Tokens)).transpose()?;
    let [shared, twins] = [Kind::Shared, Kind::Twins].map(|kind| container.array_if_any(kind));
    let (shared, twins): (Array<u32>, Array<u32>) = (shared?, twins?);
    let flags: Array<u8> = if container.has(Kind::AddedFlags) {
        container.array(Kind::AddedFlags)?
    } else {
        Array::new(vec![SPECIAL_ONLY; special.len()])
    };
    if flags.len() != special.len() || flags.iter().any(|&flags| flags >= 2 * SPACED) {
        let reason = "it is not a byte of known flags for each special token";
        return Err(container.broken(Kind::AddedFlags, reason));
    }
    Vocabulary::from_arrays(arena, offsets, &special, &flags, &shared, &twins, index)
}

fn rule_number(rule: MergeRule) -> u32 {
    match rule {
        MergeRule::Ranks => 0,
        MergeRule::Merges { ignore_merges: false } => 1,
        MergeRule::Merges { ignore_merges: true } => 2,
        MergeRule::Characters => 3,
    }
}

fn read_rule(container: &Container) -> Result<MergeRule> {
    match container.array::<u32>(Kind::Rule)?[..] {
        [0] => Ok(MergeRule::Ranks),
        [number @ (1 | 2)] => Ok(MergeRule::Merges { ignore_merges: number == 2 }),
        [3] => Ok(MergeRule::Characters),
        _ => Err(container.broken(Kind::Rule, "the merge rule is not 0, 1, 2 or 3")),
    }
}

/// The ids of all pairs, end to end.
fn read_merges(container: &Container, vocabulary: &Vocabulary) -> Result<Array<u32>> {
    let merges: Array<u32> = container.array(Kind::Merges)?;
    let exist = all_below(&merges, vocabulary.len());
    if !merges.len().is_multiple_of(2) || !exist {
        return Err(container.broken(Kind::Merges, "the merges are not pairs of ids"));
    }
    Ok(merges)
}

/// Whether all numbers are below a limit. Counting without an early exit is vectorized.
fn all_below(numbers: &[u32], limit: usize) -> bool {
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    numbers.iter().filter(|&&number| number >= limit).count() == 0
}

fn read_pairs(
    container: &Container,
    vocabulary: &Vocabulary,
    rule: MergeRule,
) -> Result<PairTable> {
    let buckets = container.buckets(Kind::Pairs)?;
    let (bytes, ids) = (container.array(Kind::PairsOfBytes)?, container.array(Kind::MergedIds)?);
    let reason = "it names ranks or ids that do not exist";
    PairTable::from_arrays(buckets, bytes, ids, vocabulary, rule)
        .ok_or_else(|| container.broken(Kind::PairsOfBytes, reason))
}

fn read_split_points(container: &Container) -> Result<SplitPoints> {
    let split_points = SplitPoints::from_array(container.array(Kind::SplitPoints)?);
    split_points.ok_or_else(|| {
        container.broken(Kind::SplitPoints, "its number of bits is not a power of two")
    })
}

/// Each key and each value, preceded by its length.
fn write_notes(notes: &BTreeMap<String, String>) -> Vec<u8> {
    let parts = notes.iter().flat_map(|(key, value)| [key, value]);
    parts
        .flat_map(|text| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat())
        .collect()
}

fn read_notes(container: &Container) -> Result<BTreeMap<String, String>> {
    let bytes = container.bytes(Kind::Notes)?;
    let (mut at, mut texts) = (0, Vec::new());
    while at < bytes.len() {
        let text = number(bytes, at, 8)
            .and_then(|length| bytes.get(at + 8..(at + 8).checked_add(length)?))
            .and_then(|text| String::from_utf8(text.to_vec()).ok())
            .ok_or_else(|| container.broken(Kind::Notes, "a note is cut off or not UTF-8"))?;
        at += 8 + text.len();
        texts.push(text);
    }
    let (pairs, rest) = texts.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(container.broken(Kind::Notes, "a key has no value"));
    }
    Ok(pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect())
}
