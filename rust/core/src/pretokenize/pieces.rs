//! Splits a text by any pre-tokenizer into pieces, with their spans in the original text.
//!
//! A [`Splitter`](super::Splitter) is the fast way for pre-tokenizers that a
//! [`Pattern`](super::Pattern) can say: they keep all text. The steps here may also drop, join and add
//! text, and turn bytes into GPT-2's characters. Each step gets the pieces of the previous one, and
//! treats each piece as a text. Source: the pre-tokenizers of Hugging Face `tokenizers` 0.23.

use std::ops::Range;

use regex_syntax::hir::ClassUnicode;

use crate::error::Result;
use crate::memory;
use crate::rules::growth::TextGrowth;
use crate::rules::normalize::{
    AlignedChar, AlignedText, BYTES_PER_CHAR, Searchable, prepended, utf8_bytes,
};
use crate::rules::normalizer::{class, has};
use crate::rules::pre_tokenizer::{GPT2_SPLIT, PUNCTUATION, character};
use crate::rules::{Behavior, PartStart, PreTokenizer, PreTokenizerStep, SpacePrefix};
use crate::search::{Budget, Expression};

/// A pre-tokenizer, ready to use.
#[derive(Debug)]
pub(crate) struct CompiledPreTokenizer {
    /// The kind of each step of the rules, and what it does.
    steps: Vec<(&'static str, Vec<SplitStep>)>,
}

/// A part of a step, with what must be compiled.
#[derive(Debug)]
enum SplitStep {
    Split {
        expression: Expression,
        behavior: Behavior,
        invert: bool,
    },
    FixedLength(usize),
    Scripts(Vec<ClassUnicode>),
    /// A character for spaces, and where it is put besides.
    Metaspace(char, SpacePrefix),
    /// GPT-2's character for each byte.
    Characters,
}

/// The pieces of a text: ranges of its characters, in order; none is empty.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) text: AlignedText,
    pub(crate) ranges: Vec<Range<usize>>,
}

/// A part of a text, and whether it is a match.
type MarkedRange = (Range<usize>, bool);

impl CompiledPreTokenizer {
    /// Fails if a regular expression does not compile.
    pub(crate) fn new(pre_tokenizer: &PreTokenizer) -> Result<Self> {
        let steps = pre_tokenizer.steps.iter().map(|step| Ok((step.kind(), parts(step)?)));
        Ok(Self { steps: steps.collect::<Result<_>>()? })
    }

    /// The pieces of a text, which begins a part of the original text.
    ///
    /// Fails if a step makes too much of it, or if there is not enough memory.
    pub(crate) fn split(
        &self,
        text: AlignedText,
        start: PartStart,
        growth: &mut TextGrowth,
    ) -> Result<Pieces> {
        let whole = 0..text.len();
        let ranges = if text.is_empty() { Vec::new() } else { vec![whole] };
        let mut pieces = Pieces { text, ranges };
        for (number, (kind, parts)) in self.steps.iter().enumerate() {
            for part in parts {
                memory::check(pieces.text.len().saturating_mul(BYTES_PER_CHAR))?;
                growth.begin("pre_tokenizer", number, kind);
                pieces = part.apply(pieces, start, &mut growth.time)?;
                growth.add(utf8_bytes(&pieces.text))?;
                pieces.ranges.retain(|range| !range.is_empty());
            }
        }
        Ok(pieces)
    }
}

/// What a step of the rules does, one after the other.
fn parts(step: &PreTokenizerStep) -> Result<Vec<SplitStep>> {
    let split = |regex: &str, behavior, invert| -> Result<SplitStep> {
        Ok(SplitStep::Split { expression: Expression::new(regex)?, behavior, invert })
    };
    let literal = |character: char| format!(r"\x{{{:x}}}", u32::from(character));
    Ok(match step {
        PreTokenizerStep::Split { regex, behavior, invert } => {
            vec![split(regex, *behavior, *invert)?]
        }
        PreTokenizerStep::Digits { individual } => {
            let regex = if *individual { r"\p{N}" } else { r"\p{N}+" };
            vec![split(regex, Behavior::Isolated, false)?]
        }
        PreTokenizerStep::Punctuation(behavior) => vec![split(PUNCTUATION, *behavior, false)?],
        PreTokenizerStep::Whitespace => vec![split(r"\w+|[^\w\s]+", Behavior::Removed, true)?],
        PreTokenizerStep::WhitespaceSplit => vec![split(r"\s+", Behavior::Removed, false)?],
        PreTokenizerStep::Bert => vec![
            split(r"\s+", Behavior::Removed, false)?,
            split(PUNCTUATION, Behavior::Isolated, false)?,
        ],
        PreTokenizerStep::Delimiter(one) => {
            vec![split(&literal(*one), Behavior::Removed, false)?]
        }
        PreTokenizerStep::UnicodeScripts => vec![SplitStep::Scripts(scripts())],
        PreTokenizerStep::FixedLength(length) => vec![SplitStep::FixedLength(*length)],
        PreTokenizerStep::Metaspace { replacement, prefix, split: splits } => {
            let mut parts = vec![SplitStep::Metaspace(*replacement, *prefix)];
            if *splits {
                parts.push(split(&literal(*replacement), Behavior::MergedWithNext, false)?);
            }
            parts
        }
        PreTokenizerStep::ByteLevel { add_prefix_space, use_regex } => {
            let mut parts = Vec::new();
            if *add_prefix_space {
                parts.push(SplitStep::Metaspace(' ', SpacePrefix::Missing));
            }
            if *use_regex {
                parts.push(split(GPT2_SPLIT, Behavior::Isolated, false)?);
            }
            parts.push(SplitStep::Characters);
            parts
        }
    })
}

impl SplitStep {
    fn apply(&self, pieces: Pieces, start: PartStart, time: &mut Budget) -> Result<Pieces> {
        match self {
            Self::Split { expression, behavior, invert } => {
                pieces.split(expression, *behavior, *invert, time)
            }
            Self::FixedLength(length) => Ok(pieces.divided(|text| {
                let starts = (0..text.len()).step_by(*length);
                starts.map(|at| at..(at + length).min(text.len())).collect()
            })),
            Self::Scripts(scripts) => Ok(pieces.divided(|text| by_script(scripts, text))),
            Self::Metaspace(replacement, prefix) => {
                pieces.each(|text, at| metaspace(text, *replacement, *prefix, at, start))
            }
            Self::Characters => pieces.each(|text, _| characters(&text)),
        }
    }
}

impl Pieces {
    /// The pieces with other characters; `change` gets each with its number.
    fn each(self, change: impl Fn(AlignedText, usize) -> Result<AlignedText>) -> Result<Self> {
        let mut text = memory::with_capacity(self.text.len())?;
        let mut ranges = memory::with_capacity(self.ranges.len())?;
        for (number, range) in self.ranges.into_iter().enumerate() {
            let start = text.len();
            memory::extend(&mut text, &change(memory::copy(&self.text[range])?, number)?)?;
            ranges.push(start..text.len());
        }
        Ok(Self { text, ranges })
    }

    /// The pieces, each divided.
    fn divided(self, divide: impl Fn(&[AlignedChar]) -> Vec<Range<usize>>) -> Self {
        let Self { text, ranges } = self;
        let shifted = |range: &Range<usize>| {
            let start = range.start;
            let parts = divide(&text[range.clone()]).into_iter();
            parts.map(move |part| start + part.start..start + part.end).collect::<Vec<_>>()
        };
        let ranges = ranges.iter().flat_map(shifted).collect();
        Self { text, ranges }
    }

    /// The pieces, each split at the matches of an expression.
    fn split(
        self,
        expression: &Expression,
        behavior: Behavior,
        invert: bool,
        time: &mut Budget,
    ) -> Result<Self> {
        let searchable = Searchable::new(&self.text)?;
        let mut ranges = Vec::with_capacity(self.ranges.len());
        for piece in &self.ranges {
            let [start, end] = [piece.start, piece.end].map(|at| searchable.byte(at));
            let parts = expression.parts(&searchable.text[start..end], time)?;
            let marked = parts.into_iter().map(|(part, is_match)| {
                let [from, to] = [part.start, part.end].map(|at| searchable.character(start + at));
                (from..to, is_match != invert)
            });
            ranges.extend(cut(marked.collect(), behavior));
        }
        Ok(Self { text: self.text, ranges })
    }
}

/// The pieces that parts become.
fn cut(parts: Vec<MarkedRange>, behavior: Behavior) -> Vec<Range<usize>> {
    let parts = match behavior {
        Behavior::Isolated => parts,
        Behavior::Removed => parts.into_iter().filter(|(_, is_match)| !is_match).collect(),
        Behavior::Contiguous => {
            let runs = parts.chunk_by(|one, next| one.1 == next.1);
            runs.map(|run| (run[0].0.start..run[run.len() - 1].0.end, run[0].1)).collect()
        }
        Behavior::MergedWithPrevious => {
            with_neighbour(parts.into_iter(), |one, next| one.start..next.end)
        }
        Behavior::MergedWithNext => {
            let mut parts =
                with_neighbour(parts.into_iter().rev(), |one, before| before.start..one.end);
            parts.reverse();
            parts
        }
    };
    parts.into_iter().map(|(range, _)| range).collect()
}

/// Join each match to the part before it in this order, unless that is a match too.
fn with_neighbour(
    parts: impl Iterator<Item = MarkedRange>,
    join: impl Fn(&Range<usize>, &Range<usize>) -> Range<usize>,
) -> Vec<MarkedRange> {
    let (mut result, mut after_match) = (Vec::<MarkedRange>::new(), false);
    for (range, is_match) in parts {
        match result.last_mut() {
            Some((last, joined)) if is_match && !after_match => {
                (*last, *joined) = (join(last, &range), false);
            }
            _ => result.push((range, is_match)),
        }
        after_match = is_match;
    }
    result
}

/// A piece with another character for spaces, which may also be put before it.
fn metaspace(
    mut text: AlignedText,
    replacement: char,
    prefix: SpacePrefix,
    number: usize,
    start: PartStart,
) -> Result<AlignedText> {
    for c in text.iter_mut().filter(|c| c.character == ' ') {
        c.character = replacement;
    }
    let first = text.first().map(|c| (c.character, c.span[0]));
    let is_missing = first.is_some_and(|(first, _)| first != replacement);
    let continues = number == 0 && start == PartStart::Inside;
    let begins = first.is_some_and(|(_, at)| at == 0) && start == PartStart::Text;
    let adds = match prefix {
        SpacePrefix::Never => false,
        SpacePrefix::Always | SpacePrefix::Missing => is_missing && !continues,
        SpacePrefix::First => is_missing && begins,
    };
    prepended(adds.then_some(replacement), text)
}

/// GPT-2's character for each byte.
fn characters(text: &[AlignedChar]) -> Result<AlignedText> {
    let mut result = memory::with_capacity(utf8_bytes(text))?;
    for c in text {
        let bytes = c.character.encode_utf8(&mut [0; 4]).bytes().map(character).collect::<Vec<_>>();
        result.extend(bytes.into_iter().map(|character| AlignedChar { character, span: c.span }));
    }
    Ok(result)
}

// ---------------------------------------------------------------------------- scripts

/// The scripts of Unicode, as `regex_syntax` names them.
const SCRIPTS: &str = "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum \
    Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal \
    Carian Caucasian_Albanian Chakma Cham Cherokee Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Duployan Egyptian_Hieroglyphs Elbasan Ethiopic Georgian Glagolitic Gothic Grantha \
    Greek Gujarati Gurmukhi Han Hangul Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited \
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li \
    Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian \
    Mahajani Malayalam Mandaic Manichaean Marchen Meetei_Mayek Mende_Kikakui Meroitic_Cursive \
    Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean New_Tai_Lue Newa Nko Ogham \
    Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_South_Arabian \
    Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician \
    Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala \
    Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil \
    Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai Warang_Citi Yi Common";

/// The characters of each script; Hiragana, katakana and Chinese characters are one script.
fn scripts() -> Vec<ClassUnicode> {
    let script = |name: &str| match name {
        "Han" => {
            class(r"[[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u{30FC}]&&\p{Age=9.0}]")
        }
        name => class(&format!(r"[\p{{Script={name}}}&&\p{{Age=9.0}}--\u{{30FC}}]")),
    };
    SCRIPTS.split_whitespace().map(script).collect()
}

/// The parts of a text between changes of the script; a space has any script. Spaces before the first
/// character with a script are left out.
fn by_script(scripts: &[ClassUnicode], text: &[AlignedChar]) -> Vec<Range<usize>> {
    let (mut starts, mut last) = (Vec::new(), None);
    for (at, c) in text.iter().enumerate().filter(|(_, c)| c.character != ' ') {
        // Characters without a script have one number, too.
        let script = scripts.iter().position(|script| has(script, c.character));
        if last != Some(script) {
            starts.push(at);
        }
        last = Some(script);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::normalize::{aligned, plain};
    use crate::{Pattern, Splitter};
    use proptest::prelude::*;

    fn split(steps: Vec<PreTokenizerStep>, text: &str) -> Vec<String> {
        let compiled = CompiledPreTokenizer::new(&PreTokenizer { steps }).unwrap();
        let mut growth = TextGrowth::of(text.len());
        let aligned = aligned(text).unwrap();
        let pieces = compiled.split(aligned, PartStart::Text, &mut growth).unwrap();
        pieces.ranges.iter().map(|range| plain(&pieces.text[range.clone()])).collect()
    }

    fn by(behavior: Behavior) -> Vec<String> {
        split(
            vec![PreTokenizerStep::Split { regex: "-".to_owned(), behavior, invert: false }],
            "-a--b-",
        )
    }

    #[test]
    fn matches_are_treated_by_their_behavior() {
        assert_eq!(by(Behavior::Isolated), ["-", "a", "-", "-", "b", "-"]);
        assert_eq!(by(Behavior::Removed), ["a", "b"]);
        assert_eq!(by(Behavior::Contiguous), ["-", "a", "--", "b", "-"]);
        assert_eq!(by(Behavior::MergedWithPrevious), ["-", "a-", "-", "b-"]);
        assert_eq!(by(Behavior::MergedWithNext), ["-a", "-", "-b", "-"]);
    }

    #[test]
    fn steps_split_the_pieces_of_the_previous_one() {
        let bytes = PreTokenizerStep::ByteLevel { add_prefix_space: true, use_regex: true };
        assert_eq!(split(vec![bytes.clone()], "é b"), ["ĠÃ©", "Ġb"]);
        assert_eq!(split(vec![PreTokenizerStep::WhitespaceSplit, bytes], "a b"), ["Ġa", "Ġb"]);
        assert_eq!(split(vec![PreTokenizerStep::Bert], " don't "), ["don", "'", "t"]);
        assert_eq!(split(vec![PreTokenizerStep::FixedLength(2)], "aébcd"), ["aé", "bc", "d"]);
        let (replacement, prefix) = ('\u{2581}', SpacePrefix::Missing);
        let meta = PreTokenizerStep::Metaspace { replacement, prefix, split: true };
        assert_eq!(split(vec![meta], "a b"), ["\u{2581}a", "\u{2581}b"]);
        assert_eq!(
            split(vec![PreTokenizerStep::UnicodeScripts], " どこ 中a б."),
            ["どこ 中", "a ", "б", "."]
        );
    }

    proptest! {
        /// A splitter is the fast way for steps that keep all text.
        #[test]
        fn isolated_steps_give_the_pieces_of_a_splitter(text in "[a-c é1٣中 \n'.]{0,20}") {
            for regexes in [vec![r"\p{N}", r"\s+|\p{L}+"], vec![r"a+|b|\s"], vec![GPT2_SPLIT]] {
                let pattern = Pattern::in_steps(regexes).unwrap();
                let mut expected = Vec::new();
                let splitter = Splitter::new(&pattern).unwrap();
                splitter.for_each(&text, |piece| expected.push(piece.to_owned())).unwrap();
                prop_assert_eq!(split(PreTokenizer::from(pattern).steps, &text), expected);
            }
        }
    }
}
