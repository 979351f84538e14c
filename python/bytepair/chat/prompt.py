"""Renders prompts: within the context of a model, and after ids that it has sampled.

A conversation that is too long loses its oldest turns. A turn is a message of the user with all
that follows it, so no answer, call or result is left without its question. What comes before the
first turn, such as the system message, is kept, and so is the last turn.

Sampled ids are never decoded and encoded again: a model may sample other ids for a text than
`encode` returns, and training on ids that it did not sample would be off-policy. Only the
continuation is rendered; it starts with the missing end of the sampled turn: the stop token, if the
model has not written it, and the text that the template writes after this token, such as the line
break of ChatML. A `Template` defines this end. For a Jinja template, it is derived by rendering the
history with and without the messages: the shorter rendering must be a prefix of the longer one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_choice, check_whole, integers, refuse
from bytepair.chat.renderer import TemplateOrName, TemplateWriter, to_parts, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, read_row, to_be_completed
from bytepair.chat.segments import Conversation, Encoded, RenderedIds, Segments, encode_items
from bytepair.chat.template import ASSISTANT
from bytepair.errors import ArgumentError, ConversationError

if TYPE_CHECKING:
    from bytepair.chat.jinja import JinjaWriter

#: The segments of a text: texts, ids, and None at the end of a message.
_Items: TypeAlias = "list[str | int | None]"


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
    whole = read_row(conversation, write, options)
    begun = _begun(whole) if continue_final_message else None

    def rendered(row: Row) -> Encoded:
        out = Segments()
        write.prompt(row, out)
        if begun is not None:
            out.items += [None, begun]  # encoded apart
            out.trained += bytes(2)
            out.ends[-1] += 2
        return out.encode(tokenizer, join=write.join, errors=options.errors)

    prompt, dropped = _fitted(to_be_completed(whole), rendered, limit, drops=drop is not None)
    return FittedPrompt(prompt.ids.tolist(), dropped)


def _begun(row: Row) -> str:
    last = row.messages[-1]
    text = last.get("content")
    if last["role"] != ASSISTANT or not isinstance(text, str) or len(last) > 2:
        raise ConversationError(
            f"the last message must be from {ASSISTANT!r} and have only a text",
            option="continue_final_message",
        )
    return text


def render_fitted(write: Any, row: Row, options: ChatOptions, max_tokens: int | None) -> Encoded:
    """Render a conversation for training, without the oldest turns if it is too long."""
    if options.truncate == "split":
        raise refuse("truncate", "split", '"tokens", "messages" or "turns" without rows')

    def rendered(row: Row) -> Encoded:
        out = Segments()
        write.write(row, out, options)
        return out.encode(write.tokenizer, join=write.join, errors=options.errors)

    return _fitted(row, rendered, max_tokens)[0]


def _fitted(
    row: Row, render: Callable[[Row], Encoded], limit: int | None, *, drops: bool = True
) -> tuple[Encoded, list[Mapping[str, Any]]]:
    """Render a row, without its oldest turns, as few as make it fit, if it `drops` them."""
    whole = render(row)
    length, how = len(whole.ids), ""
    if limit is None or length <= limit:
        return whole, []
    hint = "shorten messages with bytepair.tokenizer.truncate_text"
    if drops:
        starts = [index for index, message in enumerate(row.messages) if message["role"] == "user"]
        first, later = (starts or [0])[0], starts[1:]

        @cache
        def from_turn(start: int) -> Encoded:
            return render(_without(row, first, start))

        # The fewer turns, the shorter: the first start at which it fits is searched.
        fitting = bisect_left(later, True, key=lambda start: len(from_turn(start).ids) <= limit)
        if fitting < len(later):
            return from_turn(later[fitting]), row.messages[first : later[fitting]]
        if later:
            length, how = len(from_turn(later[-1]).ids), " without all turns but the last"
    else:
        hint = f'pass drop="oldest", or {hint}'
    raise ConversationError(
        f"the conversation has {length:,} tokens{how}, and max_tokens is {limit:,}",
        option="max_tokens",
        value=limit,
        hint=hint,
    )


def _without(row: Row, start: int, end: int) -> Row:
    flags = {
        index if index < start else index - (end - start): flag
        for index, flag in row.flags.items()
        if not start <= index < end
    }
    return Row(row.messages[:start] + row.messages[end:], row.fields, flags, row.is_plain)


# ---------------------------------------------------------------------------- sampled ids


def render_turn(
    tokenizer: _core.Tokenizer,
    ids: Sequence[int],
    messages: Conversation,
    *,
    mask: Sequence[int] | None = None,
    template: TemplateOrName = None,
    prompt: bool = True,
    history: Conversation | None = None,
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
        template: as in `Tokenizer.render_conversation`. A `JinjaTemplate` must render a
            conversation as a prefix of any longer one, which is checked; its mask does not matter.
        prompt: whether to open the next turn of the assistant.
        history: the conversation so far, whose last message is the sampled one; a `JinjaTemplate`
            needs it to continue ids.
        options: how the messages are read.

    Returns:
        The extended ids, and a mask that is 1 only for sampled ids.

    Raises:
        ConversationError: if the ids do not end with a turn, the messages are invalid for the
            template, or the template is not prefix-stable.
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
        (write.prompt if prompt else write.write)(row, out)
    elif isinstance(write, TemplateWriter):
        _after_value(write, ids, row, out, prompt=prompt)
    else:
        if history is None:
            raise ConversationError(
                "a template in Jinja continues messages, not ids alone",
                option="history",
                hint="pass the messages so far, with the sampled one, as history=",
            )
        past = read_row(history, write, options).messages
        out.items = _after_jinja(write, ids, row, past, prompt and bool(row.messages))
    more = encode_items(tokenizer, out.items, join=write.join, errors=options.errors)
    sampled = [1] * (len(ids) - len(before))
    return RenderedIds([*ids, *more], [*before, *sampled, *[0] * len(more)])


# ---------------------------------------------------------------------------- templates as values


def _after_value(
    writer: TemplateWriter, ids: list[int], row: Row, out: Segments, *, prompt: bool
) -> None:
    """The end of the turn of the ids, the messages, and the next turn's start."""
    if row.fields.get("tools"):
        raise ConversationError(
            "tools are defined at the start of a conversation",
            hint="pass them with the first messages",
        )
    template, prompted = writer.template, writer.prompted
    closed_role, rest = _end_of(writer, ids)
    numbered = list(enumerate(row.messages))
    if template.code:
        numbered = to_parts(template.code, numbered, goes_on=closed_role is None)
    goes_on = closed_role is None and numbered and numbered[0][1]["role"] == ASSISTANT
    if goes_on:
        index, message = numbered.pop(0)
        out.items += prompted.body(index, message)[0]
    if goes_on and not numbered and prompt:
        return  # the turn stays open
    out.items += [*rest, None]
    turns = template.alternate
    place = turns.index(closed_role or ASSISTANT) + 1 if turns else 1
    writer.append(numbered, out, place)
    if prompt and row.messages:
        out.items += prompted.open[0]


def _end_of(writer: TemplateWriter, ids: list[int]) -> tuple[str | None, _Items]:
    """The role of the closed turn, or None if it is open; and the missing end of the turn."""
    opening, close = writer.prompted.open[0], writer.prompted.close[0]
    if not (opening and close and isinstance(opening[0], int) and isinstance(close[0], int)):
        raise ConversationError(
            f"the template {writer.name!r} does not open and close the turn of {ASSISTANT!r} with "
            "special tokens, so its end cannot be found in ids"
        )
    ends: dict[Any, tuple[str, _Items]] = {
        role.close[0][0]: (name, role.close[0])
        for name, role in writer.roles.items()
        if role.close[0]
    }
    ends[close[0]] = ASSISTANT, close
    encoded = partial(encode_items, writer.tokenizer, join=writer.join)
    end, start = _last(ids, ends), _last(ids, opening[:1])
    if start > end:
        begun = writer.tokenizer.decode_bytes(encoded(opening))
        if writer.tokenizer.decode_bytes(ids[start : start + len(begun)]).startswith(begun):
            return None, close
    elif end >= 0:
        role, frame = ends[ids[end]]
        if ids[end + 1 :] == encoded(frame[1:]):
            return role, []
        if len(ids) == end + 1:
            return role, frame[1:]
    raise ConversationError(
        f"the ids end neither with a closed turn nor within one of {ASSISTANT!r}",
        hint="pass the prompt that was rendered and all that was sampled after it, up to the stop "
        "token",
    )


def _last(items: Sequence[Any], wanted: Any) -> int:
    """The position of the last item that is one of those wanted; -1 if there is none."""
    return next((at for at in range(len(items) - 1, -1, -1) if items[at] in wanted), -1)


# ---------------------------------------------------------------------------- Jinja


def _after_jinja(
    writer: JinjaWriter, ids: list[int], row: Row, history: Sequence[Any], prompt: bool
) -> _Items:
    """The end of the turn of the ids, the messages, and the next turn's start."""
    encode, special = writer.tokenizer.encode, writer.special
    opening, end, following = _suffix(writer, row, history, prompt)
    closing = [item for item in end if isinstance(item, int)]
    stop, behind = closing[-1], end[len(closing) :]
    stops = {stop, *(special[name] for name in writer.template.stop or ())}
    if ids[-1] in stops:
        return [*behind, *following]
    rest = [id for text in behind for id in encode(str(text))]
    if rest and ids[-len(rest) - 1 :] == [stop, *rest]:
        return following
    start = _last(ids, [opening])
    if start >= 0 and stops & set(ids[start + 1 :]):
        raise ConversationError(
            "the ids continue after the stop token", hint="pass only the ids up to that token"
        )
    done = next(n for n in range(len(closing), -1, -1) if ids[len(ids) - n :] == closing[:n])
    return [*end[done:], *following]


def _suffix(
    writer: JinjaWriter, row: Row, history: Sequence[Any], prompt: bool
) -> tuple[Any, _Items, _Items]:
    """The last special token of the prompt, the end of the history, and the continuation.

    The end is the special tokens that close the turn, and the text that the template writes after
    them.
    """
    if not history or history[-1]["role"] != ASSISTANT:
        raise ConversationError(
            f"a history must end with a message of {ASSISTANT!r}", option="history"
        )
    whole = writer.rendering([*history, *row.messages], row.fields, prompt=prompt)
    *earlier, _ = past_messages = whole.messages[: len(history)]
    prefix, past = whole.run(earlier), whole.run(past_messages)
    before = whole.run(earlier, prompt=True)
    what = "the turn does not continue its prompt"
    whole.check_prefix(before.string, past.string, what, "use a template where it does")
    what = "the template renders the turn differently when messages follow"
    hint = "use a template that renders it equally, or render the whole conversation again"
    whole.check_prefix(past.string, whole.string, what, hint)
    is_prefix = before.string.startswith(prefix.string)
    opening = writer.items(before, len(prefix.string) if is_prefix else 0)
    end = writer.items(past, len(before.string))
    last = _last([isinstance(item, int) for item in end], [True])
    if last < 0 or any(str(text).strip() for text in end[last + 1 :]):
        raise ConversationError(
            f"the template {writer.name!r} does not end the turn of {ASSISTANT!r} with a special "
            "token"
        )
    if not history[-1].get("tool_calls"):  # with calls, the text before it may end a call
        while last > 0 and isinstance(end[last - 1], int):
            last -= 1
    tokens = [item for item in opening if isinstance(item, int)]
    return tokens[-1] if tokens else None, end[last:], writer.items(whole, len(past.string))
