//! Splits a text by any pre-tokenizer into pieces, with their spans in the original text.
//!
//! A [`Splitter`](super::Splitter) is the fast way for pre-tokenizers that a
//! [`Pattern`](super::Pattern) can say: they keep all text. The steps here may also drop, join and add
//! text, and turn bytes into GPT-2's characters. Each step gets the pieces of the previous one, and
//! treats each piece as a text. Source: the pre-tokenizers of Hugging Face `tokenizers` 0.23.

use std::ops::Range;

use crate::error::Result;
use crate::memory;
use crate::rules::growth::TextGrowth;
use crate::rules::normalize::{
    AlignedChar, AlignedText, BYTES_PER_CHAR, CharacterClass, Searchable, prepended, utf8_bytes,
};
use crate::rules::pre_tokenizer::character;
use crate::rules::pre_tokenizer::{GPT2_SPLIT, PUNCTUATION};
use crate::rules::{Behavior, PartStart, PreTokenizer, PreTokenizerStep, SpacePrefix};
use crate::search::{Budget, Expression};

/// A pre-tokenizer, ready to use.
#[derive(Debug)]
pub(crate) struct CompiledPreTokenizer {
    steps: Vec<SplitStep>,
}

/// One step, with what must be compiled.
#[derive(Debug)]
enum SplitStep {
    Split {
        expression: Expression,
        behavior: Behavior,
        invert: bool,
    },
    /// Each character of a class is a match.
    Class {
        class: Matcher,
        behavior: Behavior,
    },
    FixedLength(usize),
    Scripts(Scripts),
    Metaspace {
        replacement: char,
        prefix: SpacePrefix,
        split: bool,
    },
    ByteLevel {
        add_prefix_space: bool,
        split: Option<Expression>,
    },
}

/// Tells which characters are matches.
#[derive(Debug)]
enum Matcher {
    Numeric,
    Space,
    One(char),
    Class(CharacterClass),
}

impl Matcher {
    fn has(&self, character: char) -> bool {
        match self {
            Self::Numeric => character.is_numeric(),
            Self::Space => character.is_whitespace(),
            Self::One(one) => character == *one,
            Self::Class(class) => class.has(character),
        }
    }
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
        let mut steps = Vec::new();
        for step in &pre_tokenizer.steps {
            compile(step, &mut steps)?;
        }
        Ok(Self { steps })
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
        for (number, step) in self.steps.iter().enumerate() {
            memory::check(pieces.text.len().saturating_mul(BYTES_PER_CHAR))?;
            growth.begin("pre_tokenizer", number, step.kind());
            pieces = step.apply(pieces, start, &mut growth.time)?;
            growth.add(utf8_bytes(&pieces.text))?;
            pieces.ranges.retain(|range| !range.is_empty());
        }
        Ok(pieces)
    }
}

fn compile(step: &PreTokenizerStep, steps: &mut Vec<SplitStep>) -> Result<()> {
    let class = |class, behavior| SplitStep::Class { class, behavior };
    let punctuation = |behavior| class(Matcher::Class(CharacterClass::new(PUNCTUATION)), behavior);
    let split = |regex: &str, behavior, invert| -> Result<SplitStep> {
        Ok(SplitStep::Split { expression: Expression::new(regex)?, behavior, invert })
    };
    let compiled = match step {
        PreTokenizerStep::Split { regex, behavior, invert } => split(regex, *behavior, *invert)?,
        PreTokenizerStep::Digits { individual: true } => {
            class(Matcher::Numeric, Behavior::Isolated)
        }
        PreTokenizerStep::Digits { individual: false } => {
            class(Matcher::Numeric, Behavior::Contiguous)
        }
        PreTokenizerStep::Punctuation(behavior) => punctuation(*behavior),
        PreTokenizerStep::Whitespace => split(r"\w+|[^\w\s]+", Behavior::Removed, true)?,
        PreTokenizerStep::WhitespaceSplit => class(Matcher::Space, Behavior::Removed),
        PreTokenizerStep::Bert => {
            steps.push(class(Matcher::Space, Behavior::Removed));
            punctuation(Behavior::Isolated)
        }
        PreTokenizerStep::Delimiter(one) => class(Matcher::One(*one), Behavior::Removed),
        PreTokenizerStep::UnicodeScripts => SplitStep::Scripts(Scripts::new()),
        PreTokenizerStep::FixedLength(length) => SplitStep::FixedLength(*length),
        PreTokenizerStep::Metaspace { replacement, prefix, split } => {
            SplitStep::Metaspace { replacement: *replacement, prefix: *prefix, split: *split }
        }
        PreTokenizerStep::ByteLevel { add_prefix_space, use_regex } => {
            let split = use_regex.then(|| Expression::new(GPT2_SPLIT)).transpose()?;
            SplitStep::ByteLevel { add_prefix_space: *add_prefix_space, split }
        }
    };
    steps.push(compiled);
    Ok(())
}

impl SplitStep {
    /// The name of this kind of step in a `tokenizer.json`.
    fn kind(&self) -> &'static str {
        match self {
            Self::Split { .. } | Self::Class { .. } => "Split",
            Self::FixedLength(_) => "FixedLength",
            Self::Scripts(_) => "UnicodeScripts",
            Self::Metaspace { .. } => "Metaspace",
            Self::ByteLevel { .. } => "ByteLevel",
        }
    }

    fn apply(&self, pieces: Pieces, start: PartStart, time: &mut Budget) -> Result<Pieces> {
        match self {
            Self::Split { expression, behavior, invert } => {
                pieces.split(expression, *behavior, *invert, time)
            }
            Self::Class { class, behavior } => {
                Ok(pieces.divided(|text| cut(matches(text, class), *behavior)))
            }
            Self::FixedLength(length) => Ok(pieces.divided(|text| {
                let starts = (0..text.len()).step_by(*length);
                starts.map(|at| at..(at + length).min(text.len())).collect()
            })),
            Self::Scripts(scripts) => Ok(pieces.divided(|text| scripts.divide(text))),
            Self::Metaspace { replacement, prefix, split } => {
                let spaced =
                    pieces.each(|text, at| metaspace(text, *replacement, *prefix, at, start))?;
                if !split {
                    return Ok(spaced);
                }
                let is_mark = Matcher::One(*replacement);
                let behavior = Behavior::MergedWithNext;
                Ok(spaced.divided(|text| cut(matches(text, &is_mark), behavior)))
            }
            Self::ByteLevel { add_prefix_space, split } => {
                let begins = |at: usize| at > 0 || start != PartStart::Inside;
                let mut pieces = pieces.each(|text, at| {
                    let adds = *add_prefix_space && begins(at) && text[0].character != ' ';
                    prepended(adds.then_some(' '), text)
                })?;
                if let Some(expression) = split {
                    pieces = pieces.split(expression, Behavior::Isolated, false, time)?;
                    pieces.ranges.retain(|range| !range.is_empty());
                }
                pieces.each(|text, _| mapped(&text))
            }
        }
    }
}

impl Pieces {
    /// The pieces with other characters; `change` gets each with its number.
    fn each(self, change: impl Fn(AlignedText, usize) -> Result<AlignedText>) -> Result<Self> {
        let mut text = memory::with_room(self.text.len())?;
        let mut ranges = memory::with_room(self.ranges.len())?;
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

/// The parts of a piece; each character of a class is a match.
fn matches(text: &[AlignedChar], class: &Matcher) -> Vec<MarkedRange> {
    let mut parts: Vec<MarkedRange> = Vec::new();
    for (at, c) in text.iter().enumerate() {
        // Characters that do not match are one part; each that matches is its own.
        match (class.has(c.character), parts.last_mut()) {
            (false, Some((range, false))) => range.end = at + 1,
            (is_match, _) => parts.push((at..at + 1, is_match)),
        }
    }
    parts
}

/// The pieces that parts become.
fn cut(parts: Vec<MarkedRange>, behavior: Behavior) -> Vec<Range<usize>> {
    let parts = match behavior {
        Behavior::Isolated => parts,
        Behavior::Removed => parts.into_iter().filter(|(_, is_match)| !is_match).collect(),
        Behavior::Contiguous => {
            let mut joined: Vec<MarkedRange> = Vec::new();
            for (range, is_match) in parts {
                match joined.last_mut() {
                    Some((last, same)) if *same == is_match => last.end = range.end,
                    _ => joined.push((range, is_match)),
                }
            }
            joined
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
fn mapped(text: &[AlignedChar]) -> Result<AlignedText> {
    let mut result = memory::with_room(utf8_bytes(text))?;
    for c in text {
        let bytes = c.character.encode_utf8(&mut [0; 4]).bytes().map(character).collect::<Vec<_>>();
        result.extend(bytes.into_iter().map(|character| AlignedChar { character, span: c.span }));
    }
    Ok(result)
}

// ---------------------------------------------------------------------------- scripts

/// Divides a text where the script changes; a space has any script. Hiragana, katakana and Chinese
/// characters are one script. Spaces before the first character with a script are left out.
#[derive(Debug)]
struct Scripts {
    classes: Vec<CharacterClass>,
}

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

impl Scripts {
    fn new() -> Self {
        let class = |name: &str| match name {
            "Han" => CharacterClass::new(
                r"[[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u{30FC}]&&\p{Age=9.0}]",
            ),
            name => {
                CharacterClass::new(&format!(r"[\p{{Script={name}}}&&\p{{Age=9.0}}--\u{{30FC}}]"))
            }
        };
        Self { classes: SCRIPTS.split_whitespace().map(class).collect() }
    }

    /// The number of the script of a character; one number for characters without.
    fn of(&self, character: char) -> usize {
        let position = self.classes.iter().position(|class| class.has(character));
        position.unwrap_or(self.classes.len())
    }

    fn divide(&self, text: &[AlignedChar]) -> Vec<Range<usize>> {
        let (mut starts, mut last) = (Vec::new(), None);
        for (at, c) in text.iter().enumerate().filter(|(_, c)| c.character != ' ') {
            let script = Some(self.of(c.character));
            if script != last {
                starts.push(at);
            }
            last = script;
        }
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
    }
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
