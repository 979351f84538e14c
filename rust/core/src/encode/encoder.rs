//! Encodes text into ids: the vocabulary, the splitter, the merger, the caches and the scratch pool
//! in one value.
//!
//! A text is divided at its special tokens, if the caller asks for that, and then into repeated
//! chunks ([`Repeats`]). The rest is encoded in batches of pretokens: the splitter finds the ends
//! of a few hundred pretokens, [`sections`] divides long ones, [`lookup`] finds the ids in the
//! cache, [`misses`] resolves the others, and all ids are appended in order.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::encode::cache::SharedCache;
use crate::encode::lookup::{self, WINDOW_PRETOKENS};
use crate::encode::prepare::{Preparation, PreparedPart};
use crate::encode::pretoken::{self, PretokenEncoder};
use crate::encode::repeats::{self, Chunk, Repeats};
use crate::encode::scratch::{
    Id, IdSink, PretokenScratch, Scratch, ScratchGuard, ScratchPool, WindowScratch,
};
use crate::encode::sections;
use crate::encode::special::{self, EncodeOptions, Special, TextOrId, is_blank};
use crate::error::Result;
use crate::memory;
use crate::merge::heap::SizedId;
use crate::pretokenize::{Pattern, Splitter};
use crate::rules::growth::TextGrowth;
use crate::rules::normalizer::{Form, Normalizer};
use crate::rules::{PartStart, SpacePrefix, TextRules};
use crate::text::Text;

/// This many bytes of text fill a cache that is one size below the largest.
const CACHE_FILLING_BYTES: usize = 64 << 20;

/// A vocabulary with its merge rule and text rules, ready to encode, and the caches: at most 48
/// MiB of pretokens, as much again while that table is replaced, and [`Repeats`].
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) pretokens: PretokenEncoder,
    pub(crate) rules: TextRules,
    /// The fast way to normalize, if the normalizer has one.
    form: Option<Form>,
    /// Splits text, unless there is a preparation; then it splits nothing.
    pub(crate) splitter: Splitter,
    /// The general way from text to pretokens, for rules without a fast one.
    preparation: Option<Box<Preparation>>,
    /// Built for the first offsets in a text that is normalized.
    aligner: OnceLock<Box<Preparation>>,
    /// Whether one search finds all added tokens.
    one_pass: bool,
    /// The options of a call without any.
    pub(crate) plain: EncodeOptions,
    message: EncodeOptions,
    /// Built for the first conversation; `None` if messages need no other encoder.
    of_messages: OnceLock<Option<Box<Self>>>,
    cache: SharedCache,
    repeats: Repeats,
    pool: ScratchPool,
}

/// A call of an encoder on one thread. Text is encoded only through this type, so scratch is never
/// used with another encoder.
pub(crate) struct EncodeCall<'e> {
    encoder: &'e Encoder,
    scratch: ScratchGuard<'e>,
    use_repeats: bool,
}

/// The pattern by which the text between added tokens is split as it is, or normalized in a fast way;
/// `None` if the rules need the general way.
fn fast_pattern(rules: &TextRules, one_pass: bool) -> Option<Pattern> {
    let is_fast = match Form::of_normalizer(&rules.normalizer) {
        None => rules.normalizer == Normalizer::default(),
        // The space is put before a part once all added tokens are cut out.
        Some(Form::Spaces(SpacePrefix::Missing | SpacePrefix::First)) => one_pass,
        Some(_) => true,
    };
    rules.pre_tokenizer.pattern().filter(|_| is_fast && rules.symbols.is_none())
}

/// What stands before a part of a text, and whether it includes the end; `options` may add ids at
/// the start and the end of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edges {
    pub(crate) start: PartStart,
    pub(crate) last: bool,
}

impl Edges {
    /// The edges of a whole text.
    pub(crate) const BOTH: Self = Self { start: PartStart::Text, last: true };
}

impl Encoder {
    /// Fails if a regular expression does not compile.
    pub(crate) fn new(pretokens: PretokenEncoder, rules: TextRules) -> Result<Self> {
        rules.check_bounds()?;
        let vocabulary = &pretokens.vocabulary;
        let one_pass = special::one_is_enough(vocabulary.added_tokens(), &rules.normalizer);
        let form = Form::of_normalizer(&rules.normalizer);
        let (splitter, preparation) = if let Some(pattern) = fast_pattern(&rules, one_pass) {
            (Splitter::new(&pattern)?, None)
        } else {
            let preparation = Preparation::new(&rules, pretokens.uncovered.clone())?;
            (Splitter::whole(), Some(Box::new(preparation)))
        };
        let normalizer = (!one_pass).then_some(&rules.normalizer);
        let options = |special| EncodeOptions::new(vocabulary, normalizer, &special, &[], &[]);
        Ok(Self {
            plain: options(Special::Text)?,
            message: options(Special::Message)?,
            pretokens,
            rules,
            form,
            splitter,
            preparation,
            aligner: OnceLock::new(),
            one_pass,
            of_messages: OnceLock::new(),
            cache: SharedCache::default(),
            repeats: Repeats::new(repeats::DEFAULT_LIMIT),
            pool: ScratchPool::default(),
        })
    }

    /// The general way from text to pretokens, if the rules have no fast one.
    pub(crate) fn preparation(&self) -> Option<&Preparation> {
        self.preparation.as_deref()
    }

    /// The general way from text to pretokens, which gives spans. Fails if there is not enough memory.
    pub(crate) fn aligner(&self) -> Result<&Preparation> {
        if let Some(preparation) = &self.preparation {
            return Ok(preparation);
        }
        let uncovered = self.pretokens.uncovered.clone();
        let build = || Preparation::new(&self.rules, uncovered).map(Box::new);
        Ok(pretoken::get_or_build(&self.aligner, build)?)
    }

    /// Prepare options. Fails if `special` names an unknown special token.
    pub(crate) fn options(
        &self,
        special: &Special,
        prepend: &[u32],
        append: &[u32],
    ) -> Result<EncodeOptions> {
        let normalizer = (!self.one_pass).then_some(&self.rules.normalizer);
        EncodeOptions::new(&self.pretokens.vocabulary, normalizer, special, prepend, append)
    }

    /// Whether text may be changed before it is merged.
    pub(crate) fn normalizes(&self) -> bool {
        self.form.is_some() || self.preparation.is_some()
    }

    /// A part of a text, normalized, where there is no preparation.
    pub(crate) fn normalized<'t>(&self, part: &'t str, start: PartStart) -> Result<Cow<'t, str>> {
        self.form.map_or(Ok(Cow::Borrowed(part)), |form| form.of(part, start))
    }

    /// Whether normalization at most replaces and adds spaces.
    pub(crate) fn keeps_positions(&self) -> bool {
        self.preparation.is_none() && matches!(self.form, None | Some(Form::Spaces(_)))
    }

    /// Whether normalization never changes a character and never combines it with the text before
    /// it, for any surrounding text; true if texts are not normalized.
    pub(crate) fn separates(&self, character: char) -> bool {
        self.preparation.is_none() && self.form.is_none_or(|form| form.separates(character))
    }

    /// The encoder of the texts of a conversation, and the options. It does not find user-defined
    /// tokens with a visible character, for the reason that [`Special::Message`] gives: Gemma's
    /// `<start_of_turn>` is one in its SentencePiece model. Fails if there is not enough memory.
    pub(crate) fn of_messages(&self) -> Result<(&Self, &EncodeOptions)> {
        let other = pretoken::get_or_build(&self.of_messages, || {
            let Some(user_defined) = &self.pretokens.user_defined else { return Ok(None) };
            let vocabulary = &self.pretokens.vocabulary;
            let text = |id: &u32| vocabulary.bytes(*id).and_then(|text| str::from_utf8(text).ok());
            let blank = |id: &u32| text(id).is_some_and(is_blank);
            let blank: Vec<u32> = user_defined.ids.iter().copied().filter(blank).collect();
            if blank.len() == user_defined.ids.len() {
                return Ok(None);
            }
            let pretokens = self.pretokens.clone().with_user_defined(blank)?;
            Ok(Some(Box::new(Self::new(pretokens, self.rules.clone())?)))
        })?;
        let encoder = other.as_deref().unwrap_or(self);
        Ok((encoder, &encoder.message))
    }

    /// Announce about this many bytes of text, possibly in many calls: for much text, the cache takes
    /// its full size at once.
    pub(crate) fn expect(&self, bytes: usize) {
        if bytes >= CACHE_FILLING_BYTES {
            self.cache.grow_to_full_size();
        }
    }

    /// The limit on the bytes of repeated chunks.
    pub(crate) fn repeats(&self) -> usize {
        self.repeats.limit
    }

    /// This encoder with empty caches; repeated chunks take at most `limit` bytes.
    pub(crate) fn with_repeats(&self, limit: usize) -> Result<Self> {
        let repeats = Repeats::new(limit);
        Ok(Self { repeats, ..Self::new(self.pretokens.clone(), self.rules.clone())? })
    }

    /// Start a call.
    #[inline]
    pub(crate) fn call(&self) -> EncodeCall<'_> {
        let use_repeats = self.repeats.limit > 0;
        EncodeCall { encoder: self, scratch: self.pool.borrow(), use_repeats }
    }

    /// Append the ids of the pretokens between `start` and each of the ends, at most
    /// [`WINDOW_PRETOKENS`] of them, which are not divided; returns the last end.
    fn encode_pretokens(
        &self,
        text: &[u8],
        start: usize,
        ends: &[usize],
        PretokenScratch { lookup, misses, merge }: &mut PretokenScratch,
        out: &mut Vec<u32>,
    ) -> Result<usize> {
        let end = ends.last().copied().unwrap_or(start);
        // No pretoken has more ids than bytes.
        memory::reserve(out, end - start)?;
        lookup.look_up(&self.cache, self.pretokens.whole_tokens(), text, start, ends);
        misses.resolve(&self.pretokens, text, lookup)?;
        let mut next = lookup.append(text, start, ends, 0, out);
        while next < ends.len() {
            let pretoken = &text[lookup::range_of(start, ends, next)];
            lookup.append_one(pretoken, out, |out| self.pretokens.encode(pretoken, merge, out))?;
            next = lookup.append(text, start, ends, next + 1, out);
        }
        Ok(end)
    }
}

impl<'e> EncodeCall<'e> {
    /// The encoder of this call.
    pub(crate) fn encoder(&self) -> &'e Encoder {
        self.encoder
    }

    /// Do not look for repeats, for text that rarely repeats, such as a corpus.
    #[cfg(feature = "parquet")]
    pub(crate) fn without_repeats(mut self) -> Self {
        self.use_repeats = false;
        self
    }

    /// The parts of the scratch: what encodes, a buffer for ids, and one for text.
    #[inline]
    fn split(&mut self) -> (EncodeRun<'_>, &mut Vec<u32>, &mut String) {
        let Scratch { window, block, text } = &mut *self.scratch;
        (EncodeRun { encoder: self.encoder, window, use_repeats: self.use_repeats }, block, text)
    }

    /// Append the ids of a text, with `options`.
    ///
    /// Fails if the pattern fails on the text, if no token covers one of its bytes, or if the text
    /// contains a special token that `options` forbid.
    #[inline]
    pub(crate) fn append<T: Id>(
        &mut self,
        text: &Text<'_>,
        options: &EncodeOptions,
        out: &mut Vec<T>,
    ) -> Result<()> {
        self.append_part(text, options, Edges::BOTH, out)
    }

    /// As [`append`](Self::append), for a part of a text.
    #[inline]
    pub(crate) fn append_part<T: Id>(
        &mut self,
        text: &Text<'_>,
        options: &EncodeOptions,
        edges: Edges,
        out: &mut Vec<T>,
    ) -> Result<()> {
        let (mut run, ids, buffer) = self.split();
        let pass = &mut |ids: &[u32]| {
            memory::reserve(out, ids.len())?;
            out.extend(ids.iter().map(|&id| T::of(id)));
            Ok(())
        };
        run.encode(text.read(buffer)?, options, edges, &mut IdSink { ids, pass: Some(pass) })
    }

    /// Encode a text; its ids stay valid until the next call. A short text allocates nothing. Fails
    /// as [`append`](Self::append) does.
    #[inline]
    pub(crate) fn encode(&mut self, text: &Text<'_>, options: &EncodeOptions) -> Result<&[u32]> {
        let (mut run, ids, buffer) = self.split();
        ids.clear();
        let sink = &mut IdSink { ids, pass: None };
        run.encode(text.read(buffer)?, options, Edges::BOTH, sink)?;
        Ok(ids)
    }

    /// The ids of the start of a text, at least `enough` of them unless the text has fewer. The
    /// text of special tokens is encoded as ordinary text.
    pub(crate) fn encode_beginning(&mut self, text: &str, enough: usize) -> Result<&[u32]> {
        let (mut run, ids, _) = self.split();
        ids.clear();
        run.encode_windows(text, enough, &mut IdSink { ids, pass: None })?;
        Ok(ids)
    }

    /// The ids of bytes taken as one pretoken, whether or not the splitter would keep them
    /// together, each with the number of its bytes.
    ///
    /// Fails if no token covers one of the bytes, unless such bytes are left out.
    pub(crate) fn encode_pretoken(&mut self, pretoken: &[u8]) -> Result<Vec<SizedId>> {
        let scratch = &mut self.scratch.window.pretokens;
        self.encoder.pretokens.encode_sized(pretoken, &mut scratch.merge)
    }
}

/// An encoder with the buffers of a call.
struct EncodeRun<'a> {
    encoder: &'a Encoder,
    window: &'a mut WindowScratch,
    use_repeats: bool,
}

impl EncodeRun<'_> {
    /// Pass the ids of a part of a text to a sink, with the ids that `options` add at its edges.
    fn encode(
        &mut self,
        text: &str,
        options: &EncodeOptions,
        edges: Edges,
        sink: &mut IdSink<'_>,
    ) -> Result<()> {
        if edges.start == PartStart::Text && !options.prepend.is_empty() {
            sink.take(&options.prepend)?;
        }
        if options.finds_none() && !self.encoder.normalizes() {
            self.encode_text(text, sink)?;
        } else {
            self.encode_divided(text, options, edges.start, sink)?;
        }
        if edges.last && !options.append.is_empty() { sink.take(&options.append) } else { Ok(()) }
    }

    /// Pass the added tokens that `options` find in a text to a sink, and the ids of what is between
    /// them, in order.
    fn encode_divided(
        &mut self,
        text: &str,
        options: &EncodeOptions,
        start: PartStart,
        sink: &mut IdSink<'_>,
    ) -> Result<()> {
        let (encoder, mut growth) = (self.encoder, TextGrowth::of(text.len()));
        special::divide(options.finder.as_deref(), text, start, |part| {
            match (part, encoder.preparation()) {
                (TextOrId::Id(id, _), _) => sink.take(&[id]),
                (TextOrId::Text(part, start), Some(preparation)) => {
                    let prepared =
                        preparation.prepare(part, start, options.then.as_deref(), &mut growth)?;
                    prepared.parts.iter().try_for_each(|part| match part {
                        PreparedPart::Id(id, ..) => sink.take(&[*id]),
                        PreparedPart::Pretokens(start, ends) => {
                            self.encode_pretokens(&prepared.bytes, *start, ends, sink)
                        }
                    })
                }
                (TextOrId::Text(part, start), None) => {
                    let text = encoder.normalized(part, start)?;
                    special::divide(options.then.as_deref(), &text, start, |part| match part {
                        TextOrId::Id(id, _) => sink.take(&[id]),
                        TextOrId::Text(part, _) => self.encode_text(part, sink),
                    })
                }
            }
        })
    }

    /// Pass the ids of prepared pretokens to a sink; the first begins at `start`.
    fn encode_pretokens(
        &mut self,
        bytes: &[u8],
        mut start: usize,
        ends: &[usize],
        sink: &mut IdSink<'_>,
    ) -> Result<()> {
        for ends in ends.chunks(WINDOW_PRETOKENS) {
            let (scratch, out) = (&mut self.window.pretokens, sink.buffer());
            start = self.encoder.encode_pretokens(bytes, start, ends, scratch, out)?;
            sink.pass_on()?;
        }
        Ok(())
    }

    /// Pass the ids of ordinary text to a sink.
    fn encode_text(&mut self, text: &str, sink: &mut IdSink<'_>) -> Result<()> {
        // Messages are shorter than a chunk, and looking for chunks would make them a tenth slower.
        if !self.use_repeats || text.len() < repeats::MIN_LOOKUP_BYTES {
            return self.encode_windows(text, usize::MAX, sink);
        }
        let Encoder { repeats, splitter, .. } = self.encoder;
        repeats.divide(splitter, text, |chunk| match chunk {
            Chunk::Cached(chunk) => sink.take(&chunk.ids),
            Chunk::New(text) => self.encode_windows(text, usize::MAX, sink),
            Chunk::Repeated(text) => {
                let ids = sink.buffer();
                let before = ids.len();
                self.encode_windows(text, usize::MAX, &mut IdSink { ids, pass: None })?;
                repeats.keep(text, &ids[before..]);
                sink.pass_on()
            }
        })
    }

    /// Pass the ids of ordinary text to a sink, a window of pretokens at a time, until it has `enough`.
    #[inline]
    fn encode_windows(&mut self, text: &str, enough: usize, sink: &mut IdSink<'_>) -> Result<()> {
        let (encoder, bytes) = (self.encoder, text.as_bytes());
        let WindowScratch { ends, sections, pretokens } = &mut *self.window;
        let mut start = 0;
        while start < bytes.len() && sink.ids.len() < enough {
            encoder.splitter.fill(text, start, ends)?;
            let (ends, out) = (ends.as_slice(), sink.buffer());
            let end = ends.last().copied().unwrap_or(start);
            let mut next = start;
            let encode = |ends: &[usize]| {
                next = encoder.encode_pretokens(bytes, next, ends, pretokens, out)?;
                Ok(())
            };
            if sections::may_divide(&bytes[start..end]) {
                sections::divide(&encoder.pretokens, bytes, start, ends, sections, encode)?;
            } else {
                ends.chunks(WINDOW_PRETOKENS).try_for_each(encode)?;
            }
            sink.pass_on()?;
            start = end;
        }
        Ok(())
    }
}
