//! Records how many documents were skipped, and the first of them.
//!
//! A file may have millions of invalid documents, so only the first are kept. These are the first
//! in the order of the corpus, and so the same for any number of threads.

use crate::corpus::SkippedRows;

/// At most this many skipped ranges are kept.
const MAX_RANGES: usize = 5;

/// The number of skipped documents, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips {
    documents: u64,
    /// The first, in the order of the corpus.
    first: Vec<SkippedRows>,
}

impl Skips {
    /// The number of skipped documents.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The first skipped documents, in the order of the corpus.
    #[must_use]
    pub fn first(&self) -> &[SkippedRows] {
        &self.first
    }

    /// Add skipped documents, in any order.
    pub fn add(&mut self, skipped: &[SkippedRows]) {
        self.documents += rows(skipped);
        for skip in skipped {
            let place = |skip: &SkippedRows| (skip.file, skip.row);
            let at = self.first.partition_point(|before| place(before) <= place(skip));
            if at < MAX_RANGES {
                self.first.insert(at, skip.clone());
                self.first.truncate(MAX_RANGES);
            }
        }
    }

    /// Remove a document that was added.
    pub(crate) fn remove(&mut self, file: usize, row: u64) {
        self.documents -= 1;
        self.first.retain(|skip| (skip.file, skip.row) != (file, row));
    }

    /// Add all documents of `other`.
    pub fn append(&mut self, other: &Self) {
        self.add(&other.first);
        self.documents += other.documents - rows(&other.first);
    }
}

/// The number of skipped rows; the rest of a damaged file counts as one.
fn rows(skipped: &[SkippedRows]) -> u64 {
    skipped.iter().map(|skip| skip.rows.max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn skipped((file, row): (usize, u64)) -> SkippedRows {
        SkippedRows { file, row, rows: 1, reason: format!("{file} {row}").into() }
    }

    proptest! {
        #[test]
        fn the_first_are_kept_in_any_order_of_adding(
            places in prop::collection::btree_set((0usize..4, 0u64..9), 0..20),
            order in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let sorted: Vec<_> = places.into_iter().map(skipped).collect();
            let mut rotated = sorted.clone();
            rotated.rotate_left(order.index(sorted.len() + 1));
            let (one, other) = rotated.split_at(cut.index(sorted.len() + 1));
            let [mut all, mut more] = [Skips::default(), Skips::default()];
            for skip in one {
                all.add(std::slice::from_ref(skip));
            }
            more.add(other);
            all.append(&more);
            prop_assert_eq!(all.documents(), sorted.len() as u64);
            prop_assert_eq!(all.first(), &sorted[..sorted.len().min(MAX_RANGES)]);
        }
    }
}
