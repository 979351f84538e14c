"""Renders prompts: within the context of a model, and after ids that it has sampled.

A conversation that is too long loses its oldest turns. A turn is a message of the user with all
that follows it, so no answer, call or result is left without its question. What comes before the
first turn, such as the system message, is kept, and so is the last turn.

Sampled ids are never decoded and encoded again, since `encode` may return other ids. Only the
continuation is rendered; it starts with the missing end of the sampled turn: the stop token, and
the text that the template writes after it, such as the line break of ChatML.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Literal

from bytepair import _core
from bytepair._internal.checks import check_choice, check_whole, integers
from bytepair.chat.renderer import TemplateOrName, TemplateWriter, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, read_row
from bytepair.chat.segments import Conversation, Encoded, RenderedIds, Segments, encode_items
from bytepair.chat.template import ASSISTANT
from bytepair.errors import ArgumentError, ConversationError


def render_prompt(
    tokenizer: _core.Tokenizer,
    conversation: Conversation,
    *,
    template: TemplateOrName,
    options: ChatOptions,
    max_tokens: int | None,
    drop: Literal["oldest"] | None,
    continue_final_message: bool,
) -> list[int]:
    """Render a prompt; see `Tokenizer.render_for_completion`."""
    check_choice("drop", drop, (None, "oldest"))
    limit = None if max_tokens is None else check_whole("max_tokens", max_tokens, least=1)
    write = writer(tokenizer, template)
    row, begun = read_row(conversation, write, options), None
    last = row.messages[-1]
    if continue_final_message:
        begun = last.get("content")
        if last["role"] != ASSISTANT or not isinstance(begun, str) or len(last) > 2:
            raise ConversationError(
                f"the last message must be from {ASSISTANT!r} and have only a text",
                option="continue_final_message",
            )
    if last["role"] == ASSISTANT:  # the message that the model is to write
        row = Row(row.messages[:-1], row.fields, row.flags)
    if not row.messages:
        raise ConversationError("there is no message before the one to be completed")

    def append(row: Row, out: Segments) -> None:
        write.prompt(row, out)
        if begun is not None:
            out.items += [None, begun]  # encoded apart
            out.trained += bytes(2)
            out.ends[-1] += 2

    encoded = render_fitted(write, row, options, limit, append, drops=drop is not None)
    ids: list[int] = encoded.ids.tolist()
    return ids


def render_fitted(
    write: Any,
    row: Row,
    options: ChatOptions,
    limit: int | None,
    append: Callable[[Row, Segments], None] | None = None,
    *,
    drops: bool = True,
) -> Encoded:
    """Encode what `append` writes, or a text for training; without oldest turns if too long."""
    append = append or partial(write.write, options=options)

    def rendered(row: Row) -> Encoded:
        out = Segments()
        append(row, out)
        return out.encode(write.tokenizer, join=write.join, errors=options.errors)

    whole = rendered(row)
    if limit is None or len(whole.ids) <= limit:
        return whole
    starts = [index for index, message in enumerate(row.messages) if message["role"] == "user"]
    later = starts[1:] if drops else []

    @cache
    def from_turn(start: int) -> Encoded:
        first, flags = starts[0], dict[int, bool]()
        for index, flag in row.flags.items():
            if index < first:
                flags[index] = flag
            elif index >= start:
                flags[index - start + first] = flag
        return rendered(Row(row.messages[:first] + row.messages[start:], row.fields, flags))

    # The fewer turns, the shorter: the first start at which it fits is searched.
    fitting = bisect_left(later, True, key=lambda start: len(from_turn(start).ids) <= limit)
    if fitting < len(later):
        return from_turn(later[fitting])._replace(lengths=whole.lengths)
    length = len(from_turn(later[-1]).ids if later else whole.ids)
    hint = "shorten messages with bytepair.tokenizer.truncate_text"
    raise ConversationError(
        f"the conversation has {length:,} tokens{' without all turns but the last' * bool(later)}, "
        f"and max_tokens is {limit:,}",
        option="max_tokens",
        value=limit,
        hint=hint if drops else f'pass drop="oldest", or {hint}',
    )


def render_turn(
    tokenizer: _core.Tokenizer,
    ids: Sequence[int],
    messages: Conversation,
    *,
    mask: Sequence[int] | None = None,
    template: TemplateOrName = None,
    options: ChatOptions = DEFAULT,
) -> RenderedIds:
    """Continue from sampled ids: append messages, and the start of the assistant's next turn.

    The given ids are returned unchanged, even if `encode` would produce other ids for the same
    text. If they end with a stop token, the model closed its turn; if they end within the turn,
    it is closed here. Without ids, a new conversation begins.

    Args:
        tokenizer: the tokenizer.
        ids: a prompt and the ids sampled after it, up to the stop token.
        messages: the messages to append, such as tool results: a list of messages, or a
            conversation. If the first one is from the assistant, it continues the open turn,
            as tool output does in nanochat's template; the turn stays open if no other message
            follows. With an empty list the turn is closed, and no turn is opened.
        mask: the mask of the ids before the last sampled ones, which get 1. None means 0 for
            all ids.
        template: a `Template`, which says how turns begin and end; None means the tokenizer's own.
        options: how the messages are read.

    Returns:
        The extended ids, and a mask that is 1 only for sampled ids.

    Raises:
        ConversationError: if the ids do not end with a turn of the assistant, the messages are
            invalid for the template, or the template is in Jinja.
        SpecialTokenError: if the tokenizer lacks a special token of the template.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi"], vocab_size=266)
        >>> ids, mask = bytepair.chat.render_turn(tok, [], [{"role": "user", "content": "hi"}])
        >>> ids += [104, 105, tok.special_tokens["<|assistant_end|>"]]  # not the token "hi"
        >>> more = [{"role": "user", "content": "yo"}]
        >>> ids, mask = bytepair.chat.render_turn(tok, ids, more, mask=mask)
        >>> print(tok.decode(ids))
        <|bos|><|user_start|>hi<|user_end|><|assistant_start|>hi<|assistant_end|>...
        >>> mask
        [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]
    """
    ids, write = integers("ids", ids), writer(tokenizer, template)
    before = [0] * len(ids) if mask is None else integers("mask", mask)
    if len(before) > len(ids):
        raise ArgumentError(
            f"the mask has {len(before)} entries, but there are only {len(ids)} ids"
        )
    row = read_row(messages, write, options, empty=bool(ids))
    flagged = [index for index, flag in row.flags.items() if flag]
    if flagged:
        raise ConversationError(
            f"message {flagged[0]} is to be trained on, but only sampled ids are",
            hint="remove the flag",
        )
    out = Segments()
    if not ids:
        write.prompt(row, out)
    elif isinstance(write, TemplateWriter):
        _continue(write, ids, row, out)
    else:
        raise ConversationError(
            f"the template {write.name!r} is in Jinja, and continues messages, not ids",
            option="template",
            hint="pass a Template that writes the same",
        )
    more = encode_items(tokenizer, out.items, join=write.join, errors=options.errors)
    sampled = [1] * (len(ids) - len(before))
    return RenderedIds([*ids, *more], [*before, *sampled, *[0] * len(more)])


def _continue(writer: TemplateWriter, ids: list[int], row: Row, out: Segments) -> None:
    """The end of the turn of the ids, the messages, and the next turn's start."""
    if row.fields.get("tools"):
        raise ConversationError(
            "tools are defined at the start of a conversation",
            hint="pass them with the first messages",
        )
    messages = list(enumerate(row.messages))
    rest, is_open = _rest_of_turn(writer, ids)
    if is_open and messages and messages[0][1]["role"] == ASSISTANT:
        out.items += writer.prompted.body(*messages.pop(0))[0]
        if not messages:
            return  # the turn stays open
    out.items += [*rest, None]
    turns = writer.template.alternate
    writer.append(messages, out, turns.index(ASSISTANT) + 1 if turns else 1)
    if row.messages:
        out.items += writer.prompted.open[0]


def _rest_of_turn(writer: TemplateWriter, ids: list[int]) -> tuple[list[str | int | None], bool]:
    """What the assistant's turn at the end of the ids lacks; and whether it is open."""
    opening, close = writer.prompted.open[0], writer.prompted.close[0]
    if not (opening and close and isinstance(opening[0], int) and isinstance(close[0], int)):
        raise ConversationError(
            f"the template {writer.name!r} does not open and close the turn of {ASSISTANT!r} with "
            "special tokens, so its end cannot be found in ids"
        )
    encoded = partial(encode_items, writer.tokenizer, join=writer.join)
    start, end = (
        max((at for at, id in enumerate(ids) if id == token), default=-1)
        for token in (opening[0], close[0])
    )
    if start > end:
        decode = writer.tokenizer.decode_bytes
        begun = decode(encoded(opening))
        if decode(ids[start : start + len(begun)]).startswith(begun):
            return close, True
    elif end >= 0 and ids[end + 1 :] in ([], encoded(close[1:])):
        return ([] if ids[end + 1 :] else close[1:]), False
    raise ConversationError(
        f"the ids do not end with a turn of {ASSISTANT!r}, open or closed",
        hint="pass the prompt that was rendered and all that was sampled after it, up to the stop "
        "token",
    )
