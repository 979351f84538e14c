//! Regular expressions for Oniguruma, the engine of `tokenizers`, and for our engine.
//!
//! The two engines agree on most of the syntax. Differences: Oniguruma matches `$` and `^` at line
//! ends; a `+` after a count is a repetition there, but makes the count possessive here; case
//! folding there can turn one character into two; it has classes such as `[:alpha:]`; and `\w` and `\b`
//! contain other characters. What has no translation is refused, so an accepted expression has the same
//! meaning. The classes were compared for every character.

use std::sync::LazyLock;

use fancy_regex::Regex;

use super::json::unsupported;
use crate::error::Result;
use crate::search::MAX_WRITTEN_BYTES;

/// What is written differently: our form, and that of Oniguruma.
const FORMS: [(&str, &str); 4] =
    [("$", r"\z"), ("^", r"\A"), ("(?m:$)", "$"), ("(?s:.)", "(?m:.)")];

/// The classes of characters that Oniguruma names in brackets, as they are written inside a class here.
/// Those with the flag are written as the characters that they do not contain.
const CLASSES: [(&str, &str, bool); 14] = [
    ("alnum", r"\p{Alphabetic}\p{Nd}", false),
    ("alpha", r"\p{Alphabetic}", false),
    ("ascii", r"\x{0}-\x{7f}", false),
    ("blank", r"\p{Zs}\x{9}", false),
    ("cntrl", r"\p{Cc}", false),
    ("digit", r"\p{Nd}", false),
    ("graph", r"\s\p{Cc}\p{Cn}", true),
    ("lower", r"\p{Lowercase}", false),
    ("print", r"\p{Zl}\p{Zp}\p{Cc}\p{Cn}", true),
    ("punct", r"\p{P}\p{S}", false),
    ("space", r"\s", false),
    ("upper", r"\p{Uppercase}", false),
    ("word", WORD, false),
    ("xdigit", "0-9A-Fa-f", false),
];

/// What `\w` is inside a class; outside, it has six more characters.
const WORD: &str = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}";
const MORE_WORD: &str = r"\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}";

/// A piece of an expression: a character class (with at most one nested class), an escape with or
/// without braces, a count, or a single character.
static PIECE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?s)\(\?m:\$\)|\(\?s:\.\)|\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]",
        r"|\\[pPx]\{[^}]*\}|\\.|\{\d+(?:,\d*)?\}\+?|."
    ))
});

/// An escape with one meaning in both engines, or one that is translated.
fn escape() -> String {
    let categories = "L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfon]?|Alphabetic|\
                      Lowercase|Uppercase";
    let scripts = "Latin|Greek|Cyrillic|Arabic|Hebrew|Thai|Lao|Khmer|Myanmar|Han|Hiragana|Katakana|\
                   Hangul";
    format!(
        r"\\[pP]\{{(?:{categories}|{scripts})\}}|\\[sSdDrntfv]|\\x\{{[0-9A-Fa-f]{{1,6}}\}}|\\[^\w\s]|\\[wWhH]|\\u[0-9A-Fa-f]{{4}}|\\x[0-7][0-9A-Fa-f]"
    )
}

/// A token outside classes, or the start of a class.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let escape = escape();
    compiled(&format!(
        r"(?s)\A(?:\(\?m:\.\)|\[|{escape}|\\[zAbB]|\((?:\?(?:[:>=!]|<[=!]|i:))?(?!\?)|\{{\d+(?:,\d*)?\}}|[)*+?|$]|[^\\\[\](){{}}*+?|^$.])"
    ))
});

/// A part of a class. Two signs in a row are an operator in one engine or the other.
static PART: LazyLock<Regex> = LazyLock::new(|| {
    let escape = escape();
    compiled(&format!(
        r"(?s)\A(?:\[:\^?[a-z]+:\]|\[|&&(?![&^\]])|{escape}|[^\\\[\]&~-]|&(?!&)|~(?!~)|-(?!-))"
    ))
});

/// Classes that case folding may change.
const FOLDED_CLASSES: [&str; 3] = [r"\p{Alphabetic}", r"\p{Lowercase}", r"\p{Uppercase}"];

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
    if regex.len() > MAX_WRITTEN_BYTES {
        let reason =
            format!("a pattern of {} bytes; {MAX_WRITTEN_BYTES} are possible", regex.len());
        return Err(unsupported(place, reason));
    }
    let mut groups: Vec<Vec<String>> = vec![Vec::new()];
    let mut at = 0;
    while at < regex.len() {
        let (written, length) =
            token(&regex[at..]).ok_or_else(|| unsupported(place, untranslated(regex, at)))?;
        let token = &regex[at..at + length];
        at += length;
        if token == ")" {
            let reason = || format!("the pattern has an unmatched ) at byte {at}");
            let group = closed(&groups.pop().unwrap_or_default());
            let outer = groups.last_mut().ok_or_else(|| unsupported(place, reason()))?;
            outer.push(group.map_err(|reason| unsupported(place, reason))?);
        } else if token.starts_with('(') && token != "(?m:.)" {
            groups.push(vec![written]);
        } else if let Some(inner) = groups.last_mut() {
            add(inner, written);
        }
    }
    match &groups[..] {
        [pattern] => Ok(pattern.concat()),
        _ => Err(unsupported(place, "the pattern has an unclosed (")),
    }
}

/// Why an expression is refused that has no translation from a byte on.
fn untranslated(regex: &str, at: usize) -> String {
    let (before, rest) = regex.split_at(at);
    let (count, part) = (before.chars().count(), rest.chars().take(12).collect::<String>());
    format!(
        "the pattern contains {part:?} at character {count}, which bytepair does not translate from \
         Oniguruma, the engine of tokenizers"
    )
}

/// The token at the start of an expression: how it is written here, and its length there.
fn token(regex: &str) -> Option<(String, usize)> {
    match TOKEN.find(regex).ok()??.as_str() {
        "[" => class(regex, false),
        token => Some((escaped(token), token.len())),
    }
}

/// The class at the start of an expression, how it is written here, and its length there. A class in it
/// contains none.
fn class(regex: &str, is_nested: bool) -> Option<(String, usize)> {
    let mut ours = if regex.starts_with("[^") { "[^".to_owned() } else { "[".to_owned() };
    let (start, mut at, mut is_after_class) = (ours.len(), ours.len(), false);
    while !regex[at..].starts_with(']') || at == start {
        let part = PART.find(&regex[at..]).ok()??.as_str();
        let (written, length) = match part {
            "&&" if at == start => return None,
            "[" if is_nested => return None,
            "[" => class(&regex[at..], true)?,
            // Not a range, beside a class.
            "-" if is_after_class || regex[at + 1..].starts_with('[') => (r"\-".to_owned(), 1),
            _ => (inside(part)?, part.len()),
        };
        if is_nested && written.starts_with("[^") {
            return None;
        }
        ours.push_str(&written);
        at += length;
        is_after_class = part.starts_with('[') || is_class(part);
    }
    Some((ours + "]", at + 1))
}

/// Whether an escape stands for several characters.
fn is_class(escape: &str) -> bool {
    escape
        .strip_prefix('\\')
        .is_some_and(|kind| kind.starts_with(['p', 'P', 's', 'S', 'd', 'D', 'w', 'h']))
}

/// An escape outside a class, as it is written here.
fn escaped(escape: &str) -> String {
    let word = format!("{WORD}{MORE_WORD}");
    match escape {
        r"\w" => format!("[{word}]"),
        r"\W" => format!("[^{word}]"),
        r"\h" => "[0-9A-Fa-f]".to_owned(),
        r"\H" => "[^0-9A-Fa-f]".to_owned(),
        r"\b" => format!("(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))"),
        r"\B" => format!("(?:(?<=[{word}])(?=[{word}])|(?<![{word}])(?![{word}]))"),
        other => code_point(other),
    }
}

/// A named class or an escape inside a class, as it is written here.
fn inside(part: &str) -> Option<String> {
    let name = match part {
        r"\w" => "word",
        r"\W" => "^word",
        r"\h" => "xdigit",
        r"\H" => "^xdigit",
        _ => match part.strip_prefix("[:") {
            Some(name) => name.strip_suffix(":]")?,
            None => return Some(code_point(part)),
        },
    };
    let (positive, is_negated) = (name.trim_start_matches('^'), name.starts_with('^'));
    let (_, contents, is_rest) = CLASSES.iter().find(|(name, ..)| *name == positive)?;
    let contents = (*contents).to_owned();
    Some(if is_negated == *is_rest { contents } else { format!("[^{contents}]") })
}

/// `\u0041` as `\x{0041}`, and `\x41` as `\x{41}`; other escapes as they are.
fn code_point(escape: &str) -> String {
    let digits = escape.strip_prefix(r"\u").or_else(|| escape.strip_prefix(r"\x"));
    match digits.filter(|digits| !digits.starts_with('{')) {
        Some(digits) => format!(r"\x{{{digits}}}"),
        None => escape.to_owned(),
    }
}

/// Add what is written for a token to the parts of a group.
fn add(inner: &mut Vec<String>, written: String) {
    if written == "+" && inner.len() > 1 && is_count(&inner[inner.len() - 1]) {
        let repeated = inner.split_off(inner.len() - 2).concat();
        inner.push(format!("(?:{repeated})"));
    }
    let form = FORMS.iter().find(|(_, theirs)| *theirs == written);
    inner.push(form.map_or(written, |(ours, _)| (*ours).to_owned()));
}

/// The parts of a group as one, with the bracket that closes it.
///
/// Fails if case folding in it may turn one letter into two.
fn closed(parts: &[String]) -> std::result::Result<String, String> {
    match parts {
        // Makes the count possessive.
        [open, part, count] if open == "(?>" && is_count(count) => {
            return Ok([part, count, "+"].concat());
        }
        [open, parts @ ..] if open == "(?i:" => check_folding(parts)?,
        _ => {}
    }
    Ok(parts.concat() + ")")
}

/// Whether a part is a count such as `{1,3}`.
fn is_count(part: &str) -> bool {
    let inner = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte == b',' || byte.is_ascii_digit()))
}

/// Fails if case folding in the parts of a group may turn one letter into two.
fn check_folding(parts: &[String]) -> std::result::Result<(), String> {
    let folded = parts.concat();
    if parts.iter().any(|part| part.starts_with('(')) {
        return Err("a case-insensitive group contains other groups".to_owned());
    }
    if let Some(class) = FOLDED_CLASSES.iter().find(|class| folded.contains(**class)) {
        return Err(format!("a case-insensitive group contains {class}"));
    }
    let lower = folded.to_ascii_lowercase();
    if !folded.is_ascii() || ONE_OR_TWO.iter().any(|pair| lower.contains(pair)) {
        return Err(format!("case folding of {folded:?} may turn one letter into two"));
    }
    Ok(())
}
