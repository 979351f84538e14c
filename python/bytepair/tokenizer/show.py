"""Shows the tokens of a text or of ids, as text for terminals or HTML for notebooks.

Without a mask, tokens have alternating backgrounds. With a mask, tokens that a model is trained on
are green, others are red. Special tokens are light on dark. `_internal.drawing` draws each token.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from bytepair import _core
from bytepair._internal.checks import integers
from bytepair._internal.drawing import COLORS, SPECIAL, Markup, TokenDrawing, draw_all
from bytepair.errors import ArgumentError
from bytepair.properties.tokens import pattern_text

_GREEN, _RED, _GREY, _RESET = "\x1b[92m", "\x1b[91m", "\x1b[90m", "\x1b[0m"
_REVERSED = "\x1b[1;7m"

_FRAME = "font-family:monospace;white-space:pre-wrap;line-height:1.7;unicode-bidi:plaintext"
_TRAINED = ("background:#f8d2d2;color:#000", "background:#c8f0cd;color:#000")
_IN_TURN = ("background:#dbe6fb;color:#000", "background:#f6ecc9;color:#000")
#: The colours of special tokens: not trained on, trained on, and without a mask.
_SPECIAL = ("background:#7f1d1d;color:#fff", "background:#14532d;color:#fff")
_SPECIAL_ALONE = "background:#3b2a6e;color:#fff"

#: The number of tokens of each kind in the notebook summary of a tokenizer.
_MOST_TOKENS = 12

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
    return list(zip(numbers, draw_all(tokenizer, numbers), trained, strict=True))


def _colored(index: int, token: TokenDrawing, trained: bool | None) -> str:
    if trained is not None:
        ink = _GREEN if trained else _RED
        return f"{_REVERSED if token.special else ''}{ink}{token.plain()}{_RESET}"
    front, back = SPECIAL if token.special else (16, COLORS[index % len(COLORS)])
    strong = "1;" if token.special else ""
    return f"\x1b[{strong}38;5;{front};48;5;{back}m{token.plain()}{_RESET}"


def summary(tokenizer: _core.Tokenizer) -> Markup:
    """An HTML table with the properties of a tokenizer and some of its tokens."""
    ordinary = [id for token, id in tokenizer.mergeable_ranks().items() if len(token) > 1]
    by_length = sorted(ordinary, key=lambda id: -len(tokenizer.token_bytes(id)))
    special = list(tokenizer.special_tokens.values())
    rows = {
        "ids": f"{tokenizer.vocab_size:,}",
        "special tokens": _some(tokenizer, special),
        "first tokens": _some(tokenizer, ordinary),
        "last tokens": _some(tokenizer, ordinary[-_MOST_TOKENS:]),
        "longest tokens": _some(tokenizer, by_length),
        "pattern": escape(pattern_text(tokenizer)),
        "merge rule": tokenizer.merge_rule,
        "fingerprint": tokenizer.fingerprint[:12],
    }
    left = "text-align:left"
    cells = (
        f'<tr><th style="{left}">{name}</th><td style="{left}">{value}</td></tr>'
        for name, value in rows.items()
    )
    return Markup(f"<table>{''.join(cells)}</table>")


def _some(tokenizer: _core.Tokenizer, ids: Iterable[int]) -> str:
    """The first tokens of a list, with their ids; spaces are shown as dots."""
    all_ids = list(ids)
    names = [
        token.html(
            style=_SPECIAL_ALONE if token.special else _IN_TURN[0], title=f"id {id}", space="·"
        )
        for id, token in zip(all_ids, draw_all(tokenizer, all_ids[:_MOST_TOKENS]), strict=False)
    ]
    more = len(all_ids) - _MOST_TOKENS
    return " ".join(names) + (f" and {more:,} more" if more > 0 else "") or "none"
