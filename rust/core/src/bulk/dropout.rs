//! Encodes training texts into one array of ids, with merges dropped at random (BPE-dropout).
//!
//! The random numbers of a text depend only on the seed and on the index of the text, so the ids
//! are the same for any number of threads. Nothing is cached, because each occurrence of a pretoken
//! has its own ids.

use std::ops::Range;

use crate::bulk::arrays::Arrays;
use crate::encode::encoder::TextPart;
use crate::encode::pretoken::PretokenPart;
use crate::encode::{EncodeOptions, Id};
use crate::error::{Error, Result};
use crate::merge::dropout::{self, DropoutRandom, MergeCandidates};
use crate::merge::heap::HeapMerge;
use crate::merge::symbols::Symbols;
use crate::rules::PartStart;
use crate::text::Text;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::MergeRule;
use crate::{memory, parallel};

/// Threads take chunks of texts of about this many units.
const CHUNK_UNITS: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };

/// How often a merge is dropped, and the seed of the random numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// Between 0 (never) and 1 (always).
    pub probability: f64,
    /// The seed of the random numbers; another seed gives other ids.
    pub seed: u64,
}

/// The inputs that all threads share.
struct DropoutEncoder<'a> {
    tokenizer: &'a Tokenizer,
    options: &'a EncodeOptions,
    candidates: MergeCandidates<'a>,
    symbols: Symbols,
    dropout: Dropout,
}

impl Tokenizer {
    /// Encode texts on up to `threads` threads into one array, with merges dropped at random.
    ///
    /// With a probability of 0, this is [`encode_arrays`](Self::encode_arrays). The errors are the
    /// same.
    ///
    /// ```
    /// use bytepair::bulk::dropout::Dropout;
    /// use bytepair::{Pattern, Text, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let tokens = bytes.chain([(b"ab".to_vec(), 256)]);
    /// # let vocabulary = Vocabulary::new(tokens, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let always = Dropout { probability: 1.0, seed: 7 };
    /// let options = tokenizer.plain();
    /// let arrays = tokenizer.encode_with_dropout::<u16>(&[Text::Utf8("ab")], options, always, 1)?;
    /// assert_eq!(arrays.ids, [97, 98]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn encode_with_dropout<T: Id>(
        &self,
        texts: &[Text<'_>],
        options: &EncodeOptions,
        dropout: Dropout,
        threads: usize,
    ) -> Result<Arrays<T>> {
        if dropout.probability == 0.0 {
            return self.encode_arrays(texts, options, threads);
        }
        if self.rules().symbols.is_some() {
            let reason = "dropout leaves out merges of bytes, and this tokenizer merges symbols with \
                          names";
            let place = "dropout".to_owned();
            return Err(Error::Unsupported { place, reason: reason.into() });
        }
        let candidates = match self.rule() {
            MergeRule::Ranks => MergeCandidates::Ranks(self.vocabulary()),
            MergeRule::Merges { .. } | MergeRule::Characters => {
                MergeCandidates::Merges(self.pairs()?)
            }
        };
        let symbols = Symbols::new(self.vocabulary(), self.rule())?;
        let encoder = DropoutEncoder { tokenizer: self, options, candidates, symbols, dropout };
        encoder.encode_all(texts, threads)
    }
}

impl DropoutEncoder<'_> {
    fn encode_all<T: Id>(&self, texts: &[Text<'_>], threads: usize) -> Result<Arrays<T>> {
        let total: usize = texts.iter().map(Text::len).sum();
        let chunks = parallel::shares(texts, 1 + total / CHUNK_UNITS, |text| text.len() + 1);
        let mut joined = Arrays { ids: Vec::new(), offsets: vec![0] };
        memory::reserve(&mut joined.offsets, texts.len())?;
        let encode = |heap: &mut HeapMerge, chunk: &Range<usize>| {
            self.encode_chunk::<T>(texts, chunk.clone(), heap)
        };
        let sink = |encoded: Option<Result<(Vec<T>, Vec<usize>)>>| {
            let Some(encoded) = encoded else { return Ok(()) };
            let (ids, ends) = encoded?;
            let before = joined.ids.len();
            let offset = |end: &usize| i64::try_from(before + end).expect("less than 2^63 ids");
            joined.offsets.extend(ends.iter().map(offset));
            memory::extend(&mut joined.ids, &ids)
        };
        let weight = |chunk: &Range<usize>| texts[chunk.clone()].iter().map(Text::len).sum();
        let threads = parallel::worth(threads, total);
        let state = HeapMerge::default;
        parallel::ordered(
            &chunks,
            threads,
            4 * threads * CHUNK_UNITS,
            weight,
            state,
            encode,
            sink,
        )?;
        Ok(joined)
    }

    /// The ids of the texts of a chunk, and the end of each text in them.
    fn encode_chunk<T: Id>(
        &self,
        texts: &[Text<'_>],
        chunk: Range<usize>,
        heap: &mut HeapMerge,
    ) -> Result<(Vec<T>, Vec<usize>)> {
        let (mut ids, mut ends) = (Vec::new(), memory::with_room(chunk.len())?);
        let (mut buffer, mut block) = (String::new(), Vec::new());
        for index in chunk {
            let text = texts[index].read(&mut buffer).map_err(|error| match error {
                Error::TextNotUtf8 { at, .. } => Error::TextNotUtf8 { document: index, at },
                other => other,
            })?;
            block.clear();
            let mut random = DropoutRandom::of_text(self.dropout.seed, index);
            self.encode_text(text, &mut random, heap, &mut block)?;
            memory::reserve(&mut ids, block.len())?;
            ids.extend(block.iter().map(|&id| T::of(id)));
            ends.push(ids.len());
        }
        Ok((ids, ends))
    }

    fn encode_text(
        &self,
        text: &str,
        random: &mut DropoutRandom,
        heap: &mut HeapMerge,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        memory::extend(out, &self.options.prepend)?;
        let encoder = self.tokenizer.encoder();
        encoder.divide(text, self.options, PartStart::Text, |part| match part {
            TextPart::Id(id) => memory::push(out, id),
            TextPart::Ordinary(part) => self.encode_ordinary(part, random, heap, out),
            TextPart::Pretokens(bytes, mut start, ends) => ends.iter().try_for_each(|&end| {
                let pretoken = &bytes[start..end];
                start = end;
                self.encode_pretoken(pretoken, random, heap, out)
            }),
        })?;
        memory::extend(out, &self.options.append)
    }

    fn encode_ordinary(
        &self,
        text: &str,
        random: &mut DropoutRandom,
        heap: &mut HeapMerge,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        // The splitter cannot be stopped, so after an error the other pretokens are passed over.
        let mut done = Ok(());
        self.tokenizer.splitter().for_each(text, |pretoken| {
            if done.is_ok() {
                done = self.encode_pretoken(pretoken.as_bytes(), random, heap, out);
            }
        })?;
        done
    }

    fn encode_pretoken(
        &self,
        pretoken: &[u8],
        random: &mut DropoutRandom,
        heap: &mut HeapMerge,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let mut drops = || random.happens(self.dropout.probability);
        let encoder = self.tokenizer.encoder();
        let uncovered = encoder.uncovered();
        let covered = uncovered.map(|uncovered| uncovered.without(pretoken));
        let pretoken = covered.as_deref().unwrap_or(pretoken);
        encoder.pretokens().divide(pretoken, |section| match section {
            PretokenPart::Id(id) => memory::push(out, id),
            PretokenPart::Text(text) => {
                dropout::merge(heap, self.candidates, &self.symbols, text, &mut drops, out)
            }
        })
    }
}
