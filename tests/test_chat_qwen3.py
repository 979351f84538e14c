"""Reasoning and tool calls of Qwen3: the template as a value and templates in Jinja agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import chat
from bytepair.chat import ChatOptions
from trl_source import FOLDER, REASON

NAMES = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>",
         "</tool_response>", "<think>", "</think>"]  # fmt: skip
TOK = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=NAMES)
BARE = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=NAMES[:2])

#: What Qwen3's training template writes, in few lines. A line break of the text is ¶ here, since
#: Jinja removes one after a block.
_ANSWER = (
    r"<think>¶{{ (m.reasoning_content or '').strip('\n') }}¶</think>¶¶{{ m.content.lstrip('\n') }}"
    "{% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}¶{% endif %}"
    '<tool_call>¶{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}¶</tool_call>{% endfor %}<|im_end|>"
)
_REST = (
    "{% for m in messages %}{% if m.role == 'tool' %}"
    "{% if loop.first or loop.previtem.role != 'tool' %}<|im_start|>user{% endif %}"
    "¶<tool_response>¶{{ m.content }}¶</tool_response>"
    "{% if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>¶{% endif %}"
    "{% else %}<|im_start|>{{ m.role }}¶"
    "{% if m.role == 'assistant' %}ANSWER¶{% else %}{{ m.content }}<|im_end|>¶{% endif %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant¶{% endif %}"
)


def jinja(mark: bool) -> chat.JinjaTemplate:
    answer = f"{{% generation %}}{_ANSWER}{{% endgeneration %}}" if mark else _ANSWER
    source = _REST.replace("ANSWER", answer).replace("¶", r"{{ '\n' }}")
    return chat.JinjaTemplate(source, name="blocks" if mark else "prefixes", stop=("<|im_end|>",))


JINJAS = [jinja(True), jinja(False)]


#: Texts that are not blank: in a rendered string, a blank text cannot be told from its frame.
def texts(*more: str) -> st.SearchStrategy[str]:
    pieces = ["hello", " world", "\n", "é", "12", "<tool_call>", "{", *more]
    return st.lists(st.sampled_from(pieces), min_size=1, max_size=3).map("".join).filter(str.strip)


def call(**arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "find", "arguments": arguments}}


@st.composite
def talks(draw: Any, *more: str) -> list[dict[str, Any]]:
    strings = texts(*more)
    talk: list[dict[str, Any]] = [{"role": "user", "content": "x"}]
    for _ in range(draw(st.integers(1, 3))):
        answer: dict[str, Any] = {"role": "assistant", "content": draw(st.just("") | strings)}
        if draw(st.booleans()):
            answer["reasoning_content"] = draw(strings)
        if "think>" in answer["content"] and not answer.get("reasoning_content"):
            answer["reasoning_content"] = "hm"  # tags in the content alone are an error
        if draw(st.booleans()):
            calls = draw(st.lists(strings.map(lambda text: call(a=text)), min_size=1, max_size=2))
            answer["tool_calls"] = calls
            talk += [answer, *({"role": "tool", "content": draw(strings)} for _ in calls)]
        else:
            talk += [answer, {"role": "user", "content": draw(strings)}]
    return [*talk, {"role": "assistant", "content": "the end"}]


@pytest.mark.parametrize("template", JINJAS, ids=lambda t: t.name)
@settings(max_examples=80)
@given(talks("</think>x"), st.sampled_from(["all", "last"]))
def test_jinja_is_the_value(template: Any, talk: list[Any], train_on: Any) -> None:
    compare(template, talk, train_on=train_on)


def compare(template: Any, talk: list[Any], **options: Any) -> None:
    """Ids and mask are those of the value, except for the line break after the end of a turn."""
    how: Any = {"on_untrained": "keep", "options": ChatOptions(**options)}
    ids, mask = TOK.render_conversation(talk, template=chat.QWEN3, **how)
    theirs, other = TOK.render_conversation(talk, template=template, **how)
    assert ids == theirs
    differ = [at for at, (a, b) in enumerate(zip(mask, other, strict=True)) if a != b]
    end = TOK.special_tokens["<|im_end|>"]
    assert all(ids[at - 1] == end for at in differ)


# ---------------------------------------------------------------------------- TRL


@pytest.mark.skipif(not FOLDER.is_dir(), reason=REASON)
@pytest.mark.parametrize("mask", ["blocks", "prefixes"])
@settings(max_examples=60)
@given(talks())
def test_qwen3_is_that_of_its_training(mask: Any, talk: list[Any]) -> None:
    source = (FOLDER / "qwen3_training.jinja").read_text("utf-8")
    template = chat.JinjaTemplate(source, stop=(), mask=mask)
    compare(template, talk)
    for tok in (TOK, BARE):
        ours = tok.render_conversation(talk, template=chat.QWEN3)[0]
        assert ours == tok.render_conversation(talk, template=template)[0]
        assert tok.render_for_completion(talk, template=chat.QWEN3) == tok.render_for_completion(
            talk, template=template
        )
