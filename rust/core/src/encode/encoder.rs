//! Text in, ids out: everything that encoding needs, in one value.
//!
//! A text is divided at its special tokens, if the caller asks for that, then at chunks that came
//! before ([`Repeats`]), and the rest is encoded a window at a time: the splitter finds the ends of
//! a few hundred pretokens, [`Lookup`] finds their ids in the cache, [`Misses`] finds those of the
//! others, and all are appended in order.

use crate::encode::lookup::{self, Lookup, PretokenCache, WINDOW};
use crate::encode::misses::Misses;
use crate::encode::options::{EncodeOptions, TextOrId};
use crate::encode::pretoken::PretokenEncoder;
use crate::encode::repeats::{self, Chunk, Repeats};
use crate::encode::scratch_pool::{Pooled, ScratchGuard, ScratchPool};
use crate::encode::sections::{SectionCache, Sections};
use crate::encode::sink::{Append, Blocks, Id, IdSink};
use crate::error::Result;
use crate::memory;
use crate::merge::queue::MergeScratch;
use crate::pretokenize::{Pattern, PretokenEnds, Splitter};
use crate::text::Text;

/// So many bytes of text fill the cache beyond the last size before the largest.
const MUCH: usize = 64 << 20;

/// A buffer that grew larger than this, in bytes or ids, is freed after the call.
const KEPT: usize = 1 << 20;

/// A vocabulary with its merge rule and split pattern, ready to encode, and what it has encoded: at
/// most 48 MiB of pretokens, as much again while that table is made anew, and [`Repeats`].
#[derive(Debug)]
pub(crate) struct Encoder {
    pretokens: PretokenEncoder,
    pattern: Pattern,
    splitter: Splitter,
    cache: PretokenCache,
    section_cache: SectionCache,
    repeats: Repeats,
    pool: ScratchPool<Scratch>,
}

/// The buffers of one call: 3 MiB, and the tables that it saw last of the caches.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    window: WindowScratch,
    /// Ids on their way.
    block: Vec<u32>,
    /// A text in UTF-8 that is stored otherwise.
    text: String,
}

/// What one window after the other reuses.
#[derive(Debug, Default)]
struct WindowScratch {
    lookup: Lookup,
    misses: Misses,
    sections: Sections,
    merge: MergeScratch,
    ends: Box<PretokenEnds>,
}

impl Pooled for Scratch {
    fn trim(&mut self) {
        if self.text.capacity() > KEPT {
            self.text = String::new();
        }
        if self.block.capacity() > KEPT {
            self.block = Vec::new();
        }
    }
}

/// A call of an encoder on one thread: only through it is text encoded, so scratch never meets
/// another encoder.
pub(crate) struct EncodeCall<'e> {
    encoder: &'e Encoder,
    scratch: ScratchGuard<'e, Scratch>,
    use_repeats: bool,
}

/// Whether a part of a text is its beginning and its end, where `options` may add ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edges {
    pub(crate) first: bool,
    pub(crate) last: bool,
}

impl Edges {
    /// Those of a whole text.
    pub(crate) const BOTH: Self = Self { first: true, last: true };
}

impl Encoder {
    /// Fails if the pattern does not compile.
    pub(crate) fn new(pretokens: PretokenEncoder, pattern: Pattern) -> Result<Self> {
        let splitter = Splitter::new(&pattern)?;
        let (cache, section_cache) = (PretokenCache::default(), SectionCache::default());
        let (repeats, pool) = (Repeats::new(repeats::DEFAULT_LIMIT), ScratchPool::default());
        Ok(Self { pretokens, pattern, splitter, cache, section_cache, repeats, pool })
    }

    pub(crate) fn pretokens(&self) -> &PretokenEncoder {
        &self.pretokens
    }

    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    pub(crate) fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Prepare for about this many bytes of text, perhaps in many calls: for much text the cache
    /// takes its full size at once.
    pub(crate) fn expect(&self, bytes: usize) {
        if bytes >= MUCH {
            self.cache.grow_to_full_size();
        }
    }

    /// The same encoder with empty caches, and with repeated chunks of at most `limit` bytes.
    pub(crate) fn with_repeats(&self, limit: usize) -> Result<Self> {
        let repeats = Repeats::new(limit);
        Ok(Self { repeats, ..Self::new(self.pretokens.clone(), self.pattern.clone())? })
    }

    /// Begin a call.
    #[inline]
    pub(crate) fn call(&self) -> EncodeCall<'_> {
        let use_repeats = self.repeats.limit() > 0;
        EncodeCall { encoder: self, scratch: self.pool.borrow(), use_repeats }
    }

    /// Append the ids of the pretokens of the next window of `text`, which begins at `start`;
    /// return where it ends.
    #[inline]
    fn encode_window(
        &self,
        text: &str,
        start: usize,
        scratch: &mut WindowScratch,
        out: &mut Vec<u32>,
    ) -> Result<usize> {
        self.splitter.fill(text, start, &mut scratch.ends)?;
        self.encode_pretokens(text.as_bytes(), start, scratch, out)
    }

    /// Append the ids of the pretokens between `start` and each of the ends; return the last end.
    fn encode_pretokens(
        &self,
        text: &[u8],
        mut start: usize,
        scratch: &mut WindowScratch,
        out: &mut Vec<u32>,
    ) -> Result<usize> {
        let WindowScratch { lookup, misses, sections, merge, ends } = scratch;
        for ends in ends.as_slice().chunks(WINDOW) {
            // No pretoken has more ids than bytes.
            memory::reserve(out, ends.last().map_or(0, |end| end - start))?;
            lookup.look_up(&self.cache, text, start, ends);
            misses.resolve(&self.pretokens, text, lookup)?;
            let mut next = lookup.append(text, start, ends, 0, out);
            while next < ends.len() {
                let pretoken = &text[lookup::range_of(start, ends, next)];
                if !lookup.append_one(pretoken, out) {
                    let before = out.len();
                    sections.encode(&self.section_cache, &self.pretokens, pretoken, merge, out)?;
                    lookup.put(pretoken, &out[before..]);
                }
                next = lookup.append(text, start, ends, next + 1, out);
            }
            start = ends.last().copied().unwrap_or(start);
        }
        Ok(start)
    }
}

impl EncodeCall<'_> {
    /// Encode text that hardly comes again, as that of a corpus: without looking for repeats.
    #[cfg(feature = "parquet")]
    pub(crate) fn without_repeats(mut self) -> Self {
        self.use_repeats = false;
        self
    }

    /// What encodes, a buffer for ids, and one for text.
    #[inline]
    fn split(&mut self) -> (Run<'_>, &mut Vec<u32>, &mut String) {
        let Scratch { window, block, text } = &mut *self.scratch;
        (Run { encoder: self.encoder, window, use_repeats: self.use_repeats }, block, text)
    }

    /// Append the ids of a text, as `options` ask.
    ///
    /// Fails if the pattern gives up on the text, if no token covers one of its bytes, or if
    /// `options` forbid a special token in it.
    #[inline]
    pub(crate) fn append<T: Id>(
        &mut self,
        text: &Text<'_>,
        options: &EncodeOptions,
        out: &mut Vec<T>,
    ) -> Result<()> {
        let (mut run, block, buffer) = self.split();
        run.encode(text.read(buffer)?, options, Edges::BOTH, &mut Append { out, block })
    }

    /// Encode a text; its ids stay until the next call. A short text allocates nothing. Fails as
    /// [`append`](Self::append) does.
    #[inline]
    pub(crate) fn encode(&mut self, text: &Text<'_>, options: &EncodeOptions) -> Result<&[u32]> {
        let (mut run, block, buffer) = self.split();
        block.clear();
        let sink = &mut Append { out: block, block: &mut Vec::new() };
        run.encode(text.read(buffer)?, options, Edges::BOTH, sink)?;
        Ok(block)
    }

    /// Call `sink` with the ids of a part of a text, some hundreds at a time. Fails as
    /// [`append`](Self::append) does.
    #[inline]
    pub(crate) fn for_each_block(
        &mut self,
        text: &Text<'_>,
        options: &EncodeOptions,
        edges: Edges,
        sink: impl FnMut(&[u32]) -> Result<()>,
    ) -> Result<()> {
        let (mut run, block, buffer) = self.split();
        run.encode(text.read(buffer)?, options, edges, &mut Blocks { block, call: sink })
    }

    /// The ids of the beginning of a text, at least `enough` of them unless it has fewer. Special
    /// tokens in it are text.
    pub(crate) fn encode_beginning(&mut self, text: &str, enough: usize) -> Result<&[u32]> {
        let (run, block, _) = self.split();
        let mut start = 0;
        block.clear();
        while start < text.len() && block.len() < enough {
            start = run.encoder.encode_window(text, start, run.window, block)?;
        }
        Ok(block)
    }

    /// The ids of one pretoken, whatever the splitter would make of its bytes.
    ///
    /// Fails if no token covers one of them.
    pub(crate) fn encode_pretoken(&mut self, pretoken: &[u8]) -> Result<Vec<u32>> {
        let mut ids = memory::with_room(pretoken.len())?;
        if !pretoken.is_empty() {
            let (encoder, scratch) = (&self.encoder.pretokens, &mut self.scratch.window.merge);
            encoder.encode(pretoken, scratch, &mut ids)?;
        }
        Ok(ids)
    }
}

/// An encoder with the buffers of a call.
struct Run<'a> {
    encoder: &'a Encoder,
    window: &'a mut WindowScratch,
    use_repeats: bool,
}

impl Run<'_> {
    /// Pass the ids of a part of a text to a sink, with those that `options` add at its edges.
    fn encode(
        &mut self,
        text: &str,
        options: &EncodeOptions,
        edges: Edges,
        sink: &mut impl IdSink,
    ) -> Result<()> {
        if let Some(id) = options.prepend.filter(|_| edges.first) {
            sink.take(&[id])?;
        }
        options.divide(text, |part| match part {
            TextOrId::Id(id) => sink.take(&[id]),
            TextOrId::Text(text) => self.encode_text(&self.encoder.pattern.normalized(text)?, sink),
        })?;
        options.append.filter(|_| edges.last).map_or(Ok(()), |id| sink.take(&[id]))
    }

    /// The same for ordinary text.
    fn encode_text(&mut self, text: &str, sink: &mut impl IdSink) -> Result<()> {
        // A message is shorter than a chunk, and is a tenth slower where chunks are looked for.
        if !self.use_repeats || text.len() < repeats::LEAST {
            return self.encode_windows(text, sink);
        }
        let Encoder { repeats, splitter, .. } = self.encoder;
        repeats.divide(splitter, text, |chunk| match chunk {
            Chunk::Cached(ids) => sink.take(ids),
            Chunk::New(text) => self.encode_windows(text, sink),
            Chunk::Repeated(text) => sink.make(|out| {
                let before = out.len();
                self.encode_windows(text, &mut Append { out, block: &mut Vec::new() })?;
                repeats.keep(text, &out[before..]);
                Ok(())
            }),
        })
    }

    /// Pass the ids of ordinary text to a sink, a window at a time.
    #[inline]
    fn encode_windows(&mut self, text: &str, sink: &mut impl IdSink) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            start = sink.make(|out| self.encoder.encode_window(text, start, self.window, out))?;
        }
        Ok(())
    }
}
