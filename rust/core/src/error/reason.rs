//! A reason says what is wrong and what to do about it.
//!
//! A way out may name an option of the call that failed. Each language has its own words for it:
//! `OnError::Skip` in Rust, `errors="skip"` in Python, `--errors skip` on the command line.

use std::fmt;

/// What to do about an error.
///
/// ```
/// use bytepair::{Error, OptionValue};
/// let error = Error::SpecialInText { name: "<|bos|>".to_owned(), at: 0 };
/// let [first, second] = error.ways_out() else { panic!() };
/// assert_eq!(first.option.unwrap().name, "special");
/// assert_eq!(second.option.unwrap().value, OptionValue::Name("all"));
/// assert_eq!(second.to_string(), "pass Special::All to encode it as the special token");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayOut {
    /// What to do; `pass` or another verb, if it is about an option.
    pub action: &'static str,
    /// The option to change in the call that failed.
    pub option: Option<CallOption>,
    /// What the option does then; may be empty.
    pub purpose: &'static str,
}

/// An option of a call, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallOption {
    /// The name of the option in Python.
    pub name: &'static str,
    /// The value to pass.
    pub value: OptionValue,
    /// The option with its value in Rust.
    pub rust: &'static str,
}

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValue {
    /// One that the reader chooses.
    Any,
    /// A name.
    Name(&'static str),
    /// True.
    True,
}

impl WayOut {
    /// A way out without an option.
    pub(crate) const fn plain(action: &'static str) -> Self {
        Self { action, option: None, purpose: "" }
    }

    /// To change an option.
    const fn of(action: &'static str, option: CallOption, purpose: &'static str) -> Self {
        Self { action, option: Some(option), purpose }
    }

    /// The way out in the words of a caller; `None` if it needs an option that the caller does not
    /// have.
    fn worded(&self, word: impl Fn(&CallOption) -> Option<String>) -> Option<String> {
        let Some(option) = &self.option else { return Some(self.action.to_owned()) };
        let words = [self.action, &word(option)?, self.purpose].join(" ");
        Some(words.trim_end().to_owned())
    }
}

impl fmt::Display for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(in_rust).unwrap_or_default())
    }
}

/// The words of this crate for an option.
#[expect(clippy::unnecessary_wraps, reason = "other callers have no words for some options")]
pub(super) fn in_rust(option: &CallOption) -> Option<String> {
    Some(option.rust.to_owned())
}

/// Write a text and its ways out as one sentence, in the words of a caller.
pub(super) fn sentence(
    text: String,
    ways_out: &[WayOut],
    word: impl Fn(&CallOption) -> Option<String>,
) -> String {
    let mut message = text;
    let mut before: Option<String> = None;
    for worded in ways_out.iter().filter_map(|one| one.worded(&word)) {
        message.push_str(if before.is_none() { "; " } else { ", or " });
        // The word `pass` stands once.
        let is_again = before.is_some_and(|before| before.starts_with("pass "));
        message.push_str(worded.strip_prefix("pass ").filter(|_| is_again).unwrap_or(&worded));
        before = Some(worded);
    }
    message
}

/// Why something fails: what is wrong, and the ways out.
///
/// ```
/// use bytepair::Reason;
/// let reason = Reason::from("the line is not JSON");
/// assert_eq!(reason.text(), "the line is not JSON");
/// assert!(reason.ways_out().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    text: String,
    ways_out: &'static [WayOut],
}

impl Reason {
    /// A reason with ways out.
    pub(crate) fn new(text: impl Into<String>, ways_out: &'static [WayOut]) -> Self {
        Self { text: text.into(), ways_out }
    }

    /// What is wrong.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What to do about it.
    pub fn ways_out(&self) -> &'static [WayOut] {
        self.ways_out
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::new(text, &[])
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::new(text, &[])
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(self.text.clone(), self.ways_out, in_rust))
    }
}

/// Lets the errors of other crates contain a reason.
impl std::error::Error for Reason {}

const REPLACE: CallOption =
    CallOption { name: "errors", value: OptionValue::Name("replace"), rust: "OnError::Replace" };
const SKIP: CallOption =
    CallOption { name: "errors", value: OptionValue::Name("skip"), rust: "OnError::Skip" };
const SPECIAL_AS_TEXT: CallOption =
    CallOption { name: "special", value: OptionValue::Name("text"), rust: "Special::Text" };
const SPECIAL_AS_ID: CallOption =
    CallOption { name: "special", value: OptionValue::Name("all"), rust: "Special::All" };
#[cfg(feature = "json")]
const LOSSY: CallOption =
    CallOption { name: "lossy", value: OptionValue::True, rust: "lossy = true" };
const CHECK: CallOption = CallOption {
    name: "check",
    value: OptionValue::True,
    rust: "a check (`formats::native::verify`)",
};
const COLUMN: CallOption =
    CallOption { name: "column", value: OptionValue::Any, rust: "DocumentOptions::field" };
const DOCUMENT_BYTES: CallOption = CallOption {
    name: "max_document_bytes",
    value: OptionValue::Any,
    rust: "ReadBounds::document_bytes",
};

const DROP: CallOption = CallOption {
    name: "uncovered",
    value: OptionValue::Name("drop"),
    rust: "TextRules::drops_uncovered",
};

/// The way out of text that no token covers.
pub(crate) const DROP_UNCOVERED: &[WayOut] =
    &[WayOut::of("load the tokenizer with", DROP, "to leave it out, as tokenizers does")];

/// The ways out of a document that is not UTF-8.
pub(crate) const REPAIR: &[WayOut] = &[
    WayOut::plain("repair it"),
    WayOut::of("pass", REPLACE, "to read U+FFFD instead"),
    WayOut::of("pass", SKIP, "to leave the document out"),
];
/// The way out of lists in place of texts, which may be conversations.
pub(crate) const RENDER: &[WayOut] =
    &[WayOut::plain("if these are conversations, use bytepair render or render_batch")];
/// The ways out of a text file whose compressed bytes are damaged.
pub(crate) const FETCH_AGAIN: &[WayOut] = &[WayOut::plain("download or compress it again")];
/// The ways out of a file of lines whose compressed bytes are damaged.
pub(crate) const FETCH_AGAIN_OR_SKIP: &[WayOut] =
    &[FETCH_AGAIN[0], WayOut::of("pass", SKIP, "to keep the documents before the damage")];
/// The ways out of a text, given as bytes, that is not UTF-8.
pub(super) const REPAIR_TEXT: &[WayOut] =
    &[WayOut::plain("repair it"), WayOut::plain("replace invalid bytes")];
/// The ways out of a file that is not what was meant to be downloaded.
pub(crate) const FETCH_FILE: &[WayOut] = &[WayOut::plain("download the file again")];
/// The ways out of a pointer of Git LFS.
pub(crate) const FETCH_LFS: &[WayOut] = &[WayOut::plain("fetch the file with `git lfs pull`")];
/// The ways out of a pattern that fails on a text.
pub(super) const SIMPLER_PATTERN: &[WayOut] =
    &[WayOut::plain("use a pattern that does not backtrack"), WayOut::plain("use shorter texts")];
/// The ways out of a conversation that is longer than a row.
pub(super) const WIDER_ROWS: &[WayOut] =
    &[WayOut::plain("truncate it first"), WayOut::plain("make rows wider")];
/// The ways out of a disk without space for counts.
pub(super) const MORE_SPACE: &[WayOut] = &[
    WayOut::plain("free some space"),
    WayOut::plain("put temporary files elsewhere"),
    WayOut::plain("count with a larger memory limit"),
];
/// The ways out of too many distinct pretokens.
pub(super) const FEWER_PRETOKENS: &[WayOut] =
    &[WayOut::plain("train on a sample"), WayOut::plain("drop pretokens that occur once")];
/// The ways out of too little memory.
pub(super) const LESS_MEMORY: &[WayOut] = &[
    WayOut::plain("pass less text at once"),
    WayOut::plain("use fewer threads"),
    WayOut::plain("raise the limit of the process"),
];
/// The ways out of a text that contains a special token.
pub(super) const SPECIAL_IN_TEXT: &[WayOut] = &[
    WayOut::of("pass", SPECIAL_AS_TEXT, "to encode it as ordinary text"),
    WayOut::of("pass", SPECIAL_AS_ID, "to encode it as the special token"),
];
/// The ways out of dropout in a file.
#[cfg(feature = "json")]
pub(crate) const IGNORE_DROPOUT: &[WayOut] =
    &[WayOut::plain("write null there"), WayOut::of("pass", LOSSY, "to ignore it")];
/// The ways out of a tokenizer file with tables that contradict each other.
pub(super) const LOAD_AGAIN: &[WayOut] =
    &[WayOut::of("load it with", CHECK, ""), WayOut::plain("create it again from its source")];
/// The way out of a name that no column or field has.
pub(crate) const OTHER_COLUMN: &[WayOut] = &[WayOut::of("pass", COLUMN, "to read one of these")];
/// The ways out of a document that is too large.
pub(crate) const DIVIDE: &[WayOut] =
    &[WayOut::of("raise", DOCUMENT_BYTES, ""), WayOut::plain("divide it")];
/// The ways out of a page of a parquet file that is too large.
#[cfg(feature = "parquet")]
pub(crate) const SMALLER_PAGES: &[WayOut] =
    &[WayOut::of("raise", DOCUMENT_BYTES, ""), WayOut::plain("write smaller pages")];
