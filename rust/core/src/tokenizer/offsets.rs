//! Spans of ids in their text, and truncation of a text to a number of ids.
//!
//! If no text is normalized, and no token takes white space, the concatenated bytes of the ids of a text
//! are the text. So the byte span of an id follows from the lengths of the ids before it; its character
//! span covers every character of which it has a byte. Otherwise the text is encoded with an alignment
//! (`EncodeCall::encode_aligned`), as in Hugging Face `tokenizers`.

use std::iter::repeat_n;

use crate::encode::encoder::EncodeCall;
use crate::encode::prepare::{PreparedPart, PreparedText};
use crate::encode::special::{self, EncodeOptions, TextOrId};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::interrupt;
use crate::rules::PartStart;
use crate::rules::growth::TextGrowth;
use crate::text::{Text, count_chars, starts_char};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::MergeRule;

/// How many spans are computed between two looks at whether to stop.
const IDS_BETWEEN_POLLS: usize = 1 << 14;

/// The ids of a text and their spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spans {
    /// The ids.
    pub ids: Vec<u32>,
    /// The start and the end of each id, in bytes of the text's UTF-8.
    pub bytes: Vec<[i64; 2]>,
    /// The start and the end of each id, in characters. If the text holds a character as a pair of
    /// surrogates, it counts as two: these are offsets in the text as it was passed.
    pub chars: Vec<[i64; 2]>,
}

/// The spans of a text, between those of the ids that `options` add before and after it.
fn framed(spans: Vec<[i64; 2]>, options: &EncodeOptions, end: i64) -> Vec<[i64; 2]> {
    let (before, after) = (options.prepend.len(), options.append.len());
    repeat_n([0; 2], before).chain(spans).chain(repeat_n([end; 2], after)).collect()
}

/// Which end of a truncated text to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The start.
    Start,
    /// The end.
    End,
}

impl Tokenizer {
    /// Encode a text with the spans of its ids. Ids that `options` add before and after the text
    /// have empty spans. If the post-processor trims offsets, spans leave out the spaces at the ends
    /// of their tokens. Fails as [`encode_with`](Self::encode_with) does.
    ///
    /// ```
    /// use bytepair::{Pattern, Text, Tokenizer, Vocabulary};
    /// # let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
    /// # let vocabulary = Vocabulary::new(bytes, [])?;
    /// # let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
    /// let spans = tokenizer.encode_with_spans(&Text::Utf8("aé"), tokenizer.plain())?;
    /// assert_eq!(spans.bytes, [[0, 1], [1, 2], [2, 3]]);
    /// assert_eq!(spans.chars, [[0, 1], [1, 2], [1, 2]]);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn encode_with_spans(&self, text: &Text<'_>, options: &EncodeOptions) -> Result<Spans> {
        let (mut buffer, pairs) = (String::new(), text.pairs()?);
        let text = text.read(&mut buffer)?;
        let mut spans = if self.is_aligned(options) {
            self.aligned_spans(text, options)?
        } else {
            self.covering_spans(text, options)?
        };
        for span in &mut spans.chars {
            *span = span.map(|at| at + number(pairs.partition_point(|&pair| pair < at)));
        }
        Ok(spans)
    }

    /// The spans where the bytes of ids are those of the text.
    fn covering_spans(&self, text: &str, options: &EncodeOptions) -> Result<Spans> {
        let mut spans = Spans::default();
        self.encoder().call().append(&Text::Utf8(text), options, &mut spans.ids)?;
        let covering = options.prepend.len()..spans.ids.len() - options.append.len();
        self.check_lengths(&spans.ids[covering.clone()], text.len())?;
        spans.bytes = memory::with_capacity(spans.ids.len())?;
        spans.chars = memory::with_capacity(spans.ids.len())?;
        // The rest of the text, and the number of characters that start before it.
        let (mut rest, mut chars) = (text.as_bytes(), 0);
        for (index, &id) in spans.ids.iter().enumerate() {
            if index % IDS_BETWEEN_POLLS == 0 {
                interrupt::poll_now()?;
            }
            let adds = !covering.contains(&index);
            let length = if adds { 0 } else { self.vocabulary().token_length(id) };
            let (token, after) = rest.split_at(length);
            let is_inside = token.first().is_some_and(|&byte| !starts_char(byte));
            let (start, first) = (text.len() - rest.len(), chars - usize::from(is_inside));
            chars += count_chars(token);
            spans.bytes.push([start, start + length].map(number));
            spans.chars.push([first, chars].map(number));
            rest = after;
        }
        Ok(spans)
    }

    /// Whether text is normalized, or some of its bytes are left out.
    fn changes_text(&self) -> bool {
        self.encoder().normalizes() || self.encoder().pretokens.uncovered.is_some()
    }

    /// Whether spans need an alignment: they do not follow from the lengths of ids.
    fn is_aligned(&self, options: &EncodeOptions) -> bool {
        let trims = self.rules().post_processor.trim_offsets.is_some();
        self.changes_text() || options.strips() || trims
    }

    /// The spans of ids that are aligned with the text.
    fn aligned_spans(&self, text: &str, options: &EncodeOptions) -> Result<Spans> {
        let aligned = self.encoder().call().encode_aligned(text, options, PartStart::Text)?;
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let character = |at: usize| number(starts.partition_point(|&start| start < at));
        let ids = aligned.iter().map(|aligned| aligned.id);
        let mut bytes: Vec<_> = aligned.iter().map(|aligned| aligned.span.map(number)).collect();
        let mut chars: Vec<_> = aligned.iter().map(|aligned| aligned.span.map(character)).collect();
        trim(self, &aligned, &mut bytes, &mut chars);
        let end = number(text.len());
        Ok(Spans {
            ids: options.prepend.iter().copied().chain(ids).chain(options.append.clone()).collect(),
            bytes: framed(bytes, options, end),
            chars: framed(chars, options, character(text.len())),
        })
    }

    /// Truncate a text to at most `most` ids; the text of special tokens counts as ordinary text.
    ///
    /// The result is the text of the first (or last) `most` ids, without incomplete characters. If
    /// that text, encoded by itself, has more ids, because it now ends within a token, it is
    /// truncated again in the same way. So the result always has at most `most` ids.
    #[doc(hidden)]
    pub fn truncate_text<'t>(&self, mut text: &'t str, most: usize, keep: Keep) -> Result<&'t str> {
        loop {
            let spans =
                self.first_spans(text, if keep == Keep::Start { most } else { usize::MAX })?;
            if spans.len() <= most {
                return Ok(text);
            }
            // Several ids may end with the text, so that keeping fewer need not make it shorter.
            let mut counts = (0..=most).rev();
            text = match keep {
                Keep::Start => {
                    let end = |count: usize| spans[..count].iter().map(|span| span[1]).max();
                    let end = counts.find_map(|count| end(count).filter(|&end| end < text.len()));
                    &text[..boundary((0..=end.unwrap_or(0)).rev(), text)]
                }
                Keep::End => {
                    let last = |count: usize| &spans[spans.len() - count..];
                    let start = |count| last(count).iter().map(|span| span[0]).min();
                    let start = counts.find_map(|count| start(count).filter(|&start| start > 0));
                    &text[boundary(start.unwrap_or(text.len())..=text.len(), text)..]
                }
            };
        }
    }

    /// The spans of the ids of a text, in bytes; perhaps only of the first ones, but of more than `most`.
    fn first_spans(&self, text: &str, most: usize) -> Result<Vec<[usize; 2]>> {
        let mut call = self.encoder().call();
        if self.changes_text() || !self.plain().finds_none() {
            let aligned = call.encode_aligned(text, self.plain(), PartStart::Text)?;
            return Ok(aligned.iter().map(|aligned| aligned.span).collect());
        }
        let ids = call.encode_beginning(text, most.saturating_add(1))?;
        let mut end = 0;
        let spans = ids.iter().map(|&id| {
            let start = end;
            end += self.vocabulary().token_length(id);
            [start, end]
        });
        let spans = memory::collect(spans)?;
        if end > text.len() { Err(Error::Contradiction) } else { Ok(spans) }
    }

    /// Fails unless the ids cover exactly `length` bytes; code that advances through a text by the
    /// lengths of its ids relies on it.
    pub(crate) fn check_lengths(&self, ids: &[u32], length: usize) -> Result<()> {
        let sum: usize = ids.iter().map(|&id| self.vocabulary().token_length(id)).sum();
        if sum == length { Ok(()) } else { Err(Error::Contradiction) }
    }
}

/// The first of the positions that is not inside a character.
fn boundary(mut positions: impl Iterator<Item = usize>, text: &str) -> usize {
    positions.find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn number(position: usize) -> i64 {
    i64::try_from(position).expect("a text in memory has fewer than 2^63 bytes")
}

/// What `ByteLevel` writes for a space in a name.
const SPACE: char = '\u{120}';

/// The spaces at one end of a name: the bytes and the characters of the text that they stand for.
type Spaces = [i64; 2];

/// Trim the spans of the ids of a text, in bytes and in characters, if the post-processor does that.
///
/// What counts is the name that `tokenizers` has for a token: the spaces of an ordinary token are
/// written as U+0120 or U+2581 there, and the name of an added token is the text as which it was found.
pub(super) fn trim(
    tokenizer: &Tokenizer,
    ids: &[AlignedId],
    bytes: &mut [[i64; 2]],
    chars: &mut [[i64; 2]],
) {
    let Some(keeps_first) = tokenizer.rules().post_processor.trim_offsets else { return };
    for (index, id) in ids.iter().enumerate() {
        let (mut before, after) = spaces(tokenizer, id);
        // The pre-tokenizer may have put a single space at the start of the text.
        if keeps_first && before[1] == 1 && (index == 0 || id.span[0] == 0) {
            before = [0; 2];
        }
        for (span, unit) in [(&mut bytes[index], 0), (&mut chars[index], 1)] {
            span[0] = span[1].min(span[0] + before[unit]);
            if span[1] >= after[unit] {
                span[1] = span[0].max(span[1] - after[unit]);
            }
        }
    }
}

/// The spaces at the start and at the end of the name of a token.
fn spaces(tokenizer: &Tokenizer, AlignedId { id, name, .. }: &AlignedId) -> (Spaces, Spaces) {
    let is_written = |c: char| c == SPACE || c.is_whitespace();
    if let Some(name) = name {
        return ends(name, is_written, char::len_utf8);
    }
    let bytes = tokenizer.vocabulary().bytes(*id).unwrap_or_default();
    let is_space = |c: char| match tokenizer.rule() {
        _ if tokenizer.rules().symbols.is_some() => is_written(c),
        MergeRule::Characters => c != ' ' && c.is_whitespace(),
        MergeRule::Ranks | MergeRule::Merges { .. } => c == ' ',
    };
    let size = |c: char| if c == SPACE { 1 } else { c.len_utf8() };
    ends(&String::from_utf8_lossy(bytes), is_space, size)
}

/// The spaces at the start and at the end of a name; each stands for `size` bytes.
fn ends(
    name: &str,
    is_space: impl Fn(char) -> bool,
    size: impl Fn(char) -> usize,
) -> (Spaces, Spaces) {
    let add = |[bytes, chars]: Spaces, c| [bytes + i64::try_from(size(c)).unwrap_or(0), chars + 1];
    let start = name.chars().take_while(|&c| is_space(c)).fold([0; 2], add);
    (start, name.chars().rev().take_while(|&c| is_space(c)).fold([0; 2], add))
}

// ---------------------------------------------------------------------------- aligned ids
//
// Encodes a text that is normalized, with the span of each id in the original text.
//
// The `Preparation` aligns each byte that is merged with the text. The span of an id is that of its
// bytes; an id without bytes has the span of the last byte of its pretoken. This is slower than
// encoding, so only what asks for spans uses it.

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
        special::divide(options.finder.as_deref(), text, start, |part| match part {
            TextOrId::Id(id, range) => {
                let (span, name) = ([range.start, range.end], Some(text[range].into()));
                memory::push(&mut spans, AlignedId { id, span, name })
            }
            TextOrId::Text(part, start) => {
                let from = part.as_ptr().addr() - text.as_ptr().addr();
                let prepared =
                    aligner.prepare(part, start, options.then.as_deref(), &mut growth)?;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Pattern, Special, Vocabulary};

    /// Tokens that start or end within characters.
    fn tokenizer() -> Tokenizer {
        let bytes = (0..=255u8).map(|byte| vec![byte]);
        let more: [&[u8]; 6] = [b"ab", b"\xa9a", b"\xb8\xad", b"b\xe4\xb8", b" the", b"abab"];
        let tokens = bytes.chain(more.map(<[u8]>::to_vec)).zip(0..);
        let vocabulary = Vocabulary::new(tokens, [("<s>".to_owned(), 300)]).unwrap();
        Tokenizer::from_ranks(vocabulary, Pattern::new("gpt4").unwrap()).unwrap()
    }

    proptest! {
        /// The expected characters of an id are found by testing every character of the text.
        #[test]
        fn spans_cover_the_bytes_and_characters_of_each_id(text in "[abé中😀 ]{0,30}") {
            let tokenizer = tokenizer();
            let options = tokenizer.options(&Special::None, &[300], &[65]).unwrap();
            let spans = tokenizer.encode_with_spans(&Text::Utf8(&text), &options).unwrap();
            prop_assert_eq!(&spans.ids, &tokenizer.encode_with(&text, &options).unwrap());
            let last = spans.ids.len() - 1;
            let whole = i64::try_from(text.chars().count()).unwrap();
            let size = number(text.len());
            prop_assert_eq!((spans.bytes[0], spans.chars[0]), ([0, 0], [0, 0]));
            prop_assert_eq!((spans.bytes[last], spans.chars[last]), ([size, size], [whole, whole]));
            let mut start = 0;
            for index in 1..last {
                let end = start + tokenizer.token_bytes(spans.ids[index]).unwrap().len();
                prop_assert_eq!(spans.bytes[index], [start, end].map(number));
                let touched = text.char_indices().enumerate().filter(|(_, (at, c))| {
                    *at < end && start < at + c.len_utf8()
                });
                let touched: Vec<usize> = touched.map(|(index, _)| index).collect();
                let chars = [touched[0], touched[touched.len() - 1] + 1].map(number);
                prop_assert_eq!(spans.chars[index], chars);
                start = end;
            }
        }

        /// Characters that the text holds as two units are two in the offsets.
        #[test]
        fn separated_pairs_count_as_two(text in "[ab中😀😁]{0,20}") {
            let tokenizer = tokenizer();
            let plain = tokenizer.plain();
            let units: Vec<u16> = text.encode_utf16().collect();
            let wide: Vec<u32> = units.iter().map(|&unit| u32::from(unit)).collect();
            let expected = tokenizer.encode_with_spans(&Text::Utf8(&text), plain).unwrap();
            let unit_at = |at: i64| -> i64 {
                let before = text.chars().take(usize::try_from(at).unwrap());
                number(before.map(char::len_utf16).sum())
            };
            for text in [Text::Utf16(&units), Text::Utf32(&wide)] {
                let spans = tokenizer.encode_with_spans(&text, plain).unwrap();
                prop_assert_eq!(&spans.bytes, &expected.bytes);
                let chars: Vec<[i64; 2]> =
                    expected.chars.iter().map(|span| span.map(unit_at)).collect();
                prop_assert_eq!(&spans.chars, &chars);
            }
        }

        /// The expected text is found by encoding and decoding whole texts.
        #[test]
        fn truncation_agrees_with_the_reference(text in "[abé中😀 the]{0,30}", most in 0usize..12) {
            let tokenizer = tokenizer();
            for keep in [Keep::Start, Keep::End] {
                let cut = tokenizer.truncate_text(&text, most, keep).unwrap();
                prop_assert!(tokenizer.encode(cut).unwrap().len() <= most);
                let mut expected = text.clone();
                loop {
                    let ids = tokenizer.encode(&expected).unwrap();
                    if ids.len() <= most { break; }
                    let kept = match keep {
                        Keep::Start => &ids[..most],
                        Keep::End => &ids[ids.len() - most..],
                    };
                    let mut bytes = tokenizer.decode_bytes(kept).unwrap();
                    while std::str::from_utf8(&bytes).is_err() {
                        bytes.remove(if keep == Keep::Start { bytes.len() - 1 } else { 0 });
                    }
                    expected = String::from_utf8(bytes).unwrap();
                }
                prop_assert_eq!(cut, expected);
            }
        }
    }
}
