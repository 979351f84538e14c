r"""Split patterns for Oniguruma, the engine of `tokenizers`, and back.

The two engines agree on most of the syntax. Differences: Oniguruma matches `$` and `^` at line
ends; a `+` after a count is a repetition there, but makes the count possessive here; case folding
there can turn one character into two; and `\w`, `\b` and some named classes contain other
characters. Ambiguous syntax is rejected, so an accepted pattern has the same meaning.
"""

from __future__ import annotations

import re

from bytepair.errors import UnsupportedError

# A piece of a regular expression: a character class (with at most one nested class), an escape with
# or without braces, a count, or a single character.
_PIECE = re.compile(
    r"\(\?m:\$\)|\(\?s:\.\)|\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]|\\[pPx]\{[^}]*\}|\\.|\{\d+(?:,\d*)?\}\+?|.",
    re.DOTALL,
)


def to_oniguruma(pattern: str) -> str:
    r"""Convert a split pattern for Oniguruma.

    Example:
        >>> to_oniguruma(r"\p{N}{1,3}+|\s++$")
        '(?>\\p{N}{1,3})|\\s++\\z'
    """
    done: list[str] = []
    open_groups: list[int] = []
    for piece in _PIECE.findall(pattern):
        if piece == "(":
            open_groups.append(len(done))
        if piece == ")" and open_groups:
            start = open_groups.pop()
            done[start:] = ["".join(done[start:]) + piece]
        elif re.fullmatch(r"\{.*\}\+", piece) and done:
            done[-1] = f"(?>{done[-1]}{piece[:-1]})"
        else:
            done.append(_TO.get(piece, piece))
    return "".join(done)


_TO = {"$": r"\z", "^": r"\A", "(?m:$)": "$", "(?s:.)": "(?m:.)"}
_FROM = {written: ours for ours, written in _TO.items()}


def means_the_same(pattern: str) -> bool:
    r"""Whether a pattern, converted for Oniguruma, certainly has the same meaning there.

    Example:
        >>> means_the_same(r"\p{L}+|\s+"), means_the_same(r"\w+|\W+")
        (True, False)
    """
    try:
        return from_oniguruma(to_oniguruma(pattern), "") == pattern
    except UnsupportedError:
        return False


_CATEGORIES = "L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfon]?"
_SCRIPTS = "Latin|Greek|Cyrillic|Arabic|Hebrew|Thai|Lao|Khmer|Myanmar|Han|Hiragana|Katakana|Hangul"
_PROPERTY = rf"\\[pP]\{{(?:{_CATEGORIES}|{_SCRIPTS})\}}"
_ESCAPE = rf"{_PROPERTY}|\\[sSdDrntfv]|\\x\{{[0-9A-Fa-f]{{1,6}}\}}|\\[^\w\s]"
_IN_CLASS = rf"(?:{_ESCAPE}|&(?!&)|[^\\\[\]&])"
_ONE_CLASS = rf"\[(?!:)\^?{_IN_CLASS}+\]"
_BOTH = rf"\[(?:{_ONE_CLASS}|{_ESCAPE}|[^\\\[\]&^])&&{_ONE_CLASS}\]"
_CLASS = rf"{_BOTH}|\[\^?(?:{_IN_CLASS}|{_ONE_CLASS})+\]"
_TOKEN = re.compile(
    rf"(?P<class>{_CLASS}|\(\?m:\.\))|(?P<escape>{_ESCAPE}|\\[zA])|(?P<open>\((?:\?(?:[:>=!]|<[=!]|i:))?(?!\?))"
    r"|(?P<close>\))|(?P<count>\{\d+(?:,\d*)?\})|(?P<times>[*+?])|(?P<bar>\|)|(?P<end>\$)"
    r"|(?P<character>[^\\\[\](){}*+?|^$.])",
    re.DOTALL,
)

#: Pairs of letters that are the case folding of one character, such as ß.
_ONE_OR_TWO = re.compile("ss|ff|fi|fl|st", re.IGNORECASE)


def from_oniguruma(regex: str, place: str) -> str:
    r"""Convert a pattern from Oniguruma; the inverse of `to_oniguruma`.

    Example:
        >>> from_oniguruma(r"(?>\p{N}{1,3})|\s++\z", "pattern")
        '\\p{N}{1,3}+|\\s++$'
        >>> from_oniguruma(r"a{2}+$", "pattern")
        '(?:a{2})+(?m:$)'
    """
    groups: list[list[str]] = [[]]
    at = 0
    while at < len(regex):
        token = _TOKEN.match(regex, at)
        if token is None:
            raise UnsupportedError(
                place,
                f"the pattern contains {regex[at : at + 12]!r} at character {at}, which may have "
                "another meaning in this engine",
            )
        at = token.end()
        _take(groups, token.lastgroup or "", token[0])
        if not groups:
            raise UnsupportedError(place, f"the pattern has an unmatched ) at character {at}")
    if len(groups) > 1:
        raise UnsupportedError(place, "the pattern has an unclosed (")
    pattern = "".join(groups[0])
    without_case = re.findall(r"\(\?i:((?:[^()]|\\[()])*)\)", pattern)
    for folded in without_case:
        if _ONE_OR_TWO.search(folded) or not folded.isascii():
            why = f"case folding of {folded!r} may turn one letter into two"
            raise UnsupportedError(place, why)
    if pattern.count("(?i:") != len(without_case):
        raise UnsupportedError(place, "a case-insensitive group contains other groups")
    return pattern


def _take(groups: list[list[str]], kind: str, token: str) -> None:
    """Add one token to the innermost open group."""
    inner = groups[-1]
    if kind == "open":
        groups.append([token])
    elif kind == "close":
        groups.pop()
        if not groups:
            return
        if len(inner) == 3 and inner[0] == "(?>" and re.fullmatch(r"\{[\d,]*\}", inner[2]):
            groups[-1].append(inner[1] + inner[2] + "+")  # makes the count possessive
        else:
            groups[-1].append("".join(inner) + ")")
    elif token == "+" and len(inner) > 1 and re.fullmatch(r"\{[\d,]*\}", inner[-1]):
        inner[-2:] = [f"(?:{inner[-2]}{inner[-1]})", "+"]
    else:
        inner.append(_FROM.get(token, token))
