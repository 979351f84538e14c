//! The two tables of a model, `vocab` and `merges`, which are most of a file.
//!
//! Reading takes the JSON text of a table and returns its entries, whose names are borrowed from
//! the text.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use serde_json::value::RawValue;

use super::json::{Name, Object, check_names, invalid, parse, unsupported};
use crate::error::Result;
use crate::memory;
use crate::vocabulary::MAX_VOCAB_SIZE;

/// The place of the vocabulary and of the merges in a file.
pub(super) const VOCABULARY: &str = "model.vocab";
pub(super) const MERGES: &str = "model.merges";

/// The entries of a vocabulary, in the order of the file.
pub(super) type Entries<'a> = Vec<(Name<'a>, u32)>;

/// Ids by name.
pub(super) type IdsByName<'a> = HashMap<&'a str, u32, RandomState>;

/// The ids of the two parts of a merge, and of its result.
pub(super) type MergeIds = [u32; 3];

/// The entries of `model.vocab`.
pub(super) fn vocabulary(table: &RawValue) -> Result<Entries<'_>> {
    let entries: std::result::Result<Object<'_, u32>, _> = serde_json::from_str(table.get());
    let Ok(Object(entries)) = entries else { return Err(wrong_entry(table)) };
    let largest = MAX_VOCAB_SIZE - 2;
    if let Some((name, id)) = entries.iter().find(|(_, id)| *id as usize > largest) {
        let place = format!("{VOCABULARY}[{:?}]", name.0);
        return Err(invalid(place, format!("id {id} is not in 0 … {largest}")));
    }
    check_ids(&entries)?;
    Ok(entries)
}

/// The first entry that is not a name with an id.
fn wrong_entry(table: &RawValue) -> crate::Error {
    let entries: Object<'_, &RawValue> = match parse(table.get(), VOCABULARY) {
        Ok(entries) => entries,
        Err(error) => return error,
    };
    let is_wrong = |(_, id): &&(Name<'_>, &RawValue)| id.get().parse::<u32>().is_err();
    let Some((name, id)) = entries.0.iter().find(is_wrong) else {
        return invalid(VOCABULARY, "expected names with ids");
    };
    let reason = format!("expected a number in 0 … {}, not {id}", MAX_VOCAB_SIZE - 2);
    invalid(format!("{VOCABULARY}[{:?}]", name.0), reason)
}

/// Fails if two names have the same id.
fn check_ids(entries: &Entries<'_>) -> Result<()> {
    let mut ids: Vec<(u32, usize)> =
        entries.iter().enumerate().map(|(at, (_, id))| (*id, at)).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let [first, second] = [pair[0].1, pair[1].1].map(|at| &*entries[at].0.0);
            let reason = format!("{first:?} also has the id {}", pair[0].0);
            Err(invalid(format!("{VOCABULARY}[{second:?}]"), reason))
        }
        None => Ok(()),
    }
}

/// The ids by name. Fails if a name occurs twice.
pub(super) fn by_name<'a>(entries: &'a Entries<'_>) -> Result<IdsByName<'a>> {
    let ids: IdsByName<'_> = entries.iter().map(|(name, id)| (&*name.0, *id)).collect();
    if ids.len() < entries.len() {
        check_names(entries, VOCABULARY)?;
    }
    Ok(ids)
}

/// The entries of `model.merges` as ids. Of a pair that occurs twice, the last one counts.
///
/// All are pairs, or all are texts with a space, as `tokenizers` reads them; of texts, it skips the
/// first line of a `merges.txt`. `prefix` is what the right part of a merge loses. Fails if a part or
/// the result is not in the vocabulary.
pub(super) fn merges(table: &RawValue, ids: &IdsByName<'_>, prefix: &str) -> Result<Vec<MergeIds>> {
    let mut merges: Vec<MergeIds> = Vec::new();
    let mut joined = String::new();
    let mut add = |number: usize, left: &str, right: &str| {
        let place = || format!("{MERGES}[{number}]");
        let id = |name: &str| {
            let missing = || invalid(place(), format!("{name:?} is not in the vocabulary"));
            ids.get(name).copied().ok_or_else(missing)
        };
        let (first, second) = (id(left)?, id(right)?);
        let Some(rest) = right.strip_prefix(prefix) else {
            let reason = format!("{right:?} does not begin with {prefix:?}, which it loses");
            return Err(unsupported(place(), reason));
        };
        joined.clear();
        joined.extend([left, rest]);
        memory::push(&mut merges, [first, second, id(&joined)?])
    };
    if let Ok(pairs) = serde_json::from_str::<Vec<[Name<'_>; 2]>>(table.get()) {
        for (number, [left, right]) in pairs.iter().enumerate() {
            add(number, &left.0, &right.0)?;
        }
        return Ok(last_ones(merges));
    }
    let texts: Vec<Name<'_>> = serde_json::from_str(table.get()).map_err(|_| wrong_merge(table))?;
    for (number, Name(text)) in texts.iter().enumerate() {
        if text.starts_with("#version") {
            continue;
        }
        let parts = text.split_once(' ').filter(|(_, right)| !right.contains(' '));
        let (left, right) = parts.ok_or_else(|| not_two_tokens(number, &format!("{text:?}")))?;
        add(number, left, right)?;
    }
    Ok(last_ones(merges))
}

/// The error for the first merge that is written in no way, or in another than the first one.
fn wrong_merge(table: &RawValue) -> crate::Error {
    let entries: Vec<&RawValue> = match parse(table.get(), MERGES) {
        Ok(entries) => entries,
        Err(error) => return error,
    };
    let are_pairs = entries.first().is_some_and(|merge| merge.get().starts_with('['));
    let is_wrong = |merge: &&RawValue| {
        if are_pairs {
            serde_json::from_str::<[Name<'_>; 2]>(merge.get()).is_err()
        } else {
            serde_json::from_str::<Name<'_>>(merge.get()).is_err()
        }
    };
    let number = entries.iter().position(is_wrong).unwrap_or(0);
    not_two_tokens(number, entries.get(number).map_or("nothing", |merge| merge.get()))
}

/// The error for a merge, of which the JSON is given.
fn not_two_tokens(number: usize, merge: &str) -> crate::Error {
    let reason = format!(
        "a merge must be two tokens, in a list or in a text with a space between them as all other \
         merges, not {merge}"
    );
    invalid(format!("{MERGES}[{number}]"), reason)
}

/// The merges without those whose pair occurs again later.
fn last_ones(mut merges: Vec<MergeIds>) -> Vec<MergeIds> {
    let mut pairs = HashSet::with_capacity_and_hasher(merges.len(), RandomState::default());
    merges.reverse();
    merges.retain(|&[left, right, _]| pairs.insert((left, right)));
    merges.reverse();
    merges
}
