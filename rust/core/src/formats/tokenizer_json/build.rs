//! The fields of a `tokenizer.json` in, the parts of a tokenizer out.
//!
//! A file has one of three forms:
//!
//! - *bytes*: a `ByteLevel` maps the bytes of a text to GPT-2's characters, and the decoder maps
//!   them back. The tokens become bytes.
//! - *spaces*: the model merges characters and falls back to bytes, and U+2581 stands for a space
//!   (see [`super::spaces`]). The tokens become bytes, with spaces.
//! - *symbols*: anything else. The tokens keep their names, and everything is done as written.
//!
//! Two rules hold for all. Merges that make a special token of several characters, or use it, are
//! dropped: `tokenizers` finds such a token in a text before it merges, and text in which special
//! tokens are not looked for must not get its id. An added token that merging can give in other ways
//! is an ordinary token as well.

use std::collections::{BTreeMap, HashSet};

use super::document::Document;
use super::json::Node;
use super::tables::{self, Entries, IdsByName, Merge};
use super::{added_tokens, decoder, normalizer, post_processor, pre_tokenizer, spaces};
use crate::error::Result;
use crate::formats::rule_of_ranks::is_rule_of_ranks;
use crate::memory;
use crate::rules::byte_level::to_bytes;
use crate::rules::{
    AddedToken, Decoder, DecoderStep, Normalizer, PostProcessor, PreTokenizer, PreTokenizerStep,
    SymbolUnit, Symbols, TextRules,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MergeRule, NO_ID, TOKEN, Vocabulary};

/// The notes for content of a file that changes no id.
pub(super) const PROCESSOR_NOTE: &str = "huggingface.post_processor";
pub(super) const PADDING_NOTE: &str = "huggingface.padding";
pub(super) const TRUNCATION_NOTE: &str = "huggingface.truncation";
pub(super) const DROPOUT_NOTE: &str = "huggingface.dropout";
pub(super) const NORMALIZED_NOTE: &str = "huggingface.normalized";

/// What a file says, with all names resolved.
pub(super) struct File<'a> {
    pub(super) entries: &'a Entries<'a>,
    pub(super) ids: IdsByName<'a>,
    pub(super) model: Model,
    pub(super) merges: Vec<Merge>,
    pub(super) added: Vec<AddedToken>,
    /// The ids of the added tokens that are in the vocabulary, but not ordinary tokens.
    hidden: HashSet<u32>,
    pub(super) rules: Literal,
    notes: BTreeMap<String, String>,
    /// Whether merges that are the rule of ranks are read as that rule.
    may_be_ranks: bool,
}

/// What stands around the model, as written.
pub(super) struct Literal {
    pub(super) normalizer: Normalizer,
    pub(super) steps: Vec<PreTokenizerStep>,
    post_processor: PostProcessor,
    /// The steps of the decoder; none if there is no decoder.
    pub(super) decoder: Vec<DecoderStep>,
}

/// The settings of a model.
pub(super) struct Model {
    unknown: Option<String>,
    pub(super) prefix: String,
    pub(super) suffix: String,
    fuse_unknown: bool,
    pub(super) byte_fallback: bool,
    pub(super) ignore_merges: bool,
}

impl Model {
    fn read(node: &Node<'_>) -> Result<Self> {
        let text = |name| -> Result<Option<String>> {
            node.find(name)?.map(|value| Ok(value.text()?.to_owned())).transpose()
        };
        Ok(Self {
            unknown: text("unk_token")?,
            prefix: text("continuing_subword_prefix")?.unwrap_or_default(),
            suffix: text("end_of_word_suffix")?.unwrap_or_default(),
            fuse_unknown: node.flag("fuse_unk", false)?,
            byte_fallback: node.flag("byte_fallback", false)?,
            ignore_merges: node.flag("ignore_merges", false)?,
        })
    }

    /// Whether merging may start from a token of this name.
    fn is_unit(&self, name: &str) -> bool {
        let inner = name.strip_suffix(&*self.suffix).unwrap_or(name);
        let inner = inner.strip_prefix(&*self.prefix).unwrap_or(inner);
        let is_one = |text: &str| text.chars().nth(1).is_none() && !text.is_empty();
        is_one(name) || is_one(inner) || (self.byte_fallback && byte_of(name).is_some())
    }
}

/// The byte that a name such as `<0x0A>` stands for.
pub(super) fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_upper = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
    (digits.len() == 2 && is_upper).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

// ---------------------------------------------------------------------------- reading

/// The parts of the tokenizer in a document.
pub(super) fn parts(document: &Document<'_>, lossy: bool) -> Result<TokenizerParts> {
    let entries = tables::vocabulary(document.vocabulary)?;
    let file = File::read(document, &entries, lossy)?;
    if let Some(form) = spaces::form(&file) {
        return spaces::parts(file, form);
    }
    if file.is_of_bytes() { file.of_bytes() } else { file.of_symbols() }
}

impl<'a> File<'a> {
    fn read(document: &Document<'_>, entries: &'a Entries<'_>, lossy: bool) -> Result<Self> {
        let ids = tables::by_name(entries)?;
        let settings = document.model();
        let model = Model::read(&settings)?;
        let mut added = added_tokens::read(document.field("added_tokens"), &ids)?;
        let rules = Literal::read(document, lossy)?;
        let mut notes = notes(document)?;
        if rules.normalizer.steps.is_empty() {
            let contents = added_tokens::without_normalized(&mut added);
            if !contents.is_empty() {
                notes.insert(NORMALIZED_NOTE.into(), serde_json::Value::from(contents).to_string());
            }
        }
        let merges = tables::merges(document.merges, &ids, &model.prefix)?;
        let own = settings.value.get("bytepair").and_then(|own| own.get("merge_rule"));
        let may_be_ranks = own.is_none_or(|rule| rule != "merges");
        let hidden = HashSet::new();
        let mut file =
            Self { entries, ids, model, merges, added, hidden, rules, notes, may_be_ranks };
        file.hide_added();
        Ok(file)
    }

    /// Find out which added tokens are no ordinary tokens, and drop the merges of the special ones.
    fn hide_added(&mut self) {
        let listed = |token: &&AddedToken| self.ids.contains_key(&*token.content);
        let several = |token: &&AddedToken| !self.model.is_unit(&token.content);
        let added = self.added.iter().filter(listed).filter(several);
        let (special, others): (Vec<&AddedToken>, Vec<&AddedToken>) =
            added.partition(|token| token.special);
        let special: HashSet<u32> = special.iter().map(|token| token.id).collect();
        if !special.is_empty() {
            self.merges.retain(|merge| merge.iter().all(|id| !special.contains(id)));
        }
        let mut hidden = special;
        if !self.model.ignore_merges {
            hidden.extend(others.iter().map(|token| token.id));
            let merged = self.merges.iter().flatten();
            let special: HashSet<u32> =
                self.added.iter().filter(|token| token.special).map(|token| token.id).collect();
            for id in merged.filter(|id| !special.contains(id)) {
                hidden.remove(id);
            }
        }
        self.hidden = hidden;
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

    pub(super) fn unknown(&self) -> Option<u32> {
        self.model.unknown.as_ref().and_then(|name| self.ids.get(name.as_str()).copied())
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

impl Literal {
    fn read(document: &Document<'_>, lossy: bool) -> Result<Self> {
        let steps = document.field("normalizer").map(|node| normalizer::read(&node)).transpose();
        let steps = match steps {
            Err(crate::Error::Unsupported { .. }) if lossy => None,
            other => other?,
        };
        let normalizer = Normalizer { steps: steps.unwrap_or_default() };
        let steps = document.field("pre_tokenizer").map(|node| pre_tokenizer::read(&node));
        let processor = document.field("post_processor").map(|node| post_processor::read(&node));
        let decoder = document.field("decoder").map(|node| decoder::read(&node));
        let decoder = match decoder.transpose()? {
            // A sequence without decoders joins the tokens; without a decoder, spaces are between.
            Some(steps) if steps.is_empty() => vec![DecoderStep::Fuse],
            other => other.unwrap_or_default(),
        };
        Ok(Self {
            normalizer,
            steps: steps.transpose()?.unwrap_or_default(),
            post_processor: processor.transpose()?.unwrap_or_default(),
            decoder,
        })
    }
}

/// The notes for what changes no id.
fn notes(document: &Document<'_>) -> Result<BTreeMap<String, String>> {
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
    if let Some(dropout) = document.model().find("dropout")? {
        let chance = dropout.value.as_f64().filter(|chance| (0.0..=1.0).contains(chance));
        match chance {
            None => return Err(dropout.invalid(format!("{} is not in 0 … 1", dropout.value))),
            Some(0.0) => {}
            Some(_) => _ = notes.insert(DROPOUT_NOTE.to_owned(), dropout.value.to_string()),
        }
    }
    Ok(notes)
}

// ---------------------------------------------------------------------------- bytes

impl File<'_> {
    /// Whether the file has the form *bytes*.
    fn is_of_bytes(&self) -> bool {
        let maps = self.rules.steps.iter().filter(|step| pre_tokenizer::maps_bytes(step)).count();
        let model = &self.model;
        let plain = model.prefix.is_empty() && model.suffix.is_empty();
        // The text of an added token that is an ordinary token too must be its name: a character
        // such as U+0120, which stands for a space, is looked for in a text as that character.
        let differs = |content: &str| to_bytes(content).is_some_and(|b| b != content.as_bytes());
        maps == 1
            && plain
            && self.rules.decoder == [DecoderStep::ByteLevel]
            && ((model.unknown.is_none() && !model.byte_fallback) || self.has_all_bytes())
            && !self.added.iter().any(|token| self.is_ordinary(token) && differs(&token.content))
    }

    fn has_all_bytes(&self) -> bool {
        let single = |(name, _): &(&str, u32)| to_bytes(name).is_some_and(|b| b.len() == 1);
        self.ordinary().filter(single).count() == 256
    }

    /// The parts of a tokenizer whose tokens are bytes. A token with a character that stands for no
    /// byte comes from no text; it is only decoded.
    fn of_bytes(mut self) -> Result<TokenizerParts> {
        memory::check(self.entries.len().saturating_mul(2 * TOKEN))?;
        let (mut tokens, mut twins) = (Vec::with_capacity(self.entries.len()), Vec::new());
        let added: HashSet<u32> = self.added.iter().map(|token| token.id).collect();
        for (name, id) in self.ordinary() {
            match to_bytes(name) {
                Some(token) => tokens.push((token, id)),
                None if added.contains(&id) => {}
                None => twins.push((name.as_bytes().to_vec(), id)),
            }
        }
        let known: HashSet<u32> = tokens.iter().map(|(_, id)| *id).collect();
        let usable = self.merges.iter().filter(|merge| merge.iter().all(|id| known.contains(id)));
        let merges: Vec<(u32, u32)> = usable.map(|&[left, right, _]| (left, right)).collect();
        let added = std::mem::take(&mut self.added);
        let vocabulary = Vocabulary::with_added(tokens, twins, added)?;
        let ignore_merges = self.model.ignore_merges;
        let ranks = self.may_be_ranks && is_rule_of_ranks(&vocabulary, &merges, ignore_merges)?;
        let mut steps = std::mem::take(&mut self.rules.steps);
        // Tokens of bytes imply it.
        steps.pop_if(|step| {
            *step == PreTokenizerStep::ByteLevel { add_prefix_space: false, use_regex: false }
        });
        let rules = TextRules {
            normalizer: std::mem::take(&mut self.rules.normalizer),
            pre_tokenizer: PreTokenizer { steps },
            ..TextRules::default()
        };
        if ranks {
            return Ok(self.finish(vocabulary, MergeRule::Ranks, Vec::new(), rules));
        }
        Ok(self.finish(vocabulary, MergeRule::Merges { ignore_merges }, merges, rules))
    }
}

// ---------------------------------------------------------------------------- symbols

impl File<'_> {
    /// The parts of a tokenizer whose tokens keep their names.
    fn of_symbols(mut self) -> Result<TokenizerParts> {
        let tokens: Vec<(Vec<u8>, u32)> =
            self.ordinary().map(|(name, id)| (name.as_bytes().to_vec(), id)).collect();
        let rules = TextRules {
            normalizer: std::mem::take(&mut self.rules.normalizer),
            pre_tokenizer: PreTokenizer { steps: std::mem::take(&mut self.rules.steps) },
            symbols: Some(self.symbols()),
            decoder: Decoder::Steps(std::mem::take(&mut self.rules.decoder)),
            ..TextRules::default()
        };
        let merges = self.merges.iter().map(|&[left, right, _]| (left, right)).collect();
        let added = std::mem::take(&mut self.added);
        let vocabulary = Vocabulary::with_added(tokens, [], added)?;
        let rule = MergeRule::Merges { ignore_merges: self.model.ignore_merges };
        Ok(self.finish(vocabulary, rule, merges, rules))
    }

    fn symbols(&self) -> Symbols {
        let mut byte_ids = Vec::new();
        if self.model.byte_fallback {
            let id = |byte: u8| self.ids.get(&*format!("<0x{byte:02X}>")).copied();
            byte_ids = (0..=u8::MAX).map(|byte| id(byte).unwrap_or(NO_ID)).collect();
        }
        if byte_ids.iter().all(|&id| id == NO_ID) {
            byte_ids.clear();
        }
        Symbols {
            unit: SymbolUnit::Character,
            prefix: self.model.prefix.clone(),
            suffix: self.model.suffix.clone(),
            unknown: self.unknown(),
            fuse_unknown: self.model.fuse_unknown,
            byte_ids,
        }
    }
}
