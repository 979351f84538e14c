//! What a caller may ask of encoding: special tokens in the text, and ids round it.

use crate::encode::special::{Special, SpecialFinder};
use crate::error::Result;
use crate::pretokenize::Pattern;
use crate::vocabulary::Vocabulary;

/// What to do with special tokens, and which ids go before and after each text.
#[derive(Debug, Clone, Default)]
pub struct EncodeOptions {
    pub(crate) finder: Option<SpecialFinder>,
    pub(crate) prepend: Option<u32>,
    pub(crate) append: Option<u32>,
}

/// A part of a text: ordinary text, or a special token.
pub(crate) enum TextOrId<'a> {
    Text(&'a str),
    Id(u32),
}

impl EncodeOptions {
    /// Prepare the options once for any number of texts.
    ///
    /// Fails if `special` names a special token that the vocabulary does not have.
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
        mut sink: impl FnMut(TextOrId<'a>) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        for found in self.finder.iter().flat_map(|finder| finder.find(text)) {
            let found = found?;
            // A token may begin in white space that the one before has taken.
            sink(TextOrId::Text(&text[done..found.start.max(done)]))?;
            sink(TextOrId::Id(found.id))?;
            done = found.end;
        }
        sink(TextOrId::Text(&text[done..]))
    }
}
