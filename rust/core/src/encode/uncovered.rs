//! Leaves out the bytes that no token covers, for rules that ask for it.
//!
//! A text is split as it is, and the bytes are then missing from its pretokens: what stands on their
//! two sides in one pretoken may merge, as in Hugging Face `tokenizers`.

use std::borrow::Cow;

use crate::rules::TextRules;
use crate::vocabulary::{NO_ID, Vocabulary};

/// Which bytes are left out.
#[derive(Debug, Clone)]
pub(crate) struct Uncovered(Box<[bool; 256]>);

impl Uncovered {
    /// `None` if no byte is left out. Symbols with names are left out one by one, when they are merged.
    pub(crate) fn of(vocabulary: &Vocabulary, rules: &TextRules) -> Option<Self> {
        let bytes = vocabulary.byte_ids().map(|id| id == NO_ID);
        let drops = rules.drops_uncovered && rules.symbols.is_none() && bytes.contains(&true);
        drops.then(|| Self(Box::new(bytes)))
    }

    /// Whether a byte is left out.
    #[inline]
    pub(crate) fn drops(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }

    /// A pretoken without these bytes.
    pub(crate) fn without<'t>(&self, pretoken: &'t [u8]) -> Cow<'t, [u8]> {
        if pretoken.iter().any(|&byte| self.drops(byte)) {
            Cow::Owned(pretoken.iter().copied().filter(|&byte| !self.drops(byte)).collect())
        } else {
            Cow::Borrowed(pretoken)
        }
    }

    /// The pretokens between `start` and each of the ends without these bytes, end to end, and the new
    /// ends; `None` if they have no such byte.
    pub(crate) fn compact(
        &self,
        text: &[u8],
        mut start: usize,
        ends: &[usize],
    ) -> Option<(Vec<u8>, Vec<usize>)> {
        let window = &text[start..*ends.last()?];
        if !window.iter().any(|&byte| self.drops(byte)) {
            return None;
        }
        let (mut bytes, mut new_ends) = (Vec::with_capacity(window.len()), Vec::new());
        for &end in ends {
            let before = bytes.len();
            bytes.extend_from_slice(&self.without(&text[start..end]));
            if bytes.len() > before {
                new_ends.push(bytes.len());
            }
            start = end;
        }
        Some((bytes, new_ends))
    }
}
