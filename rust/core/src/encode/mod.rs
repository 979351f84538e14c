//! Text in, ids out.
//!
//! The text is split into pretokens; each pretoken is either a token as a whole or is merged from
//! its bytes. Most were met before, and their ids are remembered: short ones in the [`cache`], longer
//! ones in [`long`], if no token-free border ([`borders`]) divides them into pieces. Special tokens
//! are cut out of the text first, and only if the caller asks for it.

mod borders;

mod cache;

mod long;

mod merge;

mod pairs;

mod special;

mod together;

pub(crate) use borders::Borders;
pub(crate) use pairs::{PairColumns, PairTable};
pub use special::Special;
pub(crate) use special::known;

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::key::{Key, LONGEST};
use crate::pretokenize::{Ends, Splitter};
use crate::vocabulary::{MergeRule, Rule, Vocabulary};
use cache::Cache;
use long::{Kind, LongCache};
use merge::{ByteIds, MergeScratch};
use special::SpecialFinder;
use together::{Parts, TURNS};

/// No byte has this id.
const NO_ID: u32 = u32::MAX;

/// How many ids wait on the stack before they are appended.
const BUFFER: usize = 1024;

/// What encoding needs beside the vocabulary, derived from it once.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    /// The id of each byte, or `NO_ID`.
    byte_ids: ByteIds,
    pairs: PairTable,
    /// Made when a long pretoken is met for the first time.
    borders: OnceLock<Borders>,
    /// Whether a pretoken that is a token wins outright.
    whole_first: bool,
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
        vocabulary: &Vocabulary,
        special: &Special,
        prepend: Option<u32>,
        append: Option<u32>,
    ) -> Result<Self> {
        let finder = SpecialFinder::new(vocabulary, special)?;
        Ok(Self { finder, prepend, append })
    }
}

/// Short pretokens: 16 MiB, most of which waits in the last cache of the processor.
type Pretokens = Cache<18>;

/// Short pieces of long pretokens: 4 MiB.
type Pieces = Cache<16>;

/// What encoding remembers and reuses; one for each thread. It takes 32 MiB at most.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    cache: Pretokens,
    pieces: Pieces,
    /// Long pretokens and long pieces.
    long: LongCache,
    merge: MergeScratch,
    ahead: Ahead,
    /// The ends of the pretokens that are worked on.
    ends: Box<Ends>,
    /// The keys of those that are short, and their places in the cache.
    keys: Vec<Option<(Key, usize)>>,
    /// The ids of one pretoken.
    ids: Vec<u32>,
}

/// Short pretokens that are not in the cache and will soon be needed.
#[derive(Debug, Default)]
struct Ahead {
    parts: Vec<Parts>,
    /// Their keys and their places in the cache.
    keys: Vec<(Key, usize)>,
}

impl Ahead {
    /// Merge all side by side and put their ids into the cache.
    fn merge(&mut self, pairs: &PairTable, cache: &mut Pretokens, ids: &mut Vec<u32>) {
        together::merge(pairs, &mut self.parts);
        for (parts, (key, place)) in self.parts.drain(..).zip(self.keys.drain(..)) {
            ids.clear();
            parts.write(ids);
            cache.put(key, place, ids);
        }
    }
}

/// What is kept for long pretokens.
struct Kept<'a> {
    pieces: &'a mut Pieces,
    long: &'a mut LongCache,
    merge: &'a mut MergeScratch,
    ids: &'a mut Vec<u32>,
}

impl Kept<'_> {
    /// Append the ids of many bytes: those that are known, or else those that `find` puts into a
    /// buffer.
    fn long(
        &mut self,
        bytes: &[u8],
        kind: Kind,
        out: &mut Vec<u32>,
        find: impl FnOnce(&mut MergeScratch, &mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        let place = (bytes.len() <= long::LONGEST).then(|| LongCache::place(bytes));
        if let Some(ids) = place.and_then(|place| self.long.get(bytes, kind, place)) {
            out.extend_from_slice(ids);
            return Ok(());
        }
        self.ids.clear();
        find(self.merge, self.ids)?;
        if let Some(place) = place {
            self.long.put(bytes, kind, place, self.ids);
        }
        out.extend_from_slice(self.ids);
        Ok(())
    }
}

impl Encoder {
    /// Derive the tables of a vocabulary and a merge rule.
    ///
    /// Fails if a listed merge names an id that does not exist or makes bytes that are no token.
    pub(crate) fn new(vocabulary: &Vocabulary, rule: &MergeRule) -> Result<Self> {
        Ok(Self::with(vocabulary, rule.kind(), PairTable::new(vocabulary, rule)?, None))
    }

    /// Take over the tables of a file.
    pub(crate) fn with(
        vocabulary: &Vocabulary,
        rule: Rule,
        pairs: PairTable,
        borders: Option<Borders>,
    ) -> Self {
        let byte_ids =
            std::array::from_fn(|byte| vocabulary.id(&[byte.to_le_bytes()[0]]).unwrap_or(NO_ID));
        let whole_first = rule != Rule::Merges { ignore_merges: false };
        let borders = borders.map_or_else(OnceLock::new, OnceLock::from);
        Self { byte_ids, pairs, borders, whole_first }
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
        scratch.cache.prepare();
        scratch.pieces.prepare();
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
        let Scratch { cache, pieces, long, merge, ahead, ends, keys, ids } = scratch;
        locate(text, start, ends, cache, keys);
        // Whatever is known goes through a buffer on the stack: to copy four ids is quicker than to
        // ask how many there are.
        let mut buffer = [0; BUFFER];
        let (mut filled, mut foreseen) = (0, false);
        for (index, &end) in ends.as_slice().iter().enumerate() {
            let key = keys[index];
            let room = buffer[filled..].first_chunk_mut();
            let known = key.zip(room).and_then(|((key, place), room)| cache.get(key, place, room));
            if let Some(count) = known {
                filled += count;
            } else {
                out.extend_from_slice(&buffer[..filled]);
                filled = 0;
                let pretoken = &text[start..end];
                if let Some((key, place)) = key {
                    self.encode_pretoken(vocabulary, pretoken, merge, ids)?;
                    cache.put(key, place, ids);
                    out.extend_from_slice(ids);
                    if !foreseen {
                        foreseen = true;
                        let later = ends.as_slice()[index..].windows(2);
                        let later = later.map(|ends| &text[ends[0]..ends[1]]);
                        let later = later.zip(keys[index + 1..].iter().copied());
                        self.foresee(vocabulary, later, cache, ahead, ids);
                    }
                } else {
                    let mut kept = Kept { pieces, long, merge, ids };
                    self.encode_long(vocabulary, pretoken, &mut kept, out)?;
                }
            }
            start = end;
            if filled > BUFFER - LONGEST {
                out.extend_from_slice(&buffer[..filled]);
                filled = 0;
            }
        }
        out.extend_from_slice(&buffer[..filled]);
        Ok(start)
    }

    /// Put into the cache what of the next pretokens is not there.
    fn foresee<'t>(
        &self,
        vocabulary: &Vocabulary,
        pretokens: impl Iterator<Item = (&'t [u8], Option<(Key, usize)>)>,
        cache: &mut Pretokens,
        ahead: &mut Ahead,
        ids: &mut Vec<u32>,
    ) {
        for (pretoken, key) in pretokens {
            let Some((key, place)) = key.filter(|&(key, place)| !cache.has(key, place)) else {
                continue;
            };
            if let Some(id) = vocabulary.id_of_key(key).filter(|_| self.whole_first) {
                cache.put(key, place, &[id]);
            } else if self.uncovered(pretoken).is_none() {
                ahead.parts.push(Parts::new(&self.pairs, &self.byte_ids, pretoken));
                ahead.keys.push((key, place));
            }
            if ahead.parts.len() == TURNS {
                ahead.merge(&self.pairs, cache, ids);
            }
        }
        ahead.merge(&self.pairs, cache, ids);
    }

    /// Append the ids of a pretoken that has no key.
    fn encode_long(
        &self,
        vocabulary: &Vocabulary,
        pretoken: &[u8],
        kept: &mut Kept,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let borders = self.borders(vocabulary);
        let mut start = borders.next(pretoken, 0);
        if start == pretoken.len() {
            return kept.long(pretoken, Kind::Pretoken, out, |merge, ids| {
                self.encode_pretoken(vocabulary, pretoken, merge, ids)
            });
        }
        self.encode_piece(&pretoken[..start], kept, out)?;
        while start < pretoken.len() {
            let end = borders.next(pretoken, start);
            self.encode_piece(&pretoken[start..end], kept, out)?;
            start = end;
        }
        Ok(())
    }

    /// Append the ids of a part of a pretoken that is merged alone.
    fn encode_piece(&self, piece: &[u8], kept: &mut Kept, out: &mut Vec<u32>) -> Result<()> {
        if piece.len() > LONGEST {
            return kept.long(piece, Kind::Piece, out, |merge, ids| self.merge(piece, merge, ids));
        }
        let key = Key::new(piece, 0..piece.len());
        let place = kept.pieces.locate(key);
        let mut room = [0; LONGEST];
        if let Some(count) = kept.pieces.get(key, place, &mut room) {
            out.extend_from_slice(&room[..count]);
        } else {
            kept.ids.clear();
            self.merge(piece, kept.merge, kept.ids)?;
            kept.pieces.put(key, place, kept.ids);
            out.extend_from_slice(kept.ids);
        }
        Ok(())
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

    /// Put the ids of one pretoken into `ids`.
    ///
    /// Fails if no token covers one of its bytes.
    fn encode_pretoken(
        &self,
        vocabulary: &Vocabulary,
        pretoken: &[u8],
        scratch: &mut MergeScratch,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        ids.clear();
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

    /// The two ids that merge last when the bytes of token `id` are merged with lower ranks only,
    /// or `None` if they do not come down to two: then no merge makes this token.
    ///
    /// This is how the merges are recovered that a rank file does not hold.
    pub(crate) fn parents(&self, token: &[u8], id: u32) -> Option<(u32, u32)> {
        let byte_ids: Vec<u32> = token.iter().map(|&b| self.byte_ids[usize::from(b)]).collect();
        let parts = merge::merge_below(&self.pairs, byte_ids, id);
        <[u32; 2]>::try_from(parts).ok().map(|[left, right]| (left, right))
    }
}

/// Find out for each pretoken where the cache would have it, so that the memory is there when it is
/// looked at.
fn locate(
    text: &[u8],
    mut start: usize,
    ends: &Ends,
    cache: &Pretokens,
    keys: &mut Vec<Option<(Key, usize)>>,
) {
    keys.clear();
    keys.extend(ends.as_slice().iter().map(|&end| {
        let range = start..end;
        start = end;
        (range.len() <= LONGEST).then(|| {
            let key = Key::new(text, range);
            (key, cache.locate(key))
        })
    }));
}
