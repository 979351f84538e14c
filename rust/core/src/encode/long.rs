//! The ids of pretokens that were met before and are too long for a slot of the
//! [`cache`](super::cache).
//!
//! Each has one place, by its hash, and takes it from whatever is there. Bytes and ids stand end to
//! end in two arenas; when one is full, everything is forgotten.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Longer pretokens (in bytes) are not kept.
pub(super) const LONGEST: usize = 128;

const PLACE_BITS: u32 = 16;
/// How many bytes, and how many ids, are kept.
const ROOM: usize = 1 << 21;

/// The cache of one thread: 11 MiB at most; empty, it has nothing.
#[derive(Debug, Default)]
pub(super) struct LongCache {
    places: Vec<Entry>,
    bytes: Vec<u8>,
    ids: Vec<u32>,
}

/// What is known of one pretoken; an empty one has no bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    bytes: u32,
    ids: u32,
    length: u16,
    count: u16,
    kind: Kind,
}

/// What bytes are: those of a pretoken may be a token as a whole, those of a piece of one are merged
/// in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    #[default]
    Pretoken,
    Piece,
}

impl LongCache {
    /// Where a pretoken is, if it is here.
    pub(super) fn place(pretoken: &[u8]) -> usize {
        let hash = FixedState::default().hash_one(pretoken);
        usize::try_from(hash >> (64 - PLACE_BITS)).expect("a small number")
    }

    /// The ids of a pretoken of this kind, whose place this is.
    #[inline]
    pub(super) fn get(&self, pretoken: &[u8], kind: Kind, place: usize) -> Option<&[u32]> {
        let entry = self.places.get(place).filter(|entry| entry.kind == kind)?;
        let (start, length) = (entry.bytes as usize, usize::from(entry.length));
        if &self.bytes[start..start + length] != pretoken {
            return None;
        }
        let start = entry.ids as usize;
        Some(&self.ids[start..start + usize::from(entry.count)])
    }

    /// Remember the ids of a pretoken of at most [`LONGEST`] bytes.
    pub(super) fn put(&mut self, pretoken: &[u8], kind: Kind, place: usize, ids: &[u32]) {
        let fits = self.bytes.len() + pretoken.len() <= ROOM && self.ids.len() + ids.len() <= ROOM;
        if !fits || self.places.is_empty() {
            *self = Self { places: vec![Entry::default(); 1 << PLACE_BITS], ..Self::default() };
        }
        let small = |number: usize| u16::try_from(number).expect("at most `LONGEST`");
        let start = |number: usize| u32::try_from(number).expect("below `ROOM`");
        self.places[place] = Entry {
            bytes: start(self.bytes.len()),
            ids: start(self.ids.len()),
            length: small(pretoken.len()),
            count: small(ids.len()),
            kind,
        };
        self.bytes.extend_from_slice(pretoken);
        self.ids.extend_from_slice(ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_answers_for_another_and_stays_small() {
        let mut cache = LongCache::default();
        let mut kept = 0;
        for number in 0..200_000u32 {
            let pretoken = format!("pretoken number {}", number * 7919 % 9_000).into_bytes();
            let kind = if number % 3 == 0 { Kind::Piece } else { Kind::Pretoken };
            let ids = [number * 7919 % 9_000, u32::from(kind == Kind::Piece)];
            let place = LongCache::place(&pretoken);
            if let Some(found) = cache.get(&pretoken, kind, place) {
                assert_eq!(found, ids);
                kept += 1;
            } else {
                cache.put(&pretoken, kind, place, &ids);
            }
            assert_eq!(cache.get(&pretoken, kind, place), Some(&ids[..]));
            assert!(cache.bytes.len() <= ROOM && cache.ids.len() <= ROOM);
        }
        assert!(kept > 0);
    }
}
