//! Documents of token shards into rows for training: which go where, and the copying.
//!
//! A row has a fixed number of ids and begins with a document. [`best_fit`] looks at lengths only,
//! so a reader can plan an epoch without touching a token; [`gather`] then copies. And [`crc32`], the
//! checksum of what is written.

use std::collections::BTreeSet;

/// The CRC-32 of bytes, behind others of which it is `start`.
///
/// ```
/// use bytepair::shards::crc32;
/// assert_eq!(crc32(b"123456789", 0), 0xCBF4_3926);
/// assert_eq!(crc32(b"6789", crc32(b"12345", 0)), 0xCBF4_3926);
/// ```
#[must_use]
pub fn crc32(bytes: &[u8], start: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(start);
    hasher.update(bytes);
    hasher.finalize()
}

/// The rows of a plan: pieces of documents, one after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The document of each piece; a piece begins where its document does.
    pub documents: Vec<usize>,
    /// How many ids of the document the piece has.
    pub takes: Vec<usize>,
    /// Where the pieces of each row end.
    pub ends: Vec<usize>,
}

impl Rows {
    fn push(&mut self, (length, document): (usize, usize), room: usize) -> usize {
        self.documents.push(document);
        self.takes.push(length.min(room));
        length.min(room)
    }
}

/// Fill rows of `width` ids with whole documents, best fit, out of a buffer of waiting documents.
///
/// The longest waiting document that fits goes next, the first of equals; if none fits, the shortest
/// is cut to fill the row, and the rest of it is not used. Documents without ids are passed over. A
/// last row that cannot be filled is left out.
///
/// ```
/// let rows = bytepair::shards::best_fit(&[5, 3, 2, 9], 7, 10);
/// assert_eq!(rows.documents, [0, 2, 1, 3]);
/// assert_eq!(rows.takes, [5, 2, 3, 4]);
/// assert_eq!(rows.ends, [2, 4]);
/// ```
#[must_use]
pub fn best_fit(lengths: &[usize], width: usize, buffer: usize) -> Rows {
    let mut coming = lengths.iter().copied().zip(0..).filter(|&(length, _)| length > 0);
    let mut waiting = BTreeSet::new();
    let mut rows = Rows::default();
    let mut filled = 0;
    if width == 0 {
        return rows;
    }
    loop {
        waiting.extend(coming.by_ref().take(buffer.max(1).saturating_sub(waiting.len())));
        let Some(next) = best(&waiting, width - filled) else { break };
        waiting.remove(&next);
        filled += rows.push(next, width - filled);
        if filled == width {
            rows.ends.push(rows.documents.len());
            filled = 0;
        }
    }
    let whole = rows.ends.last().copied().unwrap_or(0);
    rows.documents.truncate(whole);
    rows.takes.truncate(whole);
    rows
}

/// The longest document that fits, or else the shortest.
fn best(waiting: &BTreeSet<(usize, usize)>, room: usize) -> Option<(usize, usize)> {
    let Some(&(length, _)) = waiting.range(..(room + 1, 0)).next_back() else {
        return waiting.first().copied();
    };
    waiting.range((length, 0)..).next().copied()
}

/// A run of ids in one of several arrays.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Which array.
    pub source: usize,
    /// Where the run begins.
    pub start: usize,
    /// How long it is.
    pub length: usize,
}

/// Copy pieces one after the other until `out` is full; `None` if a piece lies outside its array, or
/// the pieces are more or fewer ids than `out` takes.
///
/// ```
/// use bytepair::shards::{Piece, gather};
/// let mut out = [0; 3];
/// let pieces = [(1, 0, 1), (0, 1, 2)].map(|(source, start, length)| Piece { source, start, length });
/// assert!(gather(&[&[1, 2, 3], &[9]], &pieces, &mut out).is_some());
/// assert_eq!(out, [9, 2, 3]);
/// ```
pub fn gather<T: Copy>(sources: &[&[T]], pieces: &[Piece], mut out: &mut [T]) -> Option<()> {
    for piece in pieces {
        let ids = sources.get(piece.source)?.get(piece.start..)?.get(..piece.length)?;
        let (place, rest) = out.split_at_mut_checked(piece.length)?;
        place.copy_from_slice(ids);
        out = rest;
    }
    out.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule, written down without any cleverness.
    fn plain(lengths: &[usize], width: usize, buffer: usize) -> Vec<Vec<(usize, usize)>> {
        let mut coming = lengths.iter().copied().enumerate().filter(|&(_, length)| length > 0);
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        let mut rows = vec![Vec::new()];
        let mut room = width;
        loop {
            while waiting.len() < buffer {
                let Some(document) = coming.next() else { break };
                waiting.push(document);
            }
            let mut chosen = None;
            for (place, &(_, length)) in waiting.iter().enumerate() {
                let longest: Option<usize> = chosen.map(|place: usize| waiting[place].1);
                if length <= room && longest.is_none_or(|longest| length > longest) {
                    chosen = Some(place);
                }
            }
            for (place, &(_, length)) in waiting.iter().enumerate() {
                let shortest: Option<usize> = chosen.map(|place: usize| waiting[place].1);
                if shortest.is_none_or(|shortest| shortest > room && length < shortest) {
                    chosen = Some(place);
                }
            }
            let Some(place) = chosen else { break };
            let (document, length) = waiting.remove(place);
            rows.last_mut().expect("one row").push((document, length.min(room)));
            room -= length.min(room);
            if room == 0 {
                rows.push(Vec::new());
                room = width;
            }
        }
        rows.pop();
        rows
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_plain_rule(
            lengths in prop::collection::vec(0_usize..12, 0..60),
            width in 1_usize..20,
            buffer in 1_usize..9,
        ) {
            let rows = best_fit(&lengths, width, buffer);
            let pieces: Vec<_> =
                rows.documents.iter().copied().zip(rows.takes.iter().copied()).collect();
            let starts = std::iter::once(0).chain(rows.ends.iter().copied());
            let ours: Vec<_> =
                starts.zip(&rows.ends).map(|(start, &end)| pieces[start..end].to_vec()).collect();
            prop_assert_eq!(ours, plain(&lengths, width, buffer));
        }
    }

    #[test]
    fn pieces_that_do_not_fit_are_refused() {
        let piece = |source, start, length| Piece { source, start, length };
        let copied = |pieces: &[Piece]| gather(&[&[1_u16, 2, 3][..]], pieces, &mut [0; 2]);
        assert!(copied(&[piece(0, 1, 2)]).is_some());
        for wrong in [piece(0, 2, 2), piece(1, 0, 2), piece(0, 0, 1), piece(0, 0, 3)] {
            assert!(copied(&[wrong]).is_none(), "{wrong:?}");
        }
        assert!(copied(&[piece(0, usize::MAX, 2)]).is_none());
        assert!(best_fit(&[1, 2], 0, 3).ends.is_empty());
    }
}
