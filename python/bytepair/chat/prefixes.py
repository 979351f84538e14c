"""A rendered conversation in, the same string with marks around what the assistant wrote out.

A template without `{% generation %}` blocks does not say what the model is trained on. It follows
from what the model would have seen: before message `i` of the assistant, it is given the prompt,
which is the rendering of the messages before, with the start of the assistant's turn. What the
rendering of the messages up to `i` has beyond the prompt is what the model must write.

This holds only if each of these strings is the beginning of the next. A template that renders a
message in another way once others follow it, for instance by leaving out earlier reasoning, is
refused: what is trained on would not be what the model sees when it is used.
"""

from __future__ import annotations

from bytepair.chat.disguise import Rendering
from bytepair.chat.environment import START, STOP
from bytepair.chat.segments import role_or_none
from bytepair.errors import ConversationError

_WAY_OUT = (
    "use a template that renders it the same, one with {% generation %} blocks, or pass "
    'mask="none" to the template for ids alone'
)


def marked(rendering: Rendering, role: str) -> str:
    """The string, with a mark at the start and at the end of what messages of a role add.

    Raises:
        ConversationError: if the template does not render each prefix of the conversation as the
            beginning of the whole.
    """
    whole, done, pieces = rendering.string, 0, []
    for index, message in enumerate(rendering.messages):
        if role_or_none(message) != role:
            continue
        start, end = _span(rendering, index)
        pieces += [whole[done:start], START, whole[start:end], STOP]
        done = end
    return "".join([*pieces, whole[done:]])


def _span(rendering: Rendering, index: int) -> tuple[int, int]:
    """Where what a message of the assistant adds starts and ends in the whole string."""
    messages = rendering.messages
    try:
        prompt = rendering.run(messages[:index], prompt=True)
    except ConversationError as error:
        raise ConversationError(
            f"no mask can be derived for message {index}, because the messages before it are not "
            f"rendered without it ({error}); {_WAY_OUT}"
        ) from error
    last = index + 1 == len(messages)
    through = rendering.string if last else rendering.run(messages[: index + 1])
    check_prefix(
        prompt,
        through,
        f"message {index} does not go on from the prompt of the messages before it",
        rendering,
    )
    check_prefix(
        through,
        rendering.string,
        f"the template renders the first {index + 1} messages in another way when others follow",
        rendering,
    )
    return len(prompt), len(through)


def check_prefix(
    prefix: str, whole: str, what: str, rendering: Rendering, way_out: str = _WAY_OUT
) -> None:
    """Refuse a rendering that does not begin with that of fewer messages, and show where."""
    if whole.startswith(prefix):
        return
    at = next(
        (i for i, (a, b) in enumerate(zip(prefix, whole, strict=False)) if a != b),
        min(len(prefix), len(whole)),
    )
    was, now = (rendering.disguise.take_off(s[max(0, at - 20) : at + 20]) for s in (prefix, whole))
    raise ConversationError(
        f"{what}, so the model is not given what it would be trained on: at character {at}, "
        f"{was!r} becomes {now!r}; {way_out}"
    )
