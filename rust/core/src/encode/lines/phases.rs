//! Divides the merges of a vocabulary into two phases, where that is exact.

use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::machine::lanes::Portable;
use crate::memory;
use crate::merge::pair_table::{NO_MERGE, PairTableBuilder, Pairs};
use crate::vocabulary::{NO_ID, Vocabulary};

/// The merges of a vocabulary in two phases.
pub(super) struct Phases {
    /// The rank of the merge that creates each id, or [`NO_MERGE`].
    ranks: Vec<u32>,
    limit: u32,
    pub(super) low: PairTableBuilder,
    pub(super) high: Vec<(u32, u32)>,
    /// For each id, the first and the last of the ids of the first phase that it consists of.
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Phases {
    /// `None` if two phases would not be exact.
    pub(super) fn new(encoder: &PretokenEncoder) -> Result<Option<Self>> {
        let (vocabulary, pairs) = (&encoder.vocabulary, encoder.merger()?.pairs());
        let size = vocabulary.len();
        if vocabulary.byte_ids().contains(&NO_ID) || !encoder.merger()?.starts_with_bytes() {
            return Ok(None);
        }
        let merges = pairs.in_order();
        let ranked = |&(left, right): &(u32, u32)| pairs.rank(left, right, Portable);
        let crosses = |rank: &u32| vocabulary.bytes(pairs.id(*rank)).is_some_and(crosses_space);
        let Some(limit) = merges.iter().map(ranked).find(crosses) else { return Ok(None) };
        let ids = (0..limit).map(|rank| pairs.id(rank));
        let mut phases = Self {
            ranks: memory::filled(NO_MERGE, size)?,
            limit,
            low: PairTableBuilder::with_capacity(limit as usize, memory::collect(ids)?)?,
            high: memory::with_room(merges.len())?,
            first: memory::collect(0..u32::try_from(size).unwrap_or(NO_ID))?,
            last: memory::collect(0..u32::try_from(size).unwrap_or(NO_ID))?,
        };
        let all_fit = merges.iter().all(|pair| {
            let rank = ranked(pair);
            phases.add(*pair, rank, pairs.id(rank))
        });
        Ok(all_fit.then_some(phases))
    }

    /// Add the next merge in the order of ranks; false if one of its parts is created later, or if
    /// an earlier merge creates the same token.
    fn add(&mut self, (left, right): (u32, u32), rank: u32, id: u32) -> bool {
        let is_earlier = |part: u32| {
            let part_rank = self.ranks[part as usize];
            part_rank == NO_MERGE || part_rank < rank
        };
        if self.ranks[id as usize] != NO_MERGE || !is_earlier(left) || !is_earlier(right) {
            return false;
        }
        self.ranks[id as usize] = rank;
        if rank < self.limit {
            self.low.insert(left, right, rank);
        } else {
            self.high.push((left, right));
            // A token of the first phase is its own first and last id.
            self.first[id as usize] = self.first[left as usize];
            self.last[id as usize] = self.last[right as usize];
        }
        true
    }

    /// The point of each merge of the second phase: the two ids of the first phase at its joint.
    pub(super) fn joints(&self) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let joint =
            |&(left, right): &(u32, u32)| (self.last[left as usize], self.first[right as usize]);
        self.high.iter().map(joint)
    }

    /// A bit for each pair of bytes: whether they are adjacent in a character or in a token of the
    /// first phase.
    pub(super) fn joined(&self, vocabulary: &Vocabulary) -> Box<[u64; 1 << 10]> {
        let mut joined = Box::new([0; 1 << 10]);
        let mut join = |left: u8, right: u8| {
            let bit = usize::from(left) << 8 | usize::from(right);
            joined[bit >> 6] |= 1u64 << (bit & 63);
        };
        // A byte within a character never follows a cut.
        (0x80..0xC0).for_each(|right| (0..=255).for_each(|left| join(left, right)));
        for (token, id) in vocabulary.ordinary_tokens() {
            if self.ranks[id as usize] < self.limit {
                token.windows(2).for_each(|pair| join(pair[0], pair[1]));
            }
        }
        joined
    }
}

/// Whether a space follows a letter or digit in a token or pretoken: most patterns split there.
pub(crate) fn crosses_space(token: &[u8]) -> bool {
    token.windows(2).any(|pair| pair[0].is_ascii_alphanumeric() && pair[1] == b' ')
}
