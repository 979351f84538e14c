//! Encodes a text that is normalized, with the span of each id in the original text.
//!
//! The [`Preparation`](super::prepare::Preparation) aligns each byte that is merged with the text. The
//! span of an id is that of its bytes; an id without bytes has the span of the last byte of its
//! pretoken. This is slower than encoding, so only what asks for spans uses it.

use crate::encode::encoder::EncodeCall;
use crate::encode::options::{EncodeOptions, TextOrId};
use crate::encode::prepare::{PreparedPart, PreparedText};
use crate::error::Result;
use crate::memory;
use crate::rules::PartStart;
use crate::rules::growth::TextGrowth;

/// An id and the text that it stands for.
pub(crate) struct AlignedId {
    pub(crate) id: u32,
    /// The start and the end of its text, in bytes.
    pub(crate) span: [usize; 2],
    /// What an added token was found as: its text, normalized if it was found in normalized text.
    /// `None` if the id comes from merging.
    pub(crate) name: Option<Box<str>>,
}

impl EncodeCall<'_> {
    /// The ids of a part of a text with their spans, without those that `options` add around it.
    ///
    /// Fails as [`append`](Self::append) does.
    pub(crate) fn encode_aligned(
        &mut self,
        text: &str,
        options: &EncodeOptions,
        start: PartStart,
    ) -> Result<Vec<AlignedId>> {
        let mut spans = Vec::new();
        let aligner = self.encoder().aligner()?;
        let mut growth = TextGrowth::of(text.len());
        options.divide_original(text, start, |part| match part {
            TextOrId::Id(id, range) => {
                let (span, name) = ([range.start, range.end], Some(text[range].into()));
                memory::push(&mut spans, AlignedId { id, span, name })
            }
            TextOrId::Text(part, start) => {
                let from = part.as_ptr().addr() - text.as_ptr().addr();
                let prepared = aligner.prepare(part, start, options.then.as_ref(), &mut growth)?;
                self.append_aligned(&prepared, from, &mut spans)
            }
        })?;
        Ok(spans)
    }

    /// Append the ids of prepared pretokens; the part begins at `from`.
    fn append_aligned(
        &mut self,
        prepared: &PreparedText,
        from: usize,
        spans: &mut Vec<AlignedId>,
    ) -> Result<()> {
        let shifted = |span: [u32; 2]| span.map(|at| from + at as usize);
        for part in &prepared.parts {
            let (start, ends) = match part {
                PreparedPart::Id(id, span, name) => {
                    let (span, name) = (shifted(*span), Some(name.clone()));
                    memory::push(spans, AlignedId { id: *id, span, name })?;
                    continue;
                }
                PreparedPart::Pretokens(start, ends) => (*start, ends),
            };
            let mut at = start;
            for &end in ends {
                for (id, size) in self.encode_pretoken(&prepared.bytes[at..end])? {
                    let first = at.min(end - 1);
                    at = (at + size).min(end);
                    let last = at.max(first + 1) - 1;
                    let span = [prepared.spans[first][0], prepared.spans[last][1]];
                    memory::push(spans, AlignedId { id, span: shifted(span), name: None })?;
                }
                at = end;
            }
        }
        Ok(())
    }
}
