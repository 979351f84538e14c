//! Reads the fields of a `tokenizer.json` as values of the core, and names as ids.
//!
//! Merges that make a special token of several characters, or use it, are dropped: `tokenizers`
//! finds such a token in a text before it merges, and text in which special tokens are not looked
//! for must not get its id. An added token that merging can give in other ways is an ordinary token
//! as well.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::json::{Document, JsonNode, OWN};
use super::tables::{self, Entries, IdsByName, MergeIds};
use super::{fields, pre_tokenizer};
use crate::error::{IGNORE_DROPOUT, Reason, Result};
use crate::formats::ranks::EMPTY_NOTE;
use crate::rules::{
    AddedToken, Decoder, DecoderStep, Normalizer, PreTokenizer, PreTokenizerStep, StartSymbols,
    TextRules,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MergeRule, Vocabulary};

/// The notes for content of a file that changes no id.
pub(super) const PROCESSOR_NOTE: &str = "huggingface.post_processor";
pub(super) const STEPS_NOTE: &str = "huggingface.pre_tokenizer";
pub(super) const PADDING_NOTE: &str = "huggingface.padding";
pub(super) const TRUNCATION_NOTE: &str = "huggingface.truncation";
pub(super) const DECODER_NOTE: &str = "huggingface.decoder";
/// The note with the contents of tokens whose flag `normalized` has no effect.
pub(super) const NORMALIZED_NOTE: &str = "huggingface.normalized";

/// The content of a file, with all names resolved to ids.
pub(super) struct File<'a> {
    pub(super) entries: &'a Entries<'a>,
    pub(super) ids: IdsByName<'a>,
    pub(super) merges: Vec<MergeIds>,
    pub(super) added: Vec<AddedToken>,
    /// The ids of the vocabulary that are no ordinary tokens.
    pub(super) hidden: HashSet<u32>,
    /// From which symbols the model starts, if its tokens are names.
    pub(super) symbols: StartSymbols,
    pub(super) ignore_merges: bool,
    /// The rules around the model, as they are written.
    pub(super) rules: TextRules,
    /// The steps of the pre-tokenizer as patterns, where these do the same.
    pub(super) splits: Vec<PreTokenizerStep>,
    notes: BTreeMap<String, String>,
    /// Whether merges that are the rule of ranks are read as that rule.
    pub(super) may_be_ranks: bool,
}

/// Whether merging may start from a token of this name.
fn is_unit(symbols: &StartSymbols, name: &str) -> bool {
    let inner = name.strip_suffix(&*symbols.suffix).unwrap_or(name);
    let inner = inner.strip_prefix(&*symbols.prefix).unwrap_or(inner);
    let is_one = |text: &str| text.chars().nth(1).is_none() && !text.is_empty();
    is_one(name) || is_one(inner) || (symbols.byte_fallback && byte_of(name).is_some())
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

fn start_symbols(model: &JsonNode<'_>, ids: &IdsByName<'_>) -> Result<StartSymbols> {
    let unknown: Option<String> = model.field("unk_token", Some(None))?;
    Ok(StartSymbols {
        prefix: model.field("continuing_subword_prefix", Some(String::new()))?,
        suffix: model.field("end_of_word_suffix", Some(String::new()))?,
        unknown: unknown.and_then(|name| ids.get(&*name).copied()),
        fuse_unknown: model.field("fuse_unk", Some(false))?,
        byte_fallback: model.field("byte_fallback", Some(false))?,
    })
}

/// The byte that a name such as `<0x0A>` stands for.
pub(super) fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_upper = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
    (digits.len() == 2 && is_upper).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

// ---------------------------------------------------------------------------- reading

impl<'a> File<'a> {
    /// Read the fields of a file. With `lossy`, a dropout is ignored.
    pub(super) fn read(
        document: &Document<'_>,
        entries: &'a Entries<'_>,
        lossy: bool,
    ) -> Result<Self> {
        let (ids, model) = (tables::by_name(entries)?, document.model());
        check_dropout(&model, lossy)?;
        let symbols = start_symbols(&model, &ids)?;
        let ignore_merges = model.field("ignore_merges", Some(false))?;
        let mut added = fields::read_added_tokens(document.field("added_tokens"), &ids)?;
        let mut notes = notes(document);
        let (rules, splits) = read_rules(document, &mut notes)?;
        if rules.normalizer.steps.is_empty() {
            let contents = fields::without_normalized(&mut added);
            if !contents.is_empty() {
                notes.insert(NORMALIZED_NOTE.into(), Value::from(contents).to_string());
            }
        }
        let merges = tables::merges(document.merges, &ids, &symbols.prefix)?;
        let may_be_ranks = model.value[OWN]["merge_rule"] != "merges";
        let several = added.iter().filter(|token| {
            ids.contains_key(&*token.content) && !is_unit(&symbols, &token.content)
        });
        let mut hidden = hidden(&several, &merges, ignore_merges);
        // An empty name stands for nothing.
        if let Some(id) = ids.get("") {
            notes.insert(EMPTY_NOTE.to_owned(), id.to_string());
            hidden.insert(*id);
        }
        Ok(Self {
            entries,
            ids,
            merges,
            added,
            hidden,
            symbols,
            ignore_merges,
            rules,
            splits,
            notes,
            may_be_ranks,
        })
    }

    /// Whether symbols depend on their place in a pretoken.
    pub(super) fn has_affixes(&self) -> bool {
        !self.symbols.prefix.is_empty() || !self.symbols.suffix.is_empty()
    }

    /// The merges of ordinary tokens.
    pub(super) fn ordinary_merges(&self) -> impl Iterator<Item = &MergeIds> {
        self.merges.iter().filter(|merge| merge.iter().all(|id| !self.hidden.contains(id)))
    }

    /// The names and ids of the ordinary tokens.
    pub(super) fn ordinary(&self) -> impl Iterator<Item = (&str, u32)> {
        let all = self.entries.iter().map(|(name, id)| (&*name.0, *id));
        all.filter(|(_, id)| !self.hidden.contains(id))
    }

    /// Whether an added token is an ordinary token as well.
    pub(super) fn is_ordinary(&self, token: &AddedToken) -> bool {
        self.ids.contains_key(&*token.content) && !self.hidden.contains(&token.id)
    }

    /// The parts of the tokenizer with these tokens, which merge by this rule.
    pub(super) fn finish(
        self,
        tokens: Vec<(Vec<u8>, u32)>,
        twins: Vec<(Vec<u8>, u32)>,
        rule: MergeRule,
    ) -> Result<TokenizerParts> {
        let merges = self.ordinary_merges().map(|&[left, right, _]| (left, right)).collect();
        let vocabulary = Vocabulary::with_added(tokens, twins, self.added)?;
        Ok(TokenizerParts { vocabulary, rule, merges, rules: self.rules, notes: self.notes })
    }
}

/// The ids of added tokens in the vocabulary that are not ordinary tokens: of those of several
/// characters, the special ones, and others that merges of other tokens neither use nor make.
fn hidden<'t>(
    several: &(impl Iterator<Item = &'t AddedToken> + Clone),
    merges: &[MergeIds],
    ignore_merges: bool,
) -> HashSet<u32> {
    let ids = |special| several.clone().filter(move |t| t.special == special).map(|t| t.id);
    let (special, mut others): (HashSet<u32>, HashSet<u32>) =
        (ids(true).collect(), ids(false).collect());
    if ignore_merges || others.is_empty() {
        return special;
    }
    for merge in merges.iter().filter(|merge| merge.iter().all(|id| !special.contains(id))) {
        for id in merge {
            others.remove(id);
        }
    }
    &special | &others
}

/// What stands around the model, and the steps of the pre-tokenizer as patterns; how they are
/// written is noted for other programs.
fn read_rules(
    document: &Document<'_>,
    notes: &mut BTreeMap<String, String>,
) -> Result<(TextRules, Vec<PreTokenizerStep>)> {
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
    let rules = TextRules {
        normalizer: Normalizer { steps: document.part("normalizer", fields::read_normalizer)? },
        pre_tokenizer: PreTokenizer { steps: as_written },
        post_processor: document.part("post_processor", fields::read_post_processor)?,
        decoder: Decoder::Steps(decoder),
        ..TextRules::default()
    };
    Ok((rules, steps))
}

/// The notes for what changes no id.
fn notes(document: &Document<'_>) -> BTreeMap<String, String> {
    let fields = [
        ("post_processor", PROCESSOR_NOTE),
        ("padding", PADDING_NOTE),
        ("truncation", TRUNCATION_NOTE),
    ];
    let note = |(field, note): (&'static str, &str)| {
        Some((note.to_owned(), document.field(field)?.value.to_string()))
    };
    let without = document.field("decoder").is_none();
    let without = without.then(|| (DECODER_NOTE.to_owned(), "null".to_owned()));
    fields.into_iter().filter_map(note).chain(without).collect()
}
