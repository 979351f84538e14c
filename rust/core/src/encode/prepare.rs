//! Prepares a part of a text with any normalizer and pre-tokenizer: its pretokens, with their
//! spans.
//!
//! This is the general way from text to pretokens, which changes text step by step. Most tokenizers
//! need it only for offsets in a normalized text: a [`Splitter`](crate::pretokenize::Splitter) on the
//! text, or on its [`Form`](crate::rules::normalizer::Form), gives the same pretokens much faster.

use crate::encode::pretoken::Uncovered;
use crate::encode::special::AddedFinder;
use crate::error::Result;
use crate::memory;
use crate::pretokenize::pieces::CompiledPreTokenizer;
use crate::rules::growth::TextGrowth;
use crate::rules::normalize::{
    AlignedText, CompiledNormalizer, Searchable, SourceSpan, aligned, utf8_bytes,
};
use crate::rules::{PartStart, PreTokenizerStep, TextRules, pre_tokenizer};

/// A normalizer and a pre-tokenizer, ready to use.
#[derive(Debug)]
pub(crate) struct Preparation {
    normalizer: CompiledNormalizer,
    pre_tokenizer: CompiledPreTokenizer,
    /// Whether pieces consist of GPT-2's characters for the bytes that are merged.
    maps_bytes: bool,
    uncovered: Option<Uncovered>,
}

/// The pretokens of a part of a text, and the added tokens between them.
#[derive(Debug, Default)]
pub(crate) struct PreparedText {
    /// What is merged: the bytes of all pretokens, end to end.
    pub(crate) bytes: Vec<u8>,
    /// The span of each byte in the part.
    pub(crate) spans: Vec<SourceSpan>,
    pub(crate) parts: Vec<PreparedPart>,
}

/// Pretokens, or an added token between them.
#[derive(Debug)]
pub(crate) enum PreparedPart {
    /// The start of the first pretoken, and the end of each, in the bytes.
    Pretokens(usize, Vec<usize>),
    /// The id of an added token, its span in the part, and its text, normalized.
    Id(u32, SourceSpan, Box<str>),
}

impl PreparedText {
    /// Call `sink` with the bytes of each pretoken.
    pub(crate) fn for_each_pretoken(&self, mut sink: impl FnMut(&[u8])) {
        for part in &self.parts {
            let PreparedPart::Pretokens(start, ends) = part else { continue };
            let mut start = *start;
            for &end in ends {
                sink(&self.bytes[start..end]);
                start = end;
            }
        }
    }
}

impl Preparation {
    /// Fails if a regular expression does not compile.
    pub(crate) fn new(rules: &TextRules, uncovered: Option<Uncovered>) -> Result<Self> {
        let is_mapping =
            |step: &PreTokenizerStep| matches!(step, PreTokenizerStep::ByteLevel { .. });
        let maps = rules.pre_tokenizer.steps.iter().any(is_mapping);
        Ok(Self {
            normalizer: CompiledNormalizer::new(&rules.normalizer)?,
            pre_tokenizer: CompiledPreTokenizer::new(&rules.pre_tokenizer)?,
            // Symbols have the names of tokens, which consist of these characters too.
            maps_bytes: maps && rules.symbols.is_none(),
            uncovered,
        })
    }

    /// The name of an added token, normalized.
    pub(crate) fn normalized(&self, name: &str, growth: &mut TextGrowth) -> Result<String> {
        self.normalizer.normalized(name, growth)
    }

    /// The pretokens of a part of a text, and the added tokens that `finder` finds in it once it is
    /// normalized. `growth` is that of the whole text.
    ///
    /// Fails if a step makes too much of it, or if there is not enough memory.
    pub(crate) fn prepare(
        &self,
        part: &str,
        start: PartStart,
        finder: Option<&AddedFinder>,
        growth: &mut TextGrowth,
    ) -> Result<PreparedText> {
        let mut prepared = PreparedText::default();
        if part.is_empty() {
            return Ok(prepared);
        }
        let text = self.normalizer.apply(aligned(part)?, start, growth)?;
        let Some(finder) = finder else {
            self.split(text, start, &mut prepared, growth)?;
            return Ok(prepared);
        };
        let searchable = Searchable::new(&text)?;
        let (mut done, mut start) = (0, start);
        for token in finder.find(&searchable.text) {
            let token = token?;
            let [from, to] = [token.start, token.end].map(|at| searchable.character(at));
            if done < from {
                self.split(memory::copy(&text[done..from])?, start, &mut prepared, growth)?;
            }
            if from < to {
                let span = [text[from].span[0], text[to - 1].span[1]];
                let name: String = text[from..to].iter().map(|c| c.character).collect();
                prepared.parts.push(PreparedPart::Id(token.id, span, name.into()));
            }
            done = to;
            // What follows may come from the start of the text too, which its spans say.
            if start == PartStart::Inside {
                start = PartStart::Special;
            }
        }
        self.split(memory::copy(&text[done..])?, start, &mut prepared, growth)?;
        Ok(prepared)
    }

    fn split(
        &self,
        text: AlignedText,
        start: PartStart,
        prepared: &mut PreparedText,
        growth: &mut TextGrowth,
    ) -> Result<()> {
        let pieces = self.pre_tokenizer.split(text, start, growth)?;
        let bytes = utf8_bytes(&pieces.text);
        growth.end_part(bytes);
        memory::reserve(&mut prepared.bytes, bytes)?;
        memory::reserve(&mut prepared.spans, bytes)?;
        let (first, mut ends) = (prepared.bytes.len(), memory::with_capacity(pieces.ranges.len())?);
        for range in pieces.ranges {
            for c in &pieces.text[range] {
                let byte = pre_tokenizer::byte(c.character).filter(|_| self.maps_bytes);
                self.push_bytes(c.character, byte, &mut prepared.bytes)?;
                prepared.spans.resize(prepared.bytes.len(), c.span);
            }
            if ends.last().unwrap_or(&first) < &prepared.bytes.len() {
                ends.push(prepared.bytes.len());
            }
        }
        prepared.parts.push(PreparedPart::Pretokens(first, ends));
        Ok(())
    }

    /// Append the byte that a character stands for, or its own bytes.
    #[inline]
    fn push_bytes(&self, character: char, byte: Option<u8>, out: &mut Vec<u8>) -> Result<()> {
        let mut buffer = [0; 4];
        let bytes = match byte {
            Some(byte) => {
                buffer[0] = byte;
                &buffer[..1]
            }
            None => character.encode_utf8(&mut buffer).as_bytes(),
        };
        match &self.uncovered {
            Some(uncovered) => out.extend_from_slice(&uncovered.without(bytes)?),
            None => out.extend_from_slice(bytes),
        }
        Ok(())
    }
}
