//! A reason says what is wrong, and its hint what to do about it.

use std::fmt;

/// What to do about an error.
///
/// A hint may name an option of the call that failed, for which each language has its own words:
/// `OnError::Skip` in Rust, `errors="skip"` in Python.
///
/// ```
/// use bytepair::Error;
/// let hint = Error::FileNotUtf8 { path: "a.txt".to_owned(), at: 0 }.hint();
/// assert!(hint.rust.starts_with("repair it, or pass OnError::Replace to read U+FFFD instead"));
/// assert!(hint.python.starts_with("repair it, or pass errors=\"replace\" to read"));
/// assert_eq!((hint.plain, hint.option), ("repair it", Some("errors")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// In the words of Rust; empty if nothing can be done.
    pub rust: &'static str,
    /// In the words of Python.
    pub python: &'static str,
    /// What can be done without any option; may be empty.
    pub plain: &'static str,
    /// The option of Python that the hint names.
    pub option: Option<&'static str>,
}

impl Hint {
    /// A hint that names no option.
    pub(crate) const fn new(plain: &'static str) -> Self {
        Self { rust: plain, python: plain, plain, option: None }
    }
}

/// A text followed by a hint, unless that is empty.
pub(super) fn sentence(text: &str, hint: &str) -> String {
    if hint.is_empty() { text.to_owned() } else { [text, "; ", hint].concat() }
}

/// Why something fails: what is wrong, and what to do about it.
///
/// ```
/// use bytepair::Reason;
/// let reason = Reason::from("the line is not JSON");
/// assert_eq!((reason.text(), reason.hint().rust), ("the line is not JSON", ""));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    text: String,
    pub(crate) hint: &'static Hint,
}

impl Reason {
    /// A reason with a hint.
    pub(crate) fn new(text: impl Into<String>, hint: &'static Hint) -> Self {
        Self { text: text.into(), hint }
    }

    /// What is wrong.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What to do about it.
    pub fn hint(&self) -> Hint {
        *self.hint
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::new(text, NO_HINT)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::new(text, NO_HINT)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(&self.text, self.hint.rust))
    }
}

/// Lets the errors of other crates contain a reason.
impl std::error::Error for Reason {}

/// Nothing can be done, or it is clear what.
pub(crate) const NO_HINT: &Hint = &Hint::new("");

/// For text that no token covers.
pub(super) const DROP_UNCOVERED: Hint = Hint {
    rust: "load the tokenizer with TextRules::drops_uncovered to leave it out, as tokenizers does",
    python: "load the tokenizer with uncovered=\"drop\" to leave it out, as tokenizers does",
    plain: "",
    option: Some("uncovered"),
};
/// For a document that is not UTF-8.
pub(crate) const REPAIR: &Hint = &Hint {
    rust: "repair it, or pass OnError::Replace to read U+FFFD instead, or OnError::Skip to leave the \
           document out",
    python: "repair it, or pass errors=\"replace\" to read U+FFFD instead, or errors=\"skip\" to \
             leave the document out",
    plain: "repair it",
    option: Some("errors"),
};
/// For lists in place of texts, which may be conversations.
pub(crate) const RENDER: &Hint =
    &Hint::new("if these are conversations, use bytepair render or render_batch");
/// For a text file whose compressed bytes are damaged.
pub(crate) const FETCH_AGAIN: &Hint = &Hint::new("download or compress it again");
/// For a file of lines whose compressed bytes are damaged.
pub(crate) const FETCH_AGAIN_OR_SKIP: &Hint = &Hint {
    rust: "download or compress it again, or pass OnError::Skip to keep the documents before the \
           damage",
    python: "download or compress it again, or pass errors=\"skip\" to keep the documents before \
             the damage",
    plain: "download or compress it again",
    option: Some("errors"),
};
/// For a text that contains a special token.
pub(super) const SPECIAL_IN_TEXT: Hint = Hint {
    rust: "pass Special::Text to encode it as ordinary text, or Special::All to encode it as the \
           special token",
    python: "pass special=\"text\" to encode it as ordinary text, or special=\"all\" to encode it \
             as the special token",
    plain: "",
    option: Some("special"),
};
/// For dropout in a file.
#[cfg(feature = "json")]
pub(crate) const IGNORE_DROPOUT: &Hint = &Hint {
    rust: "write null there, or pass lossy = true to ignore it",
    python: "write null there, or pass lossy=True to ignore it",
    plain: "write null there",
    option: Some("lossy"),
};
/// For a tokenizer file with tables that contradict each other.
pub(super) const LOAD_AGAIN: Hint = Hint {
    rust: "load it with a check (`formats::native::verify`), or create it again from its source",
    python: "load it with check=True, or create it again from its source",
    plain: "create it again from its source",
    option: Some("check"),
};
/// For a name that no column or field has.
pub(crate) const OTHER_COLUMN: &Hint = &Hint {
    rust: "pass DocumentOptions::field to read one of these",
    python: "pass column= to read one of these",
    plain: "",
    option: Some("column"),
};
/// For a document that is too large.
pub(crate) const DIVIDE: &Hint = &Hint {
    rust: "raise ReadBounds::document_bytes, or divide it",
    python: "raise max_document_bytes, or divide it",
    plain: "divide it",
    option: Some("max_document_bytes"),
};
/// For a page of a parquet file that is too large.
#[cfg(feature = "parquet")]
pub(crate) const SMALLER_PAGES: &Hint = &Hint {
    rust: "raise ReadBounds::document_bytes, or write smaller pages",
    python: "raise max_document_bytes, or write smaller pages",
    plain: "write smaller pages",
    option: Some("max_document_bytes"),
};
