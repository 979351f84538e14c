//! Regular expressions for Oniguruma, the engine of `tokenizers`, and for our engine.
//!
//! The two engines agree on most of the syntax. Differences: Oniguruma matches `$` and `^` at line
//! ends; a `+` after a count is a repetition there, but makes the count possessive here; case
//! folding there can turn one character into two; and `\w`, `\b` and some named classes contain
//! other characters. Ambiguous syntax is refused, so an accepted expression has the same meaning.

use std::sync::LazyLock;

use fancy_regex::{Captures, Regex};

use super::json::unsupported;
use crate::error::Result;
use crate::pretokenize::match_lengths;

/// What is written differently: our form, and that of Oniguruma.
const FORMS: [(&str, &str); 4] =
    [("$", r"\z"), ("^", r"\A"), ("(?m:$)", "$"), ("(?s:.)", "(?m:.)")];

/// A piece of an expression: a character class (with at most one nested class), an escape with or
/// without braces, a count, or a single character.
static PIECE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?s)\(\?m:\$\)|\(\?s:\.\)|\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]",
        r"|\\[pPx]\{[^}]*\}|\\.|\{\d+(?:,\d*)?\}\+?|."
    ))
});

/// A token with one meaning in both engines.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let categories = "L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfon]?";
    let scripts = "Latin|Greek|Cyrillic|Arabic|Hebrew|Thai|Lao|Khmer|Myanmar|Han|Hiragana|Katakana|\
                   Hangul";
    let escape = format!(
        r"\\[pP]\{{(?:{categories}|{scripts})\}}|\\[sSdDrntfv]|\\x\{{[0-9A-Fa-f]{{1,6}}\}}|\\[^\w\s]"
    );
    let in_class = format!(r"(?:{escape}|&(?!&)|[^\\\[\]&])");
    let one_class = format!(r"\[(?!:)\^?{in_class}+\]");
    let both = format!(r"\[(?:{one_class}|{escape}|[^\\\[\]&^])&&{one_class}\]");
    let class = format!(r"{both}|\[\^?(?:{in_class}|{one_class})+\]");
    compiled(&format!(
        r"(?s)\A(?:(?P<class>{class}|\(\?m:\.\))|(?P<escape>{escape}|\\[zA])|(?P<open>\((?:\?(?:[:>=!]|<[=!]|i:))?(?!\?))|(?P<close>\))|(?P<count>\{{\d+(?:,\d*)?\}})|(?P<times>[*+?])|(?P<bar>\|)|(?P<end>\$)|(?P<character>[^\\\[\](){{}}*+?|^$.]))"
    ))
});

/// The contents of case-insensitive groups.
static FOLDED: LazyLock<Regex> = LazyLock::new(|| compiled(r"\(\?i:((?:[^()]|\\[()])*)\)"));

/// Pairs of letters that are the case folding of one character, such as `ß`.
const ONE_OR_TWO: [&str; 5] = ["ss", "ff", "fi", "fl", "st"];

fn compiled(regex: &str) -> Regex {
    Regex::new(regex).expect("a constant expression compiles")
}

/// Convert an expression for Oniguruma.
///
/// ```
/// use bytepair::formats::tokenizer_json::to_oniguruma;
/// assert_eq!(to_oniguruma(r"\p{N}{1,3}+|\s++$"), r"(?>\p{N}{1,3})|\s++\z");
/// ```
pub fn to_oniguruma(regex: &str) -> String {
    let mut done: Vec<String> = Vec::new();
    let mut open_groups = Vec::new();
    for piece in PIECE.find_iter(regex).flatten().map(|found| found.as_str()) {
        if piece == "(" {
            open_groups.push(done.len());
        }
        if piece == ")"
            && let Some(start) = open_groups.pop()
        {
            let group = done.split_off(start).concat() + piece;
            done.push(group);
        } else if piece.starts_with('{')
            && let Some(count) = piece.strip_suffix('+')
            && let Some(last) = done.last_mut()
        {
            *last = format!("(?>{last}{count})");
        } else {
            let form = FORMS.iter().find(|(ours, _)| *ours == piece);
            done.push(form.map_or(piece, |(_, theirs)| *theirs).to_owned());
        }
    }
    done.concat()
}

/// Whether an expression, converted for Oniguruma, certainly has the same meaning there.
///
/// ```
/// use bytepair::formats::tokenizer_json::means_the_same;
/// assert!(means_the_same(r"\p{L}+|\s+") && !means_the_same(r"\w+|\W+"));
/// ```
pub fn means_the_same(regex: &str) -> bool {
    from_oniguruma(&to_oniguruma(regex), "").is_ok_and(|back| back == regex)
}

/// Convert an expression from Oniguruma; the inverse of [`to_oniguruma`]. Fails at the `place` of
/// the expression if a part of it may have another meaning there.
///
/// ```
/// use bytepair::formats::tokenizer_json::from_oniguruma;
/// assert_eq!(from_oniguruma(r"(?>\p{N}{1,3})|\s++\z", "pattern")?, r"\p{N}{1,3}+|\s++$");
/// assert_eq!(from_oniguruma(r"a{2}+$", "pattern")?, "(?:a{2})+(?m:$)");
/// # Ok::<(), bytepair::Error>(())
/// ```
pub fn from_oniguruma(regex: &str, place: &str) -> Result<String> {
    let mut groups: Vec<Vec<String>> = vec![Vec::new()];
    let mut at = 0;
    while at < regex.len() {
        let captures = TOKEN.captures(&regex[at..]).ok().flatten();
        let (kind, token) = captures.as_ref().and_then(kind_and_text).ok_or_else(|| {
            let part: String = regex[at..].chars().take(12).collect();
            let count = regex[..at].chars().count();
            unsupported(
                place,
                format!(
                    "the pattern contains {part:?} at character {count}, which may have another \
                     meaning in this engine"
                ),
            )
        })?;
        at += token.len();
        if !take(&mut groups, kind, token) {
            return Err(unsupported(place, format!("the pattern has an unmatched ) at byte {at}")));
        }
    }
    let [pattern] = &mut groups[..] else {
        return Err(unsupported(place, "the pattern has an unclosed ("));
    };
    let pattern = pattern.concat();
    check_folding(&pattern, place)?;
    Ok(pattern)
}

/// The name of the group that matched, and its text.
fn kind_and_text<'t>(captures: &Captures<'t>) -> Option<(&'static str, &'t str)> {
    let kinds = ["class", "escape", "open", "close", "count", "times", "bar", "end", "character"];
    kinds.iter().find_map(|kind| Some((*kind, captures.name(kind)?.as_str())))
}

/// Add one token to the innermost open group; false if it closes a group that is not open.
fn take(groups: &mut Vec<Vec<String>>, kind: &str, token: &str) -> bool {
    let Some(inner) = groups.last_mut() else { return false };
    match kind {
        "open" => groups.push(vec![token.to_owned()]),
        "close" => {
            let inner = groups.pop().unwrap_or_default();
            let Some(outer) = groups.last_mut() else { return false };
            outer.push(match &inner[..] {
                // Makes the count possessive.
                [open, part, count] if open == "(?>" && is_count(count) => {
                    [part, count, "+"].concat()
                }
                _ => inner.concat() + ")",
            });
        }
        _ if token == "+" && inner.len() > 1 && is_count(&inner[inner.len() - 1]) => {
            let repeated = inner.split_off(inner.len() - 2).concat();
            inner.extend([format!("(?:{repeated})"), "+".to_owned()]);
        }
        _ => {
            let form = FORMS.iter().find(|(_, theirs)| *theirs == token);
            inner.push(form.map_or(token, |(ours, _)| *ours).to_owned());
        }
    }
    true
}

/// Whether a part is a count such as `{1,3}`.
fn is_count(part: &str) -> bool {
    let inner = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte == b',' || byte.is_ascii_digit()))
}

/// Fails if case folding in an expression may turn one letter into two.
fn check_folding(pattern: &str, place: &str) -> Result<()> {
    let mut count = 0;
    for folded in FOLDED.captures_iter(pattern).flatten() {
        count += 1;
        let folded = folded.get(1).map_or("", |group| group.as_str());
        let lower = folded.to_ascii_lowercase();
        if !folded.is_ascii() || ONE_OR_TWO.iter().any(|pair| lower.contains(pair)) {
            let reason = format!("case folding of {folded:?} may turn one letter into two");
            return Err(unsupported(place, reason));
        }
    }
    if pattern.matches("(?i:").count() != count {
        return Err(unsupported(place, "a case-insensitive group contains other groups"));
    }
    Ok(())
}

/// Fails if an expression may match no characters: `tokenizers` then finds a match between any two
/// characters.
pub(super) fn check_not_empty(regex: &str, place: &str) -> Result<()> {
    if match_lengths(regex).0 > 0 {
        return Ok(());
    }
    Err(unsupported(place, format!("{regex:?} may match no characters")))
}
