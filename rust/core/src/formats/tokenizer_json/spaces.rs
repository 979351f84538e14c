//! Files of models that SentencePiece trained: characters with byte fallback, and U+2581 for spaces.
//!
//! Where the normalizer or the pre-tokenizer, the decoder and the vocabulary have their usual form,
//! the tokens become bytes with spaces for U+2581. A byte that is a character with a token as well
//! has two ids: encoding gives that of the character, and the other, its *twin*, is only decoded.
//!
//! Such a tokenizer does not split text. Splitting between two characters that are adjacent in no
//! token changes no id, since no merge crosses that place, and then pretokens repeat and can be
//! cached. [`split_pattern`] chooses such places.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::file::{File, Model, byte_of};
use super::json::unsupported;
use super::tables::{MERGES, MergeIds, VOCABULARY};
use crate::error::{Error, Result};
use crate::pretokenize::{META, Pattern, Splitter};
use crate::rules::{
    AddedToken, DecoderStep, Normalizer, NormalizerStep, PreTokenizer, PreTokenizerStep,
    ReplacePattern, SpacePrefix, TextRules,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::{MergeRule, Vocabulary};

/// Where a space is put, and whether the text is split before each space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpacesForm {
    pub(super) prefix: SpacePrefix,
    pub(super) splits: bool,
}

// ---------------------------------------------------------------------------- reading

/// The form of a file of this kind. Fails for all others; with `lossy`, the decoder may be another.
pub(super) fn form(file: &File<'_>, lossy: bool) -> Result<SpacesForm> {
    check_model(&file.model)?;
    let form = form_of_rules(&file.rules.normalizer.steps, &file.rules.steps)?;
    let wanted = decoder(form.prefix);
    if !file.rules.decoder.is_empty() && file.rules.decoder != wanted && !lossy {
        let strip = if wanted.len() > 3 { ", Strip" } else { "" };
        let reason = format!(
            "it is not the usual sequence for this normalizer or pre-tokenizer (Replace, \
             ByteFallback, Fuse{strip}); pass lossy=True to decode with that sequence"
        );
        return Err(unsupported("decoder", reason));
    }
    check_vocabulary(file)?;
    for token in &file.added {
        check_added(file, token, form, lossy)?;
    }
    Ok(form)
}

fn check_model(model: &Model) -> Result<()> {
    model.check_affixes()?;
    if !model.byte_fallback {
        let reason = "without it, characters without a token are lost or unknown; models that merge \
                      characters are supported with it, and models of bytes with ByteLevel as \
                      pre-tokenizer and decoder";
        return Err(unsupported("model.byte_fallback", reason));
    }
    if model.ignore_merges {
        let reason = "a text that is a token would become that token without merging";
        return Err(unsupported("model.ignore_merges", reason));
    }
    Ok(())
}

/// The form that the normalizer and the pre-tokenizer have.
fn form_of_rules(normalizer: &[NormalizerStep], steps: &[PreTokenizerStep]) -> Result<SpacesForm> {
    if let ([], [PreTokenizerStep::Metaspace { replacement: META, prefix, split }]) =
        (normalizer, steps)
    {
        return Ok(SpacesForm { prefix: *prefix, splits: *split });
    }
    let to_meta = replace(" ", META.to_string());
    let prepend = NormalizerStep::Prepend(META.to_string());
    // No space is left, at which a text could be split.
    let at_space = |step: &PreTokenizerStep| matches!(step, PreTokenizerStep::Split { pattern, .. } if pattern.regex() == " ");
    if normalizer.is_empty() || !steps.iter().all(at_space) {
        return Err(refused_step(steps));
    }
    let prefix = if normalizer == [to_meta.clone()] {
        SpacePrefix::Never
    } else if normalizer == [prepend.clone(), to_meta.clone()] || normalizer == [to_meta, prepend] {
        SpacePrefix::Always
    } else {
        return Err(unsupported(
            "normalizer",
            "it is not Replace (of spaces by U+2581), alone or with Prepend (of U+2581), as with \
             byte fallback; normalize texts yourself and write a tokenizer.json with these alone",
        ));
    };
    Ok(SpacesForm { prefix, splits: false })
}

/// The error for a pre-tokenizer of another form.
fn refused_step(steps: &[PreTokenizerStep]) -> Error {
    if let [PreTokenizerStep::Metaspace { replacement, .. }] = steps
        && *replacement != META
    {
        let reason = format!("{replacement:?} is not U+2581");
        return unsupported("pre_tokenizer.replacement", reason);
    }
    let kinds: Vec<&str> = steps.iter().map(PreTokenizerStep::kind).collect();
    let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
    let reason = format!(
        "{kinds} is not supported with byte fallback; supported are Metaspace without a normalizer, \
         and no pre-tokenizer with a normalizer"
    );
    unsupported("pre_tokenizer", reason)
}

fn replace(pattern: &str, content: String) -> NormalizerStep {
    NormalizerStep::Replace { pattern: ReplacePattern::Literal(pattern.to_owned()), content }
}

/// The steps that write spaces for U+2581, or the reverse.
pub(super) fn normalizer(prefix: SpacePrefix) -> Vec<NormalizerStep> {
    let prepend =
        (prefix == SpacePrefix::Always).then(|| NormalizerStep::Prepend(META.to_string()));
    prepend.into_iter().chain([replace(" ", META.to_string())]).collect()
}

/// The usual decoder, which removes the space that encoding puts before a text.
pub(super) fn decoder(prefix: SpacePrefix) -> Vec<DecoderStep> {
    let pattern = ReplacePattern::Literal(META.to_string());
    let strip = DecoderStep::Strip { content: ' ', start: 1, stop: 0 };
    let strip = (prefix != SpacePrefix::Never).then_some(strip);
    let steps = [
        DecoderStep::Replace { pattern, content: " ".to_owned() },
        DecoderStep::ByteFallback,
        DecoderStep::Fuse,
    ];
    steps.into_iter().chain(strip).collect()
}

/// Fails unless each byte has a token of its name, or, if it is of ASCII, its character is a token;
/// if a token has a space; and if merges use or make the token of a byte.
fn check_vocabulary(file: &File<'_>) -> Result<()> {
    let mut has = [false; 256];
    for (name, _) in file.ordinary() {
        let ascii = name.bytes().next().filter(|byte| name.len() == 1 && byte.is_ascii());
        if let Some(byte) = byte_of(name).or(ascii) {
            has[usize::from(byte)] = true;
        }
        if name.contains(' ') {
            let reason = "it has a space instead of U+2581, so no text has its id";
            return Err(unsupported(format!("{VOCABULARY}[{name:?}]"), reason));
        }
    }
    if let Some(byte) = has.iter().position(|has| !has) {
        let reason = format!(
            "the token \"<0x{byte:02X}>\" is missing, so a character without a token could not be \
             encoded; only vocabularies with tokens for all 256 bytes are supported"
        );
        return Err(unsupported(VOCABULARY, reason));
    }
    let bytes = file.entries.iter().filter(|(name, _)| byte_of(&name.0).is_some());
    let bytes: HashMap<u32, &str> = bytes.map(|(name, id)| (*id, &*name.0)).collect();
    let merged = file.merges.iter().flatten().find_map(|id| bytes.get(id));
    merged.map_or(Ok(()), |name| {
        Err(unsupported(MERGES, format!("a merge uses or makes the token {name:?} of a byte")))
    })
}

/// Fails if an added token is not found or decoded as the tokens of this form are.
fn check_added(file: &File<'_>, token: &AddedToken, form: SpacesForm, lossy: bool) -> Result<()> {
    let content = &*token.content;
    let refuse = |reason: &str| Err(unsupported("added_tokens", format!("{content:?} {reason}")));
    if byte_of(content).is_some() {
        return refuse(
            "is the token of a byte, to which characters of ordinary text are encoded; leave it out \
             of the added tokens",
        );
    }
    if lossy {
        return Ok(());
    }
    if content.contains(META) {
        let decodes = "has U+2581, which would be decoded as a space,";
        let and = "pass lossy=True to decode it as it stands";
        if content.contains(' ') {
            return refuse(&format!("{decodes} and a space too; {and}"));
        }
        if token.special {
            return refuse(&format!("{decodes} and \"special\": true; {and}"));
        }
        if !file.ids.contains_key(content) {
            return refuse(&format!("{decodes} and is not in model.vocab; {and}"));
        }
    }
    if token.normalized && form.prefix == SpacePrefix::Always {
        return refuse(
            "is looked for in normalized text, that is behind a space, here in the text; write \
             \"normalized\": false, or pass lossy=True to look for it there",
        );
    }
    Ok(())
}

/// The parts of a tokenizer of this form.
pub(super) fn parts(mut file: File<'_>, form: SpacesForm) -> Result<TokenizerParts> {
    if form.prefix == SpacePrefix::Always {
        // Only with `lossy` a token has the flag.
        for token in &mut file.added {
            token.normalized = false;
        }
    }
    // Tokens that text decodes with spaces, or that are found in the text with U+2581 for spaces.
    let in_text =
        |token: &&AddedToken| !token.special && (token.content.contains(META) || token.normalized);
    let shown: HashSet<u32> = file.added.iter().filter(in_text).map(|token| token.id).collect();
    let all = file.entries.iter().map(|(name, id)| (&*name.0, *id));
    let is_shown = |(name, id): &(&str, u32)| shown.contains(id) && !name.contains(' ');
    let hidden = all.filter(is_shown).collect::<Vec<_>>();
    let names: BTreeSet<(u32, &str)> =
        file.ordinary().chain(hidden).map(|(name, id)| (id, name)).collect();
    let (tokens, twins) = tokens(names.iter().map(|(id, name)| (*name, *id)));
    let step = if form.splits {
        PreTokenizerStep::BeforeSpaces
    } else {
        let pattern = split_pattern(tokens.iter().map(|(token, _)| &**token))?;
        let (behavior, invert) = (crate::rules::Behavior::Isolated, false);
        PreTokenizerStep::Split { pattern, behavior, invert }
    };
    let rules = TextRules {
        normalizer: Normalizer { steps: vec![NormalizerStep::Spaces(form.prefix)] },
        pre_tokenizer: PreTokenizer { steps: vec![step] },
        ..TextRules::default()
    };
    let pair = |&[left, right, _]: &MergeIds| (left, right);
    let merges = file.merges.iter().map(pair).collect();
    let added = std::mem::take(&mut file.added);
    let vocabulary = Vocabulary::with_added(tokens, twins, added)?;
    Ok(file.finish(vocabulary, MergeRule::Characters, merges, rules))
}

/// The tokens and the twins.
#[expect(clippy::type_complexity, reason = "two lists of tokens with ids")]
fn tokens<'n>(
    names: impl Iterator<Item = (&'n str, u32)> + Clone,
) -> (Vec<(Vec<u8>, u32)>, Vec<(Vec<u8>, u32)>) {
    let texts = names.clone().filter(|(name, _)| byte_of(name).is_none());
    let spaced = |name: &str| name.replace(META, " ").into_bytes();
    let mut tokens: Vec<_> = texts.map(|(name, id)| (spaced(name), id)).collect();
    let single: HashSet<u8> =
        tokens.iter().filter(|(token, _)| token.len() == 1).map(|(token, _)| token[0]).collect();
    let mut twins = Vec::new();
    for (name, id) in names {
        if let Some(byte) = byte_of(name) {
            let list = if single.contains(&byte) { &mut twins } else { &mut tokens };
            list.push((vec![byte], id));
        }
    }
    (tokens, twins)
}

// ---------------------------------------------------------------------------- splitting

/// Ways to split, the finest first: between letters, digits and other characters, before spaces
/// that follow others, and around line breaks; only at spaces and line breaks; only at spaces.
/// Whether a text is divided between two characters depends only on these two. So if no token
/// contains two characters that are divided, no token crosses a boundary of the split.
const SPLITS: [&str; 3] = [
    r" *[\p{L}\p{M}]+| *\p{Nd}+| *[^ \n\p{L}\p{M}\p{Nd}]+|\n+| +",
    r" *[^ \n]+|\n+| +",
    r" *[^ ]+| +",
];

/// The pattern that splits nothing.
const WHOLE: &str = r"(?s:.+)";

/// The second way if tokens have a space after some characters: texts are not divided there.
fn after(class: &str) -> String {
    format!(r" *(?:[^ \n{class}]|[{class}] *)+|\n+| +")
}

/// The largest number of such characters.
const FEW: usize = 8;

/// A pattern that changes no id of a tokenizer that merges characters into these tokens.
///
/// ```
/// use bytepair::formats::tokenizer_json::split_pattern;
/// let pattern = |tokens: &[&[u8]]| split_pattern(tokens.iter().copied()).unwrap();
/// assert_eq!(pattern(&[b"a.", b" ", b"\n", b" a", b"\n\n"]).regex(), r" *[^ \n]+|\n+| +");
/// let after = r" *(?:[^ \n\x{61}]|[\x{61}] *)+|\n+| +";
/// assert_eq!(pattern(&[b"a", b" ", b"a a"]).regex(), after);
/// assert_eq!(pattern(&[b"a", b"\n", b"a\n "]).regex(), "(?s:.+)");
/// ```
pub fn split_pattern<'t>(tokens: impl IntoIterator<Item = &'t [u8]>) -> Result<Pattern> {
    let longer = tokens.into_iter().filter(|token| token.len() > 1);
    let texts: Vec<&str> = longer.filter_map(|token| std::str::from_utf8(token).ok()).collect();
    let mut before = BTreeSet::new();
    for text in &texts {
        let pairs = text.chars().zip(text.chars().skip(1));
        before.extend(pairs.filter(|&(c, next)| next == ' ' && c != ' ' && c != '\n').map(|p| p.0));
    }
    let escaped = |character: &char| format!(r"\x{{{:x}}}", u32::from(*character));
    let class = before.iter().map(escaped).collect::<Vec<_>>().concat();
    let after = (1..=FEW).contains(&before.len()).then(|| after(&class));
    let ways = SPLITS[..2].iter().copied().chain(after.as_deref()).chain([SPLITS[2]]);
    for way in ways {
        let pattern = Pattern::from_regex(way);
        if keeps_all(&pattern, &texts)? {
            return Ok(pattern);
        }
    }
    Ok(Pattern::from_regex(WHOLE))
}

/// Whether a pattern divides none of these texts.
fn keeps_all(pattern: &Pattern, texts: &[&str]) -> Result<bool> {
    let splitter = Splitter::new(pattern)?;
    for text in texts {
        let mut count = 0;
        splitter.for_each(text, |_| count += 1)?;
        if count > 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a pattern is one that [`split_pattern`] may choose.
pub fn is_harmless(pattern: &str) -> bool {
    if pattern == WHOLE || SPLITS.contains(&pattern) {
        return true;
    }
    let class = pattern.strip_prefix(r" *(?:[^ \n").and_then(|rest| rest.split_once(']'));
    class.is_some_and(|(class, _)| class.starts_with(r"\x{") && after(class) == pattern)
}
