"""A tokenizer's own chat templates: the default wherever conversations are rendered, or by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bytepair
from bytepair import chat
from bytepair.chat import render_preferences, render_turn
from bytepair.errors import ArgumentError, ConversationError
from conftest import refused
from loaders import conversation_batches
from messages import told

NAMES = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
BARE = bytepair.train(bytepair.sample.paths(), 1000, special_tokens=NAMES)
SOURCE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}"
)
OWN = BARE.replace(chat_template=SOURCE)
for name in ("tool_use", "rag"):
    OWN = OWN.replace(chat_template={name: f"{name} {{{{ tools | tojson }}}} {SOURCE}"})
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
PAIR = {"prompt": "hi", "chosen": "hello", "rejected": "no"}


def every_rendering(tok: bytepair.Tokenizer, template: Any) -> list[list[int]]:
    """What each way of rendering gives."""
    batch = tok.render_batch([TALK, TALK], template=template)
    options: dict[str, Any] = {"template": template, "pad": "<|endoftext|>"}
    inputs, targets = next(conversation_batches([TALK], tok, 1, 64, **options))
    pairs = render_preferences(tok, [PAIR], template=template, pad="<|endoftext|>")
    prompt = tok.render_for_completion(TALK, template=template)
    return [
        *tok.render_conversation(TALK, template=template),
        batch.input_ids.tolist(), batch.loss_mask.tolist(),
        np.ravel(inputs).tolist(), np.ravel(targets).tolist(),
        prompt,
        *render_turn(tok, [], [{"role": "user", "content": "x"}], template=template),
        [array.tolist() for array in pairs.padded().values()],
    ]  # fmt: skip


@pytest.mark.parametrize("name", [None, "default", "tool_use", "rag"])
def test_own_templates_are_used_everywhere(name: str | None) -> None:
    pytest.importorskip("jinja2")
    source = OWN.chat_templates[name or "default"]
    renderings = every_rendering(OWN, name)
    assert renderings == every_rendering(OWN, chat.JinjaTemplate(source))
    assert renderings[0] != BARE.render_conversation(TALK, template=chat.CHATML)[0]
    assert OWN.decode(renderings[0]).startswith(
        name if name in ("tool_use", "rag") else "<|im_start|>"
    )


def test_the_default_of_nanochat_is_a_value() -> None:
    tok = bytepair.train(bytepair.sample.paths(), 1000)
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    talk: list[Any] = [TALK[0], {"role": "assistant", "content": parts}]
    for template in (None, "default"):
        expected = tok.render_conversation(talk, template=chat.NANOCHAT)
        assert tok.render_conversation(talk, template=template) == expected
        assert (
            tok.replace(chat_template=tok.chat_templates.get("default")).render_conversation(talk)
            == expected
        )
    other = tok.replace(chat_template=SOURCE.replace("im_start", "bos").replace("im_end", "bos"))
    assert other.render_for_completion(TALK) != tok.render_for_completion(TALK)


def test_the_writer_is_that_of_the_tokenizer_and_the_name() -> None:
    """One that is kept from the last call is not used for another tokenizer or template."""
    pytest.importorskip("jinja2")
    other = OWN.replace(chat_template="x" + SOURCE)
    for _ in range(2):
        plain = OWN.render_for_completion(TALK)
        assert other.decode(other.render_for_completion(TALK)) == "x" + OWN.decode(plain)
        assert OWN.render_for_completion(TALK, template="rag") != plain
        assert BARE.render_for_completion(TALK, template=chat.CHATML) != plain


def test_names_that_do_not_exist_are_errors() -> None:
    with told(ArgumentError):
        OWN.render_conversation(TALK, template="chatml")
    with told(ArgumentError):
        BARE.render_conversation(TALK, template="default")
    with pytest.raises(ArgumentError) as caught:
        BARE.render_conversation(TALK)
    assert caught.value.option == "template"
    with refused("template", 5):
        BARE.render_conversation(TALK, template=5)  # type: ignore[arg-type]


def test_tools_that_the_default_drops_are_an_error_that_training_sees() -> None:
    pytest.importorskip("jinja2")
    row = {"messages": TALK, "tools": [{"name": "f"}]}
    with told(ConversationError):
        OWN.render_conversation(row)
    ids, _ = OWN.render_conversation(row, template="tool_use")
    assert '"name": "f"' in OWN.decode(ids)
