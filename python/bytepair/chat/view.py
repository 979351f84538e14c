"""Ids and a mask in, something to look at out: for terminals and for notebooks.

Green is what the model is trained on, red is what it is not; special tokens have the colours the
other way round, light on dark. `_internal.drawing` draws each token.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence

from bytepair import _core
from bytepair._internal.drawing import Drawn, draw_all

_GREEN, _RED, _GREY, _RESET = "\x1b[92m", "\x1b[91m", "\x1b[90m", "\x1b[0m"
_REVERSED = "\x1b[1;7m"

_FRAME = "font-family:monospace;white-space:pre-wrap;line-height:1.7;unicode-bidi:plaintext"
_TRAINED = ("background:#f8d2d2;color:#000", "background:#c8f0cd;color:#000")
_IN_TURN = ("background:#dbe6fb;color:#000", "background:#f6ecc9;color:#000")
#: Special tokens: not trained on, trained on, and without a mask.
_SPECIAL = ("background:#7f1d1d;color:#fff", "background:#14532d;color:#fff")
_SPECIAL_ALONE = "background:#3b2a6e;color:#fff"

#: How many tokens of each kind a notebook shows of a tokenizer.
_MOST_SHOWN = 12


class Html(str):
    """HTML that notebooks show as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def _with_mask(
    tokenizer: _core.Tokenizer, ids: Sequence[int], mask: Sequence[int] | None
) -> list[tuple[int, Drawn, bool | None]]:
    """Each id, how its token is drawn, and whether it is trained on; None without a mask."""
    if mask is not None and len(ids) != len(mask):
        raise ValueError(f"there are {len(ids)} ids but {len(mask)} entries of the mask")
    numbers = [int(id) for id in ids]
    trained = [None] * len(ids) if mask is None else [bool(one) for one in mask]
    return list(zip(numbers, draw_all(tokenizer, numbers), trained, strict=True))


def visualize(
    tokenizer: _core.Tokenizer,
    ids: Sequence[int],
    mask: Sequence[int] | None = None,
    *,
    with_ids: bool = False,
    before_id: str = "",
    color: bool | None = None,
) -> str:
    """Show tokens on a terminal; `Tokenizer.visualize` says it all.

    `before_id` stands between a token and its id.
    """
    if color is None:
        color = not os.environ.get("NO_COLOR")
    shown = []
    for id, token, trained in _with_mask(tokenizer, ids, mask):
        text = token.plain()
        if color and (token.special or trained is not None):
            ink = "" if trained is None else _GREEN if trained else _RED
            text = f"{_REVERSED if token.special else ''}{ink}{text}{_RESET}"
        elif trained:
            text = f"[{text}]"
        number = f"{_GREY}({id}){_RESET}" if color else f"({id})"
        shown.append(text + before_id + number if with_ids else text)
    return "|".join(shown)


def to_html(
    tokenizer: _core.Tokenizer, ids: Sequence[int], mask: Sequence[int] | None = None
) -> Html:
    """Show tokens in a notebook or on a page; `Tokenizer.to_html` says it all."""
    shown = []
    for index, (id, token, trained) in enumerate(_with_mask(tokenizer, ids, mask)):
        if token.special:
            style = _SPECIAL_ALONE if trained is None else _SPECIAL[trained]
        else:
            style = _IN_TURN[index % 2] if trained is None else _TRAINED[trained]
        kind = "special token, " if token.special else ""
        state = "" if trained is None else ", trained on" if trained else ", not trained on"
        size = len(tokenizer.token_bytes(id))
        title = f"{kind}id {id:,}, {size:,} byte{'' if size == 1 else 's'}{state}"
        shown.append(token.html(style=style, title=title) + "\n" * token.ends_line)
    return Html(f'<div style="{_FRAME}">{"".join(shown)}</div>')


def summary(tokenizer: _core.Tokenizer) -> Html:
    """Show the values that tell tokenizers apart, and some tokens, as a table of HTML."""
    ordinary = [id for token, id in tokenizer.mergeable_ranks.items() if len(token) > 1]
    by_length = sorted(ordinary, key=lambda id: -len(tokenizer.token_bytes(id)))
    special = list(tokenizer.special_tokens.values())
    rows = {
        "ids": f"{tokenizer.vocab_size:,}",
        "special tokens": _some(tokenizer, special),
        "first tokens": _some(tokenizer, ordinary),
        "last tokens": _some(tokenizer, ordinary[-_MOST_SHOWN:]),
        "longest tokens": _some(tokenizer, by_length),
        "pattern": html.escape(tokenizer.pattern),
        "merge rule": tokenizer.merge_rule,
        "fingerprint": tokenizer.fingerprint[:12],
    }
    left = "text-align:left"
    cells = (
        f'<tr><th style="{left}">{name}</th><td style="{left}">{value}</td></tr>'
        for name, value in rows.items()
    )
    return Html(f"<table>{''.join(cells)}</table>")


def _some(tokenizer: _core.Tokenizer, ids: Iterable[int]) -> str:
    """Show the first of some tokens, with their ids; spaces as dots."""
    kept = list(ids)
    shown = [
        token.html(
            style=_SPECIAL_ALONE if token.special else _IN_TURN[0], title=f"id {id:,}", space="·"
        )
        for id, token in zip(kept, draw_all(tokenizer, kept[:_MOST_SHOWN]), strict=False)
    ]
    more = len(kept) - _MOST_SHOWN
    return " ".join(shown) + (f" and {more:,} more" if more > 0 else "") or "none"
