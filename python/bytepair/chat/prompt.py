"""Render prompts, also those that have to fit the context of a model.

A conversation that is too long loses its oldest turns. A turn is a message of the user with all
that follows it, so no answer, call or result is left without its question. What comes before the
first turn, such as the system message, is kept, and so is the last turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from bytepair import _core
from bytepair._internal.checks import check_choice, check_whole, refuse
from bytepair.chat.renderer import TemplateOrName, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, read_row, to_be_completed
from bytepair.chat.segments import Conversation, Encoded, Segments
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
    continue_final_message: bool = False,
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
        continue_final_message: whether the prompt goes on with the text of the last message, which
            the assistant has begun and is to complete.

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

    def rendered(row: Row) -> Encoded:
        out = Segments()
        write.prompt(row, out)
        return out.encode(tokenizer, join=write.join, errors=options.errors)

    whole, role = read_row(conversation, write, options), write.template.prompted
    begun: list[int] = []
    if continue_final_message:
        text = Segments([_begun(whole, role)], bytearray(1), [1])
        begun = text.encode(tokenizer, join=write.join, errors=options.errors).ids.tolist()
    row, room = to_be_completed(whole, role), None if limit is None else limit - len(begun)
    if drop is None or room is None:
        prompt, dropped = rendered(row), list[Mapping[str, Any]]()
        if room is not None and len(prompt.ids) > room:
            length, way_out = len(prompt.ids) + len(begun), 'pass drop="oldest", or '
            raise _too_long("prompt", length, limit or 0, way_out=way_out)
    else:
        prompt, dropped = fitted(row, rendered, room, "prompt")
    return FittedPrompt(prompt.ids.tolist() + begun, dropped)


def _begun(row: Row, role: str) -> str:
    """The text of a last message that is to be completed."""
    last = row.messages[-1]
    text = last.get("content")
    if last["role"] != role or not isinstance(text, str) or len(last) > 2:
        raise ConversationError(
            f"the last message must be from {role!r} and have only a text",
            option="continue_final_message",
        )
    return text


def render_fitted(
    tokenizer: _core.Tokenizer, write: Any, row: Row, options: ChatOptions, max_tokens: int | None
) -> Encoded:
    """Render a conversation for training, without the oldest turns if it is too long."""
    if options.truncate == "split":
        raise refuse("truncate", "split", '"tokens", "messages" or "turns" without rows')

    def rendered(row: Row) -> Encoded:
        out = Segments()
        write.write(row, out, options)
        return out.encode(tokenizer, join=write.join, errors=options.errors)

    if max_tokens is None:
        return rendered(row)
    return fitted(row, rendered, max_tokens, "conversation")[0]


def fitted(
    row: Row, render: Callable[[Row], Encoded], limit: int, what: str
) -> tuple[Encoded, list[Mapping[str, Any]]]:
    """Render a row without its oldest turns, as few as make it fit."""
    whole = render(row)
    if len(whole.ids) <= limit:
        return whole, []
    starts = [index for index, message in enumerate(row.messages) if message["role"] == "user"]
    if len(starts) < 2:
        raise _too_long(what, len(whole.ids), limit)
    first, later = starts[0], starts[1:]

    @cache
    def from_turn(start: int) -> Encoded:
        return render(_without(row, first, start))

    # The fewer turns, the shorter: the first start at which it fits is searched.
    fitting = bisect_left(later, True, key=lambda start: len(from_turn(start).ids) <= limit)
    start = later[min(fitting, len(later) - 1)]
    if (length := len(from_turn(start).ids)) > limit:
        raise _too_long(what, length, limit, " without all turns but the last")
    return from_turn(start), row.messages[first:start]


def _too_long(
    what: str, length: int, limit: int, how: str = "", way_out: str = ""
) -> ConversationError:
    return ConversationError(
        f"the {what} has {length:,} tokens{how}, and max_tokens is {limit:,}",
        option="max_tokens",
        value=limit,
        hint=f"{way_out}shorten messages with bytepair.tokenizer.truncate_text",
    )


def _without(row: Row, start: int, end: int) -> Row:
    """A row without some of its messages."""
    flags = {
        index if index < start else index - (end - start): flag
        for index, flag in row.flags.items()
        if not start <= index < end
    }
    return Row(row.messages[:start] + row.messages[end:], row.fields, flags, row.is_plain)
