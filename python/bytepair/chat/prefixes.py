"""Find the parts of a rendered conversation that the assistant wrote, by rendering prefixes.

A template without `{% generation %}` blocks does not define what the model is trained on, but it
can be derived: to write message `i`, the model gets a prompt, which is the rendering of the
previous messages and the start of the assistant's turn. The rendering of the messages up to `i`
continues this prompt; the continuation is what the model must write.

This requires that each of these strings is a prefix of the next. A template that renders a message
differently when others follow, for instance without earlier reasoning, is rejected: the training
text would differ from what the model sees in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from bytepair.chat.disguise import Rendering
from bytepair.chat.regions import Region
from bytepair.chat.segments import role_or_none
from bytepair.errors import ConversationError

_HINT = (
    "use a template that renders it the same, one with {% generation %} blocks, or pass "
    'mask="none" to the template for ids alone'
)


def regions(rendering: Rendering, role: str, trained: Sequence[bool] | None) -> list[Region]:
    """The parts of the string that messages of a role added.

    Those of messages that are not `trained` on are empty, and left out if they are not
    prefix-stable; None means that all are trained on.

    Raises:
        ConversationError: if the rendering of a prefix of the conversation is not a prefix of the
            whole rendering.
    """
    found = []
    for index, message in enumerate(rendering.messages):
        if role_or_none(message) != role:
            continue
        if trained is None or trained[index]:
            found.append(Region(index, *_span(rendering, index)))
        else:
            with suppress(ConversationError):
                start, _ = _span(rendering, index)
                found.append(Region(index, start, start))
    return found


def _span(rendering: Rendering, index: int) -> tuple[int, int]:
    """The span, in the whole string, of what a message of the assistant adds."""
    messages = rendering.messages
    try:
        prompt = rendering.run(messages[:index], prompt=True)
    except ConversationError as error:
        raise ConversationError(
            f"no mask can be derived for message {index}, because the template cannot render the "
            f"messages before it alone ({error})",
            option="mask",
            hint=_HINT,
        ) from error
    last = index + 1 == len(messages)
    through = rendering.string if last else rendering.run(messages[: index + 1])
    check_prefix(
        prompt,
        through,
        f"message {index} does not continue the prompt of the messages before it",
        rendering,
    )
    check_prefix(
        through,
        rendering.string,
        f"the template renders the first {index + 1} messages differently when others follow",
        rendering,
    )
    return len(prompt), len(through)


def check_prefix(
    prefix: str, whole: str, what: str, rendering: Rendering, hint: str = _HINT
) -> None:
    """Reject a rendering that does not begin with that of fewer messages; show the difference."""
    if whole.startswith(prefix):
        return
    at = next(
        (i for i, (a, b) in enumerate(zip(prefix, whole, strict=False)) if a != b),
        min(len(prefix), len(whole)),
    )
    was, now = (rendering.disguise.take_off(s[max(0, at - 20) : at + 20]) for s in (prefix, whole))
    raise ConversationError(
        f"{what}, so the training text would differ from the text in use: at character {at}, "
        f"{was!r} becomes {now!r}",
        option="mask" if hint is _HINT else None,
        hint=hint,
    )
