//! The count and the first occurrence of a pretoken.

/// How often a pretoken was seen, and the position in the corpus where it was first seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) count: u64,
    pub(super) first: u64,
}

impl Seen {
    /// Add the occurrences in another part of the corpus.
    #[inline]
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
    }

    /// For the same pretoken in two tables, move its count to the table that saw it first. Does
    /// nothing if one of the counts is 0, because that count was moved before.
    #[inline]
    pub(super) fn move_to_first(&mut self, other: &mut Self) {
        if self.count == 0 || other.count == 0 {
            return;
        }
        // The count that stays 0 marks a row that `iter` leaves out.
        let (first, second) = if self.first < other.first { (self, other) } else { (other, self) };
        first.count += std::mem::take(&mut second.count);
    }
}
