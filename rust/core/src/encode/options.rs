//! The options of encoding: added tokens in the text, and ids before and after it.

use std::ops::Range;

use crate::encode::special::{AddedFinder, Special};
use crate::error::Result;
use crate::rules::growth::TextGrowth;
use crate::rules::normalize::CompiledNormalizer;
use crate::rules::{Normalizer, PartStart};
use crate::vocabulary::Vocabulary;

/// How added tokens are encoded, and which ids precede and follow each text. Created by
/// [`Tokenizer::options`](crate::Tokenizer::options), which has an example.
#[derive(Debug, Clone)]
pub struct EncodeOptions {
    /// The added tokens that are found in the original text.
    pub(crate) finder: Option<AddedFinder>,
    /// Those that are found then, in what is left, once it is normalized.
    pub(crate) then: Option<AddedFinder>,
    pub(crate) prepend: Vec<u32>,
    pub(crate) append: Vec<u32>,
}

/// A part of a text: ordinary text and what precedes it, or an added token.
pub(crate) enum TextOrId<'a> {
    Text(&'a str, PartStart),
    /// The id, and the range of the text that it stands for. White space of this range may belong to
    /// the token before as well.
    Id(u32, Range<usize>),
}

impl EncodeOptions {
    /// Prepare options for any number of texts. `normalizer` is what normalizes the text of a second
    /// search, and the names of its tokens; without it, one search in the original text finds all.
    ///
    /// Fails if `special` names an unknown special token.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        normalizer: Option<&Normalizer>,
        special: &Special,
        prepend: &[u32],
        append: &[u32],
    ) -> Result<Self> {
        let names = normalizer.map(CompiledNormalizer::new).transpose()?;
        let contents = vocabulary.added_tokens().iter().map(|token| token.content.len());
        let mut growth = TextGrowth::of(contents.sum());
        let finder = AddedFinder::new(
            vocabulary,
            special,
            |token| normalizer.is_none() || !token.normalized,
            |token| Ok(token.content.clone()),
        )?;
        let then = AddedFinder::new(
            vocabulary,
            special,
            |token| normalizer.is_some() && token.normalized,
            |token| match &names {
                Some(normalizer) => normalizer.normalized(&token.content, &mut growth),
                None => Ok(token.content.clone()),
            },
        )?;
        Ok(Self { finder, then, prepend: prepend.to_vec(), append: append.to_vec() })
    }

    /// Whether no added token is looked for.
    pub(crate) fn finds_none(&self) -> bool {
        self.finder.is_none() && self.then.is_none()
    }

    /// Whether a token may take the white space around it.
    pub(crate) fn strips(&self) -> bool {
        self.finder.iter().chain(&self.then).any(AddedFinder::strips)
    }

    /// Call `sink` with the added tokens that are found in the original text, and the text between
    /// them, in order.
    pub(crate) fn divide_original<'a>(
        &self,
        text: &'a str,
        start: PartStart,
        mut sink: impl FnMut(TextOrId<'a>) -> Result<()>,
    ) -> Result<()> {
        divide_by(self.finder.as_ref(), text, start, &mut sink)
    }

    /// The same with those that are found in a part of it, once it is normalized.
    pub(crate) fn divide_normalized<'a>(
        &self,
        part: &'a str,
        start: PartStart,
        mut sink: impl FnMut(TextOrId<'a>) -> Result<()>,
    ) -> Result<()> {
        divide_by(self.then.as_ref(), part, start, &mut sink)
    }
}

/// Call `sink` with the added tokens that a search finds, and the text between them, in order.
fn divide_by<'a>(
    finder: Option<&AddedFinder>,
    text: &'a str,
    mut start: PartStart,
    sink: &mut impl FnMut(TextOrId<'a>) -> Result<()>,
) -> Result<()> {
    let mut done = 0;
    for token in finder.into_iter().flat_map(|finder| finder.find(text)) {
        let token = token?;
        // A token may start in white space that belongs to the previous token.
        let from = token.start.max(done);
        sink(TextOrId::Text(&text[done..from], start))?;
        if token.start < token.end {
            sink(TextOrId::Id(token.id, token.start..token.end))?;
        }
        (done, start) = (token.end, PartStart::Special);
    }
    sink(TextOrId::Text(&text[done..], start))
}
