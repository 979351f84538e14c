"""Render prompts, also those that have to fit the context of a model.

A conversation that is too long loses its oldest turns. A turn is a message of the user with all
that follows it, so no answer, call or result stands without its question. What comes before the
first turn, such as the message of the system, is kept, and so is the last turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from bytepair import _core
from bytepair._internal.checks import check_choice, check_whole
from bytepair.chat.renderer import TemplateOrName, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, read_row, to_be_completed
from bytepair.chat.segments import Conversation, Segments
from bytepair.errors import ConversationError


class FittedPrompt(NamedTuple):
    """A prompt, and the messages that it has no room for.

    Attributes:
        ids: the ids of the prompt.
        dropped: the messages that were left out, in order.
    """

    ids: list[int]
    dropped: list[Mapping[str, Any]]


def render_prompt(
    tokenizer: _core.Tokenizer,
    conversation: Conversation,
    *,
    max_tokens: int | None = None,
    drop: Literal["oldest"] | None = None,
    template: TemplateOrName = None,
    options: ChatOptions | None = None,
) -> FittedPrompt:
    """Render a prompt of at most so many tokens, and tell which messages it has no room for.

    Args:
        tokenizer: the tokenizer.
        conversation: as in `Tokenizer.render_for_completion`.
        max_tokens: the maximum number of ids; None means no limit.
        drop: "oldest" leaves out the oldest turns of a longer prompt, as few as possible; with None
            it is an error.
        template: as in `Tokenizer.render_conversation`.
        options: as in `Tokenizer.render_conversation`.

    Returns:
        The ids, and the messages that were left out.

    Raises:
        ConversationError: if the conversation is invalid for the template, or does not fit.
        SpecialTokenError: if the tokenizer lacks a special token of the template.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi ho"], vocab_size=265)
        >>> talk = [{"role": role, "content": text} for role, text in [
        ...     ("user", "hi"), ("assistant", "ho"), ("user", "ho hi?")]]
        >>> fitted = bytepair.chat.render_prompt(tok, talk, max_tokens=12, drop="oldest")
        >>> tok.decode(fitted.ids), len(fitted.dropped)
        ('<|bos|><|user_start|>ho hi?<|user_end|><|assistant_start|>', 2)
    """
    check_choice("drop", drop, (None, "oldest"))
    limit = None if max_tokens is None else check_whole("max_tokens", max_tokens, least=1)
    options = options or DEFAULT
    write = writer(tokenizer, template)

    def rendered(row: Row) -> list[int]:
        out = Segments()
        write.prompt(row, out)
        return list(out.encode(tokenizer, join=write.join, errors=options.errors).ids.tolist())

    row = to_be_completed(read_row(conversation, write, options), write.template.prompted)
    ids = rendered(row)
    if limit is None or len(ids) <= limit:
        return FittedPrompt(ids, [])
    starts = [index for index, message in enumerate(row.messages) if message["role"] == "user"]
    if drop is None or len(starts) < 2:
        raise _too_long(len(ids), limit)
    first, later = starts[0], starts[1:]

    @cache
    def ids_from(start: int) -> list[int]:
        return rendered(_without(row, first, start))

    # The fewer turns, the shorter the prompt: the first start at which it fits is searched.
    fitting = bisect_left(later, True, key=lambda start: len(ids_from(start)) <= limit)
    start = later[min(fitting, len(later) - 1)]
    if (length := len(ids_from(start))) > limit:
        raise _too_long(length, limit, " without all turns but the last")
    return FittedPrompt(ids_from(start), row.messages[first:start])


def _too_long(length: int, limit: int, how: str = "") -> ConversationError:
    return ConversationError(
        f"the prompt has {length:,} tokens{how}, and max_tokens is {limit:,}",
        option="max_tokens",
        value=limit,
        hint='pass drop="oldest", or shorten messages with bytepair.tokenizer.truncate_text',
    )


def _without(row: Row, start: int, end: int) -> Row:
    """A row without some of its messages."""
    return Row(row.messages[:start] + row.messages[end:], row.fields, {}, row.is_plain)
