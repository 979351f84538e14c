//! Why a question has no answer.

use std::fmt;

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewError {
    /// An error of the core.
    Core(bytepair::Error),
    /// The question is none, or asks for something that does not exist.
    Question(String),
    /// A conversation breaks a rule of its template.
    Conversation(String),
}

/// A result with a [`ViewError`].
pub type ViewResult<T> = Result<T, ViewError>;

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The page has none of the options that a hint may name.
            Self::Core(error) => f.write_str(&error.message(error.hint().plain)),
            Self::Question(reason) | Self::Conversation(reason) => reason.fmt(f),
        }
    }
}

impl std::error::Error for ViewError {}

impl From<bytepair::Error> for ViewError {
    fn from(error: bytepair::Error) -> Self {
        Self::Core(error)
    }
}

/// A question that asks for something that does not exist.
pub(crate) fn wrong(reason: impl Into<String>) -> ViewError {
    ViewError::Question(reason.into())
}

/// A conversation that breaks a rule.
pub(crate) fn broken(reason: impl Into<String>) -> ViewError {
    ViewError::Conversation(reason.into())
}

/// JSON that is none. serde stops at 128 levels, so that no JSON can use up the stack.
pub(crate) fn not_json(what: &str, error: &serde_json::Error) -> ViewError {
    let reason = error.to_string();
    if reason.starts_with("recursion limit") {
        return wrong(format!("the JSON of {what} is nested too deeply"));
    }
    wrong(format!("{what} is not JSON: {reason}"))
}
