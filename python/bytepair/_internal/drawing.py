"""Draws tokens for terminals, notebooks, reports and the page of `bytepair explore`.

`draw` splits the bytes of a token into parts: text, bytes that are not a complete character, and
marks for characters that are invisible or would change how the text around them is displayed.

A special token never looks like text with the same characters: on a terminal it is enclosed in `⟪`
and `⟫`, and with colours it is light on dark. The same brackets in text are drawn as marks.
"""

from __future__ import annotations

import html as markup
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, Literal, NamedTuple

from bytepair import _core

#: Background colours of consecutive tokens (from the 256 colours of a terminal), for black text.
COLORS: Final = (153, 194, 223, 218, 189)

#: A special token on a terminal: white on dark violet (256-colour codes).
SPECIAL: Final = (231, 54)

#: Characters drawn as their code point: those that have no width, affect the text around them
#: (controls, joiners, directions, selectors) or look like a space, and the brackets of special
#: tokens.
MARKED: Final = (
    (0x0080, 0x00A0), (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160),
    (0x1680, 0x1680), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2000, 0x200F), (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x27EA, 0x27EB), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip

_CLASS: Final = "".join(f"{chr(first)}-{chr(last)}" for first, last in MARKED)
#: Invalid bytes (as surrogates), marked characters, and runs of other text.
_PARTS: Final = re.compile(
    f"(?P<byte>[\udc80-\udcff]+)|(?P<mark>[{_CLASS}])|(?P<text>[^\udc80-\udcff{_CLASS}]+)"
)

#: The Unicode control pictures (U+2400 and following).
_PICTURES: Final = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}

Kind = Literal["text", "byte", "mark"]

#: The style of a byte or a mark in a token: small, with a border to distinguish it from text.
_SMALL: Final = (
    "font:0.72em monospace;border:1px solid;border-radius:3px;padding:0 0.2em;margin:0 1px;"
    "white-space:nowrap;unicode-bidi:isolate"
)
#: The style of a special token in HTML; it distinguishes it from text without colours.
_PILL: Final = (
    "font-family:monospace;font-weight:bold;border:1px solid;border-radius:1em;padding:0 0.4em;"
    "unicode-bidi:isolate;print-color-adjust:exact;-webkit-print-color-adjust:exact"
)


class Markup(str):
    """HTML that notebooks render."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        """What it is; a terminal does not draw it."""
        return f"<HTML of {len(self):,} characters; a notebook draws it, str() is its text>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[object]], most: int = 40) -> Markup:
    """A table for notebooks: all rows, or as many of them as fit, from the first to the last."""
    if len(rows) > most:
        rows = [rows[n * (len(rows) - 1) // (most - 1)] for n in range(most)]
    lines = [f"<th>{markup.escape(name)}</th>" for name in head]
    cells = [[f"<td>{markup.escape(str(cell))}</td>" for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in [lines, *cells])
    return Markup(f"<table>{body}</table>")


def _attributes(report: Any) -> list[tuple[str, str]]:
    """The attributes of a report and their values, cut at the width of a page."""
    values = {one.name: " ".join(repr(getattr(report, one.name)).split()) for one in fields(report)}
    return [(k, v if len(v) <= 90 else f"{v[:87]}...") for k, v in values.items()]


def brief(report: Any) -> str:
    """One line for each attribute of a report."""
    lines = (f"  {name}: {value}" for name, value in _attributes(report))
    return "\n".join([type(report).__name__, *lines])


def brief_html(report: Any) -> str:
    """The same as a table for notebooks."""
    return html_table([type(report).__name__, ""], _attributes(report))


class Fragment(NamedTuple):
    """A part of a token: text, bytes as `E4 BD`, or an invisible character as `U+200D`."""

    kind: Kind
    shown: str


class TokenDrawing(NamedTuple):
    """A token, ready to be displayed; `ends_line` tells whether it ends with a line break."""

    parts: tuple[Fragment, ...]
    special: bool = False
    ends_line: bool = False

    def plain(self) -> str:
        """Return the token without colours: bytes as `<E4>`, special tokens in `⟪` and `⟫`."""
        text = "".join(
            part.shown if part.kind == "text" else f"<{part.shown.replace(' ', '><')}>"
            for part in self.parts
        )
        return f"⟪{text}⟫" if self.special else text

    def html(self, *, style: str = "", title: str = "", space: str = " ") -> str:
        """Return the token as an HTML element, with CSS, a tooltip and drawn spaces."""
        inner = "".join(
            markup.escape(part.shown.replace(" ", space))
            if part.kind == "text"
            else f'<small style="{_SMALL}">{part.shown}</small>'
            for part in self.parts
        )
        values = {
            "class": "special" if self.special else "",
            "style": ";".join(filter(None, [style, _PILL if self.special else ""])),
            "title": markup.escape(title),
        }
        attributes = "".join(f' {name}="{value}"' for name, value in values.items() if value)
        return f"<span{attributes}>{inner}</span>"


def draw(token: bytes, *, special: bool = False) -> TokenDrawing:
    """Split the bytes of a token into parts to display."""
    text = token.decode("utf-8", "surrogateescape")
    return TokenDrawing(tuple(_parts(text)), special, token.endswith(b"\n"))


def draw_all(tokenizer: _core.Tokenizer, ids: Iterable[int]) -> list[TokenDrawing]:
    """Draw the tokens of a sequence of ids."""
    special = set(tokenizer.special_tokens.values())
    return [draw(tokenizer.token_bytes(id), special=id in special) for id in ids]


def readable(token: bytes, *, special: bool = False) -> str:
    r"""Return the bytes of one token as printable text.

    Args:
        token: its bytes.
        special: whether it is a special token.

    Example:
        >>> readable(b"caf\xc3\xa9\n"), readable(b"\xe4\xbd"), readable("\u202e".encode())
        ('café␊', '<E4><BD>', '<U+202E>')
        >>> readable(b"<|bos|>"), readable(b"<|bos|>", special=True)
        ('<|bos|>', '⟪<|bos|>⟫')
    """
    return draw(token, special=special).plain()


def _parts(text: str) -> Iterator[Fragment]:
    for part in _PARTS.finditer(text):
        one = part.group()
        if part.lastgroup == "byte":
            yield Fragment("byte", " ".join(f"{ord(c) - 0xDC00:02X}" for c in one))
        elif part.lastgroup == "mark":
            yield Fragment("mark", f"U+{ord(one):04X}")
        else:
            yield Fragment("text", one.translate(_PICTURES))
