//! Reads the fields of a `tokenizer.json` as values of the core, and names as ids.
//!
//! Merges that make a special token of several characters, or use it, are dropped: `tokenizers`
//! finds such a token in a text before it merges, and text in which special tokens are not looked
//! for must not get its id. An added token that merging can give in other ways is an ordinary token
//! as well.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::json::{Document, JsonNode};
use super::tables::{self, Entries, IdsByName, MergeIds};
use super::{fields, pre_tokenizer};
use crate::error::{IGNORE_DROPOUT, Reason, Result};
use crate::formats::ranks::EMPTY_NOTE;
use crate::rules::{
    AddedToken, DecoderStep, Normalizer, PostProcessor, PreTokenizerStep, TextRules,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MergeRule, Vocabulary};

/// The notes for content of a file that changes no id.
pub(super) const PROCESSOR_NOTE: &str = "huggingface.post_processor";
pub(super) const STEPS_NOTE: &str = "huggingface.pre_tokenizer";
pub(super) const PADDING_NOTE: &str = "huggingface.padding";
pub(super) const TRUNCATION_NOTE: &str = "huggingface.truncation";
pub(super) const DECODER_NOTE: &str = "huggingface.decoder";
/// The note with the contents of tokens whose flag `normalized` tells nothing.
pub(super) const NORMALIZED_NOTE: &str = "huggingface.normalized";

/// What a file says, with all names resolved.
pub(super) struct File<'a> {
    pub(super) entries: &'a Entries<'a>,
    pub(super) ids: IdsByName<'a>,
    pub(super) model: Model,
    pub(super) merges: Vec<MergeIds>,
    pub(super) added: Vec<AddedToken>,
    /// The ids of the added tokens that are in the vocabulary, but not ordinary tokens.
    hidden: HashSet<u32>,
    pub(super) rules: Literal,
    notes: BTreeMap<String, String>,
    /// Whether merges that are the rule of ranks are read as that rule.
    pub(super) may_be_ranks: bool,
}

/// What stands around the model, as written.
pub(super) struct Literal {
    pub(super) normalizer: Normalizer,
    /// The steps of the pre-tokenizer, and the same in fewer steps.
    pub(super) as_written: Vec<PreTokenizerStep>,
    pub(super) steps: Vec<PreTokenizerStep>,
    post_processor: PostProcessor,
    /// The steps of the decoder; none if there is no decoder.
    pub(super) decoder: Vec<DecoderStep>,
}

/// The settings of a model.
pub(super) struct Model {
    pub(super) unknown: Option<String>,
    pub(super) prefix: String,
    pub(super) suffix: String,
    pub(super) fuse_unknown: bool,
    pub(super) byte_fallback: bool,
    pub(super) ignore_merges: bool,
}

impl Model {
    fn read(node: &JsonNode<'_>, lossy: bool) -> Result<Self> {
        check_dropout(node, lossy)?;
        Ok(Self {
            unknown: node.field("unk_token", Some(None))?,
            prefix: node.field("continuing_subword_prefix", Some(String::new()))?,
            suffix: node.field("end_of_word_suffix", Some(String::new()))?,
            fuse_unknown: node.field("fuse_unk", Some(false))?,
            byte_fallback: node.field("byte_fallback", Some(false))?,
            ignore_merges: node.field("ignore_merges", Some(false))?,
        })
    }

    /// Whether symbols depend on their place in a pretoken.
    pub(super) fn has_affixes(&self) -> bool {
        !self.prefix.is_empty() || !self.suffix.is_empty()
    }

    /// Whether merging may start from a token of this name.
    fn is_unit(&self, name: &str) -> bool {
        let inner = name.strip_suffix(&*self.suffix).unwrap_or(name);
        let inner = inner.strip_prefix(&*self.prefix).unwrap_or(inner);
        let is_one = |text: &str| text.chars().nth(1).is_none() && !text.is_empty();
        is_one(name) || is_one(inner) || (self.byte_fallback && byte_of(name).is_some())
    }
}

/// Fails if merges are left out at random.
fn check_dropout(model: &JsonNode<'_>, lossy: bool) -> Result<()> {
    let Some(dropout) = model.find("dropout")? else { return Ok(()) };
    match dropout.value.as_f64().filter(|chance| (0.0..=1.0).contains(chance)) {
        None => Err(dropout.invalid(format!("{} is not in 0 … 1", dropout.value))),
        Some(chance) if chance > 0.0 && !lossy => {
            let text = format!(
                "with the chance {chance}, merges are left out at random, so a text has no certain ids"
            );
            Err(dropout.unsupported(Reason::new(text, IGNORE_DROPOUT)))
        }
        Some(_) => Ok(()),
    }
}

/// The byte that a name such as `<0x0A>` stands for.
pub(super) fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_upper = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
    (digits.len() == 2 && is_upper).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

// ---------------------------------------------------------------------------- reading

impl<'a> File<'a> {
    /// With `lossy`, a dropout is ignored.
    pub(super) fn read(
        document: &Document<'_>,
        entries: &'a Entries<'_>,
        lossy: bool,
    ) -> Result<Self> {
        let ids = tables::by_name(entries)?;
        let model = Model::read(&document.model(), lossy)?;
        let mut added = fields::read_added_tokens(document.field("added_tokens"), &ids)?;
        let mut notes = notes(document);
        let rules = Literal::read(document, &mut notes)?;
        if let Some(id) = ids.get("") {
            notes.insert(EMPTY_NOTE.to_owned(), id.to_string());
        }
        if rules.normalizer.steps.is_empty() {
            let contents = fields::without_normalized(&mut added);
            if !contents.is_empty() {
                notes.insert(NORMALIZED_NOTE.into(), Value::from(contents).to_string());
            }
        }
        let merges = tables::merges(document.merges, &ids, &model.prefix)?;
        let may_be_ranks = document.own("merge_rule").is_none_or(|rule| rule != "merges");
        let hidden = hidden(&added, &merges, &ids, &model);
        Ok(Self { entries, ids, model, merges, added, hidden, rules, notes, may_be_ranks })
    }

    /// The merges of ordinary tokens.
    pub(super) fn ordinary_merges(&self) -> impl Iterator<Item = &MergeIds> {
        self.merges.iter().filter(|merge| merge.iter().all(|id| !self.hidden.contains(id)))
    }

    /// The names and ids of the ordinary tokens. An empty name stands for nothing.
    pub(super) fn ordinary(&self) -> impl Iterator<Item = (&str, u32)> {
        let all = self.entries.iter().map(|(name, id)| (&*name.0, *id));
        all.filter(|(name, id)| !name.is_empty() && !self.hidden.contains(id))
    }

    /// Whether an added token is an ordinary token as well.
    pub(super) fn is_ordinary(&self, token: &AddedToken) -> bool {
        self.ids.contains_key(&*token.content) && !self.hidden.contains(&token.id)
    }

    /// The notes, and what is the same in all forms.
    pub(super) fn finish(
        self,
        vocabulary: Vocabulary,
        rule: MergeRule,
        merges: Vec<(u32, u32)>,
        rules: TextRules,
    ) -> TokenizerParts {
        let rules = TextRules { post_processor: self.rules.post_processor, ..rules };
        TokenizerParts { vocabulary, rule, merges, rules, notes: self.notes }
    }
}

/// The ids of the added tokens that are in the vocabulary, but not ordinary tokens: the special ones
/// of several characters, and others that merges of other tokens neither use nor make.
fn hidden(
    added: &[AddedToken],
    merges: &[MergeIds],
    ids: &IdsByName<'_>,
    model: &Model,
) -> HashSet<u32> {
    let several =
        |token: &&AddedToken| ids.contains_key(&*token.content) && !model.is_unit(&token.content);
    let (special, others): (Vec<&AddedToken>, Vec<&AddedToken>) =
        added.iter().filter(several).partition(|token| token.special);
    let special: HashSet<u32> = special.iter().map(|token| token.id).collect();
    if model.ignore_merges || others.is_empty() {
        return special;
    }
    let mut others: HashSet<u32> = others.iter().map(|token| token.id).collect();
    for merge in merges.iter().filter(|merge| merge.iter().all(|id| !special.contains(id))) {
        for id in merge {
            others.remove(id);
        }
    }
    &special | &others
}

impl Literal {
    /// Notes how the steps of the pre-tokenizer are written, for other programs, where they are joined.
    fn read(document: &Document<'_>, notes: &mut BTreeMap<String, String>) -> Result<Self> {
        let decoder = match document.field("decoder") {
            None => Vec::new(),
            // A sequence without decoders joins the tokens; without a decoder, spaces are between.
            Some(node) => match fields::read_decoder(&node)? {
                steps if steps.is_empty() => vec![DecoderStep::Fuse],
                steps => steps,
            },
        };
        let as_written = document.part("pre_tokenizer", pre_tokenizer::read)?;
        let steps = pre_tokenizer::of_text(as_written.clone());
        if let Some(node) = document.field("pre_tokenizer")
            && steps != as_written
        {
            notes.insert(STEPS_NOTE.to_owned(), node.value.to_string());
        }
        Ok(Self {
            normalizer: Normalizer { steps: document.part("normalizer", fields::read_normalizer)? },
            as_written,
            steps,
            post_processor: document.part("post_processor", fields::read_post_processor)?,
            decoder,
        })
    }
}

/// The notes for what changes no id.
fn notes(document: &Document<'_>) -> BTreeMap<String, String> {
    let mut notes = BTreeMap::new();
    for (field, note) in [
        ("post_processor", PROCESSOR_NOTE),
        ("padding", PADDING_NOTE),
        ("truncation", TRUNCATION_NOTE),
    ] {
        if let Some(node) = document.field(field) {
            notes.insert(note.to_owned(), node.value.to_string());
        }
    }
    if document.field("decoder").is_none() {
        notes.insert(DECODER_NOTE.to_owned(), "null".to_owned());
    }
    notes
}
