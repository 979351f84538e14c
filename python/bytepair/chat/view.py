"""Ids and a mask in, something to look at out: for terminals and for notebooks.

Green is what the model is trained on, red is what it is not. A token that is not whole characters
is shown as `bytepair.view.readable` shows it.
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from itertools import zip_longest

from bytepair import _core
from bytepair.view import readable

_GREEN, _RED, _GREY, _RESET = "\x1b[92m", "\x1b[91m", "\x1b[90m", "\x1b[0m"

_STYLE = (
    "font-family:monospace;white-space:pre-wrap;line-height:1.7",
    {1: "background:#c8f0cd;color:#000", 0: "background:#f8d2d2;color:#000"},
    ("background:#dbe6fb;color:#000", "background:#f6ecc9;color:#000"),
)


class Html(str):
    """HTML that notebooks show as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def _pairs(ids: Sequence[int], mask: Sequence[int] | None) -> list[tuple[int, int | None]]:
    if mask is None:
        return [(int(id), None) for id in ids]
    if len(ids) != len(mask):
        raise ValueError(f"there are {len(ids)} ids but {len(mask)} entries of the mask")
    return [(int(id), int(trained)) for id, trained in zip_longest(ids, mask)]


def visualize(
    tokenizer: _core.Tokenizer,
    ids: Sequence[int],
    mask: Sequence[int] | None = None,
    *,
    with_ids: bool = False,
    color: bool | None = None,
) -> str:
    """Show tokens on a terminal; `Tokenizer.visualize` says it all."""
    if color is None:
        color = not os.environ.get("NO_COLOR")
    shown = []
    for id, trained in _pairs(ids, mask):
        text = readable(tokenizer.token_bytes(id))
        if color and trained is not None:
            text = f"{_GREEN if trained else _RED}{text}{_RESET}"
        elif trained:
            text = f"[{text}]"
        number = f"{_GREY}({id}){_RESET}" if color else f"({id})"
        shown.append(text + number if with_ids else text)
    return "|".join(shown)


def to_html(
    tokenizer: _core.Tokenizer, ids: Sequence[int], mask: Sequence[int] | None = None
) -> Html:
    """Show tokens in a notebook or on a page; `Tokenizer.to_html` says it all."""
    frame, by_mask, in_turn = _STYLE
    spans = []
    for index, (id, trained) in enumerate(_pairs(ids, mask)):
        token = tokenizer.token_bytes(id)
        style = in_turn[index % 2] if trained is None else by_mask[trained]
        state = "" if trained is None else ", trained on" if trained else ", not trained on"
        title = html.escape(f"id {id}, {len(token)} bytes{state}")
        line = "\n" if token.endswith(b"\n") else ""
        text = html.escape(readable(token))
        spans.append(f'<span style="{style}" title="{title}">{text}</span>{line}')
    return Html(f'<div style="{frame}">{"".join(spans)}</div>')
