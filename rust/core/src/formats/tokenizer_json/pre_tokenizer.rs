//! The field `pre_tokenizer`, and the value that it becomes.
//!
//! Different spellings of the same splits become the same value: nested sequences, a `ByteLevel`
//! that splits by GPT-2's pattern, splits at digits, and a pattern that matches all text and whose
//! matches are kept (`Removed` with `invert`).

use serde_json::{Value, json};

use super::json::{JsonNode, steps};
use super::oniguruma::{from_oniguruma, to_oniguruma};
use crate::error::Result;
use crate::pretokenize::{Pattern, is_of_ascii, match_lengths, matches_all};
use crate::rules::pre_tokenizer::{GPT2_SPLIT, PUNCTUATION};
use crate::rules::{Behavior, PreTokenizerStep, SpacePrefix};

/// The schemes of `Metaspace`, and where each puts a space.
const SCHEMES: [(&str, SpacePrefix); 3] = [
    ("always", SpacePrefix::Missing),
    ("first", SpacePrefix::First),
    ("never", SpacePrefix::Never),
];

// ---------------------------------------------------------------------------- reading

/// The steps of a pre-tokenizer, as they are written.
pub(super) fn read(node: &JsonNode<'_>) -> Result<Vec<PreTokenizerStep>> {
    let mut steps = Vec::new();
    for node in node.flat("pretokenizers")? {
        let mapped = steps.iter().any(maps_bytes);
        add(&mut steps, step(&node)?, mapped);
    }
    Ok(steps)
}

/// The steps as patterns that split text, where the matches are the same: `Punctuation`, groups of three
/// digits, and the steps after a `ByteLevel`, which are moved in front of it if they match characters
/// that stand for themselves.
///
/// `Digits` is moved as well. It also splits at some bytes of characters that are not of ASCII, so it
/// must be checked that [no token joins such bytes](joins_numeric).
pub(super) fn of_text(mut steps: Vec<PreTokenizerStep>) -> Vec<PreTokenizerStep> {
    for step in steps.iter_mut().take_while(|step| !maps_bytes(step)) {
        match step {
            PreTokenizerStep::Punctuation(Behavior::Isolated) => *step = isolated(PUNCTUATION),
            PreTokenizerStep::Punctuation(Behavior::Contiguous) => {
                *step = isolated(&[PUNCTUATION, "+"].concat());
            }
            _ => {}
        }
    }
    let in_groups = groups_of_three();
    while let Some(at) = steps.windows(2).position(|steps| *steps == in_groups) {
        steps.splice(at..at + 2, [isolated(GROUPS)]);
    }
    let Some(at) = steps.iter().position(maps_bytes) else { return steps };
    if let Some(moved) = steps[at + 1..].iter().map(step_of_text).collect::<Option<Vec<_>>>() {
        let bytes = steps[at].clone();
        steps.truncate(at);
        steps.extend(moved);
        steps.push(bytes);
    }
    steps
}

fn step_of_text(step: &PreTokenizerStep) -> Option<PreTokenizerStep> {
    match step {
        PreTokenizerStep::Digits { individual } => {
            Some(isolated(if *individual { "[0-9]" } else { "[0-9]+" }))
        }
        _ => step.isolated_regex().filter(|regex| is_of_ascii(regex)).map(|_| step.clone()),
    }
}

/// Whether a token has two adjacent bytes between which `Digits` splits, where it splits bytes,
/// although they are not both of ASCII: those that stand for numeric characters, as `²` or `¼`. If no
/// token has such bytes, no merge crosses these splits, and they change no id. With `individual`, each
/// of these bytes is a piece of its own.
pub(super) fn joins_numeric(token: &[u8], individual: bool) -> bool {
    let is_numeric = |byte: u8| matches!(byte, 0xB2 | 0xB3 | 0xB9 | 0xBC..=0xBE);
    token.windows(2).map(|pair| (is_numeric(pair[0]), is_numeric(pair[1]))).any(|pair| match pair {
        (true, true) => individual,
        (one, other) => one != other,
    })
}

/// Groups of three digits, counted from the end of a number.
const GROUPS: &str = r"\p{N}(?:(?!(?:\d{3})+(?!\d))\p{N})*";

/// The steps of `SuperBPE`'s published files that make these groups. The second splits only digits, so
/// one pattern does the same, and is faster.
fn groups_of_three() -> [PreTokenizerStep; 2] {
    [isolated(r"\p{N}+"), isolated(&between(r"(?=(\d{3})+(?!\d))"))]
}

/// Whether a step turns the bytes of a text into GPT-2's characters.
pub(super) fn maps_bytes(step: &PreTokenizerStep) -> bool {
    matches!(step, PreTokenizerStep::ByteLevel { .. })
}

/// Add a step in its usual spelling. `mapped` tells whether it sees GPT-2's characters.
fn add(steps: &mut Vec<PreTokenizerStep>, step: PreTokenizerStep, mapped: bool) {
    match step {
        PreTokenizerStep::ByteLevel { add_prefix_space: false, use_regex: true } => {
            steps.push(isolated(&well_known(GPT2_SPLIT)));
            steps.push(PreTokenizerStep::ByteLevel { add_prefix_space: false, use_regex: false });
        }
        PreTokenizerStep::Digits { individual } if !mapped => {
            steps.push(isolated(if individual { r"\p{N}" } else { r"\p{N}+" }));
        }
        other => steps.push(other),
    }
}

fn isolated(regex: &str) -> PreTokenizerStep {
    PreTokenizerStep::isolated(regex)
}

steps! { PreTokenizerStep, plain_step, write_plain_step:
    "ByteLevel" => ByteLevel {
        add_prefix_space: adds = "add_prefix_space", use_regex: uses = "use_regex" or true
    }
    "Digits" => Digits { individual: individual = "individual_digits" }
    "Punctuation" => Punctuation { 0: behavior = "behavior" or Behavior::Isolated }
    "Whitespace" => Whitespace {}
    "WhitespaceSplit" => WhitespaceSplit {}
    "BertPreTokenizer" => Bert {}
    "CharDelimiterSplit" => Delimiter { 0: delimiter = "delimiter" }
    "UnicodeScripts" => UnicodeScripts {}
    "FixedLength" => FixedLength { 0: length = "length" or 5 }
}

fn step(node: &JsonNode<'_>) -> Result<PreTokenizerStep> {
    match plain_step(node)? {
        Some(PreTokenizerStep::FixedLength(0)) => return Err(node.invalid("the length is 0")),
        Some(step) => return Ok(step),
        None => {}
    }
    match node.kind()? {
        "Split" => split(node),
        "Metaspace" => {
            let (replacement, prefix) = metaspace(node)?;
            let split = node.field("split", Some(true))?;
            Ok(PreTokenizerStep::Metaspace { replacement, prefix, split })
        }
        other => Err(node.unsupported(format!(
            "the type {other} is not supported; supported are Split, ByteLevel, Digits, \
             Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit, \
             UnicodeScripts, FixedLength, Metaspace and Sequence"
        ))),
    }
}

/// The replacement of a `Metaspace`, which is a pre-tokenizer or a decoder, and where it is put. Old
/// files have `add_prefix_space` instead of a scheme.
pub(super) fn metaspace(node: &JsonNode<'_>) -> Result<(char, SpacePrefix)> {
    let replacement = node.field("replacement", None)?;
    let adds = node.field("add_prefix_space", Some(true))?;
    let Some(scheme) = node.find("prepend_scheme")? else {
        return Ok((replacement, if adds { SpacePrefix::Missing } else { SpacePrefix::Never }));
    };
    let text: &str = scheme.read()?;
    let Some(&(_, prefix)) = SCHEMES.iter().find(|(name, _)| *name == text) else {
        return Err(scheme.invalid(format!("{text:?} is not one of always, first, never")));
    };
    if !adds && prefix != SpacePrefix::Never {
        return Err(
            scheme.invalid(format!("{text:?} contradicts add_prefix_space, which is false"))
        );
    }
    Ok((replacement, prefix))
}

fn split(node: &JsonNode<'_>) -> Result<PreTokenizerStep> {
    let (place, behavior) = (node.get("pattern")?, node.field("behavior", None)?);
    let invert = node.field("invert", Some(false))?;
    let regex = match (place.find("String")?, place.find("Regex")?) {
        (Some(text), None) => regex_syntax::escape(text.read()?),
        (None, Some(regex)) => from_oniguruma(regex.read()?, &regex.place)?,
        _ => return Err(place.invalid("it is neither a Regex nor a String")),
    };
    let (fewest, most) = match_lengths(&regex);
    if fewest == 0 {
        if most == 0 && behavior == Behavior::Isolated {
            return Ok(isolated(&between(&regex)));
        }
        return Err(place.unsupported(format!(
            "{regex:?} may match no characters, where tokenizers splits and bytepair does not"
        )));
    }
    let regex = well_known(&regex);
    let keeps_all = behavior == Behavior::Removed && invert && matches_all(&regex);
    if keeps_all || behavior == Behavior::Isolated {
        return Ok(isolated(&regex));
    }
    Ok(PreTokenizerStep::Split { regex, behavior, invert })
}

/// The expression in the form of a pattern: GPT-2's has two spellings, of which one is the named pattern,
/// and a text without syntax would be taken for a name.
fn well_known(regex: &str) -> String {
    if regex == GPT2_SPLIT {
        return gpt2();
    }
    let is_expression = Pattern::new(regex).is_ok_and(|pattern| pattern.regex() == Some(regex));
    if is_expression { regex.to_owned() } else { format!("(?:{regex})") }
}

/// The named pattern.
fn gpt2() -> String {
    let pattern = Pattern::named("gpt2");
    pattern.and_then(|pattern| pattern.regex().map(str::to_owned)).unwrap_or_default()
}

/// The literal text that an expression matches, if it matches only that.
fn unescaped(regex: &str) -> Option<String> {
    let group = regex.strip_prefix("(?:").and_then(|rest| rest.strip_suffix(')'));
    let regex = group.unwrap_or(regex);
    let mut text = String::new();
    let mut characters = regex.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' { characters.next()? } else { character });
    }
    (regex_syntax::escape(&text) == regex).then_some(text)
}

/// The text up to the next place where a pattern matches, if it matches no characters.
///
/// The repetition is lazy, since the engine remembers a place for each turn of a greedy one, and can
/// remember a limited number of them.
fn between(regex: &str) -> String {
    format!("(?s:.)+?(?={regex}|$)")
}

// ---------------------------------------------------------------------------- writing

/// The fields of the steps of a pre-tokenizer.
pub(super) fn write(steps: &[PreTokenizerStep]) -> Vec<Value> {
    steps.iter().map(write_step).collect()
}

/// A `ByteLevel`.
pub(super) fn byte_level(add_prefix_space: bool, use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true,
        "use_regex": use_regex})
}

/// Whether a step splits by GPT-2's pattern, as `ByteLevel` does by itself.
pub(super) fn is_gpt2(step: &PreTokenizerStep) -> bool {
    step.isolated_regex().is_some_and(|regex| regex == gpt2())
}

fn write_step(step: &PreTokenizerStep) -> Value {
    match step {
        PreTokenizerStep::Split { regex, behavior, invert } => {
            let text = unescaped(regex);
            let pattern = text.map_or_else(
                || json!({"Regex": to_oniguruma(regex)}),
                |text| json!({"String": text}),
            );
            json!({"type": "Split", "pattern": pattern, "behavior": behavior,
                "invert": invert})
        }
        PreTokenizerStep::Metaspace { replacement, prefix, split } => {
            write_metaspace(*replacement, *prefix, *split)
        }
        PreTokenizerStep::ByteLevel { add_prefix_space, use_regex } => {
            byte_level(*add_prefix_space, *use_regex)
        }
        plain => write_plain_step(plain),
    }
}

/// A `Metaspace`.
pub(super) fn write_metaspace(replacement: char, prefix: SpacePrefix, split: bool) -> Value {
    let scheme = SCHEMES.iter().find(|(_, other)| *other == prefix);
    let scheme = scheme.map_or("always", |(name, _)| *name);
    json!({"type": "Metaspace", "replacement": replacement, "prepend_scheme": scheme,
        "split": split})
}
