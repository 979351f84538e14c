//! Text in, pretokens out: the pieces of text that a token never crosses.
//!
//! A [`Pattern`] says how to split; a [`Splitter`] does it. There are several ways to split
//! (tiers) that must agree to the byte, and one place, [`Splitter::new`], that chooses among them.
//! Callers cannot tell which one runs, except by its speed and by asking [`Splitter::tier`].
//!
//! Every byte of the text ends up in exactly one pretoken, in order: where the pattern matches
//! nothing, the text between two matches is a pretoken of its own.

mod pattern;

mod regex;

pub use pattern::{Pattern, UNICODE_VERSION};

use crate::error::Result;

/// Splits text into pretokens with one compiled pattern; shared freely between threads.
///
/// ```
/// use bytepair::{Pattern, Splitter};
/// let splitter = Splitter::new(&Pattern::named("gpt2").unwrap())?;
/// let mut pretokens = Vec::new();
/// splitter.for_each("Hello world", |pretoken| pretokens.push(pretoken))?;
/// assert_eq!(pretokens, ["Hello", " world"]);
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug)]
pub struct Splitter {
    tier: Tier,
}

/// One way to split; the only list of them.
#[derive(Debug)]
enum Tier {
    /// Any pattern, and the oracle of the others.
    Regex(regex::RegexSplitter),
}

impl Splitter {
    /// Compile `pattern`; an error says where the pattern is wrong.
    pub fn new(pattern: &Pattern) -> Result<Self> {
        Ok(Self { tier: Tier::Regex(regex::RegexSplitter::new(pattern)?) })
    }

    /// Call `sink` with each pretoken of `text` in order; their concatenation is `text`.
    pub fn for_each<'t>(&self, text: &'t str, sink: impl FnMut(&'t str)) -> Result<()> {
        match &self.tier {
            Tier::Regex(splitter) => splitter.for_each(text, sink),
        }
    }

    /// The name of the way in which this pattern is split: `"regex"`.
    pub fn tier(&self) -> &'static str {
        match &self.tier {
            Tier::Regex(_) => "regex",
        }
    }
}
