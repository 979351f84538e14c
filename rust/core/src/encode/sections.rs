//! Encodes a long pretoken section by section, with a cache for sections.
//!
//! A long pretoken of Chinese or Thai rarely repeats, but its sections do: without their cache, the
//! first pass over many languages takes 18 % longer.

use crate::cache::overflow::LONGEST_KEPT;
use crate::cache::{Cache, SharedCache};
use crate::encode::pretoken::PretokenEncoder;
use crate::error::Result;
use crate::hash::key::{Key, LONGEST};
use crate::merge::queue::MergeScratch;

/// The ids of sections, shared by all threads: 4 MiB of entries, and 2 MiB of overflow.
pub(crate) type SectionCache = SharedCache<BITS, OVERFLOW>;
const BITS: u32 = 16;
const OVERFLOW: usize = 2 << 20;

/// The number of sections that are looked up together.
const BATCH: usize = 16;

/// The state of one thread for encoding sections.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    cache: Cache<BITS, OVERFLOW>,
}

impl Sections {
    /// Append the ids of a pretoken that missed the cache of pretokens, within the capacity of
    /// `ids`.
    ///
    /// Fails if no token covers one of its bytes.
    pub(crate) fn encode(
        &mut self,
        shared: &SectionCache,
        encoder: &PretokenEncoder,
        pretoken: &[u8],
        scratch: &mut MergeScratch,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if pretoken.len() <= LONGEST {
            return encoder.encode(pretoken, scratch, ids);
        }
        let mut ends = encoder.split_points()?.ends(pretoken).peekable();
        if ends.peek() == Some(&pretoken.len()) {
            return encoder.encode(pretoken, scratch, ids);
        }
        let mut start = 0;
        while start < pretoken.len() {
            self.cache.prepare(shared);
            start = self.encode_batch(encoder, pretoken, start, &mut ends, scratch, ids)?;
        }
        Ok(())
    }

    /// Append the ids of the next few sections; returns their end.
    fn encode_batch(
        &mut self,
        encoder: &PretokenEncoder,
        pretoken: &[u8],
        mut start: usize,
        ends: &mut impl Iterator<Item = usize>,
        scratch: &mut MergeScratch,
        ids: &mut Vec<u32>,
    ) -> Result<usize> {
        // All lines are prefetched before the first is read.
        let (mut batch, mut count, mut begin) = ([(0, Key::default(), 0); BATCH], 0, start);
        for (section, end) in batch.iter_mut().zip(ends) {
            let key = Key::of(pretoken, begin..end);
            *section = (end, key, self.cache.table().locate(key));
            (count, begin) = (count + 1, end);
        }
        for &(end, key, line) in &batch[..count] {
            let section = &pretoken[start..end];
            start = end;
            if !self.cache.append(key, line, section, ids) {
                let before = ids.len();
                encoder.merger()?.merge(section, scratch, ids)?;
                if section.len() <= LONGEST_KEPT {
                    self.cache.put(key, line, section, &ids[before..]);
                }
            }
        }
        Ok(start)
    }
}
