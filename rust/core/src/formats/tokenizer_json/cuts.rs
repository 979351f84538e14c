//! Joins splits by classes of characters and the pattern after them into one equivalent pattern.
//!
//! Several steps may follow each other, each splitting what the one before left. In the usual case
//! one regular expression does the same, and is several times as fast: where a pattern follows
//! *cuts*, which are splits at characters of one class (`\p{N}`, `\p{N}{1,3}`, `[一-龥]+`). No pretoken
//! has characters on both sides of a cut, so the pattern is rewritten with its classes narrowed to
//! one side, and the sides are alternatives. What lies beyond a cut is the end of the text to the
//! pattern, so lookaheads are narrowed too.

use std::sync::LazyLock;

use fancy_regex::Regex;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::rules::pre_tokenizer::GPT2_SPLIT;

/// A split at runs of a class: of any length (`+`), of one (empty), or of a few (`{1,3}`).
struct Cut {
    regex: String,
    /// The class, with brackets.
    class: String,
    times: String,
    members: ClassUnicode,
}

/// One item of an alternative.
struct Item {
    kind: ItemKind,
    text: String,
    /// Its repetition.
    times: String,
    /// The characters of its text.
    members: ClassUnicode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    /// `(?!…)`; the text is the class.
    Look,
    /// `(?i:…)` with literals.
    Folded,
    /// A class or a literal.
    Class,
}

/// Cuts that are joined, and bytes of the pattern after them: each cut narrows the whole pattern.
/// `DeepSeek-V3` has two cuts, and a pattern of 190 bytes.
const MAX_CUTS: usize = 8;
const MAX_RULE_BYTES: usize = 1 << 12;

/// The one pattern; `None` if there is none, or no proof that it does the same.
pub(super) fn composed(steps: &[&str]) -> Option<String> {
    let (rule, before) = steps.split_last()?;
    if before.is_empty() || before.len() > MAX_CUTS || rule.len() > MAX_RULE_BYTES {
        return None;
    }
    let cuts = before.iter().map(|step| cut(step)).collect::<Option<Vec<Cut>>>()?;
    let gpt2 = crate::Pattern::named("gpt2").is_some_and(|named| named.regex() == Some(rule));
    let alternatives = alternatives(if gpt2 { GPT2_SPLIT } else { rule })?;
    let (mut all, mut every) = (ClassUnicode::empty(), String::new());
    for cut in &cuts {
        if meets(&all, &cut.members) {
            return None; // Two steps split at the same characters.
        }
        all.union(&cut.members);
        every += inside(&cut.class)?;
    }
    let (outside, regex) = (others(&all), format!("[^{every}]"));
    let mut parts =
        cuts.iter().map(|cut| cut.inside_of(&alternatives)).collect::<Option<Vec<String>>>()?;
    for items in &alternatives {
        parts.push(narrowed(items, &outside, &regex)?);
    }
    parts.retain(|part| !part.is_empty());
    Some(parts.join("|"))
}

/// Whether some alternative of a pattern surely begins with each character, so that no text is left
/// over.
pub(super) fn begins_with_all(regex: &str) -> bool {
    let mut first = ClassUnicode::empty();
    for items in alternatives(regex).into_iter().flatten() {
        let is_needed = |item: &&Item| item.kind == ItemKind::Look || !item.is_optional();
        let needed: Vec<&Item> = items.iter().filter(is_needed).collect();
        if let [Item { kind: ItemKind::Class, times, members, .. }] = needed[..]
            && ["", "+", "++"].contains(&&**times)
        {
            first.union(members);
        }
    }
    others(&first).ranges().is_empty()
}

/// Whether a pattern consists of printable characters of ASCII, and looks at no others.
pub(super) fn is_of_ascii(regex: &str) -> bool {
    let printable = members("[!-~]").expect("it is a class");
    let is_one = |item: &Item| item.kind == ItemKind::Class && is_within(&item.members, &printable);
    alternatives(regex).is_some_and(|all| all.iter().flatten().all(is_one))
}

// ---------------------------------------------------------------------------- parsing

static ITEM: LazyLock<Regex> = LazyLock::new(|| {
    let regex = concat!(
        r"(?s)\A(?:\(\?!(?P<look>\\S|\[[^\[\]]+\])\)",
        r"|(?P<folded>\(\?i:[^()\\\[\]*+?{}.^$]+\))",
        r"|(?P<class>\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]|\\p\{\w+\}|\\.|[^\\()\[\]{}*+?|^$.]))",
        r"(?P<times>(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?)?"
    );
    Regex::new(regex).expect("a constant expression compiles")
});

fn cut(regex: &str) -> Option<Cut> {
    let mut all = alternatives(regex)?;
    let Item { kind, text, times, members } = all.pop()?.pop()?;
    let is_alone = all.is_empty() && regex.len() == text.len() + times.len();
    let is_cut = is_alone && (matches!(&*times, "" | "+") || most(&times).is_some());
    if kind != ItemKind::Class || !is_cut || matches!(&*text, r"\w" | r"\W" | r"\S" | r"\D") {
        return None;
    }
    let class = format!("[{}]", inside(&text)?);
    Some(Cut { regex: regex.to_owned(), class, times, members })
}

/// What stands in the brackets of a class, if it may stand beside other classes in brackets.
fn inside(class: &str) -> Option<&str> {
    let inside = class.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(class);
    let has_range = inside != r"\-" && (inside.starts_with('-') || inside.ends_with('-'));
    let joins = has_range || inside.contains(['^', '[', ']', '&', '~']);
    (!joins).then_some(inside)
}

/// The largest number of repetitions in `{1,3}`.
fn most(times: &str) -> Option<usize> {
    times.strip_prefix("{1,")?.strip_suffix('}')?.parse().ok()
}

/// The alternatives of a pattern of classes, literals and lookaheads by one character.
fn alternatives(regex: &str) -> Option<Vec<Vec<Item>>> {
    let mut alternatives = vec![Vec::new()];
    let mut rest = regex;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('|') {
            alternatives.push(Vec::new());
            rest = after;
            continue;
        }
        let captures = ITEM.captures(rest).ok()??;
        let part = |name: &str| captures.name(name).map(|part| part.as_str().to_owned());
        let kinds =
            [("look", ItemKind::Look), ("folded", ItemKind::Folded), ("class", ItemKind::Class)];
        let (kind, text) = kinds.into_iter().find_map(|(name, kind)| Some((kind, part(name)?)))?;
        let members = if kind == ItemKind::Folded { of_letters(&text) } else { members(&text) };
        let (times, members) = (part("times").unwrap_or_default(), members?);
        rest = &rest[captures.get(0)?.end()..];
        alternatives.last_mut()?.push(Item { kind, text, times, members });
    }
    Some(alternatives)
}

// ---------------------------------------------------------------------------- classes

/// The characters that a class or a literal matches; `None` if it is neither.
fn members(atom: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(atom).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let c = text.chars().next().filter(|c| c.len_utf8() == text.len())?;
            Some(ClassUnicode::new([ClassUnicodeRange::new(c, c)]))
        }
        _ => None,
    }
}

/// The characters of a group of literals without letter case.
fn of_letters(folded: &str) -> Option<ClassUnicode> {
    let mut all = ClassUnicode::empty();
    let letters = folded.strip_prefix("(?i:")?.strip_suffix(')')?;
    for letter in letters.chars().filter(|letter| *letter != '|') {
        all.union(&members(&format!(r"(?i:\x{{{:x}}})", u32::from(letter)))?);
    }
    Some(all)
}

fn meets(one: &ClassUnicode, other: &ClassUnicode) -> bool {
    let mut both = one.clone();
    both.intersect(other);
    !both.ranges().is_empty()
}

fn others(class: &ClassUnicode) -> ClassUnicode {
    let mut others = class.clone();
    others.negate();
    others
}

fn is_within(class: &ClassUnicode, other: &ClassUnicode) -> bool {
    !meets(class, &others(other))
}

// ---------------------------------------------------------------------------- narrowing

impl Cut {
    /// What happens to the characters of a cut: they may be split again by the pattern.
    fn inside_of(&self, alternatives: &[Vec<Item>]) -> Option<String> {
        if self.times.is_empty() {
            return Some(self.regex.clone());
        }
        let (mut here, mut texts) = (Vec::new(), Vec::new());
        for items in alternatives {
            let text = narrowed(items, &self.members, &self.class)?;
            if !text.is_empty() {
                here.push(self.matching(items));
                texts.push(text);
            }
        }
        if here.is_empty() {
            return Some(self.regex.clone());
        }
        if let Some(most) = most(&self.times) {
            return here
                .iter()
                .all(|items| self.keeps_whole(items, most))
                .then(|| self.regex.clone());
        }
        let (class, matching) = (&self.class, texts.join("|"));
        let rest = self.unmatched(&here);
        let rest = rest.unwrap_or_else(|| format!("(?:(?!{matching}){class})+"));
        Some(format!("{matching}|{rest}"))
    }

    /// The items of an alternative that have to do with characters of the cut.
    fn matching<'i>(&self, items: &'i [Item]) -> Vec<&'i Item> {
        items.iter().filter(|item| meets(&item.members, &self.members)).collect()
    }

    /// What the pattern leaves over of a cut, with no look further ahead than one character.
    ///
    /// That can be said if all alternatives are runs of a class, perhaps after one other character:
    /// what is left over are the characters of no class, but for one that stands before a run. `None`
    /// if they are not.
    fn unmatched(&self, alternatives: &[Vec<&Item>]) -> Option<String> {
        let (mut left, mut classes) = (self.members.clone(), String::new());
        for items in alternatives {
            let (run, before) = items.split_last()?;
            let is_run = matches!(&*run.times, "+" | "++")
                && before.len() <= 1
                && before.iter().all(|before| before.times == "?")
                && items.iter().all(|item| item.kind == ItemKind::Class);
            if !is_run {
                return None;
            }
            left.difference(&run.members);
            classes += inside(&run.text)?;
        }
        let mut ahead = String::new();
        for items in alternatives {
            let [before, run] = items[..] else { continue };
            if !meets(&before.members, &left) {
                continue;
            }
            if !is_within(&left, &before.members) {
                return None;
            }
            ahead.extend(["(?!", &run.narrowed(&self.members, &self.class)?, ")"]);
        }
        Some(format!("[{}&&[^{classes}]]+{ahead}", self.class))
    }

    /// Whether an alternative matches all of a piece of the cut with at most so many characters.
    fn keeps_whole(&self, items: &[&Item], most: usize) -> bool {
        let [Item { kind: ItemKind::Class, times, members, .. }] = items else { return false };
        let is_long = match &**times {
            "+" | "++" => true,
            times => self::most(times.trim_end_matches('+')).is_some_and(|count| count >= most),
        };
        is_long && is_within(&self.members, members)
    }
}

impl Item {
    fn is_optional(&self) -> bool {
        self.times.starts_with(['?', '*'])
    }

    /// The text with only the characters on one side, which `regex` matches; empty if there is none,
    /// and `None` if literals lie across.
    fn narrowed(&self, side: &ClassUnicode, regex: &str) -> Option<String> {
        let text = &*self.text;
        if !meets(&self.members, side) {
            return Some(String::new());
        }
        if is_within(&self.members, side) {
            return Some(text.to_owned());
        }
        Some(match regex.strip_prefix("[^") {
            _ if self.kind == ItemKind::Folded => return None,
            Some(rest) if text.starts_with("[^") => text[..text.len() - 1].to_owned() + rest,
            Some(rest) if text == r"\S" => [r"[^\s", rest].concat(),
            _ => format!("[{text}&&{regex}]"),
        })
    }
}

/// An alternative on one side of the cuts; empty if it cannot match there.
fn narrowed(items: &[Item], side: &ClassUnicode, regex: &str) -> Option<String> {
    let mut texts = String::new();
    for item in items {
        let narrow = item.narrowed(side, regex)?;
        if narrow.is_empty() {
            if item.kind != ItemKind::Look && !item.is_optional() {
                return Some(String::new());
            }
        } else if item.kind == ItemKind::Look {
            texts.extend(["(?!", &narrow, ")"]);
        } else {
            texts += &[&*narrow, &item.times].concat();
        }
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_match_all_text_are_known() {
        for (regex, all) in [
            (GPT2_SPLIT, true),
            (r"\p{L}+|[^\p{L}]", true),
            (r"a?\s|\S+", true),
            (r"\p{L}+", false),
            (r"\s{2}|\S", false),
            (r"(?!a)\s|\S", false),
            (r"\s(?!a)|\S", false),
            (r"(\s)|\S", false),
        ] {
            assert_eq!(begins_with_all(regex), all, "{regex}");
        }
    }

    #[test]
    fn patterns_of_ascii_are_known() {
        for (regex, is) in
            [("[0-9][0-9]", true), ("a+|b", true), (r"\d", false), ("a ", false), ("(?!a)b", false)]
        {
            assert_eq!(is_of_ascii(regex), is, "{regex}");
        }
    }

    #[test]
    fn many_cuts_and_long_patterns_stay_steps() {
        let all: Vec<String> = ('a'..='i').map(|cut| format!("[{cut}]+")).collect();
        for (count, length, is_composed) in [(8, 1, true), (9, 1, false), (1, 1 << 11, false)] {
            let rule = vec!["[x]"; length].join("|");
            let mut steps: Vec<&str> = all[..count].iter().map(|cut| &**cut).collect();
            steps.push(&rule);
            assert_eq!(composed(&steps).is_some(), is_composed, "{count} {length}");
        }
    }

    #[test]
    fn a_pattern_is_narrowed_to_both_sides_of_cuts() {
        for (steps, expected) in [
            (
                &[r"\p{N}", GPT2_SPLIT][..],
                Some(
                    r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+",
                ),
            ),
            (&[r"\p{N}{1,3}", r"\p{N}+|[^\p{N}]+"], Some(r"\p{N}{1,3}|[^\p{N}]+")),
            (&[r"\p{N}{1,3}", r"\p{N}{2}|[^\p{N}]+"], None),
            (&["[ab]+", r"\d+"], Some(r"[ab]+|\d+")),
            (&["[ab]+", "[bc]", "x"], None),
            (&["[ab]+", "(x)"], None),
            (&["[+-]", "[a]", "x"], None),
            (&[r"\p{N}{1,3}", r"(?i:a)?\d+|[^\d]"], None),
            (&["x"], None),
        ] {
            assert_eq!(composed(steps).as_deref(), expected, "{steps:?}");
        }
    }
}
