//! Finds added tokens in a text.
//!
//! Matches are leftmost-longest. Some tokens also take the adjacent white space, unless another token
//! has taken it, and some are not found within words. Special tokens are found where the caller asks for
//! them; the others, which control nothing, in every text.
//!
//! Tokens that are not `normalized` are found first, in the original text; the others then, in the
//! normalized text between them. Usually one search finds both, with the same result:
//! see [`one_is_enough`].

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_syntax::is_word_character;

use crate::error::{Error, Result};
use crate::rules::growth::TextGrowth;
use crate::rules::normalize::CompiledNormalizer;
use crate::rules::normalizer::META;
use crate::rules::{AddedToken, Normalizer, NormalizerStep, PartStart, SpacePrefix};
use crate::vocabulary::{Vocabulary, check_name};

/// The length of all names, in bytes, up to which the search may use a DFA: building one takes the
/// square of a long name that repeats one character.
const MAX_DFA_NAME_BYTES: usize = 1 << 10;

/// How the text of a special token is encoded.
///
/// ```
/// use bytepair::{Error, Pattern, Special, Tokenizer, Vocabulary};
/// let bytes = (0..=255).map(|byte| (vec![byte], u32::from(byte)));
/// let vocabulary = Vocabulary::new(bytes, [("<s>".to_owned(), 256)])?;
/// let tokenizer = Tokenizer::from_ranks(vocabulary, Pattern::new("gpt2")?)?;
/// let encode = |special| tokenizer.encode_with("<s>", &tokenizer.options(&special, &[], &[])?);
/// assert_eq!(encode(Special::Text)?, [60, 115, 62]);
/// assert_eq!(encode(Special::All)?, [256]);
/// assert_eq!(encode(Special::Only(vec!["<s>".to_owned()]))?, [256]);
/// assert_eq!(encode(Special::None)?, [60, 115, 62]);
/// assert!(matches!(encode(Special::Error), Err(Error::SpecialInText { at: 0, .. })));
/// # Ok::<(), bytepair::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Special {
    /// The text of special tokens is ordinary text, except that of added tokens that control
    /// nothing, as of runs of spaces in the vocabulary of Phi-2.
    #[default]
    Text,
    /// As `Text`, for text that must not be able to imitate the structure of a conversation, and of
    /// which nothing may be lost: of the added tokens that control nothing, only those of white
    /// space that take no other white space are found. `<tool_call>` is an added token of Qwen that
    /// is not special.
    Message,
    /// No special token is found, and no added token that controls nothing.
    None,
    /// Every special token becomes its id.
    All,
    /// The named special tokens become their ids; others are ordinary text.
    Only(Vec<String>),
    /// The text of a special token is an error.
    Error,
}

/// Finds the added tokens that a [`Special`] selects.
#[derive(Debug, Clone)]
pub(crate) struct AddedFinder {
    automaton: AhoCorasick,
    /// Sorted by their names.
    tokens: Vec<SelectedToken>,
    /// The number of bytes of the longest name.
    longest: usize,
}

/// A token to look for.
#[derive(Debug, Clone)]
struct SelectedToken {
    /// The text to look for; that of a `normalized` token is normalized.
    name: String,
    token: AddedToken,
    action: Action,
}

/// What a match means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// It becomes the id.
    Find,
    /// It stays text, in which no other token is found.
    Pass,
    /// It is an error.
    Refuse,
}

/// An added token in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddedMatch {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) id: u32,
}

/// What a match of a token means; `None` if [`Special`] does not select the token.
fn action(special: &Special, token: &AddedToken) -> Option<Action> {
    let finds = match special {
        Special::Text if token.special => return Some(Action::Pass),
        Special::Error if token.special => return Some(Action::Refuse),
        Special::Text | Special::Error | Special::All => true,
        Special::Message => {
            !token.special && is_blank(&token.content) && !token.lstrip && !token.rstrip
        }
        Special::None => false,
        Special::Only(names) => !token.special || names.contains(&token.content),
    };
    finds.then_some(Action::Find)
}

/// Whether a token that stays text may share characters of a text with one that is found, and so hides
/// it.
fn hides_others(tokens: &[SelectedToken]) -> bool {
    let names = |passes: bool| -> Vec<&str> {
        let tokens = tokens.iter().filter(|entry| (entry.action == Action::Pass) == passes);
        tokens.map(|entry| &*entry.name).collect()
    };
    let (texts, others) = (names(true), names(false));
    may_overlap(&texts, &others) || may_overlap(&others, &texts)
}

impl AddedFinder {
    /// Prepare the search for some tokens. `None` if there is nothing to search for.
    ///
    /// Fails if a name is too long.
    fn new(mut tokens: Vec<SelectedToken>) -> Result<Option<Self>> {
        // Of tokens that the normalizer makes equal, the first is found.
        let passes = |entry: &SelectedToken| entry.action == Action::Pass;
        tokens.sort_by(|one, other| {
            one.name.cmp(&other.name).then_with(|| passes(one).cmp(&passes(other)))
        });
        tokens.dedup_by(|one, other| one.name == other.name);
        tokens.retain(|entry| !entry.name.is_empty());
        tokens.iter().try_for_each(|entry| check_name(&entry.name))?;
        if !hides_others(&tokens) {
            tokens.retain(|entry| entry.action != Action::Pass);
        }
        if tokens.is_empty() {
            return Ok(None);
        }
        let names = tokens.iter().map(|entry| entry.name.as_bytes()).collect::<Vec<_>>();
        let automaton = automaton(&names, "added")?;
        let longest = tokens.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        Ok(Some(Self { automaton, tokens, longest }))
    }

    /// Whether a token may take the white space around it.
    pub(crate) fn strips(&self) -> bool {
        self.tokens.iter().any(|entry| entry.token.lstrip || entry.token.rstrip)
    }

    /// Whether every match ends the text before it and begins that after it, whatever surrounds it.
    fn divides_always(&self) -> bool {
        self.tokens.iter().all(|entry| entry.action != Action::Pass && !entry.token.single_word)
    }

    /// The added tokens of `text` from left to right; if they are forbidden, an error for each.
    pub(crate) fn find(&self, text: &str) -> impl Iterator<Item = Result<AddedMatch>> {
        let (mut done, mut blank) = (0, BlankRun::default());
        self.automaton.find_iter(text).filter_map(move |hit| {
            let SelectedToken { name, token, action } = &self.tokens[hit.pattern().as_usize()];
            let (mut start, mut end) = (hit.start(), hit.end());
            match action {
                Action::Find => {}
                Action::Pass => return None,
                Action::Refuse => {
                    return Some(Err(Error::SpecialInText { name: name.clone(), at: start }));
                }
            }
            if token.single_word && is_in_word(text, start, end) {
                return None;
            }
            if token.lstrip {
                // No further back than the last token, so that no white space is read twice.
                start = text.get(done..start).map_or(done, |text| done + text.trim_end().len());
            }
            if token.rstrip {
                end = blank.end(text, end);
            }
            done = end;
            Some(Ok(AddedMatch { start, end, id: token.id }))
        })
    }

    /// The last part of a text that is ordinary text, whatever is appended to the text.
    ///
    /// It starts at the end of the last added token that no continuation can change, or at 0. It
    /// ends before the first byte that may belong to an added token once more text follows, or to
    /// white space that such a token takes. So the search can restart anywhere in this part. It is
    /// empty if what surrounds a match decides whether it counts.
    pub(crate) fn last_part(&self, text: &str) -> Range<usize> {
        if !self.divides_always() {
            return 0..0;
        }
        // `end` is the first place, from `start` on, that more text may make part of a token. The next
        // search for it starts after the last one, so that no part of the text is read twice.
        let (mut start, mut end) = (0, self.first_open(text, 0));
        let mut blank = BlankRun::default();
        for hit in self.automaton.find_iter(text) {
            // With more text, a longer token that begins earlier may take the place of this match.
            if end <= hit.start() {
                break;
            }
            let mut done = hit.end();
            let next_open = if done > end { self.first_open(text, done) } else { end };
            if self.tokens[hit.pattern().as_usize()].token.rstrip {
                done = blank.end(text, done);
                // More white space may follow, or a token may begin in it.
                if done == text.len() || next_open < done {
                    end = hit.start();
                    break;
                }
            }
            (start, end) = (done, next_open);
        }
        if self.tokens.iter().any(|entry| entry.token.lstrip) {
            end = start + text[start..end.max(start)].trim_end().len();
        }
        start..end.max(start)
    }

    /// The first position from `from` on at which the rest of the text is a proper prefix of a
    /// special token; the end of the text if there is none.
    fn first_open(&self, text: &str, from: usize) -> usize {
        let bytes = text.as_bytes();
        let is_open = |&at: &usize| {
            let rest = &bytes[at..];
            let next = self.tokens.partition_point(|entry| entry.name.as_bytes() <= rest);
            self.tokens.get(next).is_some_and(|entry| entry.name.as_bytes().starts_with(rest))
        };
        (from.max((text.len() + 1).saturating_sub(self.longest))..text.len())
            .find(is_open)
            .unwrap_or(text.len())
    }
}

/// Finds texts from left to right, the longest first. Fails if there are too many; `kind` is that of
/// their tokens.
pub(crate) fn automaton(texts: &[&[u8]], kind: &str) -> Result<AhoCorasick> {
    let size: usize = texts.iter().map(|text| text.len()).sum();
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind((size > MAX_DFA_NAME_BYTES).then_some(AhoCorasickKind::ContiguousNFA))
        .build(texts);
    automaton.map_err(|error| Error::Vocabulary {
        reason: format!("too many {kind} tokens: {error}").into(),
    })
}

/// The last run of white space that was read: tokens of white space may lie in a long one.
#[derive(Debug, Default)]
struct BlankRun(Range<usize>);

impl BlankRun {
    /// The end of the white space from a position on. Positions never decrease.
    fn end(&mut self, text: &str, from: usize) -> usize {
        if !self.0.contains(&from) {
            self.0 = from..text.len() - text[from..].trim_start().len();
        }
        self.0.end.max(from)
    }
}

/// Whether a word reaches across an end of a match.
fn is_in_word(text: &str, start: usize, end: usize) -> bool {
    text[..start].chars().next_back().is_some_and(is_word_character)
        || text[end..].chars().next().is_some_and(is_word_character)
}

/// Whether a token has no visible character.
pub(crate) fn is_blank(name: &str) -> bool {
    name.chars().all(char::is_whitespace)
}

/// The id of a special token, or an error that lists the existing ones.
pub(crate) fn special_id(vocabulary: &Vocabulary, name: &str) -> Result<u32> {
    vocabulary.special(name).ok_or_else(|| Error::UnknownSpecial {
        name: name.to_owned(),
        known: vocabulary.special_tokens().map(|(name, _)| name.to_owned()).collect(),
    })
}

// ---------------------------------------------------------------------------- one search or two
//
// Whether one search finds all added tokens, or two passes are needed.
//
// `tokenizers` first finds the tokens without `normalized` in the original text, then the others in
// what is left, normalized. One search from left to right finds the same if normalization does not
// change what it looks for, and if no token of the second pass can overlap one of the first that
// begins later, or is special.

/// Whether one search in the original text finds all added tokens.
pub(crate) fn one_is_enough(added: &[AddedToken], normalizer: &Normalizer) -> bool {
    let names = |normalized: bool| -> Vec<&str> {
        let tokens = added.iter().filter(|token| token.normalized == normalized);
        tokens.map(|token| &*token.content).collect()
    };
    let (first, then) = (names(false), names(true));
    if then.iter().any(|name| may_change(&normalizer.steps, name)) {
        return false;
    }
    if then.is_empty() || first.is_empty() {
        return true;
    }
    // The first pass may take white space, or divide words, that others need.
    let strips_in = |normalized: bool| {
        let mut tokens = added.iter().filter(|token| token.normalized == normalized);
        tokens.any(|token| token.lstrip || token.rstrip)
    };
    let [strips_first, strips_then] = [false, true].map(strips_in);
    let strips = strips_first || strips_then;
    let is_spaced = |token: &AddedToken| strips && token.content.trim() != token.content;
    // A special token that is not asked for is text, but hides no token of the other pass.
    let special = added.iter().filter(|token| token.special && !token.normalized);
    let hiding: Vec<&str> = special.map(|token| &*token.content).collect();
    let interferes = (strips_first && strips_then)
        || added.iter().any(|token| token.single_word || is_spaced(token));
    !interferes && !may_overlap(&then, &first) && !may_overlap(&hiding, &then)
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

/// Names with more bytes are taken to overlap: to compare all of their ends would take quadratic time.
const MAX_COMPARED_BYTES: usize = 1 << 8;

/// Whether some text may end a name of one list and start one of the other, or whether a name of the
/// one list may contain a whole name of the other.
pub(crate) fn may_overlap(ends: &[&str], starts: &[&str]) -> bool {
    if ends.is_empty() || starts.is_empty() {
        return false;
    }
    let mut starts = starts.to_vec();
    starts.sort_unstable();
    let starts_a_name = |end: &str| {
        let next = starts.partition_point(|start| *start < end);
        starts.get(next).is_some_and(|start| start.starts_with(end))
    };
    let ends_at_a_start =
        |name: &str| name.char_indices().skip(1).any(|(at, _)| starts_a_name(&name[at..]));
    ends.iter().chain(&starts).any(|name| name.len() > MAX_COMPARED_BYTES)
        || ends.iter().any(|name| ends_at_a_start(name))
        || AhoCorasick::new(&starts).map_or(true, |all| ends.iter().any(|end| all.is_match(end)))
}

// ---------------------------------------------------------------------------- options

/// How added tokens are encoded, and which ids precede and follow each text. Created by
/// [`Tokenizer::options`](crate::Tokenizer::options), which has an example.
#[derive(Debug, Clone)]
pub struct EncodeOptions {
    /// The added tokens that are found in the original text.
    pub(crate) finder: Option<Arc<AddedFinder>>,
    /// Those that are found then, in what is left, once it is normalized.
    pub(crate) then: Option<Arc<AddedFinder>>,
    pub(crate) prepend: Vec<u32>,
    pub(crate) append: Vec<u32>,
}

/// A part of a text: ordinary text and what precedes it, or an added token.
pub(crate) enum TextOrId<'a> {
    Text(&'a str, PartStart),
    /// The id, and the range of the text that it stands for. White space of this range may belong to
    /// the token before as well.
    Id(u32, Range<usize>),
}

impl EncodeOptions {
    /// Prepare options for any number of texts. `normalizer` is what normalizes the text of a second
    /// search, and the names of its tokens; without it, one search in the original text finds all.
    ///
    /// Fails if `special` names an unknown special token.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        normalizer: Option<&Normalizer>,
        special: &Special,
        prepend: &[u32],
        append: &[u32],
    ) -> Result<Self> {
        if let Special::Only(names) = special {
            names.iter().try_for_each(|name| special_id(vocabulary, name).map(drop))?;
        }
        let all = vocabulary.added_tokens();
        let selected = all.iter().filter_map(|token| {
            let (token, action) = (token.clone(), action(special, token)?);
            Some(SelectedToken { name: token.content.clone(), token, action })
        });
        let mut selected: Vec<_> = selected.collect();
        if selected.iter().all(|entry| entry.action == Action::Pass) {
            selected.clear();
        }
        let (mut then, first): (Vec<_>, Vec<_>) =
            selected.into_iter().partition(|entry| normalizer.is_some() && entry.token.normalized);
        if let Some(normalizer) = normalizer {
            let normalizer = CompiledNormalizer::new(normalizer)?;
            let mut growth = TextGrowth::of(all.iter().map(|token| token.content.len()).sum());
            for SelectedToken { name, .. } in &mut then {
                *name = normalizer.normalized(name, &mut growth)?;
            }
        }
        let [finder, then] =
            [AddedFinder::new(first)?.map(Arc::new), AddedFinder::new(then)?.map(Arc::new)];
        Ok(Self { finder, then, prepend: prepend.to_vec(), append: append.to_vec() })
    }

    /// These options with other ids before and after each text.
    #[doc(hidden)]
    #[must_use]
    pub fn between(self, prepend: Vec<u32>, append: Vec<u32>) -> Self {
        Self { prepend, append, ..self }
    }

    /// Whether no added token is looked for.
    pub(crate) fn finds_none(&self) -> bool {
        self.finder.is_none() && self.then.is_none()
    }

    /// Whether a token may take the white space around it.
    pub(crate) fn strips(&self) -> bool {
        self.finder.iter().chain(&self.then).any(|finder| finder.strips())
    }
}

/// Call `sink` with the added tokens that a search finds, and the text between them, in order.
pub(crate) fn divide<'a>(
    finder: Option<&AddedFinder>,
    text: &'a str,
    mut start: PartStart,
    mut sink: impl FnMut(TextOrId<'a>) -> Result<()>,
) -> Result<()> {
    let mut done = 0;
    for token in finder.into_iter().flat_map(|finder| finder.find(text)) {
        let token = token?;
        // A token may start in white space that belongs to the previous token.
        let from = token.start.max(done);
        sink(TextOrId::Text(&text[done..from], start))?;
        if token.start < token.end {
            sink(TextOrId::Id(token.id, token.start..token.end))?;
        }
        (done, start) = (token.end, PartStart::Special);
    }
    sink(TextOrId::Text(&text[done..], start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of added tokens; `flags` tells which tokens take the white space before and after
    /// them, and which are not found in words.
    fn found(flags: [&[u32]; 3], text: &str) -> Vec<(usize, usize)> {
        let names = ["<a>", "<b>", " c", "word"];
        let added = names.iter().zip(0..).map(|(name, id)| AddedToken {
            lstrip: flags[0].contains(&id),
            rstrip: flags[1].contains(&id),
            single_word: flags[2].contains(&id),
            ..AddedToken::special(*name, id)
        });
        let vocabulary = Vocabulary::with_added([], [], added.collect()).unwrap();
        let options = EncodeOptions::new(&vocabulary, None, &Special::All, &[], &[]).unwrap();
        let finder = options.finder.unwrap();
        finder
            .find(text)
            .map(|found| found.unwrap())
            .map(|found| (found.start, found.end))
            .collect()
    }

    #[test]
    fn white_space_belongs_to_one_token() {
        let text = "x  <a> \u{3000}\n<b> y";
        assert_eq!(found([&[], &[], &[]], text), [(3, 6), (11, 14)]);
        assert_eq!(found([&[0], &[], &[]], text), [(1, 6), (11, 14)]);
        assert_eq!(found([&[0, 1], &[], &[]], text), [(1, 6), (6, 14)]);
        assert_eq!(found([&[], &[0, 1], &[]], text), [(3, 11), (11, 15)]);
        assert_eq!(found([&[1], &[0], &[]], text), [(3, 11), (11, 14)]);
        assert_eq!(found([&[], &[0], &[]], "<a>  c"), [(0, 5), (4, 6)]);
    }

    #[test]
    fn a_token_may_need_to_be_a_word() {
        assert_eq!(found([&[], &[], &[]], "word words"), [(0, 4), (5, 9)]);
        assert_eq!(found([&[], &[], &[3]], "word words sword word."), [(0, 4), (17, 21)]);
    }

    #[test]
    fn a_special_token_that_stays_text_hides_others() {
        let added = vec![AddedToken::special("<|x|>", 0), AddedToken::ordinary("|x", 1)];
        let vocabulary = Vocabulary::with_added([], [], added).unwrap();
        let options = EncodeOptions::new(&vocabulary, None, &Special::Text, &[], &[]).unwrap();
        let finder = options.finder.unwrap();
        let found: Vec<_> = finder.find("<|x|> |x").map(|found| found.unwrap().start).collect();
        assert_eq!(found, [6]);
        assert_eq!(finder.last_part("<|x|> |x "), 0..0);
    }

    #[test]
    fn ends_and_starts_that_are_equal_are_found() {
        for (ends, starts, overlap) in [
            (&["a<b"][..], &["<bc", "x"][..], true),
            (&["ab"], &["bb", "c"], true),
            (&["x<y>z"], &["<y>"], true),
            (&["é€"], &["€é"], true),
            (&["<a>", "<b>"], &["<c>", "<d>"], false),
            (&["ab"], &["ab"], true),
            (&["b"], &["ab"], false),
            (&["b"], &["bc"], false),
            (&[], &["a"], false),
        ] {
            assert_eq!(may_overlap(ends, starts), overlap, "{ends:?} {starts:?}");
        }
    }

    #[test]
    fn long_names_take_linear_time() {
        let (ends, starts) = ("a".repeat(300_000) + "c", "ab".repeat(150_000));
        assert!(may_overlap(&[&ends], &[&starts]) && may_overlap(&["b"], &[&starts]));
        assert!(!may_overlap(&[], &[&starts]));
    }

    #[test]
    fn many_names_are_compared_in_one_pass() {
        let names = |kind| -> Vec<String> { (0..30_000).map(|n| format!("<{kind}{n}>")).collect() };
        let (one, other) = (names('a'), names('b'));
        let [one, other]: [Vec<&str>; 2] =
            [&one, &other].map(|names| names.iter().map(String::as_str).collect());
        assert!(!may_overlap(&one, &other));
    }

    #[test]
    fn a_name_has_at_most_4096_bytes_also_once_it_is_normalized() {
        let token = |bytes| {
            let token = AddedToken::special("a".repeat(bytes), 0);
            Vocabulary::with_added([], [], vec![AddedToken { normalized: true, ..token }])
        };
        assert!(matches!(token(4097), Err(Error::Vocabulary { .. })));
        let vocabulary = token(4096).unwrap();
        let longer = NormalizerStep::Prepend("a".to_owned());
        for (steps, fits) in [(vec![], true), (vec![longer], false)] {
            let normalizer = Normalizer { steps };
            let options =
                EncodeOptions::new(&vocabulary, Some(&normalizer), &Special::All, &[], &[]);
            assert_eq!(options.is_ok(), fits);
        }
    }
}
