"""Draws tokens for terminals and notebooks (`Tokenizer.show`), and for reports (`readable`).

`draw` splits the bytes of a token into parts: text, bytes that are not a complete character, and
marks for characters that are invisible or would change how the text around them is displayed.

A special token never looks like text with the same characters: on a terminal it is enclosed in `⟪`
and `⟫`, and with colours it is light on dark. The same brackets in text are drawn as marks.

Without a mask, tokens have alternating backgrounds. With a mask, tokens that a model is trained on
are green, others are red.
"""

from __future__ import annotations

import html as markup
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from bytepair import _core
from bytepair._internal.checks import integers
from bytepair.errors import ArgumentError

#: Background colours of consecutive tokens (from the 256 colours of a terminal), for black text.
_COLORS: Final = (153, 194, 223, 218, 189)
_GREEN, _RED, _GREY, _RESET = "\x1b[92m", "\x1b[91m", "\x1b[90m", "\x1b[0m"
_REVERSED = "\x1b[1;7m"

_FRAME = "font-family:monospace;white-space:pre-wrap;line-height:1.7;unicode-bidi:plaintext"
_TRAINED = ("background:#f8d2d2;color:#000", "background:#c8f0cd;color:#000")
_IN_TURN = ("background:#dbe6fb;color:#000", "background:#f6ecc9;color:#000")
#: The colours of special tokens: not trained on, trained on, and without a mask.
_SPECIAL = ("background:#7f1d1d;color:#fff", "background:#14532d;color:#fff")
_SPECIAL_ALONE = "background:#3b2a6e;color:#fff"

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


def brief(report: Any) -> str:
    """One line for each attribute of a report, cut at the width of a page."""
    lines = [type(report).__name__]
    for one in fields(report):
        value = " ".join(repr(getattr(report, one.name)).split())
        lines.append(f"  {one.name}: {value if len(value) <= 90 else f'{value[:87]}...'}")
    return "\n".join(lines)


class Fragment(NamedTuple):
    """A part of a token: text, bytes as `E4 BD`, or an invisible character as `U+200D`."""

    kind: Literal["text", "byte", "mark"]
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

    def html(self, *, style: str = "", title: str = "") -> str:
        """Return the token as an HTML element, with CSS and a tooltip."""
        inner = "".join(
            markup.escape(part.shown)
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


#: The id of a token, its parts, and whether it is trained on (None without a mask).
_Shown: TypeAlias = "tuple[int, TokenDrawing, bool | None]"


def terminal(
    tokenizer: _core.Tokenizer,
    ids: Iterable[int],
    mask: Sequence[int] | None,
    *,
    with_ids: bool,
    color: bool | None,
) -> str:
    """The tokens of ids for a terminal; see `Tokenizer.show`."""
    color = not os.environ.get("NO_COLOR") if color is None else color
    before = f"{_GREY}(" if color else "("
    parts = []
    for index, (id, token, mark) in enumerate(_tokens(tokenizer, ids, mask)):
        plain = f"[{token.plain()}]" if mark else token.plain()
        part = _colored(index, token, mark) if color else plain
        part += f"{before}{id}){_RESET if color else ''}" if with_ids else ""
        parts.append(part + ("\n" if color and mask is None and token.ends_line else ""))
    return ("" if color and mask is None else "|").join(parts)


def html(
    tokenizer: _core.Tokenizer, ids: Iterable[int], mask: Sequence[int] | None, *, with_ids: bool
) -> Markup:
    """The tokens of ids for a notebook; see `Tokenizer.show`."""
    parts = []
    for index, (id, token, trained) in enumerate(_tokens(tokenizer, ids, mask)):
        if token.special:
            style = _SPECIAL_ALONE if trained is None else _SPECIAL[trained]
        else:
            style = _IN_TURN[index % 2] if trained is None else _TRAINED[trained]
        kind = "special token, " if token.special else ""
        state = "" if trained is None else ", trained on" if trained else ", not trained on"
        size = len(tokenizer.token_bytes(id))
        title = f"{kind}id {id}, {size:,} byte{'' if size == 1 else 's'}{state}"
        number = f"<sub>{id}</sub>" if with_ids else ""
        parts.append(token.html(style=style, title=title) + number + "\n" * token.ends_line)
    return Markup(f'<div style="{_FRAME}">{"".join(parts)}</div>')


def _tokens(
    tokenizer: _core.Tokenizer, ids: Iterable[int], mask: Sequence[int] | None
) -> list[_Shown]:
    numbers = integers("text_or_ids", ids)
    if mask is not None and len(numbers) != len(mask):
        raise ArgumentError(f"the mask has {len(mask)} entries, but there are {len(numbers)} ids")
    trained = [None] * len(numbers) if mask is None else [bool(one) for one in mask]
    special = set(tokenizer.special_tokens.values())
    drawn = (draw(tokenizer.token_bytes(id), special=id in special) for id in numbers)
    return list(zip(numbers, drawn, trained, strict=True))


def _colored(index: int, token: TokenDrawing, trained: bool | None) -> str:
    if trained is not None:
        ink = _GREEN if trained else _RED
        return f"{_REVERSED if token.special else ''}{ink}{token.plain()}{_RESET}"
    # White on dark violet, or black on one of the colours.
    front, back = (231, 54) if token.special else (16, _COLORS[index % len(_COLORS)])
    strong = "1;" if token.special else ""
    return f"\x1b[{strong}38;5;{front};48;5;{back}m{token.plain()}{_RESET}"
