"""Conversations to ids and a loss mask, and back.

A conversation is `{"messages": [{"role": ..., "content": ...}, ...]}`, or the list of messages
alone. A `Template` says how it is written: which special tokens open and close each role, and what
the model is trained on. The text of a message is encoded as ordinary text, so nothing that a user
writes can become a special token.

    >>> import bytepair
    >>> tok = bytepair.train(["hi there, hello"], vocab_size=270)
    >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    >>> ids, mask = tok.render_conversation(talk)
    >>> print(tok.visualize(ids, mask, color=False))
    ⟪<|bos|>⟫|⟪<|user_start|>⟫|hi|⟪<|user_end|>⟫|⟪<|assistant_start|>⟫|[he]|[ll]|[o]|[⟪<|assistant_end|>⟫]

The files: `template` (what a template is), `render` (one conversation), `batch` (whole data sets),
`parse` (the way back, also while a model writes), `jinja` (templates of Hugging Face), `view`
(pictures), `methods` (what of it is a method of `Tokenizer`).
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.lazy import lazy as _lazy
from bytepair.chat.parser import (
    MessageEnd,
    MessageStart,
    Parser,
    PartEnd,
    PartStart,
    TextDelta,
    parse,
)
from bytepair.chat.renderer import render, render_for_completion
from bytepair.chat.template import CHATML, LLAMA3, NANOCHAT, Part, Role, Special, Template
from bytepair.chat.view import Html, to_html, visualize

if _TYPE_CHECKING:
    from bytepair.chat.batch import RenderedBatch, render_batch
    from bytepair.chat.jinja import JinjaTemplate

_lazy(
    __name__,
    {
        "RenderedBatch": "bytepair.chat.batch",
        "JinjaTemplate": "bytepair.chat.jinja",
        "render_batch": "bytepair.chat.batch",
    },
)

__all__ = [
    "CHATML",
    "LLAMA3",
    "NANOCHAT",
    "Html",
    "JinjaTemplate",
    "MessageEnd",
    "MessageStart",
    "Parser",
    "Part",
    "PartEnd",
    "PartStart",
    "RenderedBatch",
    "Role",
    "Special",
    "Template",
    "TextDelta",
    "parse",
    "render",
    "render_batch",
    "render_for_completion",
    "to_html",
    "visualize",
]
