//! Finds user-defined tokens in a pretoken, before it is merged.
//!
//! In SentencePiece, *user-defined* pieces are single tokens wherever their text occurs, such as
//! runs of line breaks or HTML tags. They are found from left to right, the longest first, and the
//! text between them is merged by itself. The split pattern never splits within one of them.

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::{Error, Result};
use crate::vocabulary::Vocabulary;

/// The user-defined tokens of a vocabulary.
#[derive(Debug, Clone)]
pub(crate) struct UserDefined {
    automaton: AhoCorasick,
    ids: Vec<u32>,
}

/// A part of a pretoken.
pub(crate) enum PretokenPart<'a> {
    /// Text to merge; not empty.
    Text(&'a [u8]),
    /// A user-defined token.
    Id(u32),
}

impl UserDefined {
    /// `None` if there are no ids. Fails if one of them is not an ordinary token of valid UTF-8.
    pub(crate) fn new(vocabulary: &Vocabulary, ids: Vec<u32>) -> Result<Option<Self>> {
        if ids.is_empty() {
            return Ok(None);
        }
        let broken = |reason: String| Error::Vocabulary { reason: reason.into() };
        let token = |&id: &u32| {
            let text = vocabulary.bytes(id).filter(|text| std::str::from_utf8(text).is_ok());
            let text = text.filter(|_| !vocabulary.is_special(id));
            text.ok_or_else(|| {
                broken(format!("the user-defined id {id} is not an ordinary token of valid UTF-8"))
            })
        };
        let tokens = ids.iter().map(token).collect::<Result<Vec<_>>>()?;
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens)
            .map_err(|error| broken(format!("too many user-defined tokens: {error}")))?;
        Ok(Some(Self { automaton, ids }))
    }

    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Whether a pretoken contains a user-defined token.
    pub(crate) fn is_in(&self, pretoken: &[u8]) -> bool {
        self.automaton.is_match(pretoken)
    }

    /// Call `sink` with the user-defined tokens of a pretoken and the text between them, in order.
    pub(crate) fn divide(
        &self,
        pretoken: &[u8],
        mut sink: impl FnMut(PretokenPart<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        for found in self.automaton.find_iter(pretoken) {
            if done < found.start() {
                sink(PretokenPart::Text(&pretoken[done..found.start()]))?;
            }
            sink(PretokenPart::Id(self.ids[found.pattern().as_usize()]))?;
            done = found.end();
        }
        if done < pretoken.len() { sink(PretokenPart::Text(&pretoken[done..])) } else { Ok(()) }
    }
}
