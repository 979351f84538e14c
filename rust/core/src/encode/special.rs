//! Finds special tokens in a text.
//!
//! Matches are leftmost-longest. Some special tokens also take the adjacent white space, unless
//! another special token has taken it. Some are found in every text: the added tokens that control
//! nothing ([`Pattern::added`]).

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::error::{Error, Result};
use crate::pretokenize::Pattern;
use crate::vocabulary::Vocabulary;

/// The length of all names, in bytes, up to which the search may use a DFA.
const MOST_IN_DFA: usize = 1 << 10;

/// How the text of a special token is encoded.
///
/// ```
/// use bytepair::{Error, Pattern, Special, Tokenizer, Vocabulary};
/// let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// let vocabulary = Vocabulary::new(bytes, [("<s>".to_owned(), 256)])?;
/// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
/// let encode = |special| tokenizer.encode_with("<s>", &tokenizer.options(&special, None, None)?);
/// assert_eq!(encode(Special::Text)?, [60, 115, 62]);
/// assert_eq!(encode(Special::All)?, [256]);
/// assert_eq!(encode(Special::Only(vec!["<s>".to_owned()]))?, [256]);
/// assert_eq!(encode(Special::None)?, [60, 115, 62]);
/// assert!(matches!(encode(Special::Error), Err(Error::SpecialInText { at: 0, .. })));
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Special {
    /// The text of special tokens is ordinary text, except that of added tokens that control
    /// nothing, as of runs of spaces in the vocabulary of Phi-2.
    #[default]
    Text,
    /// As `Text`, for text that must not be able to imitate the structure of a conversation, and of
    /// which nothing may be lost: of the added tokens that control nothing, only those of white
    /// space that take no other white space are found. `<tool_call>` is an added token of Qwen that
    /// is not special.
    Message,
    /// No special token is found, and no added token that controls nothing.
    None,
    /// Every special token becomes its id.
    All,
    /// The named special tokens become their ids; others are ordinary text.
    Only(Vec<String>),
    /// The text of a special token is an error.
    Error,
}

/// Finds the special tokens that a [`Special`] selects.
#[derive(Debug, Clone)]
pub(crate) struct SpecialFinder {
    automaton: AhoCorasick,
    ids: Vec<u32>,
    /// Sorted, parallel to the ids.
    names: Vec<String>,
    /// The number of bytes of the longest name.
    longest: usize,
    /// For each token, whether it takes the white space before it; and whether it takes the white
    /// space after it.
    strips: [Vec<bool>; 2],
    /// For each token, whether it is an error.
    forbidden: Vec<bool>,
}

/// A special token in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundSpecial {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) id: u32,
}

impl SpecialFinder {
    /// Prepare the search; `None` if there is nothing to search for.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        pattern: &Pattern,
        special: &Special,
    ) -> Result<Option<Self>> {
        let added = pattern.added();
        let in_every_text = |(_, id): &&(String, u32)| added.contains(id);
        let always = vocabulary.special_tokens().iter().filter(in_every_text).cloned();
        let mut chosen: Vec<(String, u32)> = match special {
            Special::Text => always.collect(),
            Special::Message => {
                let strips = pattern.strips().concat();
                always.filter(|(name, id)| is_blank(name) && !strips.contains(id)).collect()
            }
            Special::None => Vec::new(),
            Special::All | Special::Error => vocabulary.special_tokens().to_vec(),
            Special::Only(names) => names
                .iter()
                .map(|name| Ok((name.clone(), special_id(vocabulary, name)?)))
                .chain(always.map(Ok))
                .collect::<Result<_>>()?,
        };
        if chosen.is_empty() {
            return Ok(None);
        }
        chosen.sort_unstable();
        chosen.dedup();
        let (names, ids): (Vec<String>, Vec<u32>) = chosen.into_iter().unzip();
        // Building a DFA takes quadratic time for a long name that repeats one character.
        let size: usize = names.iter().map(String::len).sum();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind((size > MOST_IN_DFA).then_some(AhoCorasickKind::ContiguousNFA))
            .build(&names)
            .map_err(|e| Error::Vocabulary { reason: format!("too many special tokens: {e}") })?;
        let strips =
            pattern.strips().map(|strip| ids.iter().map(|id| strip.contains(id)).collect());
        let longest = names.iter().map(String::len).max().unwrap_or(0);
        let is_forbidden = |id| *special == Special::Error && !added.contains(id);
        let forbidden = ids.iter().map(is_forbidden).collect();
        Ok(Some(Self { automaton, ids, names, longest, strips, forbidden }))
    }

    /// Whether a token may take the white space around it.
    pub(crate) fn strips(&self) -> bool {
        self.strips.iter().flatten().any(|&strips| strips)
    }

    /// The special tokens of `text` from left to right; if they are forbidden, an error for each.
    pub(crate) fn find(&self, text: &str) -> impl Iterator<Item = Result<FoundSpecial>> {
        let [left, right] = &self.strips;
        let mut done = 0;
        self.automaton.find_iter(text).map(move |found| {
            let which = found.pattern().as_usize();
            if self.forbidden[which] {
                let name = self.names[which].clone();
                return Err(Error::SpecialInText { name, at: found.start() });
            }
            let (mut start, mut end) = (found.start(), found.end());
            if left[which] && start > done {
                start = done + text[done..start].trim_end().len();
            }
            if right[which] {
                end = text.len() - text[end..].trim_start().len();
            }
            done = end;
            Ok(FoundSpecial { start, end, id: self.ids[which] })
        })
    }

    /// The last part of a text that is ordinary text, whatever is appended to the text.
    ///
    /// It starts at the end of the last special token that no continuation can change, or at 0. It
    /// ends before the first byte that may belong to a special token once more text follows, or to
    /// white space that such a token takes. So the search can restart anywhere in this part.
    pub(crate) fn last_part(&self, text: &str) -> Range<usize> {
        let [left, right] = &self.strips;
        let (mut start, mut end) = (0, self.first_open(text, 0));
        for found in self.automaton.find_iter(text) {
            if end <= found.start() {
                break;
            }
            let mut done = found.end();
            let next_open = self.first_open(text, done);
            if right[found.pattern().as_usize()] {
                done = text.len() - text[done..].trim_start().len();
                if done == text.len() || next_open < done {
                    end = found.start();
                    break;
                }
            }
            (start, end) = (done, next_open);
        }
        if left.contains(&true) {
            end = start + text[start..end.max(start)].trim_end().len();
        }
        start..end.max(start)
    }

    /// The first position from `from` on at which the rest of the text is a proper prefix of a
    /// special token; the end of the text if there is none.
    fn first_open(&self, text: &str, from: usize) -> usize {
        let bytes = text.as_bytes();
        let is_open = |&at: &usize| {
            let next = self.names.partition_point(|name| name.as_bytes() <= &bytes[at..]);
            self.names.get(next).is_some_and(|name| name.as_bytes().starts_with(&bytes[at..]))
        };
        (from.max((text.len() + 1).saturating_sub(self.longest))..text.len())
            .find(is_open)
            .unwrap_or(text.len())
    }
}

/// Whether a token has no visible character.
pub(crate) fn is_blank(name: &str) -> bool {
    name.chars().all(char::is_whitespace)
}

/// The id of a special token, or an error that lists the existing ones.
pub(crate) fn special_id(vocabulary: &Vocabulary, name: &str) -> Result<u32> {
    vocabulary.special(name).ok_or_else(|| Error::UnknownSpecial {
        name: name.to_owned(),
        known: vocabulary.special_tokens().iter().map(|(name, _)| name.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(strips: &str, text: &str) -> Vec<(usize, usize)> {
        let special = [("<a>".to_owned(), 0), ("<b>".to_owned(), 1), (" c".to_owned(), 2)];
        let vocabulary = Vocabulary::new([], special).unwrap();
        let pattern = Pattern::from_regex(&format!("{strips}."));
        let finder = SpecialFinder::new(&vocabulary, &pattern, &Special::All).unwrap().unwrap();
        finder
            .find(text)
            .map(|found| found.unwrap())
            .map(|found| (found.start, found.end))
            .collect()
    }

    #[test]
    fn white_space_belongs_to_one_special_token() {
        let text = "x  <a> \u{3000}\n<b> y";
        assert_eq!(found("", text), [(3, 6), (11, 14)]);
        assert_eq!(found("(?#lstrip 0)", text), [(1, 6), (11, 14)]);
        assert_eq!(found("(?#lstrip 0 1)", text), [(1, 6), (6, 14)]);
        assert_eq!(found("(?#rstrip 0 1)", text), [(3, 11), (11, 15)]);
        assert_eq!(found("(?#lstrip 1)(?#rstrip 0)", text), [(3, 11), (11, 14)]);
        assert_eq!(found("(?#NFC)(?#rstrip 1)", text), [(3, 6), (11, 15)]);
        assert_eq!(found("(?#rstrip 0)", "<a>  c"), [(0, 5), (4, 6)]);
        assert_eq!(found("(?#lstrip x)", text), [(3, 6), (11, 14)]);
    }
}
