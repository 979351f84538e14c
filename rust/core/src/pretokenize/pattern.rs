//! The split pattern as a value: a regular expression, with the names of the well-known ones.
//!
//! Two patterns are the same when their expressions are the same; a name is only a short way to
//! write one. The meaning of `\p{L}`, `\p{N}` and `\s` depends on the version of Unicode, so that
//! version belongs to the pattern too and is written wherever a pattern is written.

use std::borrow::Cow;

use super::normalize::Form;

/// The version of Unicode whose classes split text.
pub const UNICODE_VERSION: &str = "16.0.0";

/// The well-known patterns by name, with where each is published.
const NAMED: [(&str, &str); 6] = [
    // nanochat, nanochat/tokenizer.py: GPT-4's with at most two digits, better for small vocabularies.
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
    // Qwen 2, 2.5 and 3, tokenizer.json: digits one by one.
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

/// A split pattern: a regular expression whose matches are the pretokens.
///
/// ```
/// use bytepair::Pattern;
/// assert_eq!(Pattern::new("gpt4").name(), Some("gpt4"));
/// assert_eq!(Pattern::new(r"\S+|\s+").name(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    regex: String,
}

/// What stands between the steps of a pattern.
const THEN: &str = "(?#then)";

const LSTRIP: &str = "(?#lstrip ";
const RSTRIP: &str = "(?#rstrip ";

/// The ids in a mark at the beginning of a pattern, and what follows it; `None` if there is none.
fn ids_of_mark<'p>(pattern: &'p str, mark: &str) -> Option<(Vec<u32>, &'p str)> {
    let (ids, rest) = pattern.strip_prefix(mark)?.split_once(')')?;
    let ids: Option<Vec<u32>> = ids.split(' ').map(|id| id.parse().ok()).collect();
    Some((ids?, rest))
}

impl Pattern {
    /// The pattern of that name, or else `name_or_regex` itself as a regular expression, which
    /// [`Splitter::new`](crate::Splitter::new) checks.
    pub fn new(name_or_regex: &str) -> Self {
        Self::named(name_or_regex).unwrap_or_else(|| Self { regex: name_or_regex.to_owned() })
    }

    /// The well-known pattern of that name.
    pub fn named(name: &str) -> Option<Self> {
        let (_, regex) = NAMED.iter().find(|(known, _)| *known == name)?;
        Some(Self { regex: (*regex).to_owned() })
    }

    /// The names of the well-known patterns, the default first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|(name, _)| *name)
    }

    /// The name of this pattern, if it is a well-known one.
    pub fn name(&self) -> Option<&'static str> {
        NAMED.iter().find(|(_, regex)| *regex == self.regex).map(|(name, _)| *name)
    }

    /// The pattern as it is written, compared and saved.
    pub fn regex(&self) -> &str {
        &self.regex
    }

    /// The patterns that split one after the other what the one before left: those between the
    /// marks `(?#then)`.
    pub(super) fn steps(&self) -> Vec<Self> {
        self.expression().split(THEN).map(|regex| Self { regex: regex.to_owned() }).collect()
    }

    /// The regular expression alone, or several with marks between them.
    pub(super) fn expression(&self) -> &str {
        let rest = Form::split_off(&self.regex).1;
        let rest = ids_of_mark(rest, LSTRIP).map_or(rest, |(_, rest)| rest);
        ids_of_mark(rest, RSTRIP).map_or(rest, |(_, rest)| rest)
    }

    /// The ids of the special tokens that take the white space before them, and of those that take
    /// what follows: after the form of normalization stand the marks `(?#lstrip 5 8)` and `(?#rstrip 8)`,
    /// if there are such tokens.
    pub(crate) fn strips(&self) -> [Vec<u32>; 2] {
        let rest = Form::split_off(&self.regex).1;
        let (left, rest) = ids_of_mark(rest, LSTRIP).unwrap_or((Vec::new(), rest));
        [left, ids_of_mark(rest, RSTRIP).map_or_else(Vec::new, |(right, _)| right)]
    }

    /// Whether texts are normalized before they are split.
    pub fn normalizes(&self) -> bool {
        Form::split_off(&self.regex).0.is_some()
    }

    /// The text that is split: `text` itself, or in NFC or NFKC if the pattern begins
    /// with `(?#NFC)` or `(?#NFKC)`.
    ///
    /// ```
    /// use bytepair::Pattern;
    /// assert_eq!(Pattern::new(r"(?#NFC)\S+|\s+").normalized("e\u{301}"), "é");
    /// assert_eq!(Pattern::new(r"\S+|\s+").normalized("e\u{301}"), "e\u{301}");
    /// ```
    pub fn normalized<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Form::split_off(&self.regex).0.map_or(Cow::Borrowed(text), |form| form.of(text))
    }
}
