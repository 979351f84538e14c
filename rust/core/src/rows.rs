//! The one packer: it places documents of given lengths in the rows of a training run.
//!
//! A row has a fixed number of ids and starts with a document. Packing needs only lengths, so it is
//! the same whether the ids lie in shards, in memory or do not exist yet. Best fit has two forms:
//!
//! - **Buffered** ([`RowPacker`]): rows choose among the documents that wait, while others still
//!   come. [`plan_rows`] is the same for documents whose lengths are all known.
//! - **Offline** ([`place_whole`]): documents choose among rows, the longest document first. No
//!   document is cut, and all lengths must be known.
//!
//! [`gather`] copies the ids of planned rows.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::memory;

/// Bytes of memory for a waiting document.
const WAITING_BYTES: usize = 64;

/// A document in a row, from its first id on: its number, and the number of its ids in the row, fewer
/// than it has if it was cut.
pub type RowPiece = (usize, usize);

/// Fills rows with documents by best fit, while documents come.
///
/// The next document of a row is the longest waiting one that fits, the first of several. As long
/// as fewer documents wait than the buffer holds, none is chosen, so the rows do not depend on how
/// many documents are added at once if they are added only when [`RowPacker::row`] asks for them.
///
/// ```
/// use bytepair::rows::RowPacker;
/// let mut packer = RowPacker::new(7, 2, true);
/// packer.add(0, 5);
/// assert_eq!(packer.row(), None); // two documents must wait
/// packer.add(1, 3);
/// packer.add(2, 2);
/// assert_eq!(packer.row(), Some(vec![(0, 5), (2, 2)]));
/// ```
#[derive(Debug)]
pub struct RowPacker {
    width: usize,
    buffer: usize,
    /// Whether the shortest waiting document is cut to fill a row into which none fits.
    cuts: bool,
    /// Lengths and numbers of the documents that wait.
    waiting: BTreeSet<(usize, usize)>,
    /// The row that is being filled, and how many ids it has.
    row: Vec<RowPiece>,
    filled: usize,
}

impl RowPacker {
    /// A packer for rows of `width` ids that chooses among at least `buffer` documents (at least
    /// one). If it `cuts`, the shortest waiting document is cut to fill a row into which none fits, and
    /// its rest is dropped; else the row ends there, and the caller pads it.
    #[must_use]
    pub fn new(width: usize, buffer: usize, cuts: bool) -> Self {
        let (waiting, row) = Default::default();
        Self { width, buffer: buffer.max(1), cuts, waiting, row, filled: 0 }
    }

    /// Add a document of `length` ids. Its number tells it from the others; of equally long
    /// documents, the one with the lowest number is first.
    pub fn add(&mut self, document: usize, length: usize) {
        self.waiting.insert((length, document));
    }

    /// The next complete row; `None` if more documents must be added first.
    ///
    /// If it cuts nothing, a row is empty if every waiting document is longer than a row.
    pub fn row(&mut self) -> Option<Vec<RowPiece>> {
        while self.filled < self.width {
            if self.waiting.len() < self.buffer {
                return None;
            }
            if !self.place_next() {
                break;
            }
        }
        self.filled = 0;
        Some(std::mem::take(&mut self.row))
    }

    /// Move one waiting document into the row; false if none fits and the row is padded.
    fn place_next(&mut self) -> bool {
        let free = self.width - self.filled;
        // The set is in order of length, so the last entry up to `free` is the longest that fits.
        let fitting = self.waiting.range(..=(free, usize::MAX)).next_back();
        let length = match (fitting, self.cuts) {
            (Some(&(length, _)), _) => length,
            (None, false) => return false,
            (None, true) => self.waiting.first().map_or(0, |&(length, _)| length),
        };
        // Of documents of this length, the one with the lowest number.
        let Some(&next) = self.waiting.range((length, 0)..).next() else { return false };
        self.waiting.remove(&next);
        let (length, document) = (length.min(free), next.1);
        self.row.push((document, length));
        self.filled += length;
        true
    }
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
    /// Append the rows that a packer can complete.
    fn take_rows(&mut self, packer: &mut RowPacker) {
        while let Some(row) = packer.row() {
            self.documents.extend(row.iter().map(|&(document, _)| document));
            self.takes.extend(row.iter().map(|&(_, length)| length));
            self.ends.push(self.documents.len());
        }
    }
}

/// Fill rows of `width` ids with documents whose lengths are all known, as a [`RowPacker`] that
/// cuts and gets one document at a time.
///
/// Documents without ids are skipped, and an incomplete last row is dropped. Fails if there is not
/// enough memory for the rows.
///
/// ```
/// let rows = bytepair::rows::plan_rows(&[5, 3, 2, 9], 7, 10)?;
/// assert_eq!(rows.documents, [0, 2, 1, 3]);
/// assert_eq!(rows.takes, [5, 2, 3, 4]);
/// assert_eq!(rows.ends, [2, 4]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn plan_rows(lengths: &[usize], width: usize, buffer: usize) -> Result<RowPlan> {
    // Each document is at most once in the rows, whose vectors grow by doubling, and once in the
    // buffer.
    let waiting = buffer.min(lengths.len()).saturating_mul(WAITING_BYTES);
    memory::check(waiting + 6 * size_of_val(lengths))?;
    let mut plan = RowPlan::default();
    if width == 0 {
        return Ok(plan);
    }
    let mut packer = RowPacker::new(width, buffer, true);
    for (document, &length) in lengths.iter().enumerate().filter(|&(_, &length)| length > 0) {
        packer.add(document, length);
        plan.take_rows(&mut packer);
    }
    // The last documents do not wait for others.
    packer.buffer = 1;
    plan.take_rows(&mut packer);
    Ok(plan)
}

/// Place documents of the given lengths into rows of `width` by best fit: the longest first, each
/// into the row where it leaves the least free space, the earliest such row among equals. Returns
/// the row and the first column of each, in the order given.
///
/// Fails if a document is longer than a row.
///
/// ```
/// assert_eq!(bytepair::rows::place_whole(&[3, 6, 4], 7)?, [(1, 4), (0, 0), (1, 0)]);
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn place_whole(lengths: &[usize], width: usize) -> Result<Vec<(usize, usize)>> {
    let mut order: Vec<usize> = memory::collect(0..lengths.len())?;
    // Sorting takes as much memory as the lengths, and the open rows at most four times as much.
    memory::check(5 * size_of_val(lengths))?;
    order.sort_by_key(|&index| Reverse(lengths[index]));
    if let Some(&longest) = order.first()
        && lengths[longest] > width
    {
        return Err(Error::TooLong { conversation: longest, length: lengths[longest], width });
    }
    let mut places = memory::filled((0, 0), lengths.len())?;
    let mut rows = 0;
    // Open rows by their free space; a row is removed, filled further, and inserted again.
    let mut open = BTreeSet::new();
    for index in order {
        let length = lengths[index];
        // The row with the least space that is enough, the lowest number among equals; or else a
        // new row. A full row has no space and stays in the set: only empty documents go there.
        let fit = open.range((length, 0)..).next().copied();
        let (free, row) = fit.unwrap_or((width, rows));
        rows = rows.max(row + 1);
        open.remove(&(free, row));
        open.insert((free - length, row));
        places[index] = (row, width - free);
    }
    Ok(places)
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
/// use bytepair::rows::{SourceRange, gather};
/// let mut out = [0; 3];
/// let piece = |source, start, length| SourceRange { source, start, length };
/// let pieces = [piece(1, 0, 1), piece(0, 1, 2)];
/// assert!(gather(&[&[1, 2, 3], &[9]], &pieces, &mut out).is_some());
/// assert_eq!(out, [9, 2, 3]);
/// ```
pub fn gather<T: Copy>(sources: &[&[T]], pieces: &[SourceRange], mut out: &mut [T]) -> Option<()> {
    for piece in pieces {
        // In two steps, because `start + length` might overflow.
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

    /// The slow reference for `plan_rows`.
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
            let rows = plan_rows(&lengths, width, buffer).unwrap();
            let pieces: Vec<_> =
                rows.documents.iter().copied().zip(rows.takes.iter().copied()).collect();
            let starts = std::iter::once(0).chain(rows.ends.iter().copied());
            let ours: Vec<_> =
                starts.zip(&rows.ends).map(|(start, &end)| pieces[start..end].to_vec()).collect();
            prop_assert_eq!(ours, plain(&lengths, width, buffer));
        }
    }

    /// The slow reference for `RowPacker`: searches a list of all waiting documents, and takes
    /// documents from the front of `groups`, a group at a time.
    fn packed_slowly(
        groups: &[Vec<usize>],
        width: usize,
        buffer: usize,
        cuts: bool,
    ) -> Vec<Vec<RowPiece>> {
        let mut groups = groups.iter();
        let mut waiting: Vec<RowPiece> = Vec::new();
        let (mut rows, mut row, mut free, mut number) = (Vec::new(), Vec::new(), width, 0);
        loop {
            while waiting.len() < buffer {
                let Some(group) = groups.next() else { return rows };
                for &length in group {
                    waiting.push((number, length));
                    number += 1;
                }
            }
            let longest = waiting.iter().map(|piece| piece.1).filter(|&l| l <= free).max();
            let shortest = waiting.iter().map(|piece| piece.1).min();
            let chosen = if cuts { longest.or(shortest) } else { longest };
            let at = waiting.iter().position(|piece| Some(piece.1) == chosen);
            if let Some(at) = at {
                let (document, length) = waiting.remove(at);
                row.push((document, length.min(free)));
                free -= length.min(free);
            }
            if at.is_none() || free == 0 {
                rows.push(std::mem::take(&mut row));
                free = width;
            }
        }
    }

    /// The slow reference for `place_whole`: best fit by a search of all rows.
    fn placed_slowly(lengths: &[usize], width: usize) -> Vec<(usize, usize)> {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&index| Reverse(lengths[index]));
        let mut used: Vec<usize> = Vec::new();
        let mut places = vec![(0, 0); lengths.len()];
        for index in order {
            let fits = |row: &usize| used[*row] + lengths[index] <= width;
            let best = (0..used.len()).filter(fits).min_by_key(|&row| (width - used[row], row));
            let row = best.unwrap_or(used.len());
            used.resize(used.len().max(row + 1), 0);
            places[index] = (row, used[row]);
            used[row] += lengths[index];
        }
        places
    }

    proptest! {
        #[test]
        fn a_packer_equals_its_slow_reference(
            groups in prop::collection::vec(prop::collection::vec(0_usize..20, 0..9), 0..20),
            width in 19_usize..40,
            buffer in 1_usize..9,
            cuts in any::<bool>(),
        ) {
            let mut packer = RowPacker::new(width, buffer, cuts);
            let (mut rows, mut number) = (Vec::new(), 0);
            for group in &groups {
                for &length in group {
                    packer.add(number, length);
                    number += 1;
                }
                while let Some(row) = packer.row() {
                    rows.push(row);
                }
            }
            prop_assert_eq!(rows, packed_slowly(&groups, width, buffer, cuts));
        }

        #[test]
        fn places_equal_those_of_the_slow_reference(
            lengths in prop::collection::vec(0_usize..=20, 0..60),
        ) {
            prop_assert_eq!(place_whole(&lengths, 20).expect("fits"), placed_slowly(&lengths, 20));
        }
    }

    #[test]
    fn a_document_longer_than_a_row_is_cut_or_an_error_or_left_waiting() {
        let error = place_whole(&[1, 9], 4).expect_err("too long");
        assert_eq!(error, Error::TooLong { conversation: 1, length: 9, width: 4 });
        for (cuts, row) in [(true, vec![(0, 4)]), (false, vec![])] {
            let mut packer = RowPacker::new(4, 1, cuts);
            packer.add(0, 9);
            assert_eq!(packer.row(), Some(row));
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
        assert!(plan_rows(&[1, 2], 0, 3).unwrap().ends.is_empty());
    }
}
