//! The options of encoding: special tokens in the text, and ids before and after it.

use crate::encode::special::{Special, SpecialFinder};
use crate::error::Result;
use crate::pretokenize::{PartStart, Pattern};
use crate::vocabulary::Vocabulary;

/// How special tokens are encoded, and which ids precede and follow each text. Created by
/// [`Tokenizer::options`](crate::Tokenizer::options), which has an example.
#[derive(Debug, Clone)]
pub struct EncodeOptions {
    pub(crate) finder: Option<SpecialFinder>,
    pub(crate) prepend: Option<u32>,
    pub(crate) append: Option<u32>,
}

/// A part of a text: ordinary text and what precedes it, or a special token.
pub(crate) enum TextOrId<'a> {
    Text(&'a str, PartStart),
    /// The id, and the number of bytes of the text that it stands for.
    Id(u32, usize),
}

impl EncodeOptions {
    /// Prepare options for any number of texts.
    ///
    /// Fails if `special` names an unknown special token.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        pattern: &Pattern,
        special: &Special,
        prepend: Option<u32>,
        append: Option<u32>,
    ) -> Result<Self> {
        let finder = SpecialFinder::new(vocabulary, pattern, special)?;
        Ok(Self { finder, prepend, append })
    }

    /// Whether a special token may take the white space around it.
    pub(crate) fn strips(&self) -> bool {
        self.finder.as_ref().is_some_and(SpecialFinder::strips)
    }

    /// Call `sink` with ordinary text and special tokens, in order.
    pub(crate) fn divide<'a>(
        &self,
        text: &'a str,
        mut start: PartStart,
        mut sink: impl FnMut(TextOrId<'a>) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        for found in self.finder.iter().flat_map(|finder| finder.find(text)) {
            let found = found?;
            // A token may start in white space that belongs to the previous token.
            let from = found.start.max(done);
            sink(TextOrId::Text(&text[done..from], start))?;
            sink(TextOrId::Id(found.id, found.end.saturating_sub(from)))?;
            (done, start) = (found.end, PartStart::Special);
        }
        sink(TextOrId::Text(&text[done..], start))
    }
}
