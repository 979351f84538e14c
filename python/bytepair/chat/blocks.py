"""Blocks of a rendered conversation in, the messages that wrote them out.

A template with `{% generation %}` blocks says what is trained on, but not which message a block
belongs to. To find out, a private-use character is inserted into the texts of each message, another
one for each message, and the conversation is rendered again: a block belongs to the message whose
character is in it. A block without text of a message, such as an end of turn, belongs to the
message of the blocks around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from bytepair.chat import checks
from bytepair.chat.disguise import Rendering
from bytepair.chat.environment import START, STOP
from bytepair.chat.regions import Region, unmarked
from bytepair.errors import ConversationError

_BLOCK: Final = re.compile(f"{START}[^{STOP}]*{STOP}")


def regions(rendering: Rendering, off: Sequence[int], on: Sequence[int]) -> list[Region]:
    """The blocks with the messages that wrote them; those of the messages `off` are empty.

    Raises:
        ConversationError: if it cannot be told which message a block belongs to, or a message of
            `on` has no block.
    """
    owners = _owners(rendering)
    for index in on:
        if index not in owners:
            raise ConversationError(
                f"message {index} is to be trained on, but the template has no "
                "{% generation %} block for it"
            )
    _, places = unmarked(rendering.string)
    blocks = [Region(owner, *place) for owner, place in zip(owners, places, strict=True)]
    return [
        region._replace(end=region.start) if region.owner in off else region for region in blocks
    ]


def _owners(rendering: Rendering) -> list[int]:
    """The index of the message of each block."""
    characters = {next(rendering.disguise.free): i for i in range(len(rendering.messages))}
    messages = [
        _with(message, character)
        for message, character in zip(rendering.messages, characters, strict=True)
    ]
    try:
        blocks = _BLOCK.findall(rendering.run(messages))
    except ConversationError as error:
        raise _unclear(f"the template depends on the text of messages ({error})") from error
    if len(blocks) != len(_BLOCK.findall(rendering.string)):
        raise _unclear("the blocks depend on the text of messages")
    owners = [{characters[c] for c in block if c in characters} for block in blocks]
    return [_owner(owners, at) for at in range(len(owners))]


def _owner(owners: list[set[int]], at: int) -> int:
    if len(owners[at]) > 1:
        raise _unclear(f"block {at} has text of several messages")
    if owners[at]:
        return min(owners[at])
    before = next((block for block in reversed(owners[:at]) if block), set())
    after = next((block for block in owners[at + 1 :] if block), set())
    either = before | after
    if len(either) != 1:
        raise _unclear(f"block {at} has no text of a message")
    return min(either)


def _with(message: Any, character: str) -> Any:
    """A message with a character in each of its texts."""

    def mark(text: str, _: str) -> str:
        for at in reversed(checks.middles(text) or [len(text) // 2]):
            text = text[:at] + character + text[at:]
        return text

    return checks.with_marks(message, "", mark)


def _unclear(why: str) -> ConversationError:
    return ConversationError(
        (
            "some turns are not to be trained on, but it is unclear which {% generation %} "
            f"blocks are theirs: {why}"
        ),
        option="mask",
        hint='pass mask="prefixes" to the template',
    )
