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

use super::file::{File, byte_of};
use crate::error::Result;
use crate::pretokenize::{Pattern, Splitter};
use crate::rules::normalizer::META;
use crate::rules::{
    AddedToken, Decoder, DecoderStep, Normalizer, NormalizerStep, PreTokenizerStep, ReplacePattern,
    SpacePrefix, TextRules,
};
use crate::tokenizer::parts::TokenizerParts;
use crate::vocabulary::MergeRule;

/// Where a space is put, and whether the text is split before each space.
pub(super) type SpacesForm = (SpacePrefix, bool);

// ---------------------------------------------------------------------------- reading

/// The form of a file of this kind; `None` for all others.
pub(super) fn form(file: &File<'_>) -> Option<SpacesForm> {
    if !file.symbols.byte_fallback || file.has_affixes() || file.ignore_merges {
        return None;
    }
    let rules = &file.rules;
    let form = form_of_rules(&rules.normalizer.steps, &rules.pre_tokenizer.steps)?;
    let decoder = rules.decoder.steps();
    let is_form = (decoder.is_empty() || *decoder == self::decoder(form.0))
        && has_bytes(file)
        && file.added.iter().all(|token| fits(file, token, form.0));
    is_form.then_some(form)
}

/// The form that the normalizer and the pre-tokenizer have.
fn form_of_rules(normalizer: &[NormalizerStep], steps: &[PreTokenizerStep]) -> Option<SpacesForm> {
    if let ([], [PreTokenizerStep::Metaspace { replacement: META, prefix, split }]) =
        (normalizer, steps)
    {
        return Some((*prefix, *split));
    }
    // No space is left, at which a text could be split.
    let at_space = |step: &PreTokenizerStep| match step {
        PreTokenizerStep::Split { regex, .. } => regex == "(?: )",
        _ => false,
    };
    let is_form = |prefix: &SpacePrefix| {
        let mut usual = self::normalizer(*prefix);
        let is_usual = usual == normalizer;
        usual.reverse();
        is_usual || usual == normalizer
    };
    let prefix = [SpacePrefix::Never, SpacePrefix::Always].into_iter().find(is_form)?;
    steps.iter().all(at_space).then_some((prefix, false))
}

/// The steps that write spaces for U+2581, or the reverse.
pub(super) fn normalizer(prefix: SpacePrefix) -> Vec<NormalizerStep> {
    let prepend =
        (prefix == SpacePrefix::Always).then(|| NormalizerStep::Prepend(META.to_string()));
    let pattern = ReplacePattern::Literal(" ".to_owned());
    let to_meta = NormalizerStep::Replace { pattern, content: META.to_string() };
    prepend.into_iter().chain([to_meta]).collect()
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

/// Whether each byte has a token of its name, or, if it is of ASCII, its character is a token; no
/// token has a space; and merges neither use nor make the token of a byte.
fn has_bytes(file: &File<'_>) -> bool {
    let mut has = [false; 256];
    for (name, _) in file.ordinary() {
        let ascii = name.bytes().next().filter(|byte| name.len() == 1 && byte.is_ascii());
        if let Some(byte) = byte_of(name).or(ascii) {
            has[usize::from(byte)] = true;
        }
        if name.contains(' ') {
            return false;
        }
    }
    let bytes = file.entries.iter().filter(|(name, _)| byte_of(&name.0).is_some());
    let bytes: HashSet<u32> = bytes.map(|(_, id)| *id).collect();
    has.iter().all(|has| *has) && !file.ordinary_merges().flatten().any(|id| bytes.contains(id))
}

/// Whether an added token is found and decoded as the tokens of this form are. One with U+2581 would
/// be decoded with a space.
fn fits(file: &File<'_>, token: &AddedToken, prefix: SpacePrefix) -> bool {
    let content = &*token.content;
    let has_mark = content.contains(META);
    let is_shown = !token.special && !content.contains(' ') && file.ids.contains_key(content);
    byte_of(content).is_none()
        && (!has_mark || is_shown)
        && !(token.normalized && prefix == SpacePrefix::Always)
}

/// The parts of a tokenizer of this form.
pub(super) fn parts(mut file: File<'_>, (prefix, splits): SpacesForm) -> Result<TokenizerParts> {
    // Tokens that text decodes with spaces, or that are found in the text with U+2581 for spaces.
    let in_text =
        |token: &&AddedToken| !token.special && (token.content.contains(META) || token.normalized);
    let shown: HashSet<u32> = file.added.iter().filter(in_text).map(|token| token.id).collect();
    let all = file.entries.iter().map(|(name, id)| (&*name.0, *id));
    let names = all.filter(|(name, id)| {
        !file.hidden.contains(id) || (shown.contains(id) && !name.contains(' '))
    });
    let (tokens, twins) = tokens(names);
    let pattern = if splits {
        Pattern::from_regex(BEFORE_SPACES)
    } else {
        split_pattern(tokens.iter().map(|(token, _)| &**token))?
    };
    let token_ids: HashSet<u32> = tokens.iter().map(|(_, id)| *id).collect();
    let is_user_defined = |token: &AddedToken| {
        prefix == SpacePrefix::Never
            && *token
                == (AddedToken {
                    normalized: true,
                    ..AddedToken::ordinary(&*token.content, token.id)
                })
            && token_ids.contains(&token.id)
    };
    let added = std::mem::take(&mut file.added);
    let (user_defined, added): (Vec<_>, Vec<_>) = added.into_iter().partition(is_user_defined);
    let user_defined = user_defined.iter().map(|token| token.id).collect();
    file.added = added;
    file.rules = TextRules {
        normalizer: Normalizer { steps: vec![NormalizerStep::Spaces(prefix)] },
        pre_tokenizer: pattern.into(),
        user_defined,
        decoder: Decoder::Bytes,
        ..file.rules
    };
    file.finish(tokens, twins, MergeRule::Characters)
}

/// The tokens and the twins.
#[expect(clippy::type_complexity, reason = "two lists of tokens with ids")]
fn tokens<'n>(
    names: impl Iterator<Item = (&'n str, u32)>,
) -> (Vec<(Vec<u8>, u32)>, Vec<(Vec<u8>, u32)>) {
    let spaced = |name: &str| name.replace(META, " ").into_bytes();
    let (bytes, texts): (Vec<_>, Vec<_>) = names.partition(|(name, _)| byte_of(name).is_some());
    let mut tokens: Vec<_> = texts.iter().map(|(name, id)| (spaced(name), *id)).collect();
    let single: HashSet<u8> =
        tokens.iter().filter(|(token, _)| token.len() == 1).map(|(token, _)| token[0]).collect();
    let bytes = bytes.iter().filter_map(|(name, id)| Some((vec![byte_of(name)?], *id)));
    let (twins, own): (Vec<_>, Vec<_>) = bytes.partition(|(byte, _)| single.contains(&byte[0]));
    tokens.extend(own);
    (tokens, twins)
}

// ---------------------------------------------------------------------------- splitting

/// The pattern that splits before each space.
pub(super) const BEFORE_SPACES: &str = r" [^ ]*|[^ ]+";

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
const MAX_CLASS_CHARACTERS: usize = 8;

/// A pattern that changes no id of a tokenizer that merges characters into these tokens.
///
/// ```
/// use bytepair::formats::tokenizer_json::split_pattern;
/// let pattern = |tokens: &[&[u8]]| split_pattern(tokens.iter().copied()).unwrap();
/// assert_eq!(pattern(&[b"a.", b" ", b"\n", b" a", b"\n\n"]).steps(), [r" *[^ \n]+|\n+| +"]);
/// let after = r" *(?:[^ \n\x{61}]|[\x{61}] *)+|\n+| +";
/// assert_eq!(pattern(&[b"a", b" ", b"a a"]).steps(), [after]);
/// assert_eq!(pattern(&[b"a", b"\n", b"a\n "]).steps(), ["(?s:.+)"]);
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
    let after = (1..=MAX_CLASS_CHARACTERS).contains(&before.len()).then(|| after(&class));
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
