"""Append messages and the next prompt to sampled ids.

The ids are a prompt and what a model sampled after it. They are never decoded and encoded again: a
model may sample other ids for a text than `encode` returns, and training on ids that it did not
sample would be off-policy. Only the continuation is rendered; it starts with the missing end of the
sampled turn:

- If the ids end with a stop token, the model closed its turn; the text that the template writes
  after this token follows, such as the line break of ChatML.
- If they end within the turn, the template's stop token comes first.

A `Template` defines this directly. For a Jinja template, it is derived by rendering a history with
and without the messages: if the shorter rendering is not a prefix of the longer one, the template
is rejected. Without a given history, several are invented, and the continuation must be the same
for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from bytepair import _core
from bytepair._internal.checks import integers
from bytepair.chat import calls, masks
from bytepair.chat.renderer import TemplateOrName, TemplateWriter, writer
from bytepair.chat.rows import DEFAULT, ChatOptions, Row, read_row
from bytepair.chat.sandbox import NO_MARKS
from bytepair.chat.segments import (
    BREAK,
    Conversation,
    RenderedIds,
    Segments,
    role_of,
)
from bytepair.errors import ArgumentError, ConversationError

if TYPE_CHECKING:
    from bytepair.chat.jinja import JinjaWriter

#: The segments of a text: texts, ids, and None at the end of a message.
_Items: TypeAlias = "list[str | int | None]"


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
        history: the conversation so far, required if a `JinjaTemplate` renders messages
            differently depending on it; its last message is the sampled one.
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
    so_far = masked(ids, mask)
    row = read_row(messages, write, options, empty=bool(ids))
    past = None if history is None else read_row(history, write, options)
    out = appended(write, ids, row, prompt=prompt, history=past)
    more = out.encode(tokenizer, join=write.join, errors=options.errors).ids
    return RenderedIds([*ids, *more.tolist()], [*so_far, *[0] * len(more)])


def masked(ids: Sequence[int], mask: Sequence[int] | None) -> list[int]:
    """The mask of the ids so far: ids after the end of the given mask were sampled.

    Example:
        >>> masked([5, 6, 7, 8], [0, 0]), masked([5, 6], None)
        ([0, 0, 1, 1], [0, 0])
    """
    if mask is None:
        return [0] * len(ids)
    mask = integers("mask", mask)
    if len(mask) > len(ids):
        raise ArgumentError(f"the mask has {len(mask)} entries, but there are only {len(ids)} ids")
    return [*mask, *[1] * (len(ids) - len(mask))]


def appended(
    writer: Any,
    ids: Sequence[int],
    row: Row,
    *,
    prompt: bool,
    history: Row | None,
) -> Segments:
    """The continuation of the ids: the end of their turn, the messages, and the next turn's start.

    Raises:
        ConversationError: if the ids end neither with a turn nor within one of the assistant; if
            the messages are invalid for the template; or if the template is not prefix-stable.
    """
    for index, flag in row.flags.items():
        if flag:
            raise ConversationError(
                f"message {index} is to be trained on, but only sampled ids are",
                hint="remove the flag",
            )
    if not ids:
        out = Segments()
        (writer.prompt if prompt else writer.write)(row, out)
        return out
    if isinstance(writer, TemplateWriter):
        return _after_value(writer, list(ids), row.messages, row.fields, prompt=prompt)
    past = history.messages if history is not None else None
    items = _after_jinja(writer, list(ids), row.messages, row.fields, prompt=prompt, history=past)
    return Segments(items, bytearray(len(items)), [len(items)])


# ---------------------------------------------------------------------------- templates as values


def _after_value(
    writer: TemplateWriter,
    ids: list[int],
    messages: Sequence[Any],
    fields: Mapping[str, Any],
    *,
    prompt: bool,
) -> Segments:
    if fields.get("tools"):
        raise ConversationError(
            "tools are defined at the start of a conversation",
            hint="pass them with the first messages",
        )
    out, prompted = Segments(), writer.prompted
    closed_role, rest = _end_of(writer, ids)
    numbered = list(enumerate(messages))
    numbered = calls.to_parts(writer.template, numbered, goes_on=closed_role is None)
    goes_on = closed_role is None and numbered and role_of(*numbered[0]) == prompted.name
    if goes_on:
        index, message = numbered.pop(0)
        content = calls.body(writer.template, index, message, fields)
        prompted.write_content(index, content, out, writer.template.strip)
    stays_open = goes_on and not numbered and prompt
    if not stays_open:
        out.items += [*rest, None]
        turns = writer.template.alternate
        place = turns.index(closed_role or prompted.name) + 1 if turns else 1
        writer.append(numbered, fields, out, place)
        if prompt and messages:
            out.items += prompted.open[0]
    out.trained = bytearray(len(out.items))
    out.ends.append(len(out.items))
    return out


def _end_of(writer: TemplateWriter, ids: list[int]) -> tuple[str | None, _Items]:
    """The role of the closed turn, or None if it is open; and the missing end of the turn."""
    prompted = writer.prompted
    first, close = prompted.open[0][:1], prompted.close[0]
    if not close or not isinstance(close[0], int) or not first or not isinstance(first[0], int):
        raise ConversationError(
            f"the template {writer.template.name!r} does not open and close the turn of "
            f"{prompted.name!r} with special tokens, so its end cannot be found in ids"
        )
    closing: dict[Any, tuple[str, _Items]] = {
        role.close[0][0]: (name, role.close[0])
        for name, role in writer.roles.items()
        if role.close[0]
    }
    closing |= dict.fromkeys([*writer.stops, close[0]], (prompted.name, close))
    end = next((at for at in range(len(ids) - 1, -1, -1) if ids[at] in closing), -1)
    start = next((at for at in range(len(ids) - 1, end, -1) if ids[at] == first[0]), -1)
    if start > end:
        _check_open(writer, ids[start:])
        return None, close
    if end >= 0:
        name, frame = closing[ids[end]]
        if len(ids) == end + 1:
            return name, frame[1:]
        if ids[end + 1 :] == _encoded(writer, frame[1:]):
            return name, []
    raise ConversationError(
        f"the ids end neither with a closed turn nor within one of {prompted.name!r}",
        hint=(
            "pass the prompt that was rendered and all that was sampled after it, up to the stop "
            "token"
        ),
    )


def _check_open(writer: TemplateWriter, ids: list[int]) -> None:
    """Check that an open turn is one of the prompted role."""
    prompted = writer.prompted
    opening = writer.tokenizer.decode_bytes(_encoded(writer, prompted.open[0]))
    if not writer.tokenizer.decode_bytes(ids[: len(opening)]).startswith(opening):
        raise ConversationError(f"the ids end within a turn that is not one of {prompted.name!r}")


def _encoded(writer: TemplateWriter, items: _Items) -> list[int]:
    ids: list[int] = []
    for item in items:
        if item == BREAK:
            continue
        ids += [item] if isinstance(item, int) else writer.tokenizer.encode(item or "")
    return ids


# ---------------------------------------------------------------------------- Jinja


def _after_jinja(
    writer: JinjaWriter,
    ids: list[int],
    messages: Sequence[Any],
    fields: Mapping[str, Any],
    *,
    prompt: bool,
    history: Sequence[Any] | None,
) -> _Items:
    made_up = [list(history)] if history is not None else _histories(writer, messages)
    prompt = prompt and bool(messages)
    try:
        suffixes = [_suffix(writer, past, messages, fields, prompt=prompt) for past in made_up]
    except ConversationError as error:
        if history is not None:
            raise
        raise ConversationError(
            f"after an invented history: {error}",
            option="history",
            hint="pass the messages so far as history=",
        ) from error
    if any(other != suffixes[0] for other in suffixes):
        raise ConversationError(
            (
                f"the template {writer.template.name!r} renders the new messages differently for "
                "different histories"
            ),
            option="history",
            hint="pass the messages so far as history=",
        )
    opening, end, following = suffixes[0]
    closing = [item for item in end if isinstance(item, int)]
    stop, behind = closing[-1], end[len(closing) :]
    stops = {stop, *(writer.special[name] for name in writer.template.stop or ())}
    if ids[-1] in stops:
        return [*behind, *following]
    rest = [id for text in behind for id in writer.tokenizer.encode(str(text))]
    if rest and ids[-len(rest) - 1 :] == [stop, *rest]:
        return following
    start = next((at for at in range(len(ids) - 1, -1, -1) if ids[at] == opening), len(ids))
    if stops & set(ids[start + 1 :]):
        raise ConversationError(
            "the ids continue after the stop token", hint="pass only the ids up to that token"
        )
    done = next(n for n in range(len(closing), -1, -1) if ids[len(ids) - n :] == closing[:n])
    return [*end[done:], *following]


def _histories(writer: JinjaWriter, messages: Sequence[Any]) -> list[list[Any]]:
    """Histories that the messages may follow."""
    question = {"role": "user", "content": "a"}
    answer: dict[str, Any] = {"role": writer.template.prompted, "content": "b"}
    called = []
    for index, message in enumerate(messages):
        if role_of(index, message) != "tool":
            break
        function: dict[str, Any] = {"name": message.get("name") or "f", "arguments": {}}
        id = message.get("tool_call_id") or "call00000"
        called.append({"id": id, "type": "function", "function": function})
    calling = {**answer, "content": "", "tool_calls": called} if called else answer
    thinking = {**calling, "reasoning_content": "c"}
    return [[question, calling], [question, answer, question, calling], [question, thinking]]


def _suffix(
    writer: JinjaWriter,
    history: Sequence[Any],
    messages: Sequence[Any],
    fields: Mapping[str, Any],
    *,
    prompt: bool,
) -> tuple[Any, _Items, _Items]:
    """The last special token of the prompt, the end of the history, and the continuation.

    The end is the special tokens that close the turn, and the text that the template writes after
    them.
    """
    if not history or role_of(len(history) - 1, history[-1]) != writer.template.prompted:
        raise ConversationError(
            f"a history must end with a message of {writer.template.prompted!r}"
        )
    rendering = writer.rendering([*history, *messages], fields, prompt=prompt)
    count = len(history)
    prefix, before, past, whole = (
        string.translate(NO_MARKS)
        for string in (
            rendering.run(rendering.messages[: count - 1]),
            rendering.run(rendering.messages[: count - 1], prompt=True),
            rendering.run(rendering.messages[:count]),
            rendering.string,
        )
    )
    what = "the turn does not continue its prompt"
    hint = "use a template where it does"
    masks.check_prefix(before, past, what, rendering, hint)
    what = "the template renders the turn differently when messages follow"
    hint = "use a template that renders it equally, or render the whole conversation again"
    masks.check_prefix(past, whole, what, rendering, hint)
    opening = writer.items(before.removeprefix(prefix), rendering)
    ids_of_opening = [item for item in opening if isinstance(item, int)]
    end = writer.items(past[len(before) :], rendering)
    last = next((at for at in range(len(end) - 1, -1, -1) if isinstance(end[at], int)), None)
    if last is None or any(str(text).strip() for text in end[last + 1 :]):
        raise ConversationError(
            f"the template {writer.template.name!r} does not end the turn of "
            f"{writer.template.prompted!r} with a special token"
        )
    if not history[-1].get("tool_calls"):  # with tool calls, the text before it may end a call
        while last and isinstance(end[last - 1], int):
            last -= 1
    following = writer.items(whole[len(past) :], rendering)
    return ids_of_opening[-1] if ids_of_opening else None, end[last:], following
