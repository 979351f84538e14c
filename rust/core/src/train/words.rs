//! The distinct pretokens as sequences of ids, rewritten in place as merges are made.
//!
//! Rewriting tells what it changes: pairs that vanish beside the merged one, and pairs that the new
//! token forms. All of them share a token with the merge, so one number, the neighbour, names each;
//! [`Changes`] sums them in arrays that are indexed by it.

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::prefetch::prefetch;

use super::start::Start;

/// Names a word: where its cells begin.
pub(super) type Word = u32;

/// What stands before the ids of a word: room, length, and the count in two halves.
const HEADER: usize = 4;

/// How many words ahead the memory of a word is asked for.
const AHEAD: usize = 12;

/// The distinct pretokens of at least two ids.
///
/// All about a word stands in one place, because words are visited in no order and the memory of
/// each is waited for: its room and its length in ids, its count, then its ids.
pub(super) struct Words {
    cells: Vec<u32>,
    /// The length in bytes of each token, as far as they exist.
    token_lengths: Vec<u32>,
}

impl Words {
    /// Fails if the number of pairs of neighbours in the corpus does not fit 64 bits: then no count
    /// can overflow later.
    pub(super) fn new(counts: &Counts, start: &mut Start) -> Result<Self> {
        let mut words = Self { cells: Vec::new(), token_lengths: start.token_lengths()? };
        let (mut pairs, mut ids): (u64, Vec<u32>) = (0, Vec::new());
        for (pretoken, count) in counts.iter() {
            start.ids(pretoken, &mut ids)?;
            if ids.len() > 1 {
                let more = count.checked_mul(ids.len() as u64 - 1);
                pairs =
                    more.and_then(|more| pairs.checked_add(more)).ok_or(Error::CountOverflow)?;
                words.push(&ids, count)?;
            }
        }
        Ok(words)
    }

    fn push(&mut self, ids: &[u32], count: u64) -> Result<()> {
        let length = u32::try_from(ids.len()).map_err(|_| Error::TooManyPretokens)?;
        let [low, high] = halves(count);
        self.cells.extend([length, length, low, high]);
        self.cells.extend_from_slice(ids);
        match u32::try_from(self.cells.len()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::TooManyPretokens),
        }
    }

    /// The words with their ids and counts, in the order of the counts that they come from.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Word, &[u32], u64)> {
        let mut word = 0;
        std::iter::from_fn(move || {
            let room = *self.cells.get(word as usize)?;
            let item = (word, self.ids(word), self.count(word));
            word += u32::try_from(HEADER).expect("a small number") + room;
            Some(item)
        })
    }

    fn ids(&self, word: Word) -> &[u32] {
        let start = word as usize + HEADER;
        &self.cells[start..start + self.cells[word as usize + 1] as usize]
    }

    fn count(&self, word: Word) -> u64 {
        let word = word as usize;
        u64::from(self.cells[word + 2]) | u64::from(self.cells[word + 3]) << 32
    }

    /// Where a pair first occurs in a word, as a number that grows from word to word and from byte
    /// to byte.
    pub(super) fn place(&self, word: Word, pair: (u32, u32)) -> Option<u64> {
        let ids = self.ids(word);
        let at = position(ids, pair)?;
        let bytes = ids[..at].iter().map(|&id| u64::from(self.token_lengths[id as usize]));
        Some(u64::from(word) << 32 | bytes.sum::<u64>())
    }

    /// Merge the pair of `changes` in all these words and add what that changes.
    pub(super) fn merge_all(&mut self, words: &[Word], changes: &mut Changes) {
        for (index, &word) in words.iter().enumerate() {
            if let Some(&later) = words.get(index + AHEAD) {
                prefetch(&self.cells, later as usize);
            }
            self.merge(word, changes);
        }
    }

    /// Merge the pair in one word, from left to right.
    fn merge(&mut self, word: Word, changes: &mut Changes) {
        let Some(first) = position(self.ids(word), changes.pair) else { return };
        let count = self.count(word);
        let start = word as usize + HEADER;
        let length = self.cells[word as usize + 1] as usize;
        let ids = &mut self.cells[start..start + length];
        let (mut read, mut write) = (first, first);
        while read < length {
            if read + 1 < length && (ids[read], ids[read + 1]) == changes.pair {
                let before = write.checked_sub(1).map(|at| ids[at]);
                changes.add(before, ids.get(read + 2).copied(), word, count);
                ids[write] = changes.new;
                read += 2;
            } else {
                ids[write] = ids[read];
                read += 1;
            }
            write += 1;
        }
        self.cells[word as usize + 1] = u32::try_from(write).expect("shorter than before");
    }

    /// How many ids there are.
    pub(super) fn vocab_size(&self) -> usize {
        self.token_lengths.len()
    }

    /// How often a pair occurs, by looking at every word.
    pub(super) fn count_pair(&self, pair: (u32, u32)) -> u64 {
        let occurrences = |ids: &[u32]| ids.windows(2).filter(|w| (w[0], w[1]) == pair).count();
        self.iter().map(|(_, ids, count)| occurrences(ids) as u64 * count).sum()
    }

    /// The length in bytes of the token that a pair makes.
    pub(super) fn joined_length(&self, (left, right): (u32, u32)) -> u32 {
        self.token_lengths[left as usize] + self.token_lengths[right as usize]
    }

    /// Create the token of a pair; its id is the next one.
    pub(super) fn create(&mut self, pair: (u32, u32)) -> u32 {
        let id = u32::try_from(self.token_lengths.len()).expect("below 2^21 ids");
        self.token_lengths.push(self.joined_length(pair));
        id
    }
}

/// Where a pair first stands.
#[inline]
fn position(ids: &[u32], (left, right): (u32, u32)) -> Option<usize> {
    ids.windows(2).position(|ids| ids[0] == left && ids[1] == right)
}

fn halves(count: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
    let halves = [count as u32, (count >> 32) as u32];
    halves
}

/// What one merge changes, summed by neighbour.
pub(super) struct Changes {
    pair: (u32, u32),
    new: u32,
    /// How many times the pair is merged.
    made: u64,
    /// Pairs of a token and the merged left part, which vanish.
    left_old: Sums,
    /// Pairs of the merged right part and a token, which vanish.
    right_old: Sums,
    /// Pairs of a token and the new token, which appear.
    left_new: Births,
    /// Pairs of the new token and a token, which appear.
    right_new: Births,
}

impl Changes {
    /// Arrays for ids below `vocab_size`.
    pub(super) fn new(vocab_size: usize) -> Self {
        Self {
            pair: (0, 0),
            new: 0,
            made: 0,
            left_old: Sums::new(vocab_size),
            right_old: Sums::new(vocab_size),
            left_new: Births::new(vocab_size),
            right_new: Births::new(vocab_size),
        }
    }

    /// Start anew with the merge of a pair into a new id; the former changes must be drained.
    pub(super) fn of_merge(&mut self, pair: (u32, u32), new: u32) {
        self.pair = pair;
        self.new = new;
        self.made = 0;
    }

    /// How many times the pair was merged. That is its count, but for a pair of two equal tokens,
    /// whose occurrences may overlap.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// The pair is merged between `before`, which is already rewritten, and `after`, which is not.
    fn add(&mut self, before: Option<u32>, after: Option<u32>, word: Word, count: u64) {
        self.made += count;
        if let Some(before) = before {
            if before == self.new {
                // The merge before this one counted its right neighbour, which is merged now.
                self.right_new.counts[self.pair.0 as usize] -= count;
            } else {
                self.left_old.add(before, count);
            }
            self.left_new.add(before, word, count);
        }
        if let Some(after) = after {
            self.right_old.add(after, count);
            self.right_new.add(after, word, count);
        }
    }

    /// Hand out each pair that lost occurrences, with how many, and forget it. The merged pair
    /// itself may be among them.
    pub(super) fn drain_deaths(&mut self, mut each: impl FnMut((u32, u32), u64)) {
        let (left, right) = self.pair;
        self.left_old.drain(|before, count| each((before, left), count));
        self.right_old.drain(|after, count| each((right, after), count));
    }

    /// Hand out each new pair with its count and its words, in order, and forget it.
    pub(super) fn drain_births(&mut self, mut each: impl FnMut((u32, u32), u64, &[Word])) {
        let new = self.new;
        self.left_new.drain(|before, count, words| each((before, new), count, words));
        self.right_new.drain(|after, count, words| each((new, after), count, words));
    }
}

/// A sum for each id, and which ids have one.
struct Sums {
    of: Vec<u64>,
    touched: Vec<u32>,
}

impl Sums {
    fn new(vocab_size: usize) -> Self {
        Self { of: vec![0; vocab_size], touched: Vec::new() }
    }

    /// Add a count, which is not 0.
    #[inline]
    fn add(&mut self, id: u32, count: u64) {
        let sum = &mut self.of[id as usize];
        if *sum == 0 {
            self.touched.push(id);
        }
        *sum += count;
    }

    fn drain(&mut self, mut each: impl FnMut(u32, u64)) {
        for id in self.touched.drain(..) {
            each(id, std::mem::take(&mut self.of[id as usize]));
        }
    }
}

/// A count and the words for each neighbour of the new token, and which neighbours there are.
struct Births {
    counts: Vec<u64>,
    /// In order, each word once.
    words: Vec<Vec<Word>>,
    touched: Vec<u32>,
}

impl Births {
    fn new(vocab_size: usize) -> Self {
        let words = vec![Vec::new(); vocab_size];
        Self { counts: vec![0; vocab_size], words, touched: Vec::new() }
    }

    fn add(&mut self, id: u32, word: Word, count: u64) {
        self.counts[id as usize] += count;
        let words = &mut self.words[id as usize];
        if words.is_empty() {
            self.touched.push(id);
        }
        if words.last() != Some(&word) {
            words.push(word);
        }
    }

    fn drain(&mut self, mut each: impl FnMut(u32, u64, &[Word])) {
        for id in self.touched.drain(..) {
            let words = &mut self.words[id as usize];
            each(id, std::mem::take(&mut self.counts[id as usize]), words);
            words.clear();
        }
    }
}
