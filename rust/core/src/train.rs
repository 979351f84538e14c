//! Counts in, ordered merges out. (stub)
use crate::count::Counts;
use crate::error::Result;

/// Which of several pairs with the same count is merged first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The smallest pair of ids, as rustbpe does.
    #[default]
    RustBpe,
    /// The smallest pair of ids where the 256 bytes stand in the order of GPT-2's characters, as
    /// Hugging Face tokenizers do.
    Hf,
    /// The pair that occurs first in the corpus as it stands, as minbpe does.
    FirstSeen,
    /// The greatest pair of byte strings, as Stanford's CS336 does.
    BytesMax,
}

/// What to learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainOptions {
    /// How many merges to learn at most.
    pub merges: usize,
    /// Which of several pairs with the same count goes first.
    pub ties: Ties,
    /// Pairs that occur fewer times than this are not merged; at least 1.
    pub min_count: u64,
    /// Pairs whose token would be longer than this many bytes are not merged.
    pub max_token_bytes: Option<usize>,
    /// How many threads to use.
    pub threads: usize,
}

/// What was learnt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trained {
    /// The merges in order: pairs of ids; ids below 256 are bytes, 256 + i is the token of merge i.
    pub merges: Vec<(u32, u32)>,
    /// How often the pair of each merge occurred when it was chosen.
    pub counts: Vec<u64>,
    /// Whether the text ran out of pairs before the asked number of merges.
    pub exhausted: bool,
}

/// Learn merges from `counts`. `on_progress` is called with the number of merges so far.
pub fn train(
    _counts: &Counts,
    _options: &TrainOptions,
    _on_progress: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Trained> {
    todo!()
}
