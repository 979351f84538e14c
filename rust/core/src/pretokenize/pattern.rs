//! The split pattern as a value: a regular expression, with names for the well-known ones, or several
//! of them in steps.
//!
//! A pattern is the short way to say the usual [`PreTokenizer`]: one that keeps all text, and splits it
//! at the matches. Two patterns are equal if their expressions are equal; a name is only an
//! abbreviation. The
//! meaning of `\p{L}`, `\p{N}` and `\s` depends on the version of Unicode, so the version belongs
//! to the pattern and is saved with it.

use std::fmt::{self, Display};

use crate::error::{Error, Result};
use crate::rules::{PreTokenizer, PreTokenizerStep, TextRules};

/// The version of Unicode of the character classes in patterns.
pub const UNICODE_VERSION: &str = "16.0.0";

/// The well-known patterns by name. The comments give their sources.
const NAMED: [(&str, &str); 7] = [
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
    // Kimi K2, tokenization_kimi.py: that of GPT-4o, but for Han. The automaton splits by it.
    (
        "kimi",
        r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
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

/// A split pattern: a regular expression whose matches are the pretokens; or several, of which each
/// splits the pieces of the previous one.
///
/// ```
/// use bytepair::Pattern;
/// assert_eq!(Pattern::new("cl100k_base")?.name(), Some("gpt4"));
/// assert_eq!(Pattern::new(r"\S+|\s+")?.name(), None);
/// assert!(Pattern::new("gpt-4").unwrap_err().to_string().contains("the names are nanochat, gpt2"));
/// assert_eq!(Pattern::in_steps([r"\p{N}{1,3}", r"\p{L}+"])?.steps().len(), 2);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// At least one.
    steps: Vec<String>,
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
        Self { steps: vec![regex.to_owned()] }
    }

    /// The pattern of several regular expressions; each splits the pieces of the previous one, as if
    /// each piece were a text.
    ///
    /// # Errors
    ///
    /// [`Error::PatternName`] without any.
    pub fn in_steps(regexes: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        let steps: Vec<String> = regexes.into_iter().map(Into::into).collect();
        if steps.is_empty() {
            let reason =
                "a split pattern has at least one regular expression; (?s:.)+ splits nothing";
            return Err(Error::PatternName { reason: reason.to_owned() });
        }
        Ok(Self { steps })
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
        NAMED.iter().find(|(_, regex)| self.regex() == Some(regex)).map(|(name, _)| *name)
    }

    /// The regular expression, unless the pattern has several.
    pub fn regex(&self) -> Option<&str> {
        if let [regex] = &self.steps[..] { Some(regex) } else { None }
    }

    /// The regular expressions, in order.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.steps.join(", then "))
    }
}

impl From<Pattern> for PreTokenizer {
    fn from(pattern: Pattern) -> Self {
        Self { steps: pattern.steps.into_iter().map(PreTokenizerStep::isolated).collect() }
    }
}

impl From<Pattern> for TextRules {
    fn from(pattern: Pattern) -> Self {
        Self { pre_tokenizer: PreTokenizer::from(pattern), ..Self::default() }
    }
}

impl PreTokenizer {
    /// The pattern that says the same; `None` without steps, or if a step does more than to split at
    /// the matches of a regular expression.
    ///
    /// ```
    /// use bytepair::{Pattern, rules::{PreTokenizer, PreTokenizerStep}};
    /// let pattern = Pattern::in_steps([r"\d", "a"])?;
    /// assert_eq!(PreTokenizer::from(pattern.clone()).pattern(), Some(pattern));
    /// assert_eq!(PreTokenizer { steps: vec![PreTokenizerStep::Whitespace] }.pattern(), None);
    /// # Ok::<(), bytepair::Error>(())
    /// ```
    pub fn pattern(&self) -> Option<Pattern> {
        let regexes = self.steps.iter().map(PreTokenizerStep::isolated_regex);
        Pattern::in_steps(regexes.collect::<Option<Vec<_>>>()?).ok()
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
    let literal = format!("; for an expression that matches this literal string, write (?:{name})");
    format!(
        "{name:?} is neither the name of a split pattern nor a regular expression; the names are \
         {}{}",
        names.join(", "),
        if name.is_empty() { "" } else { &literal },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_is_an_error() {
        for text in ["gpt-4", "GPT-4o", "cl100k", "nanochta", "gpt-3.5", "words", "", " "] {
            assert!(matches!(Pattern::new(text), Err(Error::PatternName { .. })), "{text:?}");
            assert_eq!(Pattern::from_regex(text).regex(), Some(text));
        }
    }

    #[test]
    fn an_expression_is_accepted() {
        for text in [".", "..", r"\S", "[ab]", "(?:gpt-4)", "a|b", "a+", "^a", "a$", "a{2}", "a.*"]
        {
            assert_eq!(Pattern::new(text).unwrap().regex(), Some(text));
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
