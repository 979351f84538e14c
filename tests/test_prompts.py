"""Prompts that have to fit a context."""

from __future__ import annotations

import random
from typing import Any

import pytest

import bytepair
from bytepair import chat
from bytepair.errors import ArgumentError, ConversationError

NAMES = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"]
HERMES = bytepair.train(bytepair.sample.paths()[:3], 600, special_tokens=NAMES)
JINJA = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES: dict[str, Any] = {"values": chat.CHATML, "jinja": chat.JinjaTemplate(JINJA)}


def conversation(rng: random.Random) -> list[dict[str, str]]:
    """A conversation that a prompt can end, with or without a system message, of some turns."""

    def text() -> str:
        return "word " * rng.randint(1, 12)

    messages = [{"role": "system", "content": text()}] if rng.random() < 0.5 else []
    for _ in range(rng.randint(0, 6)):
        messages.append({"role": "user", "content": text()})
        messages.append({"role": "assistant", "content": text()})
    return [*messages, {"role": "user", "content": text()}]


@pytest.mark.parametrize("template", TEMPLATES)
def test_as_few_turns_as_possible_are_dropped(template: str) -> None:
    how = {"template": TEMPLATES[template]}
    for seed in range(60):
        rng = random.Random(seed)
        messages = conversation(rng)
        whole = HERMES.render_for_completion(messages, **how)
        limit = rng.randint(1, len(whole) + 5)
        head = int(messages[0]["role"] == "system")
        # The slow twin: turn after turn is dropped until the rest fits.
        starts = range(head, len(messages), 2)
        fitting = [(at, [*messages[:head], *messages[at:]]) for at in starts]
        expected = next(
            (
                ids
                for _, rest in fitting
                if len(ids := HERMES.render_for_completion(rest, **how)) <= limit
            ),
            None,
        )
        arguments: dict[str, Any] = {"max_tokens": limit, "drop": "oldest", **how}
        if expected is None:
            with pytest.raises(ConversationError) as caught:
                HERMES.render_for_completion(messages, **arguments)
            assert (caught.value.option, caught.value.value) == ("max_tokens", limit)
            continue
        assert HERMES.render_for_completion(messages, **arguments) == expected


def test_nothing_is_dropped_unless_asked() -> None:
    messages = [{"role": role, "content": "hi"} for role in ("user", "assistant", "user")]
    ids = HERMES.render_for_completion(messages, template=chat.CHATML)
    assert HERMES.render_for_completion(messages, template=chat.CHATML, max_tokens=len(ids)) == ids
    with pytest.raises(ConversationError):
        HERMES.render_for_completion(messages, template=chat.CHATML, max_tokens=len(ids) - 1)


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"max_tokens": 1.5}, {"drop": "newest"}])
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "hi"}]
    with pytest.raises(ArgumentError) as caught:
        HERMES.render_for_completion(messages, template=chat.CHATML, **wrong)
    assert caught.value.option in wrong
