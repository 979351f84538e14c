"""Conversations to ids and a loss mask, and back.

A conversation is `{"messages": [{"role": ..., "content": ...}, ...]}`, or the list of messages
alone. A `Template` says how it is written: which special tokens open and close each role, and what
the model is trained on. The text of a message is encoded as ordinary text, so nothing that a user
writes can become a special token.

    >>> import bytepair
    >>> tok = bytepair.train(["hi there, hello"], vocab_size=270)
    >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    >>> ids, mask = tok.render_conversation(talk)
    >>> print(tok.show(ids, mask, color=False))
    ⟪<|bos|>⟫|⟪<|user_start|>⟫|hi|⟪<|user_end|>⟫|⟪<|assistant_start|>⟫|[he]|[ll]|[o]|[⟪<|assistant_end|>⟫]

What is done with them are methods of `Tokenizer`; here is what these take and give. The files:
`template` (what a template is), `renderer` (one conversation to segments, its tool calls in
`calls`), `turn` (going on from ids that a model sampled), `batch` (whole data
sets), `parser` (the way back, also while a model writes), `jinja` (templates of Hugging Face, with
`environment`, `disguise`, `prefixes` and `checks`), `methods` (the methods).
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
)
from bytepair.chat.template import (
    CHATML,
    LLAMA3,
    LLAMA31,
    NANOCHAT,
    QWEN25,
    Builtin,
    Part,
    Role,
    Special,
    Template,
    Tools,
)

if _TYPE_CHECKING:
    from bytepair.chat.batch import RenderedBatch
    from bytepair.chat.jinja import JinjaTemplate

_lazy(
    __name__,
    {
        "RenderedBatch": "bytepair.chat.batch",
        "JinjaTemplate": "bytepair.chat.jinja",
    },
)

__all__ = [
    "CHATML",
    "LLAMA3",
    "LLAMA31",
    "NANOCHAT",
    "QWEN25",
    "Builtin",
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
    "Tools",
]
