//! The values of a tokenizer, before they are put together.

use std::collections::{BTreeMap, HashSet};

use crate::error::{Error, Result};
use crate::memory;
use crate::pretokenize::{META, Pattern, THEN};
use crate::rules::{
    AddedToken, Behavior, Decoder, NormalizerStep, PreTokenizerStep, SpacePrefix, TextRules,
};
use crate::tokenizer::Tokenizer;
use crate::tokenizer::overlap::overlap;
use crate::vocabulary::{MergeRule, Vocabulary};

/// What a tokenizer is made of.
#[derive(Debug, Clone)]
pub struct TokenizerParts {
    /// The tokens with their ids, and the added tokens.
    pub vocabulary: Vocabulary,
    /// Which neighbours merge. With [`TextRules::symbols`], merging starts from those symbols.
    pub rule: MergeRule,
    /// The pairs of ids that merge, in order; empty for [`MergeRule::Ranks`].
    pub merges: Vec<(u32, u32)>,
    /// What happens before and after merging.
    pub rules: TextRules,
    /// Notes on the origin.
    pub notes: BTreeMap<String, String>,
}

/// The pattern that splits before each space.
const BEFORE_SPACES: &str = r" [^ ]*|[^ ]+";
/// The pattern that splits nothing.
const WHOLE: &str = "(?s:.)+";

impl Tokenizer {
    /// Put a tokenizer together.
    ///
    /// Fails with [`Error::Unsupported`] if a rule is not supported, and as
    /// [`from_merges`](Self::from_merges) does.
    pub fn from_parts(parts: TokenizerParts) -> Result<Self> {
        let TokenizerParts { vocabulary, rule, merges, rules, notes } = parts;
        require(rules.symbols.is_none(), "model", "merging starts from other symbols than bytes")?;
        require(rules.decoder == Decoder::Bytes, "decoder", "it is not the usual one")?;
        let steps = &rules.pre_tokenizer.steps;
        let patterns = steps.iter().map(step).collect::<Result<Vec<_>>>()?;
        let split = if patterns.is_empty() { WHOLE.to_owned() } else { patterns.join(THEN) };
        let form = form(&rules.normalizer.steps)?;
        let (vocabulary, user_defined) = without_user_defined(vocabulary, &rules)?;
        check_added(vocabulary.added_tokens(), &rules)?;
        let notes = with_flags(notes, vocabulary.added_tokens());
        let pattern =
            [form, &marks(vocabulary.added_tokens()), &ids("user-defined", user_defined), &split]
                .concat();
        let pattern = Pattern::from_regex(&pattern);
        let made = match rule {
            MergeRule::Ranks => Self::from_ranks(vocabulary, pattern)?,
            MergeRule::Merges { ignore_merges } => {
                Self::from_merges(vocabulary, merges, ignore_merges, pattern)?
            }
            MergeRule::Characters => Self::from_characters(vocabulary, merges, pattern)?,
        };
        Ok(made.with_notes(notes))
    }

    /// The parts of this tokenizer; the inverse of [`from_parts`](Self::from_parts).
    ///
    /// Fails if there is not enough memory.
    pub fn parts(&self) -> Result<TokenizerParts> {
        self.make_tables()?;
        let (rule, mut rules) = (self.rule(), TextRules::default());
        let pattern = self.pattern();
        rules.normalizer.steps.extend(form_of(pattern.regex()));
        let steps = pattern.steps().into_iter().map(|pattern| match pattern.regex() {
            BEFORE_SPACES if rule == MergeRule::Characters => PreTokenizerStep::BeforeSpaces,
            _ => PreTokenizerStep::Split { pattern, behavior: Behavior::Isolated, invert: false },
        });
        rules.pre_tokenizer.steps = steps.collect();
        let merges = match rule {
            MergeRule::Ranks => Vec::new(),
            _ => memory::copy(self.merges())?,
        };
        let vocabulary = self.vocabulary().clone().with_flags(self.added_tokens());
        let notes = self.notes().clone();
        Ok(TokenizerParts { vocabulary, rule, merges, rules, notes })
    }

    /// The added tokens and the user-defined ones, with their flags.
    fn added_tokens(&self) -> Vec<AddedToken> {
        let [lstrip, rstrip] = self.pattern().strips();
        let added = self.pattern().added();
        let flags: Flags = flags(self.notes());
        let special = self.vocabulary().special_tokens().iter().map(|(name, id)| {
            let flag = |flag: &str, usual| {
                flags.get(name).and_then(|flags| flags.get(flag)).copied().unwrap_or(usual)
            };
            AddedToken {
                special: !added.contains(id),
                normalized: flag("normalized", false),
                single_word: flag("single_word", false),
                lstrip: lstrip.contains(id),
                rstrip: rstrip.contains(id),
                ..AddedToken::special(name.clone(), *id)
            }
        });
        let user_defined = self.pattern().user_defined().into_iter().filter_map(|id| {
            let text = std::str::from_utf8(self.vocabulary().bytes(id)?).ok()?;
            let token = AddedToken::ordinary(text.replace(' ', "\u{2581}"), id);
            Some(AddedToken { normalized: true, ..token })
        });
        special.chain(user_defined).collect()
    }
}

/// The unusual flags of added tokens, by content.
type Flags = BTreeMap<String, BTreeMap<String, bool>>;

/// The note that holds them.
#[cfg(feature = "json")]
const FLAGS_NOTE: &str = "huggingface.added_tokens";
/// The note with the contents of tokens whose flag `normalized` tells nothing.
#[cfg(feature = "json")]
pub(crate) const NORMALIZED_NOTE: &str = "huggingface.normalized";

#[cfg(feature = "json")]
fn flags(notes: &BTreeMap<String, String>) -> Flags {
    let note = notes.get(FLAGS_NOTE);
    note.and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default()
}

#[cfg(not(feature = "json"))]
fn flags(_: &BTreeMap<String, String>) -> Flags {
    Flags::new()
}

/// The notes with the unusual flags of added tokens.
#[cfg(feature = "json")]
fn with_flags(
    mut notes: BTreeMap<String, String>,
    added: &[AddedToken],
) -> BTreeMap<String, String> {
    let normalized: HashSet<String> = notes
        .remove(NORMALIZED_NOTE)
        .and_then(|note| serde_json::from_str(&note).ok())
        .unwrap_or_default();
    let mut unusual = Flags::new();
    for token in added {
        let mut flags = BTreeMap::new();
        if token.normalized || normalized.contains(&token.content) {
            flags.insert("normalized".to_owned(), true);
        }
        if !flags.is_empty() {
            unusual.insert(token.content.clone(), flags);
        }
    }
    if !unusual.is_empty() {
        notes.insert(FLAGS_NOTE.to_owned(), serde_json::json!(unusual).to_string());
    }
    notes
}

#[cfg(not(feature = "json"))]
fn with_flags(notes: BTreeMap<String, String>, _: &[AddedToken]) -> BTreeMap<String, String> {
    notes
}

/// The vocabulary without the user-defined tokens among the added ones, and their ids: the ordinary
/// tokens that are found in text whose spaces are U+2581.
fn without_user_defined(
    vocabulary: Vocabulary,
    rules: &TextRules,
) -> Result<(Vocabulary, Vec<u32>)> {
    if rules.normalizer.steps != [NormalizerStep::Spaces(SpacePrefix::Never)] {
        return Ok((vocabulary, Vec::new()));
    }
    let shared: HashSet<u32> = vocabulary.shared().iter().copied().collect();
    let is_one = |token: &AddedToken| {
        !token.special
            && token.normalized
            && !(token.lstrip || token.rstrip || token.single_word)
            && shared.contains(&token.id)
    };
    let added = vocabulary.added_tokens().to_vec();
    let (found, added): (Vec<_>, Vec<_>) = added.into_iter().partition(is_one);
    if found.is_empty() {
        return Ok((vocabulary, Vec::new()));
    }
    let tokens = vocabulary.ordinary_tokens().map(|(token, id)| (token.to_vec(), id));
    let twins = vocabulary.twins().iter().filter_map(|&id| Some((vocabulary.bytes(id)?, id)));
    let twins = twins.map(|(token, id)| (token.to_vec(), id));
    let ids = found.iter().map(|token| token.id).collect();
    Ok((Vocabulary::with_added(tokens, twins, added)?, ids))
}

/// The pattern of a step.
fn step(step: &PreTokenizerStep) -> Result<&str> {
    match step {
        PreTokenizerStep::Split { pattern, behavior: Behavior::Isolated, .. } => {
            Ok(pattern.regex())
        }
        PreTokenizerStep::BeforeSpaces => Ok(BEFORE_SPACES),
        PreTokenizerStep::Split { behavior, invert, .. } => {
            let reason = format!(
                "a Split with the behavior {behavior:?} and invert {invert} is not supported, but \
                 only Isolated, and Removed with invert true if the pattern matches all text"
            );
            Err(unsupported("pre_tokenizer", reason))
        }
        PreTokenizerStep::ByteLevel { add_prefix_space: true, .. } => {
            Err(unsupported("pre_tokenizer", "ByteLevel with add_prefix_space is not supported"))
        }
        PreTokenizerStep::ByteLevel { .. } => {
            let reason = "steps after ByteLevel, which split bytes and not text, are not supported";
            Err(unsupported("pre_tokenizer", reason))
        }
        other => Err(unsupported("pre_tokenizer", format!("{} is not supported", other.kind()))),
    }
}

/// The normalizers with a mark.
const FORMS: [(&str, NormalizerStep); 6] = [
    ("(?#NFC)", NormalizerStep::Nfc),
    ("(?#NFKC)", NormalizerStep::Nfkc),
    ("(?#spaces)", NormalizerStep::Spaces(SpacePrefix::Never)),
    ("(?#spaces always)", NormalizerStep::Spaces(SpacePrefix::Always)),
    ("(?#spaces missing)", NormalizerStep::Spaces(SpacePrefix::Missing)),
    ("(?#spaces first)", NormalizerStep::Spaces(SpacePrefix::First)),
];

/// The normalizer of a mark at the start of a pattern.
fn form_of(pattern: &str) -> Option<NormalizerStep> {
    FORMS.iter().find(|(mark, _)| pattern.starts_with(mark)).map(|(_, step)| step.clone())
}

/// Whether a normalizer is supported.
#[cfg(feature = "json")]
pub(crate) fn is_supported(steps: &[NormalizerStep]) -> bool {
    form(steps).is_ok()
}

/// The mark of a normalizer.
fn form(steps: &[NormalizerStep]) -> Result<&'static str> {
    match steps {
        [] => Ok(""),
        [step] if FORMS.iter().any(|(_, known)| known == step) => {
            Ok(FORMS.iter().find(|(_, known)| known == step).map_or("", |(mark, _)| *mark))
        }
        steps => {
            let kinds: Vec<&str> = steps.iter().map(NormalizerStep::kind).collect();
            let reason = format!(
                "{} is not supported, but only NFC or NFKC; normalize texts yourself and pass \
                 lossy=True to ignore it",
                kinds.join(", ")
            );
            Err(unsupported("normalizer", reason))
        }
    }
}

/// Fails if an added token is found in another way than special tokens are.
fn check_added(added: &[AddedToken], rules: &TextRules) -> Result<()> {
    let place = "added_tokens";
    for token in added {
        let name = &token.content;
        if token.single_word {
            let reason = format!(
                "{name:?} does not match within a word; pass lossy=True to match it there too"
            );
            return Err(unsupported(place, reason));
        }
        if token.normalized && may_change(&rules.normalizer.steps, name) {
            let reason = format!("{name:?} is looked for in normalized text");
            return Err(unsupported(place, reason));
        }
    }
    check_passes(added)
}

/// Fails if a match may depend on the order of the two passes: `tokenizers` first finds the tokens
/// without `normalized`, then the others in the remaining text; here all are found at once, from left
/// to right. The result is the same if no token of the second pass can begin before one of the first
/// and overlap it.
fn check_passes(added: &[AddedToken]) -> Result<()> {
    let kinds = [true, false].map(|kind| added.iter().filter(move |t| t.normalized == kind));
    let [then, first] = kinds.map(|kind| kind.map(|token| &*token.content).collect::<Vec<_>>());
    if then.is_empty() || first.is_empty() {
        return Ok(());
    }
    let strips = added.iter().any(|token| token.lstrip || token.rstrip);
    let spaced = |name: &&&str| strips && name.trim() != **name;
    // The first pass may take white space that others need.
    let shared = then.iter().chain(&first).find(spaced).copied();
    match shared.or_else(|| overlap(&then, &first)) {
        Some(shared) => Err(unsupported(
            "added_tokens",
            format!(
                "tokens with and without `normalized` share {shared:?} and may overlap in a text"
            ),
        )),
        None => Ok(()),
    }
}

/// Whether a normalizer may change where a token is found: it changes its name, or characters beside
/// it. The spaces that are put before a text do not count: those of [`SpacePrefix::Missing`] and
/// [`SpacePrefix::First`] are put when the tokens are cut out.
fn may_change(steps: &[NormalizerStep], name: &str) -> bool {
    match steps {
        [] | [NormalizerStep::Spaces(SpacePrefix::Missing | SpacePrefix::First)] => false,
        [NormalizerStep::Spaces(SpacePrefix::Never)] => name.contains([' ', META]),
        [NormalizerStep::Nfc] => !(name.is_ascii() && name.trim().is_empty()),
        _ => true,
    }
}

/// The marks of the tokens that take the white space beside them, and of those found in every text.
fn marks(added: &[AddedToken]) -> String {
    let side = |name: &str, takes: fn(&AddedToken) -> bool| {
        ids(name, added.iter().filter(|token| takes(token)).map(|token| token.id).collect())
    };
    side("lstrip", |token| token.lstrip)
        + &side("rstrip", |token| token.rstrip)
        + &side("added", |token| !token.special)
}

/// A mark with ids; nothing without ids.
fn ids(name: &str, mut ids: Vec<u32>) -> String {
    ids.sort_unstable();
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    if ids.is_empty() { String::new() } else { format!("(?#{name} {})", ids.join(" ")) }
}

fn require(holds: bool, place: &str, reason: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(unsupported(place, reason)) }
}

fn unsupported(place: &str, reason: impl Into<String>) -> Error {
    Error::Unsupported { place: place.to_owned(), reason: reason.into() }
}
