//! The split pattern as a value: a regular expression, with names for the well-known ones.
//!
//! Two patterns are equal if their expressions are equal; a name is only an abbreviation. The
//! meaning of `\p{L}`, `\p{N}` and `\s` depends on the version of Unicode, so the version belongs
//! to the pattern and is saved with it.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::pretokenize::normalize::Form;
use crate::pretokenize::spaces::PartStart;
use crate::rules::normalizer::SpacePrefix;

/// The version of Unicode of the character classes in patterns.
pub const UNICODE_VERSION: &str = "16.0.0";

/// The well-known patterns by name. The comments give their sources.
const NAMED: [(&str, &str); 6] = [
    // nanochat, nanochat/tokenizer.py: the pattern of GPT-4 with two digits, for small
    // vocabularies.
    (
        "nanochat",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    // tiktoken, tiktoken_ext/openai_public.py: r50k_base, p50k_base and gpt2.
    ("gpt2", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"),
    // The same file: cl100k_base.
    (
        "gpt4",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    // The same file: o200k_base.
    (
        "gpt4o",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    // Qwen 2, 2.5 and 3, tokenizer.json: single digits.
    (
        "qwen2",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    // Llama 3, llama3/tokenizer.py.
    (
        "llama3",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// Further names: the encodings of tiktoken, each with the name of its pattern.
const ENCODINGS: [(&str, &str); 6] = [
    ("r50k_base", "gpt2"),
    ("p50k_base", "gpt2"),
    ("p50k_edit", "gpt2"),
    ("cl100k_base", "gpt4"),
    ("o200k_base", "gpt4o"),
    ("o200k_harmony", "gpt4o"),
];

/// A split pattern: a regular expression whose matches are the pretokens.
///
/// ```
/// use bytepair::Pattern;
/// assert_eq!(Pattern::new("cl100k_base")?.name(), Some("gpt4"));
/// assert_eq!(Pattern::new(r"\S+|\s+")?.name(), None);
/// assert!(Pattern::new("gpt-4").unwrap_err().to_string().contains("did you mean \"gpt4\"?"));
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    regex: String,
}

/// The mark between the steps of a pattern.
pub(crate) const THEN: &str = "(?#then)";

const LSTRIP: &str = "(?#lstrip ";
const RSTRIP: &str = "(?#rstrip ";
const ADDED: &str = "(?#added ";
const USER_DEFINED: &str = "(?#user-defined ";

/// The marks that list ids, in the order in which they stand in a pattern.
const MARKS_OF_IDS: [&str; 4] = [LSTRIP, RSTRIP, ADDED, USER_DEFINED];

/// The ids in a mark at the start of a pattern, and the rest of the pattern; `None` without the
/// mark.
fn ids_of_mark<'p>(pattern: &'p str, mark: &str) -> Option<(Vec<u32>, &'p str)> {
    let (ids, rest) = pattern.strip_prefix(mark)?.split_once(')')?;
    let ids: Option<Vec<u32>> = ids.split(' ').map(|id| id.parse().ok()).collect();
    Some((ids?, rest))
}

impl Pattern {
    /// The well-known pattern of this name, or else the pattern of this regular expression, which
    /// [`Splitter::new`](crate::Splitter::new) checks.
    ///
    /// # Errors
    ///
    /// [`Error::PatternName`] if the text is not a name and contains no regular-expression syntax.
    /// Such a text is taken for a misspelled name: as an expression, it would match only itself.
    pub fn new(name_or_regex: &str) -> Result<Self> {
        match Self::named(name_or_regex) {
            Some(pattern) => Ok(pattern),
            None if has_syntax(name_or_regex) => Ok(Self::from_regex(name_or_regex)),
            None => Err(Error::PatternName { reason: no_pattern(name_or_regex) }),
        }
    }

    /// The pattern of a regular expression, even if it looks like a name; for expressions from
    /// files.
    pub fn from_regex(regex: &str) -> Self {
        Self { regex: regex.to_owned() }
    }

    /// The well-known pattern of this name, or of the tiktoken encoding of this name.
    pub fn named(name: &str) -> Option<Self> {
        let encoding = ENCODINGS.iter().find(|(encoding, _)| *encoding == name);
        let name = encoding.map_or(name, |(_, name)| name);
        let (_, regex) = NAMED.iter().find(|(other, _)| *other == name)?;
        Some(Self::from_regex(regex))
    }

    /// The names of the well-known patterns, the default first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|(name, _)| *name)
    }

    /// The names of the encodings of tiktoken, which are also names of well-known patterns.
    pub fn encodings() -> impl Iterator<Item = &'static str> {
        ENCODINGS.iter().map(|(name, _)| *name)
    }

    /// The name of this pattern, if it is a well-known one.
    pub fn name(&self) -> Option<&'static str> {
        NAMED.iter().find(|(_, regex)| *regex == self.regex).map(|(name, _)| *name)
    }

    /// The text of the pattern, with its marks, as it is compared and saved.
    pub fn regex(&self) -> &str {
        &self.regex
    }

    /// The patterns between the marks `(?#then)`; each splits the pieces of the previous one.
    pub(crate) fn steps(&self) -> Vec<Self> {
        self.expression().split(THEN).map(Self::from_regex).collect()
    }

    /// The regular expression without the marks at its start; several with `(?#then)` between them
    /// if the pattern has steps.
    pub(super) fn expression(&self) -> &str {
        let mut rest = Form::split_off(&self.regex).1;
        for mark in MARKS_OF_IDS {
            rest = ids_of_mark(rest, mark).map_or(rest, |(_, rest)| rest);
        }
        rest
    }

    /// The ids in one of the marks that list ids; none without the mark.
    fn ids_of(&self, wanted: &str) -> Vec<u32> {
        let mut rest = Form::split_off(&self.regex).1;
        for mark in MARKS_OF_IDS {
            let (ids, after) = ids_of_mark(rest, mark).unwrap_or((Vec::new(), rest));
            if mark == wanted {
                return ids;
            }
            rest = after;
        }
        Vec::new()
    }

    /// The ids of the user-defined tokens, which are found in each pretoken before it is merged.
    /// They are listed in the mark `(?#user-defined 5 8)`, after the mark of
    /// [`added`](Self::added).
    pub(crate) fn user_defined(&self) -> Vec<u32> {
        self.ids_of(USER_DEFINED)
    }

    /// The ids of the special tokens that are found in every text: added tokens that control
    /// nothing, such as runs of spaces. They are listed in the mark `(?#added 5 8)`, after the marks
    /// of [`strips`](Self::strips).
    pub(crate) fn added(&self) -> Vec<u32> {
        self.ids_of(ADDED)
    }

    /// The ids of the special tokens that absorb the white space before them, and of those that
    /// absorb the white space after them. They are listed in the marks `(?#lstrip 5 8)` and
    /// `(?#rstrip 8)`, after the mark of the normalization.
    pub(crate) fn strips(&self) -> [Vec<u32>; 2] {
        [self.ids_of(LSTRIP), self.ids_of(RSTRIP)]
    }

    /// Whether texts are normalized before they are split.
    pub fn normalizes(&self) -> bool {
        Form::split_off(&self.regex).0.is_some()
    }

    /// The text that is split: `text` itself; its NFC or NFKC form if the pattern begins with
    /// `(?#NFC)` or `(?#NFKC)`; or `text` with the spaces of SentencePiece if the pattern begins
    /// with `(?#spaces)`. A second word in that mark adds a space at the start of a text and after
    /// special tokens: `always`, or only where a space is `missing`. With `first`, a missing space
    /// is added only at the start of the text.
    ///
    /// ```
    /// use bytepair::Pattern;
    /// assert_eq!(Pattern::from_regex(r"(?#NFC)\S+|\s+").normalized("e\u{301}")?, "é");
    /// assert_eq!(Pattern::from_regex(r"\S+|\s+").normalized("e\u{301}")?, "e\u{301}");
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn normalized<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        self.normalized_part(text, PartStart::Text)
    }

    /// The same as [`normalized`](Self::normalized) for a part of a text.
    pub(crate) fn normalized_part<'t>(
        &self,
        part: &'t str,
        start: PartStart,
    ) -> Result<Cow<'t, str>> {
        Form::split_off(&self.regex).0.map_or(Ok(Cow::Borrowed(part)), |form| form.of(part, start))
    }

    /// Where a space is added, if the pattern has the spaces of SentencePiece.
    pub(super) fn space_prefix(&self) -> Option<SpacePrefix> {
        match Form::split_off(&self.regex).0 {
            Some(Form::Spaces(prefix)) => Some(prefix),
            _ => None,
        }
    }

    /// Whether normalization at most replaces and adds spaces, so that ids have positions in the
    /// original text.
    pub(crate) fn keeps_positions(&self) -> bool {
        !self.normalizes() || self.space_prefix().is_some()
    }

    /// Whether normalization adds a space before this part.
    pub(crate) fn adds_space(&self, part: &str, start: PartStart) -> bool {
        self.space_prefix().is_some_and(|prefix| prefix.applies(part, start))
    }

    /// Whether decoding removes a space at the start of a text, because encoding adds one there.
    pub fn drops_space(&self) -> bool {
        self.space_prefix().is_some_and(|prefix| prefix != SpacePrefix::Never)
    }

    /// Whether normalization never changes a character and never combines it with the text before
    /// it, for any surrounding text; true if texts are not normalized.
    pub(crate) fn separates(&self, character: char) -> bool {
        Form::split_off(&self.regex).0.is_none_or(|form| form.separates(character))
    }
}

/// Whether a text contains regular-expression syntax other than literal characters. A dot between
/// letters or digits counts as part of a name, as in `gpt-3.5`.
fn has_syntax(text: &str) -> bool {
    let literal = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    text.char_indices().any(|(at, character)| match character {
        '.' => !literal(text[..at].chars().next_back()) || !literal(text[at + 1..].chars().next()),
        other => r"\[({*+?|^$".contains(other),
    })
}

/// The message for a string that is not a pattern: why not, and what to write instead.
fn no_pattern(name: &str) -> String {
    let names: Vec<_> = Pattern::names().chain(Pattern::encodings()).collect();
    let meant = nearest(name).map(|near| format!("did you mean {near:?}? "));
    let literal = format!("; for an expression that matches this literal string, write (?:{name})");
    format!(
        "{name:?} is neither the name of a split pattern nor a regular expression; {}the names are \
         {}{}",
        meant.unwrap_or_default(),
        names.join(", "),
        if name.is_empty() { "" } else { &literal },
    )
}

/// The most similar name, if one is close: it starts with the text, or has the same digits and
/// differs in at most two characters. Case and punctuation are ignored.
fn nearest(text: &str) -> Option<&'static str> {
    let letters = |text: &str| -> Vec<char> {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let digits = |text: &[char]| -> String { text.iter().filter(|c| c.is_numeric()).collect() };
    let requested = letters(text);
    let distance = |name: &str| match letters(name) {
        name if requested.len() > 3 && name.starts_with(&requested) => 0,
        name if digits(&name) != digits(&requested) => usize::MAX,
        name => edits(&requested, &name),
    };
    let names = Pattern::names().chain(Pattern::encodings());
    let (least, name) = names.map(|name| (distance(name), name)).min_by_key(|(edits, _)| *edits)?;
    (least <= 2 && least < requested.len()).then_some(name)
}

/// The number of insertions, deletions and replacements that turn one text into the other.
fn edits(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, left) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (at, right) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_is_an_error() {
        for (text, meant) in [
            ("gpt-4", Some("gpt4")),
            ("GPT-4o", Some("gpt4o")),
            ("cl100k", Some("cl100k_base")),
            ("o200k_bas", Some("o200k_base")),
            ("nanochta", Some("nanochat")),
            ("gpt-3.5", None),
            ("words", None),
            ("", None),
            (" ", None),
        ] {
            assert_eq!(nearest(text), meant, "{text:?}");
            assert!(matches!(Pattern::new(text), Err(Error::PatternName { .. })), "{text:?}");
            assert_eq!(Pattern::from_regex(text).regex(), text);
        }
    }

    #[test]
    fn an_expression_is_accepted() {
        for text in [".", "..", r"\S", "[ab]", "(?:gpt-4)", "a|b", "a+", "^a", "a$", "a{2}", "a.*"]
        {
            assert_eq!(Pattern::new(text).unwrap().regex(), text);
        }
    }

    #[test]
    fn the_name_of_an_encoding_selects_its_pattern() {
        for (encoding, name) in ENCODINGS {
            assert_eq!(Pattern::new(encoding).unwrap(), Pattern::named(name).unwrap());
            assert_eq!(Pattern::named(encoding).unwrap().name(), Some(name));
        }
    }
}
