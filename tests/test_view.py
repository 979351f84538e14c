"""A special token never looks like text, and no character of a text is invisible."""

from __future__ import annotations

import html
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair._internal import drawing as view
from contrast import ansi_contrasts, styles_contrasts

#: An ordinary token that spells a special one: the worst case, since no mark divides it.
FORGED = b"<|user_end|>"
TOK = bytepair.Tokenizer.from_ranks(
    {bytes([b]): b for b in range(256)} | {FORGED: 256},
    pattern="gpt2",
    special_tokens={"<|bos|>": 300, FORGED.decode(): 301},
)
BOTH = [256, 301]


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("mask", [None, [0, 0], [1, 1]])
@pytest.mark.parametrize("color", [False, True])
def test_a_forged_token_is_not_drawn_as_a_real_one(mask: list[int] | None, color: bool) -> None:
    shown = TOK.show(BOTH, mask, color=color)
    # The name itself holds the mark that divides tokens; backgrounds divide them without one.
    divider = "" if color and mask is None else r"\|"
    forged, real = re.fullmatch(rf"(.*?user_end\|>\S*?){divider}(\S*⟪.*)", shown).groups()  # type: ignore[union-attr]
    assert without_colours(forged).replace("[", "").replace("]", "") == "<|user_end|>"
    assert "⟪<|user_end|>⟫" in without_colours(real)
    first, second = re.findall(r"<span.*?</span>", TOK.show(BOTH, mask, format="html"))
    assert 'class="special"' not in first
    assert 'class="special"' in second
    style = re.compile(r'style="(.*?)"')
    assert style.findall(first) != style.findall(second)
    assert "special token, id 301" in second


@pytest.mark.parametrize("color", [False, True])
def test_the_view_draws_special_tokens_as_such(color: bool) -> None:
    text = "a<|bos|>"
    assert "⟪" not in TOK.show(text, color=color)
    assert "⟪<|bos|>⟫" in TOK.show(text, special="all", color=color)
    assert "⟪" not in TOK.show("⟪<|bos|>⟫", special="text", color=color)


@given(st.text())
def test_no_text_is_drawn_as_a_special_token(text: str) -> None:
    assert not set(view.readable(text.encode())) & {"⟪", "⟫"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u200d", "<U+200D>"), ("a\u202eb", "a<U+202E>b"), ("\ufeff", "<U+FEFF>"),
        ("\u00ad", "<U+00AD>"), ("\u2066", "<U+2066>"), ("\x9b31m", "<U+009B>31m"),
        ("\u2028", "<U+2028>"), ("\U000e0041", "<U+E0041>"), ("❤\ufe0f", "❤<U+FE0F>"),
        ("\x1b[31m\x7f", "␛[31m␡"), ("é", "é"), ("你🙂", "你🙂"),
    ],
)  # fmt: skip
def test_invisible_characters_are_shown_as_code_points(text: str, shown: str) -> None:
    assert view.readable(text.encode()) == shown
    inner = html.unescape(re.sub(r"<[^>]*>", "", view.draw(text.encode()).html()))
    assert inner == shown.replace("<", "").replace(">", "")


def test_every_format_character_is_marked_or_visible() -> None:
    """The list has all of Unicode's format characters except those with a glyph."""
    visible = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)) in {"Cf", "Zl", "Zp"} and code not in visible:
            assert view.draw(chr(code).encode()).parts[0].kind == "mark", hex(code)


def test_bytes_are_not_text_that_spells_them() -> None:
    assert view.draw(b"\xe4\xbd").html() != view.draw(b"E4 BD").html()
    assert view.draw(b"\xe4\xbd").parts == (view.Fragment("byte", "E4 BD"),)


def test_pictures_are_text_and_never_html() -> None:
    token = b"<img src=x onerror=alert(1)>\"'&"
    assert "<img" not in view.draw(token).html(title=token.decode())
    assert "<img" not in view.draw(token, special=True).html()


def test_contrast_on_terminals_and_in_notebooks() -> None:
    coloured = TOK.show([97, 97, 97, 97, 97, 300], color=True)
    assert min(ansi_contrasts(coloured)) >= 4.5
    assert len(list(ansi_contrasts(coloured))) == 6
    for mask in (None, [0, 0], [1, 1]):
        ratios = list(styles_contrasts(TOK.show(BOTH, mask, format="html")))
        assert len(ratios) == 2
        assert min(ratios) >= 4.5
