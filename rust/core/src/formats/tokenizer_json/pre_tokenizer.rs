//! The field `pre_tokenizer`, and the value that it becomes.
//!
//! Different spellings of the same splits become the same value: nested sequences, a `ByteLevel`
//! that splits by GPT-2's pattern, splits at digits, and a pattern that matches all text and whose
//! matches are kept (`Removed` with `invert`).

use serde_json::{Value, json};

use super::cuts;
use super::json::{JsonNode, steps};
use super::oniguruma::{from_oniguruma, to_oniguruma};
use crate::error::Result;
use crate::pretokenize::pattern_shape::PatternShape;
use crate::pretokenize::{Pattern, match_lengths};
use crate::rules::pre_tokenizer::{GPT2_SPLIT, PUNCTUATION};
use crate::rules::{Behavior, PreTokenizer, PreTokenizerStep, SpacePrefix};

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

/// The steps as patterns that split text, where the matches are the same: `Punctuation`, and the steps
/// behind a `ByteLevel`, which are moved in front of it if they match characters that stand for
/// themselves.
///
/// `Digits` is moved as well. It also splits at some bytes of characters that are not of ASCII, so it
/// must be checked that [no token joins such bytes](joins_numeric).
pub(super) fn of_text(mut steps: Vec<PreTokenizerStep>) -> Vec<PreTokenizerStep> {
    let end = steps.iter().position(maps_bytes);
    let text = end.unwrap_or(steps.len());
    for step in &mut steps[..text] {
        match step {
            PreTokenizerStep::Punctuation(Behavior::Isolated) => *step = isolated(PUNCTUATION),
            PreTokenizerStep::Punctuation(Behavior::Contiguous) => {
                *step = isolated(&[PUNCTUATION, "+"].concat());
            }
            _ => {}
        }
    }
    let Some(at) = end else { return steps };
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
        _ => step.isolated_regex().filter(|regex| cuts::is_of_ascii(regex)).map(|_| step.clone()),
    }
}

/// Whether a token has two adjacent bytes between which `Digits` splits, where it splits bytes,
/// although they are not both of ASCII: those that stand for numeric characters, as `²` or `¼`. If no
/// token has, no merge crosses these splits, and they change no id. With `individual`, each such byte
/// is a piece of its own.
pub(super) fn joins_numeric(token: &[u8], individual: bool) -> bool {
    let is_numeric = |byte: u8| matches!(byte, 0xB2 | 0xB3 | 0xB9 | 0xBC..=0xBE);
    token.windows(2).map(|pair| (is_numeric(pair[0]), is_numeric(pair[1]))).any(|pair| match pair {
        (true, true) => individual,
        (one, other) => one != other,
    })
}

/// The same splits in fewer steps, where one pattern does what several do.
pub(super) fn composed(mut steps: Vec<PreTokenizerStep>) -> Vec<PreTokenizerStep> {
    let superbpe = superbpe();
    while let Some(at) = steps.windows(2).position(|steps| *steps == superbpe) {
        steps.splice(at..at + 2, [isolated(GROUPS)]);
    }
    let last = steps.pop_if(|step| maps_bytes(step));
    if let Some(pattern) = regexes(&steps).and_then(|regexes| cuts::composed(&regexes)) {
        steps = vec![isolated(&pattern)];
    }
    steps.extend(last);
    steps
}

/// The pattern that a file with these steps, each a `Split` that keeps its matches, is read as.
///
/// ```
/// use bytepair::{Pattern, formats::tokenizer_json::composed_pattern};
/// let pattern = |regexes: &[&str]| composed_pattern(&Pattern::in_steps(regexes.to_vec()).unwrap());
/// assert_eq!(pattern(&[r"\p{N}", r"\d+|[^\p{N}]+"]).steps(), [r"\p{N}|[^\p{N}]+"]);
/// assert_eq!(pattern(&["a", "(a)|b"]).steps(), ["a", "(a)|b"]);
/// ```
pub fn composed_pattern(pattern: &Pattern) -> Pattern {
    let steps = PreTokenizer::from(pattern.clone()).steps;
    PreTokenizer { steps: composed(steps) }.pattern().unwrap_or_else(|| pattern.clone())
}

/// The patterns of the steps, if all split at matches and keep these.
pub(super) fn regexes(steps: &[PreTokenizerStep]) -> Option<Vec<&str>> {
    steps.iter().map(PreTokenizerStep::isolated_regex).collect()
}

/// Groups of three digits, counted from the end of a number.
const GROUPS: &str = r"\p{N}(?:(?!(?:\d{3})+(?!\d))\p{N})*";

/// The steps of `SuperBPE`'s published files that make these groups. The second splits only digits, so
/// one pattern does the same, and is faster.
fn superbpe() -> [PreTokenizerStep; 2] {
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

/// GPT-2's pattern has two spellings; one of them is the named pattern.
fn well_known(regex: &str) -> String {
    if regex == GPT2_SPLIT { gpt2() } else { regex.to_owned() }
}

/// The named pattern.
fn gpt2() -> String {
    let pattern = Pattern::named("gpt2");
    pattern.and_then(|pattern| pattern.regex().map(str::to_owned)).unwrap_or_default()
}

/// The literal text that an expression matches, if it is one.
fn unescaped(regex: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = regex.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' { characters.next()? } else { character });
    }
    (regex_syntax::escape(&text) == regex).then_some(text)
}

/// The text up to the next place where a pattern matches, if it matches no characters.
///
/// The repetition is lazy, since the engine remembers a place for each turn of a greedy one, and has
/// room for a limited number of them.
fn between(regex: &str) -> String {
    format!("(?s:.)+?(?={regex}|$)")
}

/// Whether a pattern is known to match all text: those of the scanner do.
fn matches_all(regex: &str) -> bool {
    cuts::begins_with_all(regex) || PatternShape::of(regex).is_some()
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
