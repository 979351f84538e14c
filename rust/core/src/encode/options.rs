//! The options of encoding: special tokens in the text, and ids before and after it.

use crate::encode::special::{Special, SpecialFinder};
use crate::error::Result;
use crate::pretokenize::{PartStart, Pattern};
use crate::vocabulary::Vocabulary;

/// How special tokens are encoded, and which ids precede and follow each text. Created by
/// [`Tokenizer::options`](crate::Tokenizer::options), which has an example. By default, special
/// tokens are encoded as ordinary text, and no ids are added.
#[derive(Debug, Clone, Default)]
pub struct EncodeOptions {
    pub(crate) finder: Option<SpecialFinder>,
    pub(crate) prepend: Option<u32>,
    pub(crate) append: Option<u32>,
}

/// A part of a text: ordinary text and what precedes it, or a special token.
pub(crate) enum TextOrId<'a> {
    Text(&'a str, PartStart),
    Id(u32),
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
            sink(TextOrId::Text(&text[done..found.start.max(done)], start))?;
            sink(TextOrId::Id(found.id))?;
            (done, start) = (found.end, PartStart::Special);
        }
        sink(TextOrId::Text(&text[done..], start))
    }
}
