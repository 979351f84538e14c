//! Packs documents of token shards into training rows.
//!
//! A row has a fixed number of ids and starts with a document. [`best_fit`] needs only the lengths
//! of documents, so a reader can plan an epoch without reading a token; [`gather`] copies the ids.
//! [`crc32`] is the checksum of shards.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::memory;

/// Bytes of memory for a waiting document.
const WAITING: usize = 64;

/// The CRC-32 of a sequence of bytes, continuing from `start`, the CRC-32 of the preceding bytes.
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

/// The rows of a plan, each a sequence of pieces of documents.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowPlan {
    /// The document of each piece; a piece always starts at the start of its document.
    pub documents: Vec<usize>,
    /// The number of ids in each piece.
    pub takes: Vec<usize>,
    /// The index after the last piece of each row.
    pub ends: Vec<usize>,
}

impl RowPlan {
    /// Append a document, cut to `free` ids; returns the number of its ids.
    fn push(&mut self, (length, document): (usize, usize), free: usize) -> usize {
        self.documents.push(document);
        self.takes.push(length.min(free));
        length.min(free)
    }
}

/// Fill rows of `width` ids with whole documents by best fit, from a buffer of waiting documents.
///
/// The next document is the longest waiting one that fits, the first of several. If none fits, the
/// shortest is cut to fill the row, and its rest is dropped. Documents without ids are skipped, and
/// an incomplete last row is dropped. Fails if there is not enough memory for the rows.
///
/// ```
/// let rows = bytepair::shards::best_fit(&[5, 3, 2, 9], 7, 10)?;
/// assert_eq!(rows.documents, [0, 2, 1, 3]);
/// assert_eq!(rows.takes, [5, 2, 3, 4]);
/// assert_eq!(rows.ends, [2, 4]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn best_fit(lengths: &[usize], width: usize, buffer: usize) -> Result<RowPlan> {
    // Each document is at most once in the rows, whose vectors grow by doubling, and once in the
    // buffer.
    let waiting = buffer.min(lengths.len()).saturating_mul(WAITING);
    memory::check(waiting + 6 * size_of_val(lengths))?;
    let mut coming = lengths.iter().copied().zip(0..).filter(|&(length, _)| length > 0);
    let mut waiting = BTreeSet::new();
    let mut rows = RowPlan::default();
    let mut filled = 0;
    if width == 0 {
        return Ok(rows);
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
    Ok(rows)
}

/// The longest document of at most `free` ids; if there is none, the shortest document.
fn best(waiting: &BTreeSet<(usize, usize)>, free: usize) -> Option<(usize, usize)> {
    let Some(&(length, _)) = waiting.range(..(free + 1, 0)).next_back() else {
        return waiting.first().copied();
    };
    waiting.range((length, 0)..).next().copied()
}

/// A range of ids in one of several arrays.
#[derive(Clone, Copy, Debug)]
pub struct SourceRange {
    /// The index of the array.
    pub source: usize,
    /// The index of the first id.
    pub start: usize,
    /// The number of ids.
    pub length: usize,
}

/// Copy pieces in order into `out`; `None` if a piece exceeds its array, or if the pieces have more
/// or fewer ids than `out`.
///
/// ```
/// use bytepair::shards::{SourceRange, gather};
/// let mut out = [0; 3];
/// let piece = |source, start, length| SourceRange { source, start, length };
/// let pieces = [piece(1, 0, 1), piece(0, 1, 2)];
/// assert!(gather(&[&[1, 2, 3], &[9]], &pieces, &mut out).is_some());
/// assert_eq!(out, [9, 2, 3]);
/// ```
pub fn gather<T: Copy>(sources: &[&[T]], pieces: &[SourceRange], mut out: &mut [T]) -> Option<()> {
    for piece in pieces {
        let ids = sources.get(piece.source)?.get(piece.start..)?.get(..piece.length)?;
        let (destination, rest) = out.split_at_mut_checked(piece.length)?;
        destination.copy_from_slice(ids);
        out = rest;
    }
    out.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow reference for `best_fit`.
    fn plain(lengths: &[usize], width: usize, buffer: usize) -> Vec<Vec<(usize, usize)>> {
        let mut coming = lengths.iter().copied().enumerate().filter(|&(_, length)| length > 0);
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        let mut rows = vec![Vec::new()];
        let mut free = width;
        loop {
            while waiting.len() < buffer {
                let Some(document) = coming.next() else { break };
                waiting.push(document);
            }
            let mut chosen = None;
            for (index, &(_, length)) in waiting.iter().enumerate() {
                let longest: Option<usize> = chosen.map(|index: usize| waiting[index].1);
                if length <= free && longest.is_none_or(|longest| length > longest) {
                    chosen = Some(index);
                }
            }
            for (index, &(_, length)) in waiting.iter().enumerate() {
                let shortest: Option<usize> = chosen.map(|index: usize| waiting[index].1);
                if shortest.is_none_or(|shortest| shortest > free && length < shortest) {
                    chosen = Some(index);
                }
            }
            let Some(index) = chosen else { break };
            let (document, length) = waiting.remove(index);
            rows.last_mut().expect("one row").push((document, length.min(free)));
            free -= length.min(free);
            if free == 0 {
                rows.push(Vec::new());
                free = width;
            }
        }
        rows.pop();
        rows
    }

    proptest! {
        #[test]
        fn rows_equal_those_of_the_slow_reference(
            lengths in prop::collection::vec(0_usize..12, 0..60),
            width in 1_usize..20,
            buffer in 1_usize..9,
        ) {
            let rows = best_fit(&lengths, width, buffer).unwrap();
            let pieces: Vec<_> =
                rows.documents.iter().copied().zip(rows.takes.iter().copied()).collect();
            let starts = std::iter::once(0).chain(rows.ends.iter().copied());
            let ours: Vec<_> =
                starts.zip(&rows.ends).map(|(start, &end)| pieces[start..end].to_vec()).collect();
            prop_assert_eq!(ours, plain(&lengths, width, buffer));
        }
    }

    #[test]
    fn pieces_that_do_not_fit_are_rejected() {
        let piece = |source, start, length| SourceRange { source, start, length };
        let copied = |pieces: &[SourceRange]| gather(&[&[1_u16, 2, 3][..]], pieces, &mut [0; 2]);
        assert!(copied(&[piece(0, 1, 2)]).is_some());
        for wrong in [piece(0, 2, 2), piece(1, 0, 2), piece(0, 0, 1), piece(0, 0, 3)] {
            assert!(copied(&[wrong]).is_none(), "{wrong:?}");
        }
        assert!(copied(&[piece(0, usize::MAX, 2)]).is_none());
        assert!(best_fit(&[1, 2], 0, 3).unwrap().ends.is_empty());
    }
}
