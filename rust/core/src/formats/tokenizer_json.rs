//! Reads and writes the two tables of a `tokenizer.json`, `model.vocab` and `model.merges`.
//!
//! Reading takes the bytes of a file and returns the tokens with their ids, the merges as pairs of
//! ids, and the byte ranges of both tables, so that Python parses only the small remainder. Writing
//! takes a tokenizer and returns the JSON text of both tables.
//!
//! The reader accepts the common form only. On any other (a duplicate name, a merge whose result is
//! not a token, an id out of range) it returns `None`; the caller then falls back to a slower
//! reader, which gives the same result for every file that this one accepts, and which explains
//! errors.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};
use std::ops::Range;

use foldhash::fast::RandomState;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::Result;
use crate::memory;
use crate::merge::build;
use crate::text::from_utf8;
use crate::vocabulary::{MAX_VOCAB_SIZE, MergeRule, TOKEN, Vocabulary};
use crate::{Pattern, Tokenizer};

/// Upper bounds on memory: reading needs at most `READ` bytes for each byte of the file, and
/// writing at most `WRITTEN` bytes for each byte of the tokens.
const READ: usize = 16;
const WRITTEN: usize = 4;

/// Ordinary tokens with their ids, and merges as pairs of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonTables {
    tokens: Vec<(Vec<u8>, u32)>,
    merges: Vec<(u32, u32)>,
}

/// Ids of ordinary tokens, by name.
type IdsByName<'a> = HashMap<&'a str, u32, RandomState>;

/// The tables of a file, and what the caller needs to read the rest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedJson {
    /// The tables.
    pub tables: JsonTables,
    /// Added tokens that `model.vocab` contains too, with their ids.
    pub added: Vec<(String, u32)>,
    /// Number of entries in `model.vocab`.
    pub size: usize,
    /// Byte ranges of the values of `model.vocab` and `model.merges`, in file order.
    pub ranges: [Range<usize>; 2],
}

impl JsonTables {
    /// Parse the tables of a `tokenizer.json`; `None` if they do not have the common form.
    ///
    /// Fails if there is not enough memory.
    pub fn parse(data: &[u8]) -> Result<Option<ParsedJson>> {
        memory::check(data.len().saturating_mul(READ))?;
        Ok(Self::parse_common(data))
    }

    fn parse_common(data: &[u8]) -> Option<ParsedJson> {
        let text = from_utf8(data).ok()?;
        let Object(document) = serde_json::from_str(text).ok()?;
        let Object(model) = serde_json::from_str(only(&document, "model")?.get()).ok()?;
        let (vocabulary, merges) = (only(&model, "vocab")?, only(&model, "merges")?);
        let added = match document.iter().find(|(name, _)| name.0 == "added_tokens") {
            Some((_, listed)) => added(listed)?,
            None => Vec::new(),
        };
        let Object::<u32>(entries) = serde_json::from_str(vocabulary.get()).ok()?;
        let mut ids: IdsByName<'_> = entries.iter().map(|(name, id)| (&*name.0, *id)).collect();
        if ids.len() < entries.len() || !ids_are_valid(&entries) {
            return None;
        }
        let special = |name: &String| Some((name.clone(), ids.remove(name.as_str())?));
        let added: Vec<(String, u32)> = added.iter().filter_map(special).collect();
        let mut ranges = [vocabulary, merges].map(|value| range(text, value.get()));
        ranges.sort_by_key(|range| range.start);
        Some(ParsedJson {
            tables: Self { tokens: tokens(&entries, &added)?, merges: pairs(merges.get(), &ids)? },
            size: entries.len(),
            added,
            ranges,
        })
    }

    /// Build a tokenizer. If `ranks` is set and the merges are [equivalent to the rule of
    /// ranks](Self::is_rule_of_ranks), the tokenizer uses that rule, else the rule of merges.
    pub fn tokenizer(
        &self,
        special: Vec<(String, u32)>,
        pattern: Pattern,
        ranks: bool,
        ignore_merges: bool,
    ) -> Result<Tokenizer> {
        memory::check(self.tokens.iter().map(|(token, _)| token.len() + TOKEN).sum())?;
        let vocabulary = Vocabulary::new(self.tokens.iter().cloned(), special)?;
        if ranks && self.is_rule_of_ranks(&vocabulary, ignore_merges)? {
            Tokenizer::from_ranks(vocabulary, pattern)
        } else {
            Tokenizer::from_merges(vocabulary, memory::copy(&self.merges)?, ignore_merges, pattern)
        }
    }

    /// Whether the merges are proved to give the ids of the rule of ranks for every text.
    ///
    /// The list must [contain the pairs of that rule](holds_pairs_of_ranks). The rule of ranks also
    /// turns a pretoken that is a token into that token, as `ignore_merges` does. So without
    /// `ignore_merges`, every token of two or more bytes must have a pair: then merging turns its
    /// bytes into the token.
    fn is_rule_of_ranks(&self, vocabulary: &Vocabulary, ignore_merges: bool) -> Result<bool> {
        let longer = self.tokens.iter().filter(|(token, _)| token.len() > 1).count();
        let needed = if ignore_merges { 0 } else { longer };
        if self.merges.len() < needed {
            return Ok(false);
        }
        let pairs = pairs_of_ranks(vocabulary)?;
        Ok(pairs.len() >= needed && holds_pairs_of_ranks(&self.merges, &pairs))
    }

    /// Whether all 256 bytes are tokens.
    pub fn has_all_bytes(&self) -> bool {
        self.tokens.iter().filter(|(token, _)| token.len() == 1).count() == 256
    }
}

/// The rule of ranks as a merge list: for each token, in id order, the pair that merges into it.
/// Tokens that no merge produces are skipped.
fn pairs_of_ranks(vocabulary: &Vocabulary) -> Result<Vec<(u32, u32)>> {
    Ok(build::by_rank(vocabulary)?.in_order())
}

/// Whether a merge list merges the same adjacent pairs as the rule of ranks in every text.
///
/// `pairs` is the merge list of the rule of ranks. It suffices that `listed` contains all of
/// `pairs` in the same order; additional merges are harmless, because they never apply: under the
/// rule of ranks, no other adjacent pair joins to the bytes of a token ([`build`] has the proof).
/// The merges inside those bytes are the merges of the token encoded alone, and the last of them is
/// the one pair of that token. So both rules choose from the same adjacent pairs in the same order
/// at every step.
fn holds_pairs_of_ranks(listed: &[(u32, u32)], pairs: &[(u32, u32)]) -> bool {
    let mut rest = pairs.iter().peekable();
    for pair in listed {
        rest.next_if_eq(&pair);
    }
    rest.next().is_none()
}

/// The value of `name`, if it occurs exactly once.
fn only<'a>(object: &[(Name<'a>, &'a RawValue)], name: &str) -> Option<&'a RawValue> {
    let mut found = object.iter().filter(|(other, _)| other.0 == name);
    let value = found.next()?.1;
    found.next().is_none().then_some(value)
}

/// The contents of the added tokens.
fn added(listed: &RawValue) -> Option<Vec<String>> {
    let tokens: Option<Vec<Object<'_>>> = serde_json::from_str(listed.get()).ok()?;
    let content = |token: &Object<'_>| serde_json::from_str(only(&token.0, "content")?.get()).ok();
    tokens.unwrap_or_default().iter().map(content).collect()
}

/// The byte range of `part` in `text`.
fn range(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// Whether all ids are distinct and in range.
fn ids_are_valid(entries: &[(Name<'_>, u32)]) -> bool {
    let mut ids: Vec<u32> = entries.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    let in_range = ids.last().is_none_or(|&last| (last as usize) < MAX_VOCAB_SIZE - 1);
    in_range && ids.windows(2).all(|pair| pair[0] < pair[1])
}

/// The bytes of the ordinary tokens.
fn tokens(entries: &[(Name<'_>, u32)], added: &[(String, u32)]) -> Option<Vec<(Vec<u8>, u32)>> {
    let table = bytes_of_characters();
    let added: HashSet<u32> = added.iter().map(|(_, id)| *id).collect();
    let ordinary = entries.iter().filter(|(_, id)| !added.contains(id));
    ordinary
        .map(|(name, id)| {
            let byte = |c: char| table.get(c as usize).copied().flatten();
            let token: Option<Vec<u8>> = name.0.chars().map(byte).collect();
            Some((token.filter(|token| !token.is_empty())?, *id))
        })
        .collect()
}

/// The merges as pairs of ids. Both parts and the result must be ordinary tokens, and no pair may
/// occur twice.
fn pairs(merges: &str, ids: &IdsByName<'_>) -> Option<Vec<(u32, u32)>> {
    let MergeList(listed) = serde_json::from_str(merges).ok()?;
    let mut seen = HashSet::with_capacity_and_hasher(listed.len(), RandomState::default());
    let mut joined = String::new();
    let pairs = listed.iter().map(|JsonMerge(left, right)| {
        let pair = (*ids.get(&*left.0)?, *ids.get(&*right.0)?);
        joined.clear();
        joined.extend([&*left.0, &*right.0]);
        (ids.contains_key(joined.as_str()) && seen.insert(pair)).then_some(pair)
    });
    pairs.collect()
}

// ---------------------------------------------------------------------------- writing

/// The JSON text of `model.vocab` and `model.merges`, one entry per line.
///
/// `added` contains vocabulary entries whose names are written unchanged, not byte by byte.
///
/// Fails if there is not enough memory.
pub fn texts(tokenizer: &Tokenizer, added: &[(String, u32)]) -> Result<(String, String)> {
    let vocabulary = tokenizer.vocabulary();
    let tokens = vocabulary.arrays().0.len() + vocabulary.len() * TOKEN;
    memory::check(tokens.saturating_mul(WRITTEN))?;
    let characters = characters_of_bytes();
    let mut names = vec![String::new(); vocabulary.len()];
    let mut entries: Vec<(u32, String)> =
        added.iter().map(|(name, id)| (*id, quote(name.chars()))).collect();
    for (token, id) in vocabulary.ordinary_tokens() {
        let name = quote(token.iter().map(|&byte| characters[usize::from(byte)]));
        entries.push((id, name.clone()));
        names[id as usize] = name;
    }
    entries.sort_unstable();
    let entries = entries.iter().map(|(id, name)| [name, ": ", &id.to_string()].concat());
    let pairs = match tokenizer.rule() {
        MergeRule::Ranks => Cow::Owned(pairs_of_ranks(vocabulary)?),
        MergeRule::Merges { .. } | MergeRule::Characters => Cow::Borrowed(tokenizer.merges()),
    };
    Ok((block("{", entries, "}"), merges(&pairs, &names)))
}

/// The merges as strings with a space, the form that every version of `tokenizers` reads.
///
/// `tokenizers` skips a string that starts with `#version`, the first line of a `merges.txt`; a
/// list with such a merge is written as pairs instead.
fn merges(pairs: &[(u32, u32)], names: &[String]) -> String {
    let names =
        pairs.iter().map(|&(left, right)| [&*names[left as usize], &*names[right as usize]]);
    if names.clone().any(|[left, _]| left.starts_with("\"#version")) {
        return block("[", names.map(|[left, right]| format!("[{left}, {right}]")), "]");
    }
    let joined = |[left, right]: [&str; 2]| format!("{} {}", &left[..left.len() - 1], &right[1..]);
    block("[", names.map(joined), "]")
}

/// Lines between brackets, indented as a value of `model`.
fn block(open: &str, lines: impl Iterator<Item = String>, close: &str) -> String {
    let mut text = open.to_owned();
    for (number, line) in lines.enumerate() {
        text.push_str(if number == 0 { "\n      " } else { ",\n      " });
        text.push_str(&line);
    }
    if text.len() > open.len() {
        text.push_str("\n    ");
    }
    text.push_str(close);
    text
}

/// A JSON string.
fn quote(text: impl Iterator<Item = char>) -> String {
    let mut quoted = String::from('"');
    for c in text {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\0'..' ' => _ = write!(quoted, "\\u{:04x}", u32::from(c)),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

// ---------------------------------------------------------------------------- characters

/// GPT-2's character for each byte: printable Latin-1 characters are unchanged, the other bytes map
/// to U+0100, U+0101, … in order.
fn characters_of_bytes() -> [char; 256] {
    let mut others = '\u{100}'..;
    std::array::from_fn(|byte| {
        let printable = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let own = u8::try_from(byte).map_or(' ', char::from);
        if printable { own } else { others.next().unwrap_or(own) }
    })
}

/// The inverse of [`characters_of_bytes`].
fn bytes_of_characters() -> Vec<Option<u8>> {
    let mut bytes = vec![None; 0x144];
    for (byte, c) in (0..=255).zip(characters_of_bytes()) {
        bytes[c as usize] = Some(byte);
    }
    bytes
}

// ---------------------------------------------------------------------------- JSON

/// A string, borrowed from the file unless it contains escapes.
struct Name<'a>(Cow<'a, str>);

/// The entries of an object, with unparsed values or, in `model.vocab`, ids.
struct Object<'a, V = &'a RawValue>(Vec<(Name<'a>, V)>);

/// One merge, written as a pair or as a string with a space.
struct JsonMerge<'a>(Name<'a>, Name<'a>);

/// The entries of `model.merges`.
struct MergeList<'a>(Vec<JsonMerge<'a>>);

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(text.to_owned())))
    }
}

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_str(NameVisitor)
    }
}

/// Collects all entries of an object.
struct EntriesVisitor<V>(std::marker::PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for EntriesVisitor<V> {
    type Value = Vec<(Name<'de>, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Object<'de, V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_map(EntriesVisitor(std::marker::PhantomData)).map(Self)
    }
}

struct JsonMergeVisitor;

impl<'de> Visitor<'de> for JsonMergeVisitor {
    type Value = JsonMerge<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two strings")
    }

    fn visit_borrowed_str<E: Error>(
        self,
        text: &'de str,
    ) -> std::result::Result<JsonMerge<'de>, E> {
        let (left, right) = text.split_once(' ').ok_or_else(|| E::custom("no space"))?;
        Ok(JsonMerge(Name(Cow::Borrowed(left)), Name(Cow::Borrowed(right))))
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<JsonMerge<'de>, E> {
        let (left, right) = text.split_once(' ').ok_or_else(|| E::custom("no space"))?;
        Ok(JsonMerge(Name(Cow::Owned(left.to_owned())), Name(Cow::Owned(right.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(
        self,
        mut seq: A,
    ) -> std::result::Result<JsonMerge<'de>, A::Error> {
        match (seq.next_element()?, seq.next_element()?, seq.next_element::<&RawValue>()?) {
            (Some(left), Some(right), None) => Ok(JsonMerge(left, right)),
            _ => Err(A::Error::custom("not two")),
        }
    }
}

impl<'de> Deserialize<'de> for JsonMerge<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_any(JsonMergeVisitor)
    }
}

impl<'de> Deserialize<'de> for MergeList<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Vec::deserialize(from).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer(merges: Option<Vec<(u32, u32)>>) -> Tokenizer {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let more = [(b"ab".to_vec(), 256), (b" \"".to_vec(), 257), (b"ab \"".to_vec(), 300)];
        let special = [("<s>\n".to_owned(), 299)];
        let vocabulary = Vocabulary::new(bytes.chain(more), special).unwrap();
        let pattern = Pattern::new("gpt2").unwrap();
        match merges {
            None => Tokenizer::from_ranks(vocabulary, pattern).unwrap(),
            Some(merges) => Tokenizer::from_merges(vocabulary, merges, true, pattern).unwrap(),
        }
    }

    fn file(tokenizer: &Tokenizer) -> String {
        let special = tokenizer.vocabulary().special_tokens();
        let (vocabulary, merges) = texts(tokenizer, special).unwrap();
        let added = r#"[{"content": "<s>\u000a", "id": 299}]"#;
        format!(
            r#"{{"added_tokens": {added}, "model": {{"vocab": {vocabulary}, "merges": {merges}}}}}"#
        )
    }

    #[test]
    fn written_tables_are_read_back() {
        let listed = vec![(97, 98), (32, 34), (256, 257)];
        for merges in [None, Some(listed)] {
            let ranks = merges.is_none();
            let tokenizer = tokenizer(merges);
            let found = JsonTables::parse(file(&tokenizer).as_bytes()).unwrap().unwrap();
            assert_eq!((found.size, found.added), (260, vec![("<s>\n".to_owned(), 299)]));
            assert!(found.tables.has_all_bytes());
            let special = tokenizer.vocabulary().special_tokens().to_vec();
            let pattern = Pattern::new("gpt2").unwrap();
            assert!(found.tables.tokenizer(special, pattern, ranks, true).unwrap() == tokenizer);
        }
    }

    #[test]
    fn a_list_is_the_rule_of_ranks_if_it_has_its_pairs_in_order() {
        let tokenizer = tokenizer(None);
        let pairs = pairs_of_ranks(tokenizer.vocabulary()).unwrap();
        assert_eq!(pairs, [(97, 98), (32, 34), (256, 257)]);
        for (listed, same) in [
            (vec![(97, 98), (32, 34), (256, 257)], true),
            (vec![(97, 98), (32, 34), (97, 258), (256, 257), (258, 34)], true),
            (vec![(258, 34), (97, 98), (32, 34), (256, 257)], true),
            (vec![(32, 34), (97, 98), (256, 257)], false),
            (vec![(97, 98), (32, 34), (258, 34)], false),
            (vec![], false),
        ] {
            assert_eq!(holds_pairs_of_ranks(&listed, &pairs), same, "{listed:?}");
        }
    }

    #[test]
    fn without_ignore_merges_every_token_needs_a_merge() {
        let bytes: Vec<_> = (0..=255).map(|byte| (vec![byte], u32::from(byte))).collect();
        for (more, ignore_merges, same) in [
            (&[(b"ab".to_vec(), 256)][..], false, true),
            (&[(b"ab".to_vec(), 256), (b"xyz".to_vec(), 257)], false, false),
            (&[(b"ab".to_vec(), 256), (b"xyz".to_vec(), 257)], true, true),
        ] {
            let tokens = [&bytes, more].concat();
            let tables = JsonTables { tokens, merges: vec![(97, 98), (97, 98)] };
            let pattern = Pattern::new("gpt2").unwrap();
            let made = tables.tokenizer(Vec::new(), pattern, true, ignore_merges).unwrap();
            assert_eq!(made.rule() == MergeRule::Ranks, same, "{more:?} {ignore_merges}");
        }
    }

    #[test]
    fn the_ranges_are_those_of_the_tables() {
        let file = file(&tokenizer(None));
        let [first, last] = JsonTables::parse(file.as_bytes()).unwrap().unwrap().ranges;
        assert!(file[first.clone()].starts_with("{\n      \"\u{100}\": 0"), "{}", &file[first]);
        assert!(
            file[last.clone()].starts_with("[\n      \"a b\",\n      \"\u{120} \\\"\""),
            "{}",
            &file[last]
        );
    }

    #[test]
    fn a_merge_that_looks_like_a_comment_is_written_as_a_pair() {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let more = [(b"#version".to_vec(), 256), (b"#versions".to_vec(), 257)];
        let vocabulary = Vocabulary::new(bytes.chain(more), []).unwrap();
        let (merges, pattern) = (vec![(256, 115)], Pattern::new("gpt2").unwrap());
        let tokenizer = Tokenizer::from_merges(vocabulary, merges, false, pattern).unwrap();
        assert_eq!(texts(&tokenizer, &[]).unwrap().1, "[\n      [\"#version\", \"s\"]\n    ]");
    }

    #[test]
    fn uncommon_forms_are_not_parsed() {
        let usual = r#"{"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}"#;
        assert!(JsonTables::parse(usual.as_bytes()).unwrap().is_some());
        for (part, other) in [
            (r#""b": 1"#, r#""a": 1"#),
            (r#""b": 1"#, r#""b": 0"#),
            (r#""b": 1"#, r#""b": -1"#),
            (r#""b": 1"#, r#""b": 1.0"#),
            (r#""b": 1"#, r#""b": 3000000"#),
            (r#""b": 1"#, r#""": 1"#),
            (r#""b": 1"#, r#""\u2581": 1"#),
            (r#""b": 1"#, r#""\ud800": 1"#),
            (r#"["a b"]"#, r#"["a b", "a b"]"#),
            (r#"["a b"]"#, r#"["ab"]"#),
            (r#"["a b"]"#, r#"["a b c"]"#),
            (r#"["a b"]"#, r#"[["a", "b", "a"]]"#),
            (r#"["a b"]"#, r#"["b a"]"#),
            (r#"["a b"]"#, "null"),
            (r#""merges""#, r#""vocab""#),
            ("}}", "}"),
        ] {
            assert_eq!(
                JsonTables::parse(usual.replace(part, other).as_bytes()).unwrap(),
                None,
                "{other}"
            );
        }
    }
}
