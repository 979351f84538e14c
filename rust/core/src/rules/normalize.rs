//! Normalizes a text, step by step, with the spans of the original text.
//!
//! [`Form`](super::normalizer::Form) is the fast way for the usual normalizers, which need no spans. Source:
//! the normalizers of Hugging Face `tokenizers` 0.23.

use std::sync::LazyLock;

use regex_syntax::hir::ClassUnicode;
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};

use crate::error::Result;
use crate::memory;
use crate::rules::growth::TextGrowth;
use crate::rules::normalizer::{
    META, Normalizer, NormalizerStep, PartStart, ReplacePattern, class, has, is_younger,
};
use crate::search::Expression;

/// A normalizer, ready to use: each step, with the expression of what it replaces.
#[derive(Debug, Clone)]
pub(crate) struct CompiledNormalizer(Vec<(NormalizerStep, Option<Expression>)>);

/// Combining marks, as Unicode 9 has them.
static MARKS: LazyLock<ClassUnicode> = LazyLock::new(|| class(r"[\p{M}&&\p{Age=9.0}]"));

impl CompiledNormalizer {
    /// Fails if a regular expression does not compile. The bounds of the rules must have been checked.
    pub(crate) fn new(normalizer: &Normalizer) -> Result<Self> {
        let step = |step: &NormalizerStep| match step {
            NormalizerStep::Replace { pattern, .. } => {
                Ok((step.clone(), Some(Expression::new(&expression(pattern))?)))
            }
            _ => Ok((step.clone(), None)),
        };
        normalizer.steps.iter().map(step).collect::<Result<_>>().map(Self)
    }

    /// A name, normalized as a part of a text that follows an added token is.
    pub(crate) fn normalized(&self, name: &str, growth: &mut TextGrowth) -> Result<String> {
        let name = plain(&self.apply(aligned(name)?, PartStart::Special, growth)?);
        growth.end_part(name.len());
        Ok(name)
    }

    /// Normalize a part of a text. A part that continues ordinary text gets no prefix.
    ///
    /// Fails if a step makes too much of it, or if there is not enough memory.
    pub(crate) fn apply(
        &self,
        mut text: AlignedText,
        start: PartStart,
        growth: &mut TextGrowth,
    ) -> Result<AlignedText> {
        for (number, (step, expression)) in self.0.iter().enumerate() {
            growth.begin("normalizer", number, step.kind());
            if let (NormalizerStep::Replace { content, .. }, Some(expression)) = (step, expression)
            {
                text = replaced(&text, expression, content, growth)?;
            } else {
                text = plain_step(step, text, start)?;
                growth.add(utf8_bytes(&text))?;
            }
        }
        Ok(text)
    }
}

/// The regular expression of what is replaced.
fn expression(pattern: &ReplacePattern) -> String {
    match pattern {
        ReplacePattern::Literal(text) => regex_syntax::escape(text),
        ReplacePattern::Regex(regex) => regex.clone(),
    }
}

fn plain_step(
    step: &NormalizerStep,
    mut text: AlignedText,
    start: PartStart,
) -> Result<AlignedText> {
    match step {
        NormalizerStep::Nfc => normalized(&text, false, true),
        NormalizerStep::Nfkc => normalized(&text, true, true),
        NormalizerStep::Nfd => normalized(&text, false, false),
        NormalizerStep::Nfkd => normalized(&text, true, false),
        NormalizerStep::Lowercase => memory::collect(text.iter().flat_map(|&c| {
            c.character.to_lowercase().map(move |character| AlignedChar { character, ..c })
        })),
        NormalizerStep::StripAccents => {
            text.retain(|c| !has(&MARKS, c.character));
            Ok(text)
        }
        NormalizerStep::Strip { left, right } => Ok(stripped(text, *left, *right)),
        NormalizerStep::Prepend(before) if start != PartStart::Inside => {
            prepended(before.chars(), text)
        }
        NormalizerStep::Spaces(prefix) => {
            let adds = prefix.applies(text.first().map(|c| c.character), start);
            for c in text.iter_mut().filter(|c| c.character == META) {
                c.character = ' ';
            }
            prepended(adds.then_some(' '), text)
        }
        _ => Ok(text),
    }
}

/// A text without white space at its ends.
fn stripped(mut text: AlignedText, left: bool, right: bool) -> AlignedText {
    let is_space = |c: &&AlignedChar| c.character.is_whitespace();
    if right {
        text.truncate(text.len() - text.iter().rev().take_while(is_space).count());
    }
    let leading = if left { text.iter().take_while(is_space).count() } else { 0 };
    text.drain(..leading);
    text
}

/// A text with `content`, which has the span of the last character, for each match.
///
/// Fails if `growth` allows no more, or if there is not enough memory.
fn replaced(
    text: &[AlignedChar],
    expression: &Expression,
    content: &str,
    growth: &mut TextGrowth,
) -> Result<AlignedText> {
    let searchable = Searchable::new(text)?;
    let (mut result, mut at) = (memory::with_capacity(text.len())?, 0);
    for (range, is_match) in expression.parts(&searchable.text, &mut growth.time)? {
        let end = searchable.character(range.end);
        growth.add(if is_match { content.len() } else { range.len() })?;
        if is_match {
            let span = text[end - 1].span;
            memory::reserve(&mut result, content.len())?;
            result.extend(content.chars().map(|character| AlignedChar { character, span }));
        } else {
            memory::extend(&mut result, &text[at..end])?;
        }
        at = end;
    }
    Ok(result)
}

// ---------------------------------------------------------------------------- forms of Unicode
//
// A text whose characters know which part of the original text they stand for.
//
// Normalizers and pre-tokenizers change, drop and add characters. Each character keeps its *span* in
// the original text, so that every id has one, whatever was changed. The spans are those of Hugging
// Face `tokenizers`: a new character has the span of a neighbour.

/// A character of a changed text, and how it came about: with 0 it replaces the next character of the
/// text; with -n, the next one and n more after it; with 1 it is new, and has the span of the one
/// before it.
type ChangedChar = (char, i32);

/// The longest decomposition of a character, that of U+FDFA.
const MAX_DECOMPOSITION_CHARS: usize = 18;

/// The canonical or compatible decomposition of a text, or the composition of that. Characters that
/// are younger than the tables of `tokenizers` do not change, and divide the text.
fn normalized(text: &[AlignedChar], compatible: bool, composes: bool) -> Result<AlignedText> {
    let mut result = memory::with_capacity(text.len())?;
    for piece in text.split_inclusive(|c| is_younger(c.character)) {
        let old = match piece.split_last() {
            Some((last, before)) if is_younger(last.character) => before,
            _ => piece,
        };
        let mut changes = decomposed(old, compatible)?;
        if composes {
            changes = composed(changes)?;
        }
        memory::extend(&mut result, &changed(old, &changes)?)?;
        memory::extend(&mut result, &piece[old.len()..])?;
    }
    Ok(result)
}

fn changed(text: &[AlignedChar], changes: &[ChangedChar]) -> Result<AlignedText> {
    let mut at = 0;
    let aligned = |&(character, change): &ChangedChar| {
        if change > 0 {
            return AlignedChar { character, span: text[at - 1].span };
        }
        let span = text[at].span;
        at += 1 + change.unsigned_abs() as usize;
        AlignedChar { character, span }
    };
    memory::collect(changes.iter().map(aligned))
}

/// The canonical or compatible decomposition; marks in the order of their classes.
fn decomposed(text: &[AlignedChar], compatible: bool) -> Result<Vec<ChangedChar>> {
    let (mut result, mut marks_from) = (memory::with_capacity::<ChangedChar>(text.len())?, 0);
    for c in text {
        memory::reserve(&mut result, MAX_DECOMPOSITION_CHARS)?;
        let mut is_new = 0;
        let mut push = |part: char| {
            if canonical_combining_class(part) == 0 {
                in_order(&mut result[marks_from..]);
                marks_from = result.len() + 1;
            }
            result.push((part, is_new));
            is_new = 1;
        };
        if compatible {
            decompose_compatible(c.character, &mut push);
        } else {
            decompose_canonical(c.character, &mut push);
        }
    }
    in_order(&mut result[marks_from..]);
    Ok(result)
}

fn in_order(marks: &mut [ChangedChar]) {
    marks.sort_by_key(|(mark, _)| canonical_combining_class(*mark));
}

/// The composition of decomposed characters; one that is composed of several stands for all of them.
fn composed(characters: Vec<ChangedChar>) -> Result<Vec<ChangedChar>> {
    let mut result: Vec<ChangedChar> = memory::with_capacity(characters.len())?;
    let (mut starter, mut last_class): (Option<usize>, u8) = (None, 0);
    for (character, change) in characters {
        let class = canonical_combining_class(character);
        if let Some(at) = starter
            && (last_class < class || at + 1 == result.len())
            && let Some(both) = compose(result[at].0, character)
        {
            result[at] = (both, result[at].1 + change - 1);
            continue;
        }
        if class == 0 {
            starter = Some(result.len());
        }
        result.push((character, change));
        last_class = class;
    }
    Ok(result)
}

// ---------------------------------------------------------------------------- aligned text

/// A range of bytes of the original text.
pub(crate) type SourceSpan = [u32; 2];

/// A character, and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlignedChar {
    pub(crate) character: char,
    pub(crate) span: SourceSpan,
}

/// A text with spans.
pub(crate) type AlignedText = Vec<AlignedChar>;

/// Bytes of memory for each character of a text while it is changed: twice the character, its text and
/// its position.
pub(crate) const BYTES_PER_CHAR: usize = 40;

/// The characters of a text, each with its own span. Fails if there is not enough memory, or if the
/// text is longer than 4 GiB.
pub(crate) fn aligned(text: &str) -> Result<AlignedText> {
    let too_long = text.len() > u32::MAX as usize;
    memory::check(if too_long { usize::MAX } else { text.len().saturating_mul(BYTES_PER_CHAR) })?;
    let mut at = 0;
    let mut result = AlignedText::with_capacity(text.len());
    for character in text.chars() {
        let end = at + utf8_length(character);
        result.push(AlignedChar { character, span: [at, end] });
        at = end;
    }
    Ok(result)
}

/// The number of bytes of a character in UTF-8.
pub(crate) fn utf8_length(character: char) -> u32 {
    u32::try_from(character.len_utf8()).expect("at most 4")
}

/// The characters without their spans.
pub(crate) fn plain(text: &[AlignedChar]) -> String {
    text.iter().map(|c| c.character).collect()
}

/// The number of bytes of the characters in UTF-8.
pub(crate) fn utf8_bytes(text: &[AlignedChar]) -> usize {
    text.iter().map(|c| c.character.len_utf8()).sum()
}

/// A text after another, with the span of the first character; an empty text stays empty.
pub(crate) fn prepended(
    before: impl IntoIterator<Item = char>,
    text: AlignedText,
) -> Result<AlignedText> {
    let Some(&AlignedChar { span, .. }) = text.first() else { return Ok(text) };
    let new = before.into_iter().map(|character| AlignedChar { character, span });
    memory::collect(new.chain(text))
}

/// A text with its character positions, for searches in the text.
pub(crate) struct Searchable {
    pub(crate) text: String,
    /// The position in bytes of each character, and the end.
    starts: Vec<usize>,
}

impl Searchable {
    /// Fails if there is not enough memory.
    pub(crate) fn new(text: &[AlignedChar]) -> Result<Self> {
        memory::check(text.len().saturating_mul(BYTES_PER_CHAR))?;
        let mut at = 0;
        let mut starts = Vec::with_capacity(text.len() + 1);
        for c in text {
            starts.push(at);
            at += c.character.len_utf8();
        }
        starts.push(at);
        Ok(Self { text: plain(text), starts })
    }

    /// The position in bytes of a character.
    pub(crate) fn byte(&self, character: usize) -> usize {
        self.starts[character]
    }

    /// The character that begins at a byte.
    pub(crate) fn character(&self, byte: usize) -> usize {
        self.starts.partition_point(|&start| start < byte)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn normalize(steps: &[NormalizerStep], text: &str) -> AlignedText {
        let normalizer = Normalizer { steps: steps.to_vec() };
        let compiled = CompiledNormalizer::new(&normalizer).unwrap();
        let mut growth = TextGrowth::of(text.len());
        compiled.apply(aligned(text).unwrap(), PartStart::Text, &mut growth).unwrap()
    }

    proptest! {
        #[test]
        fn forms_are_those_of_unicode(text in "[aeé\u{301}\u{327}\u{345}ﬁ½한\u{1112}\u{1161}\u{11ab}İ각]{0,12}") {
            let by = |step| plain(&normalize(&[step], &text));
            prop_assert_eq!(by(NormalizerStep::Nfc), text.nfc().collect::<String>());
            prop_assert_eq!(by(NormalizerStep::Nfd), text.nfd().collect::<String>());
            prop_assert_eq!(by(NormalizerStep::Nfkc), text.nfkc().collect::<String>());
            prop_assert_eq!(by(NormalizerStep::Nfkd), text.nfkd().collect::<String>());
        }
    }

    #[test]
    fn changed_characters_keep_spans() {
        let spans = |steps: &[_], text| -> Vec<(char, crate::rules::normalize::SourceSpan)> {
            normalize(steps, text).iter().map(|c| (c.character, c.span)).collect()
        };
        assert_eq!(spans(&[NormalizerStep::Nfc], "e\u{301}b"), [('é', [0, 1]), ('b', [3, 4])]);
        let strip = NormalizerStep::Strip { left: true, right: true };
        assert_eq!(spans(&[strip], " \ta b\n"), [('a', [2, 3]), (' ', [3, 4]), ('b', [4, 5])]);
        let pattern = ReplacePattern::Regex(r"\s+".to_owned());
        let replace = NormalizerStep::Replace { pattern, content: "--".to_owned() };
        let expected = [('-', [2, 3]), ('-', [2, 3]), ('x', [3, 4])];
        assert_eq!(spans(std::slice::from_ref(&replace), " \n\tx")[..2], expected[..2]);
        let lower = NormalizerStep::Lowercase;
        assert_eq!(spans(&[lower], "İ"), [('i', [0, 2]), ('\u{307}', [0, 2])]);
        let prepend = NormalizerStep::Prepend("__".to_owned());
        assert_eq!(spans(&[prepend], "a"), [('_', [0, 1]), ('_', [0, 1]), ('a', [0, 1])]);
        assert_eq!(spans(&[NormalizerStep::StripAccents], "e\u{301}"), [('e', [0, 1])]);
    }
}
