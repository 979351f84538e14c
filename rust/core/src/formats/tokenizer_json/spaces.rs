//! Files of models that SentencePiece trained: characters with byte fallback, and U+2581 for spaces.
//!
//! Where the normalizer or the pre-tokenizer, the decoder and the vocabulary have their usual form,
//! the tokens become bytes with spaces for U+2581. A byte that is a character with a token as well
//! has two ids: encoding gives that of the character, and the other, its *twin*, is only decoded.
//!
//! Such a tokenizer does not split text. Splitting between two characters that are adjacent in no
//! token changes no id, since no merge crosses that place, and then pretokens repeat and can be
//! cached. [`split_pattern`] chooses such places.

use std::collections::{BTreeSet, HashSet};

use super::build::{File, byte_of};
use super::tables::Merge;
use crate::error::Result;
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
    /// Whether a pre-tokenizer puts the spaces, after added tokens are found.
    is_metaspace: bool,
}

// ---------------------------------------------------------------------------- reading

/// The form of a file of this kind; `None` for all others.
pub(super) fn form(file: &File<'_>) -> Option<SpacesForm> {
    let form = form_of_rules(&file.rules.normalizer.steps, &file.rules.steps)?;
    let model = &file.model;
    let plain = model.prefix.is_empty() && model.suffix.is_empty();
    let usual = plain
        && model.byte_fallback
        && !model.ignore_merges
        && file.rules.decoder == decoder(form.prefix)
        && file.ordinary().all(|(name, _)| !name.contains(' '))
        && has_all_bytes(file)
        && file.added.iter().all(|token| is_usual(file, token, form))
        && merges_no_byte(file);
    usual.then_some(form)
}

/// The form that the normalizer and the pre-tokenizer have.
fn form_of_rules(normalizer: &[NormalizerStep], steps: &[PreTokenizerStep]) -> Option<SpacesForm> {
    if normalizer.is_empty() {
        return match steps {
            [PreTokenizerStep::Metaspace { replacement: META, prefix, split }] => {
                Some(SpacesForm { prefix: *prefix, splits: *split, is_metaspace: true })
            }
            _ => None,
        };
    }
    let to_meta = replace(" ", META.to_string());
    let prepend = NormalizerStep::Prepend(META.to_string());
    let prefix = if normalizer == [to_meta.clone()] {
        SpacePrefix::Never
    } else if normalizer == [prepend.clone(), to_meta.clone()] || normalizer == [to_meta, prepend] {
        SpacePrefix::Always
    } else {
        return None;
    };
    // No space is left, at which a text could be split.
    let at_space = |step: &PreTokenizerStep| matches!(step, PreTokenizerStep::Split { pattern, .. } if pattern.regex() == " ");
    steps.iter().all(at_space).then_some(SpacesForm { prefix, splits: false, is_metaspace: false })
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

/// Whether each byte has a token of its name, or, if it is of ASCII, its character is a token.
fn has_all_bytes(file: &File<'_>) -> bool {
    let mut has = [false; 256];
    for (name, _) in file.ordinary() {
        let ascii = name.bytes().next().filter(|byte| name.len() == 1 && byte.is_ascii());
        if let Some(byte) = byte_of(name).or(ascii) {
            has[usize::from(byte)] = true;
        }
    }
    has.iter().all(|has| *has)
}

/// Whether an added token is found and decoded as the tokens of this form are.
fn is_usual(file: &File<'_>, token: &AddedToken, form: SpacesForm) -> bool {
    let content = &*token.content;
    let has_meta = content.contains(META);
    byte_of(content).is_none()
        && (!has_meta || (!token.special && file.ids.contains_key(content)))
        && !(has_meta && content.contains(' '))
        && (!token.normalized || (form.prefix == SpacePrefix::Never && !form.is_metaspace))
}

/// Whether no merge uses or makes the name of a byte.
fn merges_no_byte(file: &File<'_>) -> bool {
    let bytes = file.entries.iter().filter(|(name, _)| byte_of(&name.0).is_some());
    let bytes: HashSet<u32> = bytes.map(|(_, id)| *id).collect();
    !file.merges.iter().flatten().any(|id| bytes.contains(id))
}

/// The parts of a tokenizer of this form.
pub(super) fn parts(mut file: File<'_>, form: SpacesForm) -> Result<TokenizerParts> {
    // Tokens that text decodes with spaces, or that are found in the text with U+2581 for spaces.
    let shows =
        |token: &&AddedToken| token.content.contains(META) || (token.normalized && !token.special);
    let shown: HashSet<u32> = file.added.iter().filter(shows).map(|token| token.id).collect();
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
    let pair = |&[left, right, _]: &Merge| (left, right);
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
    let class: String =
        before.iter().map(|character| format!(r"\x{{{:x}}}", u32::from(*character))).collect();
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
