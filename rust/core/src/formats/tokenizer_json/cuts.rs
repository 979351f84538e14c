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
use regex_syntax::hir::{Class, ClassUnicode, HirKind};

use crate::rules::pre_tokenizer::GPT2_SPLIT;

/// A split at runs of a class: of any length (`+`), of one (empty), or of a few (`{1,3}`).
struct Cut {
    /// The class, without brackets.
    inside: String,
    times: String,
    members: ClassUnicode,
}

/// One item of an alternative.
struct Item {
    kind: ItemKind,
    text: String,
    /// Its repetition.
    times: String,
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
    if before.len() > MAX_CUTS || rule.len() > MAX_RULE_BYTES {
        return None;
    }
    let cuts = before.iter().map(|step| cut(step)).collect::<Option<Vec<Cut>>>()?;
    if cuts.is_empty() {
        return None;
    }
    let gpt2 = crate::Pattern::named("gpt2").is_some_and(|named| named.regex() == Some(rule));
    let alternatives = alternatives(if gpt2 { GPT2_SPLIT } else { rule })?;
    let mut all = ClassUnicode::empty();
    for cut in &cuts {
        if meets(&all, &cut.members) {
            return None; // Two steps split at the same characters.
        }
        all.union(&cut.members);
    }
    let every: String = cuts.iter().map(|cut| &*cut.inside).collect();
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
        let is_needed =
            |item: &&Item| item.kind == ItemKind::Look || !item.times.starts_with(['?', '*']);
        let needed: Vec<&Item> = items.iter().filter(is_needed).collect();
        if let [item] = needed[..]
            && item.kind == ItemKind::Class
            && ["", "+", "++"].contains(&&*item.times)
            && let Some(members) = members(&item.text)
        {
            first.union(&members);
        }
    }
    others(&first).ranges().is_empty()
}

/// Whether a pattern consists of printable characters of ASCII, and looks at no others.
pub(super) fn is_of_ascii(regex: &str) -> bool {
    let printable = members("[!-~]").expect("it is a class");
    let is_one = |item: &Item| {
        item.kind == ItemKind::Class
            && members(&item.text)
                .is_some_and(|class| minus(&class, &printable).ranges().is_empty())
    };
    alternatives(regex).is_some_and(|all| all.iter().flatten().all(is_one))
}

// ---------------------------------------------------------------------------- parsing

static CUT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?s)\A(?:\[((?!\^)[^\[\]&]+)\]|(\\p\{\w+\}|\\[sd]|\\\W|[^\\()\[\]{}*+?|^$.]))(\+|\{1,\d+\})?\z",
    )
});
static ATOM: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?s)\A(?:(?P<look>\(\?!(?P<ahead>\\S|\[[^\[\]]+\])\))",
        r"|(?P<folded>\(\?i:[^()\\\[\]*+?{}.]+\))",
        r"|(?P<class>\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]|\\p\{\w+\}|\\.|[^\\()\[\]{}*+?|^$.]))",
        r"(?P<times>(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?)?"
    ))
});
static SIMPLE_CLASS: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\A(?:\\p\{\w+\}|\[[^\^\[\]&]+\])\z"));

fn compiled(regex: &str) -> Regex {
    Regex::new(regex).expect("a constant expression compiles")
}

fn cut(regex: &str) -> Option<Cut> {
    let captures = CUT.captures(regex).ok()??;
    let inside = captures.get(1).or_else(|| captures.get(2))?.as_str().to_owned();
    let times = captures.get(3).map_or("", |times| times.as_str()).to_owned();
    let members = members(&format!("[{inside}]"))?;
    Some(Cut { inside, times, members })
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
        let captures = ATOM.captures(rest).ok()??;
        let part = |name: &str| captures.name(name).map(|part| part.as_str().to_owned());
        let (kind, text) = if let Some(ahead) = part("ahead") {
            (ItemKind::Look, ahead)
        } else if let Some(folded) = part("folded") {
            (ItemKind::Folded, folded)
        } else {
            (ItemKind::Class, part("class")?)
        };
        let times = part("times").unwrap_or_default();
        rest = &rest[captures.get(0)?.end()..];
        alternatives.last_mut()?.push(Item { kind, text, times });
    }
    Some(alternatives)
}

// ---------------------------------------------------------------------------- classes

/// The characters that a class or a literal matches; `None` if it is neither.
fn members(atom: &str) -> Option<ClassUnicode> {
    let hir = regex_syntax::parse(atom).ok()?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class.clone()),
        HirKind::Class(Class::Bytes(class)) if class.ranges().is_empty() => {
            Some(ClassUnicode::empty())
        }
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let mut each = text.chars();
            let (Some(c), None) = (each.next(), each.next()) else { return None };
            Some(ClassUnicode::new([regex_syntax::hir::ClassUnicodeRange::new(c, c)]))
        }
        _ => None,
    }
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

fn minus(class: &ClassUnicode, other: &ClassUnicode) -> ClassUnicode {
    let mut rest = class.clone();
    rest.difference(other);
    rest
}

// ---------------------------------------------------------------------------- narrowing

impl Cut {
    fn regex(&self) -> String {
        let alone = self.inside.starts_with('\\')
            && SIMPLE_CLASS.is_match(&self.inside).is_ok_and(|is| is)
            || matches!(&*self.inside, r"\s" | r"\d");
        if alone {
            return self.inside.clone() + &self.times;
        }
        format!("[{}]{}", self.inside, self.times)
    }

    /// What happens to the characters of a cut: they may be split again by the pattern.
    fn inside_of(&self, alternatives: &[Vec<Item>]) -> Option<String> {
        if self.times.is_empty() {
            return Some(self.regex());
        }
        let class = format!("[{}]", self.inside);
        let narrow = |items: &Vec<Item>| narrowed(items, &self.members, &class);
        let mut again = alternatives.iter().map(narrow).collect::<Option<Vec<String>>>()?;
        again.retain(|part| !part.is_empty());
        let matching = again.join("|");
        if matching.is_empty() {
            return Some(self.regex());
        }
        if self.times != "+" {
            let whole = alternatives.iter().all(|items| self.keeps_whole(items).unwrap_or(false));
            return whole.then(|| self.regex());
        }
        let rest = self.unmatched(alternatives);
        let rest = rest.unwrap_or_else(|| format!("(?:(?!{matching}){class})+"));
        Some(format!("{matching}|{rest}"))
    }

    /// What the pattern leaves over of a cut, with no look further ahead than one character.
    ///
    /// That can be said if all alternatives are runs of a class, perhaps after one other character:
    /// what is left over are the characters of no class, but for one that stands before a run. `None`
    /// if they are not.
    fn unmatched(&self, alternatives: &[Vec<Item>]) -> Option<String> {
        let mut runs = Vec::new();
        for items in alternatives {
            runs.extend(self.run(items)?);
        }
        if !runs.iter().all(|(_, run)| SIMPLE_CLASS.is_match(run).is_ok_and(|is| is)) {
            return None;
        }
        let mut left = self.members.clone();
        for (_, run) in &runs {
            left.difference(&members(run)?);
        }
        let class = format!("[{}]", self.inside);
        let (mut ahead, mut classes) = (String::new(), String::new());
        for (before, run) in &runs {
            classes += run.strip_prefix('[').and_then(|run| run.strip_suffix(']')).unwrap_or(run);
            let before = if before.is_empty() { continue } else { members(before)? };
            if meets(&before, &left) {
                if !minus(&left, &before).ranges().is_empty() {
                    return None;
                }
                ahead.extend(["(?!", &narrow_class(run, &self.members, &class)?, ")"]);
            }
        }
        Some(format!("[{class}&&[^{classes}]]+{ahead}"))
    }

    /// The class before a run and that of the run; nothing if the alternative cannot match here, and
    /// `None` if it is another alternative.
    fn run(&self, items: &[Item]) -> Option<Vec<(String, String)>> {
        if narrowed(items, &self.members, "[]")?.is_empty() {
            return Some(Vec::new());
        }
        if items.iter().any(|item| item.kind != ItemKind::Class) {
            return None;
        }
        let is_run = |item: &Item| matches!(&*item.times, "+" | "++");
        match self.matching(items)?[..] {
            [run] if is_run(run) => Some(vec![(String::new(), run.text.clone())]),
            [before, run] if before.times == "?" && is_run(run) => {
                Some(vec![(before.text.clone(), run.text.clone())])
            }
            _ => None,
        }
    }

    /// The items that match characters of the cut.
    fn matching<'i>(&self, items: &'i [Item]) -> Option<Vec<&'i Item>> {
        let mut matching = Vec::new();
        for item in items.iter().filter(|item| item.kind == ItemKind::Class) {
            if meets(&members(&item.text)?, &self.members) {
                matching.push(item);
            }
        }
        Some(matching)
    }

    /// Whether an alternative cannot match in a piece of a cut, or only all of it.
    fn keeps_whole(&self, items: &[Item]) -> Option<bool> {
        if narrowed(items, &self.members, &format!("[{}]", self.inside))?.is_empty() {
            return Some(true);
        }
        let matching = self.matching(items)?;
        let [item] = matching[..] else { return Some(false) };
        if items.iter().any(|item| item.kind == ItemKind::Folded) {
            return Some(false);
        }
        let most = self.times.strip_prefix("{1,")?.strip_suffix('}')?.parse::<usize>().ok()?;
        let times = item.times.strip_suffix('+').filter(|rest| !rest.is_empty());
        let times = times.unwrap_or(&item.times);
        let count = times.strip_prefix("{1,").and_then(|rest| rest.strip_suffix('}'));
        let long = times == "+" || count.is_some_and(|n| n.parse().is_ok_and(|n: usize| n >= most));
        Some(long && minus(&self.members, &members(&item.text)?).ranges().is_empty())
    }
}

/// An alternative on one side of the cuts; empty if it cannot match there.
fn narrowed(items: &[Item], side: &ClassUnicode, regex: &str) -> Option<String> {
    let mut texts = String::new();
    for Item { kind, text, times } in items {
        if *kind == ItemKind::Folded {
            if !is_on_side(text, side)? {
                return Some(String::new());
            }
            texts += &[&**text, times].concat();
            continue;
        }
        let narrow = narrow_class(text, side, regex)?;
        if *kind == ItemKind::Look {
            if !narrow.is_empty() {
                texts.extend(["(?!", &narrow, ")"]);
            }
        } else if !narrow.is_empty() {
            texts += &[&*narrow, times].concat();
        } else if !times.starts_with(['?', '*']) {
            return Some(String::new());
        }
    }
    Some(texts)
}

/// Whether a group of literals without letter case lies on this side; `None` if it lies across.
fn is_on_side(folded: &str, side: &ClassUnicode) -> Option<bool> {
    let other = others(side);
    let (mut here, mut there) = (false, false);
    let letters = folded.strip_prefix("(?i:")?.strip_suffix(')')?;
    for letter in letters.chars().filter(|letter| *letter != '|') {
        let letter = members(&format!(r"(?i:\x{{{:x}}})", u32::from(letter)))?;
        here |= meets(&letter, side);
        there |= meets(&letter, &other);
    }
    (!(here && there)).then_some(here)
}

/// A class with only the characters on one side, which `regex` matches; empty if there is none.
fn narrow_class(atom: &str, side: &ClassUnicode, regex: &str) -> Option<String> {
    let class = members(atom)?;
    if !meets(&class, side) {
        return Some(String::new());
    }
    if minus(&class, side).ranges().is_empty() {
        return Some(atom.to_owned());
    }
    Some(match regex.strip_prefix("[^") {
        Some(rest) if atom.starts_with("[^") => atom[..atom.len() - 1].to_owned() + rest,
        Some(rest) if atom == r"\S" => [r"[^\s", rest].concat(),
        _ => format!("[{atom}&&{regex}]"),
    })
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
            (&["x"], None),
        ] {
            assert_eq!(composed(steps).as_deref(), expected, "{steps:?}");
        }
    }
}
