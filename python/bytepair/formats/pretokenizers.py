r"""What Hugging Face calls a pre-tokenizer, as a split pattern.

There, several steps may follow each other, each splitting what the one before left. They become the
steps of a pattern, with `(?#then)` between them; but in the usual case one regular expression does
the same, and is quicker: where a pattern follows *cuts*, which are splits at characters of one
class (`\p{N}`, `\p{N}{1,3}`, `[一-龥]+`, or `Digits`). No pretoken has characters on both sides of
a cut, so the pattern after it is rewritten with its classes narrowed to one side, and the sides are
alternatives. What lies beyond a cut is the end of the text to the pattern, so lookaheads are
narrowed too. Classes are compared by asking the splitter itself for the characters of each.

`tokenizers` also splits where a pattern matches no characters. A pattern that matches nothing else,
such as `(?=(\d{3})+(?!\d))`, becomes one that matches the text up to the next such place. Those
that match both characters and nothing are refused.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair.errors import UnsupportedError
from bytepair.formats.files import typed
from bytepair.formats.oniguruma import from_oniguruma
from bytepair.formats.parts import THEN, splitter

#: The pattern that is built into `ByteLevel`: GPT-2's, in its original spelling.
BYTE_LEVEL = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class _Cut:
    """A split at runs of a class: of any length (`+`), of one (empty), or of a few (`{1,3}`)."""

    inside: str
    times: str

    @property
    def regex(self) -> str:
        """The cut as a pattern."""
        alone = re.fullmatch(r"\\p\{\w+\}|\\[sd]", self.inside)
        return (self.inside if alone else f"[{self.inside}]") + self.times


def pattern_of(node: Any, place: str) -> str:
    """The split pattern that does exactly what a `pre_tokenizer` does."""
    steps = _flat(node, place)
    if not steps or steps[-1][0].get("type") != "ByteLevel":
        raise UnsupportedError(place, "its last step is not ByteLevel, so it is not of bytes")
    stages = [stage for step, at in steps for stage in _stage(step, at, step is steps[-1][0])]
    if stages[:2] == _SUPERBPE:
        stages[:2] = [_GROUPS]
    *before, rule = [s.regex if isinstance(s, _Cut) else s for s in stages] or ["(?s:.)+"]
    cuts = [stage for stage in stages[:-1] if isinstance(stage, _Cut)]
    if cuts and len(cuts) == len(before):
        with suppress(UnsupportedError):
            return _composed(cuts, rule, place)
    return THEN.join([*before, _core.PATTERNS["gpt2"] if rule == BYTE_LEVEL else rule])


def _flat(node: Any, place: str) -> list[tuple[dict[str, Any], str]]:
    """The steps of nested sequences, each with its place."""
    node = typed(node, dict, place)
    if node.get("type") != "Sequence":
        return [(node, place)]
    inner = typed(node.get("pretokenizers"), list, f"{place}.pretokenizers")
    at = [f"{place}.pretokenizers[{n}]" for n in range(len(inner))]
    return [step for child, where in zip(inner, at, strict=True) for step in _flat(child, where)]


def _stage(step: dict[str, Any], place: str, last: bool) -> list[_Cut | str]:
    kind = step.get("type")
    if kind == "Split":
        return [_split(step, place)]
    if kind == "Digits":
        single = typed(step.get("individual_digits", False), bool, f"{place}.individual_digits")
        return [_Cut(r"\p{N}", "" if single else "+")]
    if kind != "ByteLevel":
        raise UnsupportedError(place, f"the type {kind!r} is not one we do exactly")
    if not last:
        raise UnsupportedError(place, "steps after ByteLevel split bytes and not text")
    if step.get("add_prefix_space", True) is not False:
        raise UnsupportedError(f"{place}.add_prefix_space", "a space before the text is not added")
    return [BYTE_LEVEL] if step.get("use_regex", True) is not False else []


def _split(step: dict[str, Any], place: str) -> _Cut | str:
    """The pattern of a `Split`: a cut, if it is of one class, or else its expression."""
    pattern = typed(step.get("pattern"), dict, f"{place}.pattern")
    if set(pattern) == {"Regex"}:
        text = typed(pattern["Regex"], str, f"{place}.pattern.Regex")
        regex = from_oniguruma(text, f"{place}.pattern.Regex")
    elif set(pattern) == {"String"}:
        text = typed(pattern["String"], str, f"{place}.pattern.String")
        regex = re.sub(r"([\\.^$|?*+(){}\[\]&-])", r"\\\1", text)
    else:
        raise UnsupportedError(f"{place}.pattern", "it is neither a Regex nor a String")
    behavior = typed(step.get("behavior"), str, f"{place}.behavior")
    how = (behavior, typed(step.get("invert", False), bool, f"{place}.invert"))
    if how == ("Removed", True) and not _total(regex):
        raise UnsupportedError(
            f"{place}.behavior", "text that the pattern does not match would be lost"
        )
    if how not in {("Isolated", False), ("Removed", True), ("Isolated", True)}:
        raise UnsupportedError(f"{place}.behavior", f"{how[0]!r} with invert {how[1]!r}")
    fewest, most = _core.match_lengths(regex)
    if most == 0 and how[0] == "Isolated":
        return _between(regex)
    if not fewest:
        raise UnsupportedError(
            f"{place}.pattern",
            f"{regex!r} may match no characters, where tokenizers splits and bytepair does not",
        )
    if "String" in pattern and len(pattern["String"]) == 1:
        return _Cut(regex, "")
    cut = re.fullmatch(r"(\[(?!\^)[^\[\]&]+\]|\\p\{\w+\}|\\[sd])(\+|\{1,\d+\})?", regex)
    if not cut:
        return regex
    inside = cut[1][1:-1] if cut[1].startswith("[") else cut[1]
    return _Cut(inside, cut[2] or "")


def _between(regex: str) -> str:
    """The text up to the next place where a pattern matches, if it matches no characters.

    The repetition is lazy, since the engine remembers a place for each turn of a greedy one, and
    has room for a million of them.
    """
    return f"(?s:.)+?(?={regex}|$)"


#: The steps of SuperBPE, which divide digits into groups of three from the right. The second splits
#: only digits, so both become one pattern, which is faster.
_SUPERBPE: Final = [_Cut(r"\p{N}", "+"), _between(r"(?=(\d{3})+(?!\d))")]
_GROUPS: Final = r"\p{N}(?:(?!(?:\d{3})+(?!\d))\p{N})*"


# ---------------------------------------------------------------------------- classes

_ALL = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))


@lru_cache(maxsize=256)
def _members(atom: str) -> NDArray[np.bool_]:
    """Which characters a class or a literal is, one truth value for each of `_ALL`."""
    inside = len(splitter(atom).pretokenize("\0\0")) == 2
    members = np.empty(len(_ALL), np.bool_)
    at = 0
    for piece in splitter(f"(?:{atom})+").pretokenize(_ALL):  # members, then others, in turn
        members[at : at + len(piece)] = inside
        at, inside = at + len(piece), not inside
    return members


_ATOM = re.compile(
    r"(?P<look>\(\?!(?P<ahead>\\S|\[[^\[\]]+\])\))"
    r"|(?P<folded>\(\?i:[^()\\\[\]*+?{}.]+\))"
    r"|(?P<class>\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]|\\p\{\w+\}|\\.|[^\\()\[\]{}*+?|^$.])"
    r"(?P<times>(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?)?",
    re.DOTALL,
)

#: One item of an alternative: its kind, its text, and its repetition.
_Item = tuple[str, str, str]


def _alternatives(regex: str, place: str) -> list[list[_Item]]:
    """Take a pattern apart into alternatives of classes, literals and lookaheads, if it can be."""
    alternatives: list[list[_Item]] = [[]]
    at = 0
    while at < len(regex):
        if regex[at] == "|":
            alternatives.append([])
            at += 1
            continue
        found = _ATOM.match(regex, at)
        if not found:
            raise UnsupportedError(
                place, f"after a cut, {regex[at : at + 12]!r} in the pattern is not done exactly"
            )
        kind = "look" if found["look"] else "folded" if found["folded"] else "class"
        text = found["ahead"] or found["folded"] or found["class"]
        alternatives[-1].append((kind, text, found["times"] or ""))
        at = found.end()
    return alternatives


def _total(regex: str) -> bool:
    """Whether some alternative surely begins with each character, so that no text is left over."""
    try:
        alternatives = _alternatives(regex, "")
    except UnsupportedError:
        return False
    covered = np.zeros(len(_ALL), np.bool_)
    for items in alternatives:
        needed = [item for item in items if item[2][:1] not in {"?", "*"} or item[0] == "look"]
        if len(needed) == 1 and needed[0][0] == "class" and needed[0][2] in {"", "+", "++"}:
            covered |= _members(needed[0][1])
    return bool(covered.all())


# ---------------------------------------------------------------------------- cuts


def _composed(cuts: list[_Cut], rule: str, place: str) -> str:
    """One pattern for cuts and the pattern after them."""
    alternatives = _alternatives(rule, place)
    masks = [_members(f"[{cut.inside}]") for cut in cuts]
    if sum(mask.astype(np.uint8) for mask in masks).max() > 1:  # type: ignore[union-attr]
        raise UnsupportedError(place, "two steps split at the same characters")
    parts = [
        _inside_cut(cut, mask, alternatives, place) for cut, mask in zip(cuts, masks, strict=True)
    ]
    every = "".join(cut.inside for cut in cuts)
    outside = ~np.logical_or.reduce(masks)
    rest = [_narrowed(items, outside, f"[^{every}]", place) for items in alternatives]
    return "|".join([*parts, *(text for text in rest if text)])


def _inside_cut(
    cut: _Cut, mask: NDArray[np.bool_], alternatives: list[list[_Item]], place: str
) -> str:
    """What happens to the characters of a cut: they may be split again by the pattern."""
    if not cut.times:
        return cut.regex
    again = [_narrowed(items, mask, f"[{cut.inside}]", place) for items in alternatives]
    matching = "|".join(text for text in again if text)
    if not matching:
        return cut.regex
    if cut.times != "+":
        if all(_keeps_whole(items, mask, cut) for items in alternatives):
            return cut.regex
        raise UnsupportedError(place, f"the pieces of {cut.regex} may be split again")
    rest = _unmatched(cut, mask, alternatives) or f"(?:(?!{matching})[{cut.inside}])+"
    return f"{matching}|{rest}"


def _unmatched(cut: _Cut, mask: NDArray[np.bool_], alternatives: list[list[_Item]]) -> str | None:
    """What the pattern leaves over of a cut, with no look further ahead than one character.

    That can be said if all alternatives are runs of a class, perhaps after one other character:
    what is left over are the characters of no class, but for one that stands before a run. None if
    they are not.
    """
    runs = [_run(items, mask) for items in alternatives]
    found = [run for run in runs if run]
    if None in runs or not all(
        re.fullmatch(r"\\p\{\w+\}|\[[^\^\[\]&]+\]", run[1]) for run in found
    ):
        return None
    classes = [run[1].removeprefix("[").removesuffix("]") for run in found]
    left = mask & ~np.logical_or.reduce([_members(run[1]) for run in found])
    before = [run for run in found if run[0] and (_members(run[0]) & left).any()]
    if not all((left & ~_members(run[0])).sum() == 0 for run in before):
        return None
    ahead = "".join(f"(?!{_narrow(run[1], mask, f'[{cut.inside}]')})" for run in before)
    return f"[[{cut.inside}]&&[^{''.join(classes)}]]+{ahead}"


def _run(items: list[_Item], mask: NDArray[np.bool_]) -> tuple[str, str] | tuple[()] | None:
    """The class before a run and that of the run; empty if it cannot match here, None if other."""
    if not _narrowed(items, mask, "[]", ""):
        return ()
    if any(item[0] != "class" for item in items):
        return None
    inner = [item for item in items if (_members(item[1]) & mask).any()]
    if len(inner) == 1 and inner[0][2] in {"+", "++"}:
        return "", inner[0][1]
    if len(inner) == 2 and inner[0][2] == "?" and inner[1][2] in {"+", "++"}:
        return inner[0][1], inner[1][1]
    return None


def _keeps_whole(items: list[_Item], mask: NDArray[np.bool_], cut: _Cut) -> bool:
    """Whether an alternative cannot match in a piece of a cut, or only all of it."""
    if not _narrowed(items, mask, f"[{cut.inside}]", ""):
        return True
    inner = [item for item in items if item[0] == "class" and (_members(item[1]) & mask).any()]
    if len(inner) != 1 or any(item[0] == "folded" for item in items):
        return False
    most = re.fullmatch(r"\+\+?|\{1,(\d+)\}\+?", inner[0][2])
    long = most is not None and (most[1] is None or int(most[1]) >= int(cut.times[3:-1]))
    return long and not (mask & ~_members(inner[0][1])).any()


def _narrowed(items: list[_Item], side: NDArray[np.bool_], regex: str, place: str) -> str:
    """An alternative on one side of the cuts; empty if it cannot match there."""
    texts = []
    for kind, text, times in items:
        if kind == "folded":
            if not _same_side(text, side, place):
                return ""
            texts.append(text + times)
            continue
        narrow = _narrow(text, side, regex)
        if kind == "look":
            texts.append(f"(?!{narrow})" if narrow else "")
        elif narrow:
            texts.append(narrow + times)
        elif times[:1] not in {"?", "*"}:
            return ""
    return "".join(texts)


def _same_side(folded: str, side: NDArray[np.bool_], place: str) -> bool:
    """Whether a group of literals without letter case lies on this side, and not across."""
    letters = sorted(set(folded[4:-1]) - {"|"})
    here = [bool((_members(f"(?i:{re.escape(c)})") & side).any()) for c in letters]
    there = [bool((_members(f"(?i:{re.escape(c)})") & ~side).any()) for c in letters]
    if any(here) and any(there):
        raise UnsupportedError(place, f"a step before splits inside {folded!r}")
    return any(here)


def _narrow(atom: str, side: NDArray[np.bool_], regex: str) -> str:
    """A class with only the characters on one side; empty if there is none."""
    members = _members(atom)
    if not (members & side).any():
        return ""
    if not (members & ~side).any():
        return atom
    if regex.startswith("[^") and atom.startswith("[^"):
        return atom[:-1] + regex[2:]
    if regex.startswith("[^") and atom == r"\S":
        return r"[^\s" + regex[2:]
    return f"[{atom}&&{regex}]"
