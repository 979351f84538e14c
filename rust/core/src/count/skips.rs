//! Documents that were left out in, their number and the first of them out.
//!
//! A wrong file may have millions of documents that cannot be read, so not all are kept. The first
//! ones in the order of the corpus are the same whatever the threads.

use crate::corpus::Skipped;

/// At most this many are kept.
const FIRST: usize = 5;

/// How many documents were left out, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips {
    documents: u64,
    /// In the order of the corpus.
    first: Vec<Skipped>,
}

impl Skips {
    /// The number of documents.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The first of them, in the order of the corpus.
    #[must_use]
    pub fn first(&self) -> &[Skipped] {
        &self.first
    }

    /// Add documents of any place.
    pub fn add(&mut self, skipped: &[Skipped]) {
        self.documents += rows(skipped);
        for skip in skipped {
            let place = |skip: &Skipped| (skip.file, skip.row);
            let at = self.first.partition_point(|before| place(before) <= place(skip));
            if at < FIRST {
                self.first.insert(at, skip.clone());
                self.first.truncate(FIRST);
            }
        }
    }

    /// Take back a document that was added.
    pub(crate) fn forget(&mut self, file: usize, row: u64) {
        self.documents -= 1;
        self.first.retain(|skip| (skip.file, skip.row) != (file, row));
    }

    /// Add what was left out elsewhere.
    pub fn append(&mut self, other: &Self) {
        self.add(&other.first);
        self.documents += other.documents - rows(&other.first);
    }
}

fn rows(skipped: &[Skipped]) -> u64 {
    skipped.iter().map(|skip| skip.rows).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn skipped((file, row): (usize, u64)) -> Skipped {
        Skipped { file, row, rows: 1, reason: format!("{file} {row}") }
    }

    proptest! {
        #[test]
        fn the_first_are_kept_whatever_the_order(
            places in prop::collection::btree_set((0usize..4, 0u64..9), 0..20),
            order in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let sorted: Vec<_> = places.into_iter().map(skipped).collect();
            let mut turned = sorted.clone();
            turned.rotate_left(order.index(sorted.len() + 1));
            let (one, other) = turned.split_at(cut.index(sorted.len() + 1));
            let [mut all, mut more] = [Skips::default(), Skips::default()];
            for skip in one {
                all.add(std::slice::from_ref(skip));
            }
            more.add(other);
            all.append(&more);
            prop_assert_eq!(all.documents(), sorted.len() as u64);
            prop_assert_eq!(all.first(), &sorted[..sorted.len().min(FIRST)]);
        }
    }
}
