"""Matches of no characters: where `tokenizers` splits, we split too, or refuse the pattern."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import assume, given
from hypothesis import strategies as st

import bytepair
from bytepair.errors import LossError, PatternError, UnsupportedError
from bytepair.formats import huggingface
from bytepair.formats.gguf import llamacpp
from bytepair.formats.parts import LoadOptions
from bytepair.training import Superwords
from formats import json_of, small
from messages import told
from pre_tokenizers import may_match_nothing, pattern_of, steps_of, to_oniguruma

#: The steps before ByteLevel of SuperBPE's published tokenizers.
SUPERBPE = [r"\p{N}+", r"(?=(\d{3})+(?!\d))"]

#: All texts of up to five of these characters.
SHORT = ["".join(text) for n in range(6) for text in itertools.product("ab1\n", repeat=n)]


def sequence(*regexes: str, string: str | None = None) -> dict[str, Any]:
    """A pre-tokenizer that splits by these expressions, or at a string."""
    patterns = [{"Regex": regex} for regex in regexes]
    patterns += [] if string is None else [{"String": string}]
    steps = [
        {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
        for pattern in patterns
    ]
    end = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [*steps, end]}


def with_steps(node: dict[str, Any]) -> dict[str, Any]:
    """The `tokenizer.json` of a small tokenizer with this pre-tokenizer."""
    return {**json_of(small()), "pre_tokenizer": node}


def theirs(node: dict[str, Any]) -> Callable[[str], list[str]]:
    """How `tokenizers` splits ASCII text."""
    document = {**with_steps(node)}
    document["pre_tokenizer"] = {**node, "pretokenizers": node["pretokenizers"][:-1]}
    step = tokenizers.Tokenizer.from_str(json.dumps(document)).pre_tokenizer
    return lambda text: [piece for piece, _ in step.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    "regexes",
    [
        SUPERBPE,
        [r"(?=(\d{3})+(?!\d))"],
        [r"\p{N}{1,3}", r"(?=b)"],
        [r"(?=b)", r"a+"],
        [""],
        ["$"],
        [r"(?=a)|(?<=1)"],
        [r"(?<![ab])(?=[ab])|\z"],
        [r"a{0}"],
    ],
)
def test_patterns_that_are_read(regexes: list[str]) -> None:
    node = sequence(*regexes)
    pattern = pattern_of(node)
    ours, expected = small(pattern=pattern), theirs(node)
    rewrite = theirs(sequence(*map(to_oniguruma, steps_of(pattern))))
    for text in [*SHORT, "a1234567b12 1234", "12½ ٣٤٥٦ ½123 1", "1" * 50, "ab  \n\n c" * 9]:
        assert bytepair.pretokenize(text, ours) == expected(text) == rewrite(text)
    assert bytepair.compat.export_losses(ours, "huggingface") == []


def test_an_empty_string_splits_everywhere() -> None:
    node = sequence(string="")
    ours = small(pattern=pattern_of(node))
    assert bytepair.pretokenize("abé1", ours) == theirs(node)("abé1") == ["a", "b", "é", "1"]


REFUSED = ["a*", "a|b?", r"\S*|\s+", "(?=a)|b", r"a|$", r"\s*(?!\S)", r"(?:a|b*)(?:b|\s*)"]


@pytest.mark.parametrize("regex", REFUSED)
def test_other_patterns_are_refused_by_name(regex: str) -> None:
    document = with_steps(sequence(r"\p{L}+", regex))
    with told(UnsupportedError) as caught:
        huggingface.parse(json.dumps(document).encode(), LoadOptions())
    assert caught.value.place == "pre_tokenizer.pretokenizers[1].pattern"


@pytest.mark.parametrize("regex", ["a*", r"\S*|\s+", r"(?=a)", "a|(?=b)"])
def test_refused_patterns_give_other_pieces_in_tokenizers(regex: str) -> None:
    ours, expected = small(pattern=regex), theirs(sequence(regex))
    assert any(bytepair.pretokenize(text, ours) != expected(text) for text in SHORT)


@pytest.mark.parametrize("pattern", ["x*", (r"\p{L}+", "(?=e)"), r"[^\n]*\n?|"])
def test_a_pattern_with_empty_matches_needs_lossy(
    pattern: str | tuple[str, ...], tmp_path: Path
) -> None:
    tok = small(pattern=pattern)
    assert bytepair.compat.export_losses(tok, "huggingface") == [
        "that matches of no characters split nothing: tokenizers splits there"
    ]
    for export in (
        lambda: bytepair.compat.to_huggingface(tok),
        lambda: tok.export(tmp_path / "tokenizer.json"),
    ):
        with told(LossError):
            export()
    assert not any(tmp_path.iterdir())
    path = tok.export(tmp_path / "tokenizer.json", lossy=True)
    if isinstance(pattern, str):
        with told(UnsupportedError):
            bytepair.load(path)
    assert bytepair.load(tok.save(tmp_path / "own")).pattern == pattern


def test_a_lossy_file_is_read_as_tokenizers_reads_it(tmp_path: Path) -> None:
    tok = small(pattern=(r"\p{L}+", "(?=e)"))
    path = tok.export(tmp_path / "tokenizer.json", lossy=True)
    assert tok.encode("hehe") == [256, 256]
    expected = tokenizers.Tokenizer.from_file(str(path)).encode("hehe").ids
    assert bytepair.load(path).encode("hehe") == expected == [104, 101, 104, 101]


def test_the_steps_of_superbpe(tmp_path: Path) -> None:
    document = with_steps(sequence(*SUPERBPE))
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    tok = bytepair.load(tmp_path / "tokenizer.json")
    assert tok.pattern == r"\p{N}(?:(?!(?:\d{3})+(?!\d))\p{N})*"
    assert bytepair.pretokenize("in 1234567 of 12", tok) == ["in ", "1", "234", "567", " of ", "12"]
    assert json_of(tok)["pre_tokenizer"] == document["pre_tokenizer"]
    text = "hello " * 100_000
    assert bytepair.pretokenize(text, tok) == [text]


@pytest.mark.parametrize("name", bytepair.PATTERNS)
def test_published_patterns_have_no_empty_matches(name: str) -> None:
    regex = bytepair.PATTERNS[name]
    for pattern in (regex, Superwords().regex(regex)):
        assert bytepair.compat.export_losses(small(pattern=pattern), "huggingface") == []
        assert pattern_of(sequence(to_oniguruma(pattern))) == pattern


@pytest.mark.parametrize("rule", llamacpp.RULES, ids=lambda rule: rule.names[0])
def test_the_rules_of_llama_cpp_have_no_empty_matches(rule: llamacpp.SplitRule) -> None:
    assert not any(may_match_nothing(step) for step in steps_of(rule.pattern))


# ---------------------------------------------------------------------------- any pattern

PARTS = st.sampled_from(
    ["a", "b", "[ab]", "[^b]", r"\s", r"\d", "ab", "", "$", r"\z", r"\A", r"\s+", "(?i:b)"]
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of others."""
    groups = st.sampled_from(["(?:@)", "(?=@)", "(?!@)", "(?>@)", "(@)"])
    times = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,2}"])
    return st.one_of(
        st.builds(lambda group, one: group.replace("@", one), groups, inner),
        st.builds(lambda one, count: f"(?:{one}){count}", inner, times),
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
    )


@given(st.lists(st.recursive(PARTS, larger, max_leaves=6), min_size=1, max_size=2))
def test_what_is_read_of_any_pattern_is_exact(regexes: list[str]) -> None:
    node = sequence(*regexes)
    try:
        pattern = pattern_of(node)
        ours, expected = small(pattern=pattern), theirs(node)
    except Exception as error:
        assume(not isinstance(error, UnsupportedError | PatternError))
        assume("Oniguruma error" not in str(error))
        raise
    for text in SHORT[::3]:
        assert bytepair.pretokenize(text, ours) == expected(text), (text, pattern)
