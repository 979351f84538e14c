//! Encodes conversations to ids and a loss mask.
//!
//! A conversation arrives as ordered segments: texts, and ids placed by a template. Texts are
//! encoded as ordinary text, so that nothing in them becomes a special token. Each segment has a
//! flag: whether the model is trained on it. Its ids inherit the flag. Roles and tool calls are the
//! caller's responsibility.

use std::ops::Range;

use crate::encode::EncodeOptions;
use crate::encode::encoder::{Edges, EncodeCall};
use crate::error::Result;
use crate::memory;
use crate::parallel;
use crate::rules::PartStart;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

/// A piece of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'t> {
    /// Ordinary text.
    Text(&'t str),
    /// One id, usually of a special token.
    Id(u32),
    /// The end of a message: texts are not joined across it.
    End,
}

/// The concatenated ids of many conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The ids.
    pub ids: Vec<u32>,
    /// For each id, 1 if it is trained on, else 0.
    pub mask: Vec<u8>,
    /// The number of ids of each conversation.
    pub lengths: Vec<usize>,
}

impl Tokenizer {
    /// Render conversations on up to `threads` threads. Each conversation is a range of `segments`;
    /// `trained` has one entry for each segment. With `join`, adjacent texts are encoded as one; an
    /// id that covers both trained and untrained bytes then counts as trained.
    ///
    /// Fails if encoding a text fails.
    ///
    /// ```
    /// use bytepair::bulk::conversations::Segment::{Id, Text};
    /// # use bytepair::{Pattern, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [("<|bos|>".to_owned(), 256)])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let segments = [Id(256), Text("hi"), Text("yo")];
    /// let trained = [false, false, true];
    /// let rendered = tokenizer.render(&[0..3], &segments, &trained, false, 1)?;
    /// assert_eq!(rendered.ids, [256, 104, 105, 121, 111]);
    /// assert_eq!(rendered.mask, [0, 0, 0, 1, 1]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn render(
        &self,
        conversations: &[Range<usize>],
        segments: &[Segment<'_>],
        trained: &[bool],
        join: bool,
        threads: usize,
    ) -> Result<Rendered> {
        let weight = |range: &Range<usize>| segments[range.clone()].iter().map(weight).sum();
        let share = |share: Range<usize>| -> Result<Rendered> {
            let mut canvas = Canvas::new(self, join)?;
            for range in &conversations[share] {
                canvas.render(&segments[range.clone()], &trained[range.clone()])?;
            }
            Ok(canvas.out)
        };
        let share = &share;
        let shares = parallel::shares(conversations, threads.min(parallel::MAX_THREADS), weight);
        let parts = parallel::run(shares.into_iter().map(|range| move || share(range)));
        let mut parts = parts.into_iter();
        let mut all = parts.next().transpose()?.unwrap_or_default();
        for part in parts {
            let part = part?;
            memory::extend(&mut all.ids, &part.ids)?;
            memory::extend(&mut all.mask, &part.mask)?;
            memory::extend(&mut all.lengths, &part.lengths)?;
        }
        Ok(all)
    }
}

fn weight(segment: &Segment<'_>) -> usize {
    match segment {
        Segment::Text(text) => text.len(),
        Segment::Id(_) | Segment::End => 1,
    }
}

/// The output and the buffers of one thread.
struct Canvas<'k> {
    tokenizer: &'k Tokenizer,
    join: bool,
    message: &'k EncodeOptions,
    call: EncodeCall<'k>,
    out: Rendered,
    /// Adjacent texts to be encoded as one, with the span of each and whether it is trained on.
    text: String,
    spans: Vec<(Range<usize>, bool)>,
    /// The kind of content before the next text.
    before: PartStart,
}

impl<'k> Canvas<'k> {
    fn new(tokenizer: &'k Tokenizer, join: bool) -> Result<Self> {
        let (encoder, message) = tokenizer.encoder().of_messages()?;
        let (out, text, spans, before) = Default::default();
        Ok(Self { tokenizer, join, message, call: encoder.call(), out, text, spans, before })
    }

    fn render(&mut self, segments: &[Segment<'_>], trained: &[bool]) -> Result<()> {
        let start = self.out.ids.len();
        self.before = PartStart::Text;
        for (segment, &trained) in segments.iter().zip(trained) {
            match *segment {
                Segment::Text(text) if self.join => self.buffer(text, trained)?,
                Segment::Text(text) => self.encode(text, trained)?,
                Segment::Id(id) => {
                    self.flush()?;
                    self.push(id, trained)?;
                }
                Segment::End => self.flush()?,
            }
        }
        self.flush()?;
        memory::push(&mut self.out.lengths, self.out.ids.len() - start)
    }

    fn push(&mut self, id: u32, trained: bool) -> Result<()> {
        self.before = PartStart::Special;
        memory::push(&mut self.out.ids, id)?;
        memory::push(&mut self.out.mask, trained.into())
    }

    fn encode(&mut self, text: &str, trained: bool) -> Result<()> {
        let Self { message, call, out, before, .. } = self;
        let edges = Edges { start: *before, last: true };
        call.append_part(&Text::Utf8(text), message, edges, &mut out.ids)?;
        if !text.is_empty() {
            *before = PartStart::Inside;
        }
        let more = out.ids.len() - out.mask.len();
        memory::reserve(&mut out.mask, more)?;
        out.mask.resize(out.ids.len(), trained.into());
        Ok(())
    }

    fn buffer(&mut self, text: &str, trained: bool) -> Result<()> {
        if !text.is_empty() {
            memory::reserve_text(&mut self.text, text.len())?;
            let start = self.text.len();
            self.text.push_str(text);
            memory::push(&mut self.spans, (start..self.text.len(), trained))?;
        }
        Ok(())
    }

    /// Encode the buffered texts. An id is trained on if any of its bytes is.
    fn flush(&mut self) -> Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let first = self.out.ids.len();
        let text = std::mem::take(&mut self.text);
        let before = std::mem::replace(&mut self.before, PartStart::Inside);
        if self.call.encoder().normalizes() {
            let aligned = self.call.encode_aligned(&text, self.message, before)?;
            // A character that is composed of several has the span of the first, so an id covers
            // the text up to the next one.
            let starts = aligned.iter().skip(1).map(|next| next.span[0]).chain([text.len()]);
            for (aligned, next) in aligned.iter().zip(starts) {
                let [start, end] = aligned.span;
                memory::push(&mut self.out.ids, aligned.id)?;
                let trained = is_trained(&self.spans, start, end.max(next));
                memory::push(&mut self.out.mask, trained.into())?;
            }
        } else {
            self.encode(&text, false)?;
            self.tokenizer.check_lengths(&self.out.ids[first..], text.len())?;
            // The ids cover the text byte for byte, so the lengths of their tokens give their
            // places.
            let mut at = 0;
            for index in first..self.out.ids.len() {
                let end = at + self.tokenizer.token_bytes(self.out.ids[index])?.len();
                self.out.mask[index] = is_trained(&self.spans, at, end).into();
                at = end;
            }
        }
        self.text = text;
        self.text.clear();
        self.spans.clear();
        Ok(())
    }
}

/// Whether any byte between two positions is in a span that is trained on.
fn is_trained(spans: &[(Range<usize>, bool)], start: usize, end: usize) -> bool {
    // Spans are in order, so those before `start` are found by bisection.
    let first = spans.partition_point(|(span, _)| span.end <= start);
    let mut covering = spans[first..].iter().take_while(|(span, _)| span.start.max(start) < end);
    covering.any(|&(_, trained)| trained)
}

#[cfg(test)]
mod tests {
    use super::Segment::Text;
    use super::*;
    use crate::pretokenize::Pattern;
    use crate::rules::{Normalizer, NormalizerStep, TextRules};
    use crate::vocabulary::Vocabulary;
    use proptest::prelude::*;

    const BOS: u32 = 256;

    fn tokenizer() -> Tokenizer {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let tokens = bytes.chain([(b"ab".to_vec(), 257), (b"\n\n".to_vec(), 258)]);
        let vocabulary = Vocabulary::new(tokens, [("<b>".to_owned(), BOS)]).expect("valid");
        Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2").unwrap()).expect("valid")
    }

    fn render(segments: &[(Segment<'_>, bool)], join: bool) -> Rendered {
        let (parts, trained): (Vec<_>, Vec<_>) = segments.iter().copied().unzip();
        let all = 0..parts.len();
        tokenizer().render(&[all], &parts, &trained, join, 1).expect("renders")
    }

    #[test]
    fn the_text_of_a_special_token_stays_text() {
        for join in [false, true] {
            let rendered =
                render(&[(Text("<b>"), false), (Text("<"), true), (Text("b>"), true)], join);
            assert!(!rendered.ids.contains(&BOS));
        }
    }

    #[test]
    fn adjacent_texts_join_only_on_request() {
        let segments = [(Text("xa"), false), (Text("b"), true), (Text("c"), false)];
        let apart = render(&segments, false);
        assert_eq!(apart.ids, [120, 97, 98, 99]);
        assert_eq!(apart.mask, [0, 0, 1, 0]);
        let joined = render(&segments, true);
        assert_eq!(joined.ids, [120, 257, 99]);
        assert_eq!(joined.mask, [0, 1, 0]);
    }

    #[test]
    fn normalized_texts_join() {
        let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
        let vocabulary = Vocabulary::new(bytes.chain([("é".into(), 256)]), []).expect("valid");
        let normalizer = Normalizer { steps: vec![NormalizerStep::Nfc] };
        let rules = TextRules { normalizer, ..Pattern::from_regex(r"\S+|\s+").into() };
        let tokenizer = Tokenizer::from_ranks(vocabulary, rules).expect("valid");
        let segments = [Text("e\u{301}x"), Text("e"), Text("\u{301}y")];
        let all = 0..segments.len();
        for (trained, mask) in [
            ([false, true, false], [0, 0, 1, 0]),
            ([true, false, false], [1, 1, 0, 0]),
            ([false, false, true], [0, 0, 1, 1]),
        ] {
            let all = all.clone();
            let rendered = tokenizer.render(&[all], &segments, &trained, true, 1).unwrap();
            assert_eq!(rendered.ids, [256, 120, 256, 121]);
            assert_eq!(rendered.mask, mask);
        }
    }

    proptest! {
        #[test]
        fn threads_do_not_change_the_result(texts in prop::collection::vec("[ab\n<]{0,9}", 0..40)) {
            let segments: Vec<_> = texts.iter().map(|text| Text(text)).collect();
            let trained = vec![true; segments.len()];
            let each: Vec<_> = (0..segments.len()).map(|i| i..i + 1).collect();
            let tokenizer = tokenizer();
            let render = |threads| {
                tokenizer.render(&each, &segments, &trained, false, threads)
            };
            prop_assert_eq!(render(1), render(3));
        }
    }
}
