//! A tokenizer as the page asks for it: by its name, and with what is merged from each token.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytepair::{EncodeOptions, MergeRule, Special, Tokenizer};
use serde_json::{Value, json};

use crate::error::{ViewResult, wrong};

/// A tokenizer with a name, and tables that are built when they are first asked for.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) name: String,
    pub(crate) core: Arc<Tokenizer>,
    /// The names of its own chat templates.
    own: Vec<String>,
    special: EncodeOptions,
    ranks: OnceLock<Vec<Option<u32>>>,
    children: OnceLock<Children>,
    order: OnceLock<HashMap<(u32, u32), u32>>,
}

/// The bytes of the longest token that the page shows: answers have up to 500 tokens several times.
const MAX_TOKEN_BYTES: usize = 1 << 14;

/// The tokens that are merged from each token, in rank order: `ids[starts[id]..starts[id + 1]]`.
#[derive(Debug)]
struct Children {
    starts: Vec<usize>,
    ids: Vec<u32>,
}

impl Explored {
    /// Fails if there is not enough memory for the merges, or if a token is longer than
    /// [`MAX_TOKEN_BYTES`].
    pub(crate) fn new(name: String, core: Arc<Tokenizer>, own: Vec<String>) -> ViewResult<Self> {
        core.make_tables()?;
        let vocabulary = core.vocabulary();
        let lengths = (0u32..).take(vocabulary.len()).map(|id| vocabulary.token_length(id));
        let longest = lengths.max().unwrap_or_default();
        if longest > MAX_TOKEN_BYTES {
            return Err(wrong(format!(
                "a token has {longest} bytes; the page shows tokens of at most {MAX_TOKEN_BYTES}"
            )));
        }
        let special = core.options(&Special::All, &[], &[])?;
        let (ranks, children, order) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self { name, core, own, special, ranks, children, order })
    }

    /// The options of encoding a text, with special tokens as their ids or as text.
    pub(crate) fn options(&self, special: bool) -> &EncodeOptions {
        if special { &self.special } else { self.core.plain() }
    }

    /// What the page shows beside the name; `templates` are those that the tokenizer has tokens for.
    pub(crate) fn about(&self, number: usize, templates: &[&str]) -> Value {
        let special = self.core.vocabulary().special_tokens();
        let others = templates.iter().filter(|&name| !self.own.iter().any(|own| own == name));
        let templates = self.own.iter().map(String::as_str).chain(others.copied());
        json!({
            "t": number,
            "name": self.name,
            "size": self.core.vocabulary().len(),
            "special": special.collect::<HashMap<_, _>>(),
            "rule": match self.core.rule() {
                MergeRule::Ranks => "ranks",
                MergeRule::Merges { .. } => "merges",
                MergeRule::Characters => "characters",
            },
            "templates": templates.collect::<Vec<_>>(),
            "own": self.own,
        })
    }

    /// Whether an id is that of a special token.
    pub(crate) fn is_special(&self, id: u32) -> bool {
        let added = self.core.vocabulary().added_tokens();
        added.binary_search_by_key(&id, |token| token.id).is_ok()
    }

    /// The pair of ids that merges into a token; `None` if no merge creates it.
    pub(crate) fn parts(&self, id: u32) -> Option<(u32, u32)> {
        let &(left, right) = self.core.merges().get(self.merge_of(id)? as usize)?;
        // In a forged file, tokens may be parts of each other.
        let length = |id| self.bytes(id).len();
        let is_shorter =
            length(left).min(length(right)) > 0 && length(left) + length(right) <= length(id);
        is_shorter.then_some((left, right))
    }

    /// The rank of a token: its id under the rule of ranks, else the place of its merge.
    pub(crate) fn rank(&self, id: u32) -> Option<u32> {
        match self.core.rule() {
            MergeRule::Ranks => self.core.vocabulary().bytes(id).map(|_| id),
            _ => self.merge_of(id),
        }
    }

    /// The place of the first merge that creates a token.
    fn merge_of(&self, id: u32) -> Option<u32> {
        *self.ranks.get_or_init(|| self.core.ranks()).get(id as usize)?
    }

    /// The place of a pair in the list of merges.
    pub(crate) fn place(&self, pair: (u32, u32)) -> Option<u32> {
        let order = self.order.get_or_init(|| {
            let places = (0..).zip(self.core.merges()).map(|(place, &pair)| (pair, place));
            places.collect::<Vec<_>>().into_iter().rev().collect() // the first place counts
        });
        order.get(&pair).copied()
    }

    /// The tokens that are merged from a token, in rank order.
    pub(crate) fn children(&self, id: u32) -> &[u32] {
        let children = self.children.get_or_init(|| self.make_children());
        let at = |id: usize| children.starts.get(id).copied().unwrap_or_default();
        &children.ids[at(id as usize)..at(id as usize + 1)]
    }

    fn make_children(&self) -> Children {
        let mut by_rank: Vec<(u32, u32)> =
            (0..self.ids()).filter_map(|id| Some((self.merge_of(id)?, id))).collect();
        by_rank.sort_unstable();
        let of = |&(_, child): &(u32, u32)| {
            let (left, right) = self.parts(child).unwrap_or_default();
            [(left, child), (right, child)].into_iter().take(if left == right { 1 } else { 2 })
        };
        let mut arrows: Vec<(u32, u32)> = by_rank.iter().flat_map(of).collect();
        arrows.sort_by_key(|&(part, _)| part); // stable: by rank within a part
        let starts = (0..=self.ids()).map(|id| arrows.partition_point(|&(part, _)| part < id));
        Children { starts: starts.collect(), ids: arrows.iter().map(|&(_, child)| child).collect() }
    }

    /// The number of ids; all are below it.
    pub(crate) fn ids(&self) -> u32 {
        u32::try_from(self.core.vocabulary().len()).unwrap_or(u32::MAX)
    }

    /// The bytes of a token; empty for an id without one.
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        self.core.vocabulary().bytes(id).unwrap_or_default()
    }

    /// An id and the bytes of its token.
    pub(crate) fn named(&self, id: u32) -> Value {
        json!({ "id": id, "hex": hex(self.bytes(id)) })
    }
}

/// Bytes as hexadecimal digits; they may not be text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
