//! Text in, ids out.
//!
//! The text is split into pretokens; each pretoken is either a token as a whole or is merged from
//! its bytes. Most were met before, and what is [`known`] of them is looked up for many at a time. Those
//! that were not are looked up and merged [`together`]; long ones fall into pieces where no token goes
//! on ([`borders`]). Special tokens are cut out of the text first, and only if the caller asks for it.

mod aside;

mod borders;

mod buckets;

mod cache;

mod known;

mod merge;

mod near;

mod pairs;

mod parts;

mod passages;

mod ranks;

mod remembered;

mod runs;

mod slot;

mod special;

mod table;

mod together;

pub(crate) use borders::Borders;
pub(crate) use buckets::Buckets;
pub(crate) use pairs::{PairColumns, PairTable};
pub(crate) use remembered::Remembered;
pub use special::Special;
pub(crate) use special::known;

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::key::{Key, LONGEST};
use crate::pretokenize::{Ends, Splitter};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{MergeRule, Rule, Vocabulary};
use aside::LONGEST_KEPT;
use cache::{Cache, Shared};
use known::{Known, Met, WINDOW};
use merge::{ByteIds, MergeScratch};
use passages::{Part, Passages};
use special::SpecialFinder;
use together::Ahead;

/// No byte has this id.
const NO_ID: u32 = u32::MAX;

/// What encoding needs beside the vocabulary, derived from it once, and what it has met: 48 MiB at most, and as much
/// again while a table of that is made anew, and 32 MiB of passages that came again.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// The id of each byte, or `NO_ID`.
    byte_ids: ByteIds,
    /// Whether all bytes have ids.
    covers_all: bool,
    pairs: PairTable,
    /// Made when a long pretoken is met for the first time.
    borders: OnceLock<Borders>,
    /// Whether a pretoken that is a token wins outright.
    whole_first: bool,
    remembered: Option<Remembered>,
    /// The pretokens that were met, and the pieces of long ones.
    met: Met,
    met_pieces: MetPieces,
    passages: Passages,
}

/// What to do with special tokens, and which ids go before and after each text.
#[derive(Debug, Clone, Default)]
pub struct EncodeOptions {
    pub(crate) finder: Option<SpecialFinder>,
    pub(crate) prepend: Option<u32>,
    pub(crate) append: Option<u32>,
}

impl EncodeOptions {
    /// Prepare the options once for any number of texts.
    ///
    /// Fails if `special` names a special token that the vocabulary does not have.
    pub fn new(
        tokenizer: &Tokenizer,
        special: &Special,
        prepend: Option<u32>,
        append: Option<u32>,
    ) -> Result<Self> {
        let finder = SpecialFinder::new(tokenizer, special)?;
        Ok(Self { finder, prepend, append })
    }
}

/// Pieces of long pretokens that all threads have met: 4 MiB, and 2 aside.
type MetPieces = Shared<16, { 2 << 20 }>;
type Pieces = Cache<16, { 2 << 20 }>;

/// So many bytes of text teach more than the table before the largest holds.
const MUCH: usize = 64 << 20;

/// How many pieces are looked up together.
const PIECES: usize = 16;

/// What one thread reuses: 3 MiB, and the latest tables that it saw of what was met.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    known: Known,
    pieces: Pieces,
    merge: MergeScratch,
    ahead: Ahead,
    /// The ends of the pretokens that are worked on.
    ends: Box<Ends>,
}

impl Encoder {
    /// Derive the tables of a vocabulary and a merge rule.
    ///
    /// Fails if a listed merge names an id that does not exist or makes bytes that are no token.
    pub(crate) fn new(vocabulary: &Vocabulary, rule: &MergeRule) -> Result<Self> {
        let pairs = PairTable::new(vocabulary, rule, &byte_ids(vocabulary))?;
        Ok(Self::with(vocabulary, rule.kind(), pairs, None))
    }

    /// Know what is remembered from the beginning.
    pub(crate) fn remembering(self, remembered: Option<Remembered>) -> Self {
        Self { remembered, ..self }
    }

    pub(crate) fn remembered(&self) -> Option<&Remembered> {
        self.remembered.as_ref()
    }

    /// Take over the tables of a file.
    pub(crate) fn with(
        vocabulary: &Vocabulary,
        rule: Rule,
        pairs: PairTable,
        borders: Option<Borders>,
    ) -> Self {
        let byte_ids = byte_ids(vocabulary);
        let whole_first = rule != Rule::Merges { ignore_merges: false };
        let borders = borders.map_or_else(OnceLock::new, OnceLock::from);
        let covers_all = !byte_ids.contains(&NO_ID);
        let (remembered, met, met_pieces) = (None, Met::default(), MetPieces::default());
        let passages = Passages::default();
        Self {
            byte_ids,
            covers_all,
            pairs,
            borders,
            whole_first,
            remembered,
            met,
            met_pieces,
            passages,
        }
    }

    /// Be told that about so many bytes of text will be encoded.
    pub(crate) fn expect(&self, bytes: usize) {
        if bytes >= MUCH {
            self.met.expect_much();
        }
    }

    pub(crate) fn borders(&self, vocabulary: &Vocabulary) -> &Borders {
        self.borders.get_or_init(|| Borders::new(vocabulary))
    }

    pub(crate) fn pairs(&self) -> &PairTable {
        &self.pairs
    }

    /// Append the ids of `text` to `out`; special tokens in it are text.
    ///
    /// `scratch` must not have been used with another encoder.
    pub(crate) fn encode(
        &self,
        vocabulary: &Vocabulary,
        splitter: &Splitter,
        text: &str,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        // A message has no passages, and is a tenth slower where it is asked for them.
        if text.len() < passages::LEAST {
            return self.encode_new(vocabulary, splitter, text, scratch, out);
        }
        self.passages.divide(splitter, text, |part| {
            match part {
                Part::Known(ids) => out.extend_from_slice(ids),
                Part::New(text) => self.encode_new(vocabulary, splitter, text, scratch, out)?,
                Part::Again(text) => {
                    let before = out.len();
                    self.encode_new(vocabulary, splitter, text, scratch, out)?;
                    self.passages.keep(text, &out[before..]);
                }
            }
            Ok(())
        })
    }

    /// The same some ids at a time, which are passed to `sink` in order. `block` is a buffer.
    pub(crate) fn encode_blocks(
        &self,
        vocabulary: &Vocabulary,
        splitter: &Splitter,
        text: &str,
        scratch: &mut Scratch,
        block: &mut Vec<u32>,
        mut sink: impl FnMut(&[u32]),
    ) -> Result<()> {
        self.passages.divide(splitter, text, |part| {
            match part {
                Part::Known(ids) => sink(ids),
                Part::New(text) => {
                    let mut at = 0;
                    while at < text.len() {
                        block.clear();
                        at = self.encode_some(vocabulary, splitter, text, at, scratch, block)?;
                        sink(block);
                    }
                }
                Part::Again(text) => {
                    block.clear();
                    self.encode_new(vocabulary, splitter, text, scratch, block)?;
                    self.passages.keep(text, block);
                    sink(block);
                }
            }
            Ok(())
        })
    }

    /// Append the ids of `text`, whatever was met.
    #[inline]
    fn encode_new(
        &self,
        vocabulary: &Vocabulary,
        splitter: &Splitter,
        text: &str,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            start = self.encode_some(vocabulary, splitter, text, start, scratch, out)?;
        }
        Ok(())
    }

    /// Append the ids of the next pretokens of `text`, a few hundred at most, from `start` on, where a
    /// pretoken begins; return where the last of them ends.
    #[inline]
    pub(crate) fn encode_some(
        &self,
        vocabulary: &Vocabulary,
        splitter: &Splitter,
        text: &str,
        start: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<usize> {
        splitter.fill(text, start, &mut scratch.ends)?;
        self.encode_pretokens(vocabulary, text.as_bytes(), start, scratch, out)
    }

    /// Append the ids of the pretokens between `start` and each of the ends; return the last end.
    fn encode_pretokens(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        mut start: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> Result<usize> {
        let Scratch { known, pieces, merge, ahead, ends } = scratch;
        for ends in ends.as_slice().chunks(WINDOW) {
            known.look_up(&self.met, text, start, ends);
            self.foresee(vocabulary, text, known, ahead);
            let mut next = known.append(text, start, ends, 0, out);
            while next < ends.len() {
                let pretoken = &text[known::range_of(start, ends, next)];
                if !known.append_one(pretoken, out) {
                    let before = out.len();
                    self.encode_missed(vocabulary, pretoken, pieces, merge, out)?;
                    known.put(pretoken, &out[before..]);
                }
                next = known.append(text, start, ends, next + 1, out);
            }
            start = ends.last().copied().unwrap_or(start);
        }
        Ok(start)
    }

    /// Append the ids of a pretoken that is not in the cache.
    fn encode_missed(
        &self,
        vocabulary: &Vocabulary,
        pretoken: &[u8],
        pieces: &mut Pieces,
        merge: &mut MergeScratch,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if pretoken.len() <= LONGEST {
            return self.encode_pretoken(vocabulary, pretoken, merge, ids);
        }
        let mut ends = self.borders(vocabulary).ends(pretoken).peekable();
        if ends.peek() == Some(&pretoken.len()) {
            return self.encode_pretoken(vocabulary, pretoken, merge, ids);
        }
        let mut start = 0;
        while start < pretoken.len() {
            start = self.encode_pieces(pretoken, start, &mut ends, pieces, merge, ids)?;
        }
        Ok(())
    }

    /// Append the ids of the next few parts of a pretoken that are merged alone; return where they end.
    fn encode_pieces(
        &self,
        pretoken: &[u8],
        mut start: usize,
        ends: &mut impl Iterator<Item = usize>,
        pieces: &mut Pieces,
        merge: &mut MergeScratch,
        ids: &mut Vec<u32>,
    ) -> Result<usize> {
        // The memory of all is asked for before the first is looked at.
        pieces.prepare(&self.met_pieces);
        let (mut few, mut count, mut begin) = ([(0, Key::default(), 0); PIECES], 0, start);
        for (piece, end) in few.iter_mut().zip(ends) {
            let key = Key::of(pretoken, begin..end);
            *piece = (end, key, pieces.table().locate(key));
            (count, begin) = (count + 1, end);
        }
        for &(end, key, place) in &few[..count] {
            let piece = &pretoken[start..end];
            start = end;
            if !pieces.append(key, place, piece, ids) {
                let before = ids.len();
                self.merge(piece, merge, ids)?;
                if piece.len() <= LONGEST_KEPT {
                    pieces.put(key, place, piece, &ids[before..]);
                }
            }
        }
        Ok(start)
    }

    /// Encode one pretoken, whatever the splitter would make of its bytes.
    ///
    /// Fails if no token covers one of them.
    pub(crate) fn encode_alone(
        &self,
        vocabulary: &Vocabulary,
        pretoken: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encode_pretoken(vocabulary, pretoken, &mut scratch.merge, &mut ids)?;
        Ok(ids)
    }

    /// Append the ids of one pretoken.
    ///
    /// Fails if no token covers one of its bytes.
    fn encode_pretoken(
        &self,
        vocabulary: &Vocabulary,
        pretoken: &[u8],
        scratch: &mut MergeScratch,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if self.whole_first
            && let Some(id) = vocabulary.id(pretoken)
        {
            ids.push(id);
            return Ok(());
        }
        self.merge(pretoken, scratch, ids)
    }

    /// Append the ids to which bytes are merged. Fails if no token covers one of them.
    fn merge(&self, bytes: &[u8], scratch: &mut MergeScratch, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(byte) = self.uncovered(bytes) {
            return Err(Error::UncoveredByte { byte });
        }
        merge::merge(&self.pairs, &self.byte_ids, bytes, scratch, ids);
        Ok(())
    }

    /// The first byte that no token covers.
    fn uncovered(&self, bytes: &[u8]) -> Option<u8> {
        bytes.iter().copied().find(|&byte| self.byte_ids[usize::from(byte)] == NO_ID)
    }

    /// All pairs of ids that merge, in order of rank.
    pub(crate) fn merges(&self) -> Vec<(u32, u32)> {
        self.pairs.in_order()
    }
}

/// The ids of the single bytes, or `NO_ID`.
pub(crate) fn byte_ids(vocabulary: &Vocabulary) -> ByteIds {
    std::array::from_fn(|byte| vocabulary.id(&[byte.to_le_bytes()[0]]).unwrap_or(NO_ID))
}
