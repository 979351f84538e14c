"""Turns conversations into ids and a loss mask, and ids back into conversations.

A conversation is `{"messages": [{"role": ..., "content": ...}, ...]}`, or just the list of
messages. A `Template` defines how it is rendered: which special tokens open and close each role,
and what the model is trained on. The text of a message is always encoded as ordinary text, so no
user input can become a special token.

    >>> import bytepair
    >>> tok = bytepair.train(["hi there, hello"], vocab_size=270)
    >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    >>> ids, mask = tok.render_conversation(talk)
    >>> print(tok.show(ids, mask, color=False))
    ⟪<|bos|>⟫|⟪<|user_start|>⟫|hi|⟪<|user_end|>⟫|⟪<|assistant_start|>⟫|[he]|[ll]|[o]|[⟪<|assistant_end|>⟫]

Rendering and parsing are methods of `Tokenizer`; this package defines their arguments and results,
and has functions for less usual ways: `render_turn`, `render_preferences`, `encode_segments`.
The modules: `template` (the class `Template`), `rows` (what the fields of a row mean), `renderer`
(one conversation to segments), `segments` (which the core encodes), `prompt` (prompts that fit a
context or follow sampled ids), `batch` (whole data sets), `preferences` (preference pairs),
`parser` (ids to conversations, also during generation), `jinja` (Hugging Face templates;
`rendering` keeps texts apart, and finds what is trained on).
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.extras import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair._internal.sandbox import RenderProcess
    from bytepair.chat.batch import RenderedBatch, RenderStatistics
    from bytepair.chat.jinja import JinjaTemplate
    from bytepair.chat.parser import MessageEnd, Parser, TextDelta, ToolCall
    from bytepair.chat.preferences import Preference, PreferenceBatch, render_preferences
    from bytepair.chat.prompt import render_turn
    from bytepair.chat.rows import ChatOptions
    from bytepair.chat.segments import RenderedIds, encode_segments
    from bytepair.chat.template import (
        CHATML,
        LLAMA3,
        NANOCHAT,
        QWEN3,
        QWEN25,
        Part,
        Reasoning,
        Role,
        Special,
        Template,
        Tools,
    )

_lazy(
    __name__,
    ["template", "rows", "segments", "parser", "prompt", "jinja", "preferences", "batch"],
)

__all__ = [
    "CHATML", "LLAMA3", "NANOCHAT", "QWEN3", "QWEN25", "ChatOptions",
    "JinjaTemplate", "MessageEnd", "Parser", "Part", "Preference", "PreferenceBatch", "Reasoning",
    "RenderProcess", "RenderStatistics", "RenderedBatch", "RenderedIds", "Role", "Special",
    "Template", "TextDelta", "ToolCall", "Tools", "encode_segments", "render_preferences",
    "render_turn",
]  # fmt: skip
