//! The native tokenizer file: `tokenizer.bytepair`, version 1. `docs/formats.md` is the
//! specification; this file follows it.
//!
//! A fixed header, a table of sections, then the sections, each an array that starts at a multiple
//! of 64 bytes. Every number is little-endian. A reader checks everything before it uses anything.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::pretokenize::{Pattern, UNICODE_VERSION};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{MergeRule, Vocabulary};

const MAGIC: &[u8; 8] = b"BYTEPAIR";
const VERSION: u32 = 1;
const HEADER: usize = 64;
const ENTRY: usize = 24;
const ALIGN: usize = 64;
/// More sections than a reader will ever look at.
const MAX_SECTIONS: usize = 64;

/// What a section holds. Readers pass over kinds that they do not know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    TokenBytes = 1,
    TokenOffsets = 2,
    SpecialIds = 3,
    Rule = 4,
    Merges = 5,
    Pattern = 6,
    UnicodeVersion = 7,
    Notes = 8,
    /// May be missing.
    MergesMade = 9,
}

/// The file of a tokenizer.
pub fn write(tokenizer: &Tokenizer) -> Vec<u8> {
    let vocabulary = tokenizer.vocabulary();
    let (arena, offsets) = vocabulary.arrays();
    let special = vocabulary.special_tokens().iter().map(|(_, id)| *id);
    let merges = tokenizer.merges().iter().flat_map(|(left, right)| [*left, *right]);
    let rule = match tokenizer.rule() {
        MergeRule::Ranks => 0,
        MergeRule::Merges { ignore_merges: false, .. } => 1,
        MergeRule::Merges { ignore_merges: true, .. } => 2,
    };
    assemble(&[
        (Kind::TokenBytes, arena.to_vec()),
        (Kind::TokenOffsets, words(offsets.iter().copied())),
        (Kind::SpecialIds, words(special)),
        (Kind::Rule, words([rule])),
        (Kind::Merges, words(merges)),
        (Kind::Pattern, tokenizer.pattern().regex().into()),
        (Kind::UnicodeVersion, UNICODE_VERSION.into()),
        (Kind::Notes, write_notes(tokenizer.notes())),
        (
            Kind::MergesMade,
            tokenizer.merges_made().iter().flat_map(|count| count.to_le_bytes()).collect(),
        ),
    ])
}

/// The tokenizer in a file.
///
/// Fails with [`Error::File`] where the bytes break the format, and with the error of the broken
/// rule where what they say is no tokenizer.
pub fn read(bytes: &[u8]) -> Result<Tokenizer> {
    let sections = Sections::open(bytes)?;
    let arena = sections.bytes(Kind::TokenBytes)?.to_vec();
    let offsets = sections.words(Kind::TokenOffsets)?;
    let special = read_special(&sections, &arena, &offsets)?;
    let vocabulary = Vocabulary::from_arrays(arena, offsets, special)?;
    let pattern = Pattern::new(sections.text(Kind::Pattern)?);
    if sections.text(Kind::UnicodeVersion)? != UNICODE_VERSION {
        let rule = format!("this bytepair splits by Unicode {UNICODE_VERSION} only");
        return Err(sections.broken(Kind::UnicodeVersion, &rule));
    }
    let merges = read_merges(&sections, &vocabulary)?;
    let notes = read_notes(&sections)?;
    let merges_made = read_merges_made(&sections, merges.len())?;
    let rule = sections.words(Kind::Rule)?;
    let tokenizer = match rule[..] {
        [0] => Tokenizer::new(vocabulary, MergeRule::Ranks, pattern)?.with_merges(merges),
        [n @ (1 | 2)] => {
            let rule = MergeRule::Merges { merges, ignore_merges: n == 2 };
            Tokenizer::new(vocabulary, rule, pattern)?
        }
        _ => return Err(sections.broken(Kind::Rule, "the merge rule is not 0, 1 or 2")),
    };
    Ok(tokenizer.with_notes(notes).with_merges_made(merges_made))
}

fn read_special(sections: &Sections, arena: &[u8], offsets: &[u32]) -> Result<Vec<(String, u32)>> {
    let name = |id: u32| {
        let id = id as usize;
        let span = *offsets.get(id)? as usize..*offsets.get(id + 1)? as usize;
        Some(std::str::from_utf8(arena.get(span)?).ok()?.to_owned())
    };
    let rule = "a special token has no name in UTF-8 at its id";
    let ids = sections.words(Kind::SpecialIds)?.into_iter();
    ids.map(|id| Ok((name(id).ok_or_else(|| sections.broken(Kind::SpecialIds, rule))?, id)))
        .collect()
}

fn read_merges(sections: &Sections, vocabulary: &Vocabulary) -> Result<Vec<(u32, u32)>> {
    let flat = sections.words(Kind::Merges)?;
    let (pairs, rest) = flat.as_chunks::<2>();
    let exists = |id: &u32| vocabulary.bytes(*id).is_some();
    if !rest.is_empty() || !flat.iter().all(exists) {
        return Err(sections.broken(Kind::Merges, "the merges are not pairs of ids of tokens"));
    }
    Ok(pairs.iter().map(|&[left, right]| (left, right)).collect())
}

/// How often the merges were made, if that is there: no more numbers than there are merges.
fn read_merges_made(sections: &Sections, merges: usize) -> Result<Vec<u64>> {
    if sections.table.iter().all(|(kind, ..)| *kind != Kind::MergesMade as u32) {
        return Ok(Vec::new());
    }
    let (counts, rest) = sections.bytes(Kind::MergesMade)?.as_chunks::<8>();
    if !rest.is_empty() || counts.len() > merges {
        return Err(sections.broken(Kind::MergesMade, "it is not one number for each merge"));
    }
    Ok(counts.iter().map(|&count| u64::from_le_bytes(count)).collect())
}

/// Sections with their kinds, laid out behind the header and the table.
fn assemble(sections: &[(Kind, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0; HEADER + ENTRY * sections.len()];
    for (index, (kind, content)) in sections.iter().enumerate() {
        file.resize(file.len().next_multiple_of(ALIGN), 0);
        let entry = HEADER + ENTRY * index;
        put(&mut file, entry, &(*kind as u32).to_le_bytes());
        let (start, length) = (file.len() as u64, content.len() as u64);
        put(&mut file, entry + 8, &start.to_le_bytes());
        put(&mut file, entry + 16, &length.to_le_bytes());
        file.extend_from_slice(content);
    }
    put(&mut file, 0, MAGIC);
    put(&mut file, 8, &VERSION.to_le_bytes());
    let count = u32::try_from(sections.len()).expect("a handful of sections");
    put(&mut file, 12, &count.to_le_bytes());
    let length = file.len() as u64;
    put(&mut file, 16, &length.to_le_bytes());
    let checksum = crc32fast::hash(&file);
    put(&mut file, 24, &checksum.to_le_bytes());
    file
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

fn words(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// The sections of a file whose frame is whole.
struct Sections<'a> {
    file: &'a [u8],
    /// Kind, start and end of each.
    table: Vec<(u32, usize, usize)>,
}

impl<'a> Sections<'a> {
    fn open(file: &'a [u8]) -> Result<Self> {
        let fail = |at, reason: &str| Err(Error::File { at, reason: reason.to_owned() });
        if file.get(..8) != Some(&MAGIC[..]) {
            return fail(0, "it does not start with BYTEPAIR");
        }
        if file.len() < HEADER {
            return fail(file.len(), "the header is cut off");
        }
        match number(file, 8, 4) {
            Some(1) => (),
            _ => return fail(8, "its version is not 1; a newer bytepair may read it"),
        }
        if number(file, 16, 8) != Some(file.len()) {
            return fail(16, "the file has another length than its header says: it is cut off");
        }
        let mut unsigned = crc32fast::Hasher::new();
        unsigned.update(&file[..24]);
        unsigned.update(&[0; 4]);
        unsigned.update(&file[28..]);
        if number(file, 24, 4) != usize::try_from(unsigned.finalize()).ok() {
            return fail(24, "the checksum does not match: the file is damaged");
        }
        let count = number(file, 12, 4).unwrap_or(usize::MAX);
        if count > MAX_SECTIONS || HEADER + ENTRY * count > file.len() {
            return fail(12, "the table of sections does not fit the file");
        }
        let table = (0..count).map(|index| section(file, HEADER + ENTRY * index));
        Ok(Self { file, table: table.collect::<Result<_>>()? })
    }

    fn find(&self, kind: Kind) -> Result<(usize, usize)> {
        let mut found = self.table.iter().filter(|(number, ..)| *number == kind as u32);
        if let (Some(&(_, start, end)), None) = (found.next(), found.next()) {
            Ok((start, end))
        } else {
            let reason = format!("section {} is not there exactly once", kind as u32);
            Err(Error::File { at: HEADER, reason })
        }
    }

    fn bytes(&self, kind: Kind) -> Result<&'a [u8]> {
        let (start, end) = self.find(kind)?;
        Ok(&self.file[start..end])
    }

    fn words(&self, kind: Kind) -> Result<Vec<u32>> {
        let (words, rest) = self.bytes(kind)?.as_chunks::<4>();
        if rest.is_empty() {
            Ok(words.iter().map(|&word| u32::from_le_bytes(word)).collect())
        } else {
            Err(self.broken(kind, "its length is not a multiple of 4"))
        }
    }

    fn text(&self, kind: Kind) -> Result<&'a str> {
        std::str::from_utf8(self.bytes(kind)?).map_err(|_| self.broken(kind, "it is not UTF-8"))
    }

    fn broken(&self, kind: Kind, reason: &str) -> Error {
        let at = self.find(kind).map_or(0, |(start, _)| start);
        Error::File { at, reason: format!("section {}: {reason}", kind as u32) }
    }
}

/// The entry at `at` of the table, with a span inside the file.
fn section(file: &[u8], at: usize) -> Result<(u32, usize, usize)> {
    let fits = || {
        let kind = u32::try_from(number(file, at, 4)?).ok()?;
        let start = number(file, at + 8, 8)?;
        let end = start.checked_add(number(file, at + 16, 8)?)?;
        (start % ALIGN == 0 && end <= file.len()).then_some((kind, start, end))
    };
    fits().ok_or_else(|| Error::File { at, reason: "a section lies outside the file".to_owned() })
}

/// The little-endian number of `width` bytes at `at`, where it exists and fits.
fn number(file: &[u8], at: usize, width: usize) -> Option<usize> {
    let mut word = [0; 8];
    word[..width].copy_from_slice(file.get(at..at.checked_add(width)?)?);
    usize::try_from(u64::from_le_bytes(word)).ok()
}

/// Each key and each value with its length before it.
fn write_notes(notes: &BTreeMap<String, String>) -> Vec<u8> {
    let parts = notes.iter().flat_map(|(key, value)| [key, value]);
    parts
        .flat_map(|text| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat())
        .collect()
}

fn read_notes(sections: &Sections) -> Result<BTreeMap<String, String>> {
    let bytes = sections.bytes(Kind::Notes)?;
    let (mut at, mut texts) = (0, Vec::new());
    while at < bytes.len() {
        let text = number(bytes, at, 8)
            .and_then(|length| bytes.get(at + 8..(at + 8).checked_add(length)?))
            .and_then(|text| String::from_utf8(text.to_vec()).ok())
            .ok_or_else(|| sections.broken(Kind::Notes, "a note is cut off or not UTF-8"))?;
        at += 8 + text.len();
        texts.push(text);
    }
    let (pairs, rest) = texts.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(sections.broken(Kind::Notes, "a key has no value"));
    }
    Ok(pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer() -> Tokenizer {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let tokens = bytes.chain([(b"ab".to_vec(), 256), (b"abc".to_vec(), 257)]);
        let vocabulary = Vocabulary::new(tokens, [("<s>".to_owned(), 260)]).unwrap();
        let notes = BTreeMap::from([("name".to_owned(), "test".to_owned())]);
        Tokenizer::new(vocabulary, MergeRule::Ranks, Pattern::new("gpt2"))
            .unwrap()
            .with_notes(notes)
    }

    #[test]
    fn what_is_written_is_read() {
        let ranks = tokenizer();
        for rule in [
            MergeRule::Ranks,
            MergeRule::Merges { merges: ranks.merges().to_vec(), ignore_merges: false },
            MergeRule::Merges { merges: ranks.merges().to_vec(), ignore_merges: true },
        ] {
            let pattern = ranks.pattern().clone();
            let one = Tokenizer::new(ranks.vocabulary().clone(), rule, pattern).unwrap();
            let one = one.with_notes(ranks.notes().clone());
            let two = read(&write(&one)).unwrap();
            assert!(one == two);
            assert_eq!(one.notes(), two.notes());
            assert_eq!(one.merges(), two.merges());
            assert_eq!(one.fingerprint(), two.fingerprint());
        }
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed() {
        let file = write(&tokenizer());
        for end in 0..file.len() {
            assert!(read(&file[..end]).is_err(), "cut at {end}");
        }
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&damaged).is_err(), "bit {bit}");
        }
    }

    /// Damage with a right checksum must break a rule of its own, or leave a valid tokenizer; it
    /// never panics.
    #[test]
    fn damage_behind_a_right_checksum_never_panics() {
        let file = write(&tokenizer());
        for at in (8..file.len()).filter(|at| !(24..28).contains(at)) {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut damaged = file.clone();
                damaged[at] = value;
                put(&mut damaged, 24, &[0; 4]);
                let checksum = crc32fast::hash(&damaged);
                put(&mut damaged, 24, &checksum.to_le_bytes());
                let _either = read(&damaged);
            }
        }
    }
}
